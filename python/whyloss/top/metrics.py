"""The observer's counts for Prometheus.

Connections are not labels: they come and go, and each would be a time series for ever. Counts are added up for each
congestion control and each prefix of peers, and the number of prefixes is bounded.
"""

from __future__ import annotations

from collections import defaultdict
from ipaddress import ip_address, ip_network
from threading import Lock
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from whyloss._native import Connection
    from whyloss.top.tally import Machine

__all__ = ["MOST_PEERS", "Metrics", "serve"]

#: Prefixes of peers that get a label of their own; all others share "other".
MOST_PEERS = 100

PREFIX_BITS = {4: 24, 6: 48}
OTHER = "other"
LABELS = ("control", "peer")
COUNTERS = {
    "sent_bytes": ("bytes_acked", "Octets that peers have acknowledged"),
    "received_bytes": ("bytes_received", "Octets received in order"),
    "sent_segments": ("segments_out", "Segments with data sent, with retransmissions"),
    "retransmitted_segments": ("retransmissions", "Segments sent again"),
    "lost_segments": ("losses", "Segments taken for lost"),
    "timeouts": ("timeouts", "Retransmission timeouts"),
    "damaged_segments": ("damaged_in", "Segments that came in damaged"),
}
BY_CAUSE = {
    "loss_episodes": ("episodes", "Episodes of losses, by the cause that most differentiators gave"),
    "judged_segments": ("losses", "Segments taken for lost in episodes that have ended, by cause"),
}


class Metrics(Collector):
    """Adds up what happens between snapshots. Counts begin when the observer does."""

    def __init__(self, most_peers: int = MOST_PEERS) -> None:
        """Gives no more than ``most_peers`` prefixes a label of their own."""
        self._most_peers = most_peers
        self._lock = Lock()
        self._peers: set[str] = set()
        self._before: dict[int, dict[str, int]] | None = None
        self._counts: defaultdict[tuple[str, str], defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._open: dict[tuple[str, str], int] = {}
        self._unreported = 0
        self._damaged = 0

    def take(self, machine: Machine) -> None:
        """Notes what changed since the snapshot before."""
        with self._lock:
            before, now = self._before, {}
            self._open = dict.fromkeys(self._open, 0)
            for line in (*machine.lines, *machine.closed):
                seen = line.connection
                counts = _counts(seen)
                labels = (seen["control"], self._peer(seen["remote"]))
                # What was there already has a history that is not ours; what began meanwhile has none.
                last = (before or {}).get(seen["cookie"], {} if seen["whole"] else counts)
                for name, count in counts.items():
                    self._counts[labels][name] += max(count - last.get(name, 0), 0)
                self._open[labels] = self._open.get(labels, 0) + (not seen["closed"])
                if not seen["closed"]:
                    now[seen["cookie"]] = counts
            self._before = now
            self._unreported = machine.unreported
            self._damaged = machine.damaged_in

    def _peer(self, address: str) -> str:
        parsed = ip_address(address)
        peer = str(ip_network(f"{parsed}/{PREFIX_BITS[parsed.version]}", strict=False))
        if peer not in self._peers:
            if len(self._peers) >= self._most_peers:
                return OTHER
            self._peers.add(peer)
        return peer

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        with self._lock:
            connections = GaugeMetricFamily("whyloss_connections", "TCP connections that are open", labels=LABELS)
            for labels, count in self._open.items():
                connections.add_metric(labels, count)
            yield connections
            for name, (_, what) in COUNTERS.items():
                family = CounterMetricFamily(f"whyloss_{name}", what, labels=LABELS)
                for labels, counts in self._counts.items():
                    family.add_metric(labels, counts[name])
                yield family
            for name, (_, what) in BY_CAUSE.items():
                family = CounterMetricFamily(f"whyloss_{name}", what, labels=(*LABELS, "cause"))
                for labels, counts in self._counts.items():
                    for key in counts:
                        if key.startswith(f"{name}/"):
                            family.add_metric((*labels, key.partition("/")[2]), counts[key])
                yield family
            yield CounterMetricFamily(
                "whyloss_machine_damaged_segments",
                "Segments that came in damaged, with those whose headers name no connection",
                value=self._damaged,
            )
            yield CounterMetricFamily(
                "whyloss_unreported_connections",
                "Connections that ended without being counted, because too many ended at once",
                value=self._unreported,
            )


def _counts(seen: Connection) -> dict[str, int]:
    counts = {name: int(seen[field]) for name, (field, _) in COUNTERS.items()}  # type: ignore[literal-required]
    for name, (field, _) in BY_CAUSE.items():
        for cause, tally in seen["causes"].items():
            counts[f"{name}/{cause}"] = int(tally[field])  # type: ignore[literal-required]
    return counts


def serve(metrics: Metrics, address: str, port: int) -> int:
    """Answers Prometheus until the process ends, in a thread; gives the port."""
    registry = CollectorRegistry()
    registry.register(metrics)
    server, _ = start_http_server(port, address, registry)
    return int(server.server_port)
