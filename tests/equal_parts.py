"""Parts in Python that do what parts of the engine do, to the last bit."""

# ruff: noqa: ARG002 (a part need not use what it is given)
from __future__ import annotations

from whyloss.parts import (
    Ack,
    CongestionControl,
    Loss,
    LossDifferentiator,
    Number,
    PathInfo,
    Reaction,
    Response,
    Verdict,
    Window,
)


class Vegas(LossDifferentiator):
    """As the engine's differentiator of that name."""

    name, summary, reference = "vegas-in-python", "As vegas.", "Bregni, Fratta & Martignon 2003"
    alpha = Number(1.0, 0.0, 1000.0, "Segments in queues up to which a loss is corruption")
    beta = Number(3.0, 0.0, 1000.0, "Segments in queues from which on a loss is congestion")

    def __init__(self) -> None:
        self.base: int | None = None
        self.latest = 0
        self.crest = 0.0
        self.drained = False

    def on_ack(self, ack: Ack) -> None:
        if ack.delay_ns is not None:
            self.base = ack.delay_ns if self.base is None else min(self.base, ack.delay_ns)
            self.latest = ack.delay_ns

    def judge(self, loss: Loss) -> Verdict:
        if self.base is None:
            return Verdict("unknown")
        window = loss.path.cwnd / loss.path.mss
        waiting = window * (self.latest - self.base) / self.latest
        low = waiting <= self.alpha
        self.drained = self.drained or low
        self.crest = waiting if low else max(self.crest, waiting)
        if self.drained:
            below = self.crest <= self.alpha or self.crest < self.beta
            return Verdict("corruption" if below else "congestion", 1.0 / (1.0 + self.crest))
        return Verdict("congestion" if self.crest >= self.beta else "unknown")


class SlowStart(CongestionControl):
    """RFC 3465, 2.2; one segment an acknowledgement after a timeout."""

    def __init__(self) -> None:
        self.after_timeout = False

    def _grew(self, window: Window, ack: Ack) -> bool:
        if not window.in_slow_start:
            self.after_timeout = False
            return False
        limit = window.slow_start_limit
        segments = 1 if self.after_timeout else limit
        most = window.ssthresh - window.cwnd if limit is None or segments is None else segments * window.mss
        if ack.window_limited:
            window.grow(min(ack.acked, most))
        return True

    def on_timeout(self, window: Window, path: PathInfo) -> None:
        self.after_timeout = True


class Gaimd(SlowStart):
    """As the engine's congestion control of that name."""

    name, summary, reference = "gaimd-in-python", "As gaimd.", "Yang & Lam 2000"
    alpha = Number(0.31, 0.001, 100.0, "Segments of growth a round trip")
    beta = Number(0.875, 0.1, 0.99, "The factor of a reduction")

    def on_ack(self, window: Window, ack: Ack) -> None:
        if ack.acked and not ack.in_recovery and not self._grew(window, ack) and ack.window_limited:
            window.grow(self.alpha * window.mss * ack.acked / window.cwnd)

    def threshold(self, window: Window, path: PathInfo) -> float:
        return window.used(path) * self.beta

    def timeout_threshold(self, window: Window, path: PathInfo) -> float:
        return window.used(path) // 2


class NewReno(SlowStart):
    """As the engine's congestion control of that name, which has something to undo."""

    name, summary, reference = "newreno-in-python", "As newreno.", "RFC 5681"

    def __init__(self) -> None:
        super().__init__()
        self.acked = 0
        self.saved = (0, False)

    def on_ack(self, window: Window, ack: Ack) -> None:
        if ack.acked and not ack.in_recovery and not self._grew(window, ack) and ack.window_limited:
            self.acked += ack.acked
            if self.acked >= window.cwnd:
                self.acked -= window.cwnd
                window.grow(window.mss)

    def save(self) -> None:
        self.saved = (self.acked, self.after_timeout)

    def threshold(self, window: Window, path: PathInfo) -> float:
        self.acked = 0
        return path.flight // 2

    def on_undo(self, window: Window, path: PathInfo) -> None:
        self.acked, self.after_timeout = self.saved


class Scale(Reaction):
    """As the engine's reaction of that name."""

    name, summary, reference = "scale-in-python", "As scale.", "Fu & Liew 2003"
    factor = Number(0.8, 0.1, 1.0, "The factor for corruption")

    def respond(self, verdict: Verdict, loss: Loss) -> Response:
        return Response.scale(self.factor) if verdict.cause == "corruption" else Response.reduce()
