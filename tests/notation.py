"""The tiny notation of stream cases: ``0: a p b. a q 5. | [other] 3..9: b q c.`` (times in ms)."""

import re

from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Term, Triple

STREAM = "http://ex.org/streams/test"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def term(text: str) -> Term:
    """``a`` an IRI, ``5`` an integer, ``5.5`` a decimal, ``5f`` a float, ``'x'`` a string, ``_:b`` a blank node."""
    if re.fullmatch(r"-?\d+", text):
        return f'"{text}"^^<{_XSD}integer>'
    if re.fullmatch(r"-?\d+\.\d+", text):
        return f'"{text}"^^<{_XSD}decimal>'
    if re.fullmatch(r"-?\d+f", text):
        return f'"{text[:-1]}"^^<{_XSD}float>'
    if text.startswith("'"):
        return f'"{text[1:-1]}"'
    return text if text.startswith("_:") else f"<urn:{text}>"


def triples(text: str) -> tuple[Triple, ...]:
    """Triples as ``a p b. a q 5.``."""
    found = [tuple(map(term, part.split())) for part in re.split(r"\.(?:\s|$)", text) if part.strip()]
    assert all(len(triple) == 3 for triple in found), text
    return tuple(found)


def stream(text: str) -> tuple[StreamElement, ...]:
    """Elements in the order in which they are written, which is their system time.

    ``[other] 3..9: a p b.`` is on another stream and holds until 9.
    """
    elements = []
    for sequence, part in enumerate(filter(str.strip, text.split("|"))):
        head, _, graph = part.partition(":")
        found = re.fullmatch(r"\s*(?:\[(\w+)\])?\s*(-?\d+)(?:\.\.(\d+))?\s*", head)
        assert found, part
        name, time, until = found.groups()
        iri = STREAM.replace("test", name or "test")
        elements.append(StreamElement(iri, int(time), sequence, triples(graph), (), int(until) if until else None))
    return tuple(elements)
