"""Judging a run folder: which evaluator, under which clock, against which stream."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.formats.stream import SCHEMA, StreamError, elements, files
from streamgauge.formats.tables import conform
from streamgauge.model.algebra import Graph
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock, Origin, Report, Semantics, Tick
from streamgauge.model.verdict import Evaluator, Judgement, Verdict
from streamgauge.oracle.expected.reports import Expect, definition, refuse_spark
from streamgauge.oracle.judging.arrivals import arrival_times, by_arrival
from streamgauge.oracle.judging.cautions import cautions
from streamgauge.oracle.judging.deltas import by_changes, countable
from streamgauge.oracle.judging.gracious import gracious
from streamgauge.oracle.judging.oracle import JudgingRules, Progress, check, decide, unknown
from streamgauge.query import QueryError, fill, parse, parse_sparql
from streamgauge.query.dialects import load
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITION_LIMIT = 3_000_000
"""Triples that the definition may look at over all windows before Spark is asked instead."""

REPORT_COST = 100
"""The cost of a report by the definition even when its window is empty, in triples (measured: 100 us)."""


@dataclass(frozen=True, slots=True)
class Means:
    """The means of judging: ``evaluator`` ``None`` chooses by size; ``spark`` makes the session when needed.

    ``max_delay`` in ms; ``gracious`` asks for the borders that fit wrong answers best; ``exact_datatypes`` compares the
    datatypes of computed numbers too.
    """

    spark: "Callable[[], SparkSession]"
    evaluator: Evaluator | None = None
    max_delay: float | None = None
    progress: Progress = lambda _tried, _of: None
    gracious: bool = False
    exact_datatypes: bool = False


def judge_run(run: Run, stream: Path, means: Means) -> Verdict:
    """The verdict on a recorded run whose stream table is at ``stream``; unknown with the reason when none can be."""
    if reason := other_stream(stream, run.header.query):
        return unknown(run, reason)
    try:
        if run.header.semantics.clock is not Clock.APPLICATION:
            verdict = _under_both_clocks(run, stream, means)
        else:
            verdict = _judge(run, run.header.semantics, stream, means)
        return with_cautions(run, verdict, stream)
    except SyntaxError as error:  # pyoxigraph's, about a term in the wrong place
        raise StreamError(f"{stream}: a row is no triple: {error.msg}") from error


def with_cautions(run: Run, verdict: Verdict, stream: Path) -> Verdict:
    """The verdict with what makes the whole of it doubtful (``cautions.py``), unless it is unknown anyway."""
    if verdict.judgement is Judgement.UNKNOWN:
        return verdict
    return replace(verdict, cautions=cautions(run, verdict, stream))


def _judge(run: Run, semantics: Semantics, stream: Path, means: Means) -> Verdict:
    try:
        refuse(run.header.query, semantics)
        evaluator = means.evaluator or choose(
            stream, run.header.query, semantics, run.header.evaluator, run.header.advanced_to
        )
        rules = JudgingRules(evaluator, means.max_delay, exact_datatypes=means.exact_datatypes)
        verdict = _checked(run, evaluator, stream, means, rules)
    except (RefusedError, OutOfOrderError) as error:
        return unknown(run, str(error))
    return _graciously(run, stream, verdict, means) if means.gracious else verdict


def _checked(run: Run, evaluator: Evaluator, stream: Path, means: Means, rules: JudgingRules) -> Verdict:
    """The verdict from rows compared, or from counts where whole bags are sent at every change (``deltas.py``)."""
    if evaluator == "definition":
        _refuse_endless(run, stream)
    expect, first, _last = expectation(evaluator, stream, means)
    if evaluator != "spark" or not countable(run.header.query, run.header.semantics):
        return check(run, expect, first, rules, means.progress)
    from streamgauge.oracle.expected.on_spark import read_header, spark_changes, table_at

    session = means.spark()
    changes = spark_changes(session, stream, read_header(table_at(session, stream)))
    score = by_changes(run, changes, expect, rules)
    return decide(run, score, first, rules, means.progress)


def _graciously(run: Run, stream: Path, verdict: Verdict, means: Means) -> Verdict:
    """The verdict with fitting borders; RefusedError where the definition would have too much to look at."""
    if choose(stream, run.header.query, run.header.semantics, None) == "spark":
        raise RefusedError(
            f"gracious mode asks the definition, which looks at no more than {DEFINITION_LIMIT:,} triples over all "
            "windows: take a prefix of the run"
        )
    return gracious(run, tuple(elements(stream)), verdict, means.progress)


def with_query(run: Run, template: str, values: Mapping[str, object]) -> Run:
    """The run judged by another query: one with its own windows, or plain SPARQL over the windows of the run's query.

    QueryError says where the text is wrong or which parameter has no value. Plain SPARQL without GRAPH sees
    everything that the windows hold.
    """
    try:
        text = fill(template, values)
    except QueryError:
        raise
    except ValueError as error:
        raise QueryError(str(error), template, 1, 1) from error
    asked = run.header.query
    if any(dialect.recognises(text) for dialect in load().values()):
        query = replace(parse(text), static=asked.static)
    else:
        form = parse_sparql(text)
        windows = asked.windows
        if not any(isinstance(part, Graph) for part in every_pattern(form.pattern)):
            windows = tuple(replace(each, name=None) for each in windows)
        query = replace(asked, form=form, windows=windows, sparql=text)
    return replace(run, header=replace(run.header, query=query, query_text=text))


def choose(
    stream: Path, query: ContinuousQuery, semantics: Semantics, own: str | None, advanced_to: int | None = None
) -> Evaluator:
    """The definition where its work is bounded, Spark beyond that; never what the engine itself runs on.

    The definition reads all static data at every report.
    ``advanced_to`` (ms) is how far time came, the last element unless given.
    """
    times = _times(stream)
    instants = 0 if advanced_to is None else _instants(query, semantics, times, advanced_to)
    work: float = (REPORT_COST + len(query.static)) * instants
    work += sum(_work(times, each.window, semantics) for each in query.windows)
    if own == "definition" or (work > DEFINITION_LIMIT and own != "spark" and refuse_spark(query, semantics) is None):
        return "spark"
    return "definition"


def _instants(query: ContinuousQuery, semantics: Semantics, times: pa.ChunkedArray, advanced_to: int) -> int:
    """How many closes, periods or time units there are up to ``advanced_to`` (ms)."""
    first = semantics.t0
    if semantics.origin is Origin.FIRST and len(times):
        first = pc.min(times).as_py()
    steps: list[int] = []
    if Report.WINDOW_CLOSE in semantics.report:
        steps = [each.window.slide for each in query.windows if each.window.kind != "count"]
    elif semantics.period is not None or semantics.tick is Tick.TIME:
        steps = [semantics.period or semantics.time_unit]
    return sum(max(0, advanced_to - first) // step for step in steps)


def _refuse_endless(run: Run, stream: Path) -> None:
    """Refuse a run whose time goes on for so long that the definition would not end."""
    header = run.header
    instants = _instants(header.query, header.semantics, _times(stream), header.advanced_to)
    if instants * REPORT_COST > 10 * DEFINITION_LIMIT:
        raise RefusedError(
            f"up to advanced_to = {header.advanced_to} ms there are {instants:,} instants to report at, too many for "
            "the definition: is advanced_to right? Otherwise --evaluator spark"
        )


def _times(stream: Path) -> pa.ChunkedArray:
    return _column(stream, "time")


def _column(stream: Path, name: str) -> pa.ChunkedArray:
    """One column of a stream table; StreamError names the file that cannot be read so."""
    schema = pa.schema([SCHEMA.field(name)])
    chunks = []
    for file in files(stream):
        try:
            with pq.ParquetFile(file) as parquet:
                chunks += parquet.read(columns=[name]).to_batches()
        except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
            raise StreamError(f"{file}: not a readable stream table: was it cut, or is it of another kind?") from error
    return pa.Table.from_batches([conform(chunk, schema, str(stream)) for chunk in chunks], schema=schema)[name]


def _work(times: pa.ChunkedArray, window: Window, semantics: Semantics) -> float:
    """About how many triples the definition looks at over all reports of a window."""
    triples = len(times)
    if not triples:
        return 0.0
    span = max(1, pc.max(times).as_py() - pc.min(times).as_py())
    held: float = triples * min(1.0, window.size / span)
    reports: float = span / window.slide
    if window.kind == "count":
        held, reports = min(window.size, triples), triples / window.slide
    elif window.kind == "landmark":
        held = triples / 2
    if Report.CONTENT_CHANGE in semantics.report:
        reports = max(reports, triples if semantics.tick in {Tick.TUPLE, Tick.ELEMENT} else len(pc.unique(times)))
    return max(triples, held * reports)


def other_stream(stream: Path, query: ContinuousQuery) -> str | None:
    """Why the query sees nothing of what was recorded, or ``None``: none of its streams is in the stream table."""
    recorded = sorted(pc.unique(_column(stream, "stream")).to_pylist())
    wanted = sorted(query.streams)
    if not recorded or set(wanted) & set(recorded):
        return None
    return (
        f"the query reads {' and '.join(f'<{name}>' for name in wanted)}, but what was recorded is "
        f"{' and '.join(f'<{name}>' for name in recorded[:4])}: name the same stream in both (a file's is named by "
        f"IRI=FILE)"
    )


def expectation(evaluator: Evaluator, stream: Path, means: Means) -> tuple[Expect, int | None, int]:
    """The expected reports of a stream as a function, the first element's time, and the latest time (ms)."""
    if evaluator == "spark":
        from streamgauge.oracle.expected.on_spark import read_header, spark, table_at

        session = means.spark()
        header = read_header(table_at(session, stream))
        return spark(session, stream, header), header.first, header.last
    held = tuple(elements(stream))
    return definition(held), first_time(held), max((element.time for element in held), default=0)


