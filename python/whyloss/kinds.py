"""What is compared: schemes by name, or by what they are made of."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whyloss import _native
from whyloss.paths import KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Kind", "names"]

#: The fields that may tell it beside these.
_MORE = ("profile", "tcp", "datagrams")


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the two schemes that are compared."""

    label: str
    """As it was asked for."""
    fields: dict[str, object]
    """What it is made of: fields of a ``[[flow]]``."""

    @classmethod
    def of(cls, asked: str | Mapping[str, object]) -> Kind:
        """A kind by name, by fields, or both: ``cubic``, ``newreno,differentiator=zigzag,reaction=keep``.

        A name is that of a scheme, of a transport of datagrams, or else of a congestion control. Fields are those of a
        ``[[flow]]`` that tell its kind.

        Raises:
            whyloss.InputError: says what was found and what is allowed.
        """
        if not isinstance(asked, str):
            label = ",".join(f"{field}={value}" for field, value in asked.items())
            return cls(label, _checked(dict(asked), label))
        fields: dict[str, object] = {}
        for position, word in enumerate(part.strip() for part in asked.split(",")):
            field, equals, value = (part.strip() for part in word.partition("="))
            if equals:
                fields[field] = _value(value)
            elif position == 0:
                fields.update(_named(word))
            else:
                msg = f"`{asked}`: found `{word}`; allowed: a name, then FIELD=VALUE, with commas between them"
                if word in names():
                    msg += "; each scheme is named by itself: " + " ".join(
                        f"--scheme {one}" for one in asked.split(",")
                    )
                raise _native.InputError(msg)
        return cls(asked, _checked(fields, asked))

    @property
    def datagrams(self) -> bool:
        """Whether it is a transport of its own instead of TCP."""
        return self.fields.get("scheme") in _known("datagram")


def _checked(fields: dict[str, object], asked: str) -> dict[str, object]:
    for field in fields:
        if field.split(".")[0] not in (*KIND, *_MORE):
            msg = f"`{asked}`: found the field `{field}`; allowed: {', '.join([*KIND, *_MORE])}"
            raise _native.InputError(msg)
    return fields


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _named(name: str) -> dict[str, object]:
    if name in names("scheme", "datagram"):
        return {"scheme": name}
    if name in names("congestion"):
        return {"congestion": name}
    near = difflib.get_close_matches(name.lower(), names(), 1)
    meant = f" (did you mean `{near[0]}`?)" if near else ""
    msg = f"there is no scheme `{name}`{meant}; there are {', '.join(names())}"
    raise _native.InputError(msg)


def names(*kinds: str) -> list[str]:
    """Names that :meth:`Kind.of` knows: schemes, transports of datagrams, and what congestion controls there are."""
    return list(dict.fromkeys(name for kind in kinds or ("scheme", "datagram", "congestion") for name in _known(kind)))


def _known(kind: str) -> list[str]:
    found = _native.schemes() if kind == "scheme" else _native.parts()
    return [one["name"] for one in found if one["kind"] == kind]
