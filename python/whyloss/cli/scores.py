"""``whyloss score`` and ``whyloss roc``: how good differentiators are.

What scores and draws is imported by the commands that need it: it takes longer than many a command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss.cli.console import Command, as_json, row, say, screen, table, tell_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whyloss.scoring import Judged, Score

__all__ = ["roc", "score"]


def _counting(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which losses count, and as what."""
    options = [
        click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path)),
        click.option(
            "--unit",
            type=click.Choice(["invocation", "segment"]),
            default="invocation",
            show_default=True,
            help="Count the first lost segment of each recovery episode, or every lost segment.",
        ),
        click.option(
            "--timeouts",
            type=click.Choice(["exclude", "include", "only"]),
            default="exclude",
            show_default=True,
            help="Losses that only the retransmission timer noticed.",
        ),
        click.option(
            "--collisions",
            type=click.Choice(["corruption", "congestion", "exclude"]),
            default="corruption",
            show_default=True,
            help="What losses are that a radio station gave up after colliding.",
        ),
        click.option(
            "--differentiator",
            "names",
            multiple=True,
            metavar="NAME",
            help="Only this one; can be given several times. `ruling` is the one that ruled.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _read(results: Sequence[Path], unit: str, timeouts: str, collisions: str) -> Judged:
    from whyloss import scoring

    return scoring.read(*results).with_rules(unit=unit, timeouts=timeouts, collisions=collisions)


@click.command(
    cls=Command,
    examples=[
        "whyloss run examples/who-can-tell.toml --out out/who",
        "whyloss score out/who",
        "whyloss score out/who --group-by scheme --unit segment",
        "whyloss score out/who --json | jq '.scores[] | [.differentiator, .a_t]'",
    ],
)
@_counting
@click.option("--group-by", "by", multiple=True, metavar="AXIS", help="An axis of the sweep, or run, flow, scheme, …")
@click.option(
    "--draws", type=click.IntRange(0, 100_000), default=1000, show_default=True, help="Draws of the bootstrap."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the bootstrap.")
@as_json
def score(
    results: tuple[Path, ...],
    unit: str,
    timeouts: str,
    collisions: str,
    names: tuple[str, ...],
    by: tuple[str, ...],
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """Score loss differentiators against what really happened.

    RESULTS are folders that `whyloss run --out` or `whyloss sweep` wrote, or files losses.parquet. A_w is the share of
    corruption losses that were taken for corruption, A_c the share of congestion losses that were not, A_t their mean.
    Intervals are at 95 %, by the bootstrap over runs. What is undefined is n/a.
    """
    from whyloss import scoring

    judged = _read(results, unit, timeouts, collisions)
    if not len(judged):
        raise scoring.ScoringError(f"{judged.origin}: no loss counts by these rules")
    found = list(scoring.scores(judged, by=by, differentiators=names or None, draws=draws, seed=seed))
    events = [
        (group, {"fast retransmit": part.events("fast"), "timeout": part.events("timeout")})
        for group, part in judged.split(by)
    ]
    if as_json:
        tell_json(
            {
                "unit": unit,
                "timeouts": timeouts,
                "collisions": collisions,
                "scores": [one.as_dict() for one in found],
                "events": [
                    {"group": group, **{kind: counted.as_dict() for kind, counted in kinds.items()}}
                    for group, kinds in events
                ],
            }
        )
        return
    _show(found, by)
    listing = table(
        "\nWhat senders acted on", *by, "event", ">total", ">congestion", ">corruption", ">spurious", ">reduced"
    )
    for group, kinds in events:
        for kind, counted in kinds.items():
            row(listing, *group.values(), kind, *counted.as_dict().values())
    screen.print(listing)


def _show(found: Sequence[Score], by: Sequence[str]) -> None:
    columns = (">congestion", ">corruption", ">A_c", ">A_w", ">A_t", ">weighted", ">Matthews", ">AUC", ">coverage")
    listing = table("", *by, "differentiator", *columns, ">A_c, A_w at timeouts")
    for one in found:
        row(
            listing,
            *one.group.values(),
            one.differentiator,
            one.confusion.total("congestion"),
            one.confusion.total("corruption"),
            *(_estimate(one, name) for name in ("a_c", "a_w", "a_t")),
            _percent(one.confusion.weighted),
            _number(one.confusion.matthews),
            _number(one.tradeoff.auc),
            _percent(one.coverage),
            f"{_percent(one.timeout.a_c)}, {_percent(one.timeout.a_w)}",
        )
    screen.print(listing)


def _estimate(one: Score, name: str) -> str:
    interval = one.interval(name)
    value = _percent(one.confusion.metric(name))
    return value if interval is None else f"{value} ({100 * interval[0]:.1f} … {100 * interval[1]:.1f})"


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


@click.command(
    cls=Command,
    examples=[
        "whyloss roc out/who -o tradeoff.svg",
        "whyloss roc out/who -o tradeoff.svg --differentiator veno --differentiator spike",
        "whyloss roc out/who -o tradeoff.svg --calibration reliability.svg",
    ],
)
@_counting
@click.option(
    "-o",
    "--out",
    "output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The picture, .svg or .png.",
)
@click.option(
    "--calibration",
    "reliability",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A second picture: of the scores as probabilities.",
)
@click.option("--title", default="", help="What stands above.")
def roc(
    results: tuple[Path, ...],
    unit: str,
    timeouts: str,
    collisions: str,
    names: tuple[str, ...],
    output: Path,
    reliability: Path | None,
    title: str,
) -> None:
    """Draw what each differentiator gives at every threshold: A_w over A_c.

    RESULTS are as for `whyloss score`. Each curve goes through all thresholds on the scores of the same losses; the dot
    on it is the threshold that the differentiator ran with. The number in the legend is the area under the curve.
    """
    for path in (output, reliability):
        if path is not None and path.suffix not in {".svg", ".png"}:
            raise click.BadParameter(f"{path}: a picture ends in .svg or .png", param_hint="-o, --calibration")
    from whyloss import scoring
    from whyloss.scoring import pictures

    judged = _read(results, unit, timeouts, collisions)
    if not names and not judged.shadows:
        raise scoring.ScoringError(
            f"{judged.origin}: no differentiator listened in shadow; name some in the scenario, such as"
            ' shadows = ["veno"] in a [[flow]], or draw the ruling one with --differentiator ruling'
        )
    chosen = names or tuple(judged.shadows)
    found = list(scoring.scores(judged, differentiators=chosen, draws=0))
    drawn = [one for one in found if one.tradeoff.defined]
    if not drawn:
        _complain_of_classes(judged, found)
    for one in found:
        if not one.tradeoff.defined:
            say(f"{one.differentiator}: left out, it judged losses of one class only")
    output.parent.mkdir(parents=True, exist_ok=True)
    pictures.roc(drawn, output, title)
    click.echo(output)
    if reliability is not None:
        calibrations = {name: judged.calibration(name) for name in chosen}
        kept: dict[str, Any] = {name: one for name, one in calibrations.items() if one is not None}
        if not kept:
            raise scoring.ScoringError(f"{judged.origin}: no scores from 0 to 1, so none can be probabilities")
        reliability.parent.mkdir(parents=True, exist_ok=True)
        pictures.reliability(kept, reliability, title)
        click.echo(reliability)


def _complain_of_classes(judged: Judged, found: Sequence[Score]) -> None:
    from whyloss.scoring import ScoringError

    congestion = max(one.confusion.total("congestion") for one in found)
    corruption = max(one.confusion.total("corruption") for one in found)
    raise ScoringError(
        f"{judged.origin}: a curve needs losses of both classes; by these rules there are {congestion} by congestion"
        f" and {corruption} by corruption"
    )
