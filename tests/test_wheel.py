"""What `make wheel` builds carries everything: it works far from this folder."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT


@dataclass(frozen=True)
class Wheel:
    """A wheel as `make wheel` builds it."""

    path: Path
    features: list[str]
    """What it was built with: the kernel part, or nothing."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    folder = tmp_path_factory.mktemp("wheel")
    # As the Makefile has it, but nothing is installed for a test's sake.
    choice = {"WHYLOSS_KERNEL": "as-is", **os.environ}
    told = subprocess.run(
        [ROOT / "tools" / "kernel-part", "kernel"], env=choice, capture_output=True, text=True, check=True
    )
    features = told.stdout.split()
    maturin = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet", "--out", str(folder)]
    subprocess.run(maturin + features, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return Wheel(path, features)


def test_a_wheel_works_on_its_own(wheel: Wheel, tmp_path: Path) -> None:
    assert "cp311-abi3" in wheel.path.name
    names = zipfile.ZipFile(wheel.path).namelist()
    assert {"whyloss/py.typed", "whyloss/_native.abi3.so", "whyloss/_papers/garcia2004/paper.toml"} <= set(names)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "site", wheel.path],
        check=True,
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import whyloss, whyloss.papers\n"
        "print(whyloss.__file__, whyloss.papers.list_papers())\n"
        "print('kernel part' if whyloss._native.kernel_counters() else 'no kernel part')\n"
        "print(open('/proc/self/maps').read() if sys.platform == 'linux' else '')"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    # What somebody types who has the wheel alone.
    far = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    for words in (["examples", "error-rates"], ["sweep", "error-rates.toml"], ["init", "mine"], ["run", "mine.toml"]):
        command = [sys.executable, "-c", "from whyloss.cli import main; main()", *words]
        subprocess.run(command, cwd=tmp_path, env=far, capture_output=True, text=True, check=True)
    assert not [name for name in names if "own-algorithm" in name]
    said = told.stdout
    assert str(tmp_path) in said
    assert "garcia2004" in said
    assert ("no kernel part" in said) == (not wheel.features)
    assert "libelf" not in said


def test_from_pip_install_to_the_windows_of_my_link_and_the_losses_that_were_misjudged(
    wheel: Wheel, tmp_path: Path
) -> None:
    """Four commands, each found in what the one before it said, typed into a shell."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    # What the package needs is there already: nothing is fetched for a test's sake.
    own = next((home / "lib").glob("python3*/site-packages"))
    (own / "others.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")) + "\n")
    known = {**os.environ, "PATH": f"{home / 'bin'}:{os.environ['PATH']}", "COLUMNS": "100"}

    def typed(line: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        return done

    typed(f"pip install --quiet --no-index --ignore-installed --no-deps '{wheel.path}[all]'")
    shown = typed("whyloss --help").stdout
    offered = re.search(r"(whyloss compare) --rate \S+ --loss \S+", shown)
    assert offered is not None
    # My link is another one, and I am in a hurry.
    mine = "--rate 4Mbps --delay 10ms --loss 2% --scheme cubic --scheme bbr --scheme lda-eq"
    compared = typed(f"{offered[1]} {mine} --duration '10 s' --precision 20%")
    assert re.match(r"(bbr|lda-eq) (wins|leads) with ", compared.stdout)
    assert "Differentiation is" in compared.stdout
    look = re.search(r"^a run to look at: (whyloss plot .*)$", compared.stderr, re.MULTILINE)
    assert look is not None
    drawn = typed(look[1])
    picture = tmp_path / drawn.stdout.strip()
    marks: dict[str, set[str]] = {}
    for group in ET.parse(picture).iter("{http://www.w3.org/2000/svg}g"):
        axes = [one for one in group.iter("{http://www.w3.org/2000/svg}g") if one.get("id", "").startswith("decision-")]
        if group.get("id", "").startswith("axes_") and axes:
            marks[group.get("id", "")] = {one.get("id", "").split("-", 2)[2] for one in axes}
    # The windows of three schemes, with their losses: cubic takes what was erased for congestion, lda-eq mostly not.
    cubic, _, differentiating = marks.values()
    assert "erased-congestion" in cubic
    assert "erased-corruption" not in cubic
    assert "erased-corruption" in differentiating
    told = dict(re.findall(r"^(\S+): (\d+ of \d+) losses misjudged", drawn.stderr, re.MULTILINE))
    assert set(told) == {"cubic", "bbr", "lda-eq"}
    wrong, losses = (int(word) for word in told["lda-eq"].split(" of "))
    assert wrong < losses / 2
    wrong, losses = (int(word) for word in told["cubic"].split(" of "))
    assert wrong > losses / 2
