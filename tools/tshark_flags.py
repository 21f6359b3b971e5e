"""Compares what tshark says of each segment (``tcp.analysis.*``) with what ``whyloss explain`` says, kind by kind.

``tools/tshark_flags.py CAPTURE…`` prints the differences; ``--list`` prints each packet that differs. Captures of the
simulator carry the truth as comments: where it is there, the table tells who is right. ``--page FOLDER`` writes the
tables of docs/captures-tshark.md, measured on the captures of FOLDER, which

    cargo run --release -p whyloss-capture --example accuracy -- 2 --save FOLDER

makes, and on those of the tour. Needs tshark.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from whyloss import captures

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "captures-tshark.md"
TOUR = ROOT / "examples" / "captures"
MARKS = "<!-- measured: {} -->", "<!-- measured: end -->"

FLAGS = (
    "retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "keep_alive",
    "zero_window_probe", "lost_segment", "ack_lost_segment", "duplicate_ack", "zero_window", "window_full",
)  # fmt: skip
FIELDS = (
    "frame.number", "ip.src", "ipv6.src", "tcp.srcport", "tcp.stream", "tcp.seq", "tcp.len",
    "tcp.flags.syn", "tcp.flags.fin",
    *(f"tcp.analysis.{flag}" for flag in FLAGS), "tcp.analysis.duplicate_ack_num", "frame.comment",
)  # fmt: skip
#: Triggers that the flag ``fast_retransmission`` stands for: acknowledgements asked for the segment.
ASKED = ("fast", "recovery")
#: What our kinds are called here, where tshark has the same.
PROBES = ("keep-alive", "window-probe")


def tshark(capture: Path) -> pl.DataFrame:
    """What tshark says, one row a TCP packet; flags are true or false."""
    fields = [part for name in FIELDS for part in ("-e", name)]
    options = ["-o", "tcp.relative_sequence_numbers:TRUE", "-E", "separator=/t", "-E", "occurrence=l"]
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp", "-T", "fields", *options, *fields]
    told = subprocess.run(command, capture_output=True, check=True).stdout
    names = [name.replace("ipv6.", "ipv6_").rsplit(".", 1)[-1] for name in FIELDS]
    frame = pl.read_csv(
        io.BytesIO(told), separator="\t", has_header=False, new_columns=names, infer_schema=False, quote_char=None
    )
    counts = ("number", "stream", "seq", "len", "duplicate_ack_num")
    return frame.with_columns(
        pl.concat_str(pl.coalesce("src", "ipv6_src"), pl.lit(" "), "srcport").alias("sender"),
        pl.col(counts).cast(pl.Int64),
        pl.col("syn", "fin") == "1",
        pl.col(FLAGS).is_not_null(),
    ).rename({"number": "packet"})


def judged(packets: pl.DataFrame, explained: captures.Explanation) -> pl.DataFrame:
    """Segments that take room in the stream: what tshark calls them, what we do, what they are (null: not known)."""
    numbers = explained.connections.to_polars()["connection"].unique().to_list()
    own = explained.details(numbers).segments.to_polars().select(pl.col("packet").cast(pl.Int64), "kind", "damaged")
    again = explained.retransmissions.to_polars().select(
        pl.col("packet").cast(pl.Int64), "trigger", pl.col("unneeded").is_not_null(), "duplicate_acks"
    )
    comment = pl.col("comment")
    # Only the simulator knows why a segment was sent.
    known = packets["comment"].str.contains("retransmission: ").fill_null(value=False).any()
    packets = packets.join(own, on="packet", how="left").join(again, on="packet", how="left").sort("packet")
    end = pl.col("seq") + pl.col("len") + pl.col("syn").cast(pl.Int64) + pl.col("fin").cast(pl.Int64)
    # Of a packet that a link has copied, whichever came later is the duplicate.
    fate = comment.str.replace("; copy made by a link", "", literal=True)
    same = ("stream", "sender", "seq", "len", fate)
    copied = comment.str.contains("copy made by a link").any().over(*same)
    copy = copied & (pl.col("packet") > pl.col("packet").min().over(*same))
    repair = comment.str.contains("retransmission: ")
    # Highest octet of first transmissions so far, each way.
    packets = packets.with_columns(
        comment.str.extract("retransmission: ([a-z-]+)").alias("trigger_truth"),
        comment.str.contains(", not needed").alias("unneeded_truth"),
        pl.col("unneeded").fill_null(value=False),
        pl.when(~(copy | repair)).then(end).otherwise(-1).cum_max().over("stream", "sender").alias("newest"),
    )
    spoken = pl.col("trigger_truth")
    truth = (
        pl.when(comment.is_null() | pl.lit(not known)).then(None)
        .when(copy).then(pl.lit("duplicate"))
        .when(spoken == "window-probe").then(pl.lit("probe"))
        .when(repair).then(pl.lit("retransmission"))
        .when(end < pl.col("newest")).then(pl.lit("out-of-order"))
        .otherwise(pl.lit("new"))
    )  # fmt: skip
    return packets.filter(end > pl.col("seq")).with_columns(
        truth.alias("truth"),
        pl.when(pl.col("zero_window_probe") | pl.col("keep_alive")).then(pl.lit("probe"))
        .when(pl.col("retransmission")).then(pl.lit("retransmission"))
        .when(pl.col("out_of_order")).then(pl.lit("out-of-order"))
        .otherwise(pl.lit("new")).alias("theirs"),
        pl.when(pl.col("kind").is_in(PROBES)).then(pl.lit("probe")).otherwise(pl.col("kind")).alias("ours"),
    )  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """What the two say of some captures."""

    segments: pl.DataFrame
    #: Counts of what the two do not count in the same unit: name, tshark's, ours.
    sums: pl.DataFrame

    @property
    def differences(self) -> pl.DataFrame:
        """Kinds that differ: how often, and in how many of those where the truth is known either is right."""
        differ = self.segments.filter(pl.col("theirs") != pl.col("ours"))
        return (
            differ.group_by("theirs", "ours")
            .agg(
                pl.len().alias("packets"),
                pl.col("truth").is_not_null().sum().alias("known"),
                (pl.col("theirs") == pl.col("truth")).sum().alias("theirs_right"),
                (pl.col("ours") == pl.col("truth")).sum().alias("ours_right"),
            )
            .sort("packets", "theirs", "ours", descending=[True, False, False])
        )

    @property
    def claims(self) -> pl.DataFrame:
        """What is claimed of segments whose truth is known: how many there are, said and right by either."""
        known = self.segments.filter(pl.col("truth").is_not_null())
        again = (pl.col("truth") == "retransmission").fill_null(value=False)
        asked, ours = pl.col("trigger_truth").is_in(ASKED), pl.col("ours") == "retransmission"
        claims = {
            "sent again": (again, pl.col("theirs") == "retransmission", ours),
            "out of order": tuple(pl.col(who) == "out-of-order" for who in ("truth", "theirs", "ours")),
            "doubled by the network": (
                pl.col("truth") == "duplicate",
                pl.lit(value=False),
                pl.col("ours") == "duplicate",
            ),
            "probe or keep-alive": tuple(pl.col(who) == "probe" for who in ("truth", "theirs", "ours")),
            "acknowledgements asked for it": (
                again & asked.fill_null(value=False),
                pl.col("fast_retransmission"),
                ours & pl.col("trigger").is_in(ASKED).fill_null(value=False),
            ),
            "not needed": (
                again & pl.col("unneeded_truth"),
                pl.col("spurious_retransmission"),
                ours & pl.col("unneeded"),
            ),
        }
        rows = []
        for name, (there, theirs, own) in claims.items():
            counts = known.select(
                there.sum().alias("there"),
                theirs.sum().alias("theirs"),
                (theirs & there).sum().alias("theirs_right"),
                own.sum().alias("ours"),
                (own & there).sum().alias("ours_right"),
            ).row(0, named=True)
            rows.append({"claim": name, **{key: int(value or 0) for key, value in counts.items()}})
        return pl.DataFrame(rows)


def compare(files: Iterable[Path]) -> Compared:
    """Reads captures, packed ones too, with both."""
    segments, sums = [], []
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            plain = file
            if file.suffix == ".zst":
                plain = Path(folder, file.stem)
                subprocess.run(["zstd", "--quiet", "--force", "-d", file, "-o", plain], check=True)
            packets, explained = tshark(plain), captures.explain(plain)
            found = judged(packets, explained)
            segments.append(found.with_columns(pl.lit(file.name).alias("file")))
            sums.append(_sums(packets, found, explained))
    columns = ["file", "packet", "theirs", "ours", "truth", "trigger", "trigger_truth", "unneeded", "unneeded_truth"]
    kept = pl.concat([part.select(*columns, *FLAGS) for part in segments], how="vertical_relaxed")
    total = pl.concat(sums).group_by("what", maintain_order=True).agg(pl.col("theirs", "ours").sum())
    return Compared(kept, total)


def _sums(packets: pl.DataFrame, segments: pl.DataFrame, explained: captures.Explanation) -> pl.DataFrame:
    ways, losses = explained.connections.to_polars(), explained.losses.to_polars()
    limits = explained["limits"].to_polars()
    unseen = losses.filter(pl.col("packet").is_null())
    told = segments.filter(pl.col("trigger") == "fast")
    # The number of the latest duplicate acknowledgement before a fast retransmission, of what came the other way.
    numbers = packets.filter(pl.col("duplicate_ack_num").is_not_null()).select(
        "stream", "packet", "duplicate_ack_num", pl.col("sender").alias("receiver")
    )
    latest = (
        told.select("stream", "packet", "duplicate_acks", "sender")
        .join(numbers, on="stream", suffix="_ack")
        .filter((pl.col("packet_ack") < pl.col("packet")) & (pl.col("sender") != pl.col("receiver")))
        .sort("packet_ack")
        .group_by("stream", "packet")
        .last()
    )
    rows = [
        ("gap in the data before this segment", packets["lost_segment"].sum(), len(unseen)),
        ("data acknowledged that the capture has not", packets["ack_lost_segment"].sum(), ways["holes"].sum()),
        ("closed windows", packets["zero_window"].sum(), ways["closed_windows"].sum()),
        (
            "duplicate acknowledgements before the first repairs of recoveries",
            latest["duplicate_ack_num"].sum(),
            latest["duplicate_acks"].sum(),
        ),
        (
            "segments that fill the window, connections limited by it",
            packets["window_full"].sum(),
            limits.filter(pl.col("limit") == "receive-window")["connection"].n_unique(),
        ),
    ]
    return pl.DataFrame(
        [(name, int(theirs or 0), int(ours or 0)) for name, theirs, ours in rows],
        schema={"what": pl.String, "theirs": pl.Int64, "ours": pl.Int64},
        orient="row",
    )


def tables(compared: Compared) -> str:
    """The three tables as Markdown."""
    known = int(compared.segments["truth"].is_not_null().sum())
    lines = [
        f"{len(compared.segments):,} segments, of {known:,} the truth is known.",
        "",
    ]
    if known:
        lines += [
            "| what is said of a segment | there are "
            "| tshark finds | of what it says, right | we find | of what we say, right |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        for row in compared.claims.to_dicts():
            found = [_share(row[f"{who}_right"], row["there"]) for who in ("theirs", "ours")]
            right = [_share(row[f"{who}_right"], row[who]) for who in ("theirs", "ours")]
            lines.append(f"| {row['claim']} | {row['there']:,} | {found[0]} | {right[0]} | {found[1]} | {right[1]} |")
        lines.append("")
    lines += ["| tshark says | we say | packets | tshark right | we right |", "| --- | --- | ---: | ---: | ---: |"]
    for row in compared.differences.to_dicts():
        right = [f"{row[f'{who}_right']:,}" if row["known"] else "not known" for who in ("theirs", "ours")]
        lines.append(f"| {row['theirs']} | {row['ours']} | {row['packets']:,} | {right[0]} | {right[1]} |")
    lines += ["", "| counted | tshark | we |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {theirs:,} | {ours:,} |" for name, theirs, ours in compared.sums.iter_rows()]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def rewritten(page: str, name: str, text: str) -> str:
    """The page with what stands between the marks of ``name`` replaced."""
    begin, end = MARKS[0].format(name), MARKS[1]
    head, found, rest = page.partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{PAGE}: has no marks {begin} … {end}")
    return f"{head}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints what differs, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*", type=Path, metavar="CAPTURE")
    parser.add_argument("--list", action="store_true", help="each segment of which the two say different things")
    parser.add_argument("--page", type=Path, metavar="FOLDER", help="write the page, with the captures of FOLDER")
    chosen = parser.parse_args(arguments)
    if shutil.which("tshark") is None:
        parser.error("tshark is not installed")
    if chosen.page:
        page = PAGE.read_text(encoding="utf-8")
        sets = {"simulator": sorted(chosen.page.glob("*.pcapng")), "tour": sorted(TOUR.glob("*.pcap*.zst"))}
        for name, found in sets.items():
            if not found:
                parser.error(f"no captures for {name}")
            page = rewritten(page, name, tables(compare(found)))
        PAGE.write_text(page, encoding="utf-8")
    if chosen.captures:
        compared = compare(chosen.captures)
        print(tables(compared))
        if chosen.list:
            differ = compared.segments.filter(pl.col("theirs") != pl.col("ours"))
            print()
            for row in differ.select("file", "packet", "theirs", "ours", "truth").iter_rows():
                print(*(part if part is not None else "not known" for part in row), sep="\t")
    elif not chosen.page:
        parser.error("name captures, or --page FOLDER")


if __name__ == "__main__":
    main()
