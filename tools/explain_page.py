"""Measures the page of `whyloss explain` in headless Chromium: `explain_page.py [SEGMENTS]`, a million if not said.

The page shows one made-up connection: data, an acknowledgement for each segment, a round trip for each, and losses.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from browser import Browser

from whyloss import captures
from whyloss.captures.page import page

ROOT = Path(__file__).parent.parent
#: Times between pictures while each shows something else, in ms.
FRAMES = """(async (act) => {
  const canvas = document.querySelector("canvas.sequence"), next = () => new Promise(requestAnimationFrame), times = [];
  let last = await next();
  for (let frame = 0; frame < 60; frame++) {
    for (const key of act(frame)) canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
    const now = await next();
    times.push(now - last);
    last = now;
  }
  return times;
})"""
MOVES = {
    "all of it": "() => ['Home']",
    "zooming": "(frame) => [frame % 12 < 6 ? '+' : '-']",
    "moving over a sixteenth": "(frame) => frame ? [frame < 30 ? 'ArrowLeft' : 'ArrowRight'] : ['Home', ...'++++']",
    "moving over a thousandth": "(frame) => frame ? ['ArrowRight'] : ['Home', ...'+'.repeat(10)]",
}


class _Table:
    """A table that is there already."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def to_polars(self) -> pl.DataFrame:
        return self._frame


class _Details:
    """As many segments of one connection as wanted, half of them acknowledgements."""

    left_out = 0

    def __init__(self, first: dict[str, Any], count: int, span: float) -> None:
        half = count // 2
        draw = np.random.default_rng(1)
        times = np.round(np.sort(draw.random(half)) * span, 9)
        trips = np.round(0.04 + 0.03 * np.abs(np.sin(times)) + 0.001 * draw.random(half), 9)
        offsets = np.arange(half, dtype=np.uint64) * 1448
        other = {"client": "server", "server": "client"}[first["side"]]
        plain = {"connection": np.uint64(first["connection"]), "kind": "new", "flags": "A", "damaged": False}
        null = pl.lit(None, pl.UInt64)
        sent = pl.DataFrame({"time_s": times, "offset_octets": offsets}).with_columns(
            side=pl.lit(first["side"]), octets=pl.lit(1448, pl.UInt32), ack_octets=null, window_octets=null
        )
        acks = pl.DataFrame({"time_s": np.round(times + trips, 9), "ack_octets": offsets + 1448}).with_columns(
            side=pl.lit(other),
            octets=pl.lit(0, pl.UInt32),
            offset_octets=null,
            window_octets=pl.lit(3_000_000, pl.UInt64),
        )
        both = pl.concat([sent, acks.select(sent.columns)]).sort("time_s").with_row_index("packet", 1)
        whole = both.with_columns(
            sack=pl.lit(None, pl.String), **{name: pl.lit(value) for name, value in plain.items()}
        )
        under_way = (1e6 + 9e5 * np.sin(times)).astype(np.uint64)
        samples = {"time_s": times + trips, "rtt_s": trips, "outstanding_octets": under_way, "side": first["side"]}
        rows = pl.DataFrame(samples).with_columns(
            connection=pl.lit(plain["connection"]), window_octets=pl.lit(3_000_000, pl.UInt64)
        )
        self.connections = [first["connection"]]
        self.segments, self.samples = _Table(whole), _Table(rows)


class _Stretched:
    """An explanation whose losses lie over the times and octets of the made-up connection."""

    def __init__(self, explained: captures.Explanation, count: int, span: float) -> None:
        self._explained = explained
        few = explained.losses.to_polars()
        losses = pl.concat([few] * (5000 // len(few)))
        share = np.linspace(0.01, 0.99, len(losses))
        self.losses = _Table(
            losses.with_columns(
                time_s=share * span,
                repaired_s=share * span + 0.08,
                offset_octets=(share * (count // 2) * 1448).astype(np.uint64),
            )
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._explained, name)

    def __getitem__(self, name: str) -> Any:
        return self._explained[name]


def written(count: int, out: Path) -> float:
    """Writes the page; returns the seconds that it took."""
    explained = captures.explain(ROOT / "examples" / "captures" / "congested.pcapng.zst")
    (first,) = explained.summary.worst.filter(pl.col("octets") > 0).head(1).to_dicts()
    span = count / 20_000
    stretched: Any = _Stretched(explained, count, span)
    details: Any = _Details(first, count, span)
    began = time.perf_counter()
    out.write_text(page(stretched, details), encoding="utf-8")
    return time.perf_counter() - began


def _spent(browser: Browser) -> float:
    """Seconds of processor time of the page's main thread."""
    metrics = browser.ask("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def main(count: int) -> None:
    """Prints what was measured as JSON."""
    with tempfile.TemporaryDirectory() as folder, Browser(60) as browser:
        out = Path(folder) / "page.html"
        took = written(count, out)
        browser.look(1280, 800)
        told: dict[str, Any] = {
            "segments": count,
            "page_MB": round(out.stat().st_size / 1e6, 1),
            "written_s": round(took, 2),
        }
        browser.open(out, "#flow-0")
        browser.wait("performance.getEntriesByName('diagram').length")
        paint, diagram = "getEntriesByType('paint')[0]?.startTime ?? null", "getEntriesByName('diagram')[0].startTime"
        told["first_paint_ms"], told["diagram_ms"] = browser.run(f"[performance.{paint}, performance.{diagram}]")
        browser.ask("Performance.enable", timeDomain="threadTicks")
        for name, act in MOVES.items():
            before = _spent(browser)
            times = sorted(browser.run(f"{FRAMES}({act})"))
            spent = (_spent(browser) - before) / len(times)
            frame = {"median_ms": statistics.median(times), "p95_ms": times[56], "cpu_ms": 1000 * spent}
            told[name] = {what: round(value, 1) for what, value in frame.items()}
        print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
