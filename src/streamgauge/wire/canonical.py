"""Canonical terms: what every evaluator and the oracle see.

pyoxigraph stores XSD literals by value ("76.0"^^xsd:float comes back as "76"), so every literal that enters
Streamgauge passes through a store once; what comes out is the canonical form.
"""

import re
from collections.abc import Iterable

import pyoxigraph as ox

from streamgauge.model.terms import Term, Triple

_IRI = re.compile(r"<[^\x00-\x20<>\"{}|^`\\]*>")
_BLANK = re.compile(r"_:[A-Za-z0-9]+")
_SUBJECT = ox.NamedNode("urn:streamgauge:canonical")


class Canonical:
    """Canonicalises terms, remembering literals already seen (at most ``limit`` of them)."""

    def __init__(self, limit: int = 1_000_000) -> None:
        self._known: dict[str, Term] = {}
        self._limit = limit

    def term(self, term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        """The canonical N-Triples string of a pyoxigraph term."""
        if isinstance(term, ox.Triple):
            return f"<<( {' '.join(self.triple(term))} )>>"
        text = str(term)
        if text[0] != '"':
            return text
        known = self._known.get(text)
        return known if known is not None else self._learn(text, term)

    def _learn(self, text: str, term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        store = ox.Store()
        store.add(ox.Quad(_SUBJECT, _SUBJECT, term))
        canonical = str(next(iter(store)).object)
        if len(self._known) >= self._limit:
            self._known.clear()
        self._known[text] = canonical
        return canonical

    def triple(self, triple: ox.Triple | ox.Quad) -> Triple:
        """The canonical form of a pyoxigraph triple or quad (its graph is dropped)."""
        return str(triple.subject), str(triple.predicate), self.term(triple.object)

    def triples(self, triples: Iterable[ox.Triple | ox.Quad]) -> tuple[Triple, ...]:
        """The canonical forms, in order."""
        return tuple(map(self.triple, triples))


def parse_term(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """The pyoxigraph term of an N-Triples string; ValueError says what is wrong with it."""
    if _IRI.fullmatch(text):
        return ox.NamedNode(text[1:-1])
    if _BLANK.fullmatch(text):
        return ox.BlankNode(text[2:])
    try:
        (quad,) = ox.parse(f"<urn:s> <urn:p> {text} .".encode(), format=ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"not an N-Triples term: {text[:120]}") from error
    term: ox.NamedNode | ox.BlankNode | ox.Literal = quad.object
    return term
