"""What a base installation can do, and what it says where it lacks a package."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from conftest import ROOT
from whyloss.extras import EXTRAS

# A module that is None in `sys.modules` cannot be imported.
START = """
import sys
sys.modules.update(dict.fromkeys({}))
from whyloss.cli import main
main()
"""


def base(*words: str, extras: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """What an installation with no extra but these does."""
    hidden = [module for module, extra in EXTRAS.items() if extra not in extras]
    command = [sys.executable, "-c", START.format(hidden), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        (["--help"], "explain"),
        (["run", "examples/lossy-link.toml"], "payload-damaged"),
        (["run", "--rate", "1Mbps", "--duration", "5s", "--scheme", "lda-eq"], "lda-eq"),
        (["explain", "examples/captures/lossy-radio.pcapng.zst"], "damage on the way"),
        (["schemes"], "lda-eq"),
        (["describe", "queue"], "packets"),
        (["top", "--help"], "--once"),
    ],
)
def test_the_base_installation_is_enough_for(words: list[str], effect: str) -> None:
    done = base(*words)
    assert done.returncode == 0, done.stderr
    assert effect in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["plot", "--scheme", "cubic", "--scheme", "bbr", "--duration", "5s"],
        ["compare", "--scheme", "cubic", "--scheme", "bbr", "--duration", "5s", "--max-runs", "2"],
    ],
    ids=lambda words: words[0],
)
def test_one_extra_is_enough_for_the_first_hour(words: list[str], tmp_path: Path) -> None:
    figure = tmp_path / "figure.svg"
    place = ["--out" if words[0] == "plot" else "--plot", str(figure)]
    store = [] if words[0] == "plot" else ["--store", str(tmp_path)]
    done = base(*words, "--rate", "1Mbps", "--loss", "1%", *place, *store, extras=("plot",))
    assert done.returncode == 0, done.stderr
    assert "<svg" in figure.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["sweep", "examples/error-rates.toml", "--on", "dask://127.0.0.1:1"], "cluster"),
        (["plot", "examples/lossy-link.toml"], "plot"),
        (["explain", "examples/captures/lossy-radio.pcapng.zst", "--html", "never.html"], "report"),
        (["top", "--prometheus", "127.0.0.1:0"], "top"),
    ],
)
def test_what_is_missing_is_named_in_one_line(words: list[str], extra: str) -> None:
    done = base(*words)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: this needs ")
    assert f"pip install 'whyloss[{extra}]'" in line


def test_every_package_of_an_extra_is_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    of_package = metadata.packages_distributions()
    modules = {name for name in EXTRAS for package in of_package[name] if package}
    assert modules == set(EXTRAS)
    for extra in ("cluster", "plot", "report", "top"):
        wanted = {text.split(">")[0].split("[")[0] for text in project["optional-dependencies"][extra]} - {"whyloss"}
        brought = {of_package[module][0] for module, brings in EXTRAS.items() if brings == extra}
        assert {name.lower().replace("_", "-") for name in brought} == {name.lower() for name in wanted}
