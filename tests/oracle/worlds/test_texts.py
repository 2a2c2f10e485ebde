"""Texts that SPARQL leaves open: concatenations in any order, tags in any case, and the forms of a number."""

from decimal import Decimal
from itertools import permutations, product
from math import inf

import pytest

from streamgauge.oracle.worlds.conditions import CutOffError
from streamgauge.oracle.worlds.texts import Concatenation, TagCase, joins, number_texts
from streamgauge.sparql.values import DECIMAL, DOUBLE, FLOAT, INTEGER

STRINGS = ["", "a", "b", "ab", "ba"]


def orders(strings: list[str], separator: str) -> set[str]:
    return {separator.join(order) for order in permutations(strings)}


@pytest.mark.parametrize("separator", ["", " ", "a", ", "])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_text_is_strings_joined_in_some_order(count: int, separator: str) -> None:
    for strings in map(list, product(STRINGS, repeat=count)):
        texts = orders(strings, separator)
        others = {f"{text}a" for text in texts} | {text[1:] for text in texts} | {text[::-1] for text in texts}
        concatenation = Concatenation(strings, separator)
        for text in texts | others:
            assert joins(text, strings, separator) is (text in texts), (text, strings)
            assert concatenation.allowed(f'"{text}"') is (text in texts)
        assert sorted(map(str, concatenation.options)) == sorted(f'"{text}"' for text in texts)
        assert concatenation.any_option == f'"{separator.join(strings)}"'
        assert not concatenation.may_fail


def test_a_text_that_needs_a_shorter_string_first_is_found() -> None:
    assert joins("aba", ["a", "ab"], "")
    assert joins("aab", ["a", "ab"], "")
    assert not joins("abb", ["a", "ab"], "")
    assert joins("ab" * 30 + "a" * 30, [*["ab"] * 30, *["a"] * 30], "")


def test_what_is_no_string_is_no_concatenation() -> None:
    concatenation = Concatenation(["x", "y"], " ")
    assert not any(map(concatenation.allowed, (None, "<urn:x y>", '"x y"@en', '"x y"^^<urn:t>')))


def test_as_many_orders_as_cases_are_compared_are_enumerated() -> None:
    """6! is 720 and 7! is 5,040; of 7 strings, two pairs of which are equal, 1,260 orders differ."""
    assert len(Concatenation([*"abcdef"], "").options) == 720
    assert len(Concatenation([*"aabbcde"], "").options) == 1_260
    with pytest.raises(CutOffError, match=r"open are: the order of GROUP_CONCAT \(SPARQL 18\.5\.1\.7\)$"):
        _ = Concatenation([*"abcdefg"], "").options


def test_of_the_orders_those_that_were_sent_matter_and_one_other() -> None:
    concatenation = Concatenation(["x", "yy", "z"], ", ")
    sent = {8: ['"yy, z, x"', '"yy, z, y"', '"z, x, yy"'], 7: ['"x, y, z"']}
    among = concatenation.among(sent)
    legal, other = set(among.options[:-1]), among.options[-1]
    assert (legal, among.reason) == ({'"yy, z, x"', '"z, x, yy"'}, concatenation.reason)
    assert concatenation.allowed(str(other))
    assert other not in legal
    assert concatenation.among({}).options == ('"x, yy, z"',)
    both = {8: ['"x, yy, z"', '"yy, x, z"', '"x, z, yy"', '"yy, z, x"', '"z, x, yy"', '"z, yy, x"']}
    assert set(concatenation.among(both).options) == set(both[8])  # no other is left


@pytest.mark.parametrize(
    ("tag", "forms"),
    [
        ("en", ["en"]),
        ("en-us", ["en-us", "en-US"]),
        ("zh-hant-tw", ["zh-hant-tw", "zh-Hant-TW"]),
        ("de-1996", ["de-1996"]),
        ("en-a-bbb-x-abcd", ["en-a-bbb-x-abcd", "en-a-bbb-x-Abcd"]),
    ],
)
def test_operators_read_a_tag_as_it_is_recorded_or_as_bcp_47_writes_it(tag: str, forms: list[str]) -> None:
    choice = TagCase(tag)
    assert list(choice.options) == [f'"{form}"' for form in forms]
    assert (choice.any_option, choice.shared, choice.identified, choice.may_fail) == (f'"{tag}"', True, True, False)
    assert choice.allowed(f'"{tag.upper()}"')
    assert not choice.allowed('"fr"')
    assert not choice.allowed(None)
    sent = {len(tag): [f'"{tag.upper()}"', f'"{"x" * len(tag)}"']}
    assert set(choice.among(sent).options) == {*choice.options, f'"{tag.upper()}"'}


@pytest.mark.parametrize(
    ("kind", "value", "texts"),
    [
        (INTEGER, 7, ["7"]),
        (DECIMAL, Decimal("1"), ["1", "1.0"]),
        (DECIMAL, Decimal("1.5"), ["1.5"]),
        (DOUBLE, 1e6, ["1000000", "1.0E6", "1.0e6", "1000000.0"]),
        (DOUBLE, -1.5, ["-1.5", "-1.5E0", "-1.5e0"]),
        (DOUBLE, 120.0, ["120", "1.2E2", "1.2e2", "120.0"]),
        (DOUBLE, 0.0, ["0", "0.0E0", "0.0e0", "0.0"]),
        (DOUBLE, inf, ["INF"]),
        (FLOAT, 0.5, ["0.5", "5.0E-1", "5.0e-1"]),
        (FLOAT, 2048.0, ["2048", "2.048E3", "2.048e3", "2048.0"]),
    ],
)
def test_a_number_is_written_plainly_or_as_xml_schema_and_java_write_it(
    kind: int, value: int | Decimal | float, texts: list[str]
) -> None:
    assert sorted(number_texts(kind, value)) == sorted(texts)
