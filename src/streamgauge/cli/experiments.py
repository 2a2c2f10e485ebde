"""The commands ``run``, ``capacity`` and ``report``: experiments, from the file to the page."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.exits import Exit, exit_code
from streamgauge.cli.options import AsJson, known_master, milliseconds, one_of, tell_note
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import Tell, Terminal, foretold, printing, telling
from streamgauge.formats.run import read_run, read_shown, read_verdict
from streamgauge.model.phrases import counted
from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict
from streamgauge.query import parse
from streamgauge.report import page as html_page
from streamgauge.report import write as write_page
from streamgauge.report import write_figures
from streamgauge.report.document import processes
from streamgauge.report.text import verdict_json, verdict_lines
from streamgauge.suites.experiments import Experiment, ExperimentError, ExperimentFile, read, read_file
from streamgauge.suites.experiments.capacity import (
    AXES,
    PACE,
    Capacity,
    CapacitySearch,
    Limit,
    axis,
    capacities,
    with_engines,
)
from streamgauge.suites.experiments.capacity import CapacityAxis as Varied
from streamgauge.suites.experiments.load_search import Harder, SearchRange
from streamgauge.suites.experiments.plan import RUN_S, ExperimentEstimate
from streamgauge.suites.experiments.progress import ProgressFolder
from streamgauge.suites.experiments.runner import ExperimentContext, run_variants


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (run, capacity, report):
        app.command(command.__name__)(command)


Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-D", metavar="FIELD=VALUE", help="Override a field: -D workload.stations=5."),
]
Out = Annotated[Path | None, typer.Option(help="The folder for runs and the report (default: runs/NAME).")]
Again = Annotated[bool, typer.Option("--again", help="Repeat existing runs.")]
Master = Annotated[
    str | None,
    typer.Option(
        help="Spark master (default: local[*]); if given, all streams are generated on Spark.",
        callback=known_master,
    ),
]


def run(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML).")],
    define: Overrides = None,
    out: Out = None,
    again: Again = False,
    progress: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write progress and answers to this folder during the runs.")
    ] = None,
    as_json: AsJson = False,
    master: Master = None,
) -> None:
    """Do an experiment: make its streams, run its engines, judge every run, write the report."""
    experiment = read_file(file, define or ())
    folder = None if progress is None else ProgressFolder(progress)
    _do(experiment, out or Path("runs") / experiment.name, master, again=again, as_json=as_json, progress=folder)


def _do(
    experiment: ExperimentFile,
    out: Path,
    master: str | None,
    *,
    again: bool,
    as_json: bool,
    progress: ProgressFolder | None = None,
) -> None:
    """Run, show each verdict as it comes, write the report; after Ctrl-C finished runs are shown and kept."""
    console = Terminal(stderr=True)
    judged: list[tuple[Run, Verdict]] = []
    stopped = False
    with telling(console, "run") as tell:
        try:
            doing = ExperimentContext(
                out, lambda: spark(master), _both(tell, progress), again, on_spark=master is not None, note=tell_note,
                foretell=_foretell, progress=progress,
            )  # fmt: skip
            for folder, run, verdict in run_variants(experiment.variants, doing):
                judged.append((run, verdict))
                if progress is not None:
                    progress.judged(folder.name, verdict)
                console.print(verdict_lines(run.header, verdict))
                console.print(f"kept in {folder}", style="dim")
        except KeyboardInterrupt:
            stopped = True
    if judged:
        if progress is not None:
            progress.step("writing the report", 0.0 if stopped else 1.0)
        write_page(judged, out / "report.html", title=experiment.name)
    tell_unused(master)
    _tell_processes(judged)
    _conclude(judged, out / "report.html", console, as_json=as_json)
    if stopped:
        console.print(f"stopped; {counted(len(judged), 'finished run')} stored: repeat the command to continue")
        raise typer.Exit(130)
    raise typer.Exit(exit_code(judged))


def _both(tell: Tell, progress: ProgressFolder | None) -> Callable[[str, float], object]:
    """Report progress to the terminal, and to the progress folder if there is one."""
    if progress is None:
        return tell

    def both(what: str, share: float) -> None:
        tell(what, share)
        progress.step(what, share)

    return both


def _foretell(estimate: ExperimentEstimate) -> None:
    """Estimate the duration of the runs, if it is long, and name options that shorten it."""
    less = "" if not estimate.paced else "; a larger [feed] pace, or fewer seeds and repetitions, take less"
    if sentence := foretold("run", estimate.seconds, f"{estimate.words}{less}"):
        typer.echo(sentence, err=True)


def _tell_processes(judged: Sequence[tuple[Run, Verdict]]) -> None:
    """Print how engines distributed queries over processes, if they were asked to."""
    for note in dict.fromkeys(f"{run.header.engine}: {how}" for run, _ in judged if (how := processes(run.header))):
        typer.echo(note, err=True)


def _conclude(judged: list[tuple[Run, Verdict]], page: Path, console: Console, *, as_json: bool) -> None:
    if as_json:
        runs = [verdict_json(run.header, verdict) for run, verdict in judged]
        typer.echo(json.dumps({"runs": runs, "report": str(page)}, indent=2))
    elif judged:
        console.print(f"report: {page}")


FORMATS = ("html", "markdown", "junit", "csv", "latex")


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders with run folders.")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write (default: report.html; other formats are printed).")
    ] = None,
    title: Annotated[str, typer.Option(help="The title of the report.")] = "Streamgauge report",
    form: Annotated[
        str | None,
        one_of(lambda: FORMATS, "--format", help="html, markdown (pull requests), junit (CI), csv, latex."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every plot as SVG, PNG, PDF and CSV.")
    ] = None,
) -> None:
    """Write one self-contained page about judged runs."""
    folders = [folder for path in runs for folder in _run_folders(path)]
    if not folders:
        raise ExperimentError(f"{', '.join(map(str, runs))}: no run folder found (a run folder has a run.json)")
    with telling(Terminal(stderr=True), "report"):
        judged = [(read_shown(folder, parse), read_verdict(folder)) for folder in folders]
        text = _written(judged, form or "html", title)
        written = [] if figures is None else write_figures(judged, figures)
    path = Path("report.html") if out is None and form in (None, "html") else out
    if path is None:
        typer.echo(text, nl=False)
    else:
        path.write_text(text, encoding="utf-8")
        typer.echo(str(path))
    if figures is not None:
        typer.echo(f"{counted(len(written), 'file')} in {figures}", err=path is None)


def _written(judged: list[tuple[Run, Verdict]], form: str, title: str) -> str:
    """The verdicts in a format."""
    if form == "markdown":
        from streamgauge.report.markdown import page as markdown

        return markdown(judged, title)
    if form == "junit":
        from streamgauge.report.junit import page as junit

        return junit(judged, datetime.now(UTC))
    if form in ("csv", "latex"):
        from streamgauge.report.tables import csv_table, latex_tables

        return csv_table(judged) if form == "csv" else latex_tables(judged, title)
    return html_page(judged, title)


def _run_folders(path: Path) -> list[Path]:
    """A run folder, or all run folders below a folder, sorted; links to folders of folders are not followed."""
    # Also a path that does not exist: reading it then raises the error that names it.
    if (path / "run.json").exists() or not path.is_dir():
        return [path]
    below = sorted(path for path in path.iterdir() if path.is_dir() and not path.name.startswith("."))
    followed = (
        folder_below for folder_below in below if (folder_below / "run.json").exists() or not folder_below.is_symlink()
    )
    return [folder for folder_below in followed for folder in _run_folders(folder_below)]


FURTHEST = 2.0**20
"""Default limit of a search, as a multiple of its start."""


def capacity(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML).")],
    define: Annotated[
        list[str] | None, typer.Option("--set", "-D", metavar="FIELD=VALUE", help="Override a field.")
    ] = None,
    engine: Annotated[list[str] | None, typer.Option(help="Only this engine; may be repeated.")] = None,
    vary: Annotated[str, one_of(lambda: AXES, "--axis", help="load, window, slide or time-unit.")] = "load",
    load: Annotated[str, typer.Option(help="The load: feed.pace, workload.NAME, query.parameters.NAME.")] = PACE,
    begin: Annotated[float | None, typer.Option("--from", help="The first value (default: the experiment's).")] = None,
    end: Annotated[float | None, typer.Option("--to", help="The hardest value to try.")] = None,
    max_delay: Annotated[
        str, typer.Option(metavar="DURATION", help="Maximum delay of answers (of 99%, in every window).")
    ] = "1s",
    max_lateness: Annotated[
        str, typer.Option(metavar="DURATION", help="Maximum lateness of the harness (for 99% of the elements).")
    ] = "250ms",
    lasting: Annotated[
        str, typer.Option(metavar="DURATION", help="Minimum duration of a probe and its stream.")
    ] = "10s",
    precision: Annotated[float, typer.Option(help="Relative precision of the result.")] = 0.05,
    tries: Annotated[int, typer.Option(min=1, help="Number of attempts at a probe that was late.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="The folder for probes and the page (default: capacity/NAME).")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Repeat existing probes.")] = False,
    as_json: AsJson = False,
    master: Master = None,
) -> None:
    """Find the highest load with right answers and a bounded delay, or the smallest window."""
    experiment = read(file, define or ())
    if engine:
        experiment = with_engines(experiment, tuple(engine))
    varied = axis(vary, experiment, load)
    limit = Limit(
        milliseconds(max_delay, "--max-delay") or 0,
        milliseconds(max_lateness, "--max-lateness") or 0,
        milliseconds(lasting, "--lasting") or 0,
    )
    search = CapacitySearch(varied, _reach(varied, begin, end, precision), limit, tries)
    folder = out or Path("capacity") / experiment.name
    console = Terminal(stderr=True)
    _foretell_probes(experiment, search)
    results: list[Capacity] = []
    stopped = False
    with telling(console, "capacity") as tell:
        doing = ExperimentContext(folder, lambda: spark(master), tell, again, on_spark=master is not None)
        try:
            results.extend(capacities(experiment, search, doing))
            _write_probes(results, tell)
        except KeyboardInterrupt:
            stopped = True
    tell_unused(master)
    _conclude_search(experiment.name, search, results, folder / f"{varied.folder}.html", console, as_json=as_json)
    if stopped:
        console.print("stopped; finished probes are stored: repeat the command to continue")
        raise typer.Exit(130)
    raise typer.Exit(_exit_of_search(results))


def _exit_of_search(results: Sequence[Capacity]) -> Exit:
    """Right if some engine has a figure, unknown if values were passed but no figure is settled."""
    if any(one.carried and not one.doubt for one in results):
        return Exit.RIGHT
    return Exit.UNKNOWN if any(one.carried for one in results) else Exit.WRONG


def _foretell_probes(experiment: Experiment, search: CapacitySearch) -> None:
    """Estimate the minimum duration of the searches."""
    searches = sum(len(part.semantics) for part in experiment.engine)
    runs = len(experiment.seeds) * experiment.repetitions
    lasting, probes = search.limit.lasting / 1000, search.reach.fewest
    why = f"{searches} searches of {probes} probes or more, a probe is {runs} runs of {lasting:g} s or more"
    if sentence := foretold("capacity", searches * probes * runs * (RUN_S + lasting), why):
        typer.echo(sentence, err=True)


def _reach(varied: Varied, begin: float | None, end: float | None, precision: float) -> SearchRange:
    """The range from ``begin`` (default: the experiment's value) to ``end``; ExperimentError."""
    start = varied.start if begin is None else begin
    greater = varied.harder is Harder.GREATER
    # `far` is the hardest value to try. Worked examples without --to: from the pace 100, where greater is harder, the
    # range is 100/2^20 to 100 * 2^20. From windows of 60 s, where smaller is harder, it is 1 ms to 2^20 minutes.
    far = (start * FURTHEST if greater else min(start, 1.0)) if end is None else end
    least, upper = (min(start, 1.0 if varied.whole else start / FURTHEST), far) if greater else (far, start * FURTHEST)
    try:
        return SearchRange(start, least, upper, varied.harder, varied.whole, precision)
    except ValueError as error:
        raise ExperimentError(f"--from, --to, --precision: {error}") from error


def _write_probes(results: list[Capacity], tell: Callable[[str], object]) -> None:
    from streamgauge.report.capacity import write_probes

    write_probes(results, lambda folder: (read_run(folder, parse), read_verdict(folder)), tell)


def _conclude_search(
    name: str, search: CapacitySearch, results: list[Capacity], path: Path, console: Console, *, as_json: bool
) -> None:
    """Write the page and print the results."""
    from streamgauge.report.capacity import Carried, json_of, shown, write, write_json_of

    carried = Carried(name, search.axis, search.limit, search.reach.precision, results, path.parent)
    if results:
        write(carried, path)
        write_json_of(carried, path.with_suffix(".json"))
    if as_json:
        typer.echo(json.dumps({**json_of(carried), "page": str(path)}, indent=2))
        return
    for part in shown(carried):
        printing().print(part)
    if results:
        console.print(f"page: {path}; every probe is a run folder next to it")
