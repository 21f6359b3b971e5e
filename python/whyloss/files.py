"""Files that bear their name only once they are whole, and folders that know what belongs to them."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from whyloss._native import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from os import PathLike

__all__ = ["SUMS", "add", "aside", "check", "named", "seal", "unseal", "write"]

#: What a folder of results holds, with the SHA-256 of each file, as `sha256sum --check` reads it.
SUMS = "SHA256SUMS"


def named(folder: str | PathLike[str]) -> Path:
    """The folder, if its name can be read wherever tables are read.

    Raises:
        whyloss.InputError: its name is not UTF-8.
    """
    place = Path(folder)
    try:
        str(place).encode()
    except UnicodeEncodeError:
        shown = str(place).encode(errors="backslashreplace").decode()
        raise InputError(f"{shown}: found a name that is not UTF-8; allowed for a folder of tables: UTF-8") from None
    return place


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Gives another name in the same folder, with the same ending, to write to; what lies there becomes ``path``.

    If the block fails, it goes away, and ``path`` stays as it was. A link stays, and what it leads to is replaced. What
    is there and is no regular file, such as a pipe or a device, gets what was written once it is whole.
    """
    place = Path(os.path.realpath(path))
    part = place.with_name(f".{path.stem}.{os.getpid()}-{threading.get_ident()}.part{path.suffix}")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            with _elsewhere(path) as part:
                yield part
            return
        yield part
        part.replace(place)
    except OSError as failure:
        # Who reads of it knows the name that was asked for.
        if failure.errno is not None and failure.filename in (None, part, str(part)):
            failure.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _elsewhere(path: Path) -> Iterator[Path]:
    """Gives the name of a temporary file with the same ending; what is written there goes into ``path``."""
    with TemporaryDirectory(prefix="whyloss-") as folder:
        part = Path(folder, f"part{path.suffix}")
        yield part
        with part.open("rb") as made, path.open("wb") as there:
            shutil.copyfileobj(made, there)


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


def add(folder: Path, name: str, text: str) -> None:
    """Writes ``text`` to the file ``name`` in a sealed ``folder``, and notes that it belongs to the others."""
    write(folder / name, text)
    noted = {**_noted(folder), name: _sum(folder / name)}
    write(folder / SUMS, "".join(f"{noted[one]}  {one}\n" for one in sorted(noted)))


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
