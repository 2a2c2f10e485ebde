"""Apache Jena beside our reader and beside the simple evaluator's legal answers: `make prove`, where Maven is."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern, with_parts
from tests.query.test_against_pyoxigraph import TEXTS, altered, by_us
from tests.sparql.jena import Jena, jena
from tests.sparql.simple.agreement import agrees, legal_answers
from tests.sparql.simple.choices import OpenError
from tests.sparql.simple.drawn import Case, drawn
from tests.sparql.simple.patterns import Dataset
from tests.w3c.own import lines

pytestmark = pytest.mark.prove

Tree = TypeVar("Tree")
SAME: Final[Mapping[str, str]] = {"<=": "<", ">=": ">", "+": "-"}
"""What Jena does otherwise, and what is drawn instead: a term is <= itself, + joins strings."""
OF_TRIPLES: Final[Mapping[str, str]] = {**SAME, "STR": "LANG", "<": "=", ">": "=", "<=": "=", ">=": "="}
"""Beside triple terms: they have a text there and an order."""
BROKEN: Final = ("NullPointerException", "ARQException", "ARQInternalErrorException")
"""What it says when it breaks."""
DIFFERS: Final = tomllib.loads((Path(__file__).parent / "jena" / "differs.toml").read_text("utf-8"))
TEXTS_DRAWN, QUERIES_DRAWN = 20_000, 6_000


@pytest.fixture(scope="module")
def other() -> Iterator[Jena]:
    with jena() as running:
        yield running


def same(case: Case, instead: Mapping[str, str]) -> Case:
    """A case without blank nodes, which no text names, and with other functions; plain strings have no datatype."""

    def plain(part: object) -> object:
        if isinstance(part, al.Call) and part.operator in instead:
            return al.Call(instead[part.operator], with_parts(part.arguments, plain))
        if isinstance(part, str):
            return part.replace("_:n1", "<urn:n1>").replace(f'"^^<{XSD}string>', '"')
        return part

    default, named = (with_parts(part, plain) for part in (case.dataset.default, tuple(case.dataset.named.items())))
    graphs = {name: tuple(dict.fromkeys(triples)) for name, triples in named}
    return Case(with_parts(case.form, plain), Dataset(tuple(dict.fromkeys(default)), graphs))


def unasked(case: Case) -> str:
    """Why Jena is not asked; empty where it is."""
    if not all(case.dataset.named.values()):
        return "an empty graph, which N-Quads does not have"
    for part in every_pattern(case.form.pattern):
        match part:
            case al.Graph(pattern=al.BGP(patterns=())):
                return "GRAPH ?g {}, which it joins before the group beside it"
            case al.Group() if any(item.function == "GROUP_CONCAT" for _, item in part.aggregates):
                return "GROUP_CONCAT, which joins all terms there"
            case al.Slice(pattern=al.Reduced()):
                return "LIMIT of REDUCED, where the simple evaluator keeps all rows"
    return ""


def outcome(other: Jena, case: Case) -> str:
    """``agreed``, why there is nothing to compare, or the difference."""
    if reason := unasked(case):
        return reason
    try:
        legal = legal_answers(case)
    except OpenError:
        return "open"
    result = other.rows(sparql(case.form), tuple(lines(case.dataset)))
    if isinstance(result, str):
        return result.partition(":")[0] if result.startswith(BROKEN) else f"{sparql(case.form)}\n{result}"
    rows = tuple(dict.fromkeys(result)) if isinstance(case.form, al.Construct) else result
    return (
        "agreed" if agrees(legal, rows) else f"{sparql(case.form)}\nover {case.dataset}\nlegal {legal[0]}\nJena {rows}"
    )


def listed(kind: str) -> set[int]:
    """The seeds at which it is known to differ."""
    return {seed for difference in DIFFERS["query"] for seed in difference.get(kind, ())}


@pytest.mark.parametrize("kind", ["any terms", "canonical terms", "terms of RDF 1.2"])
def test_jena_gives_a_legal_answer(other: Jena, kind: str) -> None:
    tally, different = Counter[str](), dict[int, str]()
    for seed in range(QUERIES_DRAWN):
        case = drawn(Random(seed), kind == "canonical terms", kind == "terms of RDF 1.2")
        told = outcome(other, same(case, OF_TRIPLES if kind == "terms of RDF 1.2" else SAME))
        if "\n" in told:
            different[seed], told = told, "different"
        tally[told] += 1
    print(f"\n{kind}: {tally.most_common(8)}")
    assert different.keys() == listed(kind), [told for seed, told in different.items() if seed not in listed(kind)]
    assert tally["agreed"] > 0.75 * QUERIES_DRAWN


def test_jena_accepts_the_same_texts(other: Jena) -> None:
    tally = Counter[bool]()
    for text in (*TEXTS, *(altered(Random(seed)) for seed in range(TEXTS_DRAWN))):
        ours, theirs = by_us(text), other.refusal(text)
        if any(difference["has"] in text for difference in DIFFERS["text"]):
            continue
        assert bool(ours) == bool(theirs), (text, ours, theirs)
        tally[bool(ours)] += 1
    print(f"\naccepted {tally[False]}, refused {tally[True]}")
    assert min(tally.values()) > TEXTS_DRAWN / 5
