"""Our reader accepts the texts that pyoxigraph's parser accepts: whole ones, and those with a few words changed."""

import re
from random import Random

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.query import QueryError
from streamgauge.query.parser import read_sparql
from streamgauge.query.text import tokens
from tests.examples import examples
from tests.query.test_reader import COMMON, HEAD, OTHERS
from tests.query.texts import PREFIXES, QUERIES
from tests.sparql import test_rdf12

TEXTS = (
    *(PREFIXES + text for text in QUERIES),
    *(HEAD + text for text in (*COMMON, *OTHERS) if "#timestamp" not in text),
    *(test_rdf12.PREFIXES + text for text, _ in test_rdf12.CASES),
)
_PARSE_ONLY = {"use_default_graph_as_union": True, "default_graph": ox.NamedNode("urn:x:none")}
"""Arguments that pyoxigraph refuses together, once a text is parsed: nothing is planned."""
_KNOWN = re.compile(
    r"(?i:COALESCE|CONCAT|BNODE) \(|"  # a blank before the bracket: pyoxigraph knows these without one only
    r"[+-] [0-9.]|"  # a blank within a number: pyoxigraph lets it
    r"\b(?i:true|false)\b(?<!true)(?<!false)|"  # keywords in any case
    r"<[^<> ]*&&[^<> ]*>|"  # the longest terminal is an IRI (19.8)
    r"<<\( <<\(|<<\( [\"'0-9+-]"  # subjects of triple terms that are none (SPARQL 1.2, 19.8)
)
"""Where the two differ, and the grammar says what we say."""


def by_pyoxigraph(text: str) -> str:
    """Its message, empty where the text is accepted."""
    try:
        ox.Store().query(text, base_iri="http://e/", **_PARSE_ONLY)
    except SyntaxError as error:
        return str(error)
    except (ValueError, OSError, RuntimeError) as error:
        return "" if "default_graph" in str(error) else str(error)
    return ""


def by_us(text: str) -> str:
    """Our message, empty where the text is accepted."""
    try:
        read_sparql(text, "http://e/")
    except QueryError as error:
        return str(error)
    return ""


@st.composite
def changed(draw: st.DrawFn) -> str:
    """``altered`` by a drawn seed."""
    return altered(Random(draw(st.integers(0, 10**9))))


def altered(random: Random) -> str:
    """A text with up to two of its words gone, swapped, doubled or put in from another text."""
    words, others = ([token.text for token in tokens(random.choice(TEXTS))] for _ in range(2))
    for _ in range(random.randint(0, 2)):
        at, to = random.randrange(len(words)), random.randrange(len(words))
        match random.randint(0, 3):
            case 0:
                words[at], words[to] = words[to], words[at]
            case 1:
                words[at : at + 1] = [] if len(words) > 1 else words
            case 2:
                words.insert(at, random.choice(others))
            case _:
                words[at] = random.choice(others)
    return " ".join(words)


@examples(150, prove=20_000)
@given(changed())
def test_both_accept_the_same_texts(text: str) -> None:
    ours, theirs = by_us(text), by_pyoxigraph(text)
    if "Duplicated variable name" in theirs:
        return  # SELECT ?x ?x: the variables of SELECT are a set (18.2.4.4)
    if "variable that is unbound" in theirs or "aggregates belong in SELECT" in ours:
        return  # aliases in later expressions (SPARQL 1.2), aggregates in keys
    assert bool(ours) == bool(theirs) or _KNOWN.search(text), (ours, theirs)


def test_whole_texts_are_accepted_by_both() -> None:
    for text in TEXTS:
        assert by_us(text) == by_pyoxigraph(text) == "" or _KNOWN.search(" ".join(t.text for t in tokens(text))), text
