"""Commands that run engines: ``run`` and ``demo``."""

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streamgauge.bench.experiment import Experiment, read
from streamgauge.bench.running import Doing, run_experiment
from streamgauge.cli.exits import exit_code
from streamgauge.cli.spark import spark
from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict
from streamgauge.report.page import write as write_page
from streamgauge.report.text import verdict_json, verdict_lines

Overrides = Annotated[
    list[str] | None, typer.Option("--define", "-D", help="Override a field: -D workload.stations=5.")
]
Out = Annotated[Path | None, typer.Option(help="Where runs and the report go; runs/NAME unless given.")]
Again = Annotated[bool, typer.Option("--again", help="Do runs again that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Master = Annotated[str | None, typer.Option(help="Spark master, local[*] unless given.")]


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
) -> int:
    """Do an experiment: make its streams, run its engines, judge every run, write the report."""
    experiment = read(file, define or ())
    return _do(experiment, out or Path("runs") / experiment.name, master, again=again, as_json=as_json)


def demo(
    out: Annotated[Path, typer.Option(help="Where runs and the report go.")] = Path("demo-out"),
    again: Again = False,
    as_json: AsJson = False,
) -> int:
    """A weather stream answered by the live engine as C-SPARQL and as CQELS, judged and shown."""
    with as_file(files("streamgauge.cli") / "demo.toml") as file:
        experiment = read(file)
    return _do(experiment, out, None, again=again, as_json=as_json)


def _do(experiment: Experiment, out: Path, master: str | None, *, again: bool, as_json: bool) -> int:
    console = Console(stderr=True)
    judged: list[tuple[Run, Verdict]] = []
    with _progress(console) as progress:
        task = progress.add_task("starting", total=1.0)

        def tell(what: str, share: float) -> None:
            progress.update(task, description=what, completed=max(share, progress.tasks[0].completed))

        for folder, done, verdict in run_experiment(experiment, Doing(out, lambda: spark(master), tell, again)):
            judged.append((done, verdict))
            console.print(verdict_lines(done.header, verdict))
            console.print(f"kept in {folder}", style="dim")
    page = out / "report.html"
    write_page(judged, page, title=experiment.name)
    if as_json:
        typer.echo(
            json.dumps(
                {"runs": [verdict_json(done.header, verdict) for done, verdict in judged], "report": str(page)},
                indent=2,
            )
        )
    else:
        console.print(f"report: {page}")
    return exit_code(judged)


def _progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console
    )
