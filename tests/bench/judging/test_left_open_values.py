"""Literals that hold several legal values, by themselves."""

import pytest

from streamgauge.bench.judging.choices import allows, choice, is_open, joins, one_of, options, pieces
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
