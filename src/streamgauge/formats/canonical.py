"""Terms as canonical N-Triples text, the form in which every evaluator and the oracle receive them.

The syntax is canonical, the literal is unchanged: ``"01"^^xsd:integer`` and ``"1"^^xsd:integer`` are two terms (RDF 1.1
Concepts, section 3.3). pyoxigraph's parsers and ``ox.Literal`` preserve the lexical form; its store does not.
"""

import re
from collections.abc import Iterable

import pyoxigraph as ox

from streamgauge.formats.bounds import check_turtle
from streamgauge.model.terms import Term, Triple

_IRI = re.compile(r"<[^\x00-\x20<>\"{}|^`\\]*>")
_BLANK = re.compile(r"_:[A-Za-z0-9]+")
_SUBJECT = ox.NamedNode("urn:streamgauge:canonical")


def to_term(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
    """The N-Triples string of a pyoxigraph term.

    Escapes are those of canonical N-Triples, xsd:string is omitted, language tags are in lower case (RDF 1.1, 3.3,
    allows that); the lexical form is preserved.
    """
    return f"<<( {' '.join(to_triple(term))} )>>" if isinstance(term, ox.Triple) else str(term)


def to_triple(triple: ox.Triple | ox.Quad) -> Triple:
    """The N-Triples strings of a pyoxigraph triple or quad (its graph is dropped)."""
    return str(triple.subject), str(triple.predicate), to_term(triple.object)


def to_triples(triples: Iterable[ox.Triple | ox.Quad]) -> tuple[Triple, ...]:
    """The N-Triples strings of triples, in order."""
    return tuple(map(to_triple, triples))


class Canonical:
    """The form in which pyoxigraph writes a literal's value, for computed values; caches ``limit`` literals.

    Not for input, whose lexical forms are preserved.
    """

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
        canonical = self._known.get(text)
        return canonical if canonical is not None else self._learn(text, term)

    def _learn(self, text: str, term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        # Only the store canonicalises values, so the literal goes through one.
        store = ox.Store()
        store.add(ox.Quad(_SUBJECT, _SUBJECT, term))
        canonical = str(next(iter(store)).object)
        if len(self._known) >= self._limit:
            # All at once: an order of use would cost at every look-up, and a cache of a million is full only after
            # that many distinct literals.
            self._known.clear()
        self._known[text] = canonical
        return canonical

    def triple(self, triple: ox.Triple | ox.Quad) -> Triple:
        """The canonical form of a pyoxigraph triple or quad (its graph is dropped)."""
        return str(triple.subject), str(triple.predicate), self.term(triple.object)

    def triples(self, triples: Iterable[ox.Triple | ox.Quad]) -> tuple[Triple, ...]:
        """The canonical forms, in order."""
        return tuple(map(self.triple, triples))


_VALUES = Canonical(100_000)


def value_text(term: Term) -> str:
    """The lexical form, without quotes, in which pyoxigraph writes a literal's value: ``75`` for ``"+075"``.

    For reading numbers and times in any form. An invalid literal is returned unchanged, escapes stay. ValueError for a
    term that is not a literal.
    """
    value = _VALUES.term(parse_term(term))
    if value[:1] != '"':
        raise ValueError(f"not a literal: {term[:120]}")
    return value[1 : value.rindex('"')]


def parse_term(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """The pyoxigraph term of an N-Triples string; ValueError quotes an invalid one."""
    # The constructors are faster than the parser, which knows every form.
    if _IRI.fullmatch(text):
        return ox.NamedNode(text[1:-1])
    if _BLANK.fullmatch(text):
        return ox.BlankNode(text[2:])
    # Triple terms recurse in the parser.
    if "<<" in text:
        check_turtle(text)
    try:
        (quad,) = ox.parse(f"<urn:s> <urn:p> {text} .".encode(), format=ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"not an N-Triples term: {text[:120]}") from error
    term: ox.NamedNode | ox.BlankNode | ox.Literal = quad.object
    return term
