"""The command ``pipeline``: an experiment stage by stage, in this process or on Spark, resumed where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.exits import exit_code
from streamgauge.cli.experiments import Again, Overrides
from streamgauge.cli.options import tell_note
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import Terminal, telling
from streamgauge.formats.places import RemotePlace, place
from streamgauge.model.phrases import counted
from streamgauge.report import write as write_page
from streamgauge.suites.experiments import read
from streamgauge.suites.experiments.runner import ExperimentContext
from streamgauge.suites.experiments.stages import Pipeline, Stage, StageResult


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("pipeline")(pipeline)


def pipeline(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML).")],
    at: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where the streams go: a folder, hdfs:// or s3a://; OUT/streams."),
    ] = None,
    define: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="Where runs and the report go; runs/NAME unless given.")] = None,
    master: Annotated[
        str | None, typer.Option(help="The Spark master of all stages; without, this process does them.")
    ] = None,
    again: Again = False,
) -> None:
    """Generate, run, judge, diagnose and report an experiment, stage by stage; the same command goes on."""
    experiment = read(file, define or ())
    folder = out or Path("runs") / experiment.name
    streams = folder / "streams" if at is None else place(at)
    console = Terminal(stderr=True, highlight=False)
    report = folder / "report.html"
    with telling(console, "pipeline") as tell:
        context = ExperimentContext(
            folder,
            lambda: spark(master),
            tell,
            again,
            streams=streams if isinstance(streams, Path) else None,
            on_spark=master is not None,
            note=tell_note,
        )
        stages = Pipeline(experiment, context, streams, master, lambda done: _print(console, done))
        judged = stages.run()
        tell("report", 1.0)
        write_page(judged, report, title=experiment.name)
        if isinstance(streams, RemotePlace):
            stages.publish([*map(stages.folder, stages.trials), report], streams)
    _print(console, StageResult(Stage.REPORT, str(report), "in this process"))
    tell_unused(master)
    raise typer.Exit(exit_code(judged))


def _print(console: Console, done: StageResult) -> None:
    console.print(stage_line(done), soft_wrap=True, markup=False)


def stage_line(done: StageResult) -> str:
    """A stage's result in one line: where it was done, how many triples, how fast."""
    line = f"{done.stage}: {done.what}, {done.where}"
    if done.kept:
        line = f"{done.stage}: {done.what} is there from before"
    elif done.triples:
        rate = f"{done.triples / max(done.seconds, 1e-3):,.0f} a second"
        line += f": {counted(done.triples, 'triple')} in {done.seconds:,.1f} s, {rate}"
    return f"{line} ({done.note})" if done.note else line
