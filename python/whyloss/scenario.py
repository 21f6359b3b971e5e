"""Scenarios: a network, what is sent over it, and what is written down."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native, files
from whyloss.results import INPUTS, InFolder, Results, captures_in, record, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from whyloss.format import Document

__all__ = ["Scenario", "plain"]


class Scenario:
    """A checked and complete scenario. It never changes: :meth:`replace` makes another one.

    >>> scenario = Scenario.load("examples/lossy-link.toml")
    >>> results = scenario.replace({"path.rate": "384 kbps"}).run()
    """

    __slots__ = ("native",)

    def __init__(self, document: Document | Mapping[str, Any], *, folder: str | PathLike[str] = ".") -> None:
        """Checks a scenario written in Python, with the types of :mod:`whyloss.format` or as plain dictionaries.

        Args:
            document: the fields of a scenario file.
            folder: where relative paths in it start.

        Raises:
            whyloss.InputError: names the field, what was found and what is allowed.
        """
        fields = plain(document)
        self.native = _native.Scenario.from_json(json.dumps(fields), "scenario").with_base(Path(folder))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Scenario:
        """Reads a scenario file (TOML, or JSON if it is called ``*.json``). Relative paths in it start at its folder.

        Raises:
            whyloss.InputError: names file, line, field, what was found and what is allowed.
        """
        return cls.of(_native.Scenario.load(Path(path)))

    @classmethod
    def parse(cls, text: str, origin: str = "scenario") -> Scenario:
        """Reads a scenario from TOML text; messages call it ``origin``."""
        return cls.of(_native.Scenario.from_toml(text, origin))

    @classmethod
    def of(cls, native: _native.Scenario) -> Scenario:
        """Wraps a scenario of the extension module."""
        made = cls.__new__(cls)
        made.native = native
        return made

    def replace(self, fields: Mapping[str, object]) -> Scenario:
        """The scenario with other values in some fields: ``{"flow[0].scheme": "cubic", "path.rate": "1 Mbps"}``.

        Elements of lists go by position (``link[0]``) or by name (``link[bottleneck]``). A field that excludes others
        takes them
        away: a channel that is given a ``pattern`` has no ``ber`` any more.
        """
        return self.of(self.native.with_values([(path, json.dumps(plain(value))) for path, value in fields.items()]))

    def with_arguments(self, arguments: list[str]) -> Scenario:
        """The scenario with overrides as on the command line, each ``FIELD=VALUE``."""
        return self.of(self.native.with_arguments(arguments))

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.native.name

    def to_dict(self) -> dict[str, Any]:
        """All fields, defaults included; :class:`Scenario` takes them back."""
        fields: dict[str, Any] = json.loads(self.native.to_json())
        return fields

    def run(
        self,
        run: int = 0,
        *,
        captures: str | PathLike[str] | None = None,
        progress: Callable[[_native.Progress], object] | None = None,
        pace: float | None = None,
    ) -> Results:
        """Runs it once.

        Args:
            run: number of the run. Runs differ in their random numbers; the same run gives the same results on any
                machine.
            captures: folder for the packet captures that the scenario asks for.
            progress: is told how far the run is, about ten times a second, and the losses whose true cause has become
                known since the last time; with `output.sample`, also the senders and the longest queue at each sample.
            pace: so many simulated seconds a second at most, for whoever wants to look at it; it changes no result.
        """
        _check_pace(pace)
        folder = None if captures is None else Path(captures)
        inputs = self._repeated(run)
        return Results(self.native.run(run, folder, progress, pace), lambda: inputs)

    def save(
        self,
        folder: str | PathLike[str],
        run: int = 0,
        *,
        progress: Callable[[_native.Progress], object] | None = None,
        pace: float | None = None,
    ) -> Results:
        """Runs it once, and writes into ``folder`` what ``run().save(folder)`` writes, and the captures it asks for.

        Rows are written while it runs: a long run takes no more memory than a short one. The tables of its results are
        read from the files when they are asked for; :meth:`Results.load` reads them another day. Ctrl-C leaves whole
        files of what was simulated until then: the ``outcome`` of the run is ``cancelled``.

        It takes what :meth:`run` takes.

        Raises:
            whyloss.WhylossError: it cannot be run, or a file cannot be written; then the tables are as they were.
        """
        _check_pace(pace)
        place, sweep = files.named(folder), self._repeated(run)
        inputs, before = sweep.inputs(), captures_in(place)
        try:
            digests = self.native.save(place, [("whyloss.inputs", inputs)], run, place, progress, pace)
        except _native.WhylossError:
            raise
        except BaseException:
            # What was simulated until then is there, but nobody can run it again to the same moment.
            files.unseal(place, [INPUTS])
            raise
        made = {name for name, capture in captures_in(place).items() if before.get(name) != capture}
        seal(place, record(sweep, digests, inputs), made)
        return InFolder(place)

    def _repeated(self, run: int) -> _native.Sweep:
        """The sweep of this one run."""
        return _native.Sweep.repeat(self.native, 1).with_runs(run, 1)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are the same."""
        return isinstance(other, Scenario) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash(self.native.to_json())

    def __repr__(self) -> str:
        """Its name and its flows."""
        flows = ", ".join(_flow(flow) for flow in self.to_dict()["flow"])
        return f"Scenario({self.name!r}: {flows})"

    def _repr_html_(self) -> str:
        document = self.to_dict()
        network = next((kind for kind in ("path", "dumbbell") if kind in document), "links")
        rows = "".join(f"<li>{_flow(flow)}</li>" for flow in document["flow"])
        return f"<b>{self.name}</b> ({network})<br>{document['scenario'].get('description', '')}<ul>{rows}</ul>"


def _check_pace(pace: float | None) -> None:
    if pace is not None and not 0 < pace < math.inf:
        raise _native.InputError(f"found a pace of {pace}; allowed: simulated seconds a second, above 0")


def _flow(flow: Mapping[str, Any]) -> str:
    parts = [
        flow[role] for role in ("congestion", "differentiator", "reaction", "timeout", "receiver") if flow.get(role)
    ]
    what = " + ".join([*([flow["scheme"]] if flow.get("scheme") else []), *parts]) or (
        "cbr" if flow.get("cbr") else "newreno"
    )
    count = f"{flow['count']} x " if flow.get("count", 1) > 1 else ""
    return f"{count}{what}, {flow.get('size', 'without end')}"


def plain(value: object) -> Any:
    """The value as JSON knows it; a field that is ``None`` is not said."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items() if item is not None}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
