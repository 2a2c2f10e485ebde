"""Terms, triples and rows: a term is its canonical N-Triples string, a triple a tuple of three."""

from typing import TypeAlias

Term: TypeAlias = str
"""An IRI in angle brackets, a blank node ``_:b``, or a literal, as N-Triples writes it, canonical."""

Triple: TypeAlias = tuple[Term, Term, Term]

Row: TypeAlias = tuple[Term | None, ...]
"""One solution mapping, in the order of the answer's variables; ``None`` where a variable is unbound."""

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def is_iri(term: Term) -> bool:
    """Whether the term is an IRI."""
    return term.startswith("<") and not term.startswith("<<")


def is_blank(term: Term) -> bool:
    """Whether the term is a blank node."""
    return term.startswith("_:")


def is_literal(term: Term) -> bool:
    """Whether the term is a literal."""
    return term.startswith('"')


def datatype(term: Term) -> str | None:
    """The datatype IRI of a literal (without brackets); ``None`` for a language-tagged one or no literal."""
    if not is_literal(term):
        return None
    if term.endswith('"'):
        return XSD + "string"
    close = term.rfind('"')
    return term[close + 4 : -1] if term.startswith("^^", close + 1) else None
