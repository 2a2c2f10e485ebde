"""Queries rewritten for faults, and the sides of a join: triple patterns connected by a subject."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from streamgauge.model import algebra as al
from streamgauge.oracle.diagnosis.models import Case
from streamgauge.query.traversal import children, parts, with_pattern

Side: TypeAlias = tuple[al.TriplePattern, ...]

Rewrite: TypeAlias = Callable[[al.Pattern], al.Pattern]


def sides(form: al.QueryForm) -> tuple[Side, ...]:
    """The sides of all joins of triple patterns; none if all patterns are connected."""
    sides_ = tuple(dict.fromkeys(side for bgp in _bgps(form.pattern) for side in connected(bgp.patterns)))
    return sides_ if len(sides_) > 1 else ()


def _bgps(pattern: al.Pattern) -> Iterator[al.BGP]:
    if isinstance(pattern, al.BGP):
        yield pattern
    for child in children(pattern):
        yield from _bgps(child)


def connected(patterns: Iterable[al.TriplePattern]) -> tuple[Side, ...]:
    """Groups of triple patterns that share a subject, or of which one's object is the other's subject."""
    groups: list[list[al.TriplePattern]] = []
    for pattern in patterns:
        # One pattern may connect several groups, which then become one.
        linked = [group for group in groups if any(_linked(pattern, other) for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*(other for group in linked for other in group), pattern])
    return tuple(tuple(group) for group in groups)


def _linked(left: al.TriplePattern, right: al.TriplePattern) -> bool:
    return right.subject in (left.subject, left.object) or right.object == left.subject


def of_side(side: Side) -> str:
    """The name of a side in sentences: its outermost subject."""
    inner = {pattern.object for pattern in side}
    top = next((pattern.subject for pattern in side if pattern.subject not in inner), side[0].subject)
    return f"?{top.name}" if isinstance(top, al.Var) else str(top)


def variables(side: Side) -> frozenset[al.Var]:
    """The variables of a side."""
    return frozenset(var for pattern in side for var in al.triple_variables(pattern))


def rewritten(case: Case, change: Rewrite) -> Case:
    """The case with every pattern of its query replaced by ``change``, innermost first."""

    def again(pattern: al.Pattern) -> al.Pattern:
        return change(parts(pattern, again, lambda tree: tree))

    return case.asking(replace(case.query, form=with_pattern(case.query.form, again(case.query.form.pattern))))


def without(bgp: al.BGP, side: Side) -> al.BGP:
    """The BGP without the patterns of a side."""
    return al.BGP(tuple(pattern for pattern in bgp.patterns if pattern not in side))
