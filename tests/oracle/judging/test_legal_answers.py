"""Answers that SPARQL allows are right, all others wrong, case by case (three files of cases), on every evaluator."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.notation import term
from streamgauge.formats.stream import to_table
from streamgauge.model.algebra import Ask, QueryForm, Select
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S
from streamgauge.model.verdict import Evaluator, Judgement, Verdict
from streamgauge.oracle.expected.reports import Header, definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Head
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream
from tests.spark.conftest import tiny

__all__ = ["tiny"]
CASES: list[dict[str, Any]] = [
    case
    for name in ("legal_answers.toml", "choices.toml", "recordings.toml")
    for case in tomllib.loads(Path(__file__).with_name(name).read_text())["case"]
]
_NAMED = re.compile("open (is|are): |need not support|several engines")
"""The choice, or the leniency, for which nobody can tell."""
_CELL = re.compile(r"'[^']*'\S*|\S+")


def rows(text: str) -> tuple[tuple[str | None, ...], ...]:
    """A bag of rows; strings may hold blanks."""
    return tuple(
        tuple(None if cell == "-" else term(cell) for cell in _CELL.findall(row))
        for row in text.split(";")
        if row.strip()
    )


def run_of(case: dict[str, Any], answer: str) -> Run:
    form = parse_sparql("PREFIX : <urn:> " + case["query"])
    query = ContinuousQuery(form, (StreamWindow(STREAM, Window(5, 5)),))
    sends = R2S(case.get("sends", R2S.RSTREAM))
    semantics = replace(RSPQL, r2s=sends, r2s_able=frozenset(R2S))
    reports = answer.split("|")
    until, ordered = 5 * len(reports), case.get("ordered", False)
    header = RunHeader("e", query, case["query"], "rspql", semantics, until, started=0, ordered=ordered)
    signed = sends is R2S.CHANGES or case.get("signed", False)
    return Run(header, tuple(answer_of(form, signed, text, 5 * at) for at, text in enumerate(reports, 1)), ())


def rules_of(case: dict[str, Any], evaluator: Evaluator) -> JudgingRules:
    return JudgingRules(evaluator, exact_datatypes=case.get("exact_datatypes", False))


def answer_of(form: QueryForm, signed: bool, text: str, instant: int) -> Answer:
    if isinstance(form, Ask):
        return Answer(("ask",), rows(text), kind="boolean", instant=instant)
    assert isinstance(form, Select)
    if not signed:
        return Answer(form.variables, rows(text), instant=instant)
    changes = [row.strip() for row in text.split(";") if row.strip()]
    came, went = (rows(" ; ".join(row[1:] for row in changes if row[0] == sign)) for sign in "+-")
    return Answer(form.variables, came, went, instant=instant)


def judgements(case: dict[str, Any]) -> list[tuple[str, Judgement]]:
    kinds = {"right": Judgement.RIGHT, "wrong": Judgement.WRONG, "unknown": Judgement.UNKNOWN}
    return [(answer, judged) for name, judged in kinds.items() for answer in case.get(name, ())]


def otherwise(case: dict[str, Any], judge: Any) -> dict[str, str]:
    """The answers that are judged otherwise than stated, or unknown without a choice that is named."""
    verdicts: list[tuple[str, Judgement, Verdict]] = [
        (answer, stated, judge(run_of(case, answer))) for answer, stated in judgements(case)
    ]
    assert verdicts
    return {
        answer: f"{verdict.judgement}: {verdict.reason}"
        for answer, stated, verdict in verdicts
        if verdict.judgement is not stated or (stated is Judgement.UNKNOWN and not _NAMED.search(verdict.reason))
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_by_the_definition(case: dict[str, Any]) -> None:
    judge = partial(check, expect=definition(stream(case["stream"])), first=0, rules=rules_of(case, "definition"))
    assert otherwise(case, judge) == {}


class Remembered:
    """Expected reports computed once per query, with contents to be searched for one by one, as on Spark."""

    def __init__(self, expect: Any) -> None:
        self._expect, self.look, self.objects = expect, expect.look, cache(expect.objects)
        self._known: dict[Any, Any] = {}

    def __call__(self, query: ContinuousQuery, semantics: Any, advanced_to: int, t0: int) -> Any:
        key = query, semantics, advanced_to, t0
        if key not in self._known:
            self._known[key] = self._expect(*key)
        return self._known[key]


def by_spark(session: Any, case: dict[str, Any]) -> dict[str, str]:
    from streamgauge.oracle.expected.on_spark import SparkReports

    elements = stream(case["stream"])
    table = session.createDataFrame(to_table(elements))
    expect = SparkReports(session, table, Header(map(Head.of, elements)))
    return otherwise(case, partial(check, expect=Remembered(expect), first=0, rules=rules_of(case, "spark")))


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_by_spark(tiny: Any) -> None:
    from tests.spark.deferred import by_spark as together

    def task(case: dict[str, Any]) -> Callable[[Any], dict[str, str]]:
        return lambda expect: otherwise(case, partial(check, expect=expect, first=0, rules=rules_of(case, "spark")))

    result = together(tiny, {case["name"]: (stream(case["stream"]), task(case)) for case in CASES})
    assert {name: answers for name, answers in result.items() if answers} == {}
    assert len(result) == len(CASES)


@pytest.mark.parametrize(
    "name", ["a sum that cancels is undecided where its error shows", "OFFSET and LIMIT at two ties"]
)
def test_by_spark_too(spark: Any, name: str) -> None:
    assert by_spark(spark, next(case for case in CASES if case["name"] == name)) == {}


def test_each_case_has_both_kinds_of_answers_or_a_reason() -> None:
    for case in CASES:
        assert case.get("unknown") or (case["right"] and case["wrong"]), case["name"]
        assert len(case["name"]) > 10
    assert len({case["name"] for case in CASES}) == len(CASES) > 150
