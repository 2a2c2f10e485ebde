"""Terms, triples and rows: a term is its canonical N-Triples string, a triple a tuple of three."""

import re
from typing import Final, TypeAlias

Term: TypeAlias = str
"""An IRI in angle brackets, a blank node ``_:b``, or a literal, as N-Triples writes it, canonical."""

Triple: TypeAlias = tuple[Term, Term, Term]

Row: TypeAlias = tuple[Term | None, ...]
"""One solution mapping, in the order of the answer's variables; ``None`` where a variable is unbound."""

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_QUOTED: Final = {
    **{code: f"\\u{code:04X}" for code in (*range(0x20), 0x7F)},
    **{ord(character): f"\\{letter}" for letter, character in _LETTERS.items()},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def is_iri(term: Term) -> bool:
    """Whether the term is an IRI."""
    return term.startswith("<") and not term.startswith("<<(")


def is_triple(term: Term) -> bool:
    """Whether the term is a triple term (RDF 1.2)."""
    return term.startswith("<<(")


def is_blank(term: Term) -> bool:
    """Whether the term is a blank node."""
    return term.startswith("_:")


def is_literal(term: Term) -> bool:
    """Whether the term is a literal."""
    return term.startswith('"')


def triple_term(triple: Triple) -> Term:
    """The triple term (RDF 1.2) of a triple."""
    return f"<<( {' '.join(triple)} )>>"


_INSIDE: Final = re.compile(r'<<\(|\)>>|<[^<>\s]*>|_:[^\s]+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>]*>)?')


def triple_parts(term: Term) -> Triple:
    """The subject, predicate and object of a triple term; these may be triple terms themselves."""
    parts: list[Term] = []
    depth = begin = 0
    for found in _INSIDE.finditer(term, 3, len(term) - 3):
        if found.group() == "<<(":
            begin = begin if depth else found.start()
            depth += 1
            continue
        depth -= found.group() == ")>>"
        if not depth:
            parts.append(term[begin : found.end()] if found.group() == ")>>" else found.group())
    subject, predicate, item = parts
    return subject, predicate, item


def datatype(term: Term) -> str | None:
    """The datatype IRI of a literal (without brackets); ``None`` for a language-tagged one or no literal."""
    if not is_literal(term):
        return None
    if term.endswith('"'):
        return XSD + "string"
    close = term.rfind('"')
    return term[close + 4 : -1] if term.startswith("^^", close + 1) else None


def lexical(literal: Term) -> str:
    """The characters of a literal's lexical form, without quotes, escapes, language and datatype."""
    return unescaped(literal[1 : literal.rindex('"')])


def unescaped(text: str) -> str:
    """The text without its backslash escapes, as N-Triples and SPARQL have them."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _LETTERS.get(found[3], found[3])


def quoted(text: str) -> Term:
    """An N-Triples string literal, with the escapes of canonical N-Triples."""
    return f'"{text.translate(_QUOTED)}"' if not text.isprintable() or '"' in text or "\\" in text else f'"{text}"'
