"""For mkdocstrings: docstrings as the site's Markdown wants them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
SESSION = re.compile(r"(?:^>>> .*\n?(?:^(?!\n).+\n?)*)+", re.MULTILINE)


class Markdown(griffe.Extension):
    """Sphinx roles become code, and sessions of the interpreter blocks of code."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Goes through all that the package defines."""
        for member in walk(pkg):
            if member.docstring is not None:
                text = ROLE.sub(r"`\1`", member.docstring.value)
                member.docstring.value = SESSION.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


def walk(member: griffe.Object) -> Iterator[griffe.Object]:
    """An object and those in it, without what is only imported."""
    yield member
    for below in member.members.values():
        if not below.is_alias:
            yield from walk(below)  # type: ignore[arg-type]
