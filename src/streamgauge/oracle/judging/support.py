"""Values that need not be supported: xsd:integer and xsd:decimal of more than 18 digits (F&O, 6.2; XSD, 5.4).

Where an answer differs and such a number was compared or counted with, nobody can tell whether the answer is wrong: an
error and the exact value are both conforming. xsd:long and its like are finite, so all of their values are supported.
A literal of ``BEYOND`` is a computed integer of that size: what limited implementations may give in its place.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.terms import XSD, Term, Triple, datatype
from streamgauge.oracle.judging.intervals import DIGITS, OpenError, read, representable
from streamgauge.query.traversal import every_expression, every_pattern, expressions
from streamgauge.sparql.values import DECIMAL, FLOAT, INTEGER

REASON: Final = f"a number of more than {DIGITS} digits, which implementations need not support"
BEYOND: Final = "urn:streamgauge:beyond"
_WIDTHS: Final = range(61, 129)
"""Bits of signed integers that hold 18 digits, which implementations compute modulo 2^n."""
_UNBOUNDED: Final = frozenset(
    XSD + name for name in ("integer", "decimal", "positiveInteger", "negativeInteger", "nonPositiveInteger",
                            "nonNegativeInteger")
)  # fmt: skip


def supported(kind: int, term: Term) -> bool:
    """Whether every implementation has to support a literal of this kind."""
    number = read(term)
    if number is None or kind >= FLOAT or datatype(term) not in _UNBOUNDED:
        return True
    return abs(number.value) < 10**DIGITS if kind == INTEGER else representable(number.value, DECIMAL)


def refuse(term: Term) -> None:
    """OpenError for a literal that need not be supported; one of at most ``DIGITS`` characters has no more digits."""
    if term.rfind('"') <= DIGITS + 1:
        return
    number = read(term)
    if number is not None and number.exact and not supported(number.kind, term):
        raise OpenError(f"{term.partition('^^')[0]} is {REASON}")


def integer(term: Term) -> int | None:
    """An integer of any size, also one beyond what implementations need to support; ``None`` for any other term."""
    if is_beyond(term):
        return int(term[1 : term.rindex('"')])
    number = read(term)
    return int(number.value) if number is not None and number.kind == INTEGER else None


def beyond(value: int) -> Term:
    """The literal of an integer that need not be supported."""
    return f'"{value}"^^<{BEYOND}>'


def is_beyond(term: Term | None) -> bool:
    """Whether a term is such a literal."""
    return term is not None and term.endswith(f"^^<{BEYOND}>")


def is_limited(term: Term) -> bool:
    """Whether a number need not be supported: one beyond, or a stored one of more digits."""
    number = read(term)
    return is_beyond(term) or (number is not None and number.exact and not supported(number.kind, term))


def allows(term: Term, actual: Term | None) -> bool:
    """Whether an implementation may give ``actual`` for an integer beyond: its value, that modulo 2^n, an error.

    F&O, 6.2, lets a result be modulo the largest integer; that is taken to be a signed one of 61 to 128 bits.
    """
    value, number = integer(term), read(actual or "")
    if actual is None or value is None or number is None:
        return actual is None
    return number.special is None and number.value in {value, *(_wrapped(value, bits) for bits in _WIDTHS)}


def _wrapped(value: int, bits: int) -> int:
    """Two's complement: 2^63 is -2^63 in 64 bits."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


class Operands:
    """The stored terms that a query's expressions read, as far as its triple patterns tell."""

    def __init__(self, form: a.QueryForm) -> None:
        used = set(_used(form.pattern))
        found = [
            triple.predicate
            for pattern in every_pattern(form.pattern)
            if isinstance(pattern, a.BGP)
            for triple in pattern.patterns
            if triple.object in used
        ]
        self._any = any(not isinstance(predicate, str) for predicate in found)
        self._predicates = frozenset(predicate for predicate in found if isinstance(predicate, str))

    def refuse(self, triples: Iterable[Triple]) -> None:
        """OpenError where one of the terms need not be supported."""
        if not self._any and not self._predicates:
            return
        for _subject, predicate, term in triples:
            if self._any or predicate in self._predicates:
                refuse(term)


def _used(pattern: a.Pattern) -> Iterator[a.Var]:
    """The variables that expressions, aggregates and keys read, not counting those of EXISTS patterns."""
    for each in every_pattern(pattern):
        for tree in expressions(each):
            yield from (part for part in every_expression(tree) if isinstance(part, a.Var))
