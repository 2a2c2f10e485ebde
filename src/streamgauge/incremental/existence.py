"""The operators of OPTIONAL, MINUS and EXISTS for their sides, conditions and outputs."""

from collections.abc import Callable, Sequence

from streamgauge.incremental.bands import band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.equalities import equality
from streamgauge.incremental.extremes import BandDirection, PerExtreme
from streamgauge.incremental.matches import Matching, MatchOutput, Pair, PerGroup, PerKey, PerRow
from streamgauge.incremental.neighbours import PerNeighbour
from streamgauge.incremental.operators import Bag, Operator
from streamgauge.incremental.rewrite import Names, reads, scope
from streamgauge.incremental.row_joins import FALSE, TRUE, Domain, Merge, has_value
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row
from streamgauge.query.traversal import below_filters, bound, conjunction, conjuncts, reads_patterns


def late_condition(pattern: al.Pattern, outer: Names) -> tuple[al.Pattern, al.Expression | None]:
    """Split off the conditions at the top of an EXISTS that read variables bound only outside.

    They are the second result, tested on the merged rows, which have the values that SPARQL substitutes.
    """
    inner, parts = below_filters(pattern)
    # A condition inside EXISTS sees outer variables by substitution (SPARQL 1.1, 18.6), so a variable that the inner
    # pattern does not bind cannot be tested below the join.
    own = bound(inner)
    # Only variables that are certainly bound inside count as the pattern's own: with OPTIONAL inside, the outer value
    # would be substituted where the inner one is missing.
    late = [part for part in parts if not reads_patterns(part) and not reads(part) & outer <= own]
    if not late:
        return pattern, None
    for part in parts:
        if part not in late:
            inner = al.Filter(part, inner)
    return inner, conjunction(late)


def misses(condition: al.Expression, pattern: al.Pattern) -> bool:
    """Whether a condition, ``!BOUND(?w)``, keeps exactly the rows without a match of an OPTIONAL."""
    if not isinstance(pattern, al.LeftJoin) or (pattern.condition and reads_patterns(pattern.condition)):
        return False
    match condition:
        case al.Call(operator="!", arguments=(al.Call(operator=name, arguments=(al.Var() as variable,)),)):
            # The idiom for negation before SPARQL 1.1 had NOT EXISTS. The variable must come from the optional side
            # alone and be bound by every match, or rows with a match might also have it unbound.
            return name.upper() == "BOUND" and variable.name in bound(pattern.right) - scope(pattern.left)
    return False


def _nothing(_rows: Bag) -> Bag:
    return {}


def _themselves(rows: Bag) -> Bag:
    return rows


def optional(left: Operator, right: Operator, condition: al.Expression | None, effort: EvaluationBudget) -> Matching:
    """OPTIONAL, as ``LeftJoin(left, right, condition)`` of SPARQL 1.1, 18.5."""
    merge = Merge(left, right)
    padding = (None,) * (merge.width - len(left.variables))

    def alone(rows: Bag) -> Bag:
        return {row + padding: count for row, count in rows.items()}

    output = MatchOutput(alone, _nothing, merge.merged)
    if condition is None:
        kind = PerRow if merge.loose else PerKey
        return kind((left, right), merge, output, merge.variables, effort)
    tested = Batch(condition, merge.variables, effort)

    def passes(pairs: Sequence[Pair]) -> Sequence[bool]:
        return tested.holds([whole for _, whole, _ in pairs])

    sides, parts = (left.variables, right.variables), conjuncts(condition)
    # Both only narrow the candidates; ``passes`` decides each pair.
    equal = equality(parts, *sides) or band(parts, *sides)[0]
    return PerRow((left, right), merge, output, merge.variables, effort, passes, equal)


