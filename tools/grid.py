"""Measures controls on the paths of a grid, and says where `auto` misses its targets.

Without options it writes the tables of docs/what-to-use/grid.md from what was measured of a part of the grid, which
docs/what-to-use/grid.json keeps. ``--measure`` first runs what is not there yet, ``--again CONTROL`` a control anew.
``--kernel`` is for docs/what-to-use/kernel-grid.md instead: the kernel's controls over emulated links, as root (hours).
What was interrupted goes on where it was. whole_grid.py is for the whole grid.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import files
from whyloss.harm import harm
from whyloss.scenario import Scenario
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from whyloss.stacks import MeasuredRun
    from whyloss.stacks.measure import Row

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "what-to-use" / "grid.md"
KERNEL_PAGE = PAGE.with_name("kernel-grid.md")
README = ROOT / "README.md"
#: Tables stand between ``<!-- grid: NAME -->`` and ``<!-- grid: end -->``.
BLOCK = re.compile(
    r"(<!-- grid: (targets|misses|slower|agreement|cells|summary) -->\n).*?(<!-- grid: end -->)", re.DOTALL
)

#: What each control is made of in the engine; names are the kernel's where it has the same.
CONTROLS: dict[str, dict[str, object]] = {
    "cubic": {"scheme": "cubic"},
    "bbr": {"scheme": "bbr"},
    "wl_cubic_ld": {"congestion": "cubic", "differentiator": "lda-eq", "reaction": "keep", "timeout": "aware"},
    "wl_checksum": {"scheme": "checksum-ld-hardened", "timeout": "aware"},
    "auto": {"scheme": "auto"},
    "auto-alone": {"scheme": "auto", "receiver": "plain", "differentiator": "none"},
}
OURS = "auto"
#: The same where the other end has nothing of it.
ALONE = "auto-alone"

#: How often each kind is run: what comes beside another flow depends on who begins first.
RUNS = {"one": 3, "five": 3, "beside": 9, "object": 30, "page": 30}
#: What is measured in the kernel, and what a flow sends there at least, in seconds.
KERNEL_CONTROLS = ("cubic", "bbr", "wl_auto")
KERNEL_OURS = "wl_auto"
KERNEL_SECONDS = 6
#: How long an object or a page may take, in seconds.
KERNEL_PATIENCE = 60
#: Mbit/s up to which three times as many are sent at a time.
KERNEL_SLOW = 10
#: Rates and round trips there, and those at which there are several flows.
KERNEL_PAIRS = ((10, 20), (1, 50), (100, 50), (10, 200), (100, 5))
KERNEL_SEVERAL = ((10, 20), (100, 50))

#: Mbit/s, round trips in ms, queues in bandwidth-delay products (5 packets at least), per cent.
RATES = (1, 10, 100, 1000)
TRIPS = (5, 20, 50, 200)
QUEUES = (0.0, 0.5, 1.0, 4.0)
SHARES = (0.1, 1.0, 5.0, 10.0)
EFFECTS = {"damage": "damaged", "erase": "erased"}
PATTERNS = ("single", "bursts")
COARSE = ((1, 50), (10, 20), (100, 50), (100, 200), (1000, 5))
#: Octets of a packet on the wire, packets of a mean burst of errors.
PACKET = 1500
BURST = 8
#: What leaves at once in the simulator, as in Linux.
PACING_BURST = "1 ms"
#: What short transfers let go before they pace, as in Linux. Flows without end pace everything.
UNPACED = {"object": 10, "page": 10}
#: Packets of a run without end, where sixty round trips do not take more.
MOST_PACKETS = 150_000
OBJECT, PAGE_OBJECTS, PAGE_OBJECT = "1 MB", 6, "64 kB"
KINDS = ("one", "five", "beside", "object", "page")

BASE = """
[scenario]
description = "A control on one path of the grid"
seed = 2026
duration = "10 s"
[path]
rate = "10 Mbps"
delay = "10 ms"
queue = "17 pkt"
access.rate = "10 Gbps"
[[flow]]
profile = "linux"
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a control is measured."""

    rate: int
    trip: int
    queue: float
    effect: str
    share: float
    pattern: str

    @property
    def product(self) -> float:
        """What the path holds without a queue, in packets."""
        return self.rate * 1e3 * self.trip / 8 / PACKET

    @property
    def packets(self) -> int:
        """What its queue holds."""
        return max(5, round(self.queue * self.product))

    @property
    def seconds(self) -> float:
        """How long a flow without end is watched."""
        enough = MOST_PACKETS * 8 * PACKET / (self.rate * 1e6)
        return max(min(20, enough), 60 * self.trip / 1000)

    def fields(self, kind: str, control: str) -> dict[str, object]:
        """What a scenario has otherwise than the base."""
        buffer = f"{max(6e6, 8 * PACKET * (self.product + self.packets)):.0f} B"
        tcp = {
            "receive_buffer": buffer,
            "send_buffer": buffer,
            "pacing_burst": PACING_BURST,
            "unpaced_segments": UNPACED.get(kind, 0),
        }
        own = {"profile": "linux", "name": "judged", "tcp": tcp, **CONTROLS[control]}
        other = {"profile": "linux", "name": "neighbour", "tcp": tcp, "scheme": "cubic"}
        seconds = self.seconds
        flows: list[dict[str, object]]
        match kind:
            case "one":
                flows = [own]
            case "five":
                flows = [{**own, "count": 5, "start_spread": "200 ms"}]
            case "beside":
                flows = [{**own, "start_spread": "200 ms"}, {**other, "start_spread": "200 ms"}]
                seconds *= 2
            case "object":
                flows, seconds = [{**own, "size": OBJECT}], 120
            case _:
                flows, seconds = [{**own, "size": PAGE_OBJECT, "count": PAGE_OBJECTS}], 120
        fields: dict[str, object] = {
            "scenario.duration": f"{seconds} s",
            "path.rate": f"{self.rate} Mbps",
            "path.delay": f"{self.trip / 2} ms",
            "path.queue": f"{self.packets} pkt",
            "flow": flows,
        }
        if self.share:
            fields["path.forward.channel"] = {"effect": self.effect, **self.errors()}
        return fields

    def errors(self) -> dict[str, object]:
        """The channel's."""
        if self.pattern == "single":
            return {"loss": self.share / 100}
        share = self.share / 100
        return {"markov": {"stay_good": 1 - share / (1 - share) / BURST, "stay_bad": 1 - 1 / BURST}}


