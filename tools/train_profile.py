"""Runs what a profile-guided build learns from: `maturin build --pgo` calls it with the package whose profile is taken.

Half a minute of what users do: the examples, dumbbells of few and of many flows, a sweep, captures. The compiler lays
out and inlines the code for what is frequent here. Results stay the same to the last octet.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import whyloss as wl
from whyloss import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parent.parent / "examples"

DUMBBELL = """
scenario.duration = "{seconds} s"
[dumbbell]
bottleneck = {{ rate = "{rate}", delay = "{delay}", queue = "{queue} pkt" }}
senders = {{ rate = "{rate}", delay = "1 ms" }}
receivers = {{ rate = "{rate}", delay = "1 ms", channel.loss = "{loss}" }}
[[flow]]
count = {count}
scheme = "{scheme}"
profile = "{profile}"
shadows = {shadows}
start_spread = "1 s"
"""

FIELDS = ("scheme", "profile", "count", "rate", "delay", "queue", "loss", "shadows", "seconds")
DUMBBELLS = [
    ("reno", "ns2", 8, "20 Mbps", "20 ms", 60, "0.5 %", [], 600),
    ("sack", "ns2", 30, "200 Mbps", "8 ms", 300, "0 %", [], 100),
    ("newreno", "ns2", 50, "500 Mbps", "5 ms", 500, "0 %", [], 50),
    ("sack", "ns2", 5, "5 Mbps", "40 ms", 40, "2 %", [], 1500),
    ("cubic", "linux", 20, "100 Mbps", "15 ms", 200, "0 %", [], 120),
    ("cubic", "modern", 6, "30 Mbps", "10 ms", 60, "1 %", [], 300),
    ("bbr", "linux", 6, "50 Mbps", "10 ms", 100, "0.2 %", [], 100),
    ("checksum-ld", "modern", 6, "20 Mbps", "15 ms", 50, "1 %", [], 300),
    ("sack", "linux", 4, "20 Mbps", "15 ms", 50, "1 %", ["oracle", "veno", "ncpld", "learned"], 200),
    ("newreno", "modern", 3000, "1 Gbps", "5 ms", 2000, "0 %", [], 10),
]


def dumbbells() -> Iterator[wl.Scenario]:
    """The dumbbells of the table."""
    for row in DUMBBELLS:
        yield wl.Scenario.parse(DUMBBELL.format(**dict(zip(FIELDS, row, strict=True))))


def examples() -> Iterator[wl.Scenario]:
    """The examples that are scenarios."""
    for file in sorted(EXAMPLES.glob("*.toml")):
        if "[sweep]" not in file.read_text(encoding="utf-8"):
            yield wl.Scenario.load(file)


def main() -> None:
    """Runs everything once, the short ones a few times."""
    began = time.monotonic()
    for scenario in dumbbells():
        scenario.run()
    for scenario in examples():
        for run in range(5):
            scenario.run(run)
    wl.Sweep.load(EXAMPLES / "error-rates.toml").run(progress=False)
    for capture in sorted(EXAMPLES.glob("captures/*.pcapng.zst")):
        _native.explain([(capture, None)])
    print(f"trained in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
