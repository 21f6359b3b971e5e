"""Files that bear their name only once they are whole, and folders that know what belongs to them."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss._native import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["SUMS", "aside", "check", "seal", "unseal", "write"]

#: What a folder of results holds, with the SHA-256 of each file, as `sha256sum --check` reads it.
SUMS = "SHA256SUMS"


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Gives another name in the same folder, with the same ending, to write to; what lies there becomes ``path``.

    If the block fails, it goes away, and ``path`` stays as it was.
    """
    part = path.with_name(f".{path.stem}.{os.getpid()}-{threading.get_ident()}.part{path.suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as failure:
        # Who reads of it knows the name that was asked for.
        if failure.filename in (part, str(part)):
            failure.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, text: str) -> Path:
    """Writes ``text`` to ``path`` as UTF-8, all of it or nothing; returns ``path``."""
    with aside(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def seal(folder: Path, names: Collection[str]) -> None:
    """Notes that the files ``names`` in ``folder`` belong together, and what is in them.

    What an earlier note names and this one does not, is of an earlier run and goes away.
    """
    for old in _noted(folder).keys() - set(names):
        (folder / old).unlink(missing_ok=True)
    write(folder / SUMS, "".join(f"{_sum(folder / name)}  {name}\n" for name in sorted(names)))


def unseal(folder: Path, names: Collection[str]) -> None:
    """Takes away what notes which files in ``folder`` belong together, and the files ``names``."""
    for name in (SUMS, *names):
        (folder / name).unlink(missing_ok=True)


def check(path: Path) -> None:
    """Compares a file with what its folder notes of it, if it does.

    Raises:
        whyloss.InputError: the file has changed since.
    """
    noted = _noted(path.parent).get(path.name)
    if noted is not None and path.is_file() and _sum(path) != noted:
        raise InputError(
            f"{path}: it is not as it was written: its SHA-256 is not the one in {SUMS}; "
            "delete that file if the change is yours"
        )


def _noted(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in pairs if name and Path(name).name == name}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
