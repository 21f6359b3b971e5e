"""``whyloss fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss.cli.console import Command, Watch, as_json, rate, row, say, screen, stopping, table, tell_json
from whyloss.cli.options import spare

if TYPE_CHECKING:
    from whyloss.captures.fit import Fit
    from whyloss.captures.goodness import Goodness

__all__ = ["fit"]


@click.command(
    cls=Command,
    examples=[
        "whyloss fit file.pcapng -o path.toml",
        "whyloss fit file.pcapng -o path.toml --scheme newreno --profile modern",
        "whyloss run path.toml --set 'flow[0].scheme=bbr'      # another sender on the same path",
    ],
)
@click.argument("files", metavar="CAPTURE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The scenario file.")
@click.option(
    "--connection",
    type=click.IntRange(min=0),
    help="Number of one connection. [default: all between the two hosts with most data]",
)
@click.option("--scheme", default="cubic", show_default=True, help="Which scheme sent; a capture does not tell.")
@click.option("--profile", default="linux", show_default=True, help="Which TCP it was.")
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Runs of the fitted path that are compared with the capture; 0 does not compare.",
)
@as_json
def fit(
    files: tuple[Path, ...],
    out: Path,
    connection: int | None,
    scheme: str,
    profile: str,
    runs: int,
    as_json: bool,
) -> None:
    """Fit a path to captures: a scenario whose simulation looks like what was captured at the sender.

    Bottleneck, delay, queue, loss process, outages, jitter and reordering, each with its interval as a comment; a rate
    that varies as a delivery trace beside the file. Then
    the fitted path is run, and compared with the capture.
    """
    spare("--out", out, files)
    # It brings scipy's optimizers, which other commands do not need.
    from whyloss.captures import fit as fitting

    with stopping(lambda: "nothing was written"), Watch("fitting") as watch:
        fitted = fitting.fit(*files, connection=connection, scheme=scheme, profile=profile)
        fitted.scenario()
        goodness = fitted.goodness(runs, progress=lambda done: watch.count(done, runs)) if runs else None
        fitted.save(out, goodness=goodness)
    if as_json:
        tell_json(_document(fitted, goodness) | {"out": str(out)})
        return
    _show(fitted, goodness)
    say(f"scenario: {out}")


def _document(fitted: Fit, goodness: Goodness | None) -> dict[str, Any]:
    path, queue = fitted.bottleneck, fitted.bottleneck.queue
    return {
        "sender": fitted.series.sender,
        "receiver": fitted.series.receiver,
        "packets": len(fitted.series),
        "remarks": fitted.remarks,
        "rate_bps": path.rate_bps,
        "rate_interval_bps": path.rate_interval_bps,
        "delay_s": fitted.delay_s,
        "delay_interval_s": fitted.delay_interval_s,
        "queue_packets": fitted.queue_packets,
        "queue_overflows": 0 if queue is None else queue.losses,
        "discipline": None if path.discipline is None else path.discipline.kind,
        "process": fitted.process.kind,
        "processes": [
            {"kind": it.kind, "bic": it.bic, "parameters": it.parameters, "intervals": it.intervals}
            for it in fitted.processes
        ],
        "outages": [{"start_s": it.start_s, "end_s": it.end_s, "packets": it.packets} for it in fitted.outages],
        "jitter": None
        if fitted.jitter is None
        else {"law": fitted.jitter.law, "mean_s": fitted.jitter.mean_s, "interval_s": fitted.jitter.interval_s},
        "reordering": None
        if fitted.reordering is None
        else {"share": fitted.reordering.share, "late_s": fitted.reordering.late_s},
        "goodness": None
        if goodness is None
        else {
            "captured_goodput_bps": goodness.captured_goodput_bps,
            "goodput_bps": goodness.goodput_bps.value,
            "goodput_interval_bps": goodness.goodput_bps.interval(),
            "goodput_range_bps": goodness.goodput_range_bps,
            "round_trips": goodness.round_trips,
            "runs_of_losses": goodness.runs,
            "doubts": goodness.doubts,
        },
    }


def _show(fitted: Fit, goodness: Goodness | None) -> None:
    from whyloss.captures.goodness import describe

    for remark in fitted.remarks:
        say(f"remark: {remark}")
    path = fitted.bottleneck
    listing = table(f"{fitted.series.sender} to {fitted.series.receiver}", "what", ">value", "95 %")
    low, high = path.rate_interval_bps
    row(listing, "rate", rate(path.rate_bps), f"{rate(low)} to {rate(high)}")
    low, high = fitted.delay_interval_s
    row(listing, "delay, one way", f"{fitted.delay_s * 1e3:.2f} ms", f"{low * 1e3:.2f} to {high * 1e3:.2f} ms")
    seen = "no overflow seen" if path.queue is None else f"{path.queue.losses} overflows"
    if path.discipline is not None:
        row(listing, "managed queue", path.discipline.kind, f"{int(path.refused.sum())} drops")
    row(listing, "queue", f"{fitted.queue_packets} pkt", seen)
    row(listing, "losses", fitted.process.kind, f"{fitted.fates.losses} of {len(fitted.fates)} packets")
    for name, value in fitted.process.parameters.items():
        low, high = fitted.process.intervals[name]
        row(listing, f"  {name}", f"{value:.4g}", f"{low:.4g} to {high:.4g}")
    if fitted.outages:
        down = sum(it.end_s - it.start_s for it in fitted.outages)
        row(listing, "outages", len(fitted.outages), f"{down:.2f} s together")
    if fitted.jitter is not None:
        low, high = fitted.jitter.interval_s
        mean = f"{fitted.jitter.mean_s * 1e3:.2f} ms"
        row(listing, f"jitter, {fitted.jitter.law}", mean, f"{low * 1e3:.2f} to {high * 1e3:.2f} ms")
    if fitted.reordering is not None:
        low, high = fitted.reordering.interval
        late = f"{low:.2%} to {high:.2%}, {fitted.reordering.late_s * 1e3:.1f} ms late"
        row(listing, "reordered", f"{fitted.reordering.share:.2%}", late)
    screen.print(listing)
    if goodness is not None:
        screen.print("\nGoodness of fit", style="bold")
        for line in describe(goodness):
            screen.print(line, markup=False)
