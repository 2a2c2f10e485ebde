"""A short notation for test cases: streams ``0: a p b. a q 5. | [other] 3..9: b q c.`` (ms), rows ``a 5 ; b -``."""

import re

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD, Row, Term, Triple

STREAM = "http://ex.org/streams/test"
"""The default stream of elements; ``[other]`` is its sibling."""

_NUMBERS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), datatype)
    for pattern, datatype in (
        (r"(-?\d+)", "integer"),
        (r"(-?\d+\.\d+)", "decimal"),
        (r"(-?\d+(?:\.\d+)?|-?INF|NaN)f", "float"),
        (r"(-?\d+(?:\.\d+)?[eE]-?\d+|-?INF|NaN)", "double"),
        (r"(true|false)", "boolean"),
    )
)
_LITERAL = re.compile(r"'([^']*)'(@[A-Za-z-]+|\^\^\w+)?")
_HEAD = re.compile(r"\s*(?:\[(\w+)\])?\s*(-?\d+)(?:\.\.(\d+))?\s*")


class NotationError(ValueError):
    """Invalid text in the notation; the sentence quotes it."""


def iri(name: str) -> str:
    """The IRI of a stream by its name in the notation."""
    return STREAM.removesuffix("test") + name


def term(text: str) -> Term:
    """``a`` an IRI, ``5`` an integer, ``5.5`` a decimal, ``5f`` a float, ``5e0`` and ``NaN`` doubles, ``true``.

    ``'x'``, ``'x'@en`` and ``'x'^^date`` are literals, ``_:b`` a blank node, ``<...>`` a full IRI. The result is
    canonical.
    """
    for pattern, datatype in _NUMBERS:
        if match := pattern.fullmatch(text):
            return _canonical(f'"{match[1]}"^^<{XSD}{datatype}>')
    if text.startswith("'"):
        match = _LITERAL.fullmatch(text)
        if not match:
            raise NotationError(f"{text!r} is not a literal: 'x', 'x'@en or 'x'^^date")
        mark = match[2] or ""
        return _canonical(f'"{match[1]}"' + (f"^^<{XSD}{mark[2:]}>" if mark.startswith("^^") else mark))
    return text if text.startswith(("_:", "<")) else f"<urn:{text}>"


def triples(text: str) -> tuple[Triple, ...]:
    """Triples written as ``a p b. a q 5.``."""
    # At dots before a blank or the end only, as decimals have dots too.
    triples_ = [tuple(map(term, part.split())) for part in re.split(r"\.(?:\s|$)", text) if part.strip()]
    for triple in triples_:
        if len(triple) != 3:
            raise NotationError(f"{text.strip()!r} has a triple of {len(triple)} terms")
    return tuple((s, p, o) for s, p, o in triples_)


def stream(text: str) -> tuple[StreamElement, ...]:
    """Elements in the written order, which is their system time.

    ``[other] 3..9: a p b.`` is on another stream and holds until 9.
    """
    return tuple(_element(part, sequence) for sequence, part in enumerate(filter(str.strip, text.split("|"))))


def _element(text: str, sequence: int) -> StreamElement:
    head, _, graph = text.partition(":")
    match = _HEAD.fullmatch(head)
    if not match:
        raise NotationError(f"{text.strip()!r} is not an element: TIME: TRIPLES, [STREAM] TIME..END: TRIPLES")
    name, time, until = match.groups()
    return StreamElement(iri(name or "test"), int(time), sequence, triples(graph), (), int(until) if until else None)


def rows(text: str) -> tuple[Row, ...]:
    """Rows separated by ``;``, terms by blanks; ``-`` is an unbound variable."""
    return tuple(tuple(map(_cell, row.split())) for row in text.split(";") if row.strip())


def _cell(text: str) -> Term | None:
    return None if text == "-" else term(text)


def _canonical(text: str) -> Term:
    return to_term(parse_term(text))
