"""``whyloss init`` and ``whyloss examples``: something to begin with, where nothing but the package is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from whyloss import _native, files
from whyloss.cli.console import Command, as_json, row, say, screen, table, tell_json

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["examples", "init"]

#: Where the examples lie: in a wheel a folder, in the repository a link to one.
EXAMPLES = Path(__file__).parent.parent / "_examples"
KINDS = (".toml", ".py")
SCHEMAS = {"scenario": "scenario.schema.json", "sweep": "sweep.schema.json"}

SCENARIO = """\
#:schema ./{schema}
# A scenario: a network, what is sent over it, and what is written down.
# Run it:              whyloss run {file}
# See it:              whyloss plot {file}
# What a field means:  whyloss describe path.queue
# What there is:       whyloss schemes

[scenario]
description = "A download over a link that loses one packet in a hundred"
duration = "30 s"             # simulated time
seed = 1                      # other numbers, other random errors

[path]                        # host `server` sends to host `client`; or [dumbbell], [chain], [[host]]
rate = "10 Mbps"
delay = "20 ms"               # in each direction
queue = "50 pkt"              # what waits in front of it; full, it drops: congestion
forward.channel.loss = "1 %"  # lost by chance; or `ber`, `burst`, `pattern`: see `whyloss describe channel`

[[flow]]                      # one connection; more of them share the path
scheme = "cubic"              # how it takes a loss; try "lda-eq" or "checksum-ld"
# size = "10 MB"              # it ends when so much has arrived; without a size it sends until the run ends
# shadows = ["veno", "spike"] # differentiators that judge the same losses and change nothing: `whyloss score`

[output]
sample = "50 ms"              # time series of windows and queues, for plots
"""


@click.command(
    cls=Command,
    examples=[
        "whyloss init              # scenario.toml",
        "whyloss init my-link      # my-link.toml",
    ],
)
@click.argument("name", default="scenario", metavar="[NAME]")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def init(name: str, force: bool) -> None:
    """Begin a scenario: write a small one with comments, and the schema that editors complete its fields by.

    Editors that know TOML (VS Code with Even Better TOML, Neovim and Helix with taplo) follow its first line.
    """
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if path.name == ".toml":
        raise click.BadParameter(f"found {name!r}; allowed: a name for the file", param_hint="NAME")
    text = SCENARIO.format(schema=SCHEMAS["scenario"], file=path)
    _write({path: text, path.parent / SCHEMAS["scenario"]: _schema("scenario")}, force=force)
    click.echo(path)
    say(f"now: whyloss run {path}")


@click.command(
    cls=Command,
    examples=[
        "whyloss examples                           # what there is",
        "whyloss examples random-loss               # copies it to this folder",
        "whyloss examples error-rates --to try      # with the files that it names",
    ],
)
@click.argument("name", required=False, shell_complete=lambda _context, _parameter, begun: _complete(begun))
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Copy it to this folder.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@as_json
def examples(name: str | None, to: Path, force: bool, as_json: bool) -> None:
    """List the examples that the package brings, or copy one to begin with.

    What it names is copied, too: the scenario of a sweep, bit-error patterns, delivery traces; and the schema that
    editors complete its fields by.
    """
    there = {path.stem.removesuffix(".pcapng").removesuffix(".pcap"): path for path in _brought()}
    if name is None:
        listed = {found: _about(path) for found, path in there.items()}
        if as_json:
            tell_json([{"name": found, "file": there[found].name, "about": about} for found, about in listed.items()])
            return
        listing = table("", "name", "kind", "what it shows")
        for found, about in listed.items():
            row(listing, found, _kind(there[found]), about)
        screen.print(listing)
        return
    stem = name.removesuffix(".toml").removesuffix(".py")
    if stem not in there:
        raise click.BadParameter(f"there is no example {name!r}; there are {', '.join(there)}", param_hint="NAME")
    content = _with_its_files(there[stem], to)
    written = _write(content, force=force)
    if as_json:
        tell_json([str(path) for path in written])
    else:
        for path in written:
            click.echo(path)


def _brought() -> Iterator[Path]:
    captures = EXAMPLES / "captures"
    for folder in (EXAMPLES, captures):
        yield from sorted(
            path for path in folder.glob("*") if path.suffix in KINDS and (folder == EXAMPLES or path.suffix == ".zst")
        )


def _complete(begun: str) -> list[CompletionItem]:
    return [CompletionItem(path.stem) for path in _brought() if path.name.startswith(begun)]


def _kind(path: Path) -> str:
    if path.suffix != ".toml":
        return {".py": "Python"}.get(path.suffix, "capture")
    return "sweep" if "[sweep]" in path.read_text(encoding="utf-8") else "scenario"


def _about(path: Path) -> str:
    """The first sentence that the file says of itself."""
    if path.suffix == ".zst":
        return f"A capture to explain: {path.stem.partition('.')[0].replace('-', ' ')}."
    text = path.read_text(encoding="utf-8").removeprefix('"""')
    first = re.split(r"\n\s*\n|\n#\s*\n|\n#? ?Try:", text)[0]
    return re.split(r"(?<=[.?]) ", " ".join(re.sub(r"^# ?", "", line) for line in first.splitlines()))[0].strip()


def _with_its_files(path: Path, to: Path) -> dict[Path, str | bytes]:
    if path.suffix == ".zst":
        return {to / path.name: path.read_bytes()}
    text = path.read_text(encoding="utf-8")
    content: dict[Path, str | bytes] = {}
    if path.suffix == ".toml":
        schema = SCHEMAS[_kind(path)]
        content[to / path.name] = f"#:schema ./{schema}\n{text}"
        content[to / schema] = _schema(_kind(path))
    else:
        content[to / path.name] = text
    for named in re.findall(r'=\s*"([\w-]+\.(?:toml|bits|trace))"', text):
        if (EXAMPLES / named).is_file():
            content = {**_with_its_files(EXAMPLES / named, to), **content}
    return content


def _schema(kind: str) -> str:
    schema = _native.scenario_schema() if kind == "scenario" else _native.sweep_schema()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _write(content: dict[Path, str | bytes], *, force: bool) -> list[Path]:
    """Writes files, none of them over another one's content; schemas are ours to write again."""
    for path, wanted in content.items():
        octets = wanted.encode() if isinstance(wanted, str) else wanted
        if not force and path.name not in SCHEMAS.values() and path.exists() and path.read_bytes() != octets:
            raise click.UsageError(f"{path} is there already; --force writes over it")
    for path, wanted in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.aside(path) as part:
            part.write_bytes(wanted.encode() if isinstance(wanted, str) else wanted)
    return list(content)
