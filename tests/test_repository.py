"""Files that stand in the repository for its hosts and its citers."""

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_names_the_version_that_is_built() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert read("CITATION.cff")["version"] == version


def test_the_forge_runs_what_a_developer_runs() -> None:
    jobs = read(".github/workflows/ci.yml")["jobs"]
    commands = " ".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    assert "bash .ci/run" in commands
    assert "make fuzz" in commands
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line}
    words = commands.split()
    assert {after for word, after in pairwise(words) if word == "make"} <= targets


@pytest.mark.parametrize("hook", read(".pre-commit-config.yaml")["repos"][0]["hooks"], ids=lambda hook: hook["id"])
def test_hooks_run_programs_of_the_environment(hook: dict[str, Any]) -> None:
    program = next(word for word in hook["entry"].split() if word != "env" and "=" not in word)
    locked = (ROOT / "requirements.lock").read_text()
    assert program == "cargo" or f"\n{Path(program).name}==" in locked
