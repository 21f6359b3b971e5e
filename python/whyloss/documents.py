"""The sweep files of a paper as plain documents: as a reading has them, and cut down to what is wanted."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from whyloss import files
from whyloss.pack import PackError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from whyloss.pack import Change, Pack, Reading

__all__ = ["labels_of", "read", "restrict", "write"]


def read(pack: Pack, sweep: str, reading: Reading) -> dict[str, Any]:
    """The file ``sweep`` in ``sweeps/`` with what ``reading`` changes; its base is an absolute path.

    Raises:
        PackError: the file cannot be read, or a change does not fit it.
    """
    path = pack.folder / "sweeps" / f"{sweep}.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PackError(f"{path}: there is no such file") from None
    except tomllib.TOMLDecodeError as mistake:
        raise PackError(f"{path}: {mistake}") from None
    document.setdefault("axis", [])
    document["sweep"]["base"] = str((path.parent / document["sweep"]["base"]).resolve())
    for number, change in enumerate(reading.change):
        if not change.sweeps or sweep in change.sweeps:
            where = f"{pack.folder / 'paper.toml'}: reading.{reading.name}.change[{number}]"
            _apply(change, document, f"{where}, in sweep {sweep}")
    return document


def _apply(change: Change, document: dict[str, Any], where: str) -> None:
    fields = {**change.set, **dict.fromkeys(change.unset)}
    if not change.where:
        _refuse_varied(fields, document["axis"], where)
        document.setdefault("set", {}).update(fields)
        return
    if len(change.where) > 1:
        raise PackError(f"{where}: where: found the axes {', '.join(change.where)}; one is allowed")
    ((name, labels),) = change.where.items()
    axis = next((axis for axis in document["axis"] if axis.get("name") == name), None)
    if axis is None or "variant" not in axis:
        named = [axis["name"] for axis in document["axis"] if "variant" in axis]
        raise PackError(
            f"{where}: where: there is no axis of variants called {name!r}; there are {', '.join(named) or 'none'}"
        )
    others = [other for other in document["axis"] if other is not axis]
    _refuse_varied(fields, others, where)
    _known(labels, axis, f"{where}: where")
    for variant in axis["variant"]:
        if variant["name"] in labels:
            variant.setdefault("set", {}).update(fields)


def _refuse_varied(fields: Collection[str], axes: Iterable[dict[str, Any]], where: str) -> None:
    """An axis would overwrite the change in silence."""
    for axis in axes:
        varied = {axis.get("field"), *axis.get("fields", {})}
        varied.update(field for variant in axis.get("variant", []) for field in variant.get("set", {}))
        for field in fields:
            if field in varied:
                raise PackError(f"{where}: {field} is what axis {axis.get('name', field)!r} varies")


def labels_of(axis: dict[str, Any]) -> list[Any]:
    """What the steps of an axis are called."""
    if "variant" in axis:
        return [variant["name"] for variant in axis["variant"]]
    labels: list[Any] = axis["labels"] if "labels" in axis else axis["values"]
    return labels


def restrict(axis: dict[str, Any], allowed: Collection[str], origin: str) -> None:
    """Keeps the steps of ``axis`` that are called as in ``allowed``."""
    _known(allowed, axis, f"{origin}: axis {axis['name']}")
    keep = [label in allowed for label in labels_of(axis)]
    for name in ("variant", "labels", "values"):
        if name in axis:
            axis[name] = _kept(axis[name], keep)
    if "fields" in axis:
        axis["fields"] = {field: _kept(values, keep) for field, values in axis["fields"].items()}


def _known(wanted: Collection[str], axis: dict[str, Any], where: str) -> None:
    labels = labels_of(axis)
    for label in sorted(wanted):
        if label not in labels:
            raise PackError(f"{where}: there is no {label!r}; there are {', '.join(map(str, labels))}")


def _kept(items: list[Any], keep: list[bool]) -> list[Any]:
    return [item for item, kept in zip(items, keep, strict=True) if kept]


def write(document: dict[str, Any], path: Path) -> Path:
    """Writes ``document`` as a file that ``whyloss sweep`` takes too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return files.write(path, json.dumps(document, indent=1) + "\n")
