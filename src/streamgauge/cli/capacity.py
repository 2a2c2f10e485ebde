"""The command ``capacity``: the hardest load, or the smallest window, slide or time unit, that engines carry."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.defined import milliseconds
from streamgauge.cli.exits import Exit
from streamgauge.cli.names import one_of
from streamgauge.cli.progress import foretold, telling
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import printing
from streamgauge.formats.run import read_run
from streamgauge.formats.verdict import read_verdict
from streamgauge.query import parse
from streamgauge.suites.experiments import Experiment, ExperimentError, read
from streamgauge.suites.experiments.capacity import (
    AXES,
    PACE,
    Capacity,
    CapacitySearch,
    Harder,
    Limit,
    SearchRange,
    axis,
    capacities,
    with_engines,
)
from streamgauge.suites.experiments.capacity import CapacityAxis as Varied
from streamgauge.suites.experiments.plan import RUN_S
from streamgauge.suites.experiments.runner import ExperimentContext

FURTHEST = 2.0**20
"""How many times as hard as the start a search goes, unless told where to end."""


def register(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command("capacity")(capacity)


def capacity(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML).")],
    define: Annotated[
        list[str] | None, typer.Option("--set", "-D", metavar="FIELD=VALUE", help="Override a field.")
    ] = None,
    engine: Annotated[list[str] | None, typer.Option(help="Only these engines; several options name several.")] = None,
    vary: Annotated[str, one_of(lambda: AXES, "--axis", help="load, window, slide or time-unit.")] = "load",
    load: Annotated[
        str, typer.Option(help="What the load is: feed.pace, workload.NAME, query.parameters.NAME.")
    ] = PACE,
    begin: Annotated[float | None, typer.Option("--from", help="The first value; the experiment's own.")] = None,
    end: Annotated[float | None, typer.Option("--to", help="The hardest value to try.")] = None,
    max_delay: Annotated[
        str, typer.Option(metavar="DURATION", help="How late answers may come (99% of them, in every window).")
    ] = "1s",
    max_lateness: Annotated[
        str, typer.Option(metavar="DURATION", help="How late the harness may feed (99% of the elements).")
    ] = "250ms",
    lasting: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a probe lasts at least; streams are made as long.")
    ] = "10s",
    precision: Annotated[float, typer.Option(help="How narrow the border is found, relatively.")] = 0.05,
    tries: Annotated[int, typer.Option(min=1, help="How often a probe that was late is tried.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="Where the probes and the page go; capacity/NAME unless given.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Do probes again that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master, local[*] unless given.")] = None,
) -> None:
    """Find the highest load at which every window is right and the delay stays bounded; or the smallest window."""
    experiment = read(file, define or ())
    if engine:
        experiment = with_engines(experiment, tuple(engine))
    varied = axis(vary, experiment, load)
    limit = Limit(
        milliseconds(max_delay, "--max-delay") or 0,
        milliseconds(max_lateness, "--max-lateness") or 0,
        milliseconds(lasting, "--lasting") or 0,
    )
    asked = CapacitySearch(varied, _reach(varied, begin, end, precision), limit, tries)
    folder = out or Path("capacity") / experiment.name
    console = Console(stderr=True)
    _foretell(experiment, asked)
    found: list[Capacity] = []
    stopped = False
    with telling(console, "capacity") as tell:
        doing = ExperimentContext(folder, lambda: spark(master), tell, again, on_spark=master is not None)
        try:
            found.extend(capacities(experiment, asked, doing))
            _write_probes(found, tell)
        except KeyboardInterrupt:
            stopped = True
    tell_unused(master)
    _conclude(experiment.name, asked, found, folder / f"{varied.folder}.html", console, as_json=as_json)
    if stopped:
        console.print("stopped; finished probes are kept, the same command goes on from there")
        raise typer.Exit(130)
    raise typer.Exit(Exit.RIGHT if any(one.carried for one in found) else Exit.WRONG)


def _foretell(experiment: Experiment, asked: CapacitySearch) -> None:
    """Say how long the probes take at least: each lasts so long, and a search has so many."""
    searches = sum(len(part.semantics) for part in experiment.engine)
    runs = len(experiment.seeds) * experiment.repetitions
    each, probes = asked.limit.lasting / 1000, asked.reach.fewest
    why = f"{searches} searches of {probes} probes or more, a probe is {runs} runs of {each:g} s or more"
    if sentence := foretold("capacity", searches * probes * runs * (RUN_S + each), why):
        typer.echo(sentence, err=True)


def _reach(varied: Varied, begin: float | None, end: float | None, precision: float) -> SearchRange:
    """From ``begin`` (the experiment's own value) to ``end``; ExperimentError says what cannot be searched."""
    start = varied.start if begin is None else begin
    greater = varied.harder is Harder.GREATER
    far = (start * FURTHEST if greater else min(start, 1.0)) if end is None else end
    least, most = (min(start, 1.0 if varied.whole else start / FURTHEST), far) if greater else (far, start * FURTHEST)
    try:
        return SearchRange(start, least, most, varied.harder, varied.whole, precision)
    except ValueError as error:
        raise ExperimentError(f"--from, --to, --precision: {error}") from error


def _write_probes(found: list[Capacity], tell: Callable[[str], object]) -> None:
    from streamgauge.report.capacity import write_probes

    write_probes(found, lambda folder: (read_run(folder, parse), read_verdict(folder)), tell)


def _conclude(
    name: str, asked: CapacitySearch, found: list[Capacity], path: Path, console: Console, *, as_json: bool
) -> None:
    """The page, and what is printed."""
    from streamgauge.report.capacity import Carried, json_of, shown, write

    carried = Carried(name, asked.axis, asked.limit, asked.reach.precision, found, path.parent)
    if found:
        write(carried, path)
    if as_json:
        typer.echo(json.dumps({**json_of(carried), "page": str(path)}, indent=2))
        return
    for part in shown(carried):
        printing().print(part)
    if found:
        console.print(f"page: {path}; every probe is a run folder beside it")
