"""``whyloss testbed`` and ``whyloss emulate``: the links of a scenario between real hosts."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from whyloss import _native, files
from whyloss.cli.console import Command, as_json, complain, rate, row, say, screen, table, tell_json
from whyloss.cli.options import RUN_NUMBER, load_scenario, set_option, with_option
from whyloss.testbed import MAX_P99_ERROR_US, Bridge, Testbed, flaws

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whyloss.scenario import Scenario

__all__ = ["emulate", "testbed"]

INVALID = 3


class HostCommand(click.ParamType[tuple[str, str]]):
    """A host and a command for it."""

    name = "HOST=COMMAND"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Takes them apart."""
        host, found, command = str(value).partition("=")
        if not found or not host or not command.strip():
            self.fail(f"{value!r} is not of the form HOST=COMMAND, such as client='iperf3 -s'", param, ctx)
        return host, command


@dataclass(frozen=True)
class Emulation:
    """What both commands are told of the links."""

    scenario: Scenario
    number: int
    out: Path | None
    as_json: bool
    wishes: dict[str, Any]
    """Arguments that :class:`Testbed` and :class:`Bridge` have in common."""

    def tell(self, audit: list[dict[str, Any]]) -> int | None:
        """Shows what the links did, and whether that counts."""
        found = flaws(audit)
        report = {
            "scenario": self.scenario.name,
            "run": self.number,
            "valid": not found,
            "flaws": found,
            "directions": audit,
        }
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            files.write(self.out / "audit.json", json.dumps(report, indent=2) + "\n")
        if self.as_json:
            tell_json(report)
        else:
            _show(audit)
        for reason in sorted({direction["scheduling"]["refused"] for direction in audit} - {None}):
            say(reason)
        for flaw in found:
            say(f"this run does not count: {flaw}")
        if self.out is not None:
            say(f"packets and audit: {self.out}")
        return INVALID if found else None


def with_middlebox(scenario: Scenario, kind: str | None) -> Scenario:
    """The scenario with middleboxes of another kind, in the places that it says; ``none`` leaves them out."""
    if kind is None:
        return scenario
    places = scenario.to_dict().get("middlebox", [])
    if not places:
        raise click.UsageError(
            f"--middlebox {kind}: {scenario.name} says no place for it; write [[middlebox]] with at, link and kind"
        )
    # Parameters of another kind make no sense.
    boxes = [box if box["kind"] == kind else {"at": box["at"], "link": box["link"], "kind": kind} for box in places]
    return scenario.replace({"middlebox": [] if kind == "none" else boxes})


