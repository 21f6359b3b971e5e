"""Measures what `lbe` gains and takes, beside what plain differentiation does, in the worlds of docs/neighbourly.

``--measure`` runs them first and keeps the goodput of each run in docs/neighbourly/measured.json; without it table and
figure are made from what was measured before.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from whyloss import Scenario, Sweep, files, plots
from whyloss.harm import gain, harm
from whyloss.stats import function_of_means

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from whyloss.stats import Mean, Sample

FOLDER = Path(__file__).parent.parent / "docs" / "neighbourly"
BLOCK = re.compile(r"(<!-- table (\w[\w-]*): generated -->\n).*?(<!-- table: end -->)", re.DOTALL)
RUNS = 20
DIGITS = 5
# The target; and a plain gain below the last one is too small for shares of it.
KEPT, HARM, WORTH = 0.8, 0.05, 0.05
DESIGN, AMONG = "Garcia, 1 Mbps", "among themselves"
KINDS = STANDARD, PLAIN, LBE = "standard", "plain", "lbe"

# The window's growth and whatever else a profile of that time had, for the standard TCP of each era.
ERAS: Mapping[str, Mapping[str, Any]] = {
    "freebsd45": {"profile": "freebsd45", "scheme": "newreno", "congestion": "reno", "tcp": {"send_buffer": "32 KiB"}},
    "freebsd45, 64 KiB": {"profile": "freebsd45", "scheme": "newreno", "congestion": "reno"},
    "ns2": {
        "profile": "ns2",
        "scheme": "newreno",
        "congestion": "newreno",
        "tcp": {"receive_buffer": "200 kB", "initial_ssthresh": "200 kB", "window_scaling": True},
    },
    "newreno": {"profile": "modern", "congestion": "newreno"},
    "cubic": {"profile": "modern", "congestion": "cubic"},
}


@dataclass(frozen=True)
class World:
    """A bottleneck, the flows that share it, and the errors behind it."""

    group: str
    name: str
    ours: int
    others: int
    rate: str
    delay: str
    queue: int
    era: str = "freebsd45"
    ber: float = 0.0
    loss: float = 0.0
    lasts: str = "100 s"
    verdict: str = "reported"
    at_once: bool = True
    start: str = "0 s"
    # Of a dumbbell: the delay of each access link, and what the others' last links lose, if not the same.
    access: Sequence[str] = ()
    others_loss: float | None = None
    parking: bool = False

    def flow(self, kind: str, name: str) -> dict[str, Any]:
        """A flow of a kind."""
        era = dict(ERAS[self.era])
        if kind == STANDARD:
            return {"name": name, **era}
        own: dict[str, Any] = {**era, "differentiator": self.verdict, "reaction": "keep", "receiver": "checksum"}
        if kind == LBE:
            own |= {"congestion": "lbe", "parameters": {"lbe": {"standard": STANDARDS[self.era]}}}
        if self.at_once:
            own["tcp"] = {**own.get("tcp", {}), "report_response": "immediate"}
        return {"name": name, **own}

    def flows(self, kind: str) -> Iterator[dict[str, Any]]:
        """All flows, of which ours are of a kind."""
        spread = "10 ms" if self.era.startswith("freebsd45") else "1 s"
        for number in range(self.others):
            yield {**self.flow(STANDARD, f"other{number}"), "start_spread": spread}
        for number in range(self.ours):
            yield {**self.flow(kind, f"our{number}"), "start": self.start, "start_spread": spread}

    def scenario(self, kind: str) -> dict[str, Any]:
        """The world in which ours are of a kind."""
        base: dict[str, Any] = {"scenario": {"seed": 2004, "duration": self.lasts}}
        flows = list(self.flows(kind))
        shared = {"rate": self.rate, "delay": self.delay, "queue": f"{self.queue} pkt"}
        if not self.access:
            channel = {"ber": self.ber} if self.ber else {"loss": self.loss, "effect": "damage"}
            return {**base, "path": {**shared, "forward": {"channel": channel}}, "flow": flows}
        hosts: list[dict[str, Any]] = []
        links: list[dict[str, Any]] = [{"name": "middle", "between": ["left", "right"], **shared}]
        if self.parking:
            links += [
                {"name": "before", "between": ["first", "left"], **shared},
                {"name": "after", "between": ["right", "last"], **shared},
            ]
        for number, flow in enumerate(flows):
            mine = flow["name"].startswith("our")
            loss = self.loss if mine or self.others_loss is None else self.others_loss
            source, sink = f"source{number}", f"sink{number}"
            flow |= {"from": source, "to": sink}
            hosts += [{"name": source}, {"name": sink}]
            # Half of the flows of a parking lot, of either kind, cross its first link; all its last one.
            enter, leave = ("first" if number % 2 else "left", "last") if self.parking else ("left", "right")
            near: dict[str, Any] = {"rate": "10 Mbps", "queue": "50 pkt"}
            links += [
                {"name": source, "between": [source, enter], "delay": self.access[number % len(self.access)], **near},
                {
                    "name": sink,
                    "between": [leave, sink],
                    "delay": "5 ms",
                    "forward": {"channel": {"loss": loss, "effect": "damage"}},
                    **near,
                },
            ]
        routers = [
            {"name": name} for name in (["left", "right", "first", "last"] if self.parking else ["left", "right"])
        ]
        return {**base, "host": hosts, "router": routers, "link": links, "flow": flows}

    def run(self, kind: str) -> dict[str, list[float]]:
        """Mean goodput of ours and of the others in Mbit/s, and Jain's index of ours: one value a run each."""
        table = Sweep(Scenario(self.scenario(kind)), runs=RUNS).run(store="out/store").transfers.to_polars()
        values = {}
        for whose, count in (("our", self.ours), ("other", self.others)):
            part = table.filter(table["transfer"].str.starts_with(whose)).sort("run", "transfer")
            # Where there is nobody, no values.
            values[whose] = part["goodput_bps"].to_numpy().reshape((RUNS, count) if count else (0, 1)) / 1e6
        ours = values["our"]
        jain = ours.sum(axis=1) ** 2 / (self.ours * (ours**2).sum(axis=1))
        found = {"ours": ours.mean(axis=1), "others": values["other"].mean(axis=1), "jain": jain}
        return {name: [float(f"{value:.{DIGITS}g}") for value in array] for name, array in found.items()}


