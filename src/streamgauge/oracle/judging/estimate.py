"""The estimated cost of judging a run by the definition and by Spark, from the stream's times and the query.

The definition evaluates the content of every report from scratch. Spark evaluates all reports in one job, which costs
seconds even for a few triples, and more if its session has to start. The coefficients are CPU seconds, fitted to
``python -m benchmarks.oracle --parts choice``.

Worked example: 30 s of 1,000 stations are 210,000 triples. Windows of 5 s that slide by 5 s contain 35,000 triples
each: 6 reports load and query 210,000 triples in all. With a slide of 1 s there are 30 reports over 1,050,000 triples;
under content change 30,000 reports query 525 million, of which only 210,000 are loaded, as they arrive.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.formats.manifest import Manifest, Range, files, manifest
from streamgauge.formats.stream import SCHEMA, StreamError
from streamgauge.formats.tables import conform, opened
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.semantics import Counting, Origin, Report, Scope, Semantics, Tick
from streamgauge.model.verdict import Evaluator
from streamgauge.oracle.expected.reports import refuse_spark
from streamgauge.query.stamps import reads_time
from streamgauge.semantics.jumps import clock_steps
from streamgauge.spark.contexts import running_context
from streamgauge.spark.requirements import spark_lack

EVALUATORS: Final[tuple[Evaluator, ...]] = ("definition", "spark")

READ_TRIPLE_S: Final = 3.0e-6
"""Reading a triple of the stream into this process."""
LOAD_TRIPLE_S: Final = 0.9e-6
"""Adding a triple of a content to a graph."""
QUERY_TRIPLE_S: Final = 1.1e-6
"""Evaluating the query over a triple of a content."""
REPORT_S: Final = 2.0e-4
"""A report of the definition, even over an empty content."""

SESSION_S: Final = 18.0
"""Starting a session of Spark, including its first job."""
JOB_S: Final = 5.0
"""The fixed cost of a job of Spark."""
SPARK_TRIPLE_S: Final = 3.0e-6
"""A triple of the stream in a job, for each window that contains it."""
SPARK_REPORT_S: Final = 1.0e-4
"""A report of a job of Spark."""


@dataclass(frozen=True, slots=True)
class Work:
    """The size of a judgement: ``triples`` of the stream, ``static`` triples, and ``reports`` that may be due.

    Over all reports, ``loaded`` is the number of triples added to graphs and ``held`` of those queried, without static
    data; ``rows`` is the number of pairs (window, triple) of a job of Spark.
    """

    triples: int = 0
    static: int = 0
    reports: float = 0.0
    loaded: float = 0.0
    held: float = 0.0
    rows: float = 0.0


def definition_seconds(work: Work) -> float:
    """The estimated CPU seconds of the definition."""
    static = work.static * work.reports
    load = LOAD_TRIPLE_S * (work.loaded + static)
    query = QUERY_TRIPLE_S * (work.held + static)
    return READ_TRIPLE_S * work.triples + load + query + REPORT_S * work.reports


def spark_seconds(work: Work, *, warm: bool) -> float:
    """The estimated CPU seconds of Spark; ``warm`` if its session is running already."""
    job = JOB_S + SPARK_TRIPLE_S * (work.rows + work.static) + SPARK_REPORT_S * work.reports
    return job + (0.0 if warm else SESSION_S)


@dataclass(frozen=True, slots=True)
class EvaluatorChoice:
    """An evaluator, with the reason for its choice as a sentence."""

    evaluator: Evaluator
    sentence: str


def choice(
    stream: Path,
    query: ContinuousQuery,
    semantics: Semantics,
    own: str | None,
    advanced_to: int | None = None,
    *,
    warm: bool | None = None,
) -> EvaluatorChoice:
    """The evaluator of the lower estimated cost, but never ``own``, on which the engine itself runs.

    ``advanced_to`` (ms) is the horizon, by default the last element's time; ``warm`` is whether a session of Spark is
    running, by default detected. The definition judges queries that Spark refuses, and all if Spark cannot start.
    """
    work = work_of(stream, query, semantics, advanced_to)
    running = running_context() is not None if warm is None else warm
    costs = {"definition": definition_seconds(work), "spark": spark_seconds(work, warm=running)}
    message = (
        f"the definition would take about {_seconds(costs['definition'])} of CPU for {work.reports:,.0f} reports over "
        f"{work.held:,.0f} triples, Spark about {_seconds(costs['spark'])}{'' if running else ' with its start'}"
    )
    if own in costs:
        other: Evaluator = "spark" if own == "definition" else "definition"
        return EvaluatorChoice(other, f"{other}, because the engine runs on {own}: {message}")
    if costs["definition"] <= costs["spark"]:
        return EvaluatorChoice("definition", f"definition: {message}")
    # Last, because it imports PySpark.
    if reason := without_spark(query, semantics):
        return EvaluatorChoice("definition", f"definition, because {reason}: {message}")
    return EvaluatorChoice("spark", f"spark: {message}")


def without_spark(query: ContinuousQuery, semantics: Semantics) -> str:
    """Why Spark cannot judge a query here, as a clause; empty if it can. Imports PySpark."""
    if lack := spark_lack():
        return lack
    refused = refuse_spark(query, semantics)
    return f"Spark does not judge {refused}" if refused else ""


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def work_of(stream: Path, query: ContinuousQuery, semantics: Semantics, advanced_to: int | None = None) -> Work:
    """The size of a judgement up to ``advanced_to`` (ms, by default the last element).

    StreamError for no stream table.
    """
    listed = manifest(stream)
    # A mistyped horizon makes many reports out of few elements, so the clock counts as well as the data.
    clocked = 0 if advanced_to is None else instants(query, semantics, listed.time, advanced_to)
    works = [_window_work(stream, listed, one.window, semantics) for one in query.windows]
    reports = max(clocked, max((one.reports for one in works), default=0.0))
    return Work(
        listed.rows,
        len(query.static),
        reports,
        # A query that reads timestamp() needs the arrivals of every content anew: its graphs do not grow.
        sum(one.loaded for one in works) if not reads_time(query.form) else sum(one.held for one in works),
        sum(one.held for one in works),
        sum(one.rows for one in works),
    )


def instants(query: ContinuousQuery, semantics: Semantics, times: Range | None, advanced_to: int) -> int:
    """The number of closes, periods or time units from the start up to ``advanced_to`` (ms)."""
    first = semantics.t0
    if semantics.origin is Origin.FIRST and times is not None:
        first = times.least
    return sum(max(0, advanced_to - first) // step for step in clock_steps(query.windows, semantics))


def _window_work(stream: Path, listed: Manifest, window: Window, semantics: Semantics) -> Work:
    """The part of one window, apart from the sizes of the stream and of the static data."""
    triples = listed.rows
    if listed.time is None:
        return Work()
    span = max(1, listed.time.greatest - listed.time.least)
    # An even rate is assumed: the manifest has only the bounds of the times.
    content: float = triples * min(1.0, window.size / span)
    reports: float = span / window.slide
    if window.kind == "count":
        content, reports = min(window.size, triples), triples / window.slide
    elif window.kind == "landmark":
        # It grows from nothing to all triples.
        content = triples / 2
    changes = Report.CONTENT_CHANGE in semantics.report
    rows = max(triples, content * reports)
    if not changes:
        return Work(reports=reports, loaded=rows, held=rows, rows=rows)
    # Under content change each tick may report: each element, or each distinct time.
    reports = max(
        reports, triples if semantics.tick in {Tick.TUPLE, Tick.ELEMENT} else len(pc.unique(column(stream, "time")))
    )
    contents = max(triples, content * reports)
    # A set whose window only moves at slides gains triples between two of them, and the definition adds them to the
    # graph of the report before (semantics.evaluate.Loaded).
    grows = semantics.content is Counting.SET and semantics.scope is not Scope.RANGE and window.kind != "count"
    return Work(reports=reports, loaded=min(contents, rows) if grows else contents, held=contents, rows=rows)


def column(stream: Path, name: str) -> pa.ChunkedArray:
    """One column of a stream table that has rows; StreamError names a file without it."""
    schema = pa.schema([SCHEMA.field(name)])
    chunks = []
    for file in files(stream):
        try:
            with opened(file) as parquet:
                chunks += parquet.read(columns=[name]).to_batches()
        except KeyError as error:
            raise StreamError(f"{file}: not a readable stream table: was it cut, or is it of another kind?") from error
    return pa.Table.from_batches([conform(chunk, schema, str(stream)) for chunk in chunks])[name]
