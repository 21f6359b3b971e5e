"""Scalable TCP (Kelly 2003) as a part of one's own: beside the engine, without a change to it.

Try:  whyloss run examples/random-loss.toml --with examples/own_part.py --set 'flow[0].congestion=scalable'
"""

from whyloss.parts import Ack, CongestionControl, Number, PathInfo, Window


class Scalable(CongestionControl):
    """Kelly 2003, section 3: ``cwnd += a`` an acknowledged segment, ``cwnd -= b * cwnd`` a congestion signal."""

    name = "scalable"
    summary = "Grows by a fixed part of what is acknowledged, falls by a fixed fraction."
    reference = "Kelly 2003"
    increase = Number(0.01, 0.0, 1.0, "Octets of growth an acknowledged octet")
    decrease = Number(0.125, 0.0, 0.9, "Fraction of the window given up on congestion")

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Growth."""
        if not ack.in_recovery and ack.window_limited:
            window.grow(ack.acked if window.in_slow_start else self.increase * ack.acked)

    def threshold(self, window: Window, path: PathInfo) -> float:
        """Fall."""
        return window.used(path) * (1.0 - self.decrease)
