"""A fitted path as a scenario file: plain TOML with what is known of each value beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from whyloss.captures.fates import SAME
from whyloss.stats import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from whyloss.captures.bottleneck import Bottleneck
    from whyloss.captures.series import Transfer

__all__ = ["toml"]

#: What a text calls the file with the delivery trace.
TRACE = "fitted.trace"
#: Connections that become flows of their own.
FLOWS = 32
#: A line to the bottleneck that was not seen takes no time: it has this rate, and is so many times as fast at least.
LINE_BPS, FASTER = 1e9, 10


def toml(fit: Any, *, scheme: str, profile: str) -> str:
    """The text of a scenario whose path is the fitted one and whose flows send what was captured."""
    path, series = fit.bottleneck, fit.series
    say = _Lines()
    say.comment(f"Fitted by `whyloss fit` to {', '.join(fit.captures)}.")
    say.comment(
        f"{series.sender} to {series.receiver}: {len(series)} packets with data, {series.connections} connections, "
        f"{int(series.lost.sum())} lost."
    )
    say.comment(f"Intervals at {LEVEL:.0%}.")
    for remark in fit.remarks:
        say.comment(f"Remark: {remark}")
    say.line("")
    say.line("[scenario]")
    say.line('description = "A path fitted to a capture"')
    say.line(f'duration = "{fit.longest_s:.0f} s"')
    say.line("")
    say.line("[path]")
    if path.trace_s is None:
        say.value("rate", _rate(path.rate_bps), _interval(path.rate_interval_bps, _rate))
    else:
        low, high = path.rate_interval_bps
        note = f"of what goes back; forth the trace, {_rate(low)} to {_rate(high)} in eight of ten tenths of a second"
        say.value("rate", _rate(FASTER * path.rate_bps), note)
    say.value(
        "delay",
        _time(fit.delay_s),
        f"{_interval(fit.delay_interval_s, _time)}; half of the round trip: one end does not see the two ways apart",
    )
    queue = path.queue
    if queue is None:
        note = f"no overflow was seen: at least {path.most_waiting + 1} pkt; what stands here is a guess"
    else:
        note = f"{queue.losses} overflows, the smallest at {queue.refused} pkt; {queue.accepted} waited without loss"
    say.value("queue", f"{fit.queue_packets} pkt", note)
    line_bps = path.line_bps or max(LINE_BPS, path.rate_bps * FASTER)
    say.line(f'access = {{ rate = "{_rate(line_bps)}", queue = "100000 pkt" }}')
    if fit.outages:
        say.line("outage = [")
        for down in fit.outages:
            begins, ends = (_time(high - low) for low, high in (down.start_interval_s, down.end_interval_s))
            start, lasts = _time(max(down.start_s - fit.start_s, 0.0)), _time(down.end_s - down.start_s)
            note = f"{down.packets} packets; known within {begins} and {ends}"
            say.line(f'    {{ at = "{start}", lasts = "{lasts}" }},  # {note}')
        say.line("]")
    say.line("")
    say.line("[path.forward]")
    if path.trace_s is not None:
        say.line(f'trace = "{TRACE}"')
        say.line(f'trace_octets = "{path.trace_octets} B"')
    if path.discipline is not None:
        managed = path.discipline
        of = {"target": f"{managed.target_s * 1e3:g} ms"}
        if managed.interval_s is not None:
            of["interval"] = f"{managed.interval_s * 1e3:g} ms"
        say.comment(f"{int(path.refused.sum())} losses; twice the logarithm of the likelihood ratio {managed.gain:.0f}")
        say.line(f"discipline = {inline({managed.kind: of})}")
    if fit.jitter is not None:
        shape = fit.jitter
        deviation = "" if shape.deviation_s is None else f', deviation = "{_time(shape.deviation_s)}"'
        say.comment(f"mean {_interval(shape.interval_s, _time)}; distance of the distributions {shape.distance:.3f}")
        say.line(f'jitter = {{ mean = "{_time(shape.mean_s)}", law = "{shape.law}"{deviation} }}')
    if fit.reordering is not None:
        late = fit.reordering
        say.comment(f"share {_interval(late.interval, _share)}")
        say.line(f'reorder = {{ share = {late.share:.6g}, late = "{_time(late.late_s)}" }}')
    for line in channel(fit):
        say.line(line)
    for transfer in sorted(series.transfers, key=lambda it: -it.octets)[:FLOWS]:
        _flow(say, fit, transfer, scheme, profile)
    return say.text


def trace(path: Bottleneck) -> str:
    """The delivery trace in mahimahi's format: whole milliseconds, one line for each opportunity."""
    times = path.trace_s if path.trace_s is not None else np.zeros(0)
    millis = np.maximum(np.round(times * 1e3), 1).astype(int)
    return "".join(f"{milli}\n" for milli in millis)


