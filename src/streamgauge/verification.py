"""Answers judged against a query and streams, without a run folder: ``verify`` (docs/python.md)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any, Final, TypeAlias, Unpack

from streamgauge.api import ExpectOptions, elements_of, refuse_live, refuse_unknown, spark_session
from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.stream import write
from streamgauge.model.algebra import Ask, Construct, Select
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Clock, Semantics
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.diagnosis.diagnose import PatienceError, diagnose
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.oracle.judging.oracle import Progress
from streamgauge.query import print_query
from streamgauge.semantics.beginning import all_closed, begun_run
from streamgauge.semantics.definition import columns, operator
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.servers.queries.sessions import fixed
from streamgauge.sources.named import Course
from streamgauge.watching import read_as
from streamgauge.watching.inputs import Query, Stream, Terms, first_window, open_feeds, understand
from streamgauge.workloads.parameters import instant

Value: TypeAlias = Term | int | float | Decimal | bool | None
"""A term in N-Triples, a Python number or boolean (a literal of its datatype), or ``None`` for an unbound variable."""

Given: TypeAlias = Answer | tuple[int | None, bool | Iterable[Mapping[str, Value] | Sequence[Value]]]
"""An answer, or (instant in ms or ``None``, rows): a mapping by variable, terms in the query's order, or ASK's bool."""


PATIENCE_S: Final = 20.0
"""CPU seconds that a diagnosis may take."""


class AnswersError(MistakeError, ValueError):
    """Answers that cannot be judged; the sentence says which of them, and what was expected."""


class VerifyOptions(ExpectOptions, total=False):
    """The options of ``verify``: those of ``expect`` but ``windows``, and these."""

    explain: bool
    """Find why answers are wrong (``verdict.diagnosis``); so unless ``False``."""
    exact_datatypes: bool
    """Compare the datatypes of computed numbers too."""
    ordered: bool
    """The rows of each answer are in the engine's own order, so that ORDER BY is judged."""
    engine_name: str
    """The name of the engine in the verdict's run."""


@dataclass(frozen=True)
class VerifiedRun:
    """Answers as a run, with the stream's elements and the verdict."""

    run: Run
    stream: tuple[StreamElement, ...]
    verdict: Verdict


def verify(query: Query, *streams: Stream, answers: Iterable[Given], **options: Unpack[VerifyOptions]) -> Verdict:
    """The verdict on the answers of any engine to a query over finite streams; with a diagnosis if it is wrong.

    Queries and streams are those of ``watch``. An answer is an ``Answer`` or (instant in ms or ``None``, rows): a row
    is a dictionary from variable to term (N-Triples text, or a Python number or bool), or terms in the query's order;
    an ASK's rows are ``True`` or ``False``. Options (``VerifyOptions``) are those of ``expect`` but ``windows``, and
    ``explain``, ``exact_datatypes``. Time advances to ``advance_to``, by default to the last element or the last
    instant of an answer. MistakeError says in a sentence what cannot be judged.
    """
    return verified(query, streams, answers, **options).verdict


def verified(
    query: Query, streams: Sequence[Stream], answers: Iterable[Given], **options: Unpack[VerifyOptions]
) -> VerifiedRun:
    """The verdict of ``verify`` with the run that was judged and its stream."""
    refuse_unknown("verify", options, VerifyOptions)
    arguments: dict[str, Any] = {**options}
    own = {field.name for field in fields(Terms)} - {"t0", "engine"}
    (understood,) = understand(query, Terms(**{name: value for name, value in arguments.items() if name in own}))
    if understood.semantics.clock is not Clock.APPLICATION:
        raise AnswersError(
            f"{understood.semantics.name} counts when elements arrive, which answers alone do not say: "
            "judge a run folder"
        )
    refuse_live(streams)
    reading = replace(read_as(arguments, (understood,), understood.semantics.lateness), checked=True)
    course = Course()
    elements = tuple(elements_of(open_feeds(streams, understood.query.streams, reading), course))
    names = columns_of(understood.query, understood.semantics)
    recorded = tuple(answer_of(answer, understood.query, names, number) for number, answer in enumerate(answers, 1))
    t0 = first_window(arguments.get("t0"))
    header = RunHeader(
        arguments.get("engine_name", "answers"),
        understood.query,
        query_text(understood.query),
        "rspql",
        understood.semantics,
        _horizon(arguments.get("advance_to"), understood.query, course, recorded, (t0 or 0) - 1),
        0,
        ordered=arguments.get("ordered", False),
    )
    if t0 is not None:
        return judged(
            Run(replace(header, semantics=fixed(understood.semantics, t0)), recorded, ()), elements, **options
        )
    return judged(begun_run(Run(header, recorded, ()), course.first), elements, **options)


def judged(run: Run, stream: Sequence[StreamElement], **options: Unpack[VerifyOptions]) -> VerifiedRun:
    """The verdict on a run whose stream is in memory; a wrong one has its diagnosis unless ``explain`` is ``False``."""
    exact = options.get("exact_datatypes", False)
    with TemporaryDirectory() as scratch:
        # As a table, since ``judge_run`` may give it to Spark.
        write(stream, Path(scratch) / "part-0.parquet")
        means = Means(spark_session, options.get("evaluator"), exact_datatypes=exact)
        verdict = judge_run(run, Path(scratch), means)
    if verdict.judgement is Judgement.WRONG and options.get("explain", True):
        verdict = diagnosed(run, stream, verdict)
    return VerifiedRun(run, tuple(stream), verdict)


