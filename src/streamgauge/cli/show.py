"""Commands that show: ``report``, ``engines`` and ``doctor``."""

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.table import Table

from streamgauge import engines as registry
from streamgauge.bench.experiments.experiment import ExperimentError
from streamgauge.cli.exits import Exit
from streamgauge.cli.progress import telling
from streamgauge.cli.terminal import printing, table
from streamgauge.model.semantics import Semantics
from streamgauge.query import parse
from streamgauge.report.page import write as write_page
from streamgauge.semantics.profiles import PROFILES, classification
from streamgauge.wire.run import read_run
from streamgauge.wire.verdict import read_verdict

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("report")(report)
    app.command("engines")(list_engines)
    app.command("doctor")(doctor)


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


def list_engines(
    semantics: Annotated[bool, typer.Option("--semantics", help="CSRBench's table 1 and every profile.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the engines that can be put under test, or the semantics that they can run under."""
    if as_json:
        profiles = {name: _fields(profile) for name, profile in PROFILES.items()}
        typer.echo(
            json.dumps({"engines": _engines(), "classification": classification(), "profiles": profiles}, indent=2)
        )
        return
    console = printing()
    if not semantics:
        shown = table("engine", "about")
        for name, about in _engines().items():
            shown.add_row(name, about)
        console.print(shown)
        return
    shown = table("Feature", "Operator", "C-SPARQL", "CQELS", "SPARQLstream", title="CSRBench, table 1")
    for row in classification():
        shown.add_row(*row)
    console.print(shown)
    for name, profile in PROFILES.items():
        console.print(_profile_table(name, profile))


def _engines() -> dict[str, str]:
    return {name: (registry.load(name).__doc__ or "").split("\n")[0] for name in registry.names()}


def _fields(profile: Semantics) -> dict[str, dict[str, str]]:
    """Each field of a Semantics value, printed, with its source."""
    shown = [field.name for field in fields(profile) if field.name not in {"name", "sources"}]
    return {
        name: {"value": _show(getattr(profile, name)), "source": profile.sources.get(name, "default")} for name in shown
    }


def _show(value: object) -> str:
    if isinstance(value, frozenset):
        return " and ".join(sorted(map(str, value)))
    return "none" if value is None else str(value)


def _profile_table(name: str, profile: Semantics) -> Table:
    shown = table("field", "value", "source", title=name)
    for field, cell in _fields(profile).items():
        shown.add_row(field, cell["value"], cell["source"])
    return shown


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine lacks and how to get it."""
    checks = [_java(), _memory(), _python(), _chromium()]
    if as_json:
        typer.echo(
            json.dumps([{"what": what, "found": found, "advice": advice} for what, found, advice in checks], indent=2)
        )
    else:
        shown = table("what", "found", "what to do")
        for what, found, advice in checks:
            shown.add_row(what, found or "missing", advice)
        printing().print(shown)
    whole = all(found for what, found, _ in checks if what != "chromium")
    raise typer.Exit(Exit.RIGHT if whole else Exit.BAD_INPUT)


def _java() -> tuple[str, str, str]:
    from streamgauge.compute.spark.requirements import java, java_lack

    program = java()
    if program is None or java_lack():
        return "Java", "", java_lack()
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return "Java", said[0] if said else program, ""


def _memory() -> tuple[str, str, str]:
    gib = psutil.virtual_memory().total / (1 << 30)
    advice = "" if gib >= 8 else "8 GiB are comfortable: keep streams small or raise the machine's memory"
    return "memory", f"{gib:.1f} GiB", advice


def _python() -> tuple[str, str, str]:
    return "Python", sys.version.split()[0], ""


def _chromium() -> tuple[str, str, str]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
    advice = "" if found else "only the browser tests need it (Debian: apt-get install chromium chromium-driver)"
    return "chromium", found, advice
