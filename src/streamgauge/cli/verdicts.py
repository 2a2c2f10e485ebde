"""Commands that judge: ``check`` and ``explain`` a recorded run, ``expect`` answers without a run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NoReturn, cast

import typer
from rich.console import Console
from rich.table import Table

from streamgauge.cli.exits import Exit, exit_code
from streamgauge.cli.options import (
    NO_OPTIONS,
    WINDOWS,
    AsJson,
    Master,
    OwnData,
    Parameters,
    horizon_time,
    instant,
    known_master,
    milliseconds,
    naming,
    one_named,
    one_of,
    own_data,
    own_reading,
    rule_names,
    semantics_names,
    tell_notes,
    values,
)
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import Reason, Terminal, printing, table, telling
from streamgauge.formats.manifest import manifest
from streamgauge.formats.run import (
    RunError,
    read_heads,
    read_run,
    read_verdict,
    stream_path,
    stream_place,
    write_verdict,
)
from streamgauge.formats.stream import elements
from streamgauge.model.phrases import is_dated
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock
from streamgauge.model.verdict import Diagnosis, Evaluator, Verdict
from streamgauge.oracle.diagnosis.diagnose import Explained, explained, worked
from streamgauge.oracle.diagnosis.prefix import NoPrefixError
from streamgauge.oracle.diagnosis.search import TRIPLES_LIMIT
from streamgauge.oracle.diagnosis.whole_run import explain_stored
from streamgauge.oracle.expected.reports import beside
from streamgauge.oracle.judging.judge import (
    IN_PROCESS,
    Means,
    expected_reports,
    judge_run,
    judge_stored,
    with_cautions,
    with_query,
)
from streamgauge.oracle.judging.metrics import by_arrival
from streamgauge.oracle.judging.opened import opened
from streamgauge.papers.rules import RuleSettings, judge_as
from streamgauge.query import detect, fill, parse
from streamgauge.report.numbers import moment
from streamgauge.report.text import (
    explained_json,
    explained_lines,
    opened_json,
    opened_lines,
    verdict_json,
    verdict_lines,
)
from streamgauge.semantics.beginning import begun_run
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sources.named import named_source, stream_table
from streamgauge.suites.experiments.plan import read_text, refuse_window, stream_facts

EVALUATORS = ("definition", "spark")


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (check, expect, explain):
        app.command(command.__name__)(command)


def check(
    run: Annotated[Path, typer.Argument(help="A run folder, from any tool.")],
    semantics: Annotated[
        str | None, one_named(semantics_names, help="Judge under another semantics than the run's own.")
    ] = None,
    query: Annotated[Path | None, typer.Option(help="Judge by this query instead of the run's own.")] = None,
    define: Parameters = None,
    rules: Annotated[str | None, one_of(rule_names, help="Judge as csrbench or yabench did.")] = None,
    gracious: Annotated[bool, typer.Option("--gracious", help="Find the borders that fit wrong answers best.")] = False,
    evaluator: Annotated[str | None, one_of(lambda: EVALUATORS, help="definition or spark.")] = None,
    max_delay: Annotated[
        str | None, typer.Option(metavar="DURATION", help="An answer with more delay makes its window late.")
    ] = None,
    exact_datatypes: Annotated[
        bool, typer.Option("--exact-datatypes", help="Compare the datatypes of computed numbers too.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Store a verdict by other rules than the run's own.")] = False,
    as_json: AsJson = False,
    master: Master = None,
) -> None:
    """Judge a recorded run again and store the verdict in its folder."""
    if define and query is None:
        raise typer.BadParameter("-D sets parameters of --query FILE: name the file")

    text = None if query is None else read_text(query)
    reread = partial(_requested_run, folder=run, semantics=semantics, query=query, text=text, define=define)
    heads = read_heads(run, parse) if rules is None else None
    recorded = _judged_by(reread(heads or read_run(run, parse)), run, evaluator)
    if query is not None:
        tell_notes(recorded.header.query)
    console = Terminal(stderr=as_json)
    steps = "steps done" if rules or gracious else "candidates for t0 tried"
    with telling(Terminal(stderr=True), "check") as tell:
        tell("judging")
        means = Means(
            spark=lambda: spark(master),
            evaluator=cast("Evaluator | None", evaluator),
            max_delay=milliseconds(max_delay, "--max-delay"),
            progress=lambda tried, of: tell(f"{tried} of {of} {steps}", tried / max(1, of)),
            gracious=gracious,
            exact_datatypes=exact_datatypes,
            chosen=lambda sentence: tell(Reason(sentence)),
            in_tasks=None if master is None else IN_PROCESS,
        )
        if rules is None:
            verdict = judge_stored(heads and recorded, lambda: reread(read_run(run, parse)), stream_place(run), means)
        else:
            verdict = _judged(recorded, stream_path(run), rules, means)
    tell_unused(master, "--evaluator spark takes Spark")
    own = semantics is None and query is None and rules is None
    if own:
        verdict = replace(verdict, diagnosis=_diagnosis(run))
    # Another rule's verdict would replace the run's own, which reports and comparisons read: only if asked for.
    if keep or own:
        write_verdict(run, verdict)
    if as_json:
        typer.echo(json.dumps(verdict_json(recorded.header, verdict), indent=2))
    else:
        console.print(verdict_lines(recorded.header, verdict))
    raise typer.Exit(exit_code([(recorded, verdict)]))


def _judged_by(run: Run, folder: Path, evaluator: str | None) -> Run:
    """The run; RefusedError if the evaluator is the one that computed the answers."""
    if evaluator is not None and evaluator == run.header.evaluator:
        others = " or ".join(f"--evaluator {name}" for name in EVALUATORS if name != evaluator)
        raise RefusedError(
            f"{folder}: the engine {run.header.engine} computed its answers by {evaluator}, which may not judge them: "
            f"give {others}"
        )
    return run


def _requested_run(
    run: Run, folder: Path, semantics: str | None, query: Path | None, text: str | None, define: Parameters
) -> Run:
    """The run with the requested query and semantics."""
    if query is not None and text is not None:
        with naming(query):
            run = with_query(run, text, values(define))
    if semantics is not None:
        run = replace(run, header=replace(run.header, semantics=profile(semantics)))
        run = begun_run(run, stream_facts(stream_path(folder)).begins)
    return run


def _diagnosis(folder: Path) -> Diagnosis | None:
    """The diagnosis that ``explain`` stored in the folder; judging again does not invalidate it."""
    try:
        return read_verdict(folder).diagnosis
    except RunError:
        return None


def _judged(run: Run, stream: Path, rules: str, means: Means) -> Verdict:
    """The verdict by a published rule set."""
    if means.evaluator is not None or means.max_delay is not None or means.exact_datatypes:
        raise typer.BadParameter(f"{rules}'s rules have neither --evaluator, --max-delay nor --exact-datatypes")
    if any(answer.kind != "solutions" for answer in run.answers):
        raise RefusedError(f"{rules}'s rules compare solutions of a SELECT: this run has other answers")
    settings = RuleSettings(gracious=means.gracious, progress=means.progress)
    return with_cautions(run, judge_as(rules, run, tuple(elements(stream)), settings), stream)


AdvanceTo = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Advance time at the end to 30s, or until all non-empty windows have closed (windows). "
        "Default: the last element.",
    ),
]
FirstWindow = Annotated[str | None, typer.Option(help="The start of the first window (default: the semantics' own).")]


@own_data
def expect(
    query: Annotated[Path, typer.Argument(help="A continuous query in any dialect.")],
    stream: Annotated[list[str], typer.Option(help="A file, a stream table's folder or a URL, or IRI=SOURCE.")],
    semantics: Annotated[
        str | None,
        one_named(semantics_names, help="A profile: csparql, yabench, ... (default: that of the dialect)."),
    ] = None,
    own: OwnData = NO_OPTIONS,
    define: Parameters = None,
    static: Annotated[str | None, typer.Option(metavar="FILE", help="Static data: any RDF file.")] = None,
    windows: Annotated[
        int | None, typer.Option(min=1, help="Number of windows, up to whose end time advances.")
    ] = None,
    advance_to: AdvanceTo = None,
    t0: FirstWindow = None,
    evaluator: Annotated[str | None, one_of(lambda: EVALUATORS, help="definition or spark.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Print the rows too (JSON).")] = False,
    as_json: AsJson = False,
    memory_limit_mb: Annotated[int, typer.Option(help="Refuse windows that would need more memory.")] = 8192,
    master: Master = None,
) -> None:
    """Print expected answers and sizes of a query on a stream, without a run."""
    with naming(query):
        text = fill(read_text(query), values(define))
        parsed = beside(parse(text), static)
    tell_notes(parsed)
    wanted = profile(semantics or detect(text))
    console = Terminal(stderr=True)
    with TemporaryDirectory() as scratch, telling(console, "expect") as tell:
        tell("reading the stream")
        sources = [named_source(text) for text in stream]
        reading = own_reading(text, wanted.lateness, own)
        table, course = stream_table(sources, parsed.streams, reading, Path(scratch))
        facts = stream_facts(table, ", ".join(stream))
        # Before Spark starts, which takes seconds.
        refuse_window(parsed, facts.triples, facts.span, memory_limit_mb)
        means = Means(
            lambda: spark(master), cast("Evaluator | None", evaluator), chosen=lambda reason: tell(Reason(reason))
        )
        horizon: list[tuple[int, str]] = []
        tell("computing the expected answers")
        reports = expected_reports(
            parsed,
            wanted,
            table,
            means,
            windows=windows,
            course=course,
            advance_to="windows" if advance_to == WINDOWS else horizon_time(advance_to),
            t0=instant(t0),
            name=lambda time, awaited: horizon.append((time, awaited)),
        )
    tell_unused(master, "--evaluator spark takes Spark")
    until, awaited = horizon[0]
    note = f"{awaited}, and --advance-to {WINDOWS} closes it" if awaited else "no report was due after it"
    typer.echo(f"time reached {until:,} ms: {note}", err=True)
    if as_json or rows:
        typer.echo(json.dumps([_json(report, rows) for report in reports], indent=2))
    else:
        printing().print(_table(reports))


def _json(report: ExpectedReport, rows: bool) -> dict[str, object]:
    due = report.due
    sizes = {
        "instant": due.instant,
        "start": due.start,
        "end": due.end,
        "expected_result_size": len(report.rows),
        "expected_input_size": report.content,
    }
    if not rows:
        return {**sizes}
    return {**sizes, "variables": report.variables, "rows": report.rows}


def _table(reports: Sequence[ExpectedReport]) -> Table:
    plain = not any(is_dated(report.due.instant) for report in reports)
    unit = " (ms)" if plain else ""
    shown = table("report", f"instant{unit}", f"scope{unit}", "expected rows", "triples in the window")
    for number, report in enumerate(reports, 1):
        due = report.due
        shown.add_row(
            str(number),
            f"{due.instant:,}" if plain else moment(due.instant),
            f"{due.start:,} - {due.end:,}" if plain else f"{moment(due.start)} - {moment(due.end)}",
            f"{len(report.rows):,}",
            f"{report.content:,}",
        )
    return shown


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder, from any tool.")],
    window: Annotated[
        int | None,
        typer.Option(metavar="N", help="Show this window of the verdict in detail, without searching a model."),
    ] = None,
    as_json: AsJson = False,
    master: Annotated[
        str | None,
        typer.Option(
            help="The Spark master that verifies on the whole of a large run what its beginning shows.",
            callback=known_master,
        ),
    ] = None,
) -> None:
    """Find the nearest semantics, or named fault, that yields the recorded answers exactly."""
    console = Terminal(stderr=as_json)
    if window is None and (heads := _large(run)) is not None:
        _explain_large(heads, run, master, console, as_json=as_json)
    recorded = read_run(run, parse)
    tell_notes(recorded.header.query)
    if window is not None:
        _work_through(recorded, run, window, console, as_json=as_json)
    explanation = _explained(recorded, stream_path(run))
    _shown(recorded, run, explanation, _verdict(recorded, run), console, as_json=as_json)


def _large(folder: Path) -> Run | None:
    """The run without its rows, if it is too large for trying models or its stream is remote."""
    stream = stream_place(folder)
    if isinstance(stream, Path) and manifest(stream).rows <= TRIPLES_LIMIT:
        return None
    heads = read_heads(folder, parse)
    # Under another clock, times are those of the hand-overs, which a run read by its heads does not have.
    return heads if heads is not None and heads.header.semantics.clock is Clock.APPLICATION else None


def _explain_large(run: Run, folder: Path, master: str | None, console: Console, *, as_json: bool) -> NoReturn:
    """Explain a run by its beginning; it needs a stored verdict, as judging may need a cluster."""
    tell_notes(run.header.query)
    verdict, stream = read_verdict(folder), stream_place(folder)
    # Without a master, a local run is explained by its beginning alone: no Spark is started unasked.
    session = partial(spark, master) if master is not None or not isinstance(stream, Path) else None
    with telling(Terminal(stderr=True), "explain") as tell:
        tell("trying models")
        try:
            diagnosis = explain_stored(folder, parse, stream, session)
        except NoPrefixError as error:
            raise RefusedError(f"{folder} is explained by its beginning: {error}") from error
    verdict = replace(verdict, cautions=(*verdict.cautions, *diagnosis.cautions))
    _shown(run, folder, diagnosis.explained, verdict, console, as_json=as_json)


def _shown(
    run: Run, folder: Path, explained: Explained, verdict: Verdict, console: Console, *, as_json: bool
) -> NoReturn:
    """Store a diagnosis and print it; exit code 0 if it explains every answer."""
    diagnosis, first = explained.diagnosis, worked(explained)
    verdict = replace(verdict, diagnosis=diagnosis)
    write_verdict(folder, verdict)
    if as_json:
        typer.echo(json.dumps(explained_json(run.header, verdict, first), indent=2))
    else:
        console.print(explained_lines(run.header, verdict, first))
    raise typer.Exit(Exit.RIGHT if diagnosis.exact or not diagnosis.differs else Exit.UNKNOWN)


def _work_through(run: Run, folder: Path, index: int, console: Console, *, as_json: bool) -> NoReturn:
    """Show one window; exit code 0 if it is right, 5 if it is late, else 1."""
    with telling(Terminal(stderr=True), "explain") as tell:
        tell("examining the window")
        witness = opened(run, stream_path(folder), _verdict(run, folder), index)
    if as_json:
        typer.echo(json.dumps(opened_json(witness), indent=2))
    else:
        console.print(opened_lines(run.header, witness))
    right = Exit.LATE if witness.window.late else Exit.RIGHT
    raise typer.Exit(right if witness.window.right else Exit.WRONG)


def _explained(run: Run, stream: Path) -> Explained:
    stored = tuple(elements(stream))
    if run.header.semantics.clock is not Clock.APPLICATION:
        run, stored = by_arrival(run, stored)
    with telling(Terminal(stderr=True), "explain") as tell:
        tell("trying models")

        def show_progress(done: int, of: int) -> None:
            tell(f"{done:,} of at most {of:,} models tried", done / max(1, of))

        return explained(run, stored, show_progress)


def _verdict(run: Run, folder: Path) -> Verdict:
    """The stored verdict, else a new one."""
    try:
        return read_verdict(folder)
    except RunError:
        return judge_run(run, stream_path(folder), Means(lambda: spark(None)))