def paths(coarse: bool) -> Iterator[Place]:
    """All; small queues that come to the same are one."""
    pairs: Iterable[tuple[int, int]] = COARSE if coarse else [(rate, trip) for rate in RATES for trip in TRIPS]
    for rate, trip in pairs:
        seen = set()
        for queue in QUEUES:
            clean = Place(rate, trip, queue, "damage", 0, "single")
            if clean.packets in seen:
                continue
            seen.add(clean.packets)
            yield clean
            for effect in EFFECTS:
                for pattern in PATTERNS:
                    for share in SHARES:
                        path = Place(rate, trip, queue, effect, share, pattern)
                        few = share in (1.0, 5.0) if pattern == "single" else share == 1.0
                        if not coarse or few:
                            yield path


def kernel_keys(controls: Sequence[str]) -> Iterator[Key]:
    """What is measured over emulated links: flows without end take as long as they are watched."""
    errors = [("damage", 0.0, "single"), ("damage", 1.0, "single"), ("damage", 5.0, "single")]
    errors += [("erase", 1.0, "single"), ("damage", 1.0, "bursts")]
    for rate, trip in KERNEL_PAIRS:
        for queue in (0.0, 1.0):
            if queue and Place(rate, trip, queue, "damage", 0, "single").packets == 5:
                continue  # As the one before.
            for effect, share, pattern in errors:
                path = Place(rate, trip, queue, effect, share, pattern)
                kinds = ["one"]
                if (effect, pattern) == ("damage", "single") and share < 5:
                    kinds += ["object", "page"]
                    if (rate, trip) in KERNEL_SEVERAL:
                        kinds += ["five", "beside"]
                yield from ((path, kind, control) for kind in kinds for control in controls)


