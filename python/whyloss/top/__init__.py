"""Every TCP connection of this machine, live, and why it loses segments.

The counting and judging happens in the kernel (``crates/kernel/bpf/top.bpf.c``); this package turns snapshots into
rates and shares, and shows them: in a terminal, as JSON lines, to Prometheus.
"""

from whyloss.top.select import Selection
from whyloss.top.tally import Line, Machine, Tally

__all__ = ["Line", "Machine", "Selection", "Tally"]
