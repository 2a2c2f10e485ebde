"""The public API beside ``watch``: expected answers, recorded runs, verdicts (docs/python.md)."""

from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from streamgauge.formats.run import read_run, stream_path
from streamgauge.formats.stream import elements, write
from streamgauge.model.answer import Answer, AnswerTable
from streamgauge.model.element import StreamElement
from streamgauge.model.extras import require
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Semantics
from streamgauge.model.tabular import html_table
from streamgauge.model.verdict import Evaluator, Verdict
from streamgauge.oracle.judging.judge import Means, expected_reports, judge_run, with_cautions, with_query
from streamgauge.papers.rules import RuleSettings, judge_as
from streamgauge.query import parse
from streamgauge.semantics.beginning import begun_run
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sources.contract import parse_address
from streamgauge.sources.decoders import OwnDataOptions
from streamgauge.sources.named import Course, by_time, is_live
from streamgauge.suites.experiments.plan import refuse_window, stream_facts
from streamgauge.watching import read_as
from streamgauge.watching.inputs import (
    Query,
    Static,
    Stream,
    StreamFeed,
    Terms,
    WatchError,
    first_window,
    given_pairs,
    open_feeds,
    understand,
)
from streamgauge.workloads.parameters import duration, instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_LIMIT_MB = 8192
"""Windows whose content is estimated to need more are refused by ``expect``."""


class Expectations(tuple[ExpectedReport, ...]):
    """The reports that are due, in their order; ``horizon`` is the time (ms) up to which reports are due."""

    horizon: int

    def table(self) -> AnswerTable:
        """The rows of all reports as one table."""
        return AnswerTable(
            Answer(one.variables, one.rows, instant=one.due.instant, scope=(one.due.start, one.due.end)) for one in self
        )

    def _repr_html_(self) -> str:
        """The reports with their sizes, for notebooks."""
        head = ("report", "instant (ms)", "scope (ms)", "expected rows", "triples in the window")
        sizes = ((one.due, len(one.rows), one.content) for one in self)
        rows = [
            (str(at), f"{due.instant:,}", f"{due.start:,} - {due.end:,}", f"{size:,}", f"{content:,}")
            for at, (due, size, content) in enumerate(sizes, 1)
        ]
        return html_table(head, rows)


class ExpectOptions(OwnDataOptions, total=False):
    """The options of ``expect``."""

    semantics: Semantics | str | None
    """A Semantics value or a profile's name; the profile of the query's dialect unless given."""
    static: Static
    """Background data: an RDF file or triples."""
    lateness: int | str | None
    """How late elements may come: ms, or text as ``2s``."""
    t0: int | str | None
    """Where the first window starts: ms, text as ``30s``, or a date; near the first element unless given."""
    windows: int | None
    """How many windows close; says how far time comes."""
    advance_to: int | str | None
    """How far time comes: ms, text as ``30s``, or ``windows``: until all that hold something have closed.

    The last element unless given.
    """
    evaluator: Evaluator | None
    """``definition`` or ``spark``; by size unless given."""


def expect(query: Query, *streams: Stream, **options: Unpack[ExpectOptions]) -> Expectations:
    """The answers that should be given on streams that end, report by report, without an engine.

    Queries and streams are those of ``watch``. Options (``ExpectOptions``): ``semantics`` (a profile's name or a
    value; the dialect's unless given), ``static`` (a file or triples), ``lateness``, ``t0`` (ms), ``windows``,
    ``advance_to`` (ms, text as 30s, or windows), ``evaluator`` (definition or spark), ``reading``, and for one's own
    data ``time_property``, ``time_in``, ``time_zone``, ``fold``, ``parts``, ``csv_mapping``, ``json_mapping``,
    ``base``, ``context``, ``charset``. MistakeError says in a sentence what cannot be.
    """
    refuse_unknown("expect", options, ExpectOptions)
    arguments: dict[str, Any] = {**options}
    own = {field.name for field in fields(Terms)} - {"t0"}
    (understood,) = understand(query, Terms(**{name: value for name, value in arguments.items() if name in own}))
    reading = read_as(arguments, (understood,), understood.semantics.lateness)
    refuse_live(streams)
    feeds = open_feeds(streams, understood.query.streams, replace(reading, checked=True))
    horizons: list[int] = []
    with TemporaryDirectory() as scratch:
        # As a table on the disk: both evaluators read the stream from there, and a long one is not held in memory.
        table, course = Path(scratch), Course()
        write(elements_of(feeds, course), table / "part-0.parquet")
        facts = stream_facts(table)
        refuse_window(understood.query, facts.triples, facts.span, MEMORY_LIMIT_MB)
        until = arguments.get("advance_to")
        expectations = Expectations(
            expected_reports(
                understood.query,
                understood.semantics,
                table,
                Means(spark_session, arguments.get("evaluator")),
                windows=arguments.get("windows"),
                advance_to=until if until is None or until == "windows" else instant(until),
                t0=first_window(arguments.get("t0")),
                course=course,
                name=lambda time, _awaited: horizons.append(time),
            )
        )
    expectations.horizon = horizons[0]
    return expectations


