"""Blank nodes under names that hold outside their document (RDF 1.1 Concepts, 3.5: skolemisation)."""

import re
from typing import TypeVar

from streamgauge.model.terms import Term

_PATH = "/.well-known/genid/"
_WITHIN = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>\s]*>|_:([A-Za-z0-9]+)')

Placed = TypeVar("Placed")


def named(term: Term, base: str) -> Term:
    """The term with an IRI below ``base`` for each blank node, those in a triple term too."""
    if term.startswith("_:"):
        return f"<{base}{_PATH}{term[2:]}>"
    if term.startswith("<<") and "_:" in term:
        return _WITHIN.sub(lambda found: named(found[0], base), term)
    return term


def unnamed(node: Placed, base: str) -> Placed | Term:
    """The blank node that an IRI was given for; anything else as it is."""
    start = f"<{base}{_PATH}"
    if isinstance(node, str) and node.startswith(start) and node[len(start) : -1].isalnum():
        return f"_:{node[len(start) : -1]}"
    return node
