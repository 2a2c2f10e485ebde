"""Terms, triples and rows: a term is its canonical N-Triples string, a triple a tuple of three."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, TypeAlias

Term: TypeAlias = str
"""An IRI in angle brackets, a blank node ``_:b``, or a literal, in canonical N-Triples."""

Triple: TypeAlias = tuple[Term, Term, Term]

Row: TypeAlias = tuple[Term | None, ...]
"""One solution mapping, in the order of the answer's variables; ``None`` where a variable is unbound."""

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
"""The property from a reifier to a triple term (RDF 1.2)."""

_PLACES: Final = ("subject", "predicate", "object")
_EXPECTED: Final = ("<IRI> or _:name", "<IRI>", '<IRI>, _:name, "literal" or <<( triple term )>>')

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_QUOTED: Final = {
    **{code: f"\\u{code:04X}" for code in (*range(0x20), 0x7F)},
    **{ord(character): f"\\{letter}" for letter, character in _LETTERS.items()},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def rows_of(columns: Sequence[Iterable[Term | None]], count: int) -> Iterator[Row]:
    """``count`` rows from their columns; a projection of nothing has rows without columns."""
    return zip(*columns, strict=True) if columns else repeat((), count)


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


def is_triple_of(subject: Term, predicate: Term, item: Term) -> bool:
    """Whether the terms are a triple of RDF: no literal or triple term as subject, an IRI as predicate (1.2, 3.1)."""
    placed = subject.startswith(("<", "_:")) and predicate.startswith("<") and item.startswith(("<", '"', "_:"))
    return placed and not (subject.startswith("<<(") or predicate.startswith("<<("))


def misplaced(terms: Sequence[object]) -> str:
    """The fault of terms that are not a triple, as in ``has 2 terms: ...``; empty for a triple."""
    if len(terms) != len(_PLACES):
        return f"has {len(terms)} terms: subject, predicate and object are expected"
    for place, expected, term in zip(_PLACES, _EXPECTED, terms, strict=True):
        if not isinstance(term, str):
            return f"has the {place} {term!r:.80}: the text of an N-Triples term is expected"
        standing = is_iri(term) or (place != "predicate" and is_blank(term))
        if not standing and (place != "object" or not (is_literal(term) or is_triple(term))):
            return f"has the {place} {term:.80}: {expected} is expected"
    return ""


def triple_term(triple: Triple) -> Term:
    """The triple term (RDF 1.2) of a triple."""
    return f"<<( {' '.join(triple)} )>>"


_INSIDE: Final = re.compile(r'<<\(|\)>>|<[^<>\s]*>|_:[^\s()<>]+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>]*>)?')


def triple_parts(term: Term) -> Triple:
    """The subject, predicate and object of a triple term; these may be triple terms themselves."""
    parts: list[Term] = []
    depth = begin = 0
    # By tokens, as a literal may contain spaces and brackets.
    for match in _INSIDE.finditer(term, 3, len(term) - 3):
        if match.group() == "<<(":
            begin = begin if depth else match.start()
            depth += 1
            continue
        depth -= match.group() == ")>>"
        if not depth:
            parts.append(term[begin : match.end()] if match.group() == ")>>" else match.group())
    subject, predicate, item = parts
    return subject, predicate, item


def triple_end(text: str, begin: int) -> int:
    """The position behind the triple term that begins at ``begin``; -1 if it has no end."""
    depth = 0
    for part in _INSIDE.finditer(text, begin):
        depth += {"<<(": 1, ")>>": -1}.get(part[0], 0)
        if not depth:
            return part.end()
    return -1


def by_parts(term: Term, write: Callable[[Term], str]) -> str:
    """A term as ``write`` writes it, a triple term by its parts: ``<<( s p o )>>``."""
    if not is_triple(term):
        return write(term)
    subject, predicate, item = (by_parts(part, write) for part in triple_parts(term))
    return triple_term((subject, predicate, item))


def blank_nodes(term: Term) -> list[Term]:
    """The blank nodes of a term, itself or within a triple term, in order."""
    if is_blank(term):
        return [term]
    if not is_triple(term) or "_:" not in term:
        return []
    return [part[0] for part in _INSIDE.finditer(term, 3, len(term) - 3) if is_blank(part[0])]


def with_blank_nodes(term: Term, name: Callable[[Term], Term]) -> Term:
    """A term with other names of its blank nodes."""
    if not is_triple(term):
        return name(term) if is_blank(term) else term
    return by_parts(term, lambda part: name(part) if is_blank(part) else part) if "_:" in term else term


def datatype(term: Term) -> str | None:
    """The datatype IRI of a literal (without brackets); ``None`` for a language-tagged one or no literal."""
    if not is_literal(term):
        return None
    if term.endswith('"'):
        return XSD + "string"
    # The last quote ends the lexical form: neither language tags nor IRIs contain one.
    close = term.rfind('"')
    return term[close + 4 : -1] if term.startswith("^^", close + 1) else None


def lexical(literal: Term) -> str:
    """The characters of a literal's lexical form, without quotes, escapes, language and datatype."""
    return unescaped(literal[1 : literal.rindex('"')])


def plain(term: Term) -> str:
    """A term as in SPARQL 1.1's CSV results: a bare IRI, the text of a literal; a triple term unchanged."""
    return lexical(term) if is_literal(term) else term[1:-1] if is_iri(term) else term


def unescaped(text: str) -> str:
    """The text without its backslash escapes, as N-Triples and SPARQL have them."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _LETTERS.get(match[3], match[3])


def quoted(text: str) -> Term:
    """An N-Triples string literal, with the escapes of canonical N-Triples."""
    # ``isprintable`` is false for every control character; the three tests spare most literals the translation.
    return f'"{text.translate(_QUOTED)}"' if not text.isprintable() or '"' in text or "\\" in text else f'"{text}"'
