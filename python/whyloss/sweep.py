"""Sweeps: a scenario, changed along axes, each point run several times."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss import _native, files
from whyloss.results import InFolder, Results, record, seal
from whyloss.scenario import Scenario, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from distributed import Client

    from whyloss.precision import Known

__all__ = ["Sweep"]

#: How addresses of buckets begin.
BUCKETS = ("s3://", "gs://", "az://")

#: Batch systems that can start workers.
BATCH_SYSTEMS = ("slurm", "pbs", "lsf", "sge")


@contextmanager
def _bar() -> Iterator[Callable[[_native.Progress], object]]:
    """A bar that follows what it is told."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("runs", total=None)
        yield lambda now: bar.update(task, completed=now.done, total=now.total)


@contextmanager
def _place(store: str | PathLike[str] | None) -> Iterator[str | PathLike[str]]:
    """The store, or one that lasts for a while."""
    if store is not None:
        yield store
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield temporary


@contextmanager
def _beside(store: str | PathLike[str]) -> Iterator[str]:
    """A folder that lasts for a while, on the disk that has room for runs: below the store, if that is no bucket."""
    place = _folder(store)
    if isinstance(place, Path):
        files.named(place).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".look-", dir=place if isinstance(place, Path) else None) as temporary:
        yield temporary


def _folder(store: str | PathLike[str] | None) -> Path | str | None:
    """The store as a folder; the address of a bucket as it is."""
    if isinstance(store, str) and store.startswith(BUCKETS):
        return store
    return None if store is None else Path(store)


def _own(store: str | PathLike[str]) -> Path:
    """The store as a folder.

    Raises:
        whyloss.InputError: it is a bucket, which only a cluster's workers write to.
    """
    if isinstance(store, str) and store.startswith(BUCKETS):
        raise _native.InputError(f"found {store!r}; allowed without a cluster: a folder as the store")
    return Path(store)


