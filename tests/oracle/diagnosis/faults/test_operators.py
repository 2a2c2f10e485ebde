"""One operator of the query is another one: `>` for `>=` at a value on the bound, wherever the condition stands."""

from dataclasses import replace

import pytest

from streamgauge.model.semantics import Counting
from streamgauge.semantics.profiles import RSPQL
from tests.oracle.diagnosis.faults.recordings import best, diagnosed, recording

TEXT = " | ".join(f"{t}: s{t % 3} p {t // 3 % 4}. s{t % 3} q {t % 4}." for t in range(1, 60, 2))
QUERIES = {
    "FILTER": "SELECT ?s ?v { ?s <urn:p> ?v FILTER(?v %s 2) }",
    "FILTER of an expression": "SELECT ?s ?v { ?s <urn:p> ?v . ?s <urn:q> ?w FILTER(?v - ?w %s 0) }",
    "HAVING": "SELECT ?s (COUNT(?v) AS ?n) { ?s <urn:p> ?v } GROUP BY ?s HAVING(COUNT(?v) %s 2)",
    "OPTIONAL": "SELECT ?s ?v ?w { ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w FILTER(?w %s ?v) } }",
    "EXISTS": "SELECT ?s ?v { ?s <urn:p> ?v FILTER EXISTS { ?s <urn:q> ?w FILTER(?w %s 1) } }",
    "BIND": "SELECT ?s ?b { ?s <urn:p> ?v BIND(?v %s 2 AS ?b) }",
}


@pytest.mark.slow
@pytest.mark.parametrize("place", QUERIES)
@pytest.mark.parametrize(("declared", "used"), [(">=", ">"), (">", ">="), ("<", "<=")])
def test_a_comparison_with_another_operator_is_named_wherever_it_stands(place, declared, used):
    run = recording(TEXT, QUERIES[place] % declared, QUERIES[place] % used)
    diagnosis = diagnosed(run, TEXT)
    assert any(part.name.startswith(f"{used} for {declared}: ") for (part, *_others) in diagnosis.models)


@pytest.mark.parametrize(("declared", "used"), [("=", "!="), ("!=", "<"), ("<=", "="), (">", "<"), ("=", ">=")])
def test_every_comparison_may_be_every_other(declared, used):
    run = recording(TEXT, QUERIES["FILTER"] % declared, QUERIES["FILTER"] % used)
    assert any(name.startswith(f"{used} for {declared}: ") for name in best(diagnosed(run, TEXT)))


def test_and_evaluated_as_or_is_named():
    query = "SELECT ?s ?v { ?s <urn:p> ?v FILTER(?v > 1 %s ?v < 3) }"
    run = recording(TEXT, query % "&&", query % "||")
    assert any(name.startswith("|| for &&: ") for name in best(diagnosed(run, TEXT)))


@pytest.mark.parametrize(
    ("declared", "computed"),
    [
        ("AVG(?v)", "MAX(?v)"),
        ("MIN(?v)", "MAX(?v)"),
        ("SUM(?v)", "COUNT(?v)"),
        ("COUNT(?v)", "COUNT(DISTINCT ?v)"),
        ("SUM(DISTINCT ?v)", "SUM(?v)"),
    ],
)
def test_another_aggregate_is_named(declared, computed):
    query = "SELECT (%s AS ?n) { ?s <urn:p> ?v }"
    run = recording(TEXT, query % declared, query % computed)
    assert f"{computed} for {declared}" in best(diagnosed(run, TEXT))


@pytest.mark.parametrize(
    ("declared", "used", "name"),
    [
        ("?s <urn:p> ?v MINUS { ?s <urn:q> ?v }", "?s <urn:p> ?v", "MINUS ignored"),
        ("{ ?s <urn:p> ?v } UNION { ?s <urn:q> ?v }", "?s <urn:q> ?v", "UNION: left branch lost"),
        ("{ ?s <urn:p> ?v } UNION { ?s <urn:q> ?v }", "?s <urn:p> ?v", "UNION: right branch lost"),
    ],
)
def test_an_operand_that_is_not_evaluated_is_named(declared, used, name):
    run = recording(TEXT, f"SELECT ?s ?v {{ {declared} }}", f"SELECT ?s ?v {{ {used} }}")
    assert name in best(diagnosed(run, TEXT))


def test_copies_count_under_a_semantics_whose_contents_are_bags():
    """Each triple comes twice in a window, which a set would hold once."""
    text = " | ".join(f"{t}: s p {t // 10 + t % 2}." for t in range(1, 40, 3))
    bags = replace(RSPQL, name="bags", content=Counting.BAG)
    query = "SELECT (%s AS ?n) { ?s <urn:p> ?v }"
    run = recording(text, query % "COUNT(?v)", query % "SUM(?v)", advance=40, semantics=bags)
    assert "SUM(?v) for COUNT(?v)" in best(diagnosed(run, text))
