"""Measures what a part in Python costs, against the same part of the engine.

Both give the same results (tests/test_parts.py); the processor time of whole runs is compared, the least of several.
"""

from __future__ import annotations

import time
from pathlib import Path

import whyloss as wl
from whyloss.parts import add_file

ROOT = Path(__file__).parent.parent

SCENARIO = """
scenario.seed = 11
scenario.duration = "60 s"
[path]
rate = "20 Mbps"
delay = "20 ms"
queue = "66 pkt"
forward.channel.loss = "0.1 %"
[[flow]]
profile = "linux"
"""

CASES: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "congestion control newreno": (
        {"congestion": "newreno", "parameters": {"newreno": {"hystart": False}}},
        {"congestion": "newreno-in-python"},
    ),
    "differentiator vegas in shadow": ({"shadows": ["vegas"]}, {"shadows": ["vegas-in-python"]}),
    "reaction scale": (
        {"differentiator": "vegas", "reaction": "scale"},
        {"differentiator": "vegas", "reaction": "scale-in-python"},
    ),
}

TIMES = 25


def scenario(fields: dict[str, object]) -> wl.Scenario:
    """The scenario with these fields of its flow."""
    return wl.Scenario.parse(SCENARIO).replace({f"flow[0].{name}": value for name, value in fields.items()})


def seconds(run: wl.Scenario) -> float:
    """Processor time of a run."""
    began = time.process_time()
    run.run()
    return time.process_time() - began


def main() -> None:
    """Prints a row for each case."""
    add_file(ROOT / "tests" / "equal_parts.py")
    print(f"{'':32} {'engine':>10} {'Python':>10} {'more, each acknowledgement':>28}")
    for name, fields in CASES.items():
        engine, python = (scenario(each) for each in fields)
        acks = engine.run().flows["receiver_segments_sent"][0]
        # In turns, so that what else the machine does meets both.
        times = [(seconds(engine), seconds(python)) for _ in range(TIMES)]
        base, own = (min(each) for each in zip(*times, strict=True))
        print(f"{name:32} {base * 1e3:7.1f} ms {own * 1e3:7.1f} ms {(own - base) / acks * 1e6:25.2f} µs")


if __name__ == "__main__":
    main()
