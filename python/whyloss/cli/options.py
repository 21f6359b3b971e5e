"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["set_option", "store_option", "threads_option"]

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
