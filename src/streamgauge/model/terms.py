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