def _flow(say: _Lines, fit: Any, transfer: Transfer, scheme: str, profile: str) -> None:
    own = []
    if transfer.mss is not None:
        own.append(f"mss = {transfer.mss}")
    if fit.window_limited:
        own.append(f'receive_buffer = "{fit.series.window_octets} B"')
    say.line("")
    say.line("[[flow]]")
    say.line(f'start = "{_time(max(transfer.start_s - fit.start_s, 0.0))}"')
    say.line(f'size = "{transfer.octets} B"')
    say.line(f'scheme = "{scheme}"')
    say.line(f'profile = "{profile}"')
    if own:
        say.line(f"tcp = {{ {', '.join(own)} }}")


def channel(fit: Any) -> list[str]:
    """The lines of the loss process."""
    process = fit.process
    lines = []
    for other in (it for it in fit.processes if it.kind != process.kind):
        lines.append(f"# {other.kind}: BIC {other.bic - process.bic:+.1f}")
        if other.bic - process.bic <= SAME:
            as_well = ", ".join(f"{name} {value:.6g}" for name, value in other.parameters.items())
            lines.append(f"#   cannot be told from it: {as_well}")
    if lines:
        lines.insert(
            0, f"# Loss process: {process.kind}, the simplest of the best by BIC; the others differ by so much."
        )
    lines += [
        f"# {name} {value:.6g}, {_interval(process.intervals.get(name, (-math.inf, math.inf)), lambda x: f'{x:.6g}')}"
        for name, value in process.parameters.items()
    ]
    values = channel_values(process.kind, process.parameters)
    return lines + ([f"channel = {inline(values)}"] if values else [])


def channel_values(kind: str, parameters: Mapping[str, float]) -> dict[str, object]:
    """The fields of a scenario's channel for a loss process."""
    #: The steps of a chain in time.
    step_s = 1e-3
    match kind:
        case "independent":
            return {"loss": _float(parameters["loss"])}
        case "bits":
            return {"ber": _float(parameters["ber"])}
        case "gilbert":
            return {"markov": {name: _float(value) for name, value in parameters.items()}}
        case "gilbert-in-time":
            good, bad = 1 / parameters["good_s"], 1 / parameters["bad_s"]
            # The chain in continuous time, looked at after each step.
            moved = -math.expm1(-(good + bad) * step_s) / (good + bad)
            return {
                "markov": {
                    "stay_good": _float(1 - good * moved),
                    "stay_bad": _float(1 - bad * moved),
                    "every": f"{step_s * 1e3:g} ms",
                }
            }
        case "gilbert-elliott":
            return {"markov": {name: _float(value) for name, value in parameters.items()}}
        case _:
            return {}


def inline(values: Mapping[str, object]) -> str:
    """An inline table of TOML."""

    def one(value: object) -> str:
        match value:
            case dict():
                return inline(value)
            case str():
                return f'"{value}"'
            case _:
                return repr(value)

    return "{ " + ", ".join(f"{name} = {one(value)}" for name, value in values.items()) + " }"


class _Lines:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def line(self, text: str) -> None:
        self._lines.append(text)

    def comment(self, text: str) -> None:
        self._lines.append(f"# {text}")

    def value(self, name: str, value: str, note: str) -> None:
        self._lines.append(f'{name} = "{value}"  # {note}')

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _float(value: float) -> float:
    return float(f"{min(max(value, 0.0), 1.0):.9g}")


def _rate(bps: float) -> str:
    return f"{bps:.0f} bps"


def _time(seconds: float) -> str:
    return f"{max(seconds, 0.0) * 1e6:.0f} us"


def _share(value: float) -> str:
    return f"{value:.3g}"


def _interval(interval: Sequence[float], show: Callable[[float], str]) -> str:
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return "no interval: too little was captured"
    return f"{show(low)} to {show(high)}"
