"""Answers that SPARQL allows are right and all others wrong, case by case (two files of cases), on every evaluator."""

import re
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.notation import term
from streamgauge.formats.stream import to_table
from streamgauge.model.algebra import Ask
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.verdict import Judgement, Verdict
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
    for name in ("legal_answers.toml", "choices.toml")
    for case in tomllib.loads(Path(__file__).with_name(name).read_text())["case"]
]
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
    header = RunHeader("e", query, case["query"], "rspql", RSPQL, advanced_to=5, started=0)
    if isinstance(form, Ask):
        return Run(header, (Answer(("ask",), rows(answer), kind="boolean", instant=5),), ())
    return Run(header, (Answer(form.variables, rows(answer), instant=5),), ())


def judgements(case: dict[str, Any]) -> list[tuple[str, Judgement]]:
    kinds = {"right": Judgement.RIGHT, "wrong": Judgement.WRONG, "unknown": Judgement.UNKNOWN}
    return [(answer, judged) for name, judged in kinds.items() for answer in case.get(name, ())]


def as_stated(case: dict[str, Any], judge: Any) -> None:
    found: dict[str, Verdict] = {answer: judge(run_of(case, answer)) for answer, _ in judgements(case)}
    assert {answer: verdict.judgement for answer, verdict in found.items()} == dict(judgements(case))
    assert all(verdict.reason for verdict in found.values() if verdict.judgement is Judgement.UNKNOWN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_by_the_definition(case: dict[str, Any]) -> None:
    as_stated(case, partial(check, expect=definition(stream(case["stream"])), first=0, rules=JudgingRules()))


class Remembered:
    """Expected reports computed once per query, with contents to be searched for one by one, as on Spark."""

    def __init__(self, expect: Any) -> None:
        self._expect, self.look = expect, expect.look
        self._known: dict[Any, Any] = {}

    def __call__(self, query: ContinuousQuery, semantics: Any, advanced_to: int, t0: int) -> Any:
        key = query, semantics, advanced_to, t0
        if key not in self._known:
            self._known[key] = self._expect(*key)
        return self._known[key]


def by_spark(session: Any, case: dict[str, Any]) -> None:
    from streamgauge.oracle.expected.on_spark import SparkReports

    elements = stream(case["stream"])
    table = session.createDataFrame(to_table(elements))
    expect = SparkReports(session, table, Header(map(Head.of, elements)))
    as_stated(case, partial(check, expect=Remembered(expect), first=0, rules=JudgingRules("spark")))


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_by_spark(tiny: Any) -> None:
    from tests.spark.deferred import by_spark as together

    def task(case: dict[str, Any]) -> Callable[[Any], None]:
        return lambda expect: as_stated(case, partial(check, expect=expect, first=0, rules=JudgingRules("spark")))

    together(tiny, {case["name"]: (stream(case["stream"]), task(case)) for case in CASES})


@pytest.mark.parametrize(
    "name", ["a sum that cancels is undecided where its error shows", "OFFSET and LIMIT at two ties"]
)
def test_by_spark_too(spark: Any, name: str) -> None:
    by_spark(spark, next(case for case in CASES if case["name"] == name))


def test_each_case_has_both_kinds_of_answers_or_a_reason() -> None:
    for case in CASES:
        assert case.get("unknown") or (case["right"] and case["wrong"]), case["name"]
        assert len(case["name"]) > 10
    assert len({case["name"] for case in CASES}) == len(CASES)
