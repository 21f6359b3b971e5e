"""``whyloss friendly``: what two schemes do to each other.

What computes is imported by the command: scipy takes longer than many a run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from whyloss.cli.console import Command, Watch, as_json, rate, row, say, screen, stopping, table, tell_json
from whyloss.cli.options import load_scenario, set_option, store_option, threads_option, with_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from whyloss.friendliness import Effect, Friendliness
    from whyloss.scenario import Scenario
    from whyloss.stats import Estimate

__all__ = ["friendly"]

F = TypeVar("F", bound="Callable[..., Any] | click.Command")


def _complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from whyloss import friendliness

    return [CompletionItem(name) for name in friendliness.names() if name.startswith(begun)]


def _world(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(f"--{name}", metavar=metavar, help=text)


@click.command(
    cls=Command,
    examples=[
        "whyloss friendly tcp-real reno",
        "whyloss friendly cubic newreno --rate '50 Mbps' --delay '40 ms' --flows 8",
        "whyloss friendly tfrc newreno --loss '1 %' --json",
        "whyloss friendly checksum-ld newreno --scenario examples/lossy-link.toml",
        "whyloss friendly newreno,differentiator=oracle,reaction=keep newreno --loss '2 %'",
        "whyloss friendly scalable cubic --with examples/own_part.py",
    ],
)
@click.argument("first", metavar="A", shell_complete=_complete)
@click.argument("second", metavar="B", shell_complete=_complete)
@_world("rate", "RATE", "Bit rate of the bottleneck.  [default: 10 Mbps]")
@_world("delay", "TIME", "Its delay in each direction.  [default: 20 ms]")
@_world("queue", "LENGTH", "What waits in front of it, such as '50 pkt'.  [default: one bandwidth-delay product]")
@_world("loss", "SHARE", "Share of packets lost on the way to the receivers.  [default: 0 %]")
@_world("duration", "TIME", "Simulated time.  [default: 100 s]")
@_world("profile", "NAME", "Which TCP it is before the scheme.  [default: modern]")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Other numbers, other random numbers.  [default: 1]")
@click.option(
    "--scenario",
    metavar="FILE.toml",
    type=click.Path(path_type=Path),
    help="The world, instead of a dumbbell: cross traffic stays, its first other flow is the pattern.",
)
@click.option("--flows", type=int, default=4, show_default=True, help="How many flows share the path: an even number.")
@click.option("--runs", type=click.IntRange(min=1), default=30, show_default=True, help="Runs of each mix.")
@click.option(
    "--warm-up",
    type=float,
    default=0.2,
    show_default=True,
    metavar="SHARE",
    help="Share of the duration at its beginning that does not count.",
)
@set_option
@with_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for tables (Parquet) and figure. [default: out/friendly-A-B]",
)
@store_option
@threads_option
@as_json
def friendly(
    first: str,
    second: str,
    scenario: Path | None,
    seed: int | None,
    flows: int,
    runs: int,
    warm_up: float,
    sets: tuple[str, ...],
    out: Path | None,
    store: Path,
    threads: int | None,
    as_json: bool,
    **world: str | None,
) -> None:
    """Tell what flows of scheme A do to flows of scheme B that share their path, and the other way round.

    They share it half and half, and one against all others. Harm is the share of its goodput that a flow loses
    compared with the same runs in which the others are of its own kind; gain is what a flow has more than one of the
    other kind in its place. Intervals are of 95 %, from paired runs with the same random numbers.

    A and B are schemes, transports of datagrams or congestion controls, as `whyloss schemes` lists them; fields of a
    [[flow]] may follow, with commas between them.

    Finished runs are kept. Stop it with Ctrl-C, and the same command goes on where it was.
    """
    from whyloss import friendliness

    given = {name: value for name, value in {**world, "seed": seed}.items() if value is not None}
    chosen = _scenario(scenario, given).with_arguments(list(sets))
    folder = out or Path("out") / "-".join(["friendly", *(_file_name(kind) for kind in (first, second))])
    watch = Watch(f"{first} and {second}")

    def kept() -> str:
        return f"{watch.done} of {watch.total} runs are kept in {store}; the same command goes on from there"

    with stopping(kept), watch:
        found = friendliness.friendly(
            first,
            second,
            world=chosen,
            flows=flows,
            runs=runs,
            warm_up=warm_up,
            store=store,
            threads=threads,
            progress=watch.follow,
        )
    found.save(folder)
    if as_json:
        tell_json({**found.as_dict(), "out": str(folder)})
    else:
        _show(found)
    say(f"tables and figure: {folder}")


def _scenario(file: Path | None, given: dict[str, Any]) -> Scenario:
    from whyloss import friendliness

    if file is None:
        return friendliness.dumbbell(**given)
    fields = {"duration": "scenario.duration", "seed": "scenario.seed"}
    for name in given.keys() - fields.keys():
        field = "flow[0].profile" if name == "profile" else f"path.{name}"
        raise click.BadParameter(
            f"is of the dumbbell that there is without --scenario; say it as --set {field}=…", param_hint=f"--{name}"
        )
    return load_scenario(file).replace({fields[name]: value for name, value in given.items()})


def _file_name(kind: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", kind).strip("-")


def _show(found: Friendliness) -> None:
    for sentence in found.verdicts:
        screen.print(f"{sentence}.", markup=False)
    listing = table(f"\n{found.world}; {_runs(found.runs)}", "", ">share", ">fair", ">goodput a flow", ">gain", ">harm")
    for effect in found.effects:
        row(listing, *_cells(effect))
    screen.print(listing)


def _runs(number: int) -> str:
    return "one run" if number == 1 else f"{number} runs a mix"


def _cells(effect: Effect) -> list[str]:
    return [
        f"{effect.flows} {effect.scheme} beside {effect.others} {effect.other}",
        _percent(effect.share),
        f"{100 * effect.fair:.0f} %",
        rate(effect.goodput_bps.value),
        _percent(effect.gain),
        _percent(effect.harm),
    ]


def _percent(estimate: Estimate) -> str:
    low, high = estimate.interval()
    spread = f" ± {50 * (high - low):.1f}" if estimate.n > 1 else ""
    return f"{100 * estimate.value:.1f}{spread} %".replace("-", "−")
