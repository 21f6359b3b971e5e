"""Imports that Ctrl-C ends without a word on where they were. This module itself imports next to nothing."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["load"]


def load(module: str) -> Any:
    """Imports a module; Ctrl-C meanwhile ends the process with status 130.

    What is imported may turn a ``KeyboardInterrupt`` into an error of its own, or bring a handler of Ctrl-C, as polars
    does, beside which Python's would interrupt a second time. Python's is alone again afterwards.
    """
    own = signal.getsignal(signal.SIGINT)
    if own is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        return importlib.import_module(module)  # Ctrl-C is ignored, or is another's to answer.
    signal.signal(signal.SIGINT, _end)
    try:
        return importlib.import_module(module)
    finally:
        signal.signal(signal.SIGINT, own)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    try:
        os.write(2, b"stopped\n")
    finally:
        os._exit(130)  # Nothing is begun yet that would have to be ended.