def load_run(folder: str | Path) -> Run:
    """The run in a folder, whoever wrote it (docs/run-folder.md); RunError names the file and the field or column."""
    return read_run(folder, parse)


class CheckOptions(TypedDict, total=False):
    """The options of ``check``."""

    semantics: Semantics | str | None
    """Judge under another semantics than the run's own."""
    query: str | Path | None
    """Judge by this query, a text or a file, in place of the run's own."""
    rules: Literal["csrbench", "yabench"] | None
    """Judge as one of these did."""
    gracious: bool
    """Find the borders that fit wrong answers best."""
    evaluator: Evaluator | None
    """``definition`` or ``spark``; by size unless given."""
    max_delay: int | str | None
    """An answer later than this makes its window late: ms, or text as ``500ms``."""
    exact_datatypes: bool
    """Compare the datatypes of computed numbers too."""
    stream: str | Path | None
    """The stream table, of a run that was not read from a folder."""


def check(run: Run | str | Path, **options: Unpack[CheckOptions]) -> Verdict:
    """The verdict on a recorded run, or on the run in a folder; nothing is written.

    Options (``CheckOptions``): ``semantics`` and ``query`` (text or file) in place of the run's own, ``rules``
    (csrbench, yabench), ``gracious``, ``evaluator`` (definition or spark), ``max_delay`` (ms or text as 500ms),
    ``exact_datatypes``, ``stream`` (the stream table of a run that was not read from a folder). MistakeError says
    in a sentence what cannot be judged so.
    """
    refuse_unknown("check", options, CheckOptions)
    recorded = run if isinstance(run, Run) else load_run(run)
    stream = _stream_of(recorded, options.get("stream"))
    if (query := options.get("query")) is not None:
        # A path hardly has a brace, and every query has one.
        is_text = isinstance(query, str) and "{" in query
        recorded = with_query(recorded, str(query) if is_text else Path(query).read_text(encoding="utf-8"), {})
    if (semantics := options.get("semantics")) is not None:
        named = profile(semantics) if isinstance(semantics, str) else semantics
        recorded = replace(recorded, header=replace(recorded.header, semantics=named))
        recorded = begun_run(recorded, stream_facts(stream).begins)
    gracious = options.get("gracious", False)
    if (rules := options.get("rules")) is not None:
        settings = RuleSettings(gracious=gracious)
        return with_cautions(recorded, judge_as(rules, recorded, tuple(elements(stream)), settings), stream)
    delay = options.get("max_delay")
    late = None if delay is None else duration(delay)
    exact = options.get("exact_datatypes", False)
    means = Means(spark_session, options.get("evaluator"), late, gracious=gracious, exact_datatypes=exact)
    return judge_run(recorded, stream, means)


def _stream_of(run: Run, stream: str | Path | None) -> Path:
    if stream is not None:
        return Path(stream)
    if run.folder is None:
        raise RefusedError("this run was not read from a folder: name its stream table, check(run, stream=FOLDER)")
    return stream_path(run.folder)


def refuse_live(streams: Sequence[Stream]) -> None:
    """Refuse, before any is opened, a source without a known end; WatchError."""
    for _, source in given_pairs(streams):
        named = str(source) if isinstance(source, str | Path) else ""
        if isinstance(source, AsyncIterable) or (named and named != "-" and is_live(parse_address(named))):
            place = f"{named}: " if named else ""
            raise WatchError(f"{place}a stream that ends is needed here: a file, or something to iterate over")


def elements_of(feeds: Iterable[StreamFeed], course: Course) -> Iterator[StreamElement]:
    """The elements of sources that end, merged by time; ``course`` follows it."""
    return course.elements(by_time([feed.items for feed in feeds if isinstance(feed.items, Iterable)]))


def refuse_unknown(name: str, options: object, known: type) -> None:
    """TypeError for options that a function does not have, whose own are the keys of a TypedDict."""
    arguments = cast(dict[str, object], options)
    if unknown := set(arguments) - set(known.__annotations__):
        raise TypeError(f"{name} has no option {', '.join(sorted(unknown))}: it has {', '.join(known.__annotations__)}")


def spark_session() -> "SparkSession":
    """The Spark session of this process, begun when first asked for; MistakeError says what Spark lacks here."""
    require("spark")
    from streamgauge.spark.session import session

    return session(None)
