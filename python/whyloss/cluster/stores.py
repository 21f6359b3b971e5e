"""Where the results of workers go: into a folder that they share, or back to who asked."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

__all__ = ["AtWorker", "Folder", "Store", "put"]

#: A file in a store with a word of its own, by which a worker knows that it sees the same folder.
MARK = ".mark"


class AtWorker(Protocol):
    """A store as a worker sees it."""

    def place(self) -> AbstractContextManager[Path]:
        """The folder to compute into."""

    def keep(self, place: Path) -> dict[str, bytes]:
        """Keeps what lies in ``place``; gives what the client has to keep instead, by name."""


class Store(Protocol):
    """A store as the client describes it to workers."""

    def at_worker(self) -> AtWorker:
        """The store as this worker sees it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the client. Workers that see it too write to it; the others send back."""

    path: str
    word: str

    @classmethod
    def of(cls, path: Path) -> Folder:
        """The folder ``path``, which is made if need be."""
        path.mkdir(parents=True, exist_ok=True)
        mark = path / MARK
        try:
            with mark.open("x", encoding="ascii") as file:
                file.write(secrets.token_hex())
        except FileExistsError:
            pass
        return cls(str(path.resolve()), mark.read_text(encoding="ascii"))

    def at_worker(self) -> AtWorker:
        """The folder itself if this machine sees it, else a way back."""
        try:
            shared = (Path(self.path) / MARK).read_text(encoding="ascii") == self.word
        except (OSError, UnicodeDecodeError):
            shared = False
        return _Shared(Path(self.path)) if shared else _SentBack()


@dataclass(frozen=True, slots=True)
class _Shared:
    path: Path

    @contextmanager
    def place(self) -> Iterator[Path]:
        yield self.path

    def keep(self, place: Path) -> dict[str, bytes]:  # noqa: ARG002
        return {}


@dataclass(frozen=True, slots=True)
class _SentBack:
    @contextmanager
    def place(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    def keep(self, place: Path) -> dict[str, bytes]:
        return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.glob("??/*.part")}


def put(folder: Path, parts: dict[str, bytes]) -> None:
    """Keeps parts that came back. A name that leads out of the folder is refused."""
    from whyloss import files

    for name, octets in parts.items():
        path = folder / name
        if len(Path(name).parts) != 2 or ".." in Path(name).parts:
            raise ValueError(f"{name!r} is no name of a part")
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.aside(path) as part:
            part.write_bytes(octets)
