"""Where schemes are compared: the scenario as it is, and with somebody beside whom they could harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.paths import KIND, onto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyloss.kinds import Kind
    from whyloss.scenario import Scenario

__all__ = ["ALONE", "BESIDE", "YARDSTICK", "Worlds", "worlds"]

#: Prefixes of the worlds' names, and the name of the one in which the others are among their own kind.
ALONE, BESIDE, YARDSTICK = "alone: ", "beside: ", "yardstick"
#: A flow with one of these is cross traffic: what it sends is an application's.
_CROSS = {"cbr", "stream", "web"}


@dataclass(frozen=True, slots=True)
class Worlds:
    """The scenarios that are run, by the fields in which they differ."""

    variants: dict[str, dict[str, Any]]
    others: str
    """The kind of the flows that could be harmed."""
    own: bool
    """Whether they are the scenario's own; else a flow was put beside the one that is compared."""
    rivals: list[int]
    """The positions of these flows in the scenarios that have them."""

    def harmed(self, label: str) -> str:
        """The world that shows the harm of a scheme."""
        return (ALONE if self.own else BESIDE) + label


def worlds(scenario: Scenario, kinds: Sequence[Kind], beside: Kind) -> Worlds:
    """The worlds for the kinds; of all of them the first flow of the scenario is in turn.

    Raises:
        whyloss.InputError: the scenario has no flow whose scheme could be another.
    """
    flows: list[dict[str, Any]] = scenario.to_dict().get("flow", [])
    if not flows or not _CROSS.isdisjoint(flows[0]):
        msg = f"{scenario.name}: the first [[flow]] is the one that is compared; allowed: TCP, no cbr, stream or web"
        raise _native.InputError(msg)
    first, rest = flows[0], flows[1:]
    rivals = [flow for flow in rest if _CROSS.isdisjoint(flow)]
    made = {ALONE + kind.label: {"flow": [onto(first, kind.fields, datagrams=kind.datagrams), *rest]} for kind in kinds}
    if rivals:
        alike = {name: rivals[0][name] for name in KIND if rivals[0].get(name) is not None}
        made[YARDSTICK] = {"flow": [onto(first, alike or {"scheme": "newreno"}), *rest]}
        label = str(rivals[0].get("scheme") or rivals[0].get("congestion") or "newreno")
        places = [place for place, flow in enumerate(flows) if flow in rivals and place > 0]
        return Worlds(made, label, own=True, rivals=places)
    rival = onto(first, beside.fields, datagrams=beside.datagrams)
    rival = {name: value for name, value in rival.items() if name not in ("size", "count", "striped", "shadows")}
    rival["name"] = _free("beside", flows)
    for kind in kinds:
        own = onto(first, kind.fields, datagrams=kind.datagrams)
        made[BESIDE + kind.label] = {"flow": [own, *rest, rival]}
    among = onto(first, beside.fields, datagrams=beside.datagrams)
    made[YARDSTICK] = {"flow": [among, *rest, rival]}
    return Worlds(made, beside.label, own=False, rivals=[len(flows)])


def _free(wanted: str, flows: Sequence[dict[str, Any]]) -> str:
    """A name that no flow has."""
    taken = {flow.get("name") for flow in flows}
    return next(name for name in (wanted + "_" * n for n in range(len(flows) + 1)) if name not in taken)
