"""``whyloss top``: every TCP connection of this machine, live, and why it loses segments."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss import _native
from whyloss.cli.console import Command, row, say, screen, table
from whyloss.top.columns import COLUMNS
from whyloss.top.order import SORT_KEYS, ordered
from whyloss.top.select import Selection, cgroup_path
from whyloss.top.tally import Machine, Tally

if TYPE_CHECKING:
    from collections.abc import Callable
    from ipaddress import IPv4Network, IPv6Network

__all__ = ["top"]

#: The congestion controls that connections can have.
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
#: How long connections that end are left in their buffer in the kernel.
DRAIN_S = 0.5


class PrefixType(click.ParamType[Any]):
    """An address or a prefix of either family."""

    name = "prefix"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> IPv4Network | IPv6Network:
        """Reads it."""
        try:
            return ip_network(value, strict=False)
        except ValueError:
            self.fail(f"`{value}` is no prefix; allowed are 10.0.0.0/8, 2001:db8::/32 and the like", param, ctx)


def _group(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else cgroup_path(value)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error)) from None


def _endpoint(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    address, colon, port = value.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"`{value}` is no ADDRESS:PORT; allowed are 127.0.0.1:9435, [::1]:9435 and the like")
    return address.strip("[]") or "127.0.0.1", int(port)


@click.command(
    cls=Command,
    linux="what its kernel tells by BPF",
    examples=[
        "whyloss top                                   # everything",
        "whyloss top --sort retransmits --port 443",
        "whyloss top --cgroup /system.slice/nginx.service --once",
        "whyloss top --json --interval 5 >> losses.jsonl",
        "whyloss top --prometheus 127.0.0.1:9435",
    ],
)
@click.option("--port", "ports", type=click.IntRange(1, 65535), multiple=True, help="Only this port, of either end.")
@click.option("--prefix", "prefixes", type=PrefixType(), multiple=True, help="Only this prefix, of either end.")
@click.option("--cgroup", callback=_group, metavar="GROUP", help="Only this control group and those below it.")
@click.option("--control", "controls", multiple=True, metavar="NAME", help="Only this congestion control.")
@click.option(
    "--sort",
    "sort_key",
    metavar="COLUMN",
    type=click.Choice(list(SORT_KEYS)),
    default="out",
    show_default=True,
    help=f"One of {', '.join(SORT_KEYS)}.",
)
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option("--interval", type=click.FloatRange(min=0.1, max=3600), default=2, show_default=True, help="In seconds.")
@click.option("--once", is_flag=True, help="Look for one interval, print it and end.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line for each connection and interval.")
@click.option(
    "--prometheus",
    "endpoint",
    callback=_endpoint,
    metavar="ADDRESS:PORT",
    help="Answer Prometheus there; without a terminal, do nothing else.",
)
def top(
    ports: tuple[int, ...],
    prefixes: tuple[IPv4Network | IPv6Network, ...],
    cgroup: str | None,
    controls: tuple[str, ...],
    sort_key: str,
    reverse: bool,
    interval: float,
    once: bool,
    as_json: bool,
    endpoint: tuple[str, int] | None,
) -> None:
    """Show every TCP connection of this machine, whatever its congestion control, and why it loses.

    Losses are judged in the kernel by five differentiators that listen to each connection and change nothing; the
    cause is what most of them say. Damaged segments that come in are counted where the kernel throws them away: that
    is certain. Options that name the same thing several times admit any of them. Needs root.
    """
    available = _AVAILABLE.read_text(encoding="ascii").split() if _AVAILABLE.exists() else []
    for name in controls:
        if available and name not in available:
            say(f"--control: no control `{name}` is in this kernel; there are {', '.join(available)}")
    no_view = _no_view()
    if no_view and not (once or as_json or endpoint):
        raise click.UsageError(f"{no_view}; use --once, --json or --prometheus")
    tally = Tally(Selection(frozenset(ports), prefixes, cgroup, frozenset(controls)))
    with closing(_native.Observer()) as observer:
        take = _with_metrics(endpoint) if endpoint else _nothing

        def look() -> Machine:
            machine = tally.take(observer.snapshot(), time.time())
            take(machine)
            return machine

        if once or as_json or no_view:
            _print(observer, look, interval, sort_key, reverse=reverse, once=once, as_json=as_json)
            return
        from whyloss.top.view import View  # slow to load, and only this needs it

        view = View(look, observer.drain, interval, sort_key, reverse=reverse)
        view.run()
        if view.return_code:
            raise click.exceptions.Exit(view.return_code)


def _no_view() -> str | None:
    """Why there can be no live view."""
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if not stream.isatty():
            return f"standard {name} is no terminal"
    terminal = os.environ.get("TERM", "")
    return f"the terminal (TERM={terminal}) can only print lines" if terminal in ("", "dumb") else None


def _nothing(_: Machine) -> None:
    pass


def _with_metrics(endpoint: tuple[str, int]) -> Callable[[Machine], None]:
    from whyloss.top.metrics import Metrics, serve

    metrics = Metrics()
    try:
        port = serve(metrics, *endpoint)
    except OSError as failure:
        failure.filename = f"--prometheus: {endpoint[0]} port {endpoint[1]}"
        raise
    say(f"Prometheus is answered at {endpoint[0]} port {port}")
    return metrics.take


def _print(
    observer: _native.Observer,
    look: Callable[[], Machine],
    interval: float,
    sort_key: str,
    *,
    reverse: bool,
    once: bool,
    as_json: bool,
) -> None:
    look()
    while True:
        _wait(observer, interval)
        machine = look()
        if as_json:
            lines = ordered(machine.lines, sort_key, reverse=reverse) + machine.closed
            objects = [machine.as_json(), *(line.as_json(machine.time_s) for line in lines)]
            sys.stdout.write("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in objects))
            sys.stdout.flush()
        elif once and not machine.lines:
            say(f"no TCP connection in these {interval:g} s")
        elif once:
            listing = table("", *(column.title if column.left else f">{column.title}" for column in COLUMNS))
            for line in ordered(machine.lines, sort_key, reverse=reverse):
                row(listing, *(column.text(line) for column in COLUMNS))
            screen.print(listing)
        if once:
            return


def _wait(observer: _native.Observer, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, DRAIN_S))
        observer.drain()