# Which standard control moves the standard part.
STANDARDS = {"freebsd45": "reno", "freebsd45, 64 KiB": "reno", "ns2": "newreno", "newreno": "newreno", "cubic": "cubic"}
BERS = {8.33e-7: "1 %", 4.167e-6: "5 %", 8.33e-6: "10 %", 1.25e-5: "15 %"}


def garcia() -> Iterator[World]:
    """One flow alone, and beside four others (one at 64 kbit/s)."""
    for rate, queue, others in (("1 Mbps", 20, 4), ("384 kbps", 20, 4), ("64 kbps", 8, 1)):
        for delay in ("10 ms", "50 ms", "200 ms"):
            for ber, percent in BERS.items():
                world = World(f"Garcia, {rate}", f"{delay}, {percent}", 1, 0, rate, delay, 20, ber=ber)
                yield world
                if rate != "64 kbps":
                    large = replace(world, era="freebsd45, 64 KiB", at_once=False, queue=99)
                    yield replace(large, group="Garcia, 99 packets, third duplicate", name=f"{rate}, {world.name}")
                yield replace(world, others=others, queue=queue)
    for delay in ("10 ms", "50 ms", "200 ms"):
        for ber in (4.167e-6, 8.33e-6):
            world = World("", f"{delay}, {BERS[ber]}", 1, 4, "384 kbps", delay, 20, ber=ber)
            yield replace(world, group="Garcia, oracle", verdict="oracle")
            yield replace(world, group="Garcia, third duplicate", at_once=False)


