"""Options that several commands share."""

from __future__ import annotations

import functools
import re
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss import _native, parts, paths
from whyloss.cli.console import say
from whyloss.cli.start import EXAMPLES
from whyloss.scenario import Scenario
from whyloss.sweep import BATCH_SYSTEMS, BUCKETS, Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distributed import Client

__all__ = [
    "RUN_NUMBER",
    "SIMULATOR_ONLY",
    "Share",
    "Where",
    "any_store_option",
    "complete_field",
    "load_scenario",
    "load_sweep",
    "on_options",
    "set_option",
    "spare",
    "store_option",
    "threads_option",
    "with_option",
    "with_own_option",
    "without_option",
]


#: Numbers that runs can have.
RUN_NUMBER = click.IntRange(0, 2**32 - 2)


class Share(click.ParamType[float]):
    """A share: ``2%``, ``2 %`` or ``0.02``; above 0 and below ``below``, if that is said."""

    name = "share"

    def __init__(self, below: float | None = None) -> None:
        """Any share if nothing is said."""
        self._below = below

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads it."""
        if isinstance(value, float):
            return value
        share = paths.proportion(value)
        if share is None or (self._below is not None and not 0 < share < self._below):
            bounds = self._below and f"above 0 % and below {100 * self._below:g} %, such as 2% or 0.02"
            self.fail(f"found {value!r}; allowed: {bounds or paths.PROPORTIONS}", param, ctx)
        return share


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file; ``-`` is the standard input."""
    if str(path) == "-":
        return Scenario.parse(sys.stdin.read(), "standard input")
    if not path.exists():
        raise _native.InputError(f"{path}: there is no such file{_meant(path)}")
    with _told_apart(path, "sweep"):
        return Scenario.load(path)


def load_sweep(path: Path) -> Sweep:
    """The sweep in a file; ``-`` is the standard input, in which relative paths start at the working folder."""
    if str(path) == "-":
        return Sweep.parse(sys.stdin.read(), "standard input")
    if not path.exists():
        raise _native.InputError(f"{path}: there is no such file{_meant_sweep(path)}")
    with _told_apart(path, "run"):
        return Sweep.load(path)


def spare(option: str, output: Path | None, read: Iterable[Path]) -> None:
    """Refuses an output that is one of the files that the command reads."""
    if output is not None and output.exists() and any(file.exists() and file.samefile(output) for file in read):
        raise click.UsageError(f"{option}: {output} is one of the files that are read; name another file")


def _meant(path: Path) -> str:
    """What the name of a file that is not there could have meant."""
    if (ending := path.with_name(f"{path.name}.toml")).is_file():
        return f" (did you mean `{ending}`?)"
    if path.name in {one["name"] for one in _native.schemes()}:
        return f"; a scheme is named by --scheme {path.name}"
    return _brought(path) or "; `whyloss init` writes a scenario to begin with, `whyloss examples` copies one"


def _meant_sweep(path: Path) -> str:
    if (ending := path.with_name(f"{path.name}.toml")).is_file():
        return f" (did you mean `{ending}`?)"
    return _brought(path) or "; `whyloss examples` lists sweeps to begin with, and copies one"


def _brought(path: Path) -> str:
    """Says how to get an example that the package brings."""
    name = path.name.removesuffix(".toml")
    there = re.fullmatch(r"[\w-]+", name) and (EXAMPLES / f"{name}.toml").is_file()
    return f"; `whyloss examples {name}` copies the example of this name" if there else ""


@contextmanager
def _told_apart(path: Path, other: str) -> Iterator[None]:
    """Says of a file that fails because it is of the kind that the command ``other`` takes that it is one."""
    try:
        yield
    except _native.InputError as mistake:
        if not path.is_file():
            raise  # What a pipe had is read.
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise mistake from None
        if ("sweep" in tables) == (other == "sweep") and {"sweep", "flow"} & tables.keys():
            kind, wanted = ("sweep", "scenario") if other == "sweep" else ("scenario", "sweep")
            msg = f"{path}: this is a {kind}, not a {wanted}; `whyloss {other} {path}` runs it"
            raise _native.InputError(msg) from None
        raise


def complete_field(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Paths of a scenario's fields for the shell, one step further than what is typed."""
    schema = _native.scenario_schema()
    typed, dot, last = begun.rpartition(".")
    node: dict[str, Any] = schema
    for step in filter(None, re.split(r"[.\[]", typed)):
        if not step.rstrip("]").isdigit():
            node = _inside(schema, _inside(schema, node).get("properties", {}).get(step, {}))
    found = sorted(name for name in _inside(schema, node).get("properties", {}) if name.startswith(last))
    return [f"{typed}{dot}{name}" for name in found]


def _inside(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """What a field holds: behind references, alternatives with nothing, and lists."""
    for _ in range(8):
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        elif "anyOf" in node:
            node = next((one for one in node["anyOf"] if one.get("type") != "null"), {})
        elif "items" in node:
            node = node["items"]
        else:
            break
    return node


def _overrides(_context: click.Context, _option: click.Parameter, sets: tuple[str, ...]) -> tuple[str, ...]:
    for text in sets:
        if "=" not in text:
            raise click.BadParameter(f"found {text!r}; allowed: FIELD=VALUE, such as path.rate='1 Mbps'")
    return sets


set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    callback=_overrides,
    metavar="FIELD=VALUE",
    shell_complete=complete_field,
    help="Another value for a field, such as path.rate='1 Mbps' or 'flow[0].scheme=cubic'; can be given several times.",
)

store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/store"),
    show_default=True,
    envvar="WHYLOSS_STORE",
    show_envvar=True,
    help="Where finished runs are kept. What is there is not computed again.",
)


