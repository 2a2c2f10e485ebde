"""The command ``report``: a page about runs that were judged."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.progress import telling
from streamgauge.formats.run import read_run
from streamgauge.formats.verdict import read_verdict
from streamgauge.query import parse
from streamgauge.report import write as write_page
from streamgauge.suites.experiments import ExperimentError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("report")(report)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold them.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its title.")] = "Streamgauge report",
) -> None:
    """One self-contained page about runs that were judged."""
    folders = [folder for path in runs for folder in _run_folders(path)]
    if not folders:
        raise ExperimentError(f"{', '.join(map(str, runs))}: no run folder here (one holds a run.json)")
    with telling(Console(stderr=True), "report"):
        write_page([(read_run(folder, parse), read_verdict(folder)) for folder in folders], out, title=title)
    typer.echo(str(out))


def _run_folders(path: Path) -> list[Path]:
    if (path / "run.json").exists() or not path.is_dir():
        return [path]
    return sorted(file.parent for file in path.glob("*/run.json") if not file.parent.name.startswith("."))
