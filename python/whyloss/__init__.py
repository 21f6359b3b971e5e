"""Why TCP lost a packet, congestion or corruption, and what it should do about it."""

from whyloss import _native

__all__ = ["__version__"]

__version__ = _native.VERSION
