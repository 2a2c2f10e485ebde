"""Values that SPARQL leaves open, as literals that hold all that are legal: SAMPLE's choice, GROUP_CONCAT's order.

SAMPLE over 1, 2                        1 or 2
GROUP_CONCAT over "a", "b c" by " "     "a b c" or "b c a"; not "a c b"
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.terms import XSD, Term, datatype

CHOICE: Final = "urn:streamgauge:choice"
PIECES: Final = "urn:streamgauge:pieces"
_CANONICAL: Final = Canonical()


def choice(terms: Iterable[Term]) -> Term:
    """Any one of these terms."""
    return str(ox.Literal(json.dumps(sorted(set(terms))), datatype=ox.NamedNode(CHOICE)))


def pieces(strings: Sequence[str], separator: str) -> Term:
    """These strings, joined in any order; a plain literal where every order gives the same."""
    if len(set(strings)) < 2:
        return str(ox.Literal(separator.join(strings)))
    return str(ox.Literal(json.dumps([separator, *sorted(strings)]), datatype=ox.NamedNode(PIECES)))


def is_open(term: Term | None) -> bool:
    """Whether a literal holds several legal values."""
    return term is not None and (term.endswith(f"<{CHOICE}>") or term.endswith(f"<{PIECES}>"))


def options(term: Term) -> tuple[Term, ...]:
    """The terms of a choice; the term itself for any other."""
    return _held(term) if term.endswith(f"<{CHOICE}>") else (term,)


def one_of(term: Term) -> Term:
    """A legal value: the least of a choice, the pieces in order."""
    if term.endswith(f"<{CHOICE}>"):
        return min(_held(term))
    separator, *strings = _held(term)
    return _CANONICAL.term(ox.Literal(separator.join(strings)))


def allows(term: Term, actual: Term | None) -> bool:
    """Whether a received term is one of the legal values."""
    if actual is None:
        return False
    if term.endswith(f"<{CHOICE}>"):
        return actual in options(term)
    if datatype(actual) != XSD + "string":
        return False
    separator, *strings = _held(term)
    return joins(parse_term(actual).value, strings, separator)


@lru_cache(maxsize=4096)
def _held(term: Term) -> tuple[str, ...]:
    return tuple(json.loads(parse_term(term).value))


def joins(text: str, strings: Sequence[str], separator: str) -> bool:
    """Whether ``text`` is these strings in some order with the separator between them, each used once.

    The text is consumed from the left, longest string first; states that failed are not tried again.
    """
    kinds = sorted(set(strings), key=len, reverse=True)
    counts = Counter(strings)
    if len(text) != sum(map(len, strings)) + len(separator) * (len(strings) - 1):
        return False
    failed: set[tuple[int, ...]] = set()
    stack = [(0, tuple(counts[kind] for kind in kinds))]
    while stack:
        place, left = stack.pop()
        if (place, *left) in failed:
            continue
        failed.add((place, *left))
        for index in reversed(range(len(kinds))):
            after = place + len(kinds[index])
            rest = (*left[:index], left[index] - 1, *left[index + 1 :])
            if left[index] and text.startswith(kinds[index], place):
                if not any(rest):
                    return True
                if text.startswith(separator, after):
                    stack.append((after + len(separator), rest))
    return False
