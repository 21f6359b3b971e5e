"""A single link as a scenario, from what people say of links: rate, delay, queue, losses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DELAY",
    "DURATION",
    "KIND",
    "PROPORTIONS",
    "RATE",
    "changed",
    "channel",
    "onto",
    "path",
    "proportion",
    "quantity",
    "told",
    "with_flow",
]

RATE = "10 Mbps"
DELAY = "20 ms"
DURATION = "60 s"
SEED = 1
#: What :func:`proportion` reads, as the engine says it.
PROPORTIONS = 'a number from 0 to 1, such as 8.3e-6, or a percentage, such as "2 %"'
#: Octets of a full packet, by which a queue is counted where nothing is said.
PACKET = 1500
#: Seconds at its rate that fill the bucket of a policer where nothing is said of its depth.
FILLED = 0.1
_UNITS = {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
#: Where the link of a scenario stands that has one which all packets cross.
_PLACES = ("path", "dumbbell.bottleneck")
_OF_LINK = ("rate", "delay", "queue")
#: The fields of a flow that tell its kind.
KIND = ("scheme", "congestion", "differentiator", "reaction", "timeout", "receiver", "parameters")
#: What a flow of datagrams can have of another flow.
DATAGRAM = ("name", "count", "from", "to", "traffic", "start", "start_spread", "datagrams")


def path(
    *,
    rate: str = RATE,
    delay: str = DELAY,
    queue: str | None = None,
    loss: str | float | None = None,
    damaged: str | float | None = None,
    burst: float = 1.0,
    policer: str | None = None,
    duration: str = DURATION,
    seed: int = SEED,
    flow: Mapping[str, object] | None = None,
) -> Scenario:
    """One link, and one flow over it: ``path(rate="10 Mbps", delay="20 ms", loss="1 %")``.

    Every packet waits at its host for a random time below what a full one takes on the link: else a drop-tail queue
    locks flows out by phase (Floyd & Jacobson 1992), and runs without random losses are all the same.

    Args:
        rate: bit rate of the link.
        delay: its delay in each direction; the round trip takes twice as long.
        queue: what waits in front of it before packets are dropped, such as ``"50 pkt"``; one bandwidth-delay product
            if nothing is said.
        loss: share of the packets that are lost in the direction of the data, whatever the queue does.
        damaged: share of them that arrive with flipped bits instead.
        burst: how many packets in a row are lost, or damaged, in the mean (Gilbert 1960); 1: each by itself.
        policer: the rate of a token bucket that drops what exceeds it in the direction of the data, and after a comma
            its depth: ``"4 Mbps, 60 kB"``. Where no depth is said, it is what the rate carries in 100 ms, and ten full
            packets at least.
        duration: simulated time.
        seed: all random numbers follow from it and the number of the run.
        flow: fields of the flow, such as ``{"scheme": "cubic", "size": "10 MB"}``; CUBIC without end if nothing is
            said.

    Raises:
        whyloss.InputError: names the option, what was found and what is allowed.
    """
    link: dict[str, object] = {"rate": rate, "delay": delay, "queue": queue or "1 pkt"}
    document: dict[str, Any] = {
        "scenario": {"name": "path", "duration": duration, "seed": seed},
        "path": link,
        "flow": [dict(flow or {"scheme": "cubic"})],
    }
    found = channel(loss=loss, damaged=damaged, burst=burst)
    forward: dict[str, object] = {"channel": found} if found else {}
    if policer is not None:
        forward["policer"] = _policer(policer)
    if forward:
        link["forward"] = forward
    known = Scenario(document).to_dict()["path"]
    bits = quantity(known["rate"])
    packets = round(bits * 2 * quantity(known["delay"]) / (8 * PACKET))
    link["queue"] = queue or f"{max(packets, 2)} pkt"
    # Only the link itself is to be what limits a flow.
    link["access"] = {"rate": f"{max(100_000_000, round(10 * bits))} bps"}
    document["scenario"]["send_overhead"] = f"{round(8 * PACKET / bits * 1e9)} ns"
    return Scenario(document)


def channel(
    *, loss: str | float | None = None, damaged: str | float | None = None, burst: float = 1.0
) -> dict[str, object]:
    """What a link does to packets, as a scenario says it; nothing without ``loss`` and ``damaged``.

    Raises:
        whyloss.InputError: both are given, or they make no sense with ``burst``.
    """
    if loss is not None and damaged is not None:
        msg = (
            "found --loss and --damaged; allowed: one of them, as a channel either loses packets or damages them; "
            "a scenario file can have two links in a row"
        )
        raise _native.InputError(msg)
    name, share = ("loss", loss) if loss is not None else ("damaged", damaged)
    if share is None:
        if burst != 1:
            msg = f"--burst: found {burst:g} without --loss or --damaged; allowed: with one of them"
            raise _native.InputError(msg)
        return {}
    effect = "erase" if name == "loss" else "damage"
    part = proportion(share)
    if part is None:
        raise _native.InputError(f'--{name}: found "{share}"; allowed: {PROPORTIONS}')
    if burst == 1:
        return {"loss": part, "effect": effect}
    if not (1 < burst <= 1e6 and 0 < part < burst / (burst + 1)):
        msg = f"--burst: found {burst:g} at --{name} {share}; allowed: 1 to 1000000, and a share below b / (b + 1)"
        raise _native.InputError(msg)
    # Gilbert 1960: bad for `burst` packets in the mean, and for `part` of all.
    return {
        "markov": {"stay_bad": 1 - 1 / burst, "stay_good": 1 - part / (burst * (1 - part))},
        "effect": effect,
    }


def _policer(given: str) -> dict[str, object]:
    """A policer as a scenario says it, from its rate and, after a comma, its depth."""
    rate, _, burst = (part.strip() for part in given.partition(","))
    link: dict[str, Any] = {"rate": RATE, "delay": DELAY, "queue": "1 pkt"}
    link["forward"] = {"policer": {"rate": rate, "burst": burst or "1 kB"}}
    try:
        known = Scenario({"scenario": {"duration": DURATION}, "path": link, "flow": [{}]}).to_dict()
    except _native.InputError as error:
        msg = f"--policer: found {given!r}; allowed: a rate, or a rate and a depth, such as '4Mbps' or '4Mbps,60kB'"
        raise _native.InputError(msg) from error
    made: dict[str, object] = dict(known["path"]["forward"]["policer"])
    if not burst:
        made["burst"] = f"{max(round(quantity(str(made['rate'])) / 8 * FILLED), 10 * PACKET)} B"
    return made


def proportion(given: str | float) -> float | None:
    """A share that a person writes, ``1 %`` or ``0.01``, as a number; nothing if it is none from 0 to 1."""
    text = str(given).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def changed(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """A scenario whose link is another one: the ``[path]``, or the bottleneck of a ``[dumbbell]``.

    Args:
        scenario: the scenario.
        given: arguments of :func:`path`, those that are to change.

    Raises:
        whyloss.InputError: the scenario has no such link.
    """
    document = scenario.to_dict()
    fields: dict[str, object] = {
        f"scenario.{name}": given[name] for name in ("duration", "seed") if given.get(name) is not None
    }
    errors = {name: given[name] for name in ("loss", "damaged", "burst") if given.get(name) is not None}
    names = [name for name in (*_OF_LINK, "loss", "damaged", "burst", "policer") if given.get(name) is not None]
    if names:
        place = next((place for place in _PLACES if _at(document, place) is not None), None)
        if place is None:
            options = ", ".join(f"--{name}" for name in names)
            msg = f"{scenario.name}: {options}: the scenario has no [path] and no [dumbbell]; say it with --set link[…]"
            raise _native.InputError(msg)
        fields |= {f"{place}.{name}": given[name] for name in _OF_LINK if given.get(name) is not None}
        if errors:
            fields[f"{place}.forward.channel"] = channel(**errors)
        if given.get("policer") is not None:
            fields[f"{place}.forward.policer"] = _policer(given["policer"])
    return scenario.replace(fields) if fields else scenario


def _at(document: Mapping[str, Any], place: str) -> Any:
    for name in place.split("."):
        document = document.get(name) or {}
    return document or None


def with_flow(scenario: Scenario, fields: Mapping[str, object], *, datagrams: bool = False, place: int = 0) -> Scenario:
    """A scenario one of whose flows is of another kind.

    Args:
        scenario: the scenario.
        fields: what makes the kind, as :class:`whyloss.friendliness.Kind` has it: fields of a ``[[flow]]``, dotted
            ones for parameters.
        datagrams: whether it is a transport of its own instead of TCP, which takes no settings of TCP.
        place: position of the flow.
    """
    flows: list[dict[str, Any]] = scenario.to_dict().get("flow", [])
    if not flows:
        msg = f"{scenario.name}: there is no [[flow]] that could have a scheme; allowed: one at least"
        raise _native.InputError(msg)
    flows[place] = onto(flows[place], fields, datagrams=datagrams)
    return scenario.replace({"flow": flows})


def onto(flow: Mapping[str, Any], fields: Mapping[str, object], *, datagrams: bool = False) -> dict[str, Any]:
    """The fields of a flow with another kind in the place of its own."""
    kept = set(DATAGRAM) if datagrams else flow.keys() - {*KIND, "datagrams"}
    made: dict[str, Any] = {name: value for name, value in flow.items() if name in kept}
    for name, value in fields.items():
        *tables, last = name.split(".")
        inside = made
        for table in tables:
            inside[table] = dict(inside.get(table, {}))
            inside = inside[table]
        inside[last] = value
    return made


def quantity(text: str) -> float:
    """A rate in bit/s or a time in seconds, as the engine writes them: ``"10 Mbps"``."""
    number, unit = text.split()
    return float(number) * _UNITS[unit]


def told(scenario: Scenario) -> str:
    """The link of a scenario in a line; its name if there is no single one."""
    document = scenario.to_dict()
    link: dict[str, Any] = next((found for place in _PLACES if (found := _at(document, place)) is not None), {})
    if not {"rate", "delay", "queue"} <= {name for name, value in link.items() if value is not None}:
        return scenario.name
    ways = [_ill(link.get(way) or {}) for way in ("forward", "reverse")]
    ills = [*ways[0], *(f"{ill} on the way back" for ill in ways[1])]
    return ", ".join([f"{link['rate']}, {link['delay']} each way, queue of {link['queue']}", *ills])


def _ill(way: Mapping[str, Any]) -> list[str]:
    """What happens to packets in one direction of a link, beside its queue."""
    found, policer = way.get("channel") or {}, way.get("policer")
    said = [f"a policer of {policer['rate']} and {policer['burst']}"] if policer else []
    markov, loss, ber = found.get("markov"), found.get("loss"), found.get("ber")
    what = "damaged" if found.get("effect") == "damage" else "lost"
    if loss:
        # As the engine writes it: a number, or text.
        share = loss if isinstance(loss, str) else f"{100 * loss:g} %"
        said.append(f"{share} of the packets {what}")
    elif markov:
        bad, good = (1 - float(_number(markov[name])) for name in ("stay_bad", "stay_good"))
        said.append(f"{100 * good / (good + bad):.3g} % of the packets {what} in bursts of {1 / bad:.3g}")
    elif ber:
        said.append(f"bit error rate {ber:g}" if isinstance(ber, float) else "bit errors")
    return said


def _number(value: object) -> float:
    if isinstance(value, str):
        return float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    return float(json.dumps(value))
