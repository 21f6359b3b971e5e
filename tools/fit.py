"""Measures `whyloss fit` on scenarios whose paths are known, and writes docs/captures-fit.md from it.

``--measure`` draws the scenarios, runs and captures each, fits, runs what was fitted, and keeps the rows in
docs/captures-fit.json; without it the page is written from what was measured before. ``--measure KIND...`` measures
some kinds anew.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whyloss import Scenario
from whyloss.captures.fit import Fit, fit
from whyloss.captures.goodness import simulate

DOCS = Path(__file__).parent.parent / "docs"
PAGE, MEASURED = DOCS / "captures-fit.md", DOCS / "captures-fit.json"
BLOCK = re.compile(r"(<!-- table: generated -->\n).*?(<!-- table: end -->)", re.DOTALL)
#: How many scenarios of each kind.
KINDS = {
    "bottleneck": 9,
    "random": 9,
    "bits": 8,
    "bursts": 8,
    "outages": 8,
    "jitter": 8,
    "aqm": 6,
    "varying": 6,
    "others": 6,
}
#: Kinds without one rate.
VARIES = ("varying", "others")
#: The number of the first scenario that is reported. Those before it were looked at while this was made.
FIRST = 200
#: Runs of each fitted path, and of each true one with other random numbers.
RUNS = 5
#: The targets.
RATE, DELAY_S, GOODPUT = 0.03, 1e-3, 0.10


@dataclass(frozen=True)
class World:
    """A scenario with a path that is known."""

    kind: str
    number: int
    rate_bps: float
    delay_s: float
    queue: int
    scheme: str
    profile: str
    size: int
    #: The channel's fields, and the parameters that a fit should find.
    channel: dict[str, Any]
    truth: dict[str, float]
    #: Other fields of the path.
    more: dict[str, Any]
    #: Who else sends over it.
    others: tuple[dict[str, Any], ...] = ()

    def scenario(self) -> Scenario:
        """What is run and captured."""
        path: dict[str, Any] = {
            "rate": f"{self.rate_bps:.0f} bps",
            "delay": f"{self.delay_s * 1e6:.0f} us",
            "queue": f"{self.queue} pkt",
            "forward": {key: value for key, value in self.more.items() if key not in ("outage", "change")},
        }
        if self.channel:
            path["forward"]["channel"] = self.channel
        if "outage" in self.more:
            path["outage"] = self.more["outage"]
        flow: dict[str, Any] = {"scheme": self.scheme, "profile": self.profile, "size": f"{self.size} B"}
        if "change" in self.more:
            path["change"] = self.more["change"]
        flows = [flow, *self.others]
        if self.kind == "bits":
            # Only packets of different lengths tell errors of bits from errors of packets.
            flows = [
                {**flow, "size": f"{self.size // 2} B"},
                {**flow, "size": f"{self.size // 4} B", "tcp": {"mss": 400}},
            ]
        header = {"name": f"{self.kind}-{self.number}", "seed": 1000 + self.number, "duration": "2000 s"}
        return Scenario({"scenario": header, "path": path, "flow": flows})


def world(kind: str, number: int) -> World:
    """The scenario of a kind with a number: the same each time."""
    rng = np.random.default_rng([list(KINDS).index(kind), number])

    def log(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    rate, delay = log(1e6, 20e6), log(5e-3, 60e-3)
    product = rate * 2 * delay / 8 / 1500
    queue = max(8, round(product * rng.uniform(0.5, 3.0)))
    scheme, profile = [("cubic", "linux"), ("newreno", "modern")][int(rng.integers(2))]
    channel: dict[str, Any] = {}
    truth: dict[str, float] = {}
    more: dict[str, Any] = {}
    others: tuple[dict[str, Any], ...] = ()
    match kind:
        case "random":
            truth = {"loss": log(0.003, 0.03)}
            channel = dict(truth)
        case "bits":
            truth = {"ber": log(3e-7, 3e-6)}
            channel = dict(truth)
        case "bursts":
            truth = {"stay_good": 1 - log(0.002, 0.01), "stay_bad": float(rng.uniform(0.4, 0.8))}
            if number % 2:
                # Longer bad states, in which a part of the packets arrives.
                truth["stay_bad"] = float(rng.uniform(0.85, 0.95))
                truth |= {"lost_good": log(0.0005, 0.002), "lost_bad": float(rng.uniform(0.2, 0.5))}
            channel = {"markov": dict(truth)}
        case "outages":
            lasts = {"mean": f"{log(0.3, 1.5):.3f} s", "law": "exponential"}
            more = {"outage": [{"at": "3 s", "lasts": lasts, "every": f"{rng.uniform(6, 12):.2f} s"}]}
        case "aqm":
            # As long as Linux's are.
            more, queue = {"discipline": {["codel", "pie"][number % 2]: {}}}, 1000
        case "varying":
            # Another rate every now and then, as a cellular link has it, a tenth to the full one; long queues.
            steps = [{"at": f"{0.4 * k:.1f} s", "rate": f"{rate * log(0.1, 1.0):.0f} bps"} for k in range(1, 2000)]
            more, queue = {"change": steps}, 4 * queue
        case "others":
            # Somebody else takes half to nine tenths of the link for times that nobody knows before.
            on_off = {
                "burst": {"mean": "700 ms", "law": "exponential"},
                "idle": {"mean": "700 ms", "law": "exponential"},
            }
            cbr = {"rate": f"{rate * float(rng.uniform(0.5, 0.9)):.0f} bps", "packet": "1000 B", **on_off}
            others = ({"cbr": cbr},)
        case "jitter":
            law = ["uniform", "exponential"][number % 2]
            truth = {"jitter_s": log(1e-3, 8e-3)}
            more = {"jitter": {"mean": f"{truth['jitter_s'] * 1e6:.0f} us", "law": law}}
            if number % 4 >= 2:
                more["reorder"] = {"share": 0.005, "late": f"{rng.uniform(5, 15):.1f} ms"}
                truth["share"] = 0.005
        case _:
            pass
    return World(kind, number, rate, delay, queue, scheme, profile, 12_000_000, channel, truth, more, others)


def measure(made: World, *, runs: int = RUNS) -> dict[str, Any]:
    """Captures a world at its sender, fits, and compares."""
    scenario = made.scenario()
    with tempfile.TemporaryDirectory(prefix="whyloss-fit-") as folder:
        scenario.replace({"output.capture": ["server"]}).run(0, captures=folder)
        fitted = fit(*sorted(Path(folder).iterdir()), scheme=made.scheme, profile=made.profile)
    goodness = fitted.goodness(runs)
    # The same path met with other random numbers: as near as any fit can be expected to come.
    own = simulate(scenario, runs + 1)[1:]
    found = dict(fitted.process.parameters)
    intervals = dict(fitted.process.intervals)
    if fitted.jitter is not None:
        found["jitter_s"], intervals["jitter_s"] = fitted.jitter.mean_s, fitted.jitter.interval_s
    if fitted.reordering is not None:
        found["share"], intervals["share"] = fitted.reordering.share, fitted.reordering.interval
    covered = {
        name: bool(intervals[name][0] <= value <= intervals[name][1]) if name in intervals else None
        for name, value in made.truth.items()
    }
    queue = fitted.bottleneck.queue
    return {
        "kind": made.kind,
        "number": made.number,
        "scheme": made.scheme,
        "rate_bps": made.rate_bps,
        "rate_error": None if made.kind in VARIES else fitted.bottleneck.rate_bps / made.rate_bps - 1,
        "delay_error_s": fitted.delay_s - made.delay_s,
        "queue": made.queue,
        "queue_found": None if queue is None else queue.packets,
        "discipline": None if fitted.bottleneck.discipline is None else fitted.bottleneck.discipline.kind,
        "trace": fitted.bottleneck.trace_s is not None,
        "process": fitted.process.kind,
        "losses": fitted.fates.losses,
        "named": named(made, fitted),
        "truth": made.truth,
        "found": found,
        "intervals": {name: list(value) for name, value in intervals.items()},
        "covered": covered,
        "outages": len(fitted.outages),
        "jitter": None if fitted.jitter is None else fitted.jitter.law,
        "goodput_bps": goodness.captured_goodput_bps,
        "goodput_ratio": goodness.goodput_ratio,
        "own_ratio": float(np.mean([one.goodput_bps for one in own])) / goodness.captured_goodput_bps,
        "round_trips": goodness.round_trips,
        "doubts": list(goodness.doubts),
        "runs": list(goodness.runs),
        "lost": goodness.lost,
        "captured_lost": goodness.captured_lost,
    }


def named(made: World, fitted: Fit) -> bool | None:
    """Whether what takes packets has its name; None where that is the queue's length alone."""
    process, discipline = fitted.process.kind, fitted.bottleneck.discipline
    match made.kind:
        case "random":
            return process == "independent"
        case "bits":
            return process == "bits"
        case "bursts":
            return process == ("gilbert-elliott" if "lost_bad" in made.truth else "gilbert")
        case "aqm":
            return discipline is not None and discipline.kind in made.more["discipline"]
        case "varying" | "others":
            return fitted.bottleneck.trace_s is not None
        case _:
            return None


