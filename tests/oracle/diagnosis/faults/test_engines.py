"""What an engine with a fault answers: its instants with their rows, worked out by hand for a few elements."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.answer import Answer
from streamgauge.model.terms import Row
from streamgauge.oracle.diagnosis.models import Fault
from tests.notation import rows
from tests.oracle.diagnosis.faults.test_proposed import searched

CASES = tomllib.loads(Path(__file__).with_name("engines.toml").read_text("utf-8"))["case"]


def answers(text: str) -> list[tuple[int, list[Any]]]:
    """Instants with their rows, written as ``10: a 1 ; b 2 | 20: ``."""
    pairs = (report.split(":", 1) for report in text.split("|") if report.strip())
    return [(int(instant), sorted(map(canonical, rows(body)))) for instant, body in pairs]


def canonical(row: Row) -> Row:
    """A row as engines' rows are kept: ``4.0`` is the decimal 4."""
    return tuple(None if cell is None else Canonical().term(parse_term(cell)) for cell in row)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_engine_with_the_fault_answers_so(case: Mapping[str, Any]) -> None:
    search, kinds = searched(case)
    faults = {fault.part.name: fault for several in kinds.values() for fault in several if isinstance(fault, Fault)}
    results = {}
    for name in case["answers"]:
        engine = next(iter(search.cases((faults[name],) if name != "none" else ())))
        results[name] = [(report.instant, sorted(report.rows)) for report in search.reports(engine)]
    assert results == {name: answers(text) for name, text in case["answers"].items()}


@pytest.mark.parametrize("named", [True, False])
def test_what_an_engine_with_a_fault_answers_comes_out_of_it(named: bool) -> None:
    case = {**CASES[0], "named": named}
    search, kinds = searched(case)
    faults = [fault for several in kinds.values() for fault in several if isinstance(fault, Fault)]
    missed = []
    for fault in (fault for fault in faults if fault.part.name in case["answers"]):
        reports = search.reports(next(iter(search.cases((fault,)))))
        answers = [Answer(("s", "v"), report.rows, instant=report.instant if named else None) for report in reports]
        again = searched({**case, "recorded": answers})[0]
        if not again.comes_out(next(iter(again.cases((fault,))))):
            missed.append(fault.part.name)
    assert missed == []