def without(
    left: Operator, right: Operator, names: frozenset[str], domain: Domain | None, effort: EvaluationBudget
) -> Matching:
    """MINUS: left rows without a compatible right row that shares a bound variable of ``names``.

    A variable that EXISTS has substituted does not count.
    """
    merge = Merge(left, right)
    places = {} if domain is None else domain.places
    key = -1 if domain is None else left.variables.index(domain.key)
    # MINUS ignores solutions with disjoint domains (SPARQL 1.1, 18.5): without a shared bound variable, nothing is
    # removed.
    shared = [(i, j, places.get(left.variables[i])) for i, j in merge.shared if left.variables[i] in names]

    def removes(row: Row, other: Row) -> bool:
        return any(
            row[i] is not None and other[j] is not None and (place is None or not has_value(row[key], place))
            for i, j, place in shared
        )

    def passes(pairs: Sequence[Pair]) -> Sequence[bool]:
        return [removes(row, other) for row, other, _ in pairs]

    if not shared:
        return PerKey((left, right), merge, MatchOutput(_themselves, _themselves), left.variables, effort)
    output = MatchOutput(_themselves, _nothing)
    if not places:
        if not merge.loose:
            return PerKey((left, right), merge, output, left.variables, effort)
        own = _both_bound(merge, left.variables, names)
        return PerGroup((left, right), merge, output, left.variables, effort, own)
    return PerRow((left, right), merge, output, left.variables, effort, passes)


def _both_bound(merge: Merge, variables: Sequence[str], names: frozenset[str]) -> Callable[[Row, Row], bool] | None:
    """A test, on loose columns, whether rows share a bound variable of ``names``; ``None`` if they always do."""
    if any(variables[pair[0]] in names for pair in merge.shared if pair not in merge.loose):
        return None
    places = [(at, j) for at, (i, j) in enumerate(merge.loose) if variables[i] in names]
    return lambda values, other: any(values[at] is not None and other[j] is not None for at, j in places)


def existing(
    left: Operator, right: Operator, wanted: object, effort: EvaluationBudget, condition: al.Expression | None = None
) -> Matching:
    """EXISTS (``wanted`` true) or NOT EXISTS (false): left rows with, or without, a compatible right row.

    Merged rows must satisfy ``condition``.
    """
    output = MatchOutput(_nothing, _themselves) if wanted else MatchOutput(_themselves, _nothing)
    return _matching(left, right, output, left.variables, effort, condition)


def marked(
    left: Operator, right: Operator, name: str, effort: EvaluationBudget, condition: al.Expression | None = None
) -> Matching:
    """EXISTS as a value: an additional column, true for left rows with a compatible right row, else false."""

    def alone(rows: Bag) -> Bag:
        return {(*row, FALSE): count for row, count in rows.items()}

    def met(rows: Bag) -> Bag:
        return {(*row, TRUE): count for row, count in rows.items()}

    return _matching(left, right, MatchOutput(alone, met), (*left.variables, name), effort, condition)


def _matching(
    left: Operator,
    right: Operator,
    output: MatchOutput,
    variables: tuple[str, ...],
    effort: EvaluationBudget,
    condition: al.Expression | None,
) -> Matching:
    merge, sides = Merge(left, right), (left, right)
    if condition is None:
        kind = PerGroup if merge.loose else PerKey
        return kind(sides, merge, output, variables, effort)
    tested = Batch(condition, merge.variables, effort)

    def passes(pairs: Sequence[Pair]) -> Sequence[bool]:
        return tested.holds([merge.merged(row, other) for row, other, _ in pairs])

    names, parts = (left.variables, right.variables), conjuncts(condition)
    equal = equality(parts, *names)
    between, rest = band(parts, *names)
    # The band must be the whole condition: the nearest value alone says nothing about a further condition.
    if between is not None and equal is None and not rest and not merge.loose:
        nearest = PerExtreme if BandDirection.has(between) else PerNeighbour
        return nearest(sides, merge, output, variables, effort, between)
    return PerRow(sides, merge, output, variables, effort, passes, equal or between)
