"""The standard input as a capture that can be stopped, and read a second time."""

from __future__ import annotations

import os
import select
import signal
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from whyloss import _native

__all__ = ["KEPT", "STDIN", "Pump"]

#: What messages call it.
STDIN = "standard input"
#: Octets of it that are kept for a second reading; what comes after them is explained, but not drawn or annotated.
KEPT = 4 << 30
_CHUNK = 1 << 18
_POLL_MS = 200


class Pump:
    """Hands what comes from a file descriptor on to a pipe, until it ends or is stopped."""

    def __init__(self, source: int = 0, *, keep: bool = False, at_most: int = KEPT) -> None:
        """Reads ``source``. With ``keep``, the first ``at_most`` octets are kept in a temporary file."""
        if not hasattr(select, "poll"):
            raise _native.UnavailableError(
                "this system cannot explain a capture while it comes: save it, and name its file"
            )
        self._source = source
        self._room = at_most if keep else 0
        self._end = ExitStack()
        self._copy: int | None = None
        self.kept = Path("-")
        """Where to read it a second time."""
        if keep:
            self.kept = Path(self._end.enter_context(tempfile.TemporaryDirectory(prefix="whyloss-")), "capture")
            self._copy = os.open(self.kept, os.O_WRONLY | os.O_CREAT, 0o600)
            self._end.callback(os.close, self._copy)
        self._out, self._into = os.pipe()
        # A signal shall end the wait for packets, too, although the interpreter does not run meanwhile.
        self._signals, self._signalled = os.pipe()
        os.set_blocking(self._signalled, False)
        self._before = -1
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.cut = False
        """More came than is kept."""

    @property
    def path(self) -> Path:
        """Where to read it."""
        return Path(f"/dev/fd/{self._out}")

    @property
    def over(self) -> bool:
        """Nothing more will come."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Ends the capture here."""
        self._stopped.set()

    def __enter__(self) -> Pump:
        """Begins; Ctrl-C stops it from now on."""
        self._before = signal.set_wakeup_fd(self._signalled, warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends; what was kept goes away."""
        self.stop()
        signal.set_wakeup_fd(self._before)
        os.close(self._out)
        self._thread.join()
        os.close(self._signals)
        os.close(self._signalled)
        self._end.close()

    def _run(self) -> None:
        waiting = select.poll()
        waiting.register(self._source, select.POLLIN)
        waiting.register(self._signals, select.POLLIN)
        try:
            while not self._stopped.is_set():
                ready = [file for file, _ in waiting.poll(_POLL_MS)]
                if self._signals in ready and signal.SIGINT in os.read(self._signals, 64):
                    break
                if self._source not in ready:
                    continue
                octets = os.read(self._source, _CHUNK)
                if not octets:
                    break
                self._keep(octets)
                rest = memoryview(octets)
                while rest:
                    rest = rest[os.write(self._into, rest) :]
        except BrokenPipeError:
            pass  # Whoever reads has read enough.
        finally:
            os.close(self._into)

    def _keep(self, octets: bytes) -> None:
        if self._copy is None:
            return
        self.cut = self.cut or len(octets) > self._room
        kept = memoryview(octets)[: self._room]
        self._room -= len(kept)
        while kept:
            kept = kept[os.write(self._copy, kept) :]