class Store(click.Path):
    """A folder, or the address of a bucket as it is written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Keeps addresses from being taken for paths."""
        if isinstance(value, str) and value.startswith(BUCKETS):
            return value
        return super().convert(value, param, ctx)


#: As `store_option`, where workers of a cluster may write to it.
any_store_option = click.option(
    "--store",
    type=Store(path_type=Path, file_okay=False),
    default=Path("out/store"),
    show_default=True,
    envvar="WHYLOSS_STORE",
    show_envvar=True,
    help="Where finished runs are kept: a folder; with --on also a bucket: s3://BUCKET/PREFIX, gs://, az://.",
)

threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Runs at a time. [default: one for each core]"
)


#: Where a sweep is computed.
@dataclass(frozen=True, slots=True)
class Where:
    """Where runs are computed, as the options of `on_options` say."""

    stacks: tuple[str, ...]
    """Real stacks, if the command can run on them and they are named."""
    cluster: str | None
    """A batch system, or the address of a scheduler or of a cluster behind a gateway; none for this machine."""
    partition: str | None
    jobs: int | None
    job_cores: int | None

    @property
    def jobs_end(self) -> bool:
        """Whether the cluster ends with the command."""
        return self.cluster in BATCH_SYSTEMS

    @contextmanager
    def client(self) -> Iterator[Client | None]:
        """Of the cluster, if one is named."""
        if self.cluster is None:
            yield None
            return
        from whyloss.cluster import Jobs, connect

        with connect(self.cluster, Jobs(self.jobs or 1, self.job_cores, self.partition)) as client:
            if client.dashboard_link:
                say(f"dashboard: {client.dashboard_link}")
            yield client


def on_options(*stacks: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that say where runs are computed; the command gets them as ``where``.

    ``stacks`` are those that the command can run on. Several of them can be named, but one cluster.
    """
    words = (*stacks, *BATCH_SYSTEMS)
    real = f"{', '.join(stacks)}: real packets over emulated links, as root. " if stacks else ""

    def where(on: tuple[str, ...], partition: str | None, jobs: int | None, job_cores: int | None) -> Where:
        chosen = dict.fromkeys(on)
        for word in chosen:
            if word not in words and "://" not in word:
                allowed = f"dask://HOST:PORT, gateway+https://HOST/CLUSTER, {', '.join(words)}"
                raise click.BadParameter(f"found {word!r}; allowed: {allowed}", param_hint="--on")
        clusters = [word for word in chosen if word not in stacks]
        if clusters and len(chosen) > 1:
            raise click.BadParameter(f"{clusters[0]} does not go with another", param_hint="--on")
        if not set(clusters) & set(BATCH_SYSTEMS):
            for option, value in {"--partition": partition, "--jobs": jobs, "--job-cores": job_cores}.items():
                if value is not None:
                    raise click.BadParameter("goes with a batch system, as --on slurm", param_hint=option)
        named = tuple(word for word in chosen if word in stacks)
        return Where(named, clusters[0] if clusters else None, partition, jobs, job_cores)

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        return [word for word in (*words, "dask://", "gateway+https://") if word.startswith(begun)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--on",
            multiple=True,
            metavar="|".join([*stacks, "dask://HOST:PORT", *BATCH_SYSTEMS]),
            shell_complete=complete,
            help=f"{real}Else: on the workers of a Dask cluster, or on workers that a batch system starts."
            "  [default: the cores of this machine]",
        )
        @click.option("--partition", help="With a batch system: its partition or queue.  [default: its own default]")
        @click.option("--jobs", type=click.IntRange(min=1), help="With a batch system: so many jobs.  [default: 1]")
        @click.option(
            "--job-cores", type=click.IntRange(min=1), help="With a batch system: cores of each job.  [default: 1]"
        )
        @functools.wraps(command)
        def folded(
            *args: Any,
            on: tuple[str, ...],
            partition: str | None,
            jobs: int | None,
            job_cores: int | None,
            **others: Any,
        ) -> None:
            command(*args, where=where(on, partition, jobs, job_cores), **others)

        return folded

    return decorate


def _add(_context: click.Context, _option: click.Parameter, files: tuple[Path, ...]) -> tuple[Path, ...]:
    for file in files:
        parts.add_file(file)
    return files


def _refuse(_context: click.Context, option: click.Parameter, files: tuple[Path, ...]) -> None:
    if files:
        raise click.BadParameter(SIMULATOR_ONLY, param=option)


#: Why a part in Python cannot be had on real packets.
SIMULATOR_ONLY = "parts in Python run in the simulator only; a part that carries real packets is written in Rust"

_with = functools.partial(
    click.option,
    "--with",
    "own",
    multiple=True,
    metavar="FILE.py",
    type=click.Path(path_type=Path),
    callback=_add,
    help="A Python file with parts of your own, which scenarios can then name; can be given several times.",
)

#: The parts are added; the command need not know.
with_option = _with(expose_value=False)

#: The same, for a command that wants to know which files were given, as ``own``.
with_own_option = _with()

#: For commands that carry real packets: says why there is no such option.
without_option = click.option(
    "--with", multiple=True, type=click.Path(path_type=Path), callback=_refuse, expose_value=False, hidden=True
)