@dataclass(frozen=True, slots=True)
class Cell:
    """What a control did on a path: one value a run."""

    goodput: list[float]
    """In bit/s, of all flows judged."""
    waiting: list[float]
    """Mean delay in the queue, in ms."""
    others: list[float]
    """Goodput of the neighbour, in bit/s."""
    times: list[float]
    """Until everything had arrived, in ms; infinite if it had not."""


Key = tuple[Place, str, str]
#: Cells that are measured between two writes of the record.
PART = 80


class Record:
    """What was measured, in a file that is written after each part."""

    def __init__(self, file: Path) -> None:
        """Reads what is there."""
        self.file = file
        self.cells: dict[Key, Cell] = {}
        #: Of the runs over emulated links, those whose link did not keep its time.
        self.late: dict[Key, int] = {}
        rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
        for *path, kind, control, goodput, waiting, others, times, late in (
            row if isinstance(row[-1], int) else [*row, 0] for row in rows
        ):
            key = (Place(*path), kind, control)
            self.cells[key] = Cell(goodput, waiting, others, times)
            if late:
                self.late[key] = late

    def write(self) -> None:
        """Keeps it."""
        rows = [
            [
                p.rate,
                p.trip,
                p.queue,
                p.effect,
                p.share,
                p.pattern,
                kind,
                control,
                *([float(f"{value:.5g}") for value in values] for values in (c.goodput, c.waiting, c.others, c.times)),
                *([late] if (late := self.late.get((p, kind, control), 0)) else []),
            ]
            for (p, kind, control), c in self.cells.items()
        ]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        files.write(self.file, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")

    def measure(self, keys: Sequence[Key], runs: dict[str, int], threads: int | None) -> None:
        """Runs what is not there."""
        for kind in KINDS:
            wanted = [key for key in keys if key[1] == kind and key not in self.cells]
            for begin in range(0, len(wanted), PART):
                part = wanted[begin : begin + PART]
                variants = {f"{n}": path.fields(kind, control) for n, (path, _, control) in enumerate(part)}
                sweep = Sweep(Scenario.parse(BASE), runs=runs[kind]).variants("cell", variants)
                self.cells |= reduced(part, sweep.run(threads=threads))
                self.write()

    def measure_kernel(self, keys: Sequence[Key], parallel: int) -> None:
        """Sends what is not there over emulated links."""
        from whyloss.cli.console import Watch
        from whyloss.stacks import Job, run_jobs

        wanted = [key for key in keys if key not in self.cells]
        parts = [[key for key in wanted if key[0] == path] for path in dict.fromkeys(key[0] for key in wanted)]
        for done, part in enumerate(parts):
            jobs = [
                [
                    Job(on_kernel(path, kind), run, "kernel", {"judged": control, "neighbour": "cubic"})
                    for run in range(RUNS[kind])
                ]
                for path, kind, control in part
            ]
            # What is fast needs the processor, what is slow only time.
            at_a_time = parallel if part[0][0].rate > KERNEL_SLOW else 3 * parallel
            with Watch(f"path {done + 1} of {len(parts)}") as watch:
                flat = [job for group in jobs for job in group]
                outcomes = iter(
                    run_jobs(flat, ROOT / "out" / "store" / "real", parallel=at_a_time, progress=watch.count)
                )
            for key, group in zip(part, jobs, strict=True):
                runs = [next(outcomes) for _ in group]
                # A link that did not keep its time says nothing; where none did, all count and the page says so.
                kept = [outcome for outcome in runs if outcome.valid] or runs
                self.late[key] = sum(not outcome.valid for outcome in runs)
                self.cells[key] = over_links(kept, short=key[1] in ("object", "page"))
            self.write()


def on_kernel(path: Place, kind: str) -> Scenario:
    """What is sent over an emulated link: the kernel sizes its buffers itself."""
    fields = path.fields(kind, "cubic")
    flows = fields["flow"]
    assert isinstance(flows, list)
    seconds = max(KERNEL_SECONDS, 60 * path.trip / 1000) * (2 if kind == "beside" else 1)
    if kind in ("object", "page"):
        seconds = KERNEL_PATIENCE
    plain = [{name: value for name, value in flow.items() if name != "tcp"} for flow in flows]
    return Scenario.parse(BASE).replace({**fields, "flow": plain, "scenario.duration": f"{seconds} s"})


def over_links(runs: Sequence[MeasuredRun], *, short: bool) -> Cell:
    """A cell of runs over emulated links."""

    def rows(run: MeasuredRun, flow: str) -> list[Row]:
        return [row for row in run.transfers if row.transfer.split(".")[0] == flow]

    goodputs = [[sum(row.goodput_bps for row in rows(run, flow)) for run in runs] for flow in ("judged", "neighbour")]
    times = [max(_time(asdict(row)) for row in rows(run, "judged")) for run in runs] if short else []
    return Cell(goodputs[0], [run.mean_wait_ms for run in runs], goodputs[1], times)


def reduced(part: Sequence[Key], results: Any) -> dict[Key, Cell]:
    """Cells of what was run."""
    columns = ["cell", "run", "transfer", "octets_delivered", "goodput_bps", "start_ns", "finished_ns", "octets"]
    transfers: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in results.transfers.to_polars().select(columns).iter_rows(named=True):
        transfers[int(row["cell"]), row["run"]].append(row)
    waits: dict[int, list[float]] = defaultdict(list)
    for row in results.links.to_polars().iter_rows(named=True):
        if row["link"] == "path" and row["direction"] == "forward":
            path = part[int(row["cell"])][0]
            waits[int(row["cell"])].append(row["mean_queue_octets"] * 8e-3 / path.rate)
    found = {}
    for n, key in enumerate(part):
        mine = [transfers[pair] for pair in sorted(transfers) if pair[0] == n]
        judged = [[row for row in rows if row["transfer"].startswith("judged")] for rows in mine]
        others = [[row for row in rows if row["transfer"].startswith("neighbour")] for rows in mine]
        found[key] = Cell(
            [sum(row["goodput_bps"] for row in rows) for rows in judged],
            waits[n],
            [sum(row["goodput_bps"] for row in rows) for rows in others],
            [max(_time(row) for row in rows) for rows in judged],
        )
    return found


def _time(row: dict[str, Any]) -> float:
    return float("inf") if row["finished_ns"] is None else (row["finished_ns"] - row["start_ns"]) / 1e6


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest that so many do not exceed."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]


def lost(beside: Sequence[float], among: Sequence[float]) -> float:
    """What a neighbour loses, from as many runs of each: some over emulated links do not count."""
    runs = min(len(beside), len(among))
    return harm(beside[:runs], among[:runs]).value


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a target asks of a control on a path, and what it got."""

    target: str
    value: float
    bound: float
    met: bool


def verdicts(cells: dict[Key, Cell], path: Place, ours: str) -> Iterator[Verdict]:
    """By each target for which there are cells, of the control and of those that it is held against."""

    def measured(kind: str) -> bool:
        return all((path, kind, control) in cells for control in (ours, "bbr", "cubic"))

    def mean(kind: str, control: str, of: Callable[[Cell], list[float]]) -> float:
        return statistics.fmean(of(cells[path, kind, control]))

    for kind in ("one", "five"):
        if not measured(kind):
            continue
        rate, bbr, cubic = (mean(kind, control, lambda cell: cell.goodput) for control in (ours, "bbr", "cubic"))
        bound = 0.98 * cubic
        if path.share and path.effect == "damage":
            bound = 0.98 * max(bbr, cubic)
        elif path.share and path.share <= 2:
            bound = max(bound, 0.95 * bbr)
        yield Verdict(f"goodput, {kind}", rate / bound, 1, rate >= bound)
        wait, longest = (mean(kind, control, lambda cell: cell.waiting) for control in (ours, "bbr"))
        bound = max(longest / 2, 5)
        yield Verdict(f"queue, {kind}", wait / bound, 1, wait <= bound)
    if measured("beside"):
        among = cells[path, "beside", "cubic"].others
        taken, bbr = (lost(cells[path, "beside", control].others, among) for control in (ours, "bbr"))
        # Where BBR itself takes next to nothing, half of it is noise.
        bound = max(bbr / 2, 0.02) if path.share else 0.1
        yield Verdict("harm", taken, bound, taken <= bound)
        # Nobody is harmed by a control that starves.
        bound = 0.98 * mean("beside", "cubic", lambda cell: cell.goodput)
        rate = mean("beside", ours, lambda cell: cell.goodput)
        yield Verdict("goodput, beside", rate / bound, 1, rate >= bound)
    for kind in ("object", "page"):
        if not measured(kind):
            continue
        for name, share in (("median", 0.5), ("p99", 0.99)):
            time, bbr = (percentile(cells[path, kind, control].times, share) for control in (ours, "bbr"))
            yield Verdict(f"{kind}, {name}", time / bbr, 1, time <= bbr * 1.005)


AXES: dict[str, Callable[[Place], str]] = {
    "rate": lambda path: f"{path.rate} Mbit/s",
    "round trip": lambda path: f"{path.trip} ms",
    "queue": lambda path: f"{path.queue:g} BDP" if path.queue else "5 packets",
    "errors": lambda path: f"{path.share:g} % {EFFECTS[path.effect]}" if path.share else "none",
    "pattern": lambda path: path.pattern,
}


def summary(cells: dict[Key, Cell], ours: str) -> list[str]:
    """Cells that meet each target, by what is varied."""
    found = [
        (path, verdict) for path in dict.fromkeys(key[0] for key in cells) for verdict in verdicts(cells, path, ours)
    ]
    targets = list(dict.fromkeys(verdict.target for _, verdict in found))
    lines = [f"| {ours}: met of all | " + " | ".join(targets) + " |", "|---|" + "---:|" * len(targets)]
    groups: list[tuple[str, Callable[[Place], str]]] = [("all", lambda _: "all"), *AXES.items()]
    for axis, label in groups:
        for value in dict.fromkeys(label(path) for path, _ in found):
            row = []
            for target in targets:
                own = [v.met for path, v in found if v.target == target and label(path) == value]
                row.append(f"{sum(own)}/{len(own)}")
            lines.append(f"| {axis}: {value} | " + " | ".join(row) + " |")
    return lines


def worst(cells: dict[Key, Cell], ours: str, count: int) -> list[str]:
    """The cells that miss by the most, for each target."""
    lines = ["| target | path | value | bound |", "|---|---|---:|---:|"]
    found = [
        (path, verdict) for path in dict.fromkeys(key[0] for key in cells) for verdict in verdicts(cells, path, ours)
    ]
    for target in dict.fromkeys(verdict.target for _, verdict in found):
        missed = [(path, v) for path, v in found if v.target == target and not v.met]
        low = target.startswith("goodput")
        missed.sort(key=lambda pair: (pair[1].value - pair[1].bound) * (1 if low else -1))
        for path, v in missed[:count]:
            lines.append(f"| {target} | {name(path)} | {v.value:.2f} | {v.bound:.2f} |")
    return lines


@dataclass(frozen=True, slots=True)
class Comparison:
    """A control beside what CUBIC does in its place."""

    what: str
    path: Place
    more: float
    """Time that it takes more, as a share of CUBIC's; below 0 where it is faster."""
    ours: str
    cubic: str


def comparisons(cells: dict[Key, Cell], ours: str) -> Iterator[Comparison]:
    """What there is to compare for whoever takes it for CUBIC."""
    for path, kind, control in cells:
        if control != ours or (path, kind, "cubic") not in cells:
            continue
        both = cells[path, kind, ours], cells[path, kind, "cubic"]
        if kind in ("object", "page"):
            for title, share in (("median", 0.5), ("p99", 0.99)):
                times = [percentile(cell.times, share) for cell in both]
                # Where neither arrives, neither is slower.
                more = 0.0 if times[0] == times[1] else times[0] / times[1] - 1
                yield Comparison(
                    f"{kind}, {title}",
                    path,
                    more,
                    *(f"{time:.0f} ms" if time < float("inf") else "inf" for time in times),
                )
        else:
            rates = [statistics.fmean(cell.goodput) / 1e6 for cell in both]
            more = rates[1] / rates[0] - 1
            yield Comparison(f"goodput, {kind}", path, more, *(f"{rate:.3g} Mbit/s" for rate in rates))


def slower(cells: dict[Key, Cell], ours: str) -> list[str]:
    """Where whoever takes it for CUBIC needs more than 2 % more time: the worst first."""
    asked = list(comparisons(cells, ours))
    found = sorted((one for one in asked if one.more > 0.02), key=lambda one: -one.more)
    lines = [f"In {len(found)} of {len(asked)} comparisons.", "", f"| what | path | `{ours}` | `cubic` | more time |"]
    lines.append("|---|---|---:|---:|---:|")
    lines += [f"| {one.what} | {name(one.path)} | {one.ours} | {one.cubic} | {100 * one.more:.0f} % |" for one in found]
    return lines


def each(cells: dict[Key, Cell], ours: str) -> list[str]:
    """What one flow of each control carries on each path, and what its neighbour loses."""
    lines = [
        f"| path | queue | errors | `{ours}` | `bbr` | `cubic` | harm: `{ours}` / `bbr` | misses |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]

    def alone(path: Place, control: str) -> str:
        cell = cells[path, "one", control]
        return f"{statistics.fmean(cell.goodput) / 1e6:.3g} · {statistics.fmean(cell.waiting):.0f} ms"

    for path in dict.fromkeys(key[0] for key in cells):
        harms: list[float] = []
        if (path, "beside", ours) in cells:
            among = cells[path, "beside", "cubic"].others
            harms = [lost(cells[path, "beside", control].others, among) for control in (ours, "bbr")]
        row = [
            f"{path.rate} Mbit/s, {path.trip} ms",
            AXES["queue"](path),
            AXES["errors"](path) + (", bursts" if path.pattern == "bursts" else ""),
            *(alone(path, control) for control in (ours, "bbr", "cubic")),
            " / ".join(f"{100 * value:+.0f} %".replace("-", "−") for value in harms),
            ", ".join(verdict.target for verdict in verdicts(cells, path, ours) if not verdict.met),
        ]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def agreement(measured: dict[Key, Cell], simulated: dict[Key, Cell]) -> list[str]:
    """What one flow carries over emulated links over what it carries in the simulator, on the paths that both have."""
    lines = ["| control | paths | median | within a tenth | least | most |", "|---|---:|---:|---:|---:|---:|"]
    for control in KERNEL_CONTROLS:
        ratios = {}
        for (path, kind, by), cell in measured.items():
            same = simulated.get((path, kind, OURS if control == KERNEL_OURS else control))
            if (kind, by) == ("one", control) and same:
                ratios[path] = statistics.fmean(cell.goodput) / statistics.fmean(same.goodput)
        if not ratios:
            continue
        values = sorted(ratios.values())
        near = sum(abs(value - 1) <= 0.1 for value in values)
        ends = (
            f"{ratios[path]:.2f} ({name(path)})"
            for path in (min(ratios, key=lambda path: ratios[path]), max(ratios, key=lambda path: ratios[path]))
        )
        lines.append(f"| `{control}` | {len(values)} | {statistics.median(values):.2f} | {near} | {' | '.join(ends)} |")
    return lines


def brief(cells: dict[Key, Cell], controls: Sequence[str]) -> str:
    """The share of each link that one flow carries, with the longest queue measured."""
    names = " | ".join(f"`{control}`" for control in controls)
    lines = [f"| link | packets damaged | {names} |", "|---|---:|" + "---:|" * len(controls)]
    for rate, trip in KERNEL_PAIRS:
        queues = [path.queue for path, _, _ in cells if (path.rate, path.trip) == (rate, trip)]
        for queue, share in ((max(queues), share) for share in (0.0, 1.0, 5.0) if queues):
            at = Place(rate, trip, queue, "damage", share, "single")
            carried = (statistics.fmean(cells[at, "one", control].goodput) / rate / 1e4 for control in controls)
            lines.append(f"| {rate} Mbit/s, {trip} ms | {share:g} % | {' | '.join(f'{of:.0f} %' for of in carried)} |")
    return "\n".join(lines)


def page(
    file: Path,
    cells: dict[Key, Cell],
    controls: Sequence[str],
    count: int,
    runs: str = "",
    more: dict[str, str] | None = None,
) -> str:
    """The page with its tables, which say most of the first control, with what there is to say of the runs and more."""
    ours = controls[0]
    met = ["\n".join(summary(judging(cells, control), control)) for control in controls]
    tables = {
        "targets": "\n\n".join([*met, runs] if runs else met),
        "misses": "\n".join(worst(judging(cells, ours), ours, count)),
        "slower": "\n".join(slower(judging(cells, ours), ours)),
        "cells": "\n".join(each(judging(cells, ours), ours)),
    }
    return filled(file, tables | (more or {}))


def filled(file: Path, tables: dict[str, str]) -> str:
    """The page with its blocks filled."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", file.read_text(encoding="utf-8"))


def judging(cells: dict[Key, Cell], control: str) -> dict[Key, Cell]:
    """The cells of paths and kinds in which a control was measured."""
    return {key: cell for key, cell in cells.items() if (key[0], key[1], control) in cells}


def name(path: Place) -> str:
    """In words."""
    return ", ".join(label(path) for label in AXES.values())


def on_links(keys: Sequence[Key], again: Sequence[str], parallel: int, count: int) -> None:
    """The page of the kernel's controls, after measuring what is missing of these cells."""
    record = Record(KERNEL_PAGE.with_suffix(".json"))
    for key in [key for key in keys if key[2] in again]:
        record.cells.pop(key, None)
        record.late.pop(key, None)
    if keys:
        record.measure_kernel(keys, parallel)
    if any(key[2] == KERNEL_OURS for key in record.cells):
        late = sum(record.late.values())
        none = [key for key, n in record.late.items() if n == len(record.cells[key].goodput) == RUNS[key[1]]]
        sent = sum(len(cell.goodput) for cell in record.cells.values()) + late - sum(record.late[key] for key in none)
        runs = f"Of {sent:,} transfers and pages "
        runs += f"{late} went over links that did not keep their time" if late else "all went over links that kept time"
        runs += f"\nand do not count, but for {len(none)} cells in which none did." if late else "."
        simulated = Record(PAGE.with_suffix(".json")).cells
        more = {"agreement": "\n".join(agreement(record.cells, simulated))}
        files.write(KERNEL_PAGE, page(KERNEL_PAGE, record.cells, [KERNEL_OURS], count, runs, more))
        files.write(README, filled(README, {"summary": brief(judging(record.cells, KERNEL_OURS), KERNEL_CONTROLS)}))


def main() -> None:
    """Measures if asked to, and writes or tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run what the record does not have")
    every = list(dict.fromkeys([*CONTROLS, *KERNEL_CONTROLS]))
    parser.add_argument("--again", action="append", default=[], choices=every, help="measure this control anew")
    parser.add_argument(
        "--only", action="append", choices=every, help="judge this control; with --kernel: measure this one"
    )
    parser.add_argument("--kind", action="append", choices=KINDS, help="measure this kind")
    parser.add_argument("--worst", type=int, default=5, help="cells to show for each target")
    parser.add_argument("--threads", type=int, help="runs at a time")
    parser.add_argument("--kernel", action="store_true", help="send what is missing over emulated links first")
    parser.add_argument("--parallel", type=int, default=2, help="fast transfers over emulated links at a time")
    chosen = parser.parse_args()
    judged = chosen.only or [OURS, ALONE]
    record = Record(PAGE.with_suffix(".json"))
    if chosen.measure:
        controls = dict.fromkeys(["cubic", "bbr", *judged])
        keys = [(p, k, c) for p in paths(coarse=True) for k in chosen.kind or KINDS for c in controls]
        record.cells = {
            key: cell for key, cell in record.cells.items() if key[2] not in chosen.again or key not in keys
        }
        record.measure(keys, RUNS, chosen.threads)
    if chosen.kernel:
        every_kind = kernel_keys(chosen.only or KERNEL_CONTROLS)
        keys = [key for key in every_kind if key[1] in (chosen.kind or KINDS)]
        on_links(keys, chosen.again, chosen.parallel, chosen.worst)
        return
    files.write(PAGE, page(PAGE, record.cells, judged, chosen.worst))
    on_links([], [], chosen.parallel, chosen.worst)


if __name__ == "__main__":
    main()
