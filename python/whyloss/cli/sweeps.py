"""``whyloss sweep`` and ``whyloss verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss import files
from whyloss.cli.console import ALL, Command, Watch, as_json, rate, row, say, screen, stopping, table, tell_json
from whyloss.cli.options import (
    Share,
    Where,
    any_store_option,
    load_sweep,
    on_options,
    set_option,
    threads_option,
    with_option,
)
from whyloss.cli.planned import cores_option, plan_option, show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whyloss.precision import Known, Precise
    from whyloss.results import Results
    from whyloss.sweep import Sweep

__all__ = ["sweep", "verify"]

#: What a folder of results says of the precision that was asked for.
PRECISION = "precision.json"


@click.command(
    cls=Command,
    examples=[
        "whyloss sweep examples/error-rates.toml",
        "whyloss sweep examples/error-rates.toml --set path.rate='384 kbps' --out out/slow",
        "whyloss sweep examples/error-rates.toml --json | jq '.points[0]'",
        "whyloss sweep examples/error-rates.toml --precision 5%    # as many runs as the answer needs",
        "whyloss sweep examples/error-rates.toml --plan --cores 1000    # how long it takes, how large it gets",
        "whyloss sweep examples/error-rates.toml --on dask://HOST:8786    # on the workers of a Dask cluster",
        "whyloss sweep examples/error-rates.toml --on dask://HOST:8786 --detach    # Ctrl-C leaves it at work",
        "whyloss sweep examples/error-rates.toml --on slurm --jobs 20 --job-cores 16 --partition long",
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
@click.option(
    "--precision",
    type=Share(below=1),
    metavar="SHARE",
    help="Runs are added until each point is known to ± this share of its mean.  [default: what the sweep says]",
)
@click.option(
    "--quantity",
    metavar="TABLE.COLUMN",
    help="With --precision: what is to be known.  [default: transfers.goodput_bps]",
)
@click.option(
    "--against",
    multiple=True,
    metavar="AXIS=STEP",
    help="With --precision: know how much each point differs from the one with this step; can be given several times.",
)
@click.option("--budget", type=click.IntRange(min=2), help="With --precision: so many runs of all points, at most.")
@any_store_option
@threads_option
@on_options()
@click.option(
    "--detach",
    is_flag=True,
    help="With --on dask://…: Ctrl-C leaves the cluster at work, and the same command comes back to it.",
)
@plan_option
@cores_option
@as_json
def sweep(
    file: Path,
    sets: tuple[str, ...],
    out: Path | None,
    precision: float | None,
    quantity: str | None,
    against: tuple[str, ...],
    budget: int | None,
    store: Path | str,
    threads: int | None,
    where: Where,
    detach: bool,
    plan: bool,
    cores: int | None,
    as_json: bool,
) -> None:
    """Run a scenario at every point of a sweep, on all cores, or with --on on the machines of a cluster.

    Finished runs are kept. Stop it with Ctrl-C, and the same command goes on where it was; change the sweep, and only
    what is new is computed.
    """
    chosen = _until(load_sweep(file).with_arguments(list(sets)), precision, quantity, against, budget)
    if isinstance(store, str) and (plan or where.cluster is None):
        raise click.BadParameter("a bucket goes with --on, and not with --plan", param_hint="--store")
    if detach and (where.cluster is None or where.jobs_end):
        why = "goes with --on dask://HOST:PORT: what a batch system starts for a command ends with it"
        raise click.BadParameter(why, param_hint="--detach")
    if plan:
        assert isinstance(store, Path)
        for option, given in (("--threads", threads), ("--out", out), (f"--on {where.cluster}", where.cluster)):
            if given is not None:
                raise click.BadParameter(f"does not go with {option}; --cores says how many", param_hint="--plan")
        _plan(chosen, store, cores, as_json)
        return
    folder = out or Path("out") / chosen.name
    watch = Watch(f"sweeping {chosen.name}")

    def kept() -> str:
        if not watch.total:
            return f"the same command begins anew, with what {store} has"
        return f"{watch.done} of {watch.total} runs are kept in {store}; the same command goes on from there"

    known = None
    asked: dict[str, Any] = {
        "store": store,
        "threads": threads,
        "progress": watch.follow,
        "note": say,
        "detach": detach,
    }
    with stopping(kept), where.client() as client, watch:
        if chosen.precision is None:
            results = chosen.save(folder, client, **asked)
        else:
            known = chosen.known(client, folder=folder, **asked)
            results = known.results
    if known is not None:
        _show_known(chosen, known, folder, as_json)
        return
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


def _until(
    chosen: Sweep, precision: float | None, quantity: str | None, against: tuple[str, ...], budget: int | None
) -> Sweep:
    """The sweep, with what the command says of its precision over what its file says."""
    said = chosen.precision
    if precision is None and said is None:
        for name, value in (("--quantity", quantity), ("--against", against), ("--budget", budget)):
            if value:
                raise click.BadParameter("goes with --precision only", param_hint=name)
        return chosen
    if precision is None and not (quantity or against or budget):
        return chosen
    steps: dict[str, object] = {**said.against} if said else {}
    if against:
        steps = {}
        for text in against:
            axis, equals, step = text.partition("=")
            if not equals:
                raise click.BadParameter(f"found {text!r}; allowed: AXIS=STEP", param_hint="--against")
            if axis in steps:
                why = f"found two steps of the axis {axis}; allowed: one of each axis"
                raise click.BadParameter(why, param_hint="--against")
            steps[axis] = _step(chosen, axis, step)
    return chosen.until(
        precision if precision is not None or said is None else said.share,
        quantity=quantity or (f"{said.table}.{said.column}" if said else None),
        against=steps,
        budget=budget or (said.budget if said else None),
    )


def _step(chosen: Sweep, axis: str, text: str) -> object:
    """The step that is written so: its label may be a number or a flag."""
    labels = chosen.labels(axis)
    return next((label for label in labels if text in (str(label), json.dumps(label))), text)


def _show_known(chosen: Sweep, known: Known, folder: Path, as_json: bool) -> None:
    """What is known of each point, and how well."""
    wish = chosen.precision
    assert wish is not None
    quantity = f"{wish.table}.{wish.column}"
    points = [point.as_dict() for point in known.points]
    told = {
        "sweep": chosen.name,
        "precision": wish.share,
        "quantity": quantity,
        "against": wish.against,
        "budget": wish.budget,
        "runs": len(known.results.runs),
        "points": points,
    }
    files.add(folder, PRECISION, json.dumps(told, indent=1, allow_nan=False) + "\n")
    short = [point for point in known.points if not point.reached]
    if as_json:
        tell_json({**told, "out": str(folder)})
    else:
        what = f"{quantity} less that of {', '.join(f'{axis} {step}' for axis, step in wish.against.items())}"
        listing = table("", *chosen.axes, f">{what if wish.against else quantity}", ">interval", ">runs", "")
        number = rate if wish.column.endswith("_bps") else "{:.4g}".format
        for point in known.points:
            axes = (point.labels[axis] for axis in chosen.axes)
            row(listing, *axes, number(point.value), _interval(point, number), point.runs, _limits(point, wish.against))
        screen.print(listing.shortened(ALL))
    say(f"{len(known.results.runs):,} runs; the interval of each point is of 95 %, corrected for looking several times")
    if short:
        known_to = f"{len(short)} of {len(known.points)} points"
        say(f"not known to ± {100 * wish.share:g} %: {known_to}; --budget allows more runs")
    say(f"tables: {folder}")


def _interval(point: Precise, number: Callable[[float], str]) -> str:
    """What is known of a point beside its mean."""
    if point.differ is not None:
        return f"nearly all the same: {100 * point.differ:.2g} % differ at most"
    return f"{number(point.low)} … {number(point.high)}"


def _limits(point: Precise, against: Mapping[str, Any]) -> str:
    """What keeps a point from being known better."""
    what = "pairs" if against else "runs"
    less = f"{point.measured} {what} have a value" if point.measured < point.runs else ""
    return ", ".join(filter(None, ["" if point.reached else "budget ended", less]))


def _plan(chosen: Sweep, store: Path, cores: int | None, as_json: bool) -> None:
    """Says what the sweep will cost."""
    from whyloss.planning import forecast

    with stopping(lambda: "nothing is kept of the sample"):
        found = forecast(chosen.native, store)
    show({"sweep": chosen.name}, found, cores, as_json)
    if (wish := chosen.precision) and not as_json:
        share = f"± {100 * wish.share:g} %"
        say(
            f"these are the runs before the first look; {share} takes as many more as it needs, {wish.budget:,} at most"
        )


def _points(chosen: Sweep, results: Results) -> list[dict[str, Any]]:
    """Mean goodput of each transfer at each point, with its 95 % t interval over the runs."""
    from whyloss.stats import mean  # Late: scipy takes longer to import than many a run takes.

    names = ["point", *chosen.axes, "transfer"]
    rows = results.transfers.lazy().select(*names, "goodput_bps").collect()
    points = []
    for key, group in rows.group_by(names, maintain_order=True):
        estimate = mean(group["goodput_bps"].to_numpy())
        low, high = estimate.interval()
        points.append(
            {
                **dict(zip(names, key, strict=True)),
                "n": estimate.n,
                "goodput_bps": estimate.value,
                "low": low,
                "high": high,
            }
        )
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
