"""What the driver learns from stream tables before a query is compiled for them."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.spark import facts
from streamgauge.spark.facts import PredicateCounts
from streamgauge.spark.intervals import TRIPLE

COUNTS = PredicateCounts(("<urn:v>", "<urn:in>"), ("<urn:v>",))


def number(value: str, kind: str = "integer") -> Term:
    return f'"{value}"^^<{XSD}{kind}>'


def valued(*objects: Term) -> list[Triple]:
    return [(f"<urn:s{index}>", "<urn:v>", object_) for index, object_ in enumerate(objects)]


def tables(*parts: Sequence[Triple]) -> list[pa.Table]:
    return [pa.table({name: [row[at] for row in part] for at, name in enumerate(TRIPLE)}) for part in parts if part]


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        ([valued(number("1"), number("-7"))], {"<urn:v>": "integer"}),
        ([valued(number("1")), valued(number("0.5", "float"))], {"<urn:v>": None}),
        ([valued(number("1"), number("0.5", "float"))], {"<urn:v>": None}),
        ([valued(number("1234567890"))], {"<urn:v>": None}),  # Spark does not compute with so many digits
        ([valued("<urn:a>")], {"<urn:v>": None}),
        ([[("<urn:s>", "<urn:in>", number("1")), ("<urn:s>", "<urn:other>", number("1"))]], {}),
        ([], {}),
    ],
)
def test_one_kind_of_a_predicate_is_known(parts, kinds):
    assert COUNTS.look(tables(*parts)).kinds == kinds


def test_triples_repeat_often_within_and_across_parts(monkeypatch):
    thrice, others = valued(number("1")) * 3, [(f"<urn:{index}>", "<urn:other>", "<urn:o>") for index in range(9)]
    assert COUNTS.look(tables(thrice + others)).often
    assert COUNTS.look(tables(*[valued(number("1"))] * 3)).often
    assert not COUNTS.look(tables(valued(number("1"), number("2"), number("3")))).often
    monkeypatch.setattr(facts, "MOST_COMPARED", 1)
    assert not COUNTS.look(tables(thrice)).often


def test_a_look_at_many_parts_keeps_those_that_are_compared_alone(monkeypatch):
    """Memory that Arrow has, part by part: after the last one that is compared it no longer grows."""
    monkeypatch.setattr(facts, "MOST_COMPARED", 2_000)
    sizes = []

    def parts():
        for number_ in range(20):
            sizes.append(pa.total_allocated_bytes())
            yield tables([(f"<urn:s{number_}-{row}>", "<urn:in>", "<urn:o>") for row in range(1_000)])[0]

    assert COUNTS.look(parts()).often is False
    assert sizes[-1] < sizes[5] + 100_000
