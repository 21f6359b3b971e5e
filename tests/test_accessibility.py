"""Pages for everybody: in light and dark, on phones and paper, by keys, without scripts; axe finds nothing serious."""

import html
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from PIL import Image, ImageChops, ImageStat

from conftest import ROOT
from test_report import plain_figure, record
from whyloss.cli.app import app
from whyloss.report import render

sys.path.insert(0, str(ROOT / "tools"))

from browser import BROWSER, Browser

AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
# Everything is drawn and opened before it is looked at.
RUN = """
document.querySelectorAll("details").forEach((rows) => { rows.open = true; });
addEventListener("load", () => setTimeout(async () => {
  const found = await axe.run({ resultTypes: ["violations"] });
  const told = document.createElement("pre");
  told.id = "found";
  told.textContent = JSON.stringify({ passes: found.passes.length, violations: found.violations });
  document.body.append(told);
}, 1500));
"""


def looked_at(page: str, dark: bool, folder: Path) -> dict[str, Any]:
    """What axe says of a page."""
    begin = page.rindex("</body>")
    path = folder / "page.html"
    path.write_text(f"{page[:begin]}<script>{AXE}</script><script>{RUN}</script>{page[begin:]}", encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", scheme]
    done = subprocess.run([*command, "--dump-dom", path.as_uri()], capture_output=True, timeout=120, check=True)
    told = re.search(r'<pre id="found">(.*?)</pre>', done.stdout.decode("utf-8"), re.DOTALL)
    assert told, done.stderr[-500:]
    found: dict[str, Any] = json.loads(html.unescape(told.group(1)))
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    radio = str(ROOT / "examples" / "captures" / "lossy-radio.pcapng.zst")
    lossy = str(ROOT / "examples" / "lossy-link.toml")
    explained, drawn, ran = folder / "explained.html", folder / "drawn.html", folder / "ran"
    for words in (
        ["explain", radio, "--html", str(explained)],
        ["plot", lossy, "-o", str(drawn)],
        ["run", lossy, "--set", "output.segments={}", "--out", str(ran)],
        ["report", str(ran)],
    ):
        app.main(words, standalone_mode=False)
    reports = {"a reproduction": render(record([plain_figure()]))}
    return reports | {path.name: path.read_text(encoding="utf-8") for path in (explained, drawn, ran / "report.html")}


needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_serious_is_found(pages: dict[str, str], dark: bool, tmp_path: Path) -> None:
    for name, page in pages.items():
        found = looked_at(page, dark, tmp_path)
        assert found["passes"] > 8, name
        serious = [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
        assert not serious, (name, [(rule["id"], rule["nodes"][0]["html"]) for rule in serious])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as one:
        yield one


@pytest.fixture(scope="module")
def files(pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


DRAWN = """(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 50));
  document.querySelectorAll("details").forEach((rows) => { rows.open = true; });
  for (const figure of document.querySelectorAll("figure")) {
    figure.scrollIntoView();
    const ready = () => figure.querySelector(".main-svg") || figure.querySelector(".stands")?.hidden;
    for (let turn = 0; turn < 400 && !ready(); turn++) await wait();
  }
  scrollTo(0, 0);
  await wait();
  for (let turn = 0; turn < 3; turn++) await new Promise(requestAnimationFrame);
})()"""
BOXES = """[...document.querySelectorAll("figure")].map((figure) => {
  const shown = figure.querySelector("canvas.sequence, .plot") || figure;
  return [figure, shown].map((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return [x, y + scrollY, x + width, y + scrollY + height];
  });
})"""
STILLS = """[...document.querySelectorAll("figure")].map((figure) => {
  const { x, y, width, height } = figure.querySelector(".stands svg, img.still").getBoundingClientRect();
  return [x, y + scrollY, x + width, y + scrollY + height];
})"""
Box = tuple[float, float, float, float]


def light(picture: Image.Image) -> float:
    """How bright it is on the whole, from 0 to 255."""
    return float(ImageStat.Stat(picture.convert("L")).mean[0])


def has_drawing(picture: Image.Image, box: Box) -> bool:
    """Whether a part of a picture is more than a ground, and its colours more than one."""
    part = picture.crop((int(box[0]), int(box[1]), int(box[2]), int(box[3]))).convert("RGB")
    colours = part.getcolors(maxcolors=1 << 24) or []
    counts = sorted((count for count, _ in colours), reverse=True)
    return len(counts) > 8 and 0.003 < 1 - counts[0] / sum(counts) < 0.9


def screenshot(browser: Browser) -> Image.Image:
    return Image.open(io.BytesIO(browser.picture(whole=True))).convert("RGB")


SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_figures_are_drawn_within_the_page(browser: Browser, files: dict[str, Path], size: str, dark: bool) -> None:
    for name, path in files.items():
        browser.look(*SIZES[size], dark=dark)
        browser.open(path)
        browser.run(DRAWN)
        width = SIZES[size][0]
        assert browser.run("document.documentElement.scrollWidth") <= width, name
        picture, boxes = screenshot(browser), browser.run(BOXES)
        assert boxes, name
        for figure, shown in boxes:
            assert 0 <= figure[0] < figure[2] <= width, (name, figure)
            assert shown[2] - shown[0] > 0.7 * (figure[2] - figure[0]), (name, shown)
            assert shown[3] - shown[1] > 200, (name, shown)
            assert has_drawing(picture, shown), (name, shown)
        assert (light(picture) < 90) == dark, name
        assert (light(picture) > 165) != dark, name


@needs_browser
def test_figures_are_there_without_scripts(browser: Browser, files: dict[str, Path]) -> None:
    for name, path in files.items():
        if name == "a reproduction":
            continue  # Made from a record without its folder of pictures.
        browser.look(*SIZES["phone"], script=False)
        browser.open(path)
        picture, boxes = screenshot(browser), browser.run(STILLS)
        assert boxes, name
        for box in boxes:
            assert 0 <= box[0] < box[2] <= 390, (name, box)
            assert has_drawing(picture, box), (name, box)


def test_a_table_is_behind_each_figure(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        figures = re.findall(
            r"<figure.*?</figure>", re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL), re.DOTALL
        )
        assert figures, name
        for figure in figures:
            (rows,) = re.findall(r"<details.*?<tbody>(.*?)</tbody>", figure, re.DOTALL)
            assert len(re.findall(r"<tr>.*?\d.*?</tr>", rows, re.DOTALL)) >= 1, name
    assert re.search(r"<th scope=\"row\">congestion window</th><td>window \(kB\)</td><td>\d+</td>", pages["drawn.html"])


@needs_browser
def test_paper_has_the_figures_that_nobody_has_scrolled_to(browser: Browser, files: dict[str, Path]) -> None:
    for name, path in files.items():
        browser.look(390, 300, dark=True)
        browser.open(path)
        assert browser.printed().startswith(b"%PDF"), name
        missing = "[...document.querySelectorAll('.plot')].filter((plot) => !plot.querySelector('.main-svg')).length"
        assert browser.run(missing) == 0, name
    path = files["explained.html"]
    shown = "['.stands', 'canvas.sequence'].map((one) => getComputedStyle(document.querySelector(one)).display)"
    for media, zoomed, expected in (
        ("screen", False, ["none", "block"]),
        ("print", False, ["block", "none"]),
        ("print", True, ["none", "block"]),
    ):
        browser.look(800, 900, dark=True)
        browser.open(path)
        browser.run(DRAWN)
        if zoomed:
            browser.run("document.querySelector('canvas.sequence').focus()")
            browser.press("+")
            browser.wait("document.querySelector('.zoomed')")
        browser.look(800, 900, dark=True, media=media)
        assert browser.run(shown) == expected
        assert (light(screenshot(browser)) > 200) == (media == "print")


@needs_browser
def test_keys_reach_what_a_pointer_reaches(browser: Browser, files: dict[str, Path]) -> None:
    browser.look(*SIZES["desktop"])
    browser.open(files["explained.html"], "#flow-0")
    browser.wait("document.querySelector('.stands').hidden")
    browser.run("document.querySelector('canvas.sequence').focus()")
    browser.press("n")
    browser.wait("!document.querySelector('aside').hidden")
    first = browser.run("document.querySelector('aside h4').textContent")
    browser.press("n")
    browser.wait(f"document.querySelector('aside h4').textContent !== {json.dumps(first)}")
    browser.press("p")
    browser.wait(f"document.querySelector('aside h4').textContent === {json.dumps(first)}")
    for name, path in files.items():
        browser.open(path)
        count = browser.run("document.querySelectorAll('summary').length")
        # Rows that open show an arrow, and Enter opens them.
        for number in range(min(count, 3)):
            row = f"document.querySelectorAll('summary')[{number}]"
            arrow = f"[{row}, ...{row}.querySelectorAll('*')].some((one) => getComputedStyle(one, '::before').content"
            plain = f"getComputedStyle({row}).listStyleType.startsWith('disclosure')"
            assert browser.run(f"{plain} || {arrow}.includes('▸'))"), (name, number)
            browser.run(f"{row}.focus()")
            browser.press("Enter")
            browser.wait(f"{row}.parentElement.open")


PICTURES = ROOT / "tests" / "pictures"
SMALLER = 8


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_diagram_looks_as_it_did(browser: Browser, files: dict[str, Path], size: str, dark: bool) -> None:
    """So small that the fonts of a machine make no difference, but a curve that is missing or elsewhere does.

    ``UPDATE=1`` keeps what it looks like now.
    """
    browser.look(*SIZES[size], dark=dark)
    browser.open(files["explained.html"], "#flow-0")
    browser.run(DRAWN)
    ((_, box),) = browser.run(BOXES)
    # Without the words beside and above the curves.
    left, top, right, bottom = (round(edge) for edge in box)
    part = screenshot(browser).crop((left + 70, top + 24, right - 12, bottom - 24))
    small = part.resize((part.width // SMALLER, part.height // SMALLER), Image.Resampling.BOX)
    kept = PICTURES / f"explained-{size}-{'dark' if dark else 'light'}.png"
    if "UPDATE" in os.environ:
        PICTURES.mkdir(exist_ok=True)
        small.quantize(64).save(kept, optimize=True)
    reference = Image.open(kept).convert("RGB")
    assert abs(small.width - reference.width) <= 1
    assert abs(small.height - reference.height) <= 1
    small = small.resize(reference.size)
    ground = Image.new("RGB", small.size, small.getpixel((1, 1)))

    def apart(one: Image.Image) -> float:
        """How far from the reference, as a share of how far an empty diagram is."""
        far = [sum(ImageStat.Stat(ImageChops.difference(other, reference)).sum2) for other in (one, ground)]
        return float((far[0] / far[1]) ** 0.5)

    assert apart(small) < 0.4
    assert apart(small.transpose(Image.Transpose.FLIP_LEFT_RIGHT)) > 0.6
    assert apart(ImageChops.offset(small, 3, 0)) > 0.4
