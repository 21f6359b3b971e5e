"""``whyloss papers`` and ``whyloss reproduce``.

What draws and judges is imported by the commands that need it: scipy and matplotlib take longer than many a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from whyloss.cli.console import Command, Watch, as_json, row, say, screen, stopping, table, tell_json
from whyloss.cli.helping import ask_for_linux
from whyloss.cli.options import SIMULATOR_ONLY, on_options, store_option, with_own_option
from whyloss.cli.planned import cores_option, plan_option, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whyloss.claims import Claim
    from whyloss.cli.listing import Listing
    from whyloss.cli.options import Where
    from whyloss.papers import Paper
    from whyloss.records import Found
    from whyloss.verdicts import Column

__all__ = ["papers", "reproduce"]

COLOURS = {"reproduced": "green", "not reproduced": "red", "undecided": "yellow"}


@click.command(cls=Command, examples=["whyloss papers", "whyloss papers --json"])
@as_json
def papers(as_json: bool) -> None:
    """List the papers that can be reproduced, and what their full runs found in each reading."""
    from whyloss import papers as library

    found = [library.load(name) for name in library.list_papers()]
    if as_json:
        tell_json([_told(paper) for paper in found])
        return
    listing = table("", "name", "paper", ">figures", ">claims")
    for paper in found:
        row(listing, paper.name, paper.title, len(paper.figures), len(paper.claims))
    screen.print(listing)
    for paper in found:
        if columns := paper.headline_verdicts:
            screen.print()
            screen.print(_kept(paper, columns))


def _told(paper: Paper) -> dict[str, Any]:
    told = {"name": paper.name, "title": paper.title, "figures": paper.figures, "claims": paper.claims}
    verdicts = {column.reading: column.claims for column in paper.verdicts}
    return {**told, "readings": paper.readings, "verdicts": verdicts}


def _kept(paper: Paper, columns: list[Column]) -> Listing:
    listing = table(f"{paper.name}: verdicts of the full run", "claim", *(column.title for column in columns))
    for claim in paper.claims:
        cells = [column.claims.get(claim, {}).get("verdict", "not judged") for column in columns]
        row(listing, claim, *(Text(cell, style=COLOURS.get(cell, "default")) for cell in cells))
    return listing


def _complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from whyloss import papers as library

    return [name for name in library.list_papers() if name.startswith(begun)]


@click.command(
    cls=Command,
    examples=[
        "whyloss reproduce garcia2004 --quick",
        "whyloss reproduce garcia2004 --figure 4 --figure 5",
        "whyloss reproduce garcia2004 --reading pre-registered",
        "whyloss reproduce garcia2004 --until-decided     # only as many runs as the verdicts need",
        "whyloss reproduce garcia2004 --json > claims.json",
        "whyloss reproduce garcia2004 --on kernel --on engine --quick    # as root: real packets",
        "whyloss reproduce garcia2004 --plan --cores 16    # how long it takes, how large it gets",
        "whyloss reproduce garcia2004 --on slurm --jobs 20 --job-cores 16",
    ],
)
@click.argument("paper", shell_complete=_complete)
@click.option("--figure", "figures", multiple=True, metavar="N", help="Only this figure; can be given several times.")
@click.option(
    "--reading",
    "readings",
    multiple=True,
    metavar="NAME",
    help="Only this reading of what the paper leaves open; can be given several times.",
)
@click.option("--all-readings", is_flag=True, help="Every reading that the paper's folder describes.")
@click.option("--quick", is_flag=True, help="Fewer repetitions: done sooner, with wider intervals.")
@click.option(
    "--until-decided",
    is_flag=True,
    help="Begin with few repetitions; only what is behind undecided claims gets more, up to the paper's number.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for report and figures. [default: out/PAPER]",
)
@on_options("kernel", "engine")
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="On real packets: runs at a time.",
)
@with_own_option
@store_option
@plan_option
@cores_option
@as_json
def reproduce(
    paper: str,
    figures: tuple[str, ...],
    readings: tuple[str, ...],
    all_readings: bool,
    quick: bool,
    until_decided: bool,
    out: Path | None,
    where: Where,
    parallel: int,
    own: tuple[Path, ...],
    store: Path,
    plan: bool,
    cores: int | None,
    as_json: bool,
) -> None:
    """Run the experiments of a paper, draw its figures and judge its claims.

    PAPER is a name that `whyloss papers` lists, or a folder with a paper.toml. Each claim gets a computed verdict:
    reproduced, not reproduced, or undecided when the interval is too wide to tell. A claim that does not reproduce is
    a finding, not a failure: the exit status is 0, and the errata in the report say why.

    What a paper leaves open can be read in more than one way. The readings that its folder puts first are run side by
    side, and the report switches between them; `whyloss papers` lists all.

    With --on kernel or engine the transfers are carried by real stacks in real time (shortened, as the report says),
    and drawn over what the simulator gives for the same scenarios; claims are not judged. With --on and a cluster, its
    workers simulate; they have to see the folder of --out.

    Finished runs are kept. Stop it with Ctrl-C, and the same command goes on where it was.
    """
    from whyloss import papers as library

    on = where.stacks
    if on:
        ask_for_linux("whyloss reproduce --on", "TUN devices and network namespaces")
    chosen = library.load(paper)
    if readings and all_readings:
        raise click.BadParameter("give either --reading or --all-readings", param_hint="--reading")
    if until_decided and (quick or on):
        other = "--quick" if quick else f"--on {on[0]}"
        raise click.BadParameter(f"does not go with {other}", param_hint="--until-decided")
    if own and on:
        raise click.BadParameter(f"does not go with --on {on[0]}: {SIMULATOR_ONLY}", param_hint="--with")
    folder = out or Path("out") / "-".join([chosen.name, *on])
    taken = (chosen.readings if all_readings else list(readings)) or None
    if plan:
        if on or until_decided or where.cluster:
            other = "--until-decided" if until_decided else f"--on {where.cluster or on[0]}"
            raise click.BadParameter(f"does not go with {other}", param_hint="--plan")
        with stopping(lambda: "nothing is kept of the sample"):
            cost = chosen.forecast(list(figures) or None, quick=quick, out=folder, store=store, readings=taken)
        show({"paper": chosen.name}, cost, cores, as_json)
        return
    watch = Watch(f"reproducing {chosen.name}")

    def kept() -> str:
        return f"{watch.done} of {watch.total} runs are kept in {store}; the same command goes on from there"

    with stopping(kept), where.client() as client, watch:
        found = chosen.reproduce(
            list(figures) or None,
            quick=quick,
            out=folder,
            store=store,
            progress=watch.count,
            readings=taken,
            until_decided=until_decided,
            on=on,
            parallel=parallel,
            client=client,
        )
    if as_json:
        tell_json([{"reading": one.reading.name, **claim.as_dict()} for one in found.readings for claim in one.claims])
    else:
        _show(found.readings)
        if found.skipped and not on:
            say(f"not judged, because it takes figures that were not run: {', '.join(found.skipped)}")
        others = [name for name in chosen.readings if name not in [one.reading.name for one in found.readings]]
        if others and not on:
            say(f"other readings of the paper: {', '.join(others)}; --all-readings runs all side by side")
    say(f"report: {found.report}")


def _show(readings: tuple[Found, ...]) -> None:
    if not readings[0].claims:
        say("no claim was judged; the report shows the figures")
        return
    if len(readings) == 1:
        _show_claims(readings[0].claims)
        return
    listing = table("", "claim", *(one.reading.title for one in readings))
    for judged in zip(*(one.claims for one in readings), strict=True):
        row(listing, _said(judged[0]), *map(_verdict, judged))
    screen.print(listing)
    _explain_levels()


def _said(claim: Claim) -> Text:
    return Text(claim.id, style="bold").append(f" {claim.text}", style="not bold")


def _verdict(claim: Claim) -> Text:
    line = claim.as_dict()
    return Text(line["verdict"], style=COLOURS[line["verdict"]]).append(
        f" {_number(line['measured'])} ({_interval(line)})", style="default"
    )


def _show_claims(claims: Iterable[Claim]) -> None:
    listing = table("", "claim", "verdict", ">measured", ">interval that decides", ">expected", ">runs")
    for claim in claims:
        line = claim.as_dict()
        verdict = Text(line["verdict"], style=COLOURS[line["verdict"]])
        row(listing, _said(claim), verdict, _number(line["measured"]), _interval(line), line["expected"], line["n"])
    screen.print(listing)
    _explain_levels()


def _explain_levels() -> None:
    say("intervals are of 95 %; where one of many comparisons decides, of the level that stands behind it")


def _interval(line: dict[str, Any]) -> str:
    from whyloss.report.html import level

    return f"{_number(line['low'])} … {_number(line['high'])}{level(line)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
