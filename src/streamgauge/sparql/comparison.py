"""Equality and order of terms (SPARQL 1.1, 15.1, 17.3 and 17.4.1.7)."""

from collections.abc import Sequence

from streamgauge.model.terms import Term


def same_term(left: Term, right: Term) -> bool:
    """sameTerm (17.4.1.8)."""
    raise NotImplementedError


def equal(left: Term, right: Term) -> bool | None:
    """``=``; ``None`` for an error."""
    raise NotImplementedError


def less(left: Term, right: Term) -> bool | None:
    """``<``; ``None`` for an error."""
    raise NotImplementedError


def ordered(left: Term | None, right: Term | None) -> int | None:
    """-1, 0 or 1 as ORDER BY (15.1) puts left before, beside or after right; ``None`` where SPARQL does not order."""
    raise NotImplementedError


def order_key(term: Term | None) -> tuple[object, ...]:
    """A sort key of a total order that extends ``ordered``."""
    raise NotImplementedError


def ranks(terms: Sequence[Term | None]) -> list[tuple[int, bool]]:
    """Each term's rank, and whether terms of that rank are equal (the next key decides) or just not ordered."""
    raise NotImplementedError
