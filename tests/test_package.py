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
