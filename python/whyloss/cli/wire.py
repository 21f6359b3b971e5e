"""``whyloss serve`` and ``whyloss fetch``: files over the engine's TCP and real packets."""

from __future__ import annotations

import signal
import threading
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

from whyloss import _native
from whyloss.cli.console import Command, as_json, err, rate, row, say, screen, stopping, table, tell_json
from whyloss.cli.options import without_option

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["fetch", "serve"]

#: Seconds without an octet after which somebody without a terminal is told.
PATIENCE_S = 3


class Address(click.ParamType[IPv4Address | IPv6Address]):
    """An IP address."""

    name = "address"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> IPv4Address | IPv6Address:
        """Reads it."""
        try:
            return ip_address(value)
        except ValueError:
            self.fail(f"{value!r} is no IPv4 or IPv6 address", param, ctx)


def host_options(tun: str, address: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that say how the host in user space shall be."""
    options = [
        click.option(
            "--tun",
            default=tun,
            show_default=True,
            metavar="NAME",
            help="TUN device. If it does not exist it is made, given addresses, and gone at the end.",
        ),
        click.option(
            "--address",
            "addresses",
            type=Address(),
            multiple=True,
            default=[address],
            show_default=True,
            help="Address of the host; can be given several times.",
        ),
        click.option(
            "--kernel-address",
            "kernel",
            type=Address(),
            multiple=True,
            help="The kernel's address on a device that is made. [default: the neighbour of the host's address]",
        ),
        click.option(
            "--mtu", type=click.IntRange(1280, 65535), default=1500, show_default=True, help="Octets a packet."
        ),
        click.option("--profile", default="modern", show_default=True, help="Which TCP it is; see whyloss schemes."),
        click.option("--scheme", metavar="NAME", help="How it treats losses; see whyloss schemes. [default: NewReno]"),
        click.option(
            "--shadow",
            "shadows",
            multiple=True,
            metavar="NAME",
            help="A differentiator that listens and changes nothing.",
        ),
        click.option("--ecn", is_flag=True, help="Negotiate ECN."),
        without_option,
    ]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command(
    cls=Command,
    linux="TUN devices",
    examples=[
        "whyloss serve FILE                                     # then, beside it: curl -O http://198.18.1.2/FILE",
        "whyloss serve FOLDER --scheme checksum-ld --port 8000",
        "whyloss serve FILE --scheme cubic --shadow veno --shadow spike --clients 1 --json",
        "ip netns exec left whyloss serve FILE --tun engine --address 10.0.0.2  # a device that is there",
    ],
)
@click.argument("path", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path, exists=True))
@click.option("--port", type=click.IntRange(1, 65535), default=80, show_default=True, help="Port to listen on.")
@click.option("--clients", "limit", type=click.IntRange(min=1), help="End after so many clients. [default: at Ctrl-C]")
@host_options("whyloss-serve", "198.18.1.2")
@as_json
def serve(path: Path, port: int, limit: int | None, as_json: bool, shadows: tuple[str, ...], **how: Any) -> None:
    """Offer files over HTTP, on a host in user space whose TCP is the engine.

    Anything that speaks HTTP can fetch them. Each client's losses are told, with the cause that the scheme's
    differentiator gives, and their sum at the end. Needs root, or a TUN device that root has made for you.
    """
    host = _host(shadows=shadows, **how)
    # Shells start background jobs with SIGINT ignored, and service managers send SIGTERM.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)

    def watch(kind: str, value: Any) -> None:
        if kind == "listening":
            say(f"listening: {'  '.join(value)}   (Ctrl-C ends it)")
        else:
            say(_transfer(value))

    report = host.serve(path, port, limit, watch)
    if as_json:
        tell_json(report)
        return
    _tell_sum(f"{report['clients']} clients, {report['requests']} requests, {_size(report['octets'])}", report, shadows)


@click.command(
    cls=Command,
    linux="TUN devices",
    examples=[
        "whyloss fetch http://198.18.2.1:8000/FILE        # from a server of this machine's kernel",
        "whyloss fetch http://198.18.1.2/FILE -o copy     # from `whyloss serve`, with IP forwarding on",
        "whyloss fetch http://198.18.2.1:8000/FILE -o /dev/null --scheme checksum-ld --json",
    ],
)
@click.argument("url", metavar="URL")
@click.option(
    "-o",
    "--out",
    "output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="File to write; `-` is standard output. [default: the URL's last part, in the current folder]",
)
@host_options("whyloss-fetch", "198.18.2.2")
@as_json
def fetch(url: str, output: Path | None, as_json: bool, shadows: tuple[str, ...], **how: Any) -> None:
    """Fetch a file over HTTP, with the engine's TCP, from any web server.

    A file that is not complete leaves nothing behind. Needs root, or a TUN device that root has made for you.
    """
    if as_json and output == Path("-"):
        raise click.UsageError("--json and the file cannot both go to standard output")
    host = _host(shadows=shadows, **how)
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    task = bars.add_task(f"fetching {url}", total=None)
    # A server that is not there takes a minute to be given up.
    waiting = threading.Timer(PATIENCE_S, say, [f"waiting for {url}"])
    if bars.disable:
        waiting.start()

    def watch(octets: int, total: int | None) -> None:
        if octets:
            waiting.cancel()
        bars.update(task, completed=octets, total=total)

    with stopping(lambda: "nothing is kept of the file"), bars:
        try:
            report = host.fetch(url, output, watch)
        finally:
            waiting.cancel()
    if as_json:
        tell_json(report)
        return
    if output != Path("-"):
        what = f"{_size(report['octets'])} in {report['seconds']:.3f} s, {rate(report['goodput_bps'])}"
        _tell_sum(f"{report['file']}: {what}", report, shadows)


def _host(
    tun: str,
    addresses: tuple[IPv4Address | IPv6Address, ...],
    kernel: tuple[IPv4Address | IPv6Address, ...],
    shadows: tuple[str, ...],
    **rest: Any,
) -> _native.WireHost:
    return _native.WireHost(tun, list(addresses), list(kernel), shadows=list(shadows), **rest)


def _transfer(transfer: dict[str, Any]) -> str:
    """A line on what a client got."""
    answers = ", ".join(f"{answer['target']} ({answer['status']})" for answer in transfer["requests"])
    speed = rate(transfer["octets"] * 8 / transfer["seconds"]) if transfer["seconds"] > 0 else "no time"
    losses = transfer["losses"]
    return (
        f"{transfer['client']}: {answers}: {_size(transfer['octets'])}, {speed}, "
        f"{losses['segments']} losses{_causes(losses['verdicts'])}, {losses['timeouts']} timeouts"
        f"{'' if transfer['complete'] else ', broken off'}"
    )


def _causes(verdicts: dict[str, int]) -> str:
    return f" ({', '.join(f'{count} {cause}' for cause, count in verdicts.items())})" if verdicts else ""


def _tell_sum(title: str, report: dict[str, Any], shadows: tuple[str, ...]) -> None:
    """What was transferred, what was lost on the way, and what the sender made of it."""
    losses = report["losses"]
    screen.print(title, markup=False)
    listing = table("", "losses", ">congestion", ">corruption", ">unknown")
    for name, verdicts in [
        (report["scheme"] or "newreno", losses["verdicts"]),
        *zip(shadows, losses["shadows"], strict=False),
    ]:
        row(listing, f"by {name}", *(verdicts.get(cause, 0) for cause in ("congestion", "corruption", "unknown")))
    screen.print(listing)
    did = ", ".join(f"{count} {what}" for what, count in losses["judgements"].items())
    timeouts = f"{losses['timeouts']} timeouts, {losses['collapses']} of them collapsed the window"
    assessed = ", ".join(f"{count} {what}" for what, count in losses["assessments"].items())
    screen.print(f"{losses['segments']} segments lost{f': window {did}' if did else ''}", markup=False)
    screen.print(f"{timeouts}{f' ({assessed})' if assessed else ''}", markup=False)
    if report.get("damaged_received"):
        screen.print(
            f"{report['damaged_received']} damaged segments arrived, {report['reports_sent']} reports of them left",
            markup=False,
        )


def _size(octets: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if octets >= size:
            return f"{octets / size:.4g} {unit}"
    return f"{octets:.0f} B"
