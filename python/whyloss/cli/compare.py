"""``whyloss compare``.

What computes is imported by the command: scipy takes longer than many a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss.cli.console import INTERRUPTED, Command, Watch, as_json, rate, row, say, screen, table, tell_json
from whyloss.cli.options import Share, set_option, spare, store_option, threads_option, with_own_option
from whyloss.cli.paths import choose, complete_scheme, link_options, retyped, scheme_option

if TYPE_CHECKING:
    from whyloss.comparison import Comparison, Measured
    from whyloss.stats import Mean

__all__ = ["compare"]


@click.command(
    cls=Command,
    examples=[
        "whyloss compare --rate 10Mbps --delay 20ms --loss 1%     # is differentiation worth it on such a link?",
        "whyloss compare --rate 2Mbps --delay 50ms --damaged 2% --scheme cubic --scheme checksum-ld",
        "whyloss compare examples/random-loss.toml --scheme cubic --scheme bbr --scheme lda-eq --plot compare.svg",
        "whyloss compare --rate 10Mbps --loss 1% --scheme newreno,differentiator=zigzag,reaction=keep --scheme sack",
    ],
)
@click.argument("scenario", metavar="[SCENARIO.toml]", required=False, type=click.Path(path_type=Path))
@scheme_option("A scheme to compare; given several times.  [default: cubic, bbr, sack, lda-eq]")
@link_options
@click.option("--duration", metavar="TIME", help="Simulated time of a run.  [default: 60 s, or what the scenario says]")
@click.option("--seed", type=click.IntRange(min=0), help="Other numbers, other errors.  [default: 1]")
@click.option(
    "--beside",
    metavar="SCHEME",
    default="cubic",
    show_default=True,
    shell_complete=complete_scheme,
    help="Of a flow that shares the link in runs of their own, to measure harm.",
)
@click.option(
    "--precision",
    type=Share(),
    default="2%",
    show_default=True,
    help="Runs are added until the goodput of each scheme is known to ± this share of it.",
)
@click.option("--max-runs", type=click.IntRange(min=1), default=128, show_default=True, help="But no more than these.")
@set_option
@with_own_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for tables (Parquet) and figure.",
)
@click.option(
    "--plot", "picture", type=click.Path(path_type=Path, dir_okay=False), help="Figure: SVG, PNG or PDF file."
)
@store_option
@threads_option
@as_json
def compare(
    scenario: Path | None,
    schemes: tuple[str, ...],
    link: dict[str, Any],
    duration: str | None,
    seed: int | None,
    beside: str,
    precision: float,
    max_runs: int,
    sets: tuple[str, ...],
    own: tuple[Path, ...],
    out: Path | None,
    picture: Path | None,
    store: Path,
    threads: int | None,
    as_json: bool,
) -> int | None:
    """Compare schemes on a link: who wins, by how much, and whether that is certain.

    Of a scenario, or of the link that --rate, --delay and their like say; the first flow is of each scheme in turn, and
    all meet the same errors. Harm is the share of its goodput that a flow beside loses, compared with the same runs in
    which all are of its own kind. Intervals are of 95 %, corrected for looking at them after 8, 16, 32, … runs; what is
    called certain is corrected for the number of pairs, too.

    Finished runs are kept. Stop it with Ctrl-C: what is known is told, and the same command goes on where it was.
    """
    from whyloss import comparison

    if picture is not None and picture.suffix not in (".svg", ".png", ".pdf"):
        raise click.BadParameter(
            f"found {picture.name!r}; allowed: a name that ends in .svg, .png or .pdf", param_hint="--plot"
        )
    spare("--plot", picture, filter(None, (scenario, *own)))
    chosen = choose(scenario, link, {"duration": duration, "seed": seed}).with_arguments(list(sets))
    found: Comparison | None = None
    stopped = False
    with Watch("comparing") as watch:
        try:
            for found in comparison.looking(
                chosen,
                schemes or comparison.SCHEMES,
                beside=beside,
                precision=precision,
                max_runs=max_runs,
                store=store,
                threads=threads,
                progress=watch.follow,
            ):
                watch.what = f"comparing: {found.runs} runs of each are done"
        except KeyboardInterrupt:
            stopped = True
    if found is not None:
        _tell(found, out, picture, as_json=as_json)
        if not as_json:
            names = [one.scheme for one in found.measured]
            say(f"a run to look at: {retyped('plot', scenario, link, names, sets, own, duration=duration)}")
    if stopped:
        say(f"stopped: finished runs are kept in {store}; the same command goes on from there")
        return INTERRUPTED
    return None


def _tell(found: Comparison, out: Path | None, picture: Path | None, *, as_json: bool) -> None:
    if out is not None:
        found.save(out)
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        found.plot(picture)
    if as_json:
        places = {"out": None if out is None else str(out), "plot": None if picture is None else str(picture)}
        tell_json({**found.as_dict(), **places})
    else:
        _show(found)
    if found.shortfall:
        say(found.shortfall)
    if out is not None:
        say(f"tables and figure: {out}")
    if picture is not None:
        say(f"figure: {picture}")


def _show(found: Comparison) -> None:
    for sentence in (found.verdict, found.worth):
        if sentence:
            screen.print(f"{sentence}.", markup=False)
    listing = table(
        f"\n{found.world}; harm to {found.others}",
        *("scheme", ">goodput", ">queueing", ">timeouts", ">harm", ">misjudged"),
    )
    for one in found.measured:
        row(listing, one.scheme, *_cells(one, found.level))
    screen.print(listing)
    screen.print(found.basis, style="dim")


def _cells(one: Measured, level: float) -> list[str]:
    judged, goodput = one.judgements, one.goodput_bps
    percent = f"{_half(goodput, level, 100 / max(goodput.value, 1e-9))} %" if goodput.n > 1 else ""
    return [
        f"{rate(_round(goodput.value))}{percent}",
        f"{1e3 * one.queueing_s.value:.1f}{_half(one.queueing_s, level, 1e3)} ms",
        f"{one.timeouts.value:.1f}{_half(one.timeouts, level, 1.0)}",
        f"{100 * one.harm.value:.0f}{_half(one.harm, level, 100.0, 0)} %".replace("-", "−"),
        f"{100 * judged.wrong / judged.losses:.0f} % of {judged.losses}" if judged.losses else "no losses",
    ]


def _round(bps: float) -> float:
    return float(f"{bps:.3g}")


def _half(estimate: Mean, level: float, factor: float, digits: int = 1) -> str:
    low, high = estimate.interval(level)
    return f" ± {factor * (high - low) / 2:.{digits}f}" if estimate.n > 1 else ""
