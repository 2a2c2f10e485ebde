"""Terms, triples, rows and streams as short text that keeps lexical forms (``formats.notation`` may not).

``a`` is <urn:a>, ``01`` "01"^^xsd:integer, ``1.50`` a decimal, ``1e0``, ``NaN``, ``INF`` doubles, ``5f``, ``NaNf``
floats, ``true`` a boolean, ``'x'`` a string, ``'x'@en``, ``'01'^^integer`` (or ``^^<iri>``), ``_:b``; no blanks inside.
"""

import re

from streamgauge.model.element import StreamElement
from tests.sparql.simple.values import XSD

PREFIXES = "PREFIX : <urn:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
STREAM = "http://ex.org/streams/test"
_KINDS = (
    (re.compile(r"([+-]?\d+)"), "integer"),
    (re.compile(r"([+-]?\d+\.\d*|[+-]?\.\d+)"), "decimal"),
    (re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|-?INF|NaN)f"), "float"),
    (re.compile(r"([+-]?\d+(?:\.\d+)?[eE][+-]?\d+|-?INF|NaN)"), "double"),
    (re.compile(r"(true|false)"), "boolean"),
)
_QUOTED = re.compile(r"'([^']*)'(?:(@[A-Za-z-]+)|\^\^(\w+|<[^>]*>))?")


def term(text: str) -> str:
    """One term."""
    for pattern, kind in _KINDS:
        if match := pattern.fullmatch(text):
            return f'"{match[1]}"^^<{XSD}{kind}>'
    if quoted := _QUOTED.fullmatch(text):
        body, tag, kind = quoted.groups()
        if kind and kind != "string":
            return f'"{body}"^^{kind if kind.startswith("<") else f"<{XSD}{kind}>"}'
        return f'"{body}"{(tag or "").lower()}'  # as every reader gives it (RDF 1.1, 3.3)
    if not re.fullmatch(r"<[^>]*>|_:\w+|[A-Za-z]\w*", text):
        raise ValueError(f"{text!r} is not a term")
    return text if text.startswith(("<", "_:")) else f"<urn:{text}>"


def triples(text: str) -> tuple[tuple[str, str, str], ...]:
    """``a p 1. a q 'x'.``: a full stop and a blank end a triple."""
    results = []
    for part in re.split(r"\.(?:\s+|$)", text):
        if part.strip():
            subject, predicate, item = map(term, part.split())
            results.append((subject, predicate, item))
    return tuple(results)


def rows(text: str) -> tuple[tuple[str | None, ...], ...]:
    """``a 1 ; b -``: rows apart by semicolons, ``-`` is unbound, ``()`` a row without columns."""
    parts = [part.split() for part in text.split(";") if part.strip()]
    return tuple(tuple(None if cell == "-" else term(cell) for cell in part if cell != "()") for part in parts)


def elements(text: str) -> tuple[StreamElement, ...]:
    """``0: a p 1. | [other] 3: b p 2.``: elements in the order of their system time."""
    results = []
    for sequence, part in enumerate(part for part in text.split("|") if part.strip()):
        head, _, body = part.partition(":")
        name, _, time = head.strip().rpartition("]")
        stream = STREAM.removesuffix("test") + name[1:].strip() if name else STREAM
        results.append(StreamElement(stream, int(time), sequence, triples(body)))
    return tuple(results)
