"""What mkdocs is told beyond docs/: pages that lie elsewhere, links that leave docs/, reference made of the code.

A page of docs/ links to files as they lie in the repository, so that its links work on the forge, too. On the site such
a link leads to the page made of that file, or to the file on the forge. In a page ``<!-- filled by the site: NAME -->``
stands for what NAME makes of the code; nothing of it is kept in the repository.
"""

from __future__ import annotations

import json
import logging
import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import click
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LOG = logging.getLogger("mkdocs.plugins.site")
#: Pages of the site that lie outside of docs/ in the repository.
ELSEWHERE = {
    **{f"papers/{errata.parent.name}.md": errata for errata in sorted(ROOT.glob("papers/*/errata.md"))},
    "contributing.md": ROOT / "CONTRIBUTING.md",
    "changelog.md": ROOT / "CHANGELOG.md",
}
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
FILLED = re.compile(r"<!-- filled by the site: ([a-z-]+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that lie elsewhere."""
    for place, source in ELSEWHERE.items():
        files.append(File.generated(config, place, content=source.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Fills in what comes from the code, and leads links to where they lead on the site."""
    place = page.file.src_uri
    source = ELSEWHERE.get(place, ROOT / "docs" / place)
    filled = FILLED.sub(lambda mark: GENERATORS[mark[1]](), markdown)
    parts = FENCE.split(filled)
    for index in range(0, len(parts), 2):
        parts[index] = LINK.sub(
            lambda link: link[1] + led(link[2], source, place, str(config.repo_url)) + link[3], parts[index]
        )
    return "".join(parts)


def led(target: str, source: Path, place: str, forge: str) -> str:
    """Where a link of the file ``source``, which is the page ``place``, leads on the site."""
    if re.match(r"[a-z]+:", target):
        return target
    found = Path(os.path.normpath(source.parent / target))
    within = {kept: page for page, kept in ELSEWHERE.items()}
    if found in within:
        return os.path.relpath(within[found], Path(place).parent)
    docs = ROOT / "docs"
    if found.is_relative_to(docs) and found.is_file():
        return os.path.relpath(found.relative_to(docs), Path(place).parent)
    if found.is_relative_to(docs) and (found / "README.md").is_file():
        return os.path.relpath((found / "README.md").relative_to(docs), Path(place).parent)
    if not found.exists():
        LOG.warning("%s: the link to %s leads nowhere", source.relative_to(ROOT), target)
        return target
    return f"{forge}/{'tree' if found.is_dir() else 'blob'}/main/{found.relative_to(ROOT)}"


def commands() -> str:
    """Every command of the command line, as it explains itself."""
    import click

    from whyloss.cli.app import app

    parts = []
    for context in walk(app, click.Context(app, info_name="whyloss", terminal_width=100)):
        depth = len(context.command_path.split())
        text = context.command.get_help(context).rstrip()
        parts.append(f"{'#' * min(depth + 1, 4)} `{context.command_path}`\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def walk(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """A command and those below it, by name."""
    import click

    yield context
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                child = click.Context(below, info_name=name, parent=context, terminal_width=100)
                yield from walk(below, child)


def fields(schema: str) -> str:
    """The fields of a file, by its JSON schema."""
    root = json.loads((ROOT / "docs" / schema).read_text(encoding="utf-8"))
    defined: dict[str, Any] = root["$defs"]
    sections = [*_rows(root, defined)]
    for name, entry in sorted(defined.items()):
        sections += ["", f"## {name}", "", _words(entry), ""]
        if "properties" in entry:
            sections += _rows(entry, defined)
        elif "oneOf" in entry or "anyOf" in entry:
            sections += _alternatives(entry, defined)
    return "\n".join(sections) + "\n"


def _words(entry: dict[str, Any]) -> str:
    return " ".join(str(entry.get("description", "")).split()).replace("|", "\\|")


def _rows(entry: dict[str, Any], defined: dict[str, Any]) -> list[str]:
    lines = ["| field | takes | default | meaning |", "|---|---|---|---|"]
    required = entry.get("required", [])
    for name, field in sorted(entry["properties"].items()):
        default = "**needed**" if name in required else _default(field)
        lines.append(f"| `{name}` | {_kind(field, defined)} | {default} | {_words(field)} |")
    return lines


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "" if default in (None, [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"


def _kind(field: dict[str, Any], defined: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})" if name in defined else name
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(word)}`" for word in field["enum"])
    several = field.get("anyOf") or field.get("oneOf") or field.get("allOf")
    if several:
        return " or ".join(_kind(one, defined) for one in several if one.get("type") != "null")
    if field.get("type") == "array":
        items = field.get("items")
        return "list of " + (_kind(items, defined) if isinstance(items, dict) else "values")
    if field.get("type") == "object" and "properties" in field:
        return ", ".join(f"`{name}`: {_kind(one, defined)}" for name, one in field["properties"].items())
    if isinstance(field.get("additionalProperties"), dict):
        return "table of " + _kind(field["additionalProperties"], defined)
    kind = field.get("type", "value")
    return " or ".join(word for word in kind if word != "null") if isinstance(kind, list) else str(kind)


def _alternatives(entry: dict[str, Any], defined: dict[str, Any]) -> list[str]:
    several = entry.get("oneOf") or entry["anyOf"]
    return ["| one of | meaning |", "|---|---|", *(f"| {_kind(one, defined)} | {_words(one)} |" for one in several)]


GENERATORS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "scenario": lambda: fields("scenario.schema.json"),
    "sweep": lambda: fields("sweep.schema.json"),
}
