"""What ``--plan`` prints: what a sweep or the experiments of a paper will cost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from whyloss.cli.console import row, say, screen, table, tell_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from whyloss.planning import Forecast

__all__ = ["cores_option", "plan_option", "show"]


def plan_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--plan``."""
    text = "Run only a sample, and say how long everything takes and how large it gets."
    return click.option("--plan", is_flag=True, help=text)(command)


def cores_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--cores``."""
    text = "With --plan: on so many cores.  [default: those of this machine]"
    return click.option("--cores", type=click.IntRange(min=1), callback=_with_plan, help=text)(command)


def _with_plan(context: click.Context, _parameter: click.Parameter, cores: int | None) -> int | None:
    if cores is not None and not context.params.get("plan"):
        raise click.BadParameter("goes with --plan only", param_hint="--cores")
    return cores


def show(what: dict[str, str], found: Forecast, cores: int | None, as_json: bool) -> None:
    """Says what ``what``, a sweep or a paper, will cost on so many cores, or on those of this machine."""
    cores = cores or os.cpu_count() or 1
    told = {
        **what,
        "runs": found.runs,
        "in_store": found.runs - found.missing,
        "points": found.points,
        "sample": found.tried,
        "core_s": found.core_s,
        "core_s_low": found.low_s,
        "core_s_high": found.high_s,
        "cores": cores,
        "wall_s": found.wall_s(cores),
        "store_octets": found.store_octets,
    }
    if as_json:
        tell_json(told)
        return
    listing = table("", "what", ">expected")
    row(listing, "runs", f"{found.runs:,} at {found.points:,} points")
    row(listing, "in the store already", f"{told['in_store']:,}")
    row(listing, "time of one core", f"{found.core_s:.3g} s ({found.low_s:.3g} … {found.high_s:.3g} s)")
    row(listing, f"time on {cores:,} cores", f"{found.wall_s(cores):.3g} s")
    row(listing, "what the store grows by", f"{found.store_octets / 1e6:.3g} MB")
    screen.print(listing)
    say(f"from {found.tried} runs; the interval is of 95 %, as runs and points differ")
