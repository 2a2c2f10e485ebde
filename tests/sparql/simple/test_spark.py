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
IN_SUITE = 5
"""Queries that the suite draws, the first seeds; the proof draws all."""


def check(spark: SparkSession, seeds: range) -> Counter[str]:
    """Queries by seed, all contents of one in one job; how many answers were refused, open, compared."""
    tally = Counter[str]()
    queries = [drawn_contents(Random(seed), CONTENTS) for seed in seeds]
    for seed, cases, found in zip(seeds, queries, many_by_spark(spark, queries), strict=True):
        if found is None:
            tally["refused"] += 1
            continue
        for case, given in zip(cases, found, strict=True):
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


def test_substitution_and_repeated_paths_on_spark(tiny: SparkSession) -> None:
    """The written cases of EXISTS over subqueries and of paths of length zero."""
    names = [name for name, case in FOUND.items() if case["item"] == 32]
    cases = [case_of(FOUND[name]) for name in names]
    compared = 0
    for name, case, found in zip(names, cases, many_by_spark(tiny, [[case] for case in cases]), strict=True):
        assert found is None or agrees(legal_answers(case), found[0]), f"{name}: {found}"
        compared += found is not None
    assert compared > 6


@pytest.mark.prove
@pytest.mark.parametrize("first", range(0, 430, 20))
def test_many_drawn_on_spark(tiny: SparkSession, first: int) -> None:
    tally = check(tiny, range(first, first + 20))
    print(f"\nseeds {first} to {first + 19}: {dict(tally)}")
    assert tally["compared"] > 0
