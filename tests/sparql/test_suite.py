"""The W3C suite against pyoxigraph, with the original text and with what our parser and printer make of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.text import QueryError
from tests.sparql.suite import Case, Result, cases, difference, evaluate, rejected

FROM_IS_REFUSED = {"construct/constructwhere04"}
DIFFERS = {
    line.split()[0]
    for line in (Path(__file__).parent / "pyoxigraph_differs.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}


@pytest.fixture(scope="module")
def suite(shared_data: Path) -> tuple[Case, ...]:
    return cases(shared_data / "w3c-sparql11")


def test_the_suite_is_whole(suite: tuple[Case, ...]) -> None:
    assert len(suite) == len({case.name for case in suite}) == 225
    assert {case.expected.kind for case in suite} == {"solutions", "triples", "boolean"}
    assert sum(case.expected.ordered for case in suite) == 9


def test_pyoxigraph_differs_exactly_where_the_list_says(suite: tuple[Case, ...]) -> None:
    assert {case.name for case in suite if difference(case.expected, evaluate(case))} == DIFFERS


@pytest.mark.slow
def test_the_printed_query_is_answered_as_the_original(suite: tuple[Case, ...]) -> None:
    failures = {}
    for case in suite:
        if case.name in FROM_IS_REFUSED:
            continue
        again = difference(_original(case), evaluate(case, sparql(parse_sparql(case.query))))
        if again:
            failures[case.name] = again
    assert failures == {}


def _original(case: Case) -> Result:
    """What the suite says, or what pyoxigraph says where it differs."""
    return evaluate(case) if case.name in DIFFERS else case.expected


@pytest.mark.slow
def test_a_printed_query_parses_back_to_itself(suite: tuple[Case, ...]) -> None:
    for case in suite:
        if case.name not in FROM_IS_REFUSED:
            form = parse_sparql(case.query)
            assert parse_sparql(sparql(form)) == form, case.name


def test_refused_by_name(suite: tuple[Case, ...]) -> None:
    for case in suite:
        if case.name in FROM_IS_REFUSED:
            with pytest.raises(QueryError, match="FROM is not supported"):
                parse_sparql(case.query)


def test_wrong_syntax_is_refused(shared_data: Path) -> None:
    texts = rejected(shared_data / "w3c-sparql11")
    assert len(texts) == 9
    for text in texts.values():
        with pytest.raises(QueryError):
            parse_sparql(text)


BLANKS = Result("solutions", ("a", "b"), (("_:p", "_:q"), ("_:p", "_:p")))
ROWS = Result("solutions", ("a", "b"), (("<urn:x>", '"1"'), ("<urn:y>", None)))
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (ROWS, replace(ROWS, rows=ROWS.rows[::-1]), True),
        (replace(ROWS, ordered=True), replace(ROWS, rows=ROWS.rows[::-1]), False),
        (ROWS, replace(ROWS, rows=ROWS.rows * 2), False),
        (ROWS, Result("solutions", ("b", "a"), (('"1"', "<urn:x>"), (None, "<urn:y>"))), True),
        (ROWS, Result("solutions", ("a",), ()), False),
        (BLANKS, replace(BLANKS, rows=(("_:z", "_:z"), ("_:z", "_:y"))), True),
        (BLANKS, replace(BLANKS, rows=(("_:z", "_:z"), ("_:y", "_:z"))), False),
        (Result("solutions", ("a",), ((f'"1.0000000001"^^<{XSD}double>',),)),
         Result("solutions", ("a",), ((f'"1"^^<{XSD}double>',),)), True),
        (Result("solutions", ("a",), ((f'"1.001"^^<{XSD}double>',),)),
         Result("solutions", ("a",), ((f'"1"^^<{XSD}double>',),)), False),
        (Result("solutions", ("a",), ((f'"1"^^<{XSD}decimal>',),)),
         Result("solutions", ("a",), ((f'"1"^^<{XSD}integer>',),)), False),
        (Result("triples", ("subject", "predicate", "object"), (("_:a", "<urn:p>", "_:b"),)),
         Result("triples", ("subject", "predicate", "object"), (("_:b", "<urn:p>", "_:a"),) * 2), True),
    ],
)  # fmt: skip
def test_comparison(expected: Result, actual: Result, same: bool) -> None:
    assert (difference(expected, actual) == "") is same