def first_time(held: Sequence[StreamElement]) -> int | None:
    """The application time (ms) of the element with the smallest system time."""
    return min(held, key=lambda element: element.sequence).time if held else None


def _under_both_clocks(run: Run, stream: Path, means: Means) -> Verdict:
    """The verdict under arrival times as recorded, with the application clock's precision and recall beside it."""
    header, held = run.header, tuple(elements(stream))
    wall, arrived = by_arrival(run, held)
    try:
        evaluator = means.evaluator or choose(
            stream, header.query, header.semantics, header.evaluator, wall.header.advanced_to
        )
        if evaluator == "definition":
            _refuse_endless(wall, stream)
        by_arrival_time, by_time = _clocks(run, held, evaluator, stream, means)
        rules = JudgingRules(evaluator, means.max_delay, exact_datatypes=means.exact_datatypes)
        verdict = check(wall, by_arrival_time, first_time(arrived), rules, means.progress)
        other = check(run, by_time, first_time(held), rules, means.progress)
    except (RefusedError, OutOfOrderError) as error:
        return unknown(run, str(error))
    if means.gracious:
        verdict = gracious(wall, arrived, verdict, means.progress)
    return replace(verdict, other_clock=(str(Clock.APPLICATION), other.precision, other.recall))


def _clocks(
    run: Run, held: Sequence[StreamElement], evaluator: Evaluator, stream: Path, means: Means
) -> tuple[Expect, Expect]:
    """The expected reports by arrival and by application time."""
    if evaluator != "spark":
        return definition(by_arrival(run, held)[1]), definition(held)
    from streamgauge.oracle.expected.on_spark import arrived, read_header, spark, table_at

    session = means.spark()
    tables = (arrived(session, stream, arrival_times(run)), table_at(session, stream))
    by_arrival_time, by_time = (spark(session, table, read_header(table)) for table in tables)
    return by_arrival_time, by_time
