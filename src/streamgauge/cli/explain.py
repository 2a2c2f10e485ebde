"""The command ``explain``: why a recorded run's answers are wrong."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.defined import tell_notes
from streamgauge.cli.exits import Exit
from streamgauge.cli.progress import telling
from streamgauge.cli.spark import spark
from streamgauge.formats.run import RunError, read_run, stream_path
from streamgauge.formats.stream import elements
from streamgauge.formats.verdict import read_verdict, write_verdict
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock
from streamgauge.model.verdict import Diagnosis, Verdict
from streamgauge.oracle.diagnosis.diagnose import Explained, explained
from streamgauge.oracle.diagnosis.worked import worked
from streamgauge.oracle.judging.arrivals import by_arrival
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.report.text import explained_json, explained_lines


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("explain")(explain)


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder, whoever wrote it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find the nearest semantics, or named fault, under which the recorded answers come out exactly."""
    recorded = read_run(run, parse)
    tell_notes(recorded.header.query)
    console = Console(stderr=as_json)
    found = _explained(recorded, stream_path(run))
    diagnosis, window = found.diagnosis, worked(found)
    verdict = replace(_verdict(recorded, run), diagnosis=diagnosis)
    write_verdict(run, verdict)
    if as_json:
        typer.echo(json.dumps(explained_json(recorded.header, verdict, window), indent=2))
    else:
        console.print(explained_lines(recorded.header, verdict, window))
    raise typer.Exit(_exit(diagnosis))


def _exit(diagnosis: Diagnosis) -> Exit:
    return Exit.RIGHT if diagnosis.exact or not diagnosis.differs else Exit.UNKNOWN


def _explained(run: Run, stream: Path) -> Explained:
    held = tuple(elements(stream))
    if run.header.semantics.clock is not Clock.APPLICATION:
        run, held = by_arrival(run, held)
    with telling(Console(stderr=True), "explain") as tell:
        tell("trying models")
        return explained(run, held, lambda done, of: tell(f"{done} of {of} models tried", done / max(1, of)))


def _verdict(run: Run, folder: Path) -> Verdict:
    """The verdict that the folder keeps, or the one that judging gives."""
    try:
        return read_verdict(folder)
    except RunError:
        return judge_run(run, stream_path(folder), Means(lambda: spark(None)))
