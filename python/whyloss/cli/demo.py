"""``whyloss demo``: see it work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from whyloss.cli.console import Command, Group, as_json, err, row, say, screen, stopping, table, tell_json

if TYPE_CHECKING:
    from whyloss.demo import Demonstration

__all__ = ["demo"]

_LINK_MBPS = 10.0
_BAR = 30


@click.group(cls=Group, linux="TUN devices, network namespaces and BPF", examples=["whyloss demo kernel"])
def demo() -> None:
    """See it work, in network namespaces that vanish afterwards."""


@demo.command(
    cls=Command,
    examples=[
        "whyloss demo kernel",
        "whyloss demo kernel --damaged 5 --seconds 30",
        "whyloss demo kernel --control bbr --control wl_checksum_delay",
    ],
)
@click.option(
    "--damaged", type=click.FloatRange(0, 50), default=2.0, show_default=True, help="Packets damaged, in percent."
)
@click.option("--seconds", type=click.FloatRange(2), default=20.0, show_default=True, help="How long.")
@click.option(
    "--control",
    "controls",
    multiple=True,
    default=("reno", "wl_checksum"),
    show_default=True,
    help="Congestion control of a flow; one flow for each.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/demo-kernel"),
    show_default=True,
    help="Folder for the figure.",
)
@as_json
def kernel(damaged: float, seconds: float, controls: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Watch Reno and `wl_checksum` on the same damaged link, live, then as a figure.

    Each flow gets two network namespaces and an emulated link of 10 Mbit/s and 20 ms between them; the links damage the
    same packets. The programs are loaded for the time of the demonstration if they are not loaded yet. Needs root.
    """
    from whyloss import plots
    from whyloss.demo import Demonstration
    from whyloss.kernel import loaded

    shown = Demonstration(controls, damaged, seconds)
    with loaded(controls), stopping(lambda: "nothing is left behind"), Live(console=err, refresh_per_second=10) as live:
        shown.run(lambda: live.update(_bars(shown)))
    out.mkdir(parents=True, exist_ok=True)
    svg, png = plots.save(shown.figure(), out / "goodput")
    flows = [
        {
            "control": flow.control,
            "goodput_mbps": flow.mean_mbps(),
            "queueing_ms": flow.outcome.mean_wait_ms if flow.outcome else None,
            "retransmissions": flow.outcome.transfers[0].retransmissions if flow.outcome else None,
            "link_kept_its_time": flow.outcome.valid if flow.outcome else None,
        }
        for flow in shown.flows
    ]
    if as_json:
        tell_json({"damaged_percent": damaged, "seconds": seconds, "flows": flows, "figure": str(svg)})
        return
    listing = table("", "control", ">Mbit/s", ">queueing ms", ">retransmissions")
    for flow in flows:
        row(listing, flow["control"], *(f"{flow[name]:.{digits}f}" for name, digits in _SHOWN))
    screen.print(listing)
    say(f"figure: {png}")


_SHOWN = (("goodput_mbps", 1), ("queueing_ms", 0), ("retransmissions", 0))


def _bars(shown: Demonstration) -> Table:
    """One bar a flow: what arrived in the last half second, and the mean so far."""
    made = Table(box=None, pad_edge=False, show_header=False)
    for flow in shown.flows:
        now = flow.arrived[-1][0] if flow.arrived else 0.0
        rate = flow.goodput_mbps(now)
        filled = round(min(rate / _LINK_MBPS, 1.0) * _BAR)
        bar = Text("█" * filled, style="blue" if flow.control.startswith("wl_") else "bright_black")
        bar.append("·" * (_BAR - filled), style="dim")
        made.add_row(flow.control, bar, f"{rate:4.1f} Mbit/s", f"mean {flow.mean_mbps():4.1f}", f"{now:4.1f} s")
    return made
