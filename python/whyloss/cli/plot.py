"""``whyloss plot``.

What draws is imported by the command: matplotlib takes longer than many a run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss.cli.console import Command, Watch, as_json, say, stopping, tell_json
from whyloss.cli.options import set_option, with_option
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Collection

    from whyloss.traces import Run, Span

__all__ = ["plot"]

_KINDS = ("series", "sequence", "ladder")
_TIME = re.compile(r"\s*(\d{1,12}(?:\.\d{0,12})?)\s*(ns|us|µs|ms|s|min)?\s*", re.ASCII)
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
#: No simulated time is longer: nanoseconds are kept in 64 bits.
_LONGEST = 2**63


class Time(click.ParamType[int]):
    """A simulated time; in nanoseconds once it is read."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Reads it."""
        if isinstance(value, int):
            return value
        match = _TIME.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is no time; allowed: seconds, or a number with ns, us, ms, s or min", param, ctx)
        nanoseconds = round(float(match[1]) * _NANOSECONDS[match[2] or "s"])
        if nanoseconds >= _LONGEST:
            self.fail(f"{value!r} is too long; allowed: less than 292 years", param, ctx)
        return nanoseconds


@click.command(
    cls=Command,
    examples=[
        "whyloss plot examples/lossy-link.toml                             # windows, rate and queue over time",
        "whyloss plot examples/lossy-link.toml --as sequence --from 1 --to 3",
        "whyloss plot examples/lossy-link.toml --as ladder --packets 40 -o ladder.png",
        "whyloss plot out/dumbbell --flow sack --what cwnd,ssthresh,queue  # a folder of `whyloss run --out`",
    ],
)
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "kind",
    type=click.Choice(_KINDS),
    default="series",
    show_default=True,
    help="Time series, time-sequence diagram (every segment, acknowledgement and loss), or ladder diagram (an arrow "
    "for each packet).",
)
@click.option("--flow", "flows", multiple=True, metavar="NAME", help="Flow by its name, or by its position from 0.")
@click.option("--from", "start", type=Time(), default=0, metavar="TIME", help="Start, as 1.5 or '200 ms'. [default: 0]")
@click.option("--to", "end", type=Time(), metavar="TIME", help="End. [default: the end of the run]")
@click.option(
    "--what",
    metavar="LIST",
    help="For time series, some of cwnd, ssthresh, flight, goodput, throughput, sequence, queue. "
    "[default: cwnd,ssthresh,flight,goodput,queue; of several flows cwnd,goodput,queue]",
)
@click.option("--packets", type=click.IntRange(min=1), help="For a ladder diagram: so many packets at most.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="SVG or PNG file. [default: KIND.svg in the folder, or in out/NAME]",
)
@click.option("--width", type=click.FloatRange(60, 400), default=160, show_default=True, help="Millimetres.")
@set_option
@with_option
@click.option(
    "--run", "number", type=click.IntRange(min=0), help="Number of the run, if RUN is a scenario. [default: 0]"
)
@as_json
def plot(
    source: Path,
    kind: str,
    flows: tuple[str, ...],
    start: int,
    end: int | None,
    what: str | None,
    packets: int | None,
    output: Path | None,
    width: float,
    sets: tuple[str, ...],
    number: int | None,
    as_json: bool,
) -> None:
    """Draw what happened in a single run.

    RUN is a folder that `whyloss run --out` wrote, or a scenario file, which is run first, with all that the figure
    needs written down. The same scenario and run number give the same run, and the same run gives the same picture.

    In a time-sequence or ladder diagram, the colour of a loss tells its true cause and the shape what the sender made
    of it; a retransmission is hollow and has the colour and shape of the loss that it repairs.
    """
    from whyloss import traces

    if end is not None and end <= start:
        raise click.BadParameter(f"found {end / 1e9:g} s; allowed: later than {start / 1e9:g} s", param_hint="--to")
    if what is not None and kind != "series":
        raise click.BadParameter(f"goes with --as series only, not with --as {kind}", param_hint="--what")
    if packets is not None and kind != "ladder":
        raise click.BadParameter(f"goes with --as ladder only, not with --as {kind}", param_hint="--packets")
    if output is not None and output.suffix not in (".svg", ".png"):
        raise click.BadParameter(
            f"found {output.name!r}; allowed: a name that ends in .svg or .png", param_hint="--output"
        )
    span = traces.Span(start, end)
    wanted = tuple(name.strip() for name in what.split(",")) if what is not None else None
    needed = traces.tables_of(wanted or traces.DEFAULT) if kind == "series" else {"segments"}
    run = _run(source, sets, number, needed, span)
    if kind != "series" and len(flows) > 1:
        raise click.BadParameter(f"one flow goes with --as {kind}; found {len(flows)}", param_hint="--flow")
    path = output or (source if source.is_dir() else Path("out") / source.stem) / f"{kind}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = _draw(run, kind, flows, span, wanted, packets, path, width)
    if run.left_out:
        say(f"packets were kept up to a bound, and {run.left_out} more were not; --from and --to narrow it")
    if as_json:
        tell_json({"run": run.name, "kind": kind, "file": str(path), **drawn})
    else:
        click.echo(path)


def _run(source: Path, sets: tuple[str, ...], number: int | None, needed: Collection[str], span: Span) -> Run:
    from whyloss import traces

    if source.is_dir():
        for option, given in (("--set", bool(sets)), ("--run", number is not None)):
            if given:
                raise click.BadParameter("goes with a scenario; RUN is the folder of a finished run", param_hint=option)
        return traces.open_run(source)
    scenario = Scenario.load(source).with_arguments(list(sets))
    nothing = stopping(lambda: "a run that is not finished leaves nothing behind")
    with nothing, Watch(f"running {scenario.name}") as watch:
        return traces.rerun(scenario, number or 0, needed=needed, span=span, progress=watch.follow)


def _draw(
    run: Run,
    kind: str,
    flows: tuple[str, ...],
    span: Span,
    what: tuple[str, ...] | None,
    packets: int | None,
    path: Path,
    width: float,
) -> dict[str, Any]:
    """Draws it; what there is to count in the picture."""
    from whyloss import traces

    if kind == "series":
        series = traces.series(run, flows, span, what)
        traces.draw_series(series, path, width)
        return {"lines": [line.label for panel in series.panels for line in panel.lines]}
    flow = run.flow(flows[0] if flows else None)
    if kind == "sequence":
        sequence = traces.time_sequence(run, flow, span)
        traces.draw_sequence(sequence, path, width)
        counts = {f"{name}_marks": sum(mark.kind == name for mark in sequence.marks) for name in ("lost", "resent")}
        return {"flow": flow, "segments": len(sequence.sent), "one_of": sequence.every, **counts}
    ladder = traces.ladder(run, flow, span, packets)
    traces.draw_ladder(ladder, path, width)
    return {"flow": flow, "arrows": len(ladder.arrows), "more": ladder.more}
