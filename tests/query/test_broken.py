"""Broken text: whatever is cut out, doubled, swapped or put in, the answer is a query or a QueryError with a place."""

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.model.query import ContinuousQuery
from streamgauge.query import QueryError, dialect_names, parse, parse_sparql, print_query
from streamgauge.query.text import Token, blank, tokens
from tests.examples import examples
from tests.query.drawn import kept
from tests.query.test_dialects import CSPARQL, RSPQL
from tests.query.test_recorded import CONTINUOUS, text
from tests.query.texts import PREFIXES, QUERIES

RECORDED = tuple(text(name) for name in CONTINUOUS)
OTHERS = """
PREFIX : <http://e/> SELECT ?s { STREAM :s [RANGE 1h 30m SLIDE 5s] { ?s :p ?o } STREAM :t [NOW] { ?s :q ?x } GRAPH :g { ?s :r ?z } }
PREFIX : <http://e/> CONSTRUCT { ?s :is [] } { STREAM :s [TRIPLES 10] { ?s :p ?o } STREAM :s [ALL] { ?s :p ?o } ?s :r ?z }
PREFIX : <http://e/> SELECT ISTREAM ?s FROM NAMED STREAM :s [NOW- 10 S SLIDE 10 S] FROM NAMED STREAM :t [NOW - 1 HOURS TO NOW - 0 S] { ?s :p ?o }
PREFIX : <http://e/> SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE TRIPLES 10 STEP 2] { WINDOW :w { ?s :p ?o FILTER(timestamp(?o) > 5) } ?s :q ?z }
PREFIX : <http://e/> REGISTER DSTREAM <o> AS ASK FROM NAMED WINDOW :w ON :s [ALL STEP PT5S] { WINDOW :w { ?s :p ?o } } HAVING (COUNT(*) > 1)
PREFIX : <http://e/> REGISTER STREAM o COMPUTED EVERY 5s AS CONSTRUCT { ?s :is 1 } FROM STREAM :s [RANGE TRIPLES 7] FROM STREAM :t [RANGE 1 h TUMBLING] { ?s :p ?o }
""".strip().splitlines()  # noqa: E501
TEXTS = (CSPARQL, RSPQL, *OTHERS, *RECORDED, *(PREFIXES + query for query in QUERIES))
LINES = tuple(text for text in TEXTS if "STREAM" in text or "WINDOW" in text)
LONGEST = 20.0
"""Seconds of CPU that one text may take."""


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A text with a few of its tokens gone, doubled, swapped or put in from another text."""
    parts = list(tokens(draw(st.one_of(st.sampled_from(LINES), st.sampled_from(TEXTS)))))
    others = tokens(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 3))):
        at, to = draw(st.integers(0, len(parts) - 1)), draw(st.integers(0, len(parts) - 1))
        if draw(st.booleans()):
            parts[at], parts[to] = parts[to], parts[at]
        else:
            put = st.lists(st.sampled_from((*others, parts[at])), max_size=2)
            parts[at : at + draw(st.integers(0, 2))] = draw(put)
        parts = parts or [Token("word", "SELECT", 0)]
    return draw(st.sampled_from((" ", "\n"))).join(part.text for part in parts)


@st.composite
def scratched(draw: st.DrawFn) -> str:
    """A text with a few characters gone, doubled or put in, from anywhere in Unicode."""
    whole = draw(st.one_of(st.sampled_from(LINES), st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(whole)))
        put = draw(st.one_of(st.just(""), st.text(max_size=3), st.sampled_from("<>{}[]()\\\"'?:.;,^|&!=-+*/#@\x00")))
        whole = whole[:at] + put + whole[at + draw(st.integers(0, 3)) :]
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.integers(0, 9)) == 0 else whole


def outcome(read: Callable[[str], object], text: str) -> object:
    """What is read, or the error when it is refused."""
    try:
        return read(text)
    except QueryError as error:
        return error


def parses_or_is_refused(text: str, readers: tuple[Callable[[str], object], ...] = (parse_sparql, parse)) -> None:
    for read in readers:
        begun = time.process_time()
        result = outcome(read, text)
        assert time.process_time() - begun < LONGEST
        if isinstance(result, QueryError):
            assert 1 <= result.line <= len(text.splitlines()) + 1
            assert result.column >= 1
            assert str(result).startswith(f"line {result.line}, column {result.column}: ")
        elif isinstance(result, ContinuousQuery):
            prints_or_is_refused(result)


def prints_or_is_refused(query: ContinuousQuery) -> None:
    for dialect in dialect_names():
        with suppress(ValueError):
            printed = print_query(query, dialect)
            assert outcome(parse, printed) == kept(query, dialect)


def any_reader(dialect: str | None) -> tuple[Callable[[str], object], ...]:
    return (parse_sparql,) if dialect == "sparql" else (lambda text: parse(text, dialect),)


readers = st.sampled_from((None, None, "sparql", *dialect_names())).map(any_reader)


@pytest.mark.slow
@examples(40, prove=4500)
@given(broken(), readers)
def test_broken_text(text: str, read: tuple[Callable[[str], object], ...]) -> None:
    parses_or_is_refused(text, read)


@pytest.mark.slow
@examples(40, prove=4500)
@given(scratched(), readers)
def test_scratched_text(text: str, read: tuple[Callable[[str], object], ...]) -> None:
    parses_or_is_refused(text, read)


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
    result = tokens(text)
    assert all(text[token.start : token.end] == token.text for token in result)
    assert all(one.end <= two.start for one, two in pairwise(result))
