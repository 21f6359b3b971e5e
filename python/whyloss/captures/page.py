"""An explanation as one HTML file that needs nothing else: what was said, and diagrams to zoom into."""

from __future__ import annotations

import base64
import json
import zlib
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
import polars as pl
from markupsafe import Markup

from whyloss import _native
from whyloss.captures import words
from whyloss.captures.still import still
from whyloss.captures.summary import ARRIVED, cells, summarise
from whyloss.report.html import rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whyloss.captures.shape import Detailed, Explained

__all__ = ["MOST_MARKED", "packed", "page", "tones"]

#: Losses of a connection that its diagram marks; the tables have all.
MOST_MARKED = 5000
_WORST = 25
_HEADS = ("no.", "sender", "receiver", "seen from", "data", "goodput", "shortest round trip", "lost", "sent again")
#: Of a column with times: what a second is counted in.
_NS = 1_000_000_000


def page(explained: Explained, details: Detailed) -> str:
    """The text of the page; ``details`` are the connections that it draws."""
    summary = summarise(explained)
    chosen = summary.worst.filter(pl.col("connection").is_in(details.connections) & (pl.col("octets") > 0))
    flows = [_flow(explained, details, flow) for flow in chosen.to_dicts()]
    plain = [
        {name: value for name, value in flow.items() if name not in ("notes", "limits", "still", "octets")}
        for flow in flows
    ]
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html.j2").render(
        title=", ".join(explained.facts["files"]),
        sentence=summary.sentence,
        about=summary.about,
        remarks=explained.facts["remarks"],
        heads=[*_HEADS, "timeouts", "waited for them", "mostly", "limited by"],
        worst=[cells(flow, rate) for flow in summary.worst.head(_WORST).to_dicts()],
        more=max(len(summary.worst) - _WORST, 0),
        causes=[{**row, "words": words.cause(row["cause"])} for row in summary.causes.to_dicts()],
        flows=flows,
        legend=[(name, words.cause(name), tone, name in ARRIVED) for name, tone in tones().items()],
        whyloss=_native.VERSION,
        style=Markup(resources.files("whyloss.report").joinpath("report.css").read_text(encoding="utf-8")),
        script=Markup(_text("levels.js") + _text("page.js") + _text("start.js")),
        flows_json=Markup(json.dumps(plain, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")),
    )


def tones() -> dict[str, str]:
    """The colour of each cause: those of the diagrams."""
    line = _text("page.js").partition("const CAUSES = {")[2].partition("};")[0]
    pairs = [pair.split(":") for pair in line.replace("\n", " ").split(",") if ":" in pair]
    return {name.strip(' "'): tone.strip(' "') for name, tone in pairs}


def _flow(explained: Explained, details: Detailed, flow: dict[str, Any]) -> dict[str, Any]:
    """What the diagram of one direction of data shows."""
    same = pl.col("connection") == flow["connection"]
    segments = details.segments.to_polars().filter(same)
    samples = details.samples.to_polars().filter(same & (pl.col("side") == flow["side"])).sort("time_s")
    own = pl.col("side") == flow["side"]
    sent = segments.filter(own & (pl.col("octets") > 0) & pl.col("offset_octets").is_not_null()).sort("time_s")
    acks = segments.filter(own.not_() & pl.col("ack_octets").is_not_null()).sort("time_s")
    blocks = _blocks(acks)
    start = sent["offset_octets"].cast(pl.Int64).to_numpy()
    ack = acks["ack_octets"].cum_max().cast(pl.Int64).to_numpy()
    columns = {
        "sent_t": sent["time_s"].to_numpy(),
        "sent_start": start,
        "sent_end": start + sent["octets"].cast(pl.Int64).to_numpy(),
        "sent_packet": sent["packet"].to_numpy(),
        "ack_t": acks["time_s"].to_numpy(),
        "ack": ack,
        "ack_edge": ack + acks["window_octets"].fill_null(0).cast(pl.Int64).to_numpy(),
        "ack_packet": acks["packet"].to_numpy(),
        "sack_t": blocks[:, 0],
        "sack_start": blocks[:, 1].astype(np.int64),
        "sack_end": blocks[:, 2].astype(np.int64),
        "rtt_t": samples["time_s"].to_numpy(),
        "rtt": samples["rtt_s"].to_numpy(),
        "flight": samples["outstanding_octets"].to_numpy(),
        "window": samples["window_octets"].fill_null(0).to_numpy(),
    }
    octets, listed = packed(columns)
    spent = explained["limits"].to_polars().filter(same & own).sort("time_s", descending=True)
    losses = explained.losses.to_polars().filter(same & own).sort("time_s")
    notes = []
    if len(losses) > MOST_MARKED:
        notes.append(f"The diagram marks the first {MOST_MARKED} of {len(losses)} losses.")
    if details.left_out:
        notes.append(f"{details.left_out:,} segments are not drawn: there are too many.")
    times = [part.to_numpy() for part in (sent["time_s"], acks["time_s"]) if len(part)]
    began = min((float(part[0]) for part in times), default=0.0)
    ended = max((float(part[-1]) for part in times), default=1.0)
    marked = [_loss(loss) for loss in losses.head(MOST_MARKED).to_dicts()]
    return {
        "sender": flow["sender"],
        "receiver": flow["receiver"],
        "place": flow["place"],
        "rtt_min": flow["rtt_min_s"],
        "start": began,
        "end": ended,
        "losses": marked,
        "still": Markup(still(columns, marked, tones(), (began, ended))),
        "notes": notes,
        "limits": [(name, words.seconds(time)) for name, time in spent.select("limit", "time_s").iter_rows()],
        "columns": listed,
        "octets": octets,
    }


def _loss(loss: dict[str, Any]) -> dict[str, Any]:
    named = {name.removeprefix("p_").replace("_", "-"): value for name, value in loss.items() if name.startswith("p_")}
    return {
        "time": loss["time_s"],
        "packet": loss["packet"],
        "offset": loss["offset_octets"],
        "octets": loss["octets"],
        "repair": loss["repair"],
        "repaired": loss["repaired_s"],
        "cause": loss["cause"],
        "words": words.cause(loss["cause"]),
        "sure": named.get(loss["cause"], 0.0),
        "probabilities": {name: round(value, 3) for name, value in named.items() if value >= 0.005},
        "evidence": [part for part in loss["evidence"].split("; ") if part],
    }


def _blocks(acks: pl.DataFrame) -> NDArray[np.float64]:
    """SACK blocks, each where it first said something that the acknowledgement before had not said."""
    rows: list[tuple[float, float, float]] = []
    known: set[str] = set()
    for at, text in acks.select("time_s", "sack").filter(pl.col("sack").is_not_null()).iter_rows():
        blocks = set(text.split())
        rows += [(at, *map(float, block.split("-"))) for block in sorted(blocks - known)]
        known = blocks
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def packed(columns: dict[str, NDArray[Any]]) -> tuple[str, list[tuple[str, int, int, int]]]:
    """All columns one after the other, compressed, as text, and the list by which ``levels.js`` unpacks them.

    Times become nanoseconds. Of whole numbers the differences are small, and their upper octets, side by side, alike.
    """
    octets, listed = [], []
    for name, values in columns.items():
        counted = _NS if values.dtype == np.float64 else 1
        whole = np.rint(values * counted).astype(np.int64) if counted == _NS else values.astype(np.int64)
        steps = np.diff(whole, prepend=0)
        folded = (steps << 1) ^ (steps >> 63)
        planes = (int(folded.max(initial=0)).bit_length() + 7) // 8
        octets.append(folded.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :planes].T.tobytes())
        listed.append((name, len(values), planes, counted))
    return base64.b64encode(zlib.compress(b"".join(octets), 6)).decode("ascii"), listed


def _text(name: str) -> str:
    return resources.files("whyloss.captures").joinpath(name).read_text(encoding="utf-8")
