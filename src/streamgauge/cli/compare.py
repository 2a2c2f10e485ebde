"""The command ``compare``: compare runs and capacities with a baseline."""

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from streamgauge.cli.exits import Exit
from streamgauge.cli.options import AsJson
from streamgauge.cli.terminal import printing
from streamgauge.report.comparison.changes import Comparison, Tolerances, compared
from streamgauge.report.comparison.formats import (
    bigger_is_better,
    compared_json,
    compared_table,
    headline,
    markdown,
    smaller_is_better,
)
from streamgauge.report.comparison.measurements import Measurements, measured, write_baseline


class CompareFormat(StrEnum):
    """Output formats of a comparison."""

    TEXT = "text"
    MARKDOWN = "markdown"
    BENCHMARK = "benchmark"
    BENCHMARK_CAPACITY = "benchmark-capacity"


_POINTS: Final = {
    CompareFormat.BENCHMARK: smaller_is_better,
    CompareFormat.BENCHMARK_CAPACITY: bigger_is_better,
}


def register(app: typer.Typer) -> None:
    """Add the command ``compare``."""
    app.command("compare")(compare)


def compare(
    sides: Annotated[
        list[Path],
        typer.Argument(metavar="[BASE] RUN", help="Runs, folders of runs, capacities, or a stored baseline."),
    ],
    save: Annotated[
        Path | None, typer.Option(metavar="BASELINE", help="Store RUN's measurements in this file.")
    ] = None,
    delay: Annotated[str, typer.Option(metavar="PERCENT", help="Tolerated growth of delays.")] = "25%",
    cpu: Annotated[str, typer.Option(metavar="PERCENT", help="Tolerated growth of CPU time.")] = "25%",
    memory: Annotated[str, typer.Option(metavar="PERCENT", help="Tolerated growth of memory.")] = "25%",
    capacity: Annotated[str, typer.Option(metavar="PERCENT", help="Tolerated fall of capacities.")] = "10%",
    subset: Annotated[bool, typer.Option("--subset", help="RUN may lack runs of BASE.")] = False,
    form: Annotated[
        CompareFormat,
        typer.Option("--format", help="Text; Markdown for pull requests; points for dashboards of benchmarks."),
    ] = CompareFormat.TEXT,
    as_json: AsJson = False,
) -> None:
    """Exit with 1 if a verdict got worse, a capacity fell, or delay, CPU time or memory grew too much."""
    if len(sides) > 2:
        raise typer.BadParameter("name a base and a run, at most two paths")
    # Points for dashboards are of one side, so they need no base.
    if len(sides) == 1 and save is None and form not in _POINTS:
        raise typer.BadParameter("name a base and a run, or store one by --save BASELINE")
    tolerances = Tolerances(*map(_share, (delay, cpu, memory, capacity), ("delay", "cpu", "memory", "capacity")))
    base = measured(sides[0]) if len(sides) == 2 else None
    now = measured(sides[-1])
    if save is not None:
        write_baseline(save, now)
        subjects = len(now.runs) + len(now.capacities)
        typer.echo(f"streamgauge: {save} is a baseline of {subjects:,} subjects", err=True)
    comparison = None if base is None else compared(base, now, tolerances, subset=subset)
    _print(now, comparison, form, as_json=as_json)
    raise typer.Exit(Exit.WRONG if comparison is not None and comparison.worse else Exit.RIGHT)


def _print(now: Measurements, comparison: Comparison | None, form: CompareFormat, *, as_json: bool) -> None:
    if form in _POINTS:
        typer.echo(json.dumps(_POINTS[form](now), indent=2))
    elif comparison is None:
        return
    elif as_json:
        typer.echo(json.dumps(compared_json(comparison), indent=2))
    elif form is CompareFormat.MARKDOWN:
        typer.echo(markdown(comparison), nl=False)
    else:
        printing().print(compared_table(comparison))
        typer.echo(headline(comparison))


def _share(text: str, option: str) -> float:
    """A percentage such as ``25%`` as a share; BadParameter."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text.strip())
    if match is None:
        raise typer.BadParameter(
            f"{text!r} is not a percentage: write 25% (0% allows nothing)", param_hint=f"--{option}"
        )
    # Both `25%` and `25` are 0.25.
    return float(match[1]) / 100
