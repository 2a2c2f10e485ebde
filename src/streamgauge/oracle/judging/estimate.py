"""The estimated cost of judging a run by the definition and by Spark, from the stream's times and the query.

The definition asks the content of every report from scratch. Spark answers all reports in one job, which costs seconds
even for a few triples, and its session some more. The coefficients are CPU seconds, fitted to what
``python -m benchmarks.oracle --parts choice`` measures.

Worked example: 30 s of 1,000 stations are 210,000 triples. Windows of 5 s that slide by 5 s hold 35,000 triples each
at 6 reports: 210,000 triples are put into graphs and asked. With a slide of 1 s there are 30 reports and 1,050,000
triples; under content change 30,000 reports ask 525 million, of which 210,000 are put into graphs as they come.
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

READ: Final = 3.0e-6
"""Reading a triple of the stream into this process."""
LOADED: Final = 0.9e-6
"""Putting a triple of a content into a graph."""
QUERY_TRIPLE_S: Final = 1.1e-6
"""Asking the query over a triple of a content."""
REPORT: Final = 2.0e-4
"""A report of the definition, even of an empty content."""

SESSION: Final = 18.0
"""Starting a session, its first job included."""
JOB: Final = 5.0
"""A job of Spark, whatever it does."""
ROW: Final = 3.0e-6
"""A triple of the stream in a job, for each window that holds it."""
SPARK_REPORT: Final = 1.0e-4
"""A report of Spark."""


@dataclass(frozen=True, slots=True)
class Work:
    """The size of what is judged: ``triples`` of the stream and ``static`` ones, and ``reports`` that may be due.

    ``loaded`` triples are put into graphs over all reports and ``held`` ones asked, both without static ones. ``rows``
    is how often triples stand in windows.
    """

    triples: int
    static: int
    reports: float
    loaded: float
    held: float
    rows: float


def definition_seconds(work: Work) -> float:
    """CPU seconds that the definition takes."""
    kept = LOADED * (work.loaded + work.static * work.reports)
    return (
        READ * work.triples + kept + QUERY_TRIPLE_S * (work.held + work.static * work.reports) + REPORT * work.reports
    )


def spark_seconds(work: Work, *, warm: bool) -> float:
    """CPU seconds that Spark takes; ``warm`` where its session is there already."""
    job = JOB + ROW * (work.rows + work.static) + SPARK_REPORT * work.reports
    return job + (0.0 if warm else SESSION)


@dataclass(frozen=True, slots=True)
class EvaluatorChoice:
    """An evaluator with the sentence that says why it was chosen."""

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
    """The evaluator that is estimated to cost less, but never ``own``, on which the engine itself runs.

    ``advanced_to`` (ms) is how far time came, the last element unless given; ``warm`` says whether a session of Spark
    is there, and is found out unless given. Queries that Spark refuses go to the definition, and all where Spark
    cannot start.
    """
    work = work_of(stream, query, semantics, advanced_to)
    there = running_context() is not None if warm is None else warm
    costs = {"definition": definition_seconds(work), "spark": spark_seconds(work, warm=there)}
    message = (
        f"the definition would take about {_seconds(costs['definition'])} of CPU for {work.reports:,.0f} reports over "
        f"{work.held:,.0f} triples, Spark about {_seconds(costs['spark'])}{'' if there else ' with its start'}"
    )
    if own in costs:
        other: Evaluator = "spark" if own == "definition" else "definition"
        return EvaluatorChoice(other, f"{other}, because the engine runs on {own}: {message}")
    if costs["definition"] <= costs["spark"]:
        return EvaluatorChoice("definition", f"definition: {message}")
    if reason := without_spark(query, semantics):
        return EvaluatorChoice("definition", f"definition, because {reason}: {message}")
    return EvaluatorChoice("spark", f"spark: {message}")


def without_spark(query: ContinuousQuery, semantics: Semantics) -> str:
    """Why Spark cannot judge a query here, as a clause; empty where it can. PySpark is imported to find out."""
    if lack := spark_lack():
        return lack
    refused = refuse_spark(query, semantics)
    return f"Spark does not judge {refused}" if refused else ""


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def work_of(stream: Path, query: ContinuousQuery, semantics: Semantics, advanced_to: int | None = None) -> Work:
    """The size of what is judged up to a time (ms), the last element unless given; StreamError for no stream table."""
    listed = manifest(stream)
    clocked = 0 if advanced_to is None else instants(query, semantics, listed.time, advanced_to)
    works = [_window_work(stream, listed, one.window, semantics) for one in query.windows]
    reports = max(clocked, max((one.reports for one in works), default=0.0))
    return Work(
        listed.rows,
        len(query.static),
        reports,
        sum(one.loaded for one in works) if not reads_time(query.form) else sum(one.held for one in works),
        sum(one.held for one in works),
        sum(one.rows for one in works),
    )


def instants(query: ContinuousQuery, semantics: Semantics, times: Range | None, advanced_to: int) -> int:
    """How many closes, periods or time units there are up to ``advanced_to`` (ms)."""
    first = semantics.t0
    if semantics.origin is Origin.FIRST and times is not None:
        first = times.least
    return sum(max(0, advanced_to - first) // step for step in clock_steps(query.windows, semantics))


@dataclass(frozen=True, slots=True)
class WindowWork:
    """The part of a window: its reports, triples over all of them, those put into graphs, and those in windows."""

    reports: float = 0.0
    held: float = 0.0
    loaded: float = 0.0
    rows: float = 0.0


def _window_work(stream: Path, listed: Manifest, window: Window, semantics: Semantics) -> WindowWork:
    triples = listed.rows
    if listed.time is None:
        return WindowWork()
    span = max(1, listed.time.greatest - listed.time.least)
    content: float = triples * min(1.0, window.size / span)
    reports: float = span / window.slide
    if window.kind == "count":
        content, reports = min(window.size, triples), triples / window.slide
    elif window.kind == "landmark":
        content = triples / 2
    changes = Report.CONTENT_CHANGE in semantics.report
    rows = max(triples, content * reports)
    if not changes:
        return WindowWork(reports, rows, rows, rows)
    reports = max(
        reports, triples if semantics.tick in {Tick.TUPLE, Tick.ELEMENT} else len(pc.unique(column(stream, "time")))
    )
    contents = max(triples, content * reports)
    grows = semantics.content is Counting.SET and semantics.scope is not Scope.RANGE and window.kind != "count"
    return WindowWork(reports, contents, min(contents, rows) if grows else contents, rows)


def column(stream: Path, name: str) -> pa.ChunkedArray:
    """One column of a stream table; StreamError names the file that cannot be read so."""
    schema = pa.schema([SCHEMA.field(name)])
    chunks = []
    for file in files(stream):
        try:
            with opened(file) as parquet:
                chunks += parquet.read(columns=[name]).to_batches()
        except KeyError as error:
            raise StreamError(f"{file}: not a readable stream table: was it cut, or is it of another kind?") from error
    return pa.Table.from_batches([conform(chunk, schema, str(stream)) for chunk in chunks], schema=schema)[name]