def tcp_real() -> Iterator[World]:
    """Ten flows over 10 Mbit/s, half of them ours or one."""
    base = World("", "", 5, 5, "10 Mbps", "25 ms", 50, era="ns2", at_once=False, lasts="60 s", access=("5 ms",))
    for loss in (0.005, 0.01, 0.02, 0.05):
        name = f"{100 * loss:g} %"
        yield replace(base, group="TCP-Real, alone", name=name, loss=loss, ours=1, others=0)
        yield replace(base, group="TCP-Real, 5 and 5", name=name, loss=loss)
        yield replace(base, group="TCP-Real, 1 and 9", name=name, loss=loss, ours=1, others=9)
        yield replace(base, group="TCP-Real, oracle", name=name, loss=loss, verdict="oracle")
        yield replace(base, group="TCP-Real, others wired", name=name, loss=loss, others_loss=0.0)
        spread = ("5 ms", "5 ms", "40 ms", "40 ms", "100 ms", "100 ms")
        yield replace(base, group="TCP-Real, round trips 70 to 260 ms", name=name, loss=loss, access=spread)
        yield replace(base, group="TCP-Real, parking lot", name=name, loss=loss, parking=True)


def others() -> Iterator[World]:
    """Today's TCPs, short queues, other rates, and no errors at all."""
    dumbbell = World("", "", 5, 5, "10 Mbps", "25 ms", 50, lasts="60 s", access=("5 ms",))
    for era in ("newreno", "cubic"):
        for loss in (0.01, 0.02, 0.05):
            yield replace(dumbbell, group=f"today, {era}", name=f"5 and 5, {100 * loss:g} %", era=era, loss=loss)
    one = World("5 packets of queue", "", 1, 1, "5 Mbps", "30 ms", 5, era="newreno")
    for loss in (0.005, 0.02):
        yield replace(one, name=f"5 Mbps, 30 ms, {100 * loss:g} %", loss=loss)
        yield replace(one, name=f"5 Mbps, 30 ms, {100 * loss:g} %, after 20 s", loss=loss, start="20 s")
        yield replace(one, name=f"20 Mbps, 5 ms, {100 * loss:g} %", loss=loss, rate="20 Mbps", delay="5 ms")
    yield World("no errors", "1 Mbps, 50 ms", 1, 4, "1 Mbps", "50 ms", 20)
    yield replace(dumbbell, group="no errors", name="10 Mbps, 5 and 5", era="ns2", at_once=False)
    yield replace(dumbbell, group="no errors", name="10 Mbps, CUBIC", era="cubic")


def kin() -> Iterator[World]:
    """Several of ours alone: how fair are they to each other?"""
    base = World(AMONG, "", 3, 0, "10 Mbps", "25 ms", 50, era="ns2", at_once=False, lasts="60 s", access=("5 ms",))
    for ours in (3, 10):
        for loss in (0.01, 0.05):
            yield replace(base, name=f"{ours} flows, {100 * loss:g} %", ours=ours, loss=loss)


def worlds() -> list[World]:
    """All of them."""
    return [*garcia(), *tcp_real(), *others()]


# --- what was measured -----------------------------------------------------------------------------------------------


def measure() -> None:
    """Runs all worlds."""
    rows = []
    for world in [*worlds(), *kin()]:
        kinds = {kind: world.run(kind) for kind in KINDS}
        rows.append({"group": world.group, "name": world.name, "counts": [world.ours, world.others], **kinds})
        print(world.group, world.name, file=sys.stderr)
    text = ",\n".join(json.dumps(row) for row in rows)
    files.write(FOLDER / "measured.json", f"[\n{text}\n]\n")


