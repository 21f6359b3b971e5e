"""What a base installation can do, and what it says where it lacks a package."""

import subprocess
import sys
import tomllib
from importlib import metadata

import pytest

from conftest import ROOT
from whyloss.extras import EXTRAS

# A module that is None in `sys.modules` cannot be imported.
BASE = f"""
import sys
sys.modules.update(dict.fromkeys({list(EXTRAS)!r}))
from whyloss.cli import main
main()
"""


def base(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BASE, *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        (["--help"], "explain"),
        (["run", "examples/lossy-link.toml"], "payload-damaged"),
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
