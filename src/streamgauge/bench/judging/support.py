"""What implementations need not support: xsd:integer and xsd:decimal of more than 18 digits (F&O, 6.2; XSD, 5.4).

Where an answer differs and such a number was compared or counted with, nobody can tell whether the answer is wrong: an
error and the exact value are both conforming. xsd:long and its like are finite, so all of their values are supported.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from streamgauge.bench.judging.intervals import DIGITS, OpenError, read, representable
from streamgauge.model import algebra as a
from streamgauge.model.terms import XSD, Term, Triple, datatype
from streamgauge.query.rebuild import every_expression, every_pattern, expressions
from streamgauge.sparql.values import DECIMAL, FLOAT, INTEGER

REASON: Final = f"a number of more than {DIGITS} digits, which implementations need not support"
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
    """OpenError for a literal that need not be supported."""
    number = read(term)
    if number is not None and number.exact and not supported(number.kind, term):
        raise OpenError(f"{term.partition('^^')[0]} is {REASON}")


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
