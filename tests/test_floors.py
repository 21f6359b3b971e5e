"""The imports of the package go down its floors, as docs/architecture.md draws them."""

import ast
import re
from collections.abc import Container, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "whyloss"

Imports = dict[str, set[str]]


def floors() -> list[list[str]]:
    """The names on each floor, lowest first; what follows two blanks more is said about them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"^The Python package has floors.*?^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert block is not None
    return [re.split(r" {2}(?! )", re.split(r" {3,}", line)[0]) for line in block[1].splitlines()]


def modules(package: Path) -> dict[str, Path]:
    """Every module of the package by its full name, with the extension module."""
    found = {f"{package.name}._native": package / "_native.pyi"}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if "_papers" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known: dict[str, Path]) -> Imports:
    """What each module imports of ours, wherever in it and whatever for."""
    return {
        name: set(_imported(ast.parse(path.read_text(encoding="utf-8")), known) if path.suffix == ".py" else ())
        - {name}
        for name, path in known.items()
    }


def _imported(tree: ast.Module, known: Container[str]) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module in known:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


def circle(graph: Imports) -> list[str]:
    """Some modules that import each other in a circle; empty if none do."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name not in done:
            for other in sorted(graph.get(name, ())):
                if found := walk(other, [*way, name]):
                    return found
            done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := walk(name, []))), [])


def unit(module: str) -> str:
    """The module or package right below the root."""
    return module.split(".")[1]


def test_every_module_has_a_floor() -> None:
    named = [name for floor in floors() for name in floor]
    assert len(named) == len(set(named))
    assert set(named) == {unit(module) for module in modules(PACKAGE) if "." in module}


def test_imports_go_down() -> None:
    level = {name: number for number, floor in enumerate(floors()) for name in floor}
    graph = imports(modules(PACKAGE))
    assert unit("whyloss.papers") in level
    assert "whyloss.sweep" in graph["whyloss.measuring"], "the walk finds no imports for types"
    # The root only gathers what users import from it, and cli alone asks it for its version.
    assert {module for module, found in graph.items() if "whyloss" in found} <= {"whyloss.cli.app"}
    for module, found in graph.items():
        for other in found - {"whyloss"} if module != "whyloss" else ():
            below = level[unit(other)] < level[unit(module)] or unit(other) == unit(module)
            assert below, f"{module} imports {other}, which does not lie below it"


def test_no_modules_import_each_other() -> None:
    assert circle(imports(modules(PACKAGE))) == []


@pytest.mark.parametrize(
    "text", ["from shop import till", "import shop.till", "if TYPE_CHECKING:\n    from shop.till import x"]
)
def test_a_circle_would_be_found(tmp_path: Path, text: str) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "till.py").write_text("def total():\n    from shop.goods import price\n    return price\n")
    (package / "goods.py").write_text(text + "\n")
    assert circle(imports(modules(package))) == ["shop.goods", "shop.till", "shop.goods"]