def emulation(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Gives a command the scenario and the options that both have, as an :class:`Emulation`."""

    @functools.wraps(command)
    def with_emulation(
        *,
        scenario: Path,
        sets: tuple[str, ...],
        middlebox: str | None,
        number: int,
        out: Path | None,
        capture: bool,
        bound: float,
        realtime: bool,
        as_json: bool,
        **others: Any,
    ) -> int | None:
        if capture and out is None:
            raise click.UsageError("--capture needs --out, the folder for its file")
        wishes = {
            "run": number,
            "truth": False,
            "packets": out / "packets.parquet" if out else None,
            "capture": out / "packets.pcapng" if out and capture else None,
            "max_p99_error_us": bound,
            "realtime": realtime,
        }
        chosen = with_middlebox(load_scenario(scenario), middlebox).with_arguments(list(sets))
        return command(Emulation(chosen, number, out, as_json, wishes), **others)

    options = [
        click.argument("scenario", metavar="SCENARIO.toml", type=click.Path(path_type=Path)),
        set_option,
        with_option,
        click.option(
            "--middlebox",
            metavar="KIND",
            help="What the middleboxes of the scenario are: snoop, packet-control, i-tcp, m-tcp, or none to leave out.",
        ),
        click.option(
            "--number",
            type=RUN_NUMBER,
            default=0,
            show_default=True,
            help="Number of the run: other numbers, other random errors.",
        ),
        click.option(
            "-o",
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            help="Folder for packets.parquet (what became of each packet, and why) and audit.json.",
        ),
        click.option(
            "--capture", is_flag=True, help="Write a packet capture at each end there, too, with causes as comments."
        ),
        click.option(
            "--max-error",
            "bound",
            type=click.FloatRange(min=0, min_open=True),
            default=MAX_P99_ERROR_US,
            show_default=True,
            metavar="MICROSECONDS",
            help="The run does not count if more than 1 % of the packets of a direction are later than this.",
        ),
        click.option(
            "--no-realtime",
            "realtime",
            is_flag=True,
            flag_value=False,
            default=True,
            help="Ask for no real-time priority.",
        ),
        as_json,
    ]
    decorated: Callable[..., int | None] = with_emulation
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@click.command(
    cls=Command,
    linux="TUN devices and network namespaces",
    examples=[
        "whyloss testbed examples/lossy-link.toml                           # a shell on the first host",
        "whyloss testbed path.toml --start client='iperf3 -s' --run server='iperf3 -c client -t 10'",
        "whyloss testbed path.toml --set path.rate='2 Mbps' --run server='curl http://client/' --out out/bed",
        "whyloss testbed examples/dumbbell.toml --shell receiver0",
    ],
    also=["3 the emulator was not exact enough", "or that of the first command that fails"],
)
@click.option("--run", "runs", type=HostCommand(), multiple=True, help="A command for a host; all run at once.")
@click.option(
    "--start",
    "starts",
    type=HostCommand(),
    multiple=True,
    help="A command that is started before those, and ended after them: a server.",
)
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="What is started has so long before the others run.",
)
@click.option("--shell", metavar="HOST", help="A shell on this host. [default: on the first, if nothing is to run]")
@click.option("--mtu", type=click.IntRange(1280, 65535), default=1500, show_default=True, help="Octets a packet.")
@emulation
def testbed(
    links: Emulation,
    runs: tuple[tuple[str, str], ...],
    starts: tuple[tuple[str, str], ...],
    settle: float,
    shell: str | None,
    mtu: int,
) -> int | None:
    """Put the network of a scenario between real hosts, and run commands on them.

    Each host and router is a network namespace, each link an emulated one. Hosts find each other by name; of a [path]
    there are `server` and `client`. Nothing is left behind. The scenario's own flows are not sent, and it needs none.
    Needs root, or: unshare --user --map-root-user whyloss testbed …
    """
    status = 0
    with Testbed(links.scenario, mtu=mtu, **links.wishes) as bed:
        say(f"hosts: {', '.join(f'{host} {bed.address(host)}' for host in bed.hosts)}")
        wanted = {host for host, _ in (*runs, *starts)} | ({shell} if shell else set())
        if missing := sorted(wanted - {*bed.hosts, *bed.routers}):
            there = ", ".join([*bed.hosts, *bed.routers])
            raise click.UsageError(f"there is no host or router `{missing[0]}`; there are {there}")
        try:
            # The results go to standard output, so that JSON stays JSON.
            alone = len(runs) == 1 and not links.as_json
            for host, command in starts:
                _launch(bed, host, command, sys.stderr)
            if starts:
                time.sleep(settle)
            children = [_launch(bed, host, command, None if alone else sys.stderr) for host, command in runs]
            status = next((code for code in [child.wait() for child in children] if code), 0)
            if shell or not runs:
                status = _shell(bed, shell or bed.hosts[0]) or status
        except KeyboardInterrupt:
            say("stopped")
            status = 130
    return links.tell(bed.audit()) or (status if status >= 0 else 128 - status)


def _launch(bed: Testbed, host: str, command: str, into: IO[str] | None) -> subprocess.Popen[Any]:
    """Starts a command; each line that it writes goes to ``into`` with the name of the host, or as it is to our own."""
    if into is None:
        return bed.popen(host, command, shell=True)
    child = bed.popen(
        host,
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )

    def pass_on() -> None:
        with suppress(ValueError):
            for line in child.stdout or ():
                print(f"{host}: {line}", end="", file=into, flush=True)

    threading.Thread(target=pass_on, daemon=True).start()
    return child


def _shell(bed: Testbed, host: str) -> int:
    """A shell on a host; keys such as Ctrl-C are its own."""
    program = os.environ.get("SHELL", "/bin/sh")
    say(f"a shell on {host}; `exit` ends the test bed. Others: nsenter --net={bed.namespace_path(host)} COMMAND")
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return bed.popen(host, [program], preexec_fn=_with_keys).wait()
    finally:
        signal.signal(signal.SIGINT, kept)


def _with_keys() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@click.command(
    cls=Command,
    linux="TUN devices and network namespaces",
    examples=[
        "whyloss emulate examples/lossy-link.toml --tun left --tun right     # until Ctrl-C",
        "whyloss emulate path.toml --tun left --tun right --duration 60 --out out/link",
        "(sleep 10; echo path.rate=1 Mbps; sleep 10) | whyloss emulate path.toml --tun left --tun right --duration 20",
    ],
    also=["3 the emulator was not exact enough"],
)
@click.option(
    "--tun",
    "devices",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A TUN device, given twice: the end of `server` and the end of `client`. Created if it does not exist.",
)
@click.option(
    "--duration", type=click.FloatRange(min=0), metavar="SECONDS", help="End after so long. [default: at Ctrl-C]"
)
@emulation
def emulate(links: Emulation, devices: tuple[str, ...], duration: float | None) -> int | None:
    """Put the [path] of a scenario, or its only link, between two TUN devices of this machine.

    Addresses, routes and namespaces are yours to set up; a device can be moved to another namespace while this runs.
    Lines on standard input change the link while it is at work, in the words of --set: path.rate='2 Mbps'.
    Needs root, or devices that root has made for you (ip tuntap add mode tun user NAME).
    """
    if len(devices) != 2:
        raise click.UsageError(f"--tun is given {len(devices)} times; a link has two ends")
    # Service managers and `timeout` send SIGTERM; shells start background jobs with SIGINT ignored.
    for key in (signal.SIGINT, signal.SIGTERM):
        signal.signal(key, signal.default_int_handler)
    bridge = Bridge(links.scenario, (devices[0], devices[1]), **links.wishes)
    with bridge, suppress(KeyboardInterrupt):
        threading.Thread(target=_obey, args=(bridge, sys.stdin), daemon=True).start()
        first, second = bridge.ends
        say(f"{first} is behind {devices[0]}, {second} behind {devices[1]}   (Ctrl-C ends it)")
        end = None if duration is None else time.monotonic() + duration
        while bridge.running and (end is None or time.monotonic() < end):
            time.sleep(0.2 if end is None else min(0.2, max(0, end - time.monotonic())))
    return links.tell(bridge.audit())


def _obey(bridge: Bridge, commands: IO[str]) -> None:
    """Carries out changes, one a line."""
    with suppress(ValueError, OSError):
        for line in commands:
            if not line.strip():
                continue
            try:
                count = bridge.change_arguments([line.strip()])
            except (_native.InputError, RuntimeError) as mistake:
                complain(str(mistake))
            else:
                say(f"changed: {line.strip()}" if count else f"as it was: {line.strip()}")


def _show(audit: Sequence[dict[str, Any]]) -> None:
    listing = table("", "direction", ">packets", ">rate", ">achieved", ">late p50", ">p99", ">p99.9", ">most")
    for direction in audit:
        error = direction["error"]
        achieved = direction["achieved_bps"]
        row(
            listing,
            direction["name"],
            direction["sent"],
            "by trace" if direction["rate_bps"] is None else rate(direction["rate_bps"]),
            "never busy" if achieved is None else rate(achieved),
            *(f"{error[name]:.0f} us" for name in ("p50_us", "p99_us", "p999_us", "max_us")),
        )
    screen.print(listing)
    listing = table("\nWhat was lost or damaged", "link", ">packets", ">damaged", ">share", ">asked", "dropped")
    for hop in (hop for direction in audit for hop in direction["hops"]):
        asked = hop["expected_error_share"]
        row(
            listing,
            hop["name"],
            hop["offered"],
            hop["damaged"],
            f"{hop['error_share']:.4%}",
            "by pattern" if asked is None else f"{asked:.4%}",
            ", ".join(f"{count} {cause}" for cause, count in hop["dropped"]) or "none",
        )
    screen.print(listing)
    boxes = [direction["middlebox"] for direction in audit if direction["middlebox"]]
    if boxes:
        title = "\nMiddleboxes, and the most that they kept of one connection"
        listing = table(title, "kind", ">seen", ">suppressed", ">accepted", ">sent", ">segments", ">octets")
        for box in boxes:
            fields = ("kind", "seen", "suppressed", "accepted", "sent", "connection_segments", "connection_octets")
            row(listing, *(box[name] for name in fields))
        screen.print(listing)
