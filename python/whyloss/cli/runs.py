"""``whyloss run``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from whyloss import files
from whyloss.cli.console import ALL, Command, Watch, as_json, rate, row, say, screen, stopping, table, tell_json
from whyloss.cli.options import (
    RUN_NUMBER,
    set_option,
    with_own_option,
)
from whyloss.cli.paths import choose, link_options, retyped, scheme_option, with_schemes

if TYPE_CHECKING:
    from whyloss.results import Results
    from whyloss.scenario import Scenario

__all__ = ["run"]

#: `traces.series.MOST_FLOWS`, without what draws: so many flows are drawn at a time.
DRAWN = 6


@click.command(
    cls=Command,
    examples=[
        "whyloss run examples/lossy-link.toml",
        "whyloss run --rate 10Mbps --delay 20ms --loss 1% --scheme lda-eq     # a link without a file",
        "whyloss run examples/lossy-link.toml --set 'flow[0].scheme=newreno' --set path.rate='384 kbps'",
        "whyloss run examples/pattern.toml --set path.forward.channel.pattern=my.bits",
        "whyloss run examples/random-loss.toml --live             # watch it in the terminal",
        "whyloss run examples/dumbbell.toml --out out/dumbbell    # all tables as Parquet",
        "whyloss run examples/random-loss.toml --with examples/own_part.py --set 'flow[0].congestion=scalable'",
        "whyloss describe path.queue                              # what a field means",
    ],
)
@click.argument("scenario", metavar="[SCENARIO.toml]", required=False, type=click.Path(path_type=Path))
@scheme_option("Scheme of the first flow.  [default: what the scenario says; of a link cubic]")
@link_options
@click.option("--duration", metavar="TIME", help="Simulated time.  [default: what the scenario says; of a link 60 s]")
@set_option
@with_own_option
@click.option(
    "--run",
    "number",
    type=RUN_NUMBER,
    default=0,
    show_default=True,
    help="Number of the run: other numbers, other random errors.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for all tables (Parquet) and packet captures.",
)
@click.option("--live", is_flag=True, help="Draw windows, round trips, queue and goodput while it is simulated.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, max=1e9),
    metavar="NUMBER",
    help="With --live: simulated seconds a second, 0 for as many as there can be.  [default: it takes ten seconds]",
)
@as_json
def run(
    scenario: Path | None,
    schemes: tuple[str, ...],
    link: dict[str, Any],
    duration: str | None,
    sets: tuple[str, ...],
    own: tuple[Path, ...],
    number: int,
    out: Path | None,
    live: bool,
    speed: float | None,
    as_json: bool,
) -> None:
    """Run a scenario once: who got what, what was lost and why.

    --rate, --delay and their like change the link of the scenario, or make one without a file. The same scenario and
    run number give the same results on any machine.
    """
    if len(schemes) > 1:
        raise click.BadParameter(
            f"found {len(schemes)}; allowed: one; `whyloss compare` takes several", param_hint="--scheme"
        )
    ((_, world),) = with_schemes(choose(scenario, link, {"duration": duration}), schemes)
    chosen = world.with_arguments(list(sets))
    if speed is not None and not live:
        raise click.BadParameter("goes with --live only", param_hint="--speed")
    if live and (as_json or not _can_draw()):
        why = "not with --json" if as_json else "in a terminal that knows UTF-8"
        raise click.BadParameter(f"draws; allowed: {why}", param_hint="--live")
    with stopping(lambda: _left(out)):
        results = _live(chosen, number, out, speed) if live else _run(chosen, number, out)
    if as_json:
        tell_json(
            {
                "scenario": chosen.name,
                "run": number,
                "transfers": results.transfers.to_polars().to_dicts(),
                "protocols": results.protocols.to_polars().to_dicts(),
                "losses": _losses(results).to_dicts(),
                "links": results.links.to_polars().to_dicts(),
                "middleboxes": results.middleboxes.to_polars().to_dicts(),
                "out": None if out is None else str(out),
            }
        )
    else:
        _show(results)
        chosen_flow = {"flow": "0"} if len(results.flows) > DRAWN else {}
        if out is not None and len(results.samples):
            seen = retyped("plot", out, {}, (), (), (), **chosen_flow)
        else:
            # Runs it again, with all that the figure needs.
            seen = retyped("plot", scenario, link, schemes, sets, own, duration=duration, run=number, **chosen_flow)
        say(f"to see windows and losses over time: {seen}")
        if str(scenario) != "-":
            others = retyped("compare", scenario, link, (), sets, own, duration=duration)
            say(f"to see what other schemes get there: {others}")
    if out is not None:
        say(f"tables: {out}")


def _run(chosen: Scenario, number: int, out: Path | None) -> Results:
    with Watch(f"running {chosen.name}") as watch:
        return (
            chosen.run(number, progress=watch.follow)
            if out is None
            else chosen.save(out, number, progress=watch.follow)
        )


def _left(out: Path | None) -> str:
    """What a run that was stopped leaves behind."""
    if out is not None and (out / "runs.parquet").is_file() and not (out / files.SUMS).exists():
        return f"the tables in {out} have what was simulated until then"
    return "a run that is not finished leaves nothing behind"


def _can_draw() -> bool:
    return screen.is_terminal and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _live(chosen: Scenario, number: int, out: Path | None, speed: float | None) -> Results:
    """Runs it while it is drawn."""
    from whyloss.cli.live import LiveView, pace_of, sampled

    watched = sampled(chosen)
    with LiveView(watched, screen) as view:
        asked: dict[str, Any] = {"progress": view.follow, "pace": pace_of(watched, speed)}
        results = watched.run(number, **asked) if out is None else watched.save(out, number, **asked)
        view.finish(results)
    return results


def _losses(results: Results) -> pl.DataFrame:
    """Losses by what happened, what the sender made of it, and what it did."""
    by = ["flow", "true_cause", "verdict", "judgement"]
    return results.losses.to_polars().group_by(by).len("losses").sort(by)


def _show(results: Results) -> None:
    counters = (
        results.flows.to_polars()
        .group_by("transfer")
        .agg(
            pl.col("losses", "retransmissions", "reductions", "timeouts").sum(),
            pl.col("closing").filter(pl.col("closing") != "normal").first(),
        )
    )
    listing = table("", "transfer", "scheme", ">goodput", ">took", ">losses", ">resent", ">reduced", ">timeouts")
    transfers = results.transfers.to_polars().join(counters, on="transfer", how="left", maintain_order="left")
    for line in transfers.to_dicts():
        row(
            listing,
            line["transfer"],
            line["scheme"],
            rate(line["goodput_bps"]),
            _took(line),
            *(line[name] for name in ("losses", "retransmissions", "reductions", "timeouts")),
        )
    screen.print(listing.shortened(ALL))
    protocols = results.protocols.to_polars()
    if 1 < len(protocols) < len(transfers):
        listing = table("\nWhat each scheme got", "scheme", ">transfers", ">goodput", ">mean", ">fairness")
        for line in protocols.to_dicts():
            goodputs = (rate(line[f"{name}_goodput_bps"]) for name in ("protocol", "mean"))
            fairness = "" if line["fairness"] is None else f"{line['fairness']:.3f}"
            row(listing, line["scheme"], line["transfers"], *goodputs, fairness)
        screen.print(listing.shortened(ALL))
    losses = _losses(results)
    if len(losses):
        headings = ("flow", "true cause", "verdict", "window", ">losses")
        listing = table("\nWhat was lost, and what the sender made of it", *headings)
        for cells in losses.iter_rows():
            row(listing, *cells)
        screen.print(listing.shortened(ALL))
        if "covered" in losses["judgement"]:
            screen.print("covered: the window had been reduced for an earlier loss of the episode", markup=False)
    if len(boxes := results.middleboxes.to_polars()):
        counted = (">seen", ">stopped", ">sent", ">flows", ">memory")
        listing = table("\nWhat routers did", "router", "link", "kind", *counted)
        for line in boxes.to_dicts():
            counts = (line[f"segments_{name}"] for name in ("seen", "suppressed", "sent"))
            memory = f"{line['peak_octets']} B"
            row(listing, line["router"], line["link"], line["kind"], *counts, line["peak_flows"], memory)
        screen.print(listing.shortened(ALL))


#: How a connection ended before its data had arrived.
_ENDS = {"timed-out": "gave up", "reset": "was reset", "refused": "was refused", "aborted": "was aborted"}


def _took(transfer: dict[str, Any]) -> str:
    if transfer["finished_ns"] is None:
        return _ENDS.get(transfer["closing"], "unfinished" if transfer["octets"] else "open-ended")
    return f"{(transfer['finished_ns'] - transfer['start_ns']) / 1e9:.3f} s"
