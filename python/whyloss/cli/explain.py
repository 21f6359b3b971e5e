"""``whyloss explain``."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from whyloss import captures
from whyloss._native import InputError
from whyloss.captures import words
from whyloss.captures.pump import Pump
from whyloss.captures.summary import cells, flows
from whyloss.cli.console import INTERRUPTED, Command, as_json, err, rate, row, say, screen, table, tell_json
from whyloss.cli.options import spare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whyloss.captures.summary import Summary

__all__ = ["explain"]

#: Connections that the summary lists.
WORST = 10
#: Losses of one connection that are listed.
LISTED = 40


class Watch:
    """Counts packets while a capture is read. The first Ctrl-C ends the reading, not the command."""

    def __init__(self, pump: Pump | None) -> None:
        """Nothing is read yet; ``pump`` brings the standard input."""
        self.stopped = False
        self._pump = pump
        self._what = ""
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        self._task = self._bar.add_task("reading", total=None)

    def follow(self, packets: int) -> bool:
        """Notes how far it is; whether to go on."""
        self._bar.update(self._task, description=f"{self._what}: {packets:,} packets")
        return not self.stopped

    @contextmanager
    def reading(self, what: str = "reading") -> Iterator[Callable[[int], bool]]:
        """What shall be called while the capture is read."""
        self._what = what

        def stop(*_: object) -> None:
            self.stopped = True
            if self._pump:
                self._pump.stop()
            # Whoever asks again wants out.
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, stop)
        try:
            with self._bar:
                yield self.follow
        finally:
            signal.signal(signal.SIGINT, before)


@click.command(
    cls=Command,
    examples=[
        "whyloss explain file.pcapng",
        "whyloss explain file.pcap.gz --connection 3                # all that is known of one connection",
        "whyloss explain file.pcap.gz --html file.html              # every segment, to zoom into",
        "whyloss explain file.pcap --annotate why.pcapng            # the verdicts in Wireshark",
        "whyloss explain file.pcap --at sender --out out/file       # all tables as Parquet",
        "tcpdump -i any -s 96 -w - | whyloss explain -",
    ],
)
@click.argument("files", metavar="CAPTURE...", nargs=-1, type=click.Path(path_type=Path))
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
@click.option(
    "--both-ends", is_flag=True, help="Two captures, one of each end: the second tells what became of each packet."
)
@click.option("--connection", type=click.IntRange(min=0), metavar="N", help="Show this connection, loss by loss.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for all tables (Parquet) and report.html.",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="A page with diagrams of the worst connections."
)
@click.option(
    "--annotate",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.pcapng",
    help="The same packets as pcapng, with the verdicts as comments.",
)
@click.option("--score", is_flag=True, help="Compare it with the truth that comments of simulator and emulator hold.")
@click.option(
    "--wireshark-profile",
    "profile",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a profile for Wireshark that shows these comments; a CAPTURE is not needed then.",
)
@click.option(
    "--what-if",
    "other_senders",
    is_flag=True,
    help="Fit the path and send the same over it with other schemes: what would they have gained?",
)
@as_json
def explain(
    files: tuple[Path, ...],
    at: str | None,
    differentiator: str | None,
    all_of_them: bool,
    both_ends: bool,
    connection: int | None,
    out: Path | None,
    html: Path | None,
    annotate: Path | None,
    score: bool,
    profile: Path | None,
    other_senders: bool,
    as_json: bool,
) -> None:
    """Explain a capture: why it is slow, and a cause with evidence for every packet that TCP lost.

    Takes pcap and pcapng files, also in gzip, zstd or lz4; - is the standard input. Several files are read as if they
    were one, in the order of their first packets. Ctrl-C ends the reading: what was read is explained.
    """
    if profile is not None:
        from whyloss.captures.profile import profile as write_profile  # only this needs templates

        say(f"profile: {write_profile(profile)}")
        if not files:
            return
    if not files:
        raise click.UsageError("no CAPTURE is named; - is the standard input")
    if both_ends and (len(files) != 2 or any(str(file) == "-" for file in files)):
        raise click.UsageError(f"--both-ends: found {len(files)} captures; allowed are two files, one of each end")
    if other_senders and any(str(file) == "-" for file in files):
        raise click.UsageError("--what-if: found the standard input; it reads the captures again, so name a file")
    spare("--html", html, files)
    spare("--annotate", annotate, files)
    if both_ends and score:
        raise click.UsageError("--score compares one capture with its own comments; leave --both-ends out")
    again = score or (out, html, annotate) != (None, None, None)
    watched = [str(file) for file in files] == ["-"] and not as_json and _can_view()
    standard_input = _aside() if watched else 0
    pump = Pump(standard_input, keep=again or watched) if any(str(file) == "-" for file in files) else None
    watch = Watch(pump)
    judges = "all" if all_of_them else differentiator
    with pump or nullcontext():
        if watched and pump:
            explained = _view(pump, at, judges)
        else:
            with watch.reading() as progress:
                explained = captures.explain(
                    *files, at=at, progress=progress, differentiator=judges, pump=pump, both_ends=both_ends
                )
        if connection is not None:
            _check(explained, connection)
        if again:
            _write(explained, watch, None if connection is None else [connection], out, html, annotate)
        scored = None
        if score:
            with watch.reading("comparing") as progress:
                scored = explained.score(progress)
        if pump and pump.cut and again:
            say("remark: of the standard input only the first part was kept to be drawn and annotated")
    summary = explained.summary
    found = None
    if other_senders:
        from whyloss.cli import whatif  # only this needs optimizers

        found = whatif.compare(files, connection)
    if as_json:
        more: dict[str, Any] = {} if found is None else {"what_if": whatif.document(found)}
        if scored is not None:
            more["score"] = {"shares": scored.shares, "counts": scored.counts}
        _tell(explained, summary, connection, more)
    elif connection is None:
        _show(explained, summary)
    else:
        _show_connection(explained, connection)
    if scored is not None and not as_json:
        screen.print("\nBeside the truth", style="bold", markup=False)
        for line in scored.lines:
            screen.print(line, markup=False)
    if found is not None and not as_json:
        whatif.show(found)
    if watch.stopped:
        raise click.exceptions.Exit(INTERRUPTED)


def _can_view() -> bool:
    """Whether there is a terminal to look at and to type on, beside the capture that comes by the standard input."""
    if sys.stdin.isatty() or not sys.stdout.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


def _aside() -> int:
    """Gives the standard input another number: a view reads what is typed from the first."""
    capture = os.dup(0)
    terminal = os.open("/dev/tty", os.O_RDWR)
    os.dup2(terminal, 0)
    os.close(terminal)
    return capture


def _view(pump: Pump, at: str | None, differentiator: str | None) -> captures.Explanation:
    """Shows the capture while it comes; explains all of it when it has ended."""
    from whyloss.captures.live import View  # slow to load, and only this needs it

    found: list[captures.Explanation] = []
    failed: list[Exception] = []

    def read() -> None:
        try:
            found.append(captures.explain("-", at=at, differentiator=differentiator, pump=pump))
        except Exception as failure:
            failed.append(failure)

    def look() -> tuple[Summary, int] | None:
        try:
            so_far = captures.explain(pump.kept, at=at)
        except InputError:
            return None  # Not even the header has come.
        return so_far.summary, so_far.facts["packets"]

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    View(look, lambda: pump.over and not reader.is_alive()).run()
    pump.stop()
    reader.join()
    if failed:
        raise failed[0]
    return found[0]


def _write(
    explained: captures.Explanation,
    watch: Watch,
    chosen: list[int] | None,
    out: Path | None,
    html: Path | None,
    annotate: Path | None,
) -> None:
    """Writes what was asked for beside the summary; reads the captures again for it."""
    if out is not None or html is not None:
        with watch.reading("reading again") as progress:
            details = explained.details(chosen, progress)
        if out is not None:
            explained.save(out, details)
            say(f"tables: {out}")
        for page in filter(None, (html, out and out / "report.html")):
            say(f"report: {explained.page(page, details)}")
    if annotate is not None:
        with watch.reading("annotating") as progress:
            count = explained.annotate(annotate, progress)
        say(f"annotated: {words.count(count, 'packet')} in {annotate}")


def _check(explained: captures.Explanation, connection: int) -> None:
    if connection >= explained.facts["connections"]:
        count = explained.facts["connections"]
        allowed = f"allowed are 0 to {count - 1}" if count else "the capture has none"
        raise click.UsageError(f"--connection: found {connection}; {allowed}")


def _tell(explained: captures.Explanation, summary: Summary, connection: int | None, more: dict[str, Any]) -> None:
    tables = {part.name: part.to_polars() for part in explained}
    if connection is not None:
        tables = {name: _of(rows, connection) for name, rows in tables.items()}
    said = {"sentence": summary.sentence, "about": summary.about, "causes": summary.causes.to_dicts()}
    listed = {name: rows.to_dicts() for name, rows in tables.items()}
    tell_json({"summary": said, "capture": explained.facts} | listed | more)


def _of(rows: pl.DataFrame, connection: int) -> pl.DataFrame:
    return rows.filter(pl.col("connection") == connection) if "connection" in rows.columns else rows


def _show(explained: captures.Explanation, summary: Summary) -> None:
    screen.print(summary.sentence, style="bold", markup=False)
    screen.print(f"\n{summary.about}", markup=False)
    for remark in explained.facts["remarks"]:
        say(f"remark: {remark}")
    worst = summary.worst.head(WORST)
    if len(worst):
        more = len(summary.worst) - len(worst)
        screen.print(_listing("\nThe connections that lost most time" if more else "\nConnections", worst))
        if more:
            screen.print(f"… and {words.count(more, 'more direction')} of data", markup=False)
    if len(summary.causes):
        screen.print(_causes("\nWhat was lost, or taken for lost", summary.causes))
    if "both_ends" in explained.facts:
        _show_both_ends(explained.facts["both_ends"])


def _show_both_ends(both: dict[str, Any]) -> None:
    for remark in both["remarks"]:
        say(f"remark: {remark}")
    if both["ahead_s"] is None:
        return
    error = "" if both["ahead_error_s"] is None else f" (within {both['ahead_error_s'] * 1e3:.3f} ms)"
    ahead = f"{both['ahead_s']:.6f} s ahead{error}"
    within = f"within {both['skew_error_ppm']:.3g} us a second"
    skew = f"gains {both['skew_ppm']:.3f} us a second ({within})" if both["skew_ppm"] else f"goes as fast, {within}"
    screen.print(f"\nBoth ends: the second clock is {ahead} and {skew}.", markup=False)
    for before, after in both["translations"]:
        screen.print(f"Translated: {before} is {after}.", markup=False)
    for where, counts in (("first", both["from_first"]), ("second", both["from_second"])):
        fates = ", ".join(f"{count} {fate}" for fate, count in counts.items())
        screen.print(f"Packets that left at the {where}: {fates}.", markup=False)
    if both["arrival_accuracy"] is not None:
        right = f"{both['arrival_accuracy']:.1%}"
        screen.print(f"The first capture alone tells rightly whether suspected packets arrived of {right}.")
    screen.print(f"Lost packets with data that it does not suspect: {both['not_suspected']}.")


def _listing(title: str, found: pl.DataFrame) -> Any:
    columns = (">no.", "sender", "receiver", "seen from", ">data", ">goodput", ">rtt min", ">lost", ">resent")
    listing = table(title, *columns, ">timeouts", ">waited", "mostly", "limited by")
    for flow in found.to_dicts():
        row(listing, *cells(flow, rate))
    return listing


def _causes(title: str, causes: pl.DataFrame) -> Any:
    listing = table(title, "cause", ">packets", ">expected")
    for name, packets, expected in causes.iter_rows():
        row(listing, words.cause(name), packets, f"{expected:.1f}")
    return listing


def _show_connection(explained: captures.Explanation, connection: int) -> None:
    found = _of(flows(explained), connection)
    if not len(found):
        screen.print(f"Connection {connection} carried no data.", markup=False)
        return
    screen.print(_listing(f"Connection {connection}", found))
    listing = table("\nIts time", "side", "limited by", ">time", ">stalls")
    for spent in _of(explained["limits"].to_polars(), connection).sort("side", "time_s", descending=True).to_dicts():
        row(listing, spent["side"], spent["limit"], words.seconds(spent["time_s"]), spent["stalls"] or "")
    screen.print(listing)
    again = _of(explained.retransmissions.to_polars(), connection)
    counted = again.group_by("trigger").agg(pl.len(), pl.col("unneeded").is_not_null().sum()).sort("trigger")
    if len(counted):
        listing = table("\nSent again", "why", ">packets", ">unneeded")
        for trigger, packets, unneeded in counted.iter_rows():
            row(listing, words.TRIGGERS.get(trigger, trigger), packets, unneeded or "")
        screen.print(listing)
    losses = _of(explained.losses.to_polars(), connection)
    if len(losses):
        title = "\nLost, or taken for lost"
        if len(losses) > LISTED:
            title += f": the first {LISTED} of {len(losses)} (--json and --out have all)"
        listing = table(title, ">time", "packet", "repaired by", "cause", ">sure", "evidence")
        for loss in losses.head(LISTED).to_dicts():
            row(
                listing,
                f"{loss['time_s']:.4f}",
                loss["packet"] or "not seen",
                loss["repair"] or "",
                words.cause(loss["cause"]),
                f"{100 * loss['p_' + loss['cause'].replace('-', '_')]:.0f} %",
                loss["evidence"],
            )
        screen.print(listing)
