"""Results: the tables that runs leave behind."""

from __future__ import annotations

import importlib
import json
import shutil
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from whyloss import _native, files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    import pandas as pd

__all__ = ["INPUTS", "InFolder", "Picture", "Results", "Table", "captures_in", "record", "seal"]

#: What a folder of results says of itself: what was run, with digests of that and of every table.
INPUTS = "inputs.json"


class Picture(Protocol):
    """A figure that can be shown and saved."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes it as its name ends: ``.svg``, ``.png``, ``.pdf`` or ``.html``."""

    def _repr_png_(self) -> bytes: ...


class Contents(Protocol):
    """What stands behind a table."""

    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def digest(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class InFile:
    """A table in a Parquet file, which is read when its values are asked for."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def columns(self) -> list[str]:
        return list(pl.read_parquet_schema(self.path))

    def __len__(self) -> int:
        rows: int = pl.scan_parquet(self.path).select(pl.len()).collect().item()
        return rows

    def digest(self) -> str:
        return _native.file_digest(self.path)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return _native.read_table(self.path).__arrow_c_stream__(requested_schema)


class Table:
    """A table with named columns, shared with whoever takes it, not copied.

    polars (``pl.DataFrame(table)``), pyarrow (``pa.table(table)``), pandas (``pd.DataFrame.from_arrow(table)``) and
    DuckDB (``duckdb.sql("from table")``) take it as it is, by the Arrow PyCapsule interface. :meth:`to_polars` and
    :meth:`to_pandas` are the short ways; Altair and Plotly draw what these give.
    """

    __slots__ = ("_contents", "name")

    def __init__(self, contents: Contents, name: str) -> None:
        """Wraps a table of the extension module, or one in a file."""
        self._contents = contents
        self.name = name

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow C stream interface."""
        return self._contents.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """Names of the columns; units stand in them (``rtt_ns``)."""
        return self._contents.columns

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._contents)

    def __getitem__(self, column: str) -> pl.Series:
        """One column."""
        if column not in self.columns:
            raise KeyError(f"table `{self.name}` has no column {column!r}; it has {', '.join(self.columns)}")
        return self.lazy().select(column).collect()[column]

    def lazy(self) -> pl.LazyFrame:
        """The table as a lazy polars frame: of one in a file, only what a query needs is read."""
        if isinstance(self._contents, InFile):
            return pl.scan_parquet(self._contents.path)
        return self.to_polars().lazy()

    def digest(self) -> str:
        """A digest of its rows: the same wherever the same rows come out, however they are packed."""
        return self._contents.digest()

    def to_polars(self) -> pl.DataFrame:
        """The table as a polars data frame, without a copy unless it lies in a file."""
        return pl.DataFrame(self)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas data frame; needs pandas and pyarrow."""
        return self.to_polars().to_pandas()

    def __repr__(self) -> str:
        """The first and last rows."""
        return f"{self.name} {self.to_polars()}"

    def _repr_html_(self) -> str:
        return f"<b>{self.name}</b>{self.to_polars()._repr_html_()}"


class Results:
    """What one run, or all runs of a sweep, left behind.

    Every table starts with the column ``run``; those of a sweep continue with one column for each field that was
    varied.
    """

    __slots__ = ("_inputs", "_native")

    def __init__(self, native: _native.Results, inputs: Callable[[], _native.Sweep] | None = None) -> None:
        """Wraps results of the extension module; ``inputs`` makes the sweep that they are of."""
        self._native = native
        self._inputs = inputs

    @staticmethod
    def load(folder: str | PathLike[str]) -> Results:
        """What :meth:`save`, ``whyloss run --out`` or ``whyloss sweep`` wrote into ``folder``.

        A table is read each time that its values are asked for: nothing is held.

        Raises:
            whyloss.InputError: a table is not there, or has changed since.
        """
        place = files.named(folder)
        for name in _native.table_names():
            path = place / f"{name}.parquet"
            if not path.is_file():
                allowed = "a folder that `whyloss run --out`, `whyloss sweep` or `Results.save` wrote"
                raise _native.InputError(f"{path}: there is no such file; allowed: {allowed}")
            files.check(path)
        return InFolder(place)

    @property
    def runs(self) -> Table:
        """One row a run."""
        return self["runs"]

    @property
    def transfers(self) -> Table:
        """One row a transfer: what an application sees, over one connection or striped over several."""
        return self["transfers"]

    @property
    def protocols(self) -> Table:
        """One row a scheme of a run: what its transfers got together."""
        return self["protocols"]

    @property
    def flows(self) -> Table:
        """One row a connection or stream of datagrams."""
        return self["flows"]

    @property
    def losses(self) -> Table:
        """One row a loss that a sender noticed, with its true cause and all verdicts."""
        return self["losses"]

    @property
    def timeouts(self) -> Table:
        """One row an expired retransmission timer."""
        return self["timeouts"]

    @property
    def drops(self) -> Table:
        """One row a packet that did not arrive; empty unless the scenario asks for it."""
        return self["drops"]

    @property
    def samples(self) -> Table:
        """Time series of the senders; empty unless the scenario asks for it."""
        return self["samples"]

    @property
    def queues(self) -> Table:
        """Time series of the queues; empty unless the scenario asks for it."""
        return self["queues"]

    @property
    def links(self) -> Table:
        """One row a direction of a link."""
        return self["links"]

    @property
    def middleboxes(self) -> Table:
        """One row an agent at a router: what it did, and how much it remembered at most."""
        return self["middleboxes"]

    @property
    def names(self) -> list[str]:
        """Names of all tables."""
        return _native.table_names()

    def __getitem__(self, name: str) -> Table:
        """The table called ``name``."""
        if name not in self.names:
            raise KeyError(f"there is no table {name!r}; there are {', '.join(self.names)}")
        return Table(self._native.table(name), name)

    def __iter__(self) -> Iterator[Table]:
        """All tables."""
        return (self[name] for name in self.names)

    def save(self, folder: str | PathLike[str], also: Iterable[str] = ()) -> Path:
        """Writes one Parquet file a table into ``folder``; each file is whole or not there.

        ``SHA256SUMS`` says what belongs to the run: the tables, and the files ``also`` that lie there already. What it
        named of an earlier run and is not written again goes away. ``inputs.json`` says what was run, with a digest of
        it and of the rows of each table: ``whyloss verify`` runs it again.
        """
        place = files.named(folder)
        said = None if self._inputs is None else record(self._inputs(), self.digests())
        self._native.write_parquet(place, [("whyloss.inputs", said["inputs"])] if said else [])
        seal(place, said, also)
        return place

    def digests(self) -> dict[str, str]:
        """A digest of the rows of each table."""
        return {table.name: table.digest() for table in self}

    def plot(self, what: Sequence[str] | None = None, **options: Any) -> Picture:
        """Draws the run: windows, round trips, queue and goodput over time, every loss and every timeout.

        A notebook shows the picture; ``results.plot().save("run.svg")`` writes it. It needs the time series: give
        :meth:`whyloss.Scenario.replace` an ``output.sample``, or draw the scenario itself with :func:`whyloss.plot`.

        Args:
            what: the quantities, as :func:`whyloss.plot` takes them.
            **options: its other options.

        Raises:
            whyloss.InputError: it is more than one run, or its time series are not there.
        """
        # What draws stands above results; the package knows it.
        picture: Picture = importlib.import_module(__package__).plot(self, what=what, **options)
        return picture

    def summary(self) -> pl.DataFrame:
        """One row a transfer: what it was, how fast it was, and what it lost."""
        return self.transfers.to_polars()

    def __repr__(self) -> str:
        """The number of rows of each table."""
        return "Results(" + ", ".join(f"{table.name}: {len(table)}" for table in self) + ")"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>results.{table.name}</code></td><td style='text-align:right'>{len(table)}</td></tr>"
            for table in self
        )
        counts = f"<table><tr><th>table</th><th>rows</th></tr>{rows}</table>"
        return f"{self.transfers._repr_html_()}{counts}"


class InFolder(Results):
    """Results whose tables lie in a folder."""

    __slots__ = ("_folder",)

    def __init__(self, folder: Path) -> None:
        """Of a folder that has all tables."""
        self._folder = folder

    def __getitem__(self, name: str) -> Table:
        """The table called ``name``."""
        if name not in self.names:
            return super().__getitem__(name)
        return Table(InFile(self._folder / f"{name}.parquet"), name)

    def save(self, folder: str | PathLike[str], also: Iterable[str] = ()) -> Path:
        """Copies them, with what they say of themselves."""
        place = files.named(folder)
        place.mkdir(parents=True, exist_ok=True)
        inputs = self._folder / INPUTS
        if place.resolve() != self._folder.resolve():
            for name in self.names:
                with files.aside(place / f"{name}.parquet") as part:
                    shutil.copyfile(self._folder / f"{name}.parquet", part)
        seal(place, json.loads(inputs.read_text(encoding="utf-8")) if inputs.is_file() else None, also)
        return place


def captures_in(folder: Path) -> dict[str, tuple[int, int]]:
    """The captures that lie in ``folder``, and what tells each from one that takes its place."""
    found = [(path.name, path.stat()) for path in folder.glob("*.pcapng")]
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found}


def record(sweep: _native.Sweep, digests: dict[str, str], inputs: str | None = None) -> dict[str, Any]:
    """What was run, and what came out of it: the content of ``inputs.json``.

    ``inputs`` is the sweep's digest, if it is known.
    """
    return {
        "whyloss": _native.VERSION,
        "engine": _native.ENGINE,
        "inputs": inputs or sweep.inputs(),
        "rows": {name: digests[name] for name in _native.table_names()},
        "recipe": json.loads(sweep.to_recipe()),
    }


def seal(place: Path, said: dict[str, Any] | None, also: Iterable[str] = ()) -> None:
    """Notes beside the tables in ``place`` what was run, and what belongs to them: see :meth:`Results.save`."""
    if said:
        files.write(place / INPUTS, json.dumps(said, indent=1) + "\n")
    tables = (f"{name}.parquet" for name in _native.table_names())
    files.seal(place, [*tables, *([INPUTS] if said else []), *also])
