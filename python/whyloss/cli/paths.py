"""The options that say what a link is like, for commands that need no scenario file."""

from __future__ import annotations

import functools
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from whyloss import _native, paths
from whyloss.cli.options import load_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from whyloss.kinds import Kind
    from whyloss.scenario import Scenario

__all__ = [
    "as_typed",
    "choose",
    "complete_scheme",
    "kinds_of",
    "link_options",
    "retyped",
    "scheme_option",
    "with_schemes",
]

_OPTIONS = (
    ("rate", "RATE", f"Bit rate of the link, such as 10Mbps.  [default: {paths.RATE}]"),
    ("delay", "TIME", f"Its delay in each direction, such as 20ms.  [default: {paths.DELAY}]"),
    ("queue", "LENGTH", "What waits in front of it, such as 50pkt or 64kB.  [default: one bandwidth-delay product]"),
    ("loss", "SHARE", "Share of the packets lost on the way to the receiver, such as 1%."),
    ("damaged", "SHARE", "Share of them that arrive with flipped bits instead of being lost."),
    ("policer", "RATE[,DEPTH]", "A token bucket drops what exceeds it, such as 4Mbps,60kB.  [default depth: 100 ms]"),
)


def link_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options of a link; it gets those that were given as ``link``."""

    @functools.wraps(command)
    def with_link(**given: Any) -> Any:
        names = [name for name, _, _ in _OPTIONS] + ["burst"]
        link = {name: value for name in names if (value := given.pop(name)) is not None}
        return command(link=link, **given)

    decorated: Callable[..., Any] = click.option(
        "--burst",
        type=click.FloatRange(min=1),
        metavar="PACKETS",
        help="So many in a row are lost, or damaged, in the mean.  [default: 1, each by itself]",
    )(with_link)
    for name, metavar, text in reversed(_OPTIONS):
        decorated = click.option(f"--{name}", metavar=metavar, help=text)(decorated)
    return decorated


def complete_scheme(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Names of schemes for the shell."""
    from whyloss.kinds import names

    return [name for name in names() if name.startswith(begun)]


def scheme_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--scheme``, which can be given several times, as ``schemes``."""
    return click.option("--scheme", "schemes", multiple=True, metavar="NAME", shell_complete=complete_scheme, help=text)


def kinds_of(schemes: tuple[str, ...]) -> list[Kind]:
    """The schemes that were asked for.

    Raises:
        whyloss.InputError: one does not exist, or is named twice.
    """
    from whyloss.kinds import Kind

    twice = [name for number, name in enumerate(schemes) if name in schemes[:number]]
    if twice:
        raise click.BadParameter(f"{twice[0]!r} is named twice", param_hint="--scheme")
    return [Kind.of(name) for name in schemes]


def choose(file: Path | None, link: dict[str, Any], more: dict[str, Any] | None = None) -> Scenario:
    """The scenario of a file with the link that the options say, or that link by itself.

    Args:
        file: the scenario; without one there has to be an option that says something of the link.
        link: what :func:`link_options` gave.
        more: ``duration`` and ``seed``, if they were given.
    """
    given = {**link, **{name: value for name, value in (more or {}).items() if value is not None}}
    if file is not None:
        loaded = load_scenario(file)
        with as_typed(given):
            return paths.changed(loaded, given)
    if not link:
        options = ", ".join(f"--{name}" for name, _, _ in _OPTIONS)
        raise click.UsageError(
            f"there is nothing to run: name a scenario file, or say what the link is like with {options}, "
            "as in --rate 10Mbps --delay 20ms --loss 1%"
        )
    with as_typed(given):
        return paths.path(**given)


#: What a number without a unit was probably meant in.
_UNITS = {"rate": "Mbps", "delay": "ms", "queue": "pkt", "loss": "%", "damaged": "%", "duration": "s"}


@contextmanager
def as_typed(given: Mapping[str, Any], arguments: Collection[str] = ()) -> Iterator[None]:
    """Names the option that was typed, not the field of the scenario that it is for, in what is said of its value.

    Args:
        given: what was typed, by the names of options.
        arguments: those that were typed without a name.
    """
    try:
        yield
    except _native.InputError as mistake:
        for name, value in given.items():
            _, found, rest = str(mistake).partition(f'found "{value}"')
            if found:
                bare = str(value).replace(".", "", 1).isdigit() and name in _UNITS
                meant = f"{value}{_UNITS[name]}" if bare else ""
                if meant.endswith("%") and paths.proportion(meant) is None:
                    meant = ""
                typed = name.upper() if name in arguments else f"--{name}"
                raise _native.InputError(
                    f"{typed}: {found}{rest}{f' (did you mean `{meant}`?)' if meant else ''}"
                ) from None
        raise


def retyped(
    command: str,
    scenario: Path | None,
    link: Mapping[str, Any],
    schemes: Sequence[str],
    sets: Sequence[str],
    own: Sequence[Path],
    **more: object,
) -> str:
    """Another command of the same scenario or link; of ``more`` options, those that have a value."""
    words = ["whyloss", command, *([] if scenario is None else [str(scenario)])]
    for name, value in {**link, **more}.items():
        if value:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    for option, values in (("--scheme", schemes), ("--set", sets), ("--with", own)):
        for value in values:
            words += [option, str(value)]
    return shlex.join(words)


def with_schemes(scenario: Scenario, schemes: tuple[str, ...]) -> list[tuple[str, Scenario]]:
    """The scenario with its first flow of each of the schemes, by their names; itself if none is named."""
    if not schemes:
        return [(scenario.name, scenario)]
    return [
        (kind.label, paths.with_flow(scenario, kind.fields, datagrams=kind.datagrams)) for kind in kinds_of(schemes)
    ]
