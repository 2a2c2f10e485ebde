"""The tools for agents: ``verify``, ``expect``, ``translate`` and ``explain``; MistakeError has a sentence.

Inputs are JSON, bounded; no text is ever taken for a path.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias

import pyoxigraph as ox
from pydantic import BaseModel, Field

from streamgauge.api import expect as expect_reports
from streamgauge.formats.bounds import check_turtle
from streamgauge.formats.canonical import to_triples
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Row, Triple
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.diagnosis.diagnose import Explained, explained, worked
from streamgauge.query import detect, parse, print_query
from streamgauge.query.prologue import declared_prefixes
from streamgauge.report.cards import diagnosed
from streamgauge.report.failure import failure_lines, wrong_windows
from streamgauge.report.series import state
from streamgauge.report.text import explained_json
from streamgauge.semantics.beginning import begun
from streamgauge.semantics.jumps import clock_steps
from streamgauge.verification import PATIENCE_S, VerifiedRun, impatient, verified
from streamgauge.watching.inputs import Terms, understand
from streamgauge.workloads.parameters import duration

QUERY: Final = 50_000
"""Maximum characters of a query."""

STATIC: Final = 500_000
"""Maximum characters of static data."""

ELEMENTS: Final = 5_000
TRIPLES: Final = 20_000
"""Maximum triples of a stream, over all elements."""

ANSWERS: Final = 5_000
ROWS: Final = 20_000
"""Maximum rows over all answers."""

REPORTS: Final = 20_000
"""Maximum number of instants at which reports may be due."""


class ToolInputError(MistakeError, ValueError):
    """An input of a tool that is invalid or too large; the sentence names the field."""


class GivenElement(BaseModel):
    """An element of a stream."""

    time: int = Field(description="application time, ms")
    triples: str = Field(description="Turtle (N-Triples is Turtle); the prefixes of the query are declared")
    stream: str | None = Field(None, description="the IRI of its stream; the query's only stream unless given")
    until: int | None = Field(None, description="when its triples stop holding, ms; by default as the window ends")


class GivenAnswer(BaseModel):
    """A report of an engine."""

    instant: int | None = Field(None, description="the application time of the report, ms; null if unknown")
    rows: list[dict[str, str | int | float | bool | None]] | bool = Field(
        description="rows from variable to N-Triples term (or a number, a bool); true or false for ASK; "
        "subject, predicate, object for CONSTRUCT"
    )


Query: TypeAlias = Annotated[
    str, Field(description="the text of a continuous query in RSP-QL, C-SPARQL, CQELS-QL or SPARQLstream")
]
Stream: TypeAlias = Annotated[
    list[GivenElement], Field(description="the elements in order of arrival; the stream ends after the last")
]
Answers: TypeAlias = Annotated[list[GivenAnswer], Field(description="the engine's reports, in their order")]
Meaning: TypeAlias = Annotated[
    str | None,
    Field(description="the operational semantics: rspql, csparql, cqels, ...; by default that of the query's dialect"),
]
Static: TypeAlias = Annotated[str | None, Field(description="background data, Turtle")]
AdvanceTo: TypeAlias = Annotated[
    int | str | None,
    Field(description="the end of time, ms or text as 30s; by default the time of the last element or answer"),
]


@dataclass(frozen=True)
class ToolTask:
    """A query under its semantics on a stream, up to a time (ms)."""

    query: ContinuousQuery
    semantics: Semantics
    stream: tuple[StreamElement, ...]
    until: int


def task_of(
    query: str,
    stream: Sequence[GivenElement],
    semantics: str | None,
    static: str | None,
    advance_to: int | str | None,
    answers: Sequence[GivenAnswer] = (),
) -> ToolTask:
    """Create the task of a tool; ToolInputError for an input that is too large, MistakeError for an unreadable one."""
    text = query_text(query)
    # Each bound before the work that it bounds.
    _at_most(len(static or ""), STATIC, "static", "characters")
    prefixes = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in declared_prefixes(text).items())
    triples_given = None if static is None else _triples(prefixes, static, "static")
    (understood,) = understand(text, Terms(semantics=semantics, static=triples_given))
    elements = _stream(stream, understood.query, prefixes)
    _at_most(len(answers), ANSWERS, "answers", "reports")
    _at_most(
        sum(1 if isinstance(answer.rows, bool) else len(answer.rows) for answer in answers), ROWS, "answers", "rows"
    )
    instants = [answer.instant for answer in answers if answer.instant is not None]
    until = (
        _milliseconds(advance_to)
        if advance_to is not None
        else max((*instants, *(element.time for element in elements)), default=0)
    )
    _refuse_endless(understood.query, understood.semantics, elements, until)
    return ToolTask(understood.query, understood.semantics, elements, until)


def _milliseconds(advance_to: int | str) -> int:
    try:
        return duration(advance_to)
    except ValueError as error:
        raise ToolInputError(f"advance_to is {advance_to!r:.40}: {error}") from error


def query_text(query: str) -> str:
    """The text of a query; ToolInputError for a text that is too long, or a file's name."""
    _at_most(len(query), QUERY, "query", "characters")
    if "{" not in query:
        raise ToolInputError(
            "query: the text of a continuous query is expected, with its WHERE { ... }; no file is read"
        )
    return query


