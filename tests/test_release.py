"""The release workflow builds and tries what docs/how-to/install.md says, and holds no secret."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT

PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
FLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(name: str = "release.yml") -> dict[str, Any]:
    """The jobs of a workflow, by name."""
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return dict(flow["jobs"])


def targets(job: dict[str, Any]) -> dict[str, dict[str, str]]:
    """What a job is done for, by target."""
    return {one["target"]: one for one in job["strategy"]["matrix"]["include"]}


def tag(target: str, compatibility: str | None) -> str:
    """What the page calls the wheel of a target."""
    processor, system = target.split("-", 1)
    if compatibility is not None:
        return f"`{compatibility}_{processor}`"
    return "`win_amd64`" if "windows" in system else "`macosx`"


def test_every_wheel_of_the_page_is_built_and_every_wheel_that_is_built_is_on_the_page() -> None:
    built = targets(jobs()["linux"]) | targets(jobs()["elsewhere"])
    tags = {tag(target, one.get("compatibility")) for target, one in built.items()}
    table = PAGE.partition("| wheel |")[2].partition("\n\n")[0]
    assert tags == set(re.findall(r"^\| (`\w+`)", table, re.MULTILINE))
    assert {target for target in built if "apple" in target} == {"aarch64-apple-darwin", "x86_64-apple-darwin"}


def test_nothing_is_published_that_was_not_tried() -> None:
    found = jobs()
    assert set(targets(found["try-linux"])) == set(targets(found["linux"]))
    assert set(found["publish"]["needs"]) == set(found) - {"publish", "linux"}
    for name in ("sdist", "try-linux", "elsewhere", "container"):
        assert any("$FIRST" in step.get("run", "") for step in found[name]["steps"]), name


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_no_secret_is_asked_for(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert not [
        one for one in used if not re.search(r"@(v?\d+(\.\d+)*|stable|nightly|release/v\d+|[0-9a-f]{40})$", one)
    ]
    assert "secrets." not in text
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


def test_a_container_is_built_from_what_the_repository_has() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("FROM ")] == [
        "rust:1-slim-bookworm",
        "python:3.11-slim-bookworm",
    ]
    # What the kernel part asks for is what tools/kernel-part installs.
    (asked,) = re.findall(r"packages='([^']*)'", (ROOT / "tools" / "kernel-part").read_text(encoding="utf-8"))
    build = next(line for line in lines if "clang" in line)
    assert set(asked.split()) <= set(build.split())
    ignored = set((ROOT / ".containerignore").read_text(encoding="utf-8").split())
    assert {".git", "target", "out", "dist"} <= ignored


def test_the_page_of_the_package_has_absolute_links_and_pictures_alone() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    places = re.findall(r"\]\(([^)\s]+)", readme) + re.findall(r"^\[[^]]+\]: (\S+)", readme, re.MULTILINE)
    assert places
    assert not [place for place in places if not place.startswith("https://")]


@pytest.mark.parametrize(
    ("user", "choice", "asked"),
    [(0, "", True), (0, "as-is", False), (1000, "", False)],
    ids=["root", "as-is", "not root"],
)
def test_setup_installs_for_root_alone_and_not_where_it_was_told_not_to(
    tmp_path: Path, user: int, choice: str, asked: bool
) -> None:
    called = tmp_path / "called"
    for name, text in (("apt-get", f'echo "$*" >>{called}'), ("id", f"echo {user}"), ("uname", "echo Linux")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BPF_CLANG": "no-such-clang"}
    done = subprocess.run(
        [ROOT / "tools" / "kernel-part", "--install"],
        env=environment | {"WHYLOSS_KERNEL": choice},
        capture_output=True,
        text=True,
        check=True,
    )
    assert called.exists() == asked
    assert ("installing" in done.stderr) == asked
    # The stand-in installs nothing, so clang is still missing, and that is said.
    assert done.stderr.splitlines()[-1] == "setup: the kernel part will be left out; it needs: clang"
