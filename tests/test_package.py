import os
import subprocess
import sys
import tomllib
from pathlib import Path

import whyloss
from whyloss import _native

ROOT = Path(__file__).parent.parent


def test_package_and_workspace_have_one_version() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert whyloss.__version__ == workspace["workspace"]["package"]["version"]


def test_every_scheme_and_part_says_what_it_is_and_where_it_comes_from() -> None:
    rows = [*_native.schemes(), *_native.parts()]
    assert {"newreno", "sack"} <= {row["name"] for row in rows}
    assert all(row["summary"].endswith(".") and row["reference"] for row in rows)


def test_the_extension_module_is_as_its_types_say(tmp_path: Path) -> None:
    # A class with a key called `from` is written as a call, which cannot be marked as being for types only.
    (tmp_path / "allowed").write_text("whyloss._native.PlannedTransfer\nwhyloss._native.__all__\n")
    # The libraries that the package imports take minutes to be read, and are not what is compared here.
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = skip\n")
    stubtest = [sys.executable, "-m", "mypy.stubtest", "whyloss._native", "--ignore-disjoint-bases", "--concise"]
    told = subprocess.run(
        [*stubtest, "--allowlist", str(tmp_path / "allowed"), "--mypy-config-file", str(tmp_path / "mypy.ini")],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout
