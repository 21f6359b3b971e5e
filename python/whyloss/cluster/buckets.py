"""Stores at an object store: workers write their parts there, and what is there is not computed again."""

from __future__ import annotations

import functools
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from obstore.store import ObjectStore

    from whyloss.cluster.stores import AtWorker

__all__ = ["Bucket", "BucketError"]

#: The names of parts; all those of a point have the same stem.
PART = re.compile(r"[0-9a-f]{2}/(?P<stem>[0-9a-f]{32})-[0-9a-f]+\.part")
#: Requests at a time.
AT_A_TIME = 16
#: Octets of a part that are asked for to read what it says of itself; a longer header takes a second request.
HEAD = 1 << 16
#: Octets before the header of a part: its mark and the header's length.
BEFORE = 16
#: Seconds that a store which does not answer is tried again.
RETRY_S = 30


class BucketError(OSError):
    """An object store refuses, or does not answer. Unlike errors of the engine, it can travel from a worker."""


class Part(NamedTuple):
    """A part in the bucket: its name below the prefix, and its octets."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket with a prefix. Each machine takes credentials from its own surroundings: they never travel."""

    url: str

    def check(self) -> None:
        """Writes a small object and takes it away, so that a refusal shows before the first run.

        Raises:
            BucketError: it cannot be written to.
        """
        import secrets

        import obstore

        name = f".mark-{secrets.token_hex(8)}"
        with self._naming():
            obstore.put(_opened(self.url), name, b"whyloss")
            obstore.delete(_opened(self.url), name)

    def at_worker(self) -> AtWorker:
        """The bucket, if this worker may write to it."""
        self.check()
        return _Uploading(self)

    def parts(self, stems: Collection[str]) -> list[Part]:
        """The parts that are there whose names begin with one of ``stems``."""
        import obstore

        with self._naming():
            listed = [object_ for page in obstore.list(_opened(self.url)) for object_ in page]
        found = (Part(object_["path"], object_["size"]) for object_ in listed)
        return [part for part in found if (match := PART.fullmatch(part.name)) and match["stem"] in stems]

    def fetch_headers(self, stems: Collection[str], folder: Path) -> None:
        """Brings what each part with one of ``stems`` says of itself: enough to know which runs are there."""

        def header(part: Part) -> bytes:
            head = self._range(part, HEAD)
            wanted = BEFORE + int.from_bytes(head[8:BEFORE], "little")
            return head if len(head) >= min(wanted, part.size) else self._range(part, wanted)

        self._fetch(stems, folder, header)

    def fetch(self, stems: Collection[str], folder: Path) -> None:
        """Brings all parts with one of ``stems``."""
        self._fetch(stems, folder, lambda part: self._range(part, part.size))

    def put(self, names: Iterable[str], folder: Path) -> None:
        """Writes parts of ``folder`` to the bucket. An object is there whole or not at all."""
        import obstore

        with self._naming():
            for name in names:
                obstore.put(_opened(self.url), name, folder / name)

    def _range(self, part: Part, octets: int) -> bytes:
        import obstore

        with self._naming():
            return bytes(obstore.get_range(_opened(self.url), part.name, start=0, end=min(octets, part.size)))

    def _fetch(self, stems: Collection[str], folder: Path, octets: Callable[[Part], bytes]) -> None:
        def bring(part: Part) -> None:
            path = folder / part.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(octets(part))

        pool = ThreadPoolExecutor(AT_A_TIME)
        try:
            for _ in pool.map(bring, self.parts(stems)):
                pass
        finally:
            # After an error or Ctrl-C, what has not begun is not waited for.
            pool.shutdown(cancel_futures=True)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Says in a line what went wrong, and where."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.NotFoundError, FileNotFoundError) as error:
            raise BucketError(f"{self.url}: there is no such bucket") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError) as error:
            raise BucketError(f"{self.url}: access is refused; credentials are taken from the environment") from error
        except (exceptions.BaseError, ValueError) as error:
            raise BucketError(f"{self.url}: {str(error).splitlines()[0]}") from error


@functools.cache
def _opened(url: str) -> ObjectStore:
    """One connection for each process."""
    from datetime import timedelta

    from obstore.store import from_url

    return from_url(url, retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=RETRY_S)})


@dataclass(frozen=True, slots=True)
class _Uploading:
    bucket: Bucket

    @contextmanager
    def place(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    def keep(self, place: Path) -> dict[str, bytes]:
        self.bucket.put((path.relative_to(place).as_posix() for path in place.glob("??/*.part")), place)
        return {}
