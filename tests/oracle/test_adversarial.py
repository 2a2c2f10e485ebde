"""Recordings made to mislead a judge: the verdict on each is the one that was written by hand, by every evaluator.

A file of ``adversarial/`` is a family: cases (a stream, a query, a window), each with recordings [verdict, answers,
reason]. Answers are written as in ``sparql/simple/written.py``.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from streamgauge.engines import live
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Borders, Counting, EmptyAggregate, Report, Semantics
from streamgauge.oracle.expected.reports import Expect, definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query.parser import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.sparql.simple.agreement import agrees, legal_answers
from tests.sparql.simple.drawn import Case
from tests.sparql.simple.patterns import Dataset, Legal, Row, Triple
from tests.sparql.simple.written import PREFIXES, STREAM, elements, rows

FOLDER = Path(__file__).parent / "adversarial"
KINDS = {al.Ask: "boolean", al.Construct: "triples"}
COLUMNS = {al.Ask: ("ask",), al.Construct: ("subject", "predicate", "object")}


def _cases() -> dict[str, Mapping[str, Any]]:
    results = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for case in tomllib.loads(path.read_text("utf-8"))["case"]:
            results[f"{path.stem}: {case['name']}"] = case
    return results


CASES = _cases()
RECORDINGS = {f"{name}: {each[1]}": (name, *each) for name, case in CASES.items() for each in case["recordings"]}


def semantics_of(case: Mapping[str, Any]) -> Semantics:
    """RSP-QL's, with the case's own values."""
    changes: dict[str, Any] = dict(case.get("semantics", {}))
    kinds = {
        **{"borders": Borders, "r2s": R2S, "answers": Counting, "empty_aggregate": EmptyAggregate},
        "report": lambda names: frozenset(map(Report, names)),
    }
    return replace(RSPQL, **{name: kinds.get(name, lambda value: value)(value) for name, value in changes.items()})


def query_of(case: Mapping[str, Any]) -> ContinuousQuery:
    """The query over one unnamed window, or over the case's windows."""
    form = parse_sparql(PREFIXES + case["query"])
    window = Window(*case.get("window", [10, 10]))
    over = case.get("windows", [["test", ""]])
    base = STREAM.removesuffix("test")
    return ContinuousQuery(form, tuple(StreamWindow(base + stream, window, name or None) for stream, name in over))


def run_of(case: Mapping[str, Any], said: str) -> Run:
    """A run that gave these answers: at instants, or one at 10."""
    query = query_of(case)
    form = query.form
    columns = form.variables if isinstance(form, al.Select) else COLUMNS[type(form)]
    texts = re.split(r"\|\s*(?=\d+:)", said) if re.match(r"\d+:", said) else [f"10: {said}"]
    answers = []
    for text in texts:
        instant, _, body = text.partition(":")
        kind: Any = KINDS.get(type(form), "solutions")
        at = int(instant) if case.get("named", True) else None
        answers.append(Answer(columns, rows(body), kind=kind, instant=at, received=int(instant) * 1_000_000))
    header = RunHeader("told", query, case["query"], "rspql", semantics_of(case), case.get("until", 10), 0)
    return Run(header, tuple(answers), ())


class ByChanges:
    """The definition's reports, with the rows that the incremental evaluator gives at their instants."""

    def __init__(self, stream: tuple[StreamElement, ...]) -> None:
        self._stream, self._definition = stream, definition(stream)
        offered = (name for name in dir(self._definition) if not name.startswith("_"))
        self.__dict__ |= {name: getattr(self._definition, name) for name in offered}

    def __call__(self, query: ContinuousQuery, semantics: Semantics, until: int, t0: int) -> tuple[ExpectedReport, ...]:
        own, said = replace(semantics, t0=t0), list[Answer]()
        if reason := live.refuse(query, own):
            raise RefusedError(reason)
        session = live.start(query, own, said.append)
        for element in self._stream:
            session.push(element)
        session.advance(until)
        session.close()
        due = self._definition(query, semantics, until, t0)
        assert [each.instant for each in said] == [each.due.instant for each in due]
        return tuple(replace(one, rows=other.added) for one, other in zip(due, said, strict=True))


EVALUATORS: dict[str, Callable[[tuple[StreamElement, ...]], Expect]] = {
    "definition": definition,
    "changes": ByChanges,
}


@cache
def expected(name: str, evaluator: str) -> Expect:
    """The expected reports of a case's stream."""
    return EVALUATORS[evaluator](elements(CASES[name]["stream"]))


def verdict_of(name: str, said: str, expect: Expect) -> str:
    """right, wrong, unknown; refused where the evaluator does not do it."""
    try:
        verdict = check(run_of(CASES[name], said), expect, 0, JudgingRules())
    except RefusedError as error:
        return "refused" if str(error).startswith("the incremental evaluator") else "unknown"
    return str(verdict.judgement)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_verdict_is_the_one_by_hand(recording: str, evaluator: str) -> None:
    name, wanted, said, why = RECORDINGS[recording]
    result = verdict_of(name, said, expected(name, evaluator))
    if result == "refused":
        return
    assert result == wanted, why


def content_of(case: Mapping[str, Any]) -> Dataset | None:
    """What the only report of a case holds, when it has one window of each stream that holds all."""
    if case.keys() & {"window", "semantics", "until"}:
        return None
    graphs: dict[str, list[Triple]] = {name: [] for _, name in case.get("windows", [["test", ""]])}
    names = {STREAM.removesuffix("test") + stream: name for stream, name in case.get("windows", [["test", ""]])}
    for element in elements(case["stream"]):
        graphs[names[element.stream]] += element.added
    return Dataset(graphs.pop("", []), {f"<{name}>": graph for name, graph in graphs.items()})


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_verdict_by_hand_is_that_of_the_simple_evaluator(recording: str) -> None:
    name, wanted, said, why = RECORDINGS[recording]
    data = content_of(CASES[name])
    if data is None or wanted == "unknown" or name in BY_VALUE:
        return
    form = query_of(CASES[name]).form
    (answer,) = run_of(CASES[name], said).answers
    told = tuple(dict.fromkeys(answer.added)) if answer.kind == "triples" else answer.added
    legal = is_legal(legal_answers(Case(form, data)), told)
    assert legal is (wanted == "right"), why


BY_VALUE = {
    "numbers: an average of integers",
    "numbers: an average that does not end",
    "numbers: a sum of floats",
    "numbers: beyond 2^63 in other operations",
    "terms: truth of strings",
}
"""Right within a tolerance, in another datatype, or under the other version of SPARQL, which the judge allows and the
simple evaluator does not know."""


def is_legal(legal: Sequence[Legal], said: tuple[Row, ...]) -> bool:
    """Whether it is a legal answer, under some labels of its blank nodes."""
    labels = sorted({cell for row in said for cell in row if cell and cell.startswith("_:")})
    ours = sorted({cell for each in legal for row in each.rows for cell in row if cell and cell.startswith("_:")})
    for names in permutations(ours, len(labels)):
        named = dict(zip(labels, names, strict=True))
        if agrees(legal, tuple(tuple(named.get(cell or "", cell) for cell in row) for row in said)):
            return True
    return False


def test_there_are_enough_and_of_both_kinds() -> None:
    verdicts = [wanted for _, wanted, _, _ in RECORDINGS.values()]
    assert len(verdicts) >= 200
    assert len(RECORDINGS) == sum(len(case["recordings"]) for case in CASES.values())
    assert min(verdicts.count("right"), verdicts.count("wrong")) > 60
    assert set(verdicts) <= {"right", "wrong", "unknown"}
