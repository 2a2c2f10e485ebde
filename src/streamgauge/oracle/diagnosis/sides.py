"""Queries rewritten for faults; the sides of a join: triple patterns that hang together by subject."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from streamgauge.model import algebra as al
from streamgauge.oracle.diagnosis.models import Case
from streamgauge.query.traversal import children, parts, with_pattern

Side: TypeAlias = tuple[al.TriplePattern, ...]

Rewrite: TypeAlias = Callable[[al.Pattern], al.Pattern]


def sides(form: al.QueryForm) -> tuple[Side, ...]:
    """The sides of every join of triple patterns; none when all patterns hang together."""
    sides_ = tuple(dict.fromkeys(side for bgp in _bgps(form.pattern) for side in connected(bgp.patterns)))
    return sides_ if len(sides_) > 1 else ()


def _bgps(pattern: al.Pattern) -> Iterator[al.BGP]:
    if isinstance(pattern, al.BGP):
        yield pattern
    for child in children(pattern):
        yield from _bgps(child)


def connected(patterns: Iterable[al.TriplePattern]) -> tuple[Side, ...]:
    """Triple patterns grouped: those of one subject, and those whose subject is another's object."""
    groups: list[list[al.TriplePattern]] = []
    for pattern in patterns:
        linked = [group for group in groups if any(_linked(pattern, other) for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*(other for group in linked for other in group), pattern])
    return tuple(tuple(group) for group in groups)


def _linked(left: al.TriplePattern, right: al.TriplePattern) -> bool:
    return right.subject in (left.subject, left.object) or right.object == left.subject


def of_side(side: Side) -> str:
    """A side as people name it: by its subject."""
    inner = {pattern.object for pattern in side}
    top = next((pattern.subject for pattern in side if pattern.subject not in inner), side[0].subject)
    return f"?{top.name}" if isinstance(top, al.Var) else str(top)


def variables(side: Side) -> frozenset[al.Var]:
    """The variables of a side."""
    return frozenset(var for pattern in side for var in al.triple_variables(pattern))


def rewritten(case: Case, change: Rewrite) -> Case:
    """The case whose query has every pattern changed after its parts, those in ``GRAPH`` too."""

    def again(pattern: al.Pattern) -> al.Pattern:
        return change(parts(pattern, again, lambda tree: tree))

    return case.asking(replace(case.query, form=with_pattern(case.query.form, again(case.query.form.pattern))))


def without(bgp: al.BGP, side: Side) -> al.BGP:
    """A BGP without a side."""
    return al.BGP(tuple(pattern for pattern in bgp.patterns if pattern not in side))
