"""Names have the characters of SPARQL 1.2, 19.8, and no others."""

import re

import pytest

from streamgauge.query.text import NO_VARIABLE, tokens

BASE = (
    "A-Z a-z 00C0-00D6 00D8-00F6 00F8-02FF 0370-037D 037F-1FFF 200C-200D 2070-218F 2C00-2FEF 3001-D7FF F900-FDCF "
    "FDF0-FFFD 10000-EFFFF"
)
"""PN_CHARS_BASE, as the grammar lists it."""
JOINED = "00B7-00B7 0300-036F 203F-2040"
"""What PN_CHARS and VARNAME add behind the first character, beside digits, ``_`` and ``-``."""


def codes(ranges: str) -> set[int]:
    pairs = (one.split("-") for one in ranges.split())
    ends = (
        (ord(first) if len(first) == 1 else int(first, 16), ord(last) if len(last) == 1 else int(last, 16))
        for first, last in pairs
    )
    return {code for first, last in ends for code in range(first, last + 1)}


FIRST = codes(BASE) | set(map(ord, "_0123456789"))
NEXT = FIRST | codes(JOINED)
BORDERS = sorted({code + by for code in NEXT for by in (-1, 1) if code + by not in NEXT} | {min(NEXT), max(NEXT)})


def test_every_character_is_in_a_variable_or_not():
    text = "".join(map(chr, range(0x110000)))
    assert {ord(match[0]) for match in NO_VARIABLE.finditer(text)} == set(range(0x110000)) - NEXT


def kinds(text: str) -> list[str]:
    """The kind of a text that is one token."""
    return [token.kind for token in tokens(text) if token.text == text]


@pytest.mark.parametrize("by", [-1, 0, 1])
@pytest.mark.parametrize(
    ("name", "kind", "allowed"),
    [
        ("?{}", "variable", FIRST),
        ("?a{}", "variable", NEXT),
        ("{}:a", "name", codes(BASE) | {ord(":")}),  # as in ::a
        ("a{}b:c", "name", NEXT | set(map(ord, "-.:"))),
        (":{}", "name", FIRST | {ord(":")}),
        (":a{}", "name", NEXT | set(map(ord, "-:"))),
        ("_:{}", "blank", FIRST),
        ("_:a{}", "blank", NEXT | {ord("-")}),
    ],
)
def test_the_characters_at_the_borders_of_the_classes_begin_and_continue_names(name, kind, allowed, by):
    beside = {code + by for code in BORDERS if 0x20 < code + by < 0x110000}
    usable = {code for code in beside if not re.match(r"[\s%\\\ud800-\udfff]", chr(code))}
    assert {code for code in usable if kinds(name.format(chr(code))) == [kind]} == usable & allowed