@dataclass(frozen=True)
class Outcome:
    """What came of a world."""

    group: str
    name: str
    counts: tuple[int, int]
    ours: Mapping[str, Sample]
    others: Mapping[str, Sample]
    jain: Mapping[str, Sample]

    @property
    def label(self) -> str:
        """What the page calls it."""
        return f"{self.group}{'' if not self.alone or 'alone' in self.group else ', alone'}: {self.name}"

    @property
    def alone(self) -> bool:
        """Nobody is there to be harmed."""
        return self.counts[1] == 0

    def level(self) -> float:
        """What a standard flow has in our place, in Mbit/s."""
        return float(self.ours[STANDARD].mean())

    def gain(self, kind: str) -> Mean:
        """Against a standard flow in the same place."""
        return gain(self.ours[kind], self.ours[STANDARD])

    def harm(self, kind: str) -> Mean:
        """To each of the others."""
        return harm(self.others[kind], self.others[STANDARD])

    def kept(self) -> Mean:
        """The share of the plain gain that `lbe` has."""
        samples = [self.ours[kind] for kind in (LBE, PLAIN, STANDARD)]
        return function_of_means(lambda lbe, plain, standard: (lbe - standard) / (plain - standard), samples)

    def taken(self, kind: str) -> float:
        """The part of the gain that the others have less, in the same unit."""
        if self.alone:
            return 0.0
        ours, others = self.counts
        lost = float(self.others[STANDARD].mean() - self.others[kind].mean())
        return others * lost / (ours * self.level())

    def free(self, kind: str) -> float:
        """The rest: what the path carries more."""
        return self.gain(kind).value - self.taken(kind)

    def at_most(self, harm: float = HARM) -> float:
        """The share of the plain gain that costs the others no more than `harm`: what was idle, and that."""
        if self.alone:
            return 1.0
        ours, others = self.counts
        allowed = harm * others * float(self.others[STANDARD].mean()) / (ours * self.level())
        return (max(self.free(PLAIN), self.free(LBE), 0.0) + allowed) / self.gain(PLAIN).value

    @property
    def gains(self) -> bool:
        """Plain differentiation gains so much that shares of it say something."""
        estimate = self.gain(PLAIN)
        return estimate.value >= WORTH and estimate.interval()[0] > 0


def load() -> list[Outcome]:
    """All outcomes."""
    rows = json.loads((FOLDER / "measured.json").read_text(encoding="utf-8"))
    return [
        Outcome(
            row["group"],
            row["name"],
            (row["counts"][0], row["counts"][1]),
            *({kind: np.array(row[kind][whose]) for kind in KINDS} for whose in ("ours", "others", "jain")),
        )
        for row in rows
    ]


# --- page and figure -------------------------------------------------------------------------------------------------


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.0f}".replace("-", "−").removesuffix("−0") or "0"


def interval(estimate: Mean) -> str:
    """A share and its interval, in percent."""
    low, high = estimate.interval()
    return f"{percent(estimate.value)} ({percent(low)} … {percent(high)})"


