"""Where schemes are compared: a dumbbell, or any scenario, with flows of both kinds in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.paths import KIND, channel, onto, quantity
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from whyloss.kinds import Kind

__all__ = ["DURATION", "dumbbell", "load", "mixes", "mixtures", "told"]

#: What a dumbbell is where nothing is said.
RATE = "10 Mbps"
DELAY = "20 ms"
LOSS = "0 %"
DURATION = "100 s"
PROFILE = "modern"
SEED = 1
#: Octets of a full packet, by which the queue and the overhead of hosts are counted where nothing is said.
PACKET = 1500

#: What a scenario's own flow has of these the flows of the test have not: their kind is another, and they have no end.
_OWN = {*KIND, "shadows", "name", "count", "size", "striped", "chunk", "playback"}
#: A flow with one of these is cross traffic, which stays as it is: what it sends is an application's.
_CROSS = {"cbr", "stream", "web"}


def dumbbell(
    *,
    rate: str = RATE,
    delay: str = DELAY,
    queue: str | None = None,
    loss: str = LOSS,
    duration: str = DURATION,
    seed: int = SEED,
    profile: str = PROFILE,
) -> Scenario:
    """The world of the test if no other is given: pairs of hosts that share one bottleneck with a drop-tail queue.

    Flows start within the first second. Every packet waits at its host for a random time below what a full one takes
    on the bottleneck: a drop-tail queue between hosts without any randomness locks flows out by phase (Floyd &
    Jacobson 1992).

    Args:
        rate: bit rate of the bottleneck.
        delay: its delay in each direction; the round trip takes twice as long.
        queue: what waits before packets are dropped; one bandwidth-delay product if nothing is said.
        loss: share of packets that are lost on the way to the receivers, whatever else happens.
        duration: simulated time.
        seed: all random numbers follow from it and the number of the run.
        profile: which TCP it is before the scheme.
    """
    bottleneck: dict[str, object] = {"rate": rate, "delay": delay, "queue": queue or "1 pkt"}
    document: dict[str, Any] = {
        "scenario": {"name": "friendly", "duration": duration, "seed": seed},
        "dumbbell": {"bottleneck": {**bottleneck, "forward": {"channel": channel(loss=loss)}}},
        "flow": [{"start_spread": "1 s", "profile": profile, "scheme": "newreno"}],
    }
    plain = Scenario(document).to_dict()["dumbbell"]["bottleneck"]
    bits = quantity(plain["rate"])
    packets = round(bits * 2 * quantity(plain["delay"]) / (8 * PACKET))
    document["dumbbell"]["bottleneck"]["queue"] = queue or f"{max(packets, 2)} pkt"
    document["scenario"]["send_overhead"] = f"{round(8 * PACKET / bits * 1e9)} ns"
    return Scenario(document)


def load(world: Scenario | str | PathLike[str] | None) -> Scenario:
    """The scenario that ``world`` means; it ends at a time of its own."""
    if world is None:
        return dumbbell()
    scenario = world if isinstance(world, Scenario) else Scenario.load(world)
    if "duration" not in scenario.to_dict()["scenario"]:
        return scenario.replace({"scenario.duration": DURATION})
    return scenario


def mixes(flows: int) -> dict[str, list[int]]:
    """Of which kind, 0 or 1, the flow at each place is. In halves they take turns: neither has the better places."""
    single = {"one-first": [0] + [1] * (flows - 1), "one-second": [1] + [0] * (flows - 1)}
    return {
        "all-first": [0] * flows,
        "all-second": [1] * flows,
        "half": [place % 2 for place in range(flows)],
        **(single if flows > 2 else {}),
    }


def mixtures(scenario: Scenario, kinds: tuple[Kind, Kind], flows: int) -> dict[str, list[dict[str, Any]]]:
    """The flows of each mix, and after them the scenario's cross traffic."""
    there: list[dict[str, Any]] = scenario.to_dict()["flow"]
    cross = [flow for flow in there if not _CROSS.isdisjoint(flow)]
    pattern = next((flow for flow in there if flow not in cross), None)
    if pattern is None:
        msg = f"{scenario.name}: all flows are cross traffic; allowed: one that is not, the pattern of those compared"
        raise _native.InputError(msg)
    return {
        name: [*(_flow(pattern, kinds[kind], place) for place, kind in enumerate(mix)), *cross]
        for name, mix in mixes(flows).items()
    }


def _flow(pattern: Mapping[str, Any], kind: Kind, place: int) -> dict[str, Any]:
    plain = {name: value for name, value in pattern.items() if name not in _OWN}
    return {**onto(plain, kind.fields, datagrams=kind.datagrams), "name": f"flow{place}"}


def told(scenario: Scenario, begin_s: float) -> str:
    """The world in a line; what comes before ``begin_s`` does not count."""
    document = scenario.to_dict()
    after = f"{scenario.native.duration_s():g} s without the first {begin_s:g} s"
    link = document.get("dumbbell", {}).get("bottleneck") or document.get("path", {})
    if not {"rate", "delay", "queue"} <= link.keys():
        return f"{scenario.name}: {after}"
    loss = link.get("forward", {}).get("channel", {}).get("loss")
    share = f"{100 * loss:g} %" if isinstance(loss, float) else loss
    lost = f", {share} lost" if loss else ""
    return f"{scenario.name}: {link['rate']}, {link['delay']} each way, queue of {link['queue']}{lost}; {after}"
