"""What `make sdist` packs is what a build needs, and nothing else."""

import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from conftest import ROOT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    maturin = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder)]
    subprocess.run(maturin, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.tar.gz")
    assert path.stat().st_size < 4_000_000
    with tarfile.open(path) as packed:
        packed.extractall(folder, filter="data")
    (inside,) = (one for one in folder.iterdir() if one.is_dir())
    return inside


def tracked(*folders: str) -> set[str]:
    """Files of the repository below these folders."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    told = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in told.stdout.splitlines() if (ROOT / name).is_file()}


def needed(folder: Path) -> set[str]:
    """Crates of ours that the extension module is built of, as cargo finds them in ``folder``, with nothing fetched."""
    tree = ["cargo", "tree", "--offline", "--package", "whyloss-python", "--edges", "normal,build"]
    told = subprocess.run(
        [*tree, "--prefix", "none", "--format", "{p}"], cwd=folder, check=True, capture_output=True, text=True
    )
    return {
        line.split()[0].removeprefix("whyloss-") for line in told.stdout.splitlines() if line.startswith("whyloss-")
    }


def locked(folder: Path) -> set[tuple[str, str]]:
    """Names and versions in the lock file."""
    lock = tomllib.loads((folder / "Cargo.lock").read_text(encoding="utf-8"))
    return {(package["name"], package["version"]) for package in lock["package"]}


def test_everything_that_a_build_needs_is_there(unpacked: Path) -> None:
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    crates = needed(ROOT)
    assert {"transport", "sim", "lab", "capture", "python"} <= crates
    # Cargo reads the manifests as they were packed, and finds every crate of ours in them.
    assert needed(unpacked) == crates
    ours = tracked(*(f"crates/{crate}" for crate in crates))
    tests = {name for name in ours if PurePosixPath(name).parts[2] in {"tests", "examples", "clippy.toml"}}
    assert not ours - tests - names
    package = {name for name in tracked("python") if not name.endswith(("/_papers", "/_examples"))}
    assert not package - names
    papers = {f"python/whyloss/_{name}" for name in tracked("papers")}
    assert not {name for name in papers if name.endswith((".toml", ".py"))} - names
    assert {"Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "pyproject.toml", ".cargo/config.toml"} <= names


def test_nothing_is_there_that_is_not_of_the_repository(unpacked: Path) -> None:
    known = tracked() | {f"python/whyloss/_{name}" for name in tracked("papers", "examples")} | {"PKG-INFO"}
    files = [path for path in unpacked.rglob("*") if path.is_file()]
    assert not [path for path in files if path.stat().st_size > 1_500_000]
    found = [path.relative_to(unpacked) for path in files]
    assert not [path for path in found if path.as_posix() not in known]
    assert not [path for path in found if path.parts[0] == "crates" and path.parts[2] in {"tests", "examples"}]


def test_what_is_locked_is_what_the_repository_locks(unpacked: Path) -> None:
    # Cargo takes out what no crate here needs; the rest stays as it was.
    needed(unpacked)
    left = locked(unpacked)
    assert left
    assert left <= locked(ROOT)
    about = (unpacked / "PKG-INFO").read_text(encoding="utf-8")
    assert "License-Expression: MIT OR Apache-2.0" in about
    assert "Description-Content-Type: text/markdown" in about