def table(outcomes: Iterable[Outcome]) -> str:
    """One row a world."""
    head = [
        "world",
        "standard",
        "plain: gain",
        "taken",
        "`lbe`: gain",
        "taken",
        "kept",
        "at most",
        "harm, plain",
        "harm, `lbe`",
    ]
    rows = [head, ["---", *["--:"] * (len(head) - 1)]]
    for outcome in outcomes:
        beside = not outcome.alone
        rows.append(
            [
                outcome.label,
                f"{outcome.level():.3g}",
                percent(outcome.gain(PLAIN).value),
                percent(outcome.taken(PLAIN)) if beside else "",
                percent(outcome.gain(LBE).value),
                percent(outcome.taken(LBE)) if beside else "",
                interval(outcome.kept()) if outcome.gains else "–",
                percent(min(outcome.at_most(), 1.0)) if outcome.gains and beside else "",
                interval(outcome.harm(PLAIN)) if beside else "",
                interval(outcome.harm(LBE)) if beside else "",
            ]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def counts(outcomes: Sequence[Outcome]) -> str:
    """How many worlds meet the target."""
    head = ["worlds", "80 % kept", "5 % harm", "both", "both possible", "idle kept", "harm, plain", "harm, `lbe`"]
    rows = [head, ["---", *["--:"] * (len(head) - 1)]]
    sets = {
        "design, alone": [o for o in outcomes if o.group == DESIGN and o.alone],
        "design, beside others": [o for o in outcomes if o.group == DESIGN and not o.alone],
        "held out, alone": [o for o in outcomes if o.group != DESIGN and o.alone],
        "held out, beside others": [o for o in outcomes if o.group != DESIGN and not o.alone],
    }
    for name, found in sets.items():
        worth = [o for o in found if o.gains]
        kept = [o for o in worth if o.kept().value >= KEPT]
        if found[0].alone:
            rows.append([name, f"{len(kept)} of {len(worth)}", *[""] * (len(head) - 2)])
            continue
        mild = [o for o in worth if o.harm(LBE).value <= HARM]
        free = [sum(o.free(kind) for o in worth) for kind in (LBE, PLAIN)]
        harms = {kind: [o.harm(kind).value for o in worth] for kind in (PLAIN, LBE)}
        rows.append(
            [
                name,
                f"{len(kept)} of {len(worth)}",
                f"{len(mild)} of {len(worth)}",
                str(sum(o in mild for o in kept)),
                str(sum(o.at_most() >= KEPT for o in worth)),
                f"{percent(free[0] / free[1])} %",
                *(f"{percent(float(np.mean(found)))} %, {percent(max(found))} %" for found in harms.values()),
            ]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def figure(outcomes: Sequence[Outcome], path: Path) -> None:
    """Gain against harm, one mark a world, plain beside `lbe`."""
    with mpl.rc_context(plots.STYLE):
        canvas = Figure(figsize=(7.4, 3.6), layout="constrained")
        FigureCanvasAgg(canvas)
        beside = [outcome for outcome in outcomes if not outcome.alone]
        axes = canvas.subplots(1, 2, sharex=True, sharey=True)
        for place, design in zip(axes, (True, False), strict=True):
            found = [outcome for outcome in beside if (outcome.group == DESIGN) == design]
            for outcome in found:
                ends = [
                    (100 * outcome.harm(kind).value, 1 + max(outcome.gain(kind).value, -0.5)) for kind in (PLAIN, LBE)
                ]
                place.plot(*zip(*ends, strict=True), color="#d1d5db", linewidth=0.6, zorder=1)
            for kind, colour, marker in ((PLAIN, "#d5622a", "s"), (LBE, "#2f72b8", "o")):
                harms = [100 * outcome.harm(kind).value for outcome in found]
                gains = [1 + outcome.gain(kind).value for outcome in found]
                label = "plain differentiation" if kind == PLAIN else "lbe"
                place.scatter(harms, gains, s=14, color=colour, marker=marker, label=label, zorder=2)
            place.axvline(5, color="#6b7280", linewidth=0.8, linestyle="--")
            place.set_yscale("log")
            place.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
            place.minorticks_off()
            place.set_title("design: Garcia, 1 Mbit/s" if design else "held out")
            place.set_xlabel("Harm to each neighbour (%)")
        axes[0].set_ylabel("Goodput, times standard")
        axes[1].legend(fontsize=7)
        plots.export(canvas, path)


def fairness(outcomes: Iterable[Outcome]) -> str:
    """Several of ours, and nobody else."""
    rows = [["flows, losses", *(f"{kind}: Mbit/s, Jain" for kind in KINDS)], ["---", "--:", "--:", "--:"]]
    for outcome in outcomes:
        cells = [f"{outcome.ours[kind].mean():.2f}, {outcome.jain[kind].mean():.3f}" for kind in KINDS]
        rows.append([outcome.name, *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def page(outcomes: Sequence[Outcome]) -> str:
    """The page as it should be."""
    own = [outcome for outcome in outcomes if outcome.group != AMONG]
    made = {
        "counts": counts(own),
        "garcia": table(outcome for outcome in own if outcome.group.startswith("Garcia")),
        "tcp-real": table(outcome for outcome in own if outcome.group.startswith("TCP-Real")),
        "others": table(outcome for outcome in own if not outcome.group.startswith(("Garcia", "TCP-Real"))),
        "among": fairness(outcome for outcome in outcomes if outcome.group == AMONG),
    }
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    return BLOCK.sub(lambda block: f"{block[1]}\n{made[block[2]]}\n{block[3]}", text)


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        measure()
    found = load()
    files.write(FOLDER / "README.md", page(found))
    figure([outcome for outcome in found if outcome.group != AMONG], FOLDER / "harm.svg")
