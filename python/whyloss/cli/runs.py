"""``whyloss run``, ``whyloss sweep`` and ``whyloss verify``."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from whyloss.cli.console import Command, Watch, as_json, rate, row, say, screen, stopping, table, tell_json
from whyloss.cli.options import (
    RUN_NUMBER,
    cluster,
    load_sweep,
    on_option,
    set_option,
    store_option,
    threads_option,
    with_option,
)
from whyloss.cli.paths import choose, link_options, retyped, scheme_option, with_schemes

if TYPE_CHECKING:
    from whyloss.results import Results
    from whyloss.scenario import Scenario
    from whyloss.sweep import Sweep

__all__ = ["run", "sweep", "verify"]

#: How to see all rows of a table that is shortened.
ALL = "--json and --out have all"


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
@with_option
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
    before = _captures(out)
    with stopping(lambda: "a run that is not finished leaves nothing behind"):
        results = _live(chosen, number, out, speed) if live else _run(chosen, number, out)
    if out is not None:
        results.save(out, {name for name, made in _captures(out).items() if before.get(name) != made})
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
        seen = (
            retyped("plot", scenario, link, schemes, sets, duration=duration, run=number)
            if out is None
            else f"whyloss plot {shlex.quote(str(out))}"
        )
        say(f"to see windows and losses over time: {seen}")
        if str(scenario) != "-":
            others = retyped("compare", scenario, link, (), sets, duration=duration)
            say(f"to see what other schemes get there: {others}")
    if out is not None:
        say(f"tables: {out}")


def _run(chosen: Scenario, number: int, out: Path | None) -> Results:
    with Watch(f"running {chosen.name}") as watch:
        return chosen.run(number, captures=out, progress=watch.follow)


def _can_draw() -> bool:
    return screen.is_terminal and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _live(chosen: Scenario, number: int, out: Path | None, speed: float | None) -> Results:
    """Runs it while it is drawn."""
    from whyloss.cli.live import LiveView, pace_of, sampled

    watched = sampled(chosen)
    with LiveView(watched, screen) as view:
        results = watched.run(number, captures=out, progress=view.follow, pace=pace_of(watched, speed))
        view.finish(results)
    return results


def _captures(folder: Path | None) -> dict[str, tuple[int, int]]:
    """The captures that lie in ``folder``, and what tells each from one that takes its place."""
    found = [] if folder is None else [(path.name, path.stat()) for path in folder.glob("*.pcapng")]
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found}


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


@click.command(
    cls=Command,
    examples=[
        "whyloss sweep examples/error-rates.toml",
        "whyloss sweep examples/error-rates.toml --set path.rate='384 kbps' --out out/slow",
        "whyloss sweep examples/error-rates.toml --json | jq '.points[0]'",
        "whyloss sweep examples/error-rates.toml --plan --cores 1000    # how long it takes, how large it gets",
        "whyloss sweep examples/error-rates.toml --on dask://HOST:8786    # on the workers of a Dask cluster",
    ],
)
@click.argument("file", metavar="SWEEP.toml", type=click.Path(path_type=Path))
@set_option
@with_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the tables (Parquet). [default: out/NAME]",
)
@store_option
@threads_option
@on_option
@click.option(
    "--plan", is_flag=True, help="Run only a sample, and say how long everything takes and how large it gets."
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    help="With --plan: on so many cores.  [default: those of this machine]",
)
@as_json
def sweep(
    file: Path,
    sets: tuple[str, ...],
    out: Path | None,
    store: Path,
    threads: int | None,
    on: str | None,
    plan: bool,
    cores: int | None,
    as_json: bool,
) -> None:
    """Run a scenario at every point of a sweep, on all cores, or with --on on the machines of a cluster.

    Finished runs are kept. Stop it with Ctrl-C, and the same command goes on where it was; change the sweep, and only
    what is new is computed.
    """
    chosen = load_sweep(file).with_arguments(list(sets))
    if cores is not None and not plan:
        raise click.BadParameter("goes with --plan only", param_hint="--cores")
    if plan:
        _plan(chosen, store, cores or os.cpu_count() or 1, as_json)
        return
    folder = out or Path("out") / chosen.name
    watch = Watch(f"sweeping {chosen.name}")

    def kept() -> str:
        return f"{watch.done} of {watch.total} runs are kept in {store}; the same command goes on from there"

    with stopping(kept), cluster(on) as client, watch:
        results = chosen.run(client, store=store, threads=threads, progress=watch.follow, note=say)
    results.save(folder)
    points = _points(chosen, results)
    if as_json:
        tell_json({"sweep": chosen.name, "runs": len(results.runs), "points": points, "out": str(folder)})
    else:
        listing = table("", *chosen.axes, "transfer", ">runs", ">goodput", ">95 % interval")
        for point in points:
            interval = f"{rate(point['low'])} … {rate(point['high'])}" if point["n"] > 1 else "one run"
            axes = (point[axis] for axis in chosen.axes)
            row(listing, *axes, point["transfer"], point["n"], rate(point["goodput_bps"]), interval)
        screen.print(listing.shortened(ALL))
    say(f"tables: {folder}")


def _plan(chosen: Sweep, store: Path, cores: int, as_json: bool) -> None:
    """Says what the sweep will cost."""
    from whyloss.planning import forecast

    with stopping(lambda: "nothing is kept of the sample"):
        found = forecast(chosen.native, store)
    told = {
        "sweep": chosen.name,
        "runs": found.runs,
        "in_store": found.runs - found.missing,
        "points": len(chosen.native.points()),
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
    row(listing, "runs", f"{found.runs:,} at {told['points']:,} points")
    row(listing, "in the store already", f"{told['in_store']:,}")
    row(listing, "time of one core", f"{found.core_s:.3g} s ({found.low_s:.3g} … {found.high_s:.3g} s)")
    row(listing, f"time on {cores:,} cores", f"{found.wall_s(cores):.3g} s")
    row(listing, "what the store grows by", f"{found.store_octets / 1e6:.3g} MB")
    screen.print(listing)
    say(f"from {found.tried} runs; the interval is of 95 %, as points differ")


def _points(chosen: Sweep, results: Results) -> list[dict[str, Any]]:
    """Mean goodput of each transfer at each point, with its 95 % t interval over the runs."""
    from whyloss.stats import mean  # Late: scipy takes longer to import than many a run takes.

    groups = results.transfers.to_polars().group_by("point", *chosen.axes, "transfer", maintain_order=True)
    points = []
    for key, rows in groups:
        estimate = mean(rows["goodput_bps"].to_numpy())
        low, high = estimate.interval()
        names = dict(zip(["point", *chosen.axes, "transfer"], key, strict=True))
        points.append({**names, "n": estimate.n, "goodput_bps": estimate.value, "low": low, "high": high})
    return points


@click.command(
    cls=Command,
    examples=["whyloss verify out/error-rates", "whyloss verify out/error-rates --all"],
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--runs", type=click.IntRange(min=1), help="Runs that are run again.  [default: 10]")
@click.option("--all", "everything", is_flag=True, help="Run all of them again.")
@with_option
@as_json
def verify(folder: Path, runs: int | None, everything: bool, as_json: bool) -> None:
    """Run results again, and say whether the same rows come out.

    DIR is a folder that run --out or sweep wrote, here or on another machine. The tables are compared with their
    digests; then a sample of the runs, or all of them, is run again. The exit status is 1 if anything is different.
    """
    from whyloss import verifying

    if runs is not None and everything:
        raise click.BadParameter("give either --runs or --all", param_hint="--runs")
    watch = Watch(f"verifying {folder}")
    with stopping(lambda: "nothing was decided"), watch:
        found = verifying.verify(folder, None if everything else runs or verifying.SAMPLE, watch.follow)
    if as_json:
        told = {"same": found.same, "runs": found.runs, "again": found.again, "differences": found.differences}
        tell_json({**told, "whyloss": found.made_by[0], "engine": found.made_by[1]})
    else:
        for difference in found.differences:
            screen.print(difference, markup=False)
        verdict = "the same rows came out" if found.same else "NOT the same"
        screen.print(f"{found.again} of {found.runs} runs were run again: {verdict}")
    if not found.same_engine:
        say(f"made by another version: whyloss {found.made_by[0]}, engine {found.made_by[1][:12]}")
    if not found.same:
        raise click.exceptions.Exit(1)
