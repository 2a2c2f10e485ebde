"""The rewriter: a query's static and dynamic parts, for any query (Taelman et al., ESWC 2016, 6.2).

What is joined at the bottom of a query is split: triple patterns and whole groups whose facts are all static make the
static part, the rest the dynamic one, GRAPH with it. What stands above the join (OPTIONAL, MINUS, BIND, aggregates ...)
is applied to the rows of both; its own patterns are read with the dynamic part, as are groups with patterns of both
kinds.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from streamgauge.incremental.conditions import conjuncts, reads_patterns
from streamgauge.incremental.normal import Normaliser, leaf, operands
from streamgauge.model import algebra as al
from streamgauge.query.rebuild import every_pattern
from streamgauge.servers.fragments.streaming.demand import demand
from streamgauge.servers.fragments.streaming.graphs import asks_graphs

IsStatic: TypeAlias = Callable[[al.TriplePattern], bool]


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a pattern; ``around`` puts what is above their join around another pattern.

    ``static`` is ``None`` where everything is dynamic.
    """

    dynamic: al.Pattern
    static: al.Pattern | None
    around: Callable[[al.Pattern], al.Pattern]

    @property
    def shared(self) -> tuple[al.Var, ...]:
        """The variables that connect the parts: what a static answer depends on."""
        if self.static is None:
            return ()
        return tuple(var for var in al.pattern_variables(self.static) if var in al.pattern_variables(self.dynamic))


def whole(pattern: al.Pattern) -> Split:
    """Everything is dynamic."""
    core, around = _core(Normaliser().pattern(pattern))
    return Split(core, None, around)


def split(pattern: al.Pattern, static: IsStatic) -> Split:
    """The parts of a pattern by what is said of its triple patterns."""
    core, around = _core(Normaliser().pattern(pattern))
    still, moving = _sorted(core, static)
    if not still or not moving:
        return Split(core, None, around)
    conditions = _conditions(around)
    parts = (_filtered(reduce(al.Join, each), conditions) for each in (moving, still))
    return Split(next(parts), next(parts), around)


def _core(pattern: al.Pattern) -> tuple[al.Pattern, Callable[[al.Pattern], al.Pattern]]:
    """What is joined at the bottom, and what is above it."""
    match pattern:
        case al.LeftJoin() | al.Minus():
            core, around = _core(pattern.left)
            return core, lambda inner: replace(pattern, left=around(inner))
        case al.BGP() | al.Join() | al.Union() | al.Values() | al.Graph():
            return pattern, lambda inner: inner
        case _:
            core, around = _core(pattern.pattern)
            return core, lambda inner: replace(pattern, pattern=around(inner))


def _sorted(core: al.Pattern, static: IsStatic) -> tuple[list[al.Pattern], list[al.Pattern]]:
    """The operands of a join, triple patterns of a block apart: static ones, dynamic ones."""
    still: list[al.Pattern] = []
    moving: list[al.Pattern] = []
    for part in operands(core):
        if asks_graphs(part):
            moving.append(part)
            continue
        found = leaf(part)
        if found is None or found.repeated is not None:
            (still if _is_still(part, static) else moving).append(part)
            continue
        for kind, wanted in ((still, True), (moving, False)):
            patterns = tuple(each for each in found.bgp.patterns if static(each) is wanted)
            kind += [al.BGP(patterns)] if patterns else []
    return still, moving


def _is_still(part: al.Pattern, static: IsStatic) -> bool:
    """Whether all of a group is static; inline data goes with the dynamic part, where it makes fewer rows."""
    if isinstance(part, al.Values):
        return False
    return all(static(each.pattern) for each in demand(part))


def _conditions(around: Callable[[al.Pattern], al.Pattern]) -> list[al.Expression]:
    """The FILTERs that stand right above the join."""
    mark = al.Values((), ())
    for pattern in every_pattern(around(mark)):
        if isinstance(pattern, al.Filter) and _is_above(pattern, mark):
            return [each for each in _all(pattern) if not reads_patterns(each)]
    return []


def _is_above(pattern: al.Pattern, mark: al.Pattern) -> bool:
    while isinstance(pattern, al.Filter):
        pattern = pattern.pattern
    return pattern is mark


def _all(pattern: al.Pattern) -> list[al.Expression]:
    found: list[al.Expression] = []
    while isinstance(pattern, al.Filter):
        found += conjuncts(pattern.condition)
        pattern = pattern.pattern
    return found


def _filtered(part: al.Pattern, conditions: Collection[al.Expression]) -> al.Pattern:
    """The part under those conditions that it alone decides; they stay above the join too."""
    sure = _sure(part)
    for each in conditions:
        if al.expression_variables(each) and al.expression_variables(each) <= sure:
            part = al.Filter(each, part)
    return part


def _sure(part: al.Pattern) -> frozenset[al.Var]:
    """Variables that every solution of a join binds: those of its blocks."""
    blocks = [each for each in operands(part) if isinstance(each, al.BGP)]
    return frozenset(var for each in blocks for var in al.pattern_variables(each))
