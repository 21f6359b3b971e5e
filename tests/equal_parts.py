"""Parts in Python that do what parts of the engine do, to the last bit."""

# ruff: noqa: ARG002 (a part need not use what it is given)
from __future__ import annotations

from whyloss.parts import (
    Ack,
    AfterTimeout,
    Assessment,
    Choice,
    CongestionControl,
    Loss,
    LossDifferentiator,
    Number,
    PathInfo,
    Reaction,
    Response,
    Timeout,
    TimeoutPolicy,
    TimeoutResponse,
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
    alpha = Number(0.3125, 0.001, 100.0, "Segments of growth a round trip")
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


class FRto(TimeoutPolicy):
    """As the engine's policy of that name (RFC 5682)."""

    name, summary, reference = "f-rto-in-python", "As f-rto.", "RFC 5682"

    def __init__(self) -> None:
        self.step = "conventional"
        self.sack = False

    def on_timeout(self, timeout: Timeout) -> TimeoutResponse:
        self.step = "conventional" if timeout.in_recovery else "retransmission"
        self.sack = timeout.sack
        return TimeoutResponse(head_only=not timeout.in_recovery)

    def assess(self, after: AfterTimeout) -> Assessment:
        advanced = after.ack.acked > 0
        if not advanced and not after.ack.duplicate:
            return Assessment.genuine() if self.step == "conventional" else Assessment.undecided()
        step, self.step = self.step, "conventional"
        if step == "retransmission":
            if not advanced and self.sack:
                self.step = step
                return Assessment.undecided()
            if advanced and after.head_end <= after.ack.path.una < after.recover and after.new_data_possible:
                self.step = "forward"
                return Assessment.undecided()
        elif step == "forward":
            told = not after.beyond_recover and (advanced or after.original_delivered) if self.sack else advanced
            return Assessment.spurious() if told else Assessment.genuine()
        return Assessment.genuine()


class Eifel(TimeoutPolicy):
    """As the engine's policy of that name (RFC 3522)."""

    name, summary, reference = "eifel-in-python", "As eifel.", "RFC 3522, RFC 4015"

    def __init__(self) -> None:
        self.armed = False
        self.dsack_seen = False

    def on_timeout(self, timeout: Timeout) -> TimeoutResponse:
        self.armed = timeout.timestamps and (self.armed or not timeout.in_recovery)
        return TimeoutResponse("collapse", back_off=True, head_only=self.armed)

    def assess(self, after: AfterTimeout) -> Assessment:
        known = self.dsack_seen
        self.dsack_seen |= after.dsack
        if not self.armed:
            return Assessment.genuine()
        if not after.ack.acked:
            return Assessment.undecided()
        self.armed = False
        echo, sent = after.echo, after.retransmission_tsval
        older = echo is not None and sent is not None and (echo - sent) % 2**32 >= 2**31
        everything = after.ack.path.una >= after.recover
        spurious = older and not after.dsack and (known or not everything)
        return Assessment.spurious() if spurious else Assessment.genuine()


class Aware(TimeoutPolicy):
    """As the engine's policy of that name."""

    name, summary, reference = "aware-in-python", "As aware.", "our own design"
    in_a_row = Number(3, 1, 16, "Expiries in a row from which on nothing is forgiven")
    outage = Number(4.0, 1.0, 64.0, "Silence beyond which nothing is forgiven, in retransmission timeouts")
    exit = Choice("slow-start", "paced", summary="How the window comes back")

    def __init__(self) -> None:
        self.eifel = Eifel()
        self.frto = FRto()
        self.timestamps = self.decided = self.forgivable = self.advanced = False
        self.rto_ns = 0
        self.last_pardon_ns: int | None = None

    def on_timeout(self, timeout: Timeout) -> TimeoutResponse:
        path = timeout.path
        self.rto_ns = path.rto_ns
        safe = timeout.consecutive < self.in_a_row and not self._is_outage(timeout.silence_ns)
        safe &= self.last_pardon_ns is None or path.now_ns - self.last_pardon_ns >= path.rto_ns
        self.forgivable = (
            safe and timeout.verdict.cause == "corruption" and (self.forgivable or not timeout.in_recovery)
        )
        self.advanced = False
        self.eifel.on_timeout(timeout)
        self.frto.on_timeout(timeout)
        self.timestamps = timeout.timestamps
        self.decided = not timeout.timestamps and not self.forgivable
        return TimeoutResponse(head_only=self.forgivable)

    def assess(self, after: AfterTimeout) -> Assessment:
        self.forgivable &= not self._is_outage(after.silence_ns)
        self.advanced |= after.ack.acked > 0
        found = self._original(after)
        if found != Assessment.genuine() or not self.forgivable:
            return found
        if not self.advanced:
            return Assessment.undecided()
        self.last_pardon_ns = after.ack.path.now_ns
        return Assessment.forgiven(exit=self.exit)

    def _is_outage(self, silence_ns: int) -> bool:
        return silence_ns / 1e9 > self.outage * (self.rto_ns / 1e9)

    def _original(self, after: AfterTimeout) -> Assessment:
        if self.decided:
            return Assessment.genuine()
        found = (self.eifel if self.timestamps else self.frto).assess(after)
        self.decided = found != Assessment.undecided()
        return found


class Regain(TimeoutPolicy):
    """As the engine's policy of that name."""

    name, summary, reference = "regain-in-python", "As regain.", "Wu & Chen 2004"

    def on_timeout(self, timeout: Timeout) -> TimeoutResponse:
        return TimeoutResponse("regain" if timeout.verdict.cause == "corruption" else "collapse")

    def assess(self, after: AfterTimeout) -> Assessment:
        return Assessment.genuine()
