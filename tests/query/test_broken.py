"""Broken text: whatever is cut out, doubled or swapped, the answer is a query or a QueryError with a place."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgauge.query import QueryError, parse, parse_sparql
from streamgauge.query.tokens import Token, blank, tokens
from tests.query.test_dialects import CSPARQL, RSPQL
from tests.query.texts import PREFIXES, QUERIES

TEXTS = (CSPARQL, RSPQL, *(PREFIXES + text for text in QUERIES))


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A text with a few of its tokens gone, doubled or put in from another text."""
    parts = list(tokens(draw(st.sampled_from(TEXTS))))
    others = tokens(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(parts) - 1))
        parts[at : at + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from((*others, parts[at])), max_size=2))
        parts = parts or [Token("word", "SELECT", 0)]
    return " ".join(part.text for part in parts)


def place(read: Callable[[str], object], text: str) -> tuple[int, int]:
    try:
        read(text)
    except QueryError as error:
        return error.line, error.column
    return 1, 1


def parses_or_is_refused(text: str) -> None:
    for read in (parse_sparql, parse):
        line, column = place(read, text)
        assert 1 <= line <= len(text.splitlines()) + 1
        assert column >= 1


@settings(max_examples=400)
@given(broken())
def test_broken_text(text: str) -> None:
    parses_or_is_refused(text)


@given(st.text(max_size=30))
@example("PREFIX")
@example("PREFIX :")
@example("PREFIX : x SELECT * {}")
@example("PREFIX a:b <c:> SELECT * {}")
@example("REGISTER")
@example("SELECT * { ?s ?p '''x''")
@example("SELECT * { ?s ?p 1e }")
@example("BASE <x> SELECT * { <y> ?p 1 }")
@example("SELECT * { <<a:b>> ?p 1 }")
@example("SELECT * { ?s <\\u0020:x> 1 }")
@example('SELECT * { ?s ?p "x"^^<> }')
def test_any_text(text: str) -> None:
    parses_or_is_refused(text)


@given(st.sampled_from(TEXTS), st.data())
def test_blanking_moves_nothing(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    after = blank(text, start, end)
    assert len(after) == len(text)
    assert [len(line) for line in after.splitlines()] == [len(line) for line in text.splitlines()]
    assert (after[:start], after[end:]) == (text[:start], text[end:])
    assert not after[start:end].strip()


@given(st.sampled_from(TEXTS))
def test_tokens_are_where_they_say(text: str) -> None:
    found = tokens(text)
    assert all(text[token.start : token.end] == token.text for token in found)
    assert all(one.end <= two.start for one, two in pairwise(found))
