"""``whyloss completion`` and ``whyloss cache``: what a shell and a disk keep for the command."""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from whyloss.cli.console import Command, as_json, row, say, screen, table, tell_json
from whyloss.cli.options import store_option

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["cache", "completion"]

#: How shells take the script at their start.
HOW = {
    "bash": 'eval "$(whyloss completion bash)"     # in ~/.bashrc',
    "zsh": 'eval "$(whyloss completion zsh)"      # in ~/.zshrc, after compinit',
    "fish": "whyloss completion fish | source      # in ~/.config/fish/config.fish",
}


@click.command(cls=Command, examples=list(HOW.values()))
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands, options, schemes, papers, fields of scenarios and files."""
    made = get_completion_class(shell)
    if made is None:
        raise click.BadParameter(f"found {shell!r}; allowed: {', '.join(HOW)}", param_hint="SHELL")
    click.echo(made(context.find_root().command, {}, "whyloss", "_WHYLOSS_COMPLETE").source())


#: The names that the store gives to its files.
_PART = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}\.part")
_DAY_S = 86_400


@click.command(
    cls=Command,
    examples=[
        "whyloss cache                               # how much is stored, and where",
        "whyloss cache --clean --older-than 30       # what was not written in the last 30 days",
        "whyloss cache --clean",
    ],
)
@click.option("--clean", is_flag=True, help="Remove it. Runs are computed again when they are wanted again.")
@click.option("--older-than", "days", type=click.IntRange(min=0), metavar="DAYS", help="Only what is older than this.")
@store_option
@as_json
def cache(clean: bool, days: int | None, store: Path, as_json: bool) -> None:
    """Show the finished runs that are kept, or remove them.

    Sweeps, reproductions and comparisons keep each finished run, and find it again.
    """
    if days is not None and not clean:
        raise click.UsageError("--older-than goes with --clean")
    parts = [path for path in store.glob("[0-9a-f][0-9a-f]/*.part") if _PART.fullmatch(path.name)]
    kept = [(path, path.stat()) for path in parts]
    told: dict[str, Any] = {"store": str(store), "points": len({path.name[:32] for path, _ in kept})}
    told |= {"files": len(kept), "octets": sum(stat.st_size for _, stat in kept)}
    if clean:
        limit = time.time() - (days or 0) * _DAY_S
        gone = [(path, stat) for path, stat in kept if days is None or stat.st_mtime < limit]
        for path, _ in gone:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path, _ in gone}:
            if not any(folder.iterdir()):
                shutil.rmtree(folder, ignore_errors=True)
        told["removed"] = {"files": len(gone), "octets": sum(stat.st_size for _, stat in gone)}
    if as_json:
        tell_json(told)
        return
    listing = table("", "folder", ">points", ">files", ">size")
    row(listing, store, told["points"], told["files"], f"{told['octets'] / 1e6:.1f} MB")
    screen.print(listing)
    if clean:
        say(f"removed {told['removed']['files']} files, {told['removed']['octets'] / 1e6:.1f} MB")
