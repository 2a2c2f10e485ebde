"""Drawn queries on Spark, each over several contents in one job, against the simple evaluator."""

from collections import Counter
from random import Random

import pytest
from pyspark.sql import SparkSession

from streamgauge.query.printer import sparql
from tests.spark.conftest import tiny
from tests.sparql.simple.agreement import agrees, legal_answers
from tests.sparql.simple.choices import OpenError
from tests.sparql.simple.drawn import drawn_contents
from tests.sparql.simple.on_spark import many_by_spark
from tests.sparql.simple.test_agree import FOUND, case_of

__all__ = ["tiny"]
CONTENTS = 8
IN_SUITE, TO_PROVE = 3, 1344
"""Queries that the suite draws, and the proof of each kind (RDF 1.1, 1.2), the first seeds: 20,000 answers in all."""


def check(spark: SparkSession, seeds: range, rdf12: bool = False) -> Counter[str]:
    """Queries by seed, all contents of one in one job; how many answers were refused, open, compared."""
    tally = Counter[str]()
    queries = [drawn_contents(Random(seed), CONTENTS, rdf12) for seed in seeds]
    for seed, cases, result in zip(seeds, queries, many_by_spark(spark, queries), strict=True):
        if result is None:
            tally["refused"] += 1
            continue
        for case, given in zip(cases, result, strict=True):
            try:
                legal = legal_answers(case)
            except OpenError:
                tally["open"] += 1
                continue
            tally["compared"] += 1
            assert agrees(legal, given), f"seed {seed}: {sparql(case.form)}\nover {case.dataset}\ngiven {given}"
    return tally


def test_drawn_on_spark(tiny: SparkSession) -> None:
    tally = check(tiny, range(IN_SUITE))
    assert tally["compared"] > CONTENTS


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.prove)])
def test_substitution_and_repeated_paths_on_spark(tiny: SparkSession, step: int) -> None:
    """The written cases of EXISTS over subqueries and of paths of length zero, every fourth in the suite."""
    names = [name for name, case in FOUND.items() if case["item"] == 32][::step]
    cases = [case_of(FOUND[name]) for name in names]
    compared = 0
    for name, case, result in zip(names, cases, many_by_spark(tiny, [[case] for case in cases]), strict=True):
        assert result is None or agrees(legal_answers(case), result[0]), f"{name}: {result}"
        compared += result is not None
    assert compared > 6 // step


@pytest.mark.prove
@pytest.mark.parametrize("terms", ["RDF 1.1", "RDF 1.2"])
@pytest.mark.parametrize("first", range(0, TO_PROVE, 24))
def test_many_drawn_on_spark(tiny: SparkSession, first: int, terms: str) -> None:
    """Planning a query costs half a second of CPU, so each is asked over several contents."""
    seeds = range(first, first + 24)
    tally = check(tiny, seeds, rdf12=terms == "RDF 1.2")
    print(f"\nseeds {seeds}, {terms}: {dict(tally)}")
    assert tally["compared"] > 0