def _check(client: Client | None, threads: int | None, detach: bool) -> None:
    """Refuses what could not be obeyed.

    Raises:
        whyloss.InputError: there are no threads, or nobody to leave at work.
    """
    if threads is not None and threads < 1:
        raise _native.InputError(f"threads: found {threads}; allowed: 1 or more, or nothing for one for each core")
    if detach and client is None:
        raise _native.InputError("detach: found no cluster to leave at work; allowed: with a client of one")


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
                nothing is said. Bit rates, times and sizes have a second one, such as ``delay_ns``.
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
        """Keeps the points whose step on ``axis`` is called one of ``labels``.

        Raises:
            whyloss.InputError: there is no such axis or step, or no label.
        """
        return self._of(self._native.only(axis, [json.dumps(label) for label in labels]))

    def at(self, points: Iterable[int]) -> Sweep:
        """Keeps the points with these numbers, as the column ``point`` of its tables has them.

        One that it does not have is an error when the points are asked for or run.
        """
        return self._of(self._native.at(set(points)))

    def with_runs(self, count: int, first: int = 0) -> Sweep:
        """The sweep with ``count`` runs of each point, numbered from ``first``.

        Raises:
            whyloss.InputError: numbers of runs end at 4,294,967,294.
        """
        return self._of(self._native.with_runs(first, count))

    def with_run_counts(self, counts: Mapping[int, int]) -> Sweep:
        """The sweep with ``counts[point]`` runs of some points, by their numbers; others have as many as before."""
        return self._of(self._native.with_run_counts(dict(counts)))

    def until(
        self,
        precision: str | float | None,
        *,
        quantity: str | None = None,
        against: Mapping[str, object] | None = None,
        budget: int | None = None,
    ) -> Sweep:
        """The sweep with as many runs of each point as its answer needs.

        Runs are added until half of the 95 % interval of each point is ``precision`` of its mean, or the budget ends.
        Where nearly all runs have the same value, no more than that share of them may have another, too.
        The intervals hold although they are looked at several times: see :mod:`whyloss.precision`. It needs the extra
        ``plot``.

        Args:
            precision: such as ``"2 %"`` or 0.02; ``None`` for the runs that the sweep has.
            quantity: table and column, ``transfers.goodput_bps`` if nothing is said; of several rows of a run, their
                mean counts.
            against: step on some axes, such as ``{"variant": "plain"}``: what counts is then the difference of each
                point from the one that has these steps and is like it otherwise, run by run, as a share of that one's
                mean.
            budget: runs of all points together, at most.

        Raises:
            whyloss.InputError: there is no such quantity, axis or step, or no such precision.
        """
        if precision is None:
            return self._of(self._native.without_precision())
        steps = [(axis, json.dumps(plain(step))) for axis, step in (against or {}).items()]
        return self._of(self._native.with_precision(json.dumps(precision), quantity, steps, budget))

    @property
    def precision(self) -> _native.Precision | None:
        """How well its answer is to be known, if anybody has asked for it."""
        return self._native.precision

    def with_arguments(self, arguments: Sequence[str]) -> Sweep:
        """The sweep with overrides as on the command line, each ``FIELD=VALUE``, over what its file sets.

        One of a field that an axis sets is an error when the points are asked for or run.
        """
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

    def labels(self, axis: str) -> list[bool | float | str]:
        """What tables call the steps of an axis; nothing if there is no such axis."""
        return self._native.labels(axis)

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
        """Number of runs of all points; where a precision is asked for, those before the first look."""
        return self._native.total()

    def run(
        self,
        client: Client | None = None,
        *,
        store: str | PathLike[str] | None = None,
        threads: int | None = None,
        progress: bool | Callable[[_native.Progress], object] | None = None,
        note: Callable[[str], None] | None = None,
        detach: bool = False,
    ) -> Results:
        """Runs all points, as often as the sweep says or as its precision takes.

        Ctrl-C stops it within a moment. What is computed until then is kept in ``store``, and the same call goes on
        from there.

        Args:
            client: a client of a Dask cluster (``distributed.Client``), whose workers compute; this machine's cores if
                nothing is said. The results are the same. It needs the extra ``cluster``.
            store: folder in which finished runs are kept and found again; nothing is kept without it. With a client
                also a bucket, ``s3://BUCKET/PREFIX`` (``gs://``, ``az://``), which the workers write to themselves.
            threads: runs at a time; one for each core if nothing is said. It changes no result.
            progress: is told how far the sweep is, about ten times a second; ``True`` draws a bar in notebooks and
                terminals.
            note: is told in words what a cluster does beside: workers that are refused, runs that fail. The logger
                ``whyloss.cluster`` is, if nothing is said.
            detach: Ctrl-C leaves a cluster at work, if it lives longer than this program. The same call with the same
                store comes back to it, from any machine that has the store. It raises
                :class:`whyloss.cluster.Detached`, a ``KeyboardInterrupt``.

        Raises:
            whyloss.WhylossError: a run failed. Of several machines, all others are computed first, and the message
                names all that failed, with their seeds.
        """
        _check(client, threads, detach)
        if progress is True:
            with _bar() as follow:
                return self.run(client, store=store, threads=threads, progress=follow, note=note, detach=detach)
        if self.precision is not None:
            return self.known(
                client, store=store, threads=threads, progress=progress or None, note=note, detach=detach
            ).results
        if client is None:
            folder = None if store is None else _own(store)
            return Results(self._native.run(folder, threads, progress or None), lambda: self._native)
        from whyloss import cluster

        self._native.check_held()
        native = cluster.run(
            self._native,
            client,
            lambda kept: self._native.run(kept, None, None),
            store=_folder(store),
            progress=progress or None,
            note=note,
            detach=detach,
        )
        return Results(native, lambda: self._native)

    def save(
        self,
        folder: str | PathLike[str],
        client: Client | None = None,
        *,
        store: str | PathLike[str] | None = None,
        threads: int | None = None,
        progress: bool | Callable[[_native.Progress], object] | None = None,
        note: Callable[[str], None] | None = None,
        detach: bool = False,
    ) -> Results:
        """Runs all points, and writes into ``folder`` what ``run().save(folder)`` writes, but holds few runs at a time.

        It takes what :meth:`run` takes. The tables of its results are read from the files when they are asked for;
        :meth:`Results.load` reads them another day. Without a store, runs lie in the folder for temporary files until
        the tables are whole.

        Raises:
            whyloss.WhylossError: a run failed; then ``folder`` is as it was.
        """
        _check(client, threads, detach)
        place = files.named(folder)
        if progress is True:
            with _bar() as follow:
                return self.save(place, client, store=store, threads=threads, progress=follow, note=note, detach=detach)
        if self.precision is not None:
            told = progress or None
            found = self.known(
                client, folder=place, store=store, threads=threads, progress=told, note=note, detach=detach
            )
            return found.results
        inputs = self._native.inputs()
        notes = [("whyloss.inputs", inputs)]
        if client is None:
            with _place(store) as kept:
                digests = self._native.save(_own(kept), place, notes, threads, progress or None)
        else:
            from whyloss import cluster

            digests = cluster.run(
                self._native,
                client,
                lambda kept: self._native.save(kept, place, notes, None, None),
                store=_folder(store),
                progress=progress or None,
                note=note,
                detach=detach,
            )
        seal(place, record(self._native, digests, inputs))
        return InFolder(place)

    def known(
        self,
        client: Client | None = None,
        *,
        folder: str | PathLike[str] | None = None,
        store: str | PathLike[str] | None = None,
        threads: int | None = None,
        progress: Callable[[_native.Progress], object] | None = None,
        note: Callable[[str], None] | None = None,
        detach: bool = False,
    ) -> Known:
        """Runs each point until it is known as well as is asked for by :meth:`until`, or the budget ends.

        It takes what :meth:`run` takes, and a ``folder`` to write the tables to, as :meth:`save` does: without it they
        are held. What it looks at meanwhile is never held. How many runs there are in all grows while it runs, and so
        does the total that ``progress`` is told.

        Raises:
            whyloss.InputError: the sweep asks for no precision, no point has the steps to compare with, or all have.
        """
        from whyloss.precision import Looking

        if self.precision is None:
            raise _native.InputError("the sweep asks for no precision; allowed: by Sweep.until, or in its file")
        _check(client, threads, detach)
        place = None if folder is None else files.named(folder)
        against = self.precision.against
        if against and all(len(self.labels(axis)) == 1 for axis in against):
            steps = ", ".join(f"{axis} {step}" for axis, step in against.items())
            raise _native.InputError(f"against: found {steps}, which all points have; allowed: a step that others lack")
        plain, looking = self.until(None), Looking(self.precision, self.axes, self._native.points())
        with _place(store) as kept:
            while look := looking.next():

                def told(now: _native.Progress, before: int = looking.spent) -> None:
                    if progress:
                        done, total, found = before + now.done, before + now.total, before + now.found
                        progress(_native.Progress(done, total, found, now.elapsed_s))

                more = plain.at(look.points).with_runs(look.runs, self.first_run + look.first)
                with _beside(kept) as tables:
                    looking.take(
                        more.save(tables, client, store=kept, threads=threads, progress=told, note=note, detach=detach)
                    )
            whole = plain.at(looking.counts).with_run_counts(looking.counts)
            reader = client if isinstance(_folder(kept), str) else None
            if place is None:
                return looking.known(whole.run(reader, store=kept, threads=threads))
            return looking.known(whole.save(place, reader, store=kept, threads=threads))

    def __repr__(self) -> str:
        """Its name, axes and size."""
        axes = " x ".join(self.axes) or "one point"
        return f"Sweep({self.name!r}: {axes}, {len(self)} runs)"
