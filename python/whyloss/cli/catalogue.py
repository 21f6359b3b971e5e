"""``whyloss schemes`` and ``whyloss describe``: what there is and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from whyloss import _native
from whyloss.cli.console import Command, as_json, row, screen, table, tell_json
from whyloss.cli.options import complete_field, with_option

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["describe", "schemes"]

ROLES = {
    "congestion": "Congestion control: how the window moves",
    "differentiator": "Loss differentiator: why a segment was lost",
    "reaction": "Reaction: what the verdict does to the window",
    "timeout": "Timeout policy: what a retransmission timeout does",
    "receiver": "Receiver agent: what the receiver measures and reports",
}

DATAGRAM = "Datagrams with congestion control, instead of TCP"
MIDDLEBOX = "Middlebox: what a router does for the flows that cross one of its links"

USES = {
    "scheme": 'scheme = "{}" in a [[flow]]',
    "profile": 'profile = "{}" in a [[flow]]',
    "datagram": 'scheme = "{}" in a [[flow]]',
    "middlebox": 'kind = "{}" in a [[middlebox]]',
    **{role: role + ' = "{}" in a [[flow]]' for role in ROLES},
}

DETAILS = {
    "scheme": "its parts",
    "profile": "some of its values",
    "field": "inside",
    "datagram": "its parameters",
    "middlebox": "its parameters",
    **dict.fromkeys(ROLES, "its parameters"),
}


@click.command(cls=Command, examples=["whyloss schemes", "whyloss schemes --json", "whyloss describe checksum-ld"])
@with_option
@as_json
def schemes(as_json: bool) -> None:
    """List the schemes of the literature and the parts that they are made of.

    A scheme puts five parts together, one for each role. A scenario can name a scheme, or parts, or a scheme with
    some of its parts replaced.
    """
    if as_json:
        tell_json({"schemes": _native.schemes(), "parts": _native.parts(), "profiles": _native.profiles()})
        return
    _list("Schemes", _native.schemes())
    for role, title in [*ROLES.items(), ("datagram", DATAGRAM), ("middlebox", MIDDLEBOX)]:
        _list(f"\n{title}", [part for part in _native.parts() if part["kind"] == role])
    names = ", ".join(profile["name"] for profile in _native.profiles())
    screen.print(f"\n[bold]Profiles: which TCP it is before the scheme[/]\n{escape(names)}")


def _list(title: str, found: Iterable[_native.Description]) -> None:
    listing = table(title, "name", "what it does", "reference")
    for description in found:
        row(listing, description["name"], description["summary"], description.get("reference", ""))
    screen.print(listing)


def _complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    described = [*_native.schemes(), *_native.parts(), *_native.profiles()]
    names = sorted({one["name"] for one in described if one["name"].startswith(begun)})
    return [*names, *complete_field(context, parameter, begun)]


@click.command(
    cls=Command,
    examples=[
        "whyloss describe checksum-ld             # a scheme",
        "whyloss describe cubic                   # a part",
        "whyloss describe path.queue              # a field of a scenario",
        "whyloss describe flow.tcp.ack_policy     # and what may stand there",
    ],
)
@click.argument("name", shell_complete=_complete)
@with_option
@as_json
def describe(name: str, as_json: bool) -> None:
    """Explain a scheme, a part, a profile, or a field of the scenario format.

    NAME is a scheme (checksum-ld), a part (cubic), a profile (freebsd45) or the path of a field (path.forward.rate).
    A name that stands for several things gets all of them explained.
    """
    found = _native.describe(name)
    if as_json:
        tell_json(found)
        return
    for position, description in enumerate(found):
        if position:
            screen.print()
        _show(description)


def _show(description: _native.Description) -> None:
    kind = description["kind"]
    reference = description.get("reference")
    source = f"  [dim]{escape(reference)}[/]" if reference else ""
    screen.print(f"[bold]{escape(description['name'])}[/]  {kind}{source}")
    screen.print(f"  {escape(' '.join(description['summary'].split()))}")
    if description["details"]:
        listing = table("", f"  {DETAILS[kind]}", "")
        for name, meaning in description["details"]:
            row(listing, f"  {name}", " ".join(meaning.split()))
        screen.print(listing)
    for heading, text in description.get("notes", []):
        screen.print(f"  [dim]{heading}:[/] {escape(text)}")
    if kind in USES:
        screen.print(f"  [dim]in a scenario:[/] {escape(USES[kind].format(description['name']))}")
