"""``whyloss link``: a program behind an emulated link."""

from __future__ import annotations

import signal
from typing import Any

import click

from whyloss import paths
from whyloss.behind import Link
from whyloss.cli.console import Command, say
from whyloss.cli.options import without_option
from whyloss.cli.paths import as_typed
from whyloss.testbed import flaws

__all__ = ["link"]

#: What shells say of a program that may not be run, and of one that is not there.
_NOT_EXECUTABLE, _MISSING = 126, 127


@click.command(
    cls=Command,
    linux="TUN devices and network namespaces",
    context_settings={"ignore_unknown_options": False},
    examples=[
        "whyloss link 20ms 10Mbps --loss 1% -- curl -o /dev/null https://example.org/file",
        "whyloss link 50ms 2Mbps --queue 20pkt -- bash     # all that this shell starts is behind the link",
        "whyloss link 20ms 10Mbps -- sh -c 'ping -c 3 $WHYLOSS_HOST_ADDRESS'",
    ],
)
@click.argument("delay")
@click.argument("rate")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("--queue", metavar="LENGTH", help="What waits in front of it.  [default: a bandwidth-delay product]")
@click.option("--loss", metavar="SHARE", help="Share of the packets lost.")
@click.option("--damaged", metavar="SHARE", help="Share of them that arrive with flipped bits instead of being lost.")
@click.option(
    "--burst", type=click.FloatRange(min=1), metavar="PACKETS", help="So many in a row, in the mean.  [default: 1]"
)
@click.option(
    "--policer", metavar="RATE[,DEPTH]", help="A token bucket drops what exceeds it.  [default depth: 100 ms]"
)
@click.option(
    "--direction",
    type=click.Choice(("down", "up", "both")),
    default="down",
    show_default=True,
    help="Where packets are lost, or policed: on the way to the program, from it, or both.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Other numbers, other errors.")
@click.option("--quiet", is_flag=True, help="Say nothing but what the program says.")
@without_option
def link(delay: str, rate: str, command: tuple[str, ...], direction: str, quiet: bool, **given: Any) -> int:
    """Run a program behind a link of so much DELAY in each direction and such a RATE.

    The program has a network of its own, whose only way out is the link: the simulator's queues and channels in real
    time. It reaches this machine under the address in WHYLOSS_HOST_ADDRESS, and beyond it if this machine forwards
    (net.ipv4.ip_forward) and has `nft`. Nothing is left behind. Needs root.

    Exit status: that of the program; 126 if it may not be run, 127 if there is none of that name.
    """
    typed = {"rate": rate, "delay": delay} | {name: value for name, value in given.items() if value is not None}
    with as_typed(typed, arguments=("delay", "rate")):
        scenario = paths.path(**typed)
    if direction != "down":
        document = scenario.to_dict()
        forward = document["path"].get("forward", {})
        for field in ("channel", "policer"):
            if (found := forward.pop(field, None)) is not None:
                document["path"].setdefault("reverse", {})[field] = found
                if direction == "both":
                    forward[field] = found
        scenario = type(scenario)(document)
    with Link(scenario) as made:
        if not quiet:
            say(f"{paths.told(scenario)}; this machine is {made.host}")
            if made.why_not_out:
                say(f"the program reaches this machine only: {made.why_not_out}")
        # Keys such as Ctrl-C are the program's own.
        kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = made.run(command, preexec_fn=_with_keys)
        except (FileNotFoundError, PermissionError) as failure:
            say(str(failure))
            return _MISSING if isinstance(failure, FileNotFoundError) else _NOT_EXECUTABLE
        finally:
            signal.signal(signal.SIGINT, kept)
        inexact = flaws(made.bridge.audit())
    for flaw in inexact if not quiet else ():
        say(f"the link was not exact: {flaw}")
    return status if status >= 0 else 128 - status


def _with_keys() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