def _stream(stream: Sequence[GivenElement], query: ContinuousQuery, prefixes: str) -> tuple[StreamElement, ...]:
    _at_most(len(stream), ELEMENTS, "stream", "elements")
    names, elements, count = query.streams, [], 0
    for number, element in enumerate(stream):
        where = f"stream, element {number + 1}"
        if element.stream is None and len(names) != 1:
            raise ToolInputError(
                f"{where}: its stream is missing, and the query reads {len(names)}: {', '.join(names)}"
            )
        if element.stream is not None and element.stream not in names:
            raise ToolInputError(f"{where}: the query reads no stream {element.stream}: it reads {', '.join(names)}")
        triples = _triples(prefixes, element.triples, where)
        count += len(triples)
        _at_most(count, TRIPLES, "stream", "triples")
        elements.append(StreamElement(element.stream or names[0], element.time, number, triples, until=element.until))
    return tuple(elements)


def _triples(prefixes: str, turtle: str, where: str) -> tuple[Triple, ...]:
    try:
        check_turtle(turtle)
        return to_triples(ox.parse(prefixes + turtle, format=ox.RdfFormat.TURTLE))
    except (SyntaxError, ValueError) as error:
        raise ToolInputError(f"{where}: {turtle!r:.80} is not Turtle: {error}") from error


