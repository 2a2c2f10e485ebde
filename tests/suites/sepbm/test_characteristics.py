"""What characterises a channel, counted by hand; ranks against times; which rules a query needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import workloads
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query import parse_sparql
from streamgauge.reasoning import read_rules
from streamgauge.suites.sepbm import ConfigurationError, SepbmChannel
from streamgauge.suites.sepbm.characteristics import (
    MEANING,
    ChannelCharacter,
    DueChange,
    RankedTrait,
    asks,
    brings,
    characterise,
    involved,
    patterns_of,
    ranked,
    spearman,
)
from tests.suites.sepbm.campus import ONTOLOGY
from tests.suites.sepbm.stored import stored

UNIVERSITY = workloads.load("university")


def test_the_queries_of_the_university():
    results = {
        name: asks(SepbmChannel(name, workloads.query_text(UNIVERSITY, name)).form) for name in ("q06", "q09", "q20")
    }
    assert results == {"q06": parts(1, 1, 0, 0, 0), "q09": parts(3, 6, 5, 0, 0), "q20": parts(2, 4, 2, 0, 1)}
    form = parse_sparql("SELECT * { ?x <urn:p> ?y FILTER(?y > 1) OPTIONAL { ?y <urn:q> ?z } }")
    assert asks(form) == parts(3, 2, 1, 1, 0)


def parts(*counts):
    return dict(zip(("variables", "patterns", "joins", "filters", "unions"), counts, strict=True))


@pytest.mark.parametrize(
    ("pattern", "heads"),
    [
        ("?x :name ?n", set()),
        ("?x :partOf ?y", {"partOf"}),
        ("?x :memberOf ?y", {"memberOf", "member"}),
        ("?x a :Professor", {"Professor"}),
        ("?x a :Person", {"Person", "Professor", "Student"}),
        ("?x a :Student", {"Person", "Professor", "Student"}),
        ("?x :partOf|:member ?y", {"partOf", "memberOf", "member"}),
        ("?x ?p :d1", {"partOf", "memberOf", "member", "near"}),
    ],
)
def test_the_rules_that_a_query_needs(pattern, heads):
    form = parse_sparql(f"PREFIX : <urn:t:> SELECT * {{ {pattern} }}")
    result = involved(read_rules(ONTOLOGY), patterns_of(form))
    concluded = {rule.head.object if rule.head.predicate == RDF_TYPE else rule.head.predicate for rule in result}
    assert concluded == {f"<urn:t:{name}>" for name in heads}


def graph(name, kind, *more):
    return (f"<urn:{name}>", RDF_TYPE, f"<urn:{kind}>"), *((f"<urn:{name}>", f"<urn:{p}>", o) for p, o in more)


def test_what_publications_bring():
    one = graph("a", "Student", ("name", '"A"'))
    two = graph("b", "Student", ("name", '"B"'))
    three = graph("c", "Course", ("name", '"C"'), ("mail", '"c@x"'))
    result = brings(
        [
            DueChange(one, (("<urn:a>", '"A"'),)),
            DueChange(two, (("<urn:b>", '"B"'), ("<urn:b>", "<urn:elsewhere>"))),
            DueChange(three, (("<urn:elsewhere>", '"C"'),)),
        ]
    )
    assert result["recurring"] == 3
    assert result["notifications"] == 4
    assert result["contained"] == 0.5
    assert result["equal_size"] == result["same_type"] == result["same_structure"] == pytest.approx(2 / 3)
    assert result["at_most_one"] == 0.5
    assert 0 < result["equal_graphs"] < 1
    assert 0 < result["equal_rows"] < 1


def test_nothing_is_known_where_nothing_was_brought():
    result = brings([])
    assert {name for name, value in result.items() if value is not None} == {"recurring", "notifications"}
    assert result["recurring"] == result["notifications"] == 0


def test_what_is_counted_of_a_query_and_its_changes_has_a_meaning():
    own = {"rules", "input", "input_share", "result", "selectivity"}
    counted = {*asks(parse_sparql("SELECT * { ?x ?p ?y }")), *own, *brings([])}
    assert counted == set(MEANING)


def test_equal_publications_are_as_equal_as_can_be():
    same = DueChange(graph("a", "Student"), (("<urn:a>",),))
    result = brings([same, same])
    assert result["equal_graphs"] == result["equal_rows"] == result["equal_size"] == 1


@given(st.lists(st.integers(0, 5), min_size=2).filter(lambda values: len(set(values)) > 1))
def test_ranks_do_not_change_when_values_grow(values):
    assert spearman(values, [value**3 for value in values]) == pytest.approx(1)
    assert spearman(values, [-value for value in values]) == pytest.approx(-1)


def test_spearman_s_published_example():
    """Ranks with ties: 1 - 6 sum d^2 / (n (n^2 - 1)) holds without ties only."""
    assert spearman([106, 100, 86, 101, 99, 103, 97, 113, 112, 110], [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]) == (
        pytest.approx(-29 / 165)
    )
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9486832980505138)
    assert spearman([1, 1], [1, 2]) is None
    assert spearman([], []) is None


def character(name, patterns, contained):
    same = dict.fromkeys(MEANING, 1.0) | {"selectivity": None}
    return ChannelCharacter(name, same | {"patterns": patterns, "contained": contained})


def test_properties_are_ranked_against_times():
    known = [character("a", 1, 0.5), character("b", 2, None), character("c", 3, 0.1), character("d", 9, 0.2)]
    result = ranked(known, {"one": {"a": 1.0, "b": 2.0, "c": 3.0}})
    assert result == [
        RankedTrait("one", "contained", pytest.approx(-1), 2),
        RankedTrait("one", "patterns", pytest.approx(1), 3),
    ]


def test_a_configuration_without_counts_is_refused_before_anything_is_counted(tmp_path):
    with pytest.raises(ConfigurationError, match=r"configuration\.json: the number of rows of \w+ is missing"):
        characterise(None, stored(tmp_path / "conf"))
