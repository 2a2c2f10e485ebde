"""Judging a run folder: with which evaluator, under which clock, against which stream."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from streamgauge.formats.manifest import manifest
from streamgauge.formats.places import Place, RemotePlace, RemotePlaceError
from streamgauge.formats.stream import elements, stream_names
from streamgauge.model.algebra import Graph
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Clock, Report, Semantics
from streamgauge.model.verdict import Evaluator, Judgement, Verdict
from streamgauge.oracle.expected.reports import Expect, definition
from streamgauge.oracle.judging.cautions import cautions
from streamgauge.oracle.judging.deltas import by_changes, countable
from streamgauge.oracle.judging.estimate import EVALUATORS, choice, instants, work_of
from streamgauge.oracle.judging.gracious import gracious, ungracious
from streamgauge.oracle.judging.metrics import arrival_times, by_arrival
from streamgauge.oracle.judging.nothing_due import over_nothing
from streamgauge.oracle.judging.oracle import JudgingRules, Progress, RowScores, Score, check, unknown
from streamgauge.query import QueryError, fill, parse, parse_sparql
from streamgauge.query.dialects import load
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.beginning import after, all_closed, awaited, begun
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.sources.named import Course
from streamgauge.spark.requirements import spark_lack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MAX_SEARCHED_TRIPLES = 3_000_000
"""Maximum triples over all windows of a run judged by counts for which gracious mode computes the rows as well."""

IN_PROCESS = 1_000_000
"""Triples of a stream up to which the definition judges in this process even if a cluster is named.

