"""``whyloss explain``."""

from __future__ import annotations

from pathlib import Path

import click

from whyloss import captures
from whyloss.cli.console import Command, as_json, rate, row, say, screen, table, tell_json

__all__ = ["explain"]

#: Connections that the summary lists.
WORST = 10


@click.command(
    cls=Command,
    examples=[
        "whyloss explain file.pcapng",
        "whyloss explain file.pcap.gz --at sender --out out/file    # all tables as Parquet",
        "tcpdump -i any -s 96 -w - | whyloss explain -",
    ],
)
@click.argument("files", metavar="CAPTURE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--at",
    type=click.Choice(["sender", "receiver", "middle"]),
    help="Where the capture was taken. [default: what the packets show]",
)
@click.option(
    "--differentiator",
    metavar="NAME",
    help="A differentiator of the engine that judges the losses, too (table `verdicts`).",
)
@click.option("--all", "all_of_them", is_flag=True, help="All differentiators judge the losses, too.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for all tables (Parquet).")
@as_json
def explain(
    files: tuple[Path, ...],
    at: str | None,
    differentiator: str | None,
    all_of_them: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Explain a capture: a cause, with evidence, for every packet that TCP lost.

    Takes pcap and pcapng files, also in gzip, zstd or lz4; - is the standard input.
    """
    explained = captures.explain(*files, at=at, differentiator="all" if all_of_them else differentiator)
    if out is not None:
        explained.save(out)
        say(f"tables: {out}")
    if as_json:
        tell_json({"capture": explained.facts} | {part.name: part.to_polars().to_dicts() for part in explained})
        return
    _show(explained)


def _show(explained: captures.Explanation) -> None:
    facts = explained.facts
    for remark in facts["remarks"]:
        say(f"remark: {remark}")
    flows = explained.connections.to_polars().sort("retransmissions", "acknowledged_octets", descending=True)
    title = f"{facts['connections']} connections, {facts['segments']} TCP segments of {facts['packets']} packets"
    listing = table(title, "sender", "receiver", "place", ">goodput", ">segments", ">resent", ">unneeded")
    for flow in flows.head(WORST).to_dicts():
        row(
            listing,
            flow["sender"],
            flow["receiver"],
            flow["place"],
            "" if flow["goodput_bps"] is None else rate(flow["goodput_bps"]),
            *(flow[name] for name in ("segments", "retransmissions", "unneeded")),
        )
    screen.print(listing)
    losses = explained.losses.to_polars()
    if len(losses):
        listing = table("\nWhat was lost, or taken for lost", "cause", ">packets")
        for cells in losses.group_by("cause").len("packets").sort("packets", descending=True).iter_rows():
            row(listing, *cells)
        screen.print(listing)