def diagnosed(
    run: Run,
    stream: Sequence[StreamElement],
    verdict: Verdict,
    patience: float = PATIENCE_S,
    clock: Callable[[], float] = thread_time,
) -> Verdict:
    """The verdict with its diagnosis, or with a caution that says why there is none.

    The search ends after ``patience`` seconds of the ``clock``, by default the CPU time of this thread.
    """
    try:
        return replace(verdict, diagnosis=diagnose(run, stream, impatient(patience, clock)))
    except (RefusedError, OutOfOrderError, PatienceError) as error:
        return replace(verdict, cautions=(*verdict.cautions, f"No diagnosis: {error}."))


def impatient(patience: float, clock: Callable[[], float] = thread_time) -> Progress:
    """A progress callback that raises PatienceError after that many seconds, which ends the search."""
    until = clock() + patience

    def look(_done: int, _of: int) -> None:
        if clock() > until:
            raise PatienceError(f"none was found within {patience:g} s of CPU time (streamgauge explain takes longer)")

    return look


def query_text(query: ContinuousQuery) -> str:
    """The query in RSP-QL, or in plain SPARQL if RSP-QL cannot express it."""
    try:
        return print_query(query, "rspql")
    except ValueError:
        return query.sparql


def _horizon(
    stated: int | str | None, query: ContinuousQuery, course: Course, answers: Sequence[Answer], before: int
) -> int:
    """The end of time (ms); ``before`` if nothing arrived."""
    if stated == "windows":
        return before if course.last is None else all_closed(query.windows, course.last)
    if stated is not None:
        return instant(stated)
    # An answer may name an instant after the last element, up to which time has advanced then.
    times = (course.last, *(answer.instant for answer in answers))
    return max((time for time in times if time is not None), default=before)


def columns_of(query: ContinuousQuery, semantics: Semantics) -> tuple[str, ...]:
    """The names of the columns of a query's answers."""
    if isinstance(query.form, Select):
        return columns(query.form.variables, operator(query, semantics))
    return ("subject", "predicate", "object") if isinstance(query.form, Construct) else ("answer",)


def answer_of(item: Given, query: ContinuousQuery, names: tuple[str, ...], number: int) -> Answer:
    """The Answer for (instant, rows), with columns in the query's order; AnswersError names its ``number``, from 1."""
    if isinstance(item, Answer):
        return item
    try:
        instant, rows = item
    except (TypeError, ValueError):
        raise AnswersError(f"answer {number} is {item!r:.80}: give an Answer, or (instant in ms, rows)") from None
    # Not ``isinstance``: True as an instant would be 1 ms.
    if instant is not None and type(instant) is not int:
        raise AnswersError(
            f"answer {number}: its instant is {instant!r:.40}: a whole number of ms is expected, or None"
        )
    if isinstance(query.form, Ask):
        if not isinstance(rows, bool):
            raise AnswersError(f"answer {number}: the query is an ASK, so its rows are True or False, not {rows!r:.80}")
        return Answer((), ((_term(rows),),), kind="boolean", instant=instant)
    # A text is iterable, letter by letter, and never meant so.
    if isinstance(rows, bool | str) or not isinstance(rows, Iterable):
        raise AnswersError(f"answer {number}: its rows are {rows!r:.80}: a list of rows is expected")
    rows_ = tuple(_rows(rows, names, number))
    if isinstance(query.form, Construct):
        return Answer((), rows_, kind="triples", instant=instant)
    return Answer(names, rows_, instant=instant)


def _rows(rows: Iterable[Mapping[str, Value] | Sequence[Value]], names: Sequence[str], number: int) -> Iterator[Row]:
    for row in rows:
        where = f"answer {number}, row {row!r:.80}"
        if isinstance(row, Mapping):
            if unknown := sorted(set(row) - set(names)):
                raise AnswersError(f"{where}: the query has no variable {unknown[0]}: it has {', '.join(names)}")
            cells: Sequence[Value] = [row.get(name) for name in names]
        elif isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(names):
            raise AnswersError(f"{where}: a mapping from variables, or {len(names)} terms ({', '.join(names)})")
        else:
            cells = row
        try:
            yield tuple(None if cell is None else _term(cell) for cell in cells)
        except (ValueError, TypeError) as error:
            raise AnswersError(f"{where}: {error}; terms are written as in N-Triples") from error


_DATATYPES: dict[type, str] = {bool: "boolean", int: "integer", float: "double", Decimal: "decimal"}


def _term(value: Value) -> Term:
    """The canonical term of N-Triples text, or of a Python number or boolean."""
    if isinstance(value, str):
        return to_term(parse_term(value))
    if (kind := _DATATYPES.get(type(value))) is None:
        raise TypeError(f"{value!r:.40} is not a term")
    # Without an exponent, which xsd:decimal does not have: Decimal("1E+2") is 100.
    text = format(value, "f") if isinstance(value, Decimal) else str(value).lower()
    # Python writes nan and inf, XML Schema NaN and INF.
    text = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(text, text)
    return to_term(parse_term(f'"{text}"^^<{XSD}{kind}>'))
