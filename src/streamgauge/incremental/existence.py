"""The operators of OPTIONAL, MINUS and EXISTS, and EXISTS under a ``Band``, which only needs neighbouring values.

The right values that match a left value form an interval. A left row that matches ?w and any other right value
therefore matches a neighbour of ?w, too: when ?w is added or removed, only the left rows that match ?w and neither
neighbour begin or cease to meet a row. Both ends of their interval are found by search, however many rows the key has.


A worked example: the greatest reading of a sensor, ``?o :value ?v FILTER NOT EXISTS { ?p :value ?w FILTER(?w > ?v) }``,
over the values 3, 5 and 9. 7 is added on the right: 3 and 5 match it, and its neighbour 9 too, so no row changes. 9 is
removed: 3, 5 and 7 match it, 3 and 5 also its neighbour 7, so only 7 becomes the greatest.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from streamgauge.incremental.bands import LEFT, RIGHT, Band, band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch, test
from streamgauge.incremental.crossovers import FEW_ROWS, SCANS
from streamgauge.incremental.equalities import equality
from streamgauge.incremental.matches import Matching, MatchOutput, Pair, PerGroup, PerKey, PerRow
from streamgauge.incremental.operators import Bag, Key, Operator, add_all
from streamgauge.incremental.ordered_rows import BandSearch, OrderedIndex, OrderedRows, ValueRun
from streamgauge.incremental.rewrite import Names, reads, scope
from streamgauge.incremental.row_joins import FALSE, TRUE, Domain, Merge, has_value
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term
from streamgauge.query.traversal import bound, conjuncts, reads_patterns

_AT_ONCE: Final = SCANS + 1


class PerNeighbour(Matching):
    """Whether a row meets any row of its key under a band, decided by the order of values.

    Keys with few rows, and values that cannot be sorted, are tested one by one.
    """

    _lefts: OrderedIndex
    _rights: OrderedIndex

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        merge: Merge,
        output: MatchOutput,
        variables: tuple[str, ...],
        effort: EvaluationBudget,
        band: Band,
    ) -> None:
        super().__init__(sides, merge, output, variables, effort, band)
        self._holds = test(band.condition, (LEFT.name, RIGHT.name))

    def _met_by(self, right: Bag, change: Bag) -> None:
        """Process additions before removals, so that no left row changes twice."""
        if not self._lefts:
            self._rights.add(right)
            return
        begun, ceased = dict[Row, int](), dict[Row, int]()
        for row, count in right.items():
            if count > 0:
                begun.update(self._unmet(row))
                self._rights.add({row: count})
        for row, count in right.items():
            if count < 0:
                self._rights.add({row: count})
                ceased.update(self._unmet(row))
        for rows, met in ((begun, True), (ceased, False)):
            if rows:
                self._turn(change, rows, met)

    def _meet(self, left: Bag, change: Bag) -> None:
        met, alone = dict[Row, int](), dict[Row, int]()
        rights, key_of, value = self._rights, self._lefts.key, self._lefts.own
        for row, count in left.items():
            (met if rights and self._is_met(key_of(row), value(row)) else alone)[row] = count
        add_all(change, self._output.met(met))
        add_all(change, self._output.alone(alone))
        self._lefts.add(left)

    def _is_met(self, key: Key, term: Term | None) -> bool:
        """Whether a left value matches any current right value."""
        rows = self._rights.get(key)
        if term is None or not rows:
            return False
        ordered = self._ordered(self._rights, key)
        if ordered is not None and self._rights.has_place(term):
            if any(ordered.search.reaches(run, term) for run in ordered.runs.values() if run.order):
                return True
            rows = ordered.odd
        self._effort.spend(len(rows))
        return any(self._passes(term, self._rights.own(row)) for row in rows)

    def _unmet(self, right: Row) -> Iterator[tuple[Row, int]]:
        """The left rows, with their counts, that match this right row and no current one."""
        key, term = self._rights.key(right), self._rights.own(right)
        rows = self._lefts.get(key)
        if term is None or not rows:
            return
        lefts, rights = self._ordered(self._lefts, key), self._ordered(self._rights, key)
        if lefts is not None and self._lefts.has_place(term):
            neighbours = [] if rights is None else rights.around(term)
            for run in lefts.runs.values() if rights is None or not rights.covers(term) else ():
                for bag in _beside(run, lefts.search, term, neighbours or ()):
                    yield from bag.items() if neighbours is not None else self._tested(bag, key, None)
            rows = lefts.odd
        yield from self._tested(rows, key, term)

    def _tested(self, rows: Bag, key: Key, term: Term | None) -> Iterator[tuple[Row, int]]:
        """The given left rows that match no current right row, and match ``term`` if it is not ``None``."""
        self._effort.spend(len(rows))
        for row, count in rows.items():
            value = self._lefts.own(row)
            if (term is None or self._passes(value, term)) and not self._is_met(key, value):
                yield row, count

    def _passes(self, left: Term | None, right: Term | None) -> bool:
        return left is not None and right is not None and self._holds(left, right)

    def _ordered(self, index: OrderedIndex, key: Key) -> OrderedRows | None:
        """The sorted rows of a key, if either side has many."""
        rows = index.bags.get(key)
        if rows is None and key not in index.single:
            return None
        if len(self._lefts.get(key)) <= FEW_ROWS and len(self._rights.get(key)) <= FEW_ROWS:
            return None
        return index.ordered(key, _AT_ONCE)


def _beside(run: ValueRun, search: BandSearch, term: Term, neighbours: Sequence[Term]) -> Iterator[Bag]:
    """The rows of a run that match a value and none of its neighbours."""
    start, end = search.span(run, term)
    spans = [search.clipped(run, neighbour, start, end) for neighbour in neighbours] if start < end else []
    for first, last in sorted(spans):
        if first < last:
            yield from run.between(start, max(start, first))
            start = max(start, last)
    yield from run.between(start, end)


def late_condition(pattern: al.Pattern, outer: Names) -> tuple[al.Pattern, al.Expression | None]:
    """Split off the conditions at the top of an EXISTS that read variables bound only outside.

    They are the second result, tested on the merged rows, which have the values that SPARQL substitutes.
    """
    parts, inner = list[al.Expression](), pattern
    while isinstance(inner, al.Filter):
        parts += conjuncts(inner.condition)
        inner = inner.pattern
    own = bound(inner)
    late = [part for part in parts if not reads_patterns(part) and not reads(part) & outer <= own]
    if not late:
        return pattern, None
    for part in parts:
        if part not in late:
            inner = al.Filter(part, inner)
    return inner, late[0] if len(late) == 1 else al.Call("&&", tuple(late))


def misses(condition: al.Expression, pattern: al.Pattern) -> bool:
    """Whether a condition, ``!BOUND(?w)``, keeps exactly the rows without a match of an OPTIONAL."""
    if not isinstance(pattern, al.LeftJoin) or (pattern.condition and reads_patterns(pattern.condition)):
        return False
    match condition:
        case al.Call(operator="!", arguments=(al.Call(operator=name, arguments=(al.Var() as variable,)),)):
            return name.upper() == "BOUND" and variable.name in bound(pattern.right) - scope(pattern.left)
    return False


def _nothing(_rows: Bag) -> Bag:
    return {}


def _themselves(rows: Bag) -> Bag:
    return rows


def optional(left: Operator, right: Operator, condition: al.Expression | None, effort: EvaluationBudget) -> Matching:
    """LeftJoin(left, right, condition)."""
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
    if between is not None and equal is None and not rest and not merge.loose:
        return PerNeighbour(sides, merge, output, variables, effort, between)
    return PerRow(sides, merge, output, variables, effort, passes, equal or between)