def _measured(which: tuple[str, int]) -> dict[str, Any]:
    return measure(world(*which))


def main(arguments: list[str]) -> None:
    """Measures if asked to, and writes the page."""
    rows: list[dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else []
    if arguments[:1] == ["--measure"]:
        kinds = arguments[1:] or list(KINDS)
        rows = [row for row in rows if row["kind"] not in kinds]
        work = [(kind, number) for kind in kinds for number in range(FIRST, FIRST + KINDS[kind])]
        with ProcessPoolExecutor(2) as pool:
            for row in pool.map(_measured, work):
                rows.append(row)
                print(
                    f"{row['kind']}-{row['number']}: rate {row['rate_error'] or 0:+.2%}, "
                    f"delay {row['delay_error_s'] * 1e3:+.2f} ms, "
                    f"queue {row['queue_found']} of {row['queue']}, {row['discipline']} {row['process']}, "
                    f"{row['covered']}, "
                    f"goodput x {row['goodput_ratio']:.3f} (own {row['own_ratio']:.3f})",
                    flush=True,
                )
        rows.sort(key=lambda row: (list(KINDS).index(row["kind"]), row["number"]))
        MEASURED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(
        BLOCK.sub(lambda found: found[1] + table(rows) + found[2], PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )


def table(rows: list[dict[str, Any]]) -> str:
    """What was measured, a line a kind."""
    lines = [
        "| kind | scenarios | rate within 3 % | largest error | delay within 1 ms | largest error [ms] "
        "| named rightly | parameters in their 95 % intervals | not found | goodput within 10 % | largest error "
        "| the true path with other random numbers | doubted |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in (*KINDS, "with SACK", "without", "all"):
        sack = {"with SACK": "cubic", "without": "newreno"}.get(kind)
        of = [row for row in rows if kind in ("all", row["kind"]) or row["scheme"] == sack]
        if not of:
            continue
        n = len(of)
        rates = [abs(row["rate_error"]) for row in of if row["rate_error"] is not None]
        delays = [abs(row["delay_error_s"]) for row in of]
        goodputs = [abs(row["goodput_ratio"] - 1) for row in of]
        own = [abs(row["own_ratio"] - 1) for row in of]
        inside = [value for row in of for value in row["covered"].values()]
        found = [value for value in inside if value is not None]
        names = [row["named"] for row in of if row["named"] is not None]
        cells = (
            kind,
            n,
            f"{sum(x <= RATE for x in rates)} of {len(rates)}" if rates else "",
            f"{max(rates):.2%}" if rates else "",
            sum(x <= DELAY_S for x in delays),
            f"{max(delays) * 1e3:.2f}",
            f"{sum(names)} of {len(names)}" if names else "",
            f"{sum(found)} of {len(found)}" if found else "",
            len(inside) - len(found) if inside else "",
            sum(x <= GOODPUT for x in goodputs),
            f"{max(goodputs):.1%}",
            f"{sum(x <= GOODPUT for x in own)} of {n}, {max(own):.1%}",
            sum(bool(row["doubts"]) for row in of),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines).replace("%", " %").replace("  %", " %") + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
