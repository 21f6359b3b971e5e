"""Pages for everybody: nothing that axe finds serious, in light and in dark."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import axe_core_python
import pytest

from conftest import ROOT
from test_report import plain_figure, record
from whyloss.cli.app import app
from whyloss.report import render

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
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
        ["run", lossy, "--out", str(ran)],
        ["report", str(ran)],
    ):
        app.main(words, standalone_mode=False)
    reports = {"a reproduction": render(record([plain_figure()]))}
    return reports | {path.name: path.read_text(encoding="utf-8") for path in (explained, drawn, ran / "report.html")}


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_serious_is_found(pages: dict[str, str], dark: bool, tmp_path: Path) -> None:
    for name, page in pages.items():
        found = looked_at(page, dark, tmp_path)
        assert found["passes"] > 8, name
        serious = [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
        assert not serious, (name, [(rule["id"], rule["nodes"][0]["html"]) for rule in serious])
