"""Drawn queries: every evaluator's answer is one that SPARQL 1.1 allows, by the simple evaluator.

``cases.toml`` holds what was found once, with the legal answers by hand; it always runs. A refusal by name is no
answer and counts for nobody.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamgauge.model import algebra as al
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from tests.sparql.simple.agreement import EVALUATORS, agrees, legal_answers, shrunk
from tests.sparql.simple.choices import OpenError
from tests.sparql.simple.drawn import FAMILIES, RESOURCES, Case, drawn
from tests.sparql.simple.patterns import Dataset, Row, answers
from tests.sparql.simple.written import PREFIXES, rows, triples

FOUND: dict[str, Mapping[str, Any]] = {
    case["name"]: case for case in tomllib.loads((Path(__file__).parent / "cases.toml").read_text("utf-8"))["case"]
}
IN_SUITE, TO_PROVE, PART = 300, 20_000, 100
MOST = 60
"""So many legal answers of a drawn query are looked through."""


def case_of(result: Mapping[str, Any]) -> Case:
    """A case of the data file."""
    named = {f"<urn:{name}>": triples(result[name]) for name in ("w1", "w2") if name in result}
    return Case(parse_sparql(PREFIXES + result["query"]), Dataset(triples(result.get("data", "")), named))


def by_hand(result: Mapping[str, Any]) -> list[tuple[Row, ...]]:
    """Its legal answers as the file has them."""
    return [rows(text) for text in (result["legal"] if "legal" in result else [result["rows"]])]


@pytest.mark.parametrize("name", FOUND)
def test_the_simple_evaluator_gives_exactly_the_legal_answers(name: str) -> None:
    case = case_of(FOUND[name])
    wanted, result = by_hand(FOUND[name]), legal_answers(case)
    assert [item.rows for item in result if not any(agrees([item], one) for one in wanted)] == []
    assert [one for one in wanted if not agrees(result, one)] == []


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("name", FOUND)
def test_every_evaluator_gives_a_legal_answer(name: str, evaluator: str) -> None:
    case = case_of(FOUND[name])
    given = EVALUATORS[evaluator](case)
    assert given is None or agrees(legal_answers(case), given), given


def disagreement(case: Case, evaluate: Callable[[Case], Any]) -> str:
    """Empty when the answer is legal, ``refused`` by name, or ``open``; else what differs."""
    given = evaluate(case)
    if given is None:
        return "refused"
    legal = []
    try:
        for answer in answers(case.form, case.dataset, MOST):
            if agrees([answer], given):
                return ""
            legal.append(answer.rows)
    except OpenError:
        return "open"
    return f"legal {legal[:3]}, given {given}"


def check(seeds: range, evaluator: str, tame: bool = False, rdf12: bool = False) -> Counter[str]:
    """Cases by seed; how many were refused, open, compared."""
    evaluate, tally = EVALUATORS[evaluator], Counter[str]()
    for seed in seeds:
        case = drawn(Random(seed), tame, rdf12)
        told = disagreement(case, evaluate)
        tally[told if told in ("open", "refused") else "compared"] += 1
        if told not in ("", "open", "refused"):
            small = shrunk(case, lambda item: _wrong(item, evaluate))
            raise AssertionError(
                f"seed {seed}: {disagreement(small, evaluate)}\n{sparql(small.form)}\nover {small.dataset}"
            )
    return tally


def _wrong(case: Case, evaluate: Callable[[Case], Any]) -> bool:
    try:
        return disagreement(case, evaluate) not in ("", "open", "refused")
    except Exception:  # a smaller case that is not a legal query
        return False


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("first", range(0, IN_SUITE, PART))
def test_drawn(first: int, evaluator: str) -> None:
    tally = check(range(first, first + PART), evaluator)
    assert tally["open"] < PART / 10
    assert tally["compared"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_drawn_with_terms_of_rdf12(evaluator: str) -> None:
    tally = check(range(2 * PART), evaluator, rdf12=True)
    assert tally["compared"] > PART


@pytest.mark.prove
@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("first", range(2 * PART, TO_PROVE, 1500))
def test_many_drawn_with_terms_of_rdf12(first: int, evaluator: str) -> None:
    check(range(first, min(first + 1500, TO_PROVE)), evaluator, rdf12=True)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_drawn_in_canonical_form(evaluator: str) -> None:
    tally = check(range(PART), evaluator, tame=True)
    assert tally["compared"] > PART / 3


@pytest.mark.parametrize("function", ["MIN", "MAX"])
def test_extremes_of_mixed_terms_are_the_same_by_all(function: str) -> None:
    """Terms of all kinds beside each other, of which SPARQL does not order most: the choice is the same one."""
    random = Random(7)
    pool = [*(term for family in FAMILIES.values() for term in family), *RESOURCES, "_:n2"]
    form = parse_sparql(f"SELECT ?s ({function}(?v) AS ?m) {{ ?s <urn:p> ?v }} GROUP BY ?s")
    for _ in range(100):
        terms = random.sample(pool, random.randint(1, 6))
        case = Case(form, Dataset(tuple((random.choice(RESOURCES[:2]), "<urn:p>", term) for term in terms), {}))
        answers_by = {name: Counter(evaluate(case) or ()) for name, evaluate in EVALUATORS.items()}
        assert len(set(map(frozenset, (item.items() for item in answers_by.values())))) == 1, (terms, answers_by)


@pytest.mark.prove
@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("first", range(IN_SUITE, TO_PROVE, 1500))
def test_many_drawn(first: int, evaluator: str) -> None:
    check(range(first, min(first + 1500, TO_PROVE)), evaluator)


def test_a_disagreement_is_seen_and_shrunk() -> None:
    def loses_a_row(case: Case) -> tuple[tuple[str | None, ...], ...]:
        return legal_answers(case)[0].rows[1:]

    case = next(item for seed in range(99) if disagreement(item := drawn(Random(seed), True), loses_a_row))
    small = shrunk(case, lambda item: _wrong(item, loses_a_row))
    assert _wrong(small, loses_a_row)
    assert len(str(small.form)) <= len(str(case.form))


def test_every_drawn_query_is_legal_text() -> None:
    for seed in range(20):
        form = parse_sparql(sparql(drawn(Random(seed), True).form))
        assert parse_sparql(sparql(form)) == form, sparql(form)


def test_every_operator_is_drawn_inside_every_other() -> None:
    kinds = {"BGP", "Join", "LeftJoin", "Filter", "Union", "Minus", "Extend", "Values", "Graph", "Project"}
    pairs = set()
    for seed in range(1500):
        pairs |= set(_nested(drawn(Random(seed)).form.pattern))
    outer = kinds - {"BGP", "Values"}
    assert {(one, other) for one in outer for other in kinds} <= pairs


def _nested(pattern: al.Pattern, above: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    name = type(pattern).__name__
    results = [(item, name) for item in above[-2:]]
    for part in ("left", "right", "pattern"):
        if hasattr(pattern, part):
            results += _nested(getattr(pattern, part), (*above, name))
    return results
