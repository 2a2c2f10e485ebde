"""The judge finds exactly those answers legal that the simple evaluator gives under some choice, on drawn queries."""

from collections import Counter
from random import Random

import pytest

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.terms import Row
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.sparql.simple.agreement import agrees, legal_answers, windows
from tests.sparql.simple.choices import OpenError
from tests.sparql.simple.drawn import Case, drawn
from tests.sparql.simple.patterns import Legal


def legality(case: Case) -> ReportLegality:
    over = windows(case.dataset)
    held = (case.dataset.default, *case.dataset.named.values())
    contents = tuple((Arrival(item.stream, 0, None, tuple(one)),) for item, one in zip(over, held, strict=True))
    query = ContinuousQuery(case.form, over)
    refuse(query, RSPQL)
    return ReportLegality(lambda _: contents, query, RSPQL)


def is_compared(case: Case) -> bool:
    """Whether the simple evaluator lists all answers: it keeps every duplicate of REDUCED below a LIMIT."""
    patterns = [type(pattern) for pattern in every_pattern(case.form.pattern)]
    return not isinstance(case.form, a.Construct) and not {a.Slice, a.Reduced} <= set(patterns)


def changed(random: Random, rows: list[Row], others: list[Row]) -> list[Row]:
    """The rows without one, with one twice, with another answer's row, or with another term in one."""
    at = random.randrange(len(rows)) if rows else 0
    match random.randint(0, 3):
        case 0 if rows:
            return [*rows[:at], *rows[at + 1 :]]
        case 1 if rows:
            return [*rows, rows[at]]
        case 2 if rows and rows[at]:
            place = random.randrange(len(rows[at]))
            other = random.choice(others)[place]
            return [*rows[:at], (*rows[at][:place], other, *rows[at][place + 1 :]), *rows[at + 1 :]]
    return [*rows, random.choice(others)] if others else rows


def plain(answer: Legal) -> list[Row]:
    return [tuple(None if term is None else str(term) for term in row) for row in answer.rows]


def compared(seed: int, rdf12: bool) -> Counter[str]:
    """How many answers to one drawn query were compared, and found legal or not."""
    random, case, tally = Random(seed), drawn(Random(seed), rdf12=rdf12), Counter[str]()
    try:
        legal = legal_answers(case) if is_compared(case) else []
        judge = legality(case)
    except (OpenError, RefusedError):
        return tally
    everything = sorted({row for answer in legal for row in plain(answer)}, key=repr)
    for change in (False, True, True) if legal else ():
        rows = plain(random.choice(legal))
        rows = changed(random, rows, everything) if change else rows
        if any(term and "_:" in term for row in rows for term in row):
            continue
        opinion = judge.of(DueReport(0, ()), rows)
        if not opinion.unknown:
            wanted = agrees(legal, tuple(rows))
            assert opinion.legal is wanted, (seed, rows, [answer.rows for answer in legal][:4])
            tally[f"{wanted}, {'one of several' if len(legal) > 1 else 'the only one'}"] += 1
    return tally


def check(first: int, number: int) -> None:
    tally = sum((compared(seed, rdf12=seed % 4 == 0) for seed in range(first, first + number)), Counter[str]())
    assert len(tally) == 4, tally
    assert min(tally.values()) > number // 60, tally


def test_an_answer_is_legal_when_the_simple_evaluator_gives_it() -> None:
    check(0, 600)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_of_many_queries() -> None:
    check(10_000, 30_000)
