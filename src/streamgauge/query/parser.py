"""SPARQL text to algebra, in one pass over its tokens; errors have the position of the wrong or unsupported part."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from streamgauge.formats.bounds import LOCAL, TextBounds
from streamgauge.model.algebra import QueryForm
from streamgauge.query.cursor import sequence_refusal
from streamgauge.query.prologue import Prologue, read_prologue
from streamgauge.query.reader import PlainQuery, QueryReader
from streamgauge.query.stamps import FUNCTION, TIMESTAMP, stamped
from streamgauge.query.text import EVENT_SEQUENCES, QueryError, Token, check_bounds, tokens
from streamgauge.query.versions import decoded, encoded_position, is_earlier

_UPDATES: Final = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")


def parse_sparql(text: str, base: str | None = None, bounds: TextBounds = LOCAL) -> QueryForm:
    """The algebra of a SPARQL 1.2 SELECT, ASK or CONSTRUCT; QueryError shows where it is wrong or refused.

    ``base`` resolves relative IRIs if the text declares no BASE; without either they are refused. An extension is
    ``timestamp(?s, ?p, ?o)``, by this keyword or by C-SPARQL's IRI. ``bounds`` limit the text's length and depth.
    """
    return read_sparql(text, base, bounds).answerable().form


def read_sparql(text: str, base: str | None = None, bounds: TextBounds = LOCAL) -> PlainQuery:
    """A query with its FROM clauses and its unsupported parts; QueryError for a text that is not SPARQL."""
    check_bounds(text, bounds)
    prologue = read_prologue(text, tokens(text), default=base)
    # In 1.1 an escape may produce a quote or a keyword, so it is replaced before the text is divided into tokens.
    if is_earlier(prologue.version) and "\\" in text and (plain := decoded(text)) != text:
        try:
            check_bounds(plain, bounds)
            return _read(plain, read_prologue(plain, tokens(plain), default=base))
        except QueryError as error:
            raise QueryError(error.what, text, encoded_position(text, error.position)) from None
    return _read(text, prologue)


def _read(text: str, prologue: Prologue) -> PlainQuery:
    words = tokens(text)
    if prologue.end == len(words):
        raise QueryError("the query is empty: write a SELECT, ASK or CONSTRUCT", text, len(text.rstrip()))
    if words[prologue.end].says(*_UPDATES):
        word = words[prologue.end]
        what = f"{word.text.upper()} is an update, but data changes by streams: write a SELECT, ASK or CONSTRUCT"
        raise QueryError(what, text, word.start)
    try:
        query = QueryReader(text, words, prologue).query()
    # ``MAX_WEIGHT`` and ``DEPTH`` bound the nesting for a usual stack; a caller may already be deep in its own.
    except RecursionError:
        raise QueryError("the query is nested too deeply: write it flatter", text, 0) from None
    try:
        stamped(query.form)
    except ValueError as error:
        # The rewriting works on the algebra, which has no positions: the first call is the best guess.
        raise QueryError(str(error), text, next(stamp_calls(words, prologue)).start) from None
    return query


def stamp_calls(words: Sequence[Token], prologue: Prologue) -> Iterator[Token]:
    """The tokens that begin calls of timestamp()."""
    for token, following in pairwise(words[prologue.end :]):
        if following.text == "(" and (
            token.says(TIMESTAMP) or (token.kind in ("iri", "name") and f"<{prologue.iri(token)}>" == FUNCTION)
        ):
            yield token


def refuse_sequences(text: str) -> None:
    """Raises QueryError at an operator or function of EP-SPARQL."""
    for token in tokens(text):
        if token.says(*EVENT_SEQUENCES):
            raise QueryError(sequence_refusal(token), text, token.start)
