"""Numbers and causes in words."""

from __future__ import annotations

__all__ = ["CAUSES", "FATES", "LIMITS", "TRIGGERS", "amount", "cause", "count", "of", "seconds", "share", "span"]

#: What became of packets of a cause, for "41 of 55 lost packets …".
FATES: dict[str, str] = {
    "congestion": "were dropped by a full queue",
    "policer": "were dropped by a policer",
    "corruption": "were damaged, not dropped",
    "link-down": "were lost while the path was down",
    "receiver": "were dropped by the receiver's host",
    "reordering": "were only overtaken",
    "spurious-timeout": "were only late",
    "ack-loss": "arrived; their acknowledgements did not",
    "capture": "arrived; the capture did not see them",
    "unknown": "have no cause that the packets show",
}
#: Causes in words, in the order of tables and legends.
CAUSES: dict[str, str] = {
    "congestion": "congestion: a queue was full",
    "policer": "a policer",
    "corruption": "damage on the way",
    "link-down": "the path was down",
    "receiver": "the receiver's host",
    "reordering": "overtaken, not lost",
    "spurious-timeout": "late, not lost",
    "ack-loss": "arrived, its acknowledgement did not",
    "capture": "arrived, missed by the capture",
    "unknown": "unknown",
}
#: What limited a connection that lost little, for "… (5.6 of 5.9 s)".
LIMITS: dict[str, str] = {
    "handshake": "opening the connection took its time",
    "application": "the sender's application had nothing to send",
    "idle": "nobody sent anything",
    "receive-window": "the receiver's window limits it",
    "zero-window": "the receiver's window was closed, as its application reads too slowly or its buffer is too small",
    "congestion-window": "the sender, not the path, limits it by its congestion window or send buffer",
    "send-buffer": "the sender's send buffer limits it",
    "recovering": "losses were repaired",
    "retransmission-timer": "it waited for the retransmission timer",
    "probe-timer": "it waited for probes of a lost tail",
    "delayed-ack": "it waited for delayed acknowledgements",
    "path-rate": "the path was full",
}
#: Why something was sent again, for a list.
TRIGGERS: dict[str, str] = {
    "fast": "duplicate acknowledgements or SACK",
    "recovery": "further repairs of a recovery",
    "tail-probe": "tail loss probe",
    "timeout": "timeout",
    "backed-off-timeout": "timeout, backed off",
    "after-timeout": "after a timeout",
    "handshake": "SYN not answered",
    "unknown": "unknown",
}


def cause(name: str) -> str:
    """A cause in words; one that is not known here by its name."""
    return CAUSES.get(name, name)


def count(number: int, one: str, many: str = "") -> str:
    """A count with its noun, which takes an s if nothing else is said."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def of(part: int, whole: int, noun: str) -> str:
    """``41 of 55 lost packets``, ``both lost packets``, ``the lost packet``."""
    if part == whole:
        words = {1: f"the {noun}", 2: f"both {noun}s"}
        return words.get(whole, f"all {whole:,} {noun}s")
    return f"{part:,} of {whole:,} {noun}s"


def seconds(value: float) -> str:
    """A length of time with three digits."""
    if value >= 100:
        return f"{value:,.0f} s"
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def span(part: float, whole: float) -> str:
    """``7.1 of 12.4 s``: both in the unit of the whole."""
    if whole >= 1:
        digits = 0 if whole >= 100 else 1
        return f"{part:,.{digits}f} of {whole:,.{digits}f} s"
    return f"{part * 1e3:.0f} of {whole * 1e3:.0f} ms"


def share(part: float, whole: float) -> str:
    """``7.1 %``, with two digits; the whole is ``100 %``."""
    return f"{float(f'{100 * part / max(whole, 1):.2g}'):g} %"


def amount(octets: float) -> str:
    """An amount of data."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if octets >= size:
            return f"{octets / size:.3g} {unit}"
    return f"{octets:.0f} octets"
