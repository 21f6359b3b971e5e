"""``whyloss report``.

What draws is imported by the command: matplotlib takes longer than many a run.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from whyloss import files
from whyloss.cli.console import Command, Watch, stopping
from whyloss.cli.options import load_scenario, set_option, with_option

__all__ = ["report"]


@click.command(
    cls=Command,
    examples=[
        "whyloss report examples/lossy-link.toml    # runs it, and writes out/lossy-link/report.html",
        "whyloss report out/dumbbell                # a run that `whyloss run --out` has kept",
        "whyloss report out/garcia2004              # a reproduction",
    ],
)
@click.argument("source", metavar="DIR_OR_SCENARIO", type=click.Path(path_type=Path, exists=True, allow_dash=True))
@set_option
@with_option
def report(source: Path, sets: tuple[str, ...]) -> None:
    """Write the report of a run or of a reproduction, and say where it lies.

    Of a scenario file, the report of its run, with all that figures need written down. Of a folder that `whyloss run
    --out` or `whyloss reproduce` wrote, its report, in that folder: nothing is computed then, and a run shows what its
    tables hold. A report is one HTML file, with figures to zoom into, that needs no network.
    """
    if source.is_dir():
        if sets:
            raise click.BadParameter("goes with a scenario, not with a folder", param_hint="--set")
        reproduced = (source / "reproduction.json").is_file()
        page = _of_reproduction(source) if reproduced else _of_run(source)
        click.echo(files.write(source / "report.html", page))
        return
    from whyloss import traces
    from whyloss.report import render_run

    scenario = load_scenario(source).with_arguments(list(sets))
    nothing = stopping(lambda: "a run that is not finished leaves nothing behind")
    with nothing, Watch(f"running {scenario.name}") as watch:
        run = traces.rerun(scenario, progress=watch.follow)
    folder = Path("out") / source.stem
    folder.mkdir(parents=True, exist_ok=True)
    click.echo(files.write(folder / "report.html", render_run(traces.page(run))))


def _of_reproduction(folder: Path) -> str:
    import jinja2

    from whyloss.report import render

    record = folder / "reproduction.json"
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except ValueError as mistake:
        raise click.BadParameter(f"{record} is not whole: {mistake}", param_hint="DIR") from mistake
    try:
        return render(content, folder)
    except (LookupError, TypeError, ValueError, AttributeError, jinja2.TemplateError) as mistake:
        raise click.BadParameter(f"{record} is no record of a reproduction: {mistake!r}", param_hint="DIR") from mistake


def _of_run(folder: Path) -> str:
    from whyloss import traces
    from whyloss.report import render_run

    if not (folder / "runs.parquet").is_file():
        raise click.BadParameter(
            f"{folder} holds neither reproduction.json nor runs.parquet; `whyloss reproduce PAPER --out {folder}` "
            f"writes the one, `whyloss run SCENARIO --out {folder}` the other",
            param_hint="DIR",
        )
    return render_run(traces.page(traces.open_run(folder)))
