"""The tools for agents: ``verify``, ``expect``, ``translate`` and ``explain``; MistakeError has a sentence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from streamgauge.agents.inputs import (
    AdvanceTo,
    Answers,
    Meaning,
    Query,
    Static,
    Stream,
    ToolTask,
    answers_of,
    query_text,
    task_of,
)
from streamgauge.api import expect as expect_reports
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.diagnosis.diagnose import Explained, explained, worked
from streamgauge.query import detect, parse, print_query
from streamgauge.report.cards import diagnosed
from streamgauge.report.failure import failure_lines, wrong_windows
from streamgauge.report.series import state
from streamgauge.report.text import explained_json
from streamgauge.verification import PATIENCE_S, VerifiedRun, impatient, verified

TOLD: Final = 1_000
"""Rows that a tool returns at most."""


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

    Returns the judgement (right, wrong, unknown), precision and recall, and, when wrong, the witness: the first window
    that is not as expected, with its borders and instant (ms), the rows that are missing and those that are surplus,
    and the diagnosis: under which other semantics, or with which fault, an engine gives exactly these answers.
    """
    found = _verified(task_of(query, stream, semantics, static, advance_to, answers), answers, explain=explain)
    verdict, header = found.verdict, found.run.header
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
    """Give the answers that are due for a continuous query over an RDF stream, report by report.

    Each report has its instant, the window's start and end (ms), how many triples the window holds, and its rows from
    variable to N-Triples term.
    """
    task = task_of(query, stream, semantics, static, advance_to)
    found = expect_reports(
        task.query, list(task.stream), semantics=task.semantics, advance_to=task.until, evaluator="definition"
    )
    reports, left = [], TOLD
    for one in found:
        rows = _named(one.rows[:left], one.variables)
        left -= len(rows)
        due = {"instant": one.due.instant, "start": one.due.start, "end": one.due.end}
        reports.append({**due, "triples_in_window": one.content, "expected_rows": len(one.rows), "rows": rows})
    return {"semantics": task.semantics.name, "time_came_to": task.until, "reports": reports, "complete": left > 0}


def translate(query: Query, to: str) -> dict[str, Any]:
    """Write a continuous query in another dialect: rspql, csparql, cqels or sparqlstream.

    A clause that the dialect lacks is refused by name.
    """
    text = query_text(query)
    asked = parse(text)
    return {"from": detect(text), "to": to, "query": print_query(asked, to), "notes": list(asked.notes)}


def explain(
    query: Query,
    stream: Stream,
    answers: Answers,
    semantics: Meaning = None,
    static: Static = None,
    advance_to: AdvanceTo = None,
) -> dict[str, Any]:
    """Say why answers are wrong: the semantics, or the fault, under which an engine gives exactly these answers.

    Returns every model that fits, the simplest first, with the proof, and one window worked through: its rows as
    expected, as recorded, and as the simplest model says. A search of more than 20 s of CPU ends with the models found
    by then, and is not ``complete``.
    """
    task = task_of(query, stream, semantics, static, advance_to, answers)
    found = _verified(task, answers, explain=False)
    if found.verdict.judgement is not Judgement.WRONG:
        return {"judgement": found.verdict.judgement.value, "sentences": [], "reason": found.verdict.reason}
    why = explained(found.run, found.stream, impatient(PATIENCE_S))
    verdict = replace(found.verdict, diagnosis=why.diagnosis)
    told = explained_json(found.run.header, verdict, worked(why))
    return {"judgement": verdict.judgement.value, "sentences": _sentences(why), "complete": not why.ended, **told}


def _sentences(why: Explained) -> list[str]:
    """The diagnosis in sentences, and that the search ended before every model was tried, where it did."""
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
        answers_of(answers),
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
    """Rows from variable to term, ``None`` where unbound; numbered where names and terms are not as many."""
    return [dict(zip(variables, row, strict=True)) if len(row) == len(variables) else _numbered(row) for row in rows]


def _numbered(row: Row) -> dict[str, str | None]:
    return {str(number): term for number, term in enumerate(row, 1)}


TOOLS: Final = (verify, expect, translate, explain)
"""Every tool, in the order in which they are listed."""
