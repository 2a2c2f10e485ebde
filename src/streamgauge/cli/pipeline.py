"""The commands ``pipeline`` and ``demo``: an experiment stage by stage, in this process or on Spark, resumed."""

from __future__ import annotations

import json
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.exits import exit_code
from streamgauge.cli.experiments import Again, Overrides
from streamgauge.cli.options import AsJson, known_master, tell_note
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import Terminal, telling
from streamgauge.formats.places import Place, RemotePlace, place
from streamgauge.model.phrases import counted
from streamgauge.report import write as write_page
from streamgauge.report.text import verdict_json, verdict_lines
from streamgauge.suites.experiments import ExperimentFile, read_file
from streamgauge.suites.experiments.runner import ExperimentContext
from streamgauge.suites.experiments.stages import HERE, Pipeline, Stage, StageResult


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("pipeline")(pipeline)
    app.command("demo")(demo)


def pipeline(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML).")],
    at: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="The place of the streams: a folder, hdfs:// or s3a:// (default: OUT/streams)."
        ),
    ] = None,
    define: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="The folder for runs and the report (default: runs/NAME).")] = None,
    master: Annotated[
        str | None,
        typer.Option(help="The Spark master for all stages (default: this process).", callback=known_master),
    ] = None,
    again: Again = False,
) -> None:
    """Generate, run, judge, diagnose and report an experiment by stages; repeat the command to resume."""
    experiment = read_file(file, define or ())
    folder = out or Path("runs") / experiment.name
    _follow(experiment, folder, folder / "streams" if at is None else place(at), master, again=again)


def demo(
    out: Annotated[Path, typer.Option(help="The folder for runs and the report.")] = Path("demo-out"),
    again: Again = False,
    as_json: AsJson = False,
) -> None:
    """Answer a weather stream with the live engine as C-SPARQL and as CQELS, by the stages of ``pipeline``."""
    from streamgauge.spark.requirements import spark_lack

    lack = spark_lack()
    if lack:
        tell_note(f"this process generates and judges the stream; Spark would do so at any size. {lack}")
    with as_file(files("streamgauge.cli") / "demo.toml") as file:
        experiment = read_file(file)
    _follow(experiment, out, out / "streams", None if lack else "local[*]", again=again, as_json=as_json)


def _follow(
    experiment: ExperimentFile, out: Path, streams: Place, master: str | None, *, again: bool, as_json: bool = False
) -> None:
    """Do the stages of all variants with a line for each, print the verdicts and write the report."""
    console, report = Terminal(stderr=True, highlight=False), out / "report.html"
    with telling(console, "pipeline") as tell:
        context = ExperimentContext(
            out,
            lambda: spark(master),
            tell,
            again,
            streams=streams if isinstance(streams, Path) else None,
            note=tell_note,
        )
        pipelines = [
            Pipeline(variant.experiment, context, streams, master, partial(_print, console), point=variant.point)
            for variant in experiment.variants
        ]
        folders = [stages.folder(trial) for stages in pipelines for trial in stages.trials]  # refused before the first
        judged = [pair for stages in pipelines for pair in stages.run()]
        tell("report", 1.0)
        write_page(judged, report, title=experiment.name)
        if isinstance(streams, RemotePlace):
            pipelines[0].publish([*folders, report], streams)
    _print(console, StageResult(Stage.REPORT, str(report), HERE))
    for run, verdict in judged:
        console.print(verdict_lines(run.header, verdict))
    tell_unused(master)
    if as_json:
        runs = [verdict_json(run.header, verdict) for run, verdict in judged]
        typer.echo(json.dumps({"runs": runs, "report": str(report)}, indent=2))
    raise typer.Exit(exit_code(judged))


def _print(console: Console, done: StageResult) -> None:
    console.print(stage_line(done), soft_wrap=True, markup=False)


def stage_line(done: StageResult) -> str:
    """A stage's result in one line: place, number of triples, rate."""
    line = f"{done.stage}: {done.what}, {done.where}"
    if done.kept:
        line = f"{done.stage}: {done.what} exists"
    elif done.triples:
        rate = f"{done.triples / max(done.seconds, 1e-3):,.0f} a second"
        line += f": {counted(done.triples, 'triple')} in {done.seconds:,.1f} s, {rate}"
    return f"{line} ({done.note})" if done.note else line
