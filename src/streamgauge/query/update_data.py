"""The triples of INSERT DATA and DELETE DATA, read as TriG: as many as any RDF text may have.

The text of the blocks stays on its lines, so that errors name the line of the update:

    PREFIX : <urn:>                         PREFIX : <urn:>
    INSERT DATA { :a :p 1                            :a :p 1 .
      GRAPH :g { :a :p 2 } . :b :p 3 }      GRAPH :g { :a :p 2 }  :b :p 3 .
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern
from typing import Final, TypeAlias

import pyoxigraph as ox

from streamgauge.formats.bounds import SERVED, BoundError, check_rdf
from streamgauge.formats.syntaxes import most_characters, reason
from streamgauge.model.fact import in_graph
from streamgauge.model.terms import Term, Triple
from streamgauge.query.templates import sections
from streamgauge.query.text import QueryError, Token, refusal

_DECLARING: Final = ("PREFIX", "BASE", "VERSION")
NewNode: TypeAlias = Callable[[str], Term]


def read_data(
    text: str, declared: Iterable[tuple[int, int]], blocks: Iterable[Sequence[Token]], fresh: NewNode | None
) -> tuple[Triple, ...]:
    """The facts of blocks of one kind after declarations at [start, end); blank nodes by ``fresh``, refused without it.

    QueryError names the line.
    """
    pieces = [(start, end, "") for start, end in declared]
    for block in blocks:
        _check(text, block)
        text = _lowered(text, block)
        pieces += _pieces(text, block)
    document = "".join(_placed(text, sorted(pieces)))
    try:
        check_rdf(document, ox.RdfFormat.TRIG, SERVED)
        return tuple(_facts(document, text, fresh))
    except BoundError as error:
        raise refusal(str(error), text, 0) from None
    except SyntaxError as error:
        line = min(error.lineno or 1, text.count("\n") + 1)
        raise QueryError(f"not RDF: {reason(error)}", text, line, 1) from None


def _check(text: str, block: Sequence[Token]) -> None:
    """QueryError for what TriG or a pattern may have, and data may not."""
    before = ""
    for token in block:
        if token.kind == "variable":
            raise refusal("data has no variables", text, token.start)
        if token.says(*_DECLARING) or (token.kind == "language" and before != "string"):
            raise refusal("declarations stand before the operation, not in its data", text, token.start)
        before = token.kind


def _lowered(text: str, block: Sequence[Token]) -> str:
    """The text with the keywords ``true`` and ``false`` as TriG writes them."""
    words = [token for token in block if token.says("TRUE", "FALSE") and not token.text.islower()]
    ends = [0, *(token.end for token in words)]
    kept = (text[end : token.start] + token.text.lower() for end, token in zip(ends, words, strict=False))
    return "".join((*kept, text[ends[-1] :])) if words else text


def _pieces(text: str, block: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """The places of the text of a block that TriG has too, and what TriG has after them."""
    for part in sections(text, block):
        yield (part.keyword, part.end, " } ") if part.graph else (part.start, part.end, " . ")


def _placed(text: str, pieces: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """The pieces of the text, each on its line."""
    cursor = 0
    for start, end, after in pieces:
        yield "\n" * text.count("\n", cursor, start) + " "
        yield text[start:end] + after
        cursor = end


def _facts(document: str, text: str, fresh: NewNode | None) -> Iterator[Triple]:
    room = most = most_characters(len(document))
    for quad in ox.parse(document, format=ox.RdfFormat.TRIG):
        terms = [intern(_term(term, fresh, text)) for term in (quad.subject, quad.predicate, quad.object)]
        room -= sum(map(len, terms))
        if room < 0:
            raise refusal(f"its terms have more than {most} characters in all: write fewer, or shorter ones", text, 0)
        triple = terms[0], terms[1], terms[2]
        if quad.graph_name == ox.DefaultGraph():
            yield triple
        elif isinstance(quad.graph_name, ox.NamedNode):
            yield in_graph(str(quad.graph_name), triple)
        else:
            raise refusal("GRAPH is followed by an IRI here", text, 0)


def _term(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple, fresh: NewNode | None, text: str) -> Term:
    if isinstance(term, ox.BlankNode):
        if fresh is None:
            raise refusal("a blank node names nothing here: write its genid IRI", text, 0)
        return fresh(str(term))
    if isinstance(term, ox.Triple):
        parts = (_term(part, fresh, text) for part in (term.subject, term.predicate, term.object))
        return f"<<( {' '.join(parts)} )>>"
    return str(term)
