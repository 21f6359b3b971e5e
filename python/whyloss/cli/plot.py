"""``whyloss plot``.

What draws is imported by the command: matplotlib takes longer than many a run.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss import files
from whyloss.cli.console import Command, Watch, as_json, say, stopping, tell_json
from whyloss.cli.options import RUN_NUMBER, set_option, spare, with_own_option
from whyloss.cli.paths import choose, link_options, retyped, scheme_option, with_schemes
from whyloss.judgements import judgements

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from whyloss.scenario import Scenario
    from whyloss.traces import Run, Series, Span, TimeSequence

__all__ = ["plot"]

_KINDS = ("series", "sequence", "ladder")
_ENDINGS = (".svg", ".png", ".pdf", ".html")
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
        "whyloss plot --rate 10Mbps --delay 20ms --loss 1% --scheme cubic --scheme bbr --scheme lda-eq",
        "whyloss plot examples/lossy-link.toml                             # windows, round trips, queue, goodput",
        "whyloss plot examples/lossy-link.toml --as sequence --from 1 --to 3 -o sequence.html",
        "whyloss plot examples/lossy-link.toml --as ladder --packets 40 -o ladder.pdf",
        "whyloss plot out/dumbbell --flow sack --what cwnd,ssthresh,queue  # a folder of `whyloss run --out`",
        "whyloss plot out/one out/two                                      # runs over each other",
    ],
)
@click.argument("sources", metavar="[RUN]...", nargs=-1, type=click.Path(path_type=Path))
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
    help="For time series, some of cwnd, ssthresh, flight, srtt, queue, goodput, throughput, delivered, sequence. "
    "[default: cwnd,ssthresh,flight,srtt,queue,goodput; of several flows or runs cwnd,srtt,queue,goodput]",
)
@click.option("--packets", type=click.IntRange(min=1), help="For a ladder diagram: so many packets at most.")
@click.option(
    "-o",
    "--out",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="SVG, PNG, PDF or HTML file (to zoom into). [default: KIND.svg in the folder, or in out/NAME]",
)
@click.option("--width", type=click.FloatRange(60, 400), default=160, show_default=True, help="Millimetres.")
@scheme_option("Scheme of the first flow; several are drawn over each other. With a scenario or a link.")
@link_options
@click.option("--duration", metavar="TIME", help="Simulated time.  [default: what the scenario says; of a link 60 s]")
@set_option
@with_own_option
@click.option("--run", "number", type=RUN_NUMBER, help="Number of the run, if RUN is a scenario. [default: 0]")
@as_json
def plot(
    sources: tuple[Path, ...],
    kind: str,
    flows: tuple[str, ...],
    start: int,
    end: int | None,
    what: str | None,
    packets: int | None,
    output: Path | None,
    width: float,
    schemes: tuple[str, ...],
    link: dict[str, Any],
    duration: str | None,
    sets: tuple[str, ...],
    own: tuple[Path, ...],
    number: int | None,
    as_json: bool,
) -> None:
    """Draw what happened in a run, or in several over each other.

    RUN is a folder that `whyloss run --out` wrote, or a scenario file, which is run first, with all that the figure
    needs written down; --rate, --delay and their like make a link without a file. The same scenario and run number give
    the same run, and the same run gives the same picture.

    The colour of a loss tells its true cause and the shape what the sender made of it. What was misjudged is told
    beside the picture.
    """
    from whyloss import traces

    if end is not None and end <= start:
        raise click.BadParameter(f"found {end / 1e9:g} s; allowed: later than {start / 1e9:g} s", param_hint="--to")
    if what is not None and kind != "series":
        raise click.BadParameter(f"goes with --as series only, not with --as {kind}", param_hint="--what")
    if packets is not None and kind != "ladder":
        raise click.BadParameter(f"goes with --as ladder only, not with --as {kind}", param_hint="--packets")
    if output is not None and output.suffix not in _ENDINGS:
        raise click.BadParameter(
            f"found {output.name!r}; allowed: a name that ends in .svg, .png, .pdf or .html", param_hint="--out"
        )
    spare("--out", output, (*sources, *own))
    if output is not None and output.suffix == ".html" and kind == "ladder":
        raise click.BadParameter("a ladder diagram is a picture; allowed: .svg, .png or .pdf", param_hint="--out")
    if kind != "series" and max(len(sources), len(schemes)) > 1:
        raise click.BadParameter(f"one run goes with --as {kind}; allowed for several: series", param_hint="--as")
    span = traces.Span(start, end)
    wanted = tuple(name.strip() for name in what.split(",")) if what is not None else None
    needed = traces.tables_of(wanted or traces.DEFAULT) if kind == "series" else {"segments"}
    runs = _runs(sources, schemes, link, duration, sets, number, needed, span)
    if len(flows) > 1 and (kind != "series" or len(runs) > 1):
        of = f"--as {kind}" if kind != "series" else "several runs"
        raise click.BadParameter(f"one flow goes with {of}; found {len(flows)}", param_hint="--flow")
    path = output or _place(sources, runs) / f"{kind}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = _draw(runs, kind, flows, span, wanted, packets, path, width)
    for run in runs:
        if run.left_out:
            say(f"packets were kept up to a bound, and {run.left_out} more were not; --from and --to narrow it")
    told = {run.name: judgements(run.rows("losses", span.holds("at_ns"))) for run in runs}
    if as_json:
        misjudged = [{"run": name, **asdict(found)} for name, found in told.items()]
        tell_json({"run": runs[0].name, "kind": kind, "file": str(path), "losses": misjudged, **drawn})
    else:
        click.echo(path)
        for name, found in told.items():
            say(f"{name}: {found.sentence()}")
        if len(told) > 1 and len(sources) < 2 and not any(source.is_dir() or str(source) == "-" for source in sources):
            there = sources[0] if sources else None
            over_many = retyped("compare", there, link, schemes, sets, own, duration=duration)
            say(f"how much each is worth, over many runs: {over_many}")


def _place(sources: tuple[Path, ...], runs: Sequence[Run]) -> Path:
    if len(sources) == 1:
        if str(sources[0]) == "-":
            return Path("out") / _folder_name(runs[0].name)
        return sources[0] if sources[0].is_dir() else Path("out") / sources[0].stem
    return Path("out") / ("path" if not sources else _folder_name("-".join(run.name for run in runs)))


def _folder_name(name: str) -> str:
    """What a folder below ``out`` can be called after runs, whose names may have any letters."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "path"


