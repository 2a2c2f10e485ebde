"""Literals that hold several legal values, by themselves."""

from itertools import permutations
from random import Random

import pytest

from streamgauge.oracle.judging.choices import allows, beyond, choice, is_open, joins, one_of, options, pieces
from tests.notation import term


def test_a_choice_is_any_of_its_terms():
    held = choice([term("2"), term("1"), term("2")])
    assert is_open(held)
    assert options(held) == (term("1"), term("2"))
    assert one_of(held) == term("1")
    assert [allows(held, each) for each in (term("1"), term("3"), None)] == [True, False, False]
    assert options(term("1")) == (term("1"),)


def test_a_concatenation_is_its_pieces_in_any_order():
    held = pieces(["b c", "a"], " ")
    assert is_open(held)
    assert one_of(held) == '"a b c"'
    legal = [allows(held, each) for each in ('"a b c"', '"b c a"', '"a c b"', '"a b c"@en', None, "<urn:a>")]
    assert legal == [True, True, False, False, False, False]
    assert pieces(["a", "a"], "-") == '"a-a"'
    assert pieces([], "-") == '""'
    assert not is_open(None)
    assert not is_open(term("1"))


@pytest.mark.parametrize(
    ("text", "strings", "separator", "found"),
    [
        ("ab", ["a", "b"], "", True),
        ("ba", ["a", "b"], "", True),
        ("a-b-a", ["a", "a", "b"], "-", True),
        ("a-b-b", ["a", "a", "b"], "-", False),
        ("a-b", ["a", "b", "b"], "-", False),
        ("aab", ["aa", "ab"], "", False),
        ("aaab", ["aa", "ab"], "", True),
        ("abaa", ["aa", "ab"], "", True),
        ("-a", ["", "a"], "-", True),
        ("a+b", ["a", "b"], "-", False),
    ],
)
def test_each_piece_is_used_once(text, strings, separator, found):
    assert joins(text, strings, separator) is found


@pytest.mark.parametrize("seed", range(3))
def test_pieces_that_begin_alike_in_every_order(seed):
    rng = Random(seed)
    for _ in range(100):
        strings = [rng.choice(["a", "aa", "ab", "b", "ba", ""]) for _ in range(rng.randint(1, 5))]
        separator = rng.choice(["", "", "a", "-"])
        legal = {separator.join(order) for order in permutations(strings)}
        length = len(next(iter(legal)))
        drawn = {"".join(rng.choice("ab-") for _ in range(length)) for _ in range(20)}
        assert {text for text in legal | drawn if joins(text, strings, separator)} == legal, (strings, separator)


def test_many_equal_pieces_are_tried_once_by_how_many_are_left():
    assert not joins("a" * 41 + "b", ["a"] * 14 + ["aa"] * 14, "")


def test_open_terms_are_written_in_a_namespace_that_no_data_has():
    assert choice([term("1"), term("2")]).endswith('"^^<urn:streamgauge:choice>')
    assert pieces(["a", "b"], " ").endswith('"^^<urn:streamgauge:pieces>')
    assert beyond(2**63) == '"9223372036854775808"^^<urn:streamgauge:beyond>'
