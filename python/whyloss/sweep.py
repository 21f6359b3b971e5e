"""Sweeps: a scenario, changed along axes, each point run several times."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss import _native
from whyloss.results import Results
from whyloss.scenario import Scenario, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from distributed import Client

__all__ = ["Sweep"]


@contextmanager
def _bar() -> Iterator[Callable[[_native.Progress], object]]:
    """A bar that follows what it is told."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("runs", total=None)
        yield lambda now: bar.update(task, completed=now.done, total=now.total)


class Sweep:
    """A scenario, changed along axes, each point run several times. It never changes: its methods make other ones.

    Run ``n`` of every point has the same random numbers, so variants meet the same channel and can be compared in
    pairs.

    >>> sweep = Sweep(Scenario.load("examples/lossy-link.toml"), runs=30)
    >>> sweep = sweep.vary("path.forward.channel.ber", [1e-6, 1e-5])
    >>> sweep = sweep.vary("flow[0].scheme", ["newreno", "checksum-ld"], name="variant")
    >>> results = sweep.run(store="out/store")
    """

    __slots__ = ("_native",)

    def __init__(self, base: Scenario, runs: int = 1) -> None:
        """A sweep with one point, the scenario ``base`` itself, run ``runs`` times."""
        self._native = _native.Sweep.repeat(base.native, runs)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Sweep:
        """Reads a sweep file. Relative paths in it start at its folder.

        Raises:
            whyloss.InputError: names file, line, field, what was found and what is allowed.
        """
        return cls._of(_native.Sweep.load(Path(path)))

    @classmethod
    def parse(cls, text: str, origin: str = "sweep", folder: str | PathLike[str] = "") -> Sweep:
        """Reads a sweep from TOML text; messages call it ``origin``. Relative paths in it start at ``folder``."""
        return cls._of(_native.Sweep.from_toml(text, origin, Path(folder)))

    @classmethod
    def _of(cls, native: _native.Sweep) -> Sweep:
        made = cls.__new__(cls)
        made._native = native
        return made

    def vary(self, field: str, values: Sequence[object], name: str | None = None) -> Sweep:
        """Adds an axis: ``field`` takes each of ``values``. The axis added last changes fastest.

        Args:
            field: path of a field, such as ``path.forward.channel.ber``.
            values: what it becomes.
            name: name of the axis's column in the tables, which no table may have already; the last part of the path if
                nothing is said.
        """
        steps = [(json.dumps(value), [(field, json.dumps(value))]) for value in (plain(value) for value in values)]
        return self._of(self._native.with_axis(name or field.rpartition(".")[2], steps))

    def variants(self, name: str, variants: Mapping[str, Mapping[str, object]]) -> Sweep:
        """Adds an axis of named changes: ``{"short": {"path.queue": "20 pkt"}, "plain": {}}``."""
        steps = [
            (json.dumps(label), [(field, json.dumps(plain(value))) for field, value in fields.items()])
            for label, fields in variants.items()
        ]
        return self._of(self._native.with_axis(name, steps))

    def only(self, axis: str, labels: Iterable[object]) -> Sweep:
        """Keeps the points whose step on ``axis`` is called one of ``labels``."""
        return self._of(self._native.only(axis, [json.dumps(label) for label in labels]))

    def at(self, points: Iterable[int]) -> Sweep:
        """Keeps the points with these numbers, as the column ``point`` of its tables has them."""
        return self._of(self._native.at(set(points)))

    def with_runs(self, count: int, first: int = 0) -> Sweep:
        """The sweep with ``count`` runs of each point, numbered from ``first``."""
        return self._of(self._native.with_runs(first, count))

    def with_arguments(self, arguments: Sequence[str]) -> Sweep:
        """The sweep over a changed base, by overrides as on the command line, each ``FIELD=VALUE``."""
        return self._of(self._native.with_arguments(list(arguments)))

    @property
    def name(self) -> str:
        """What tables and reports call it."""
        return self._native.name

    @property
    def description(self) -> str:
        """What it is for."""
        return self._native.description

    @property
    def axes(self) -> list[str]:
        """Names of its axes, which are columns of its tables."""
        return self._native.axes

    @property
    def first_run(self) -> int:
        """Number of the first run of each point."""
        return self._native.first_run

    @property
    def native(self) -> _native.Sweep:
        """What the extension module has of it."""
        return self._native

    @property
    def scenarios(self) -> list[Scenario]:
        """The scenario of each point."""
        return [Scenario.of(native) for native in self._native.scenarios()]

    def __len__(self) -> int:
        """Number of runs of all points."""
        return self._native.total()

    def run(
        self,
        client: Client | None = None,
        *,
        store: str | PathLike[str] | None = None,
        threads: int | None = None,
        progress: bool | Callable[[_native.Progress], object] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> Results:
        """Runs all points.

        Ctrl-C stops it within a moment. What is computed until then is kept in ``store``, and the same call goes on
        from there.

        Args:
            client: a client of a Dask cluster (``distributed.Client``), whose workers compute; this machine's cores if
                nothing is said. The results are the same. It needs the extra ``cluster``.
            store: folder in which finished runs are kept and found again; nothing is kept without it.
            threads: runs at a time; one for each core if nothing is said. It changes no result.
            progress: is told how far the sweep is, about ten times a second; ``True`` draws a bar in notebooks and
                terminals.
            note: is told in words what a cluster does beside: workers that are refused, runs that fail. The logger
                ``whyloss.cluster`` is, if nothing is said.

        Raises:
            whyloss.WhylossError: a run failed. Of several machines, all others are computed first, and the message
                names all that failed, with their seeds.
        """
        if progress is True:
            with _bar() as follow:
                return self.run(client, store=store, threads=threads, progress=follow, note=note)
        folder = None if store is None else Path(store)
        if client is None:
            return Results(self._native.run(folder, threads, progress or None), lambda: self._native)
        from whyloss import cluster

        native = cluster.run(self._native, client, store=folder, progress=progress or None, note=note)
        return Results(native, lambda: self._native)

    def __repr__(self) -> str:
        """Its name, axes and size."""
        axes = " x ".join(self.axes) or "one point"
        return f"Sweep({self.name!r}: {axes}, {len(self)} runs)"
