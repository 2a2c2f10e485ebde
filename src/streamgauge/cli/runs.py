"""Commands that run engines: ``run`` and ``demo``."""

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.exits import exit_code
from streamgauge.cli.own_data import tell_note
from streamgauge.cli.progress import elapsed, foretold, telling
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.model.counts import counted
from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict
from streamgauge.report import write as write_page
from streamgauge.report.text import verdict_json, verdict_lines
from streamgauge.suites.experiments import Experiment, read
from streamgauge.suites.experiments.plan import RunEstimate
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment

Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-D", metavar="FIELD=VALUE", help="Override a field: -D workload.stations=5."),
]
Out = Annotated[Path | None, typer.Option(help="Where runs and the report go; runs/NAME unless given.")]
Again = Annotated[bool, typer.Option("--again", help="Do runs again that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Master = Annotated[
    str | None,
    typer.Option(help="Spark master, local[*] unless given; with it streams of every size are made on Spark."),
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("run")(run)
    app.command("demo")(demo)


def run(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML).")],
    define: Overrides = None,
    out: Out = None,
    again: Again = False,
    as_json: AsJson = False,
    master: Master = None,
) -> None:
    """Do an experiment: make its streams, run its engines, judge every run, write the report."""
    experiment = read(file, define or ())
    _do(experiment, out or Path("runs") / experiment.name, master, again=again, as_json=as_json)


def demo(
    out: Annotated[Path, typer.Option(help="Where runs and the report go.")] = Path("demo-out"),
    again: Again = False,
    as_json: AsJson = False,
) -> None:
    """A weather stream answered by the live engine as C-SPARQL and as CQELS, judged and shown."""
    with as_file(files("streamgauge.cli") / "demo.toml") as file:
        experiment = read(file)
    _do(experiment, out, None, again=again, as_json=as_json, on_spark=True)


def _do(
    experiment: Experiment, out: Path, master: str | None, *, again: bool, as_json: bool, on_spark: bool = False
) -> None:
    """Run, show each verdict as it comes, write the page; after Ctrl-C what is finished is shown and kept."""
    console = Console(stderr=True)
    judged: list[tuple[Run, Verdict]] = []
    stopped = False
    with telling(console, "run") as tell:
        try:
            always = on_spark or master is not None
            doing = ExperimentContext(
                out, lambda: spark(master), tell, again, on_spark=always, note=tell_note, foretell=_foretell
            )
            for folder, run, verdict in run_experiment(experiment, doing):
                judged.append((run, verdict))
                console.print(verdict_lines(run.header, verdict))
                console.print(f"kept in {folder}", style="dim")
        except KeyboardInterrupt:
            stopped = True
    if judged:
        write_page(judged, out / "report.html", title=experiment.name)
    tell_unused(master)
    _conclude(judged, out / "report.html", console, as_json=as_json)
    if stopped:
        console.print(f"stopped; {counted(len(judged), 'finished run')} kept, the same command goes on from there")
        raise typer.Exit(130)
    raise typer.Exit(exit_code(judged))


def _foretell(estimate: RunEstimate) -> None:
    """Say how long the runs take, if that is long, and what takes less."""
    each = f"{counted(estimate.runs, 'run')} of {counted(estimate.triples, 'triple')}"
    if estimate.factor is not None:
        pace = "in real time" if estimate.factor == 1 else f"at {estimate.factor:g} times real time"
        less = "; a larger [feed] pace, or fewer seeds and repetitions, take less"
        each = f"{counted(estimate.runs, 'run')} of {elapsed(estimate.feed_seconds)} each, fed {pace}{less}"
    if sentence := foretold("run", estimate.seconds, each):
        typer.echo(sentence, err=True)


def _conclude(judged: list[tuple[Run, Verdict]], page: Path, console: Console, *, as_json: bool) -> None:
    if as_json:
        runs = [verdict_json(run.header, verdict) for run, verdict in judged]
        typer.echo(json.dumps({"runs": runs, "report": str(page)}, indent=2))
    elif judged:
        console.print(f"report: {page}")