def _runs(
    sources: tuple[Path, ...],
    schemes: tuple[str, ...],
    link: dict[str, Any],
    duration: str | None,
    sets: tuple[str, ...],
    number: int | None,
    needed: Collection[str],
    span: Span,
) -> list[Run]:
    from whyloss import traces

    found: list[Run] = []
    for source in sources or (None,):
        if source is not None and source.is_dir():
            given = {"--set": sets, "--scheme": schemes, "--run": number is not None}
            given |= {"--duration": duration is not None, **{f"--{name}": True for name in link}}
            for option in (option for option, there in given.items() if there):
                raise click.BadParameter("goes with a scenario; RUN is the folder of a finished run", param_hint=option)
            found.append(traces.open_run(source))
            continue
        scenario = choose(source, link, {"duration": duration}).with_arguments(list(sets))
        several = len(schemes) > 1
        for label, one in with_schemes(scenario, schemes):
            found.append(_run(one, label if several else scenario.name, number or 0, needed, span))
    return found


def _run(scenario: Scenario, label: str, number: int, needed: Collection[str], span: Span) -> Run:
    from whyloss import traces

    nothing = stopping(lambda: "a run that is not finished leaves nothing behind")
    with nothing, Watch(f"running {label}") as watch:
        return traces.rerun(scenario, number, needed=needed, span=span, progress=watch.follow, name=label)


def _draw(
    runs: Sequence[Run],
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

    run = runs[0]
    if kind == "series":
        if len(runs) > 1:
            series = traces.compared(runs, flows[0] if flows else None, span, what)
        else:
            series = traces.series(run, flows, span, what)
        if path.suffix == ".html":
            _page(series.title, series, path)
        else:
            traces.draw_series(series, path, width)
        return {"lines": [line.label for panel in series.panels for line in panel.lines]}
    flow = run.flow(flows[0] if flows else None)
    if kind == "sequence":
        sequence = traces.time_sequence(run, flow, span)
        if path.suffix == ".html":
            _page(sequence.title, sequence, path)
        else:
            traces.draw_sequence(sequence, path, width)
        counts = {f"{name}_marks": sum(mark.kind == name for mark in sequence.marks) for name in ("lost", "resent")}
        return {"flow": flow, "segments": len(sequence.sent), "one_of": sequence.every, **counts}
    ladder = traces.ladder(run, flow, span, packets)
    traces.draw_ladder(ladder, path, width)
    return {"flow": flow, "arrows": len(ladder.arrows), "more": ladder.more}


def _page(name: str, made: Series | TimeSequence, path: Path) -> None:
    from whyloss import traces
    from whyloss.report import render_plot

    files.write(path, render_plot({"name": traces.printable(name), "notes": [], **traces.figure(made)}))