def _refuse_endless(query: ContinuousQuery, semantics: Semantics, stream: Sequence[StreamElement], until: int) -> None:
    """ToolInputError if up to ``until`` (ms) more reports would be expected than the limit allows."""
    begun_semantics = begun(query.windows, semantics, stream[0].time if stream else None)
    # Computed, not counted: a step of 1 ms until the year 3000 would be a loop without end.
    instants = sum(max(0, until - begun_semantics.t0) // step for step in clock_steps(query.windows, begun_semantics))
    _at_most(instants, REPORTS, "advance_to", "instants at which windows close or are looked at")


def _at_most(count: int, limit: int, field: str, what: str) -> None:
    if count > limit:
        raise ToolInputError(
            f"{field}: {count:,} {what}, {limit:,} at most: shorten it, or judge a run folder by streamgauge check"
        )


MAX_RETURNED_ROWS: Final = 1_000
"""Maximum number of rows that a tool returns."""


def verify(
    query: Query,
    stream: Stream,
    answers: Answers,
    semantics: Meaning = None,
    static: Static = None,
    advance_to: AdvanceTo = None,
    explain: bool = True,
) -> dict[str, Any]:
    """Judge an engine's answers to a continuous query over an RDF stream.

    Returns the judgement (right, wrong, unknown), precision and recall. A wrong judgement also has the witness, the
    first window with an unexpected answer: its bounds and instant (ms), and its missing and surplus rows; and the
    diagnosis: the other semantics, or the fault, with which an engine gives exactly these answers.
    """
    result = _verified(task_of(query, stream, semantics, static, advance_to, answers), answers, explain=explain)
    verdict, header = result.verdict, result.run.header
    wrong = wrong_windows(verdict)
    return {
        "judgement": verdict.judgement.value,
        "semantics": header.semantics.name,
        "sentences": list(failure_lines(header, verdict)),
        "precision": verdict.precision,
        "recall": verdict.recall,
        "windows": len(verdict.windows),
        "not_as_expected": len(wrong),
        "witness": _witness(wrong[0], verdict) if wrong else None,
        "diagnosis": list(diagnosed(verdict.diagnosis)),
        "cautions": list(verdict.cautions),
        "time_came_to": header.advanced_to,
        "notes": list(header.query.notes),
    }


def expect(
    query: Query,
    stream: Stream,
    semantics: Meaning = None,
    static: Static = None,
    advance_to: AdvanceTo = None,
) -> dict[str, Any]:
    """Compute the expected answers of a continuous query over an RDF stream, report by report.

    Each report has its instant, the window's start and end (ms), the number of triples in the window, and its rows from
    variable to N-Triples term.
    """
    task = task_of(query, stream, semantics, static, advance_to)
    expected = expect_reports(
        task.query, list(task.stream), semantics=task.semantics, advance_to=task.until, evaluator="definition"
    )
    reports: list[dict[str, Any]] = []
    left = MAX_RETURNED_ROWS
    for expected_report in expected:
        # Reports go on without rows once the limit is reached, so that instants and counts are complete.
        rows = _named(expected_report.rows[:left], expected_report.variables)
        left -= len(rows)
        due = {
            "instant": expected_report.due.instant,
            "start": expected_report.due.start,
            "end": expected_report.due.end,
        }
        reports.append(
            {
                **due,
                "triples_in_window": expected_report.content,
                "expected_rows": len(expected_report.rows),
                "rows": rows,
            }
        )
    complete = all(len(report["rows"]) == report["expected_rows"] for report in reports)
    return {"semantics": task.semantics.name, "time_came_to": task.until, "reports": reports, "complete": complete}


def translate(query: Query, to: str) -> dict[str, Any]:
    """Write a continuous query in another dialect: rspql, csparql, cqels or sparqlstream.

    A clause that the dialect lacks is refused by name.
    """
    text = query_text(query)
    parsed = parse(text)
    try:
        printed = print_query(parsed, to)
    except ValueError as error:
        raise ToolInputError(str(error)) from error
    return {"from": detect(text), "to": to, "query": printed, "notes": list(parsed.notes)}


def explain(
    query: Query,
    stream: Stream,
    answers: Answers,
    semantics: Meaning = None,
    static: Static = None,
    advance_to: AdvanceTo = None,
) -> dict[str, Any]:
    """Explain why answers are wrong: the semantics, or the fault, with which an engine gives exactly these answers.

    Returns every model that fits, the simplest first, with the proof, and one window worked through: its rows as
    expected, as recorded, and as the simplest model says. A search of more than 20 s of CPU ends with the models found
    by then, and is not ``complete``.
    """
    task = task_of(query, stream, semantics, static, advance_to, answers)
    # Explained below, with a limit of time that an agent can wait for.
    result = _verified(task, answers, explain=False)
    if result.verdict.judgement is not Judgement.WRONG:
        return {"judgement": result.verdict.judgement.value, "sentences": [], "reason": result.verdict.reason}
    why = explained(result.run, result.stream, impatient(PATIENCE_S))
    verdict = replace(result.verdict, diagnosis=why.diagnosis)
    explanation = explained_json(result.run.header, verdict, worked(why))
    return {
        "judgement": verdict.judgement.value,
        "sentences": _sentences(why),
        "complete": not why.ended,
        **explanation,
    }


def _sentences(why: Explained) -> list[str]:
    """The diagnosis in sentences, with a note if the search ended before every model was tried."""
    if not why.ended:
        return list(diagnosed(why.diagnosis))
    if why.found:
        return [
            *diagnosed(why.diagnosis),
            f"The search ended after {PATIENCE_S:g} s of CPU time: other models may fit as well.",
        ]
    return [f"stream: {why.ended}: shorten it to the windows that are wrong."]


def _verified(task: ToolTask, answers: Answers, *, explain: bool) -> VerifiedRun:
    return verified(
        task.query,
        [list(task.stream)],
        [(answer.instant, answer.rows) for answer in answers],
        semantics=task.semantics,
        advance_to=task.until,
        evaluator="definition",
        explain=explain,
    )


def _witness(window: WindowVerdict, verdict: Verdict) -> dict[str, Any]:
    """The first window that is not as expected, its rows from variable to term."""
    return {
        "window": window.index,
        "start": window.start,
        "end": window.end,
        "instant": window.instant,
        "state": state(window),
        "expected_rows": window.expected,
        "received_rows": window.actual,
        "missing": _named(window.missing, verdict.variables),
        "surplus": _named(window.surplus, verdict.variables),
    }


def _named(rows: Sequence[Row], variables: Sequence[str]) -> list[dict[str, str | None]]:
    """Rows from variable to term, ``None`` if unbound; columns are numbered if the variables do not match them."""
    return [dict(zip(variables, row, strict=True)) if len(row) == len(variables) else _numbered(row) for row in rows]


def _numbered(row: Row) -> dict[str, str | None]:
    return {str(number): term for number, term in enumerate(row, 1)}


TOOLS: Final = (verify, expect, translate, explain)
"""Every tool, in the order in which they are listed."""
