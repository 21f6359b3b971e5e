"""Files that bear their name only once they are whole."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["aside", "write"]


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Gives another name in the same folder, with the same ending, to write to; what lies there becomes ``path``.

    If the block fails, it goes away, and ``path`` stays as it was.
    """
    part = path.with_name(f".{path.stem}.{os.getpid()}-{threading.get_ident()}.part{path.suffix}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, text: str) -> Path:
    """Writes ``text`` to ``path`` as UTF-8, all of it or nothing; returns ``path``."""
    with aside(path) as part:
        part.write_text(text, encoding="utf-8")
    return path
