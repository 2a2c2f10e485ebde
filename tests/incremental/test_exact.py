"""Lexical forms and exact numbers in the incremental evaluator, after other values came and went."""

from collections import Counter

import pytest

from streamgauge.query import parse_sparql
from tests.incremental.evaluation import Evaluator
from tests.incremental.exact import CASES, rows, term, triples

OTHERS = tuple(("<urn:s>", "<urn:v>", term(text)) for text in ("3", "1e300", "0.7", '"gone"', "NaN"))


@pytest.mark.parametrize("name", CASES)
def test_answers_are_exact(name):
    evaluator = Evaluator(parse_sparql(CASES[name][1]))
    passing = tuple(triple for triple in OTHERS if triple not in triples(name))
    evaluator.change(passing, ())
    evaluator.change(triples(name), passing)
    assert sorted(Counter(evaluator.solutions()).elements()) == rows(name)
