"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from whyloss import parts

__all__ = ["set_option", "store_option", "threads_option", "with_option"]

set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Another value for a field, such as path.rate='1 Mbps' or flow[0].scheme=cubic; can be given several times.",
)

store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/store"),
    show_default=True,
    envvar="WHYLOSS_STORE",
    show_envvar=True,
    help="Where finished runs are kept. What is there is not computed again.",
)

threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Runs at a time. [default: one for each core]"
)


def _add(_context: click.Context, _option: click.Parameter, files: tuple[Path, ...]) -> None:
    for file in files:
        parts.add_file(file)


with_option = click.option(
    "--with",
    multiple=True,
    metavar="FILE.py",
    type=click.Path(path_type=Path),
    callback=_add,
    expose_value=False,
    help="A Python file with parts of your own, which scenarios can then name; can be given several times.",
)