A million cost 10 CPU s and 480 MiB here, 18 CPU s and no memory here in tasks (``benchmarks.scale``): memory decides.
"""

MAX_INSTANTS = 300_000
"""Instants up to which the definition judges; more are usually a mistyped ``advanced_to``."""


@dataclass(frozen=True, slots=True)
class Means:
    """How to judge. ``evaluator`` ``None`` chooses by cost.

    ``spark`` returns the session if needed; modules of PySpark are imported after it, as it says what to install.
    ``max_delay`` in ms; ``gracious`` searches the borders that fit wrong answers best; ``exact_datatypes`` compares the
    datatypes of computed numbers too. ``chosen`` receives the sentence on which evaluator was chosen, and why.
    ``in_tasks``: above this number of triples the definition too runs in tasks of Spark, if the run allows it.
    """

    spark: "Callable[[], SparkSession]"
    evaluator: Evaluator | None = None
    max_delay: float | None = None
    progress: Progress = lambda _tried, _of: None
    gracious: bool = False
    exact_datatypes: bool = False
    chosen: Callable[[str], None] = lambda _sentence: None
    in_tasks: int | None = None

    def choose(
        self, stream: Path, query: ContinuousQuery, semantics: Semantics, own: str | None, until: int | None = None
    ) -> Evaluator:
        """The declared evaluator, else the one of ``estimate.choice`` up to the horizon ``until`` (ms)."""
        if self.evaluator is not None:
            return self.evaluator
        decision = choice(stream, query, semantics, own, until)
        self.chosen(decision.sentence)
        return decision.evaluator


def judge_run(run: Run, stream: Path, means: Means) -> Verdict:
    """The verdict on a recorded run with its stream table; unknown, with the reason, if it cannot be judged."""
    if reason := other_stream(stream, run.header.query):
        return unknown(run, reason)
    try:
        verdict = _judge(run, stream, means)
    except (RefusedError, OutOfOrderError) as error:
        return unknown(run, str(error))
    return with_cautions(run, verdict, stream)


def judge_stored(heads: Run | None, whole: Callable[[], Run], stream: Place, means: Means) -> Verdict:
    """The verdict on a run on disk: in its tables on Spark, else from ``whole()``, the run with its rows.

    ``heads`` is the run without rows (``formats.run.read_heads``). A stream on another file system is only judged in
    tables.
    """
    if isinstance(stream, RemotePlace):
        return _judge_remote(heads, stream, means)
    if heads is not None and not other_stream(stream, heads.header.query):
        # Nothing is lost by suppressing: judge_run meets the same refusal, and turns it into an unknown verdict.
        with suppress(RefusedError):
            header = heads.header
            refuse(header.query, header.semantics)
            evaluator = means.choose(stream, header.query, header.semantics, header.evaluator, header.advanced_to)
            far = means.in_tasks is not None and manifest(stream).rows > means.in_tasks
            any_evaluator = far and means.evaluator is None and not _is_by_changes(header, evaluator)
            evaluators = (evaluator, *(EVALUATORS if any_evaluator else ()))
            means = replace(means, evaluator=evaluator)
            # In tables nothing of a run's rows reaches this process; that pays where Spark is needed anyway, or the
            # run is large.
            if (evaluator == "spark" or far) and _may_be_in_tables(header, evaluators):
                session = means.spark()  # first, as it says what is missing where there is no PySpark
                from streamgauge.oracle.judging.tables import NotInTablesError

                with suppress(NotInTablesError):
                    return with_cautions(heads, _judge_tables(session, heads, stream, means, evaluators), stream)
    return judge_run(whole(), stream, means)


def _is_by_changes(header: RunHeader, evaluator: Evaluator) -> bool:
    """Whether a run is judged by the changes from arrival to arrival: the definition evaluates each content anew."""
    query, semantics = header.query, header.semantics
    return evaluator == "spark" and countable(query, semantics) and Report.PERIODIC not in semantics.report


def _may_be_in_tables(header: RunHeader, evaluators: Sequence[Evaluator]) -> bool:
    """Whether some evaluator may judge a run with this header in its tables, for which a session is worth starting."""
    if spark_lack():
        return True  # the session's maker says what is missing
    from streamgauge.oracle.judging.tables import refusal

    return any(one != header.evaluator and refusal(header, one) is None for one in evaluators)


def _judge_tables(
    session: "SparkSession", heads: Run, stream: Place, means: Means, evaluators: Sequence[Evaluator]
) -> Verdict:
    """The verdict of the first of these evaluators that judges a run in its tables; NotInTablesError for none."""
    from streamgauge.oracle.judging.tables import NotInTablesError, judge_tables

    refused = NotInTablesError(f"answers of {heads.header.evaluator} by itself")
    for evaluator in dict.fromkeys(evaluators):
        # An engine's answers are never judged by the evaluator that gave them.
        if evaluator != heads.header.evaluator:
            rules = JudgingRules(evaluator, means.max_delay, exact_datatypes=means.exact_datatypes)
            try:
                progress = _halved(means, second=False)  # Spark tells how far it is in the second half
                return judge_tables(session, heads, stream, rules, progress, gracious=means.gracious)
            except NotInTablesError as error:
                refused = error
    raise refused


def _judge_remote(heads: Run | None, stream: RemotePlace, means: Means) -> Verdict:
    """The verdict on a run whose stream only Spark can read.

    RemotePlaceError if judging needs its rows in this process.
    """
    advice = "copy the stream here, and name it in run.json"
    if heads is None:
        reason = "a run whose rows cannot be told by their answers"
        raise RemotePlaceError(f"{stream}: {reason} is judged on this machine: {advice}")
    header = heads.header
    refuse(header.query, header.semantics)
    session = means.spark()
    from streamgauge.oracle.judging.tables import NotInTablesError
    from streamgauge.spark.hadoop_tables import manifest as remote_manifest

    if other := unread(remote_manifest(session, stream).streams or (), header.query):
        return unknown(heads, other)
    evaluators: Sequence[Evaluator] = (means.evaluator,) if means.evaluator else ("spark", "definition")
    try:
        return over_nothing(heads, _judge_tables(session, heads, stream, means, evaluators))
    except NotInTablesError as error:
        raise RemotePlaceError(f"{stream}: {error} are judged on this machine: {advice}") from error


def with_cautions(run: Run, verdict: Verdict, stream: Path) -> Verdict:
    """The verdict with its cautions; one over no report becomes unknown. An unknown verdict is unchanged."""
    if verdict.judgement is Judgement.UNKNOWN:
        return verdict
    return over_nothing(run, replace(verdict, cautions=(*verdict.cautions, *cautions(run, verdict, stream))))


def _judge(run: Run, stream: Path, means: Means) -> Verdict:
    """The verdict under the clock of the semantics.

    Under arrival times it has precision and recall under application time as ``other_clock``. Raises RefusedError or
    OutOfOrderError for a run that cannot be judged.
    """
    header = run.header
    query, semantics, stored = header.query, header.semantics, cache(lambda: tuple(elements(stream)))
    refuse(query, semantics)
    by_wall = semantics.clock is not Clock.APPLICATION
    timed = by_arrival(run, ())[0] if by_wall else run
    evaluator = means.choose(stream, query, semantics, header.evaluator, timed.header.advanced_to)
    if evaluator == "definition":
        _refuse_endless(timed, stream)
    rules = JudgingRules(evaluator, means.max_delay, exact_datatypes=means.exact_datatypes)
    expect, first, _last = expectation(evaluator, stream, means, stored, run if by_wall else None)
    rows = RowScores(timed, expect, rules)
    counted = evaluator == "spark" and countable(query, semantics) and not by_wall
    score = _by_changes(run, stream, means, rows, rules) if counted else rows
    verdict = check(timed, expect, first, rules, _halved(means, second=False), score)
    if means.gracious and counted and work_of(stream, query, semantics).held > MAX_SEARCHED_TRIPLES:
        large = f"the windows of all reports hold more than {MAX_SEARCHED_TRIPLES:,} triples"
        verdict = ungracious(verdict, f"{large}, and gracious mode compares the rows of each: take a prefix of the run")
    elif means.gracious:
        verdict = _graciously(timed, by_arrival(run, stored())[1] if by_wall else stored(), verdict, rows, means)
    if not by_wall:
        return verdict
    expect, first, _last = expectation(evaluator, stream, means, stored)
    other = check(run, expect, first, rules)
    return replace(verdict, other_clock=(str(Clock.APPLICATION), other.precision, other.recall))


def _by_changes(run: Run, stream: Path, means: Means, rows: RowScores, rules: JudgingRules) -> Score:
    """Scores by counts, for whole bags that are sent at every change (``deltas.py``)."""
    session = means.spark()
    from streamgauge.oracle.expected.on_spark import read_header, spark_changes
    from streamgauge.spark.hadoop_tables import read_table

    return by_changes(run, spark_changes(session, stream, read_header(read_table(session, stream))), rows, rules)


def _graciously(
    run: Run, elements: Sequence[StreamElement], verdict: Verdict, rows: RowScores, means: Means
) -> Verdict:
    """The verdict with fitting borders, or with a caution that says why none were searched."""
    try:
        progress, exact = _halved(means, second=True), means.exact_datatypes
        return gracious(run, elements, verdict, progress, rows.units, exact_datatypes=exact)
    except RefusedError as error:
        return ungracious(verdict, str(error))


def _halved(means: Means, *, second: bool) -> Progress:
    """The progress of one half of the work, where gracious mode is the second; of all of it without gracious mode."""
    if not means.gracious:
        return means.progress
    # Of 10 steps in the second half the 3rd is the 13th of 20.
    return lambda done, of: means.progress(done + of if second else done, 2 * of)


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
        raise QueryError(str(error), template, 0) from error
    recorded = run.header.query
    if any(dialect.recognises(text) for dialect in load().values()):
        query = replace(parse(text), static=recorded.static)
    else:
        form = parse_sparql(text)
        windows = recorded.windows
        # Plain SPARQL reads the default graph. Windows without names are that graph; named ones would be seen by GRAPH
        # only.
        if not any(isinstance(part, Graph) for part in every_pattern(form.pattern)):
            windows = tuple(replace(window, name=None) for window in windows)
        query = replace(recorded, form=form, windows=windows, sparql=text)
    return replace(run, header=replace(run.header, query=query, query_text=text))


def _refuse_endless(run: Run, stream: Path) -> None:
    """Raise RefusedError for a run with more instants than the definition can evaluate in reasonable time."""
    header = run.header
    number = instants(header.query, header.semantics, manifest(stream).time, header.advanced_to)
    if number > MAX_INSTANTS:
        raise RefusedError(
            f"up to advanced_to = {header.advanced_to} ms there are {number:,} instants to report at, too many for "
            "the definition: is advanced_to right? Otherwise --evaluator spark"
        )


def other_stream(stream: Path, query: ContinuousQuery) -> str | None:
    """The sentence for a query of whose streams the stream table has none, else ``None``."""
    return unread(sorted(stream_names(stream)), query)


def unread(recorded: Sequence[str], query: ContinuousQuery) -> str | None:
    """The sentence for a query that reads none of the recorded streams, else ``None``."""
    wanted = sorted(query.streams)
    if not recorded or set(wanted) & set(recorded):
        return None
    return (
        f"the query reads {' and '.join(f'<{name}>' for name in wanted)}, but what was recorded is "
        f"{' and '.join(f'<{name}>' for name in recorded[:4])}: name the same stream in both (a file's is named by "
        f"IRI=FILE)"
    )


def expectation(
    evaluator: Evaluator,
    stream: Path,
    means: Means,
    stored: Callable[[], tuple[StreamElement, ...]],
    arrival_of: Run | None = None,
) -> tuple[Expect, int | None, int]:
    """The function that gives a stream's expected reports, the first element's time, and the latest time (ms).

    ``stored`` gives the elements of the stream table. Times are those of arrival where ``arrival_of`` is the run whose
    hand-overs say them.
    """
    if evaluator == "spark":
        session = means.spark()
        from streamgauge.oracle.expected.on_spark import SparkReports, arrived, read_header
        from streamgauge.spark.hadoop_tables import read_table

        table = arrived(session, stream, arrival_times(arrival_of)) if arrival_of else read_table(session, stream)
        header = read_header(table)
        return SparkReports(session, table, header), header.first, header.last
    fed = by_arrival(arrival_of, stored())[1] if arrival_of else stored()
    return definition(fed), first_time(fed), max((element.time for element in fed), default=0)


def first_time(elements: Sequence[StreamElement]) -> int | None:
    """The application time (ms) of the element with the smallest system time."""
    return min(elements, key=lambda element: element.sequence).time if elements else None


def expected_reports(
    query: ContinuousQuery,
    semantics: Semantics,
    stream: Path,
    means: Means,
    *,
    windows: int | None = None,
    advance_to: int | Literal["windows"] | None = None,
    t0: int | None = None,
    course: Course | None = None,
    name: Callable[[int, str], None] = lambda _horizon, _awaited: None,
) -> tuple[ExpectedReport, ...]:
    """The reports that are due on a stream table, up to the horizon.

    The horizon (ms) is the close of the ``windows``-th window, or ``advance_to``, where ``"windows"`` is the last close
    of a window with content, or by default the latest time of the stream or of the ``course`` that it was read with.
    Without ``t0`` (ms) reports begin with the stream (``begun``). ``name`` receives the horizon and a description of
    the first window that closes after it.
    """
    refuse(query, semantics)
    if reason := other_stream(stream, query):
        raise RefusedError(reason)
    evaluator = means.choose(stream, query, semantics, None)
    expect, first, last = expectation(evaluator, stream, means, lambda: tuple(elements(stream)))
    if course is not None and course.first is not None and course.last is not None:
        # Reading may have left out elements of other streams, or moved late ones: the course says what came.
        first, last = course.first, course.last
    until = last if advance_to is None else all_closed(query.windows, last) if advance_to == "windows" else advance_to
    if t0 is None:
        semantics = begun(query.windows, semantics, after(until, semantics) if first is None else first)
    origin = t0 if t0 is not None else origins(semantics, query.windows, first)[0]
    if windows is not None:
        until = origin + _closes(query, semantics, windows)
    name(until, awaited(query.windows, semantics, origin, until))
    return expect(query, semantics, until, origin)


def _closes(query: ContinuousQuery, semantics: Semantics, windows: int) -> int:
    """The time after t0 (ms) at which this number of windows has closed."""
    kinds = {window.window.kind for window in query.windows}
    if len(query.windows) > 1 or "count" in kinds:
        raise RefusedError("the number of windows says when time ends for one window in ms: say how far time comes")
    # The first report: of a window cut at t0 after one slide, or of a full window after its size. The others follow
    # slide by slide.
    head = query.window.slide if semantics.partial_head else query.window.size
    return head + (windows - 1) * query.window.slide
