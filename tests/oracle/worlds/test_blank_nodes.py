"""Blank nodes: answers are equal when they are isomorphic, and as alike as they can be when they are not."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.terms import triple_term
from streamgauge.oracle.judging.compare import overlap
from streamgauge.oracle.worlds import blank_nodes
from streamgauge.oracle.worlds.blank_nodes import has_blanks, renamed

NAMES = [f"_:b{i}" for i in range(5)]
PLAIN = st.sampled_from([*NAMES, "<urn:a>", "<urn:b>"])
TERMS = st.recursive(
    PLAIN,
    lambda items: st.builds(lambda subject, item: triple_term((subject, "<urn:p>", item)), PLAIN, items),
    max_leaves=2,
)
ROWS = st.lists(st.tuples(TERMS, TERMS, TERMS), max_size=12)


def relabel(rows, order: random.Random):
    names = {name: f"_:x{i}" for i, name in enumerate(order.sample(NAMES, len(NAMES)))}
    said = [tuple(re.sub(r"_:b\d", lambda blank: names[blank[0]], term) for term in row) for row in rows]
    return tuple(order.sample(said, len(said)))


@given(ROWS, st.randoms(use_true_random=False))
def test_renamed_answers_are_the_same_answer(rows, order):
    both = overlap(tuple(rows), relabel(rows, order), frozenset())
    assert (both.common, both.missing, both.surplus) == (len(rows), (), ())


@given(ROWS, ROWS)
def test_what_is_common_is_never_more_than_some_naming_gives(left, right):
    """Renaming maps different blank nodes to different ones: it never makes two rows of one answer equal."""
    names = renamed(left, right)
    pairs = {(was, now) for row, new in zip(right, names, strict=True) for was, now in zip(row, new, strict=True)}
    assert len({was for was, _ in pairs}) == len(pairs) == len({now for _, now in pairs})


@given(ROWS.filter(bool), st.randoms(use_true_random=False))
def test_one_changed_row_is_one_missing_and_one_surplus_row_at_least(rows, order):
    said = list(relabel(rows, order))
    said[0] = ("<urn:never>", *said[0][1:])
    both = overlap(tuple(rows), tuple(said), frozenset())
    assert both.missing
    assert len(both.missing) == len(both.surplus)


@pytest.mark.parametrize(
    ("expected", "message", "common"),
    [
        ("_:a p _:b. _:b p _:a.", "_:a p _:a. _:b p _:b.", 0),
        ("_:a p _:b. _:b p _:c. _:c p _:a.", "_:x p _:y. _:y p _:z. _:z p _:x.", 3),
        ("_:a p x. _:a p y. _:b p x.", "_:1 p x. _:2 p x. _:2 p y.", 3),
        ("_:a p x. _:b p x.", "_:1 p x.", 1),
        ("a p b.", "_:a p b.", 0),
        ("_:a p x. _:a q y. _:b p z.", "_:1 p x. _:1 q w. _:2 p z.", 2),
    ],
)
def test_examples(expected, message, common):
    rows = [[tuple(part.split()) for part in text.split(".") if part.strip()] for text in (expected, message)]
    assert overlap(rows[0], rows[1], frozenset()).common == common


def test_blank_nodes_of_triple_terms_are_those_beside_them():
    def said(first, second):
        return [(first, f"<<( {first} <urn:p> <<( <urn:s> <urn:p> {second} )>> )>>"), (second, '"x"@en--ltr')]

    assert overlap(said("_:a", "_:b"), said("_:x", "_:y"), frozenset()).common == 2
    crossed = [(said("_:x", "_:y")[0]), ("_:x", '"x"@en--ltr')]
    assert overlap(said("_:a", "_:b"), crossed, frozenset()).common == 1


def test_two_graphs_that_colours_do_not_tell_apart_are_told_apart():
    """Two triangles and a hexagon: every node looks the same, and they are not isomorphic."""
    hexagon = [(f"_:{i}", "<p>", f"_:{(i + 1) % 6}") for i in range(6)]
    triangles = [(f"_:{i}", "<p>", f"_:{i - 2 if i % 3 == 2 else i + 1}") for i in range(6)]
    assert overlap(hexagon, triangles, frozenset()).common < 6
    assert overlap(triangles, list(reversed(triangles)), frozenset()).common == 6


def test_two_connected_graphs_that_colours_do_not_tell_apart_are_told_apart():
    """A prism has triangles and K3,3 has none; each is connected, and every node has three neighbours."""
    prism = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)]
    bipartite = [(one, other) for one in (0, 1, 2) for other in (3, 4, 5)]
    graphs = [
        [(f"_:{one}", "<p>", f"_:{other}") for pair in edges for one, other in (pair, pair[::-1])]
        for edges in (prism, bipartite)
    ]
    for graph, other in (graphs, graphs[::-1]):
        assert overlap(graph, [tuple(reversed(row)) for row in graph], frozenset()).common == 18
        assert overlap(graph, other, frozenset()).common < 18


@pytest.mark.slow
def test_many_observations_alike_are_matched_quickly():
    rows = [(f"_:o{i}", "<p>", f"_:r{i}") for i in range(3000)] + [(f"_:r{i}", "<v>", "<urn:x>") for i in range(3000)]
    said = [tuple(f"{term}z" if term.startswith("_:") else term for term in row) for row in rows]
    assert overlap(rows, said, frozenset()).common == 6000


def double(number) -> str:
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#double>'


@pytest.mark.parametrize(
    ("message", "common"),
    [
        ([("_:x", double(2)), ("_:y", double(1))], 2),
        ([("_:x", double("2.0")), ("_:y", double("1.0000000001"))], 2),
        ([("_:x", double(2)), ("_:x", double(1))], 1),
        ([("_:x", double(1)), ("_:y", double(1))], 1),
        ([("_:x", double(2)), ("_:y",)], 1),
    ],
)
def test_computed_numbers_tell_blank_nodes_apart(message, common):
    assert overlap([("_:a", double(1)), ("_:b", double(2))], message, frozenset({1})).common == common


def test_numbers_that_may_be_equal_tell_no_blank_nodes_apart():
    """What is allowed here is more than what the datatype's tolerance allows."""
    rows = [("_:a", "p", double(1)), ("_:b", "q", double(50))]
    said = [("_:x", "q", double(51)), ("_:y", "p", double(2))]
    other = [("_:x", "q", double(51)), ("_:x", "p", double(2))]
    for answer, common in ((said, 2), (other, 1)):
        assert overlap(rows, answer, frozenset({2}), equal=lambda *_: True).common == common
        assert overlap(rows, answer, frozenset({2})).common == 0


def test_a_blank_node_without_a_counterpart_has_a_name_that_no_expected_row_has():
    assert renamed([("_:a", "p")], [("_:x", "p"), ("_:a", "q"), ("_:b", "r")]) == (
        ("_:a", "p"),
        ("_:only-received-0", "q"),
        ("_:only-received-1", "r"),
    )
    assert renamed([("_:a", "p")], []) == ()


def test_a_term_that_begins_with_an_underscore_only_in_its_text_is_no_blank_node():
    assert has_blanks([(None, "<urn:a>"), ("_:b", None)])
    assert not has_blanks([(None, "<_:b>"), ('"_:b"',), ('<<( <urn:a> <urn:p> "_:b" )>>',)])
    assert has_blanks([("<<( <urn:a> <urn:p> <<( <urn:a> <urn:p> _:b )>> )>>",)])


def test_how_long_is_searched_is_bounded_not_whether(monkeypatch):
    """One choice tells all nodes of a ring apart; without it as much is equal as is found to be alike."""
    ring = [(f"_:{i}", "<p>", f"_:{(i + 1) % 7}") for i in range(7)]
    said = [(f"_:x{(i + 1) * 3 % 7}", "<p>", f"_:x{i * 3 % 7}") for i in range(7)]
    for choices, whole in ((1, True), (0, False)):
        monkeypatch.setattr(blank_nodes, "MAX_CANDIDATES", choices)
        assert (overlap(ring, said, frozenset()).common == 7) is whole


def test_numbers_that_are_close_one_after_the_other_are_one_beside_blank_nodes():
    double = "^^<http://www.w3.org/2001/XMLSchema#double>"
    terms = [f'"{text}"{double}' for text in ("1", "1.0000000009", "1.0000000018", "1.0000000027", "2")]
    result = blank_nodes.alike_numbers([(term,) for term in terms], frozenset({0}))[0]
    assert [result.get(term, term) for term in terms] == [*([terms[0]] * 4), terms[4]]


def test_a_blank_node_has_one_counterpart_also_where_the_rest_differs():
    """_:x is _:a for two rounds; _:y, which resembles nothing for more than none, is then the node that is left."""
    left = [("_:a", "<p>", "<1>"), ("_:a", "<r>", "_:b"), ("_:b", "<s>", "<1>")]
    sent = [("_:x", "<p>", "<1>"), ("_:x", "<r>", "_:y"), ("_:y", "<s>", "<2>")]
    assert renamed(left, sent) == (*left[:2], ("_:b", "<s>", "<2>"))
