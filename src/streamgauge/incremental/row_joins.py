"""Joins of rows; OPTIONAL, MINUS and EXISTS, which remember the rows of both sides by key; repeated property paths.

The rows of a touched key are answered before and after, and the difference is passed on.

Property paths with ``*``, ``+`` and ``?`` give the nodes that requested nodes reach (SPARQL 1.1, 18.4, ZeroLengthPath
and ALP): pairs are a set; a path of length zero joins every node of the graph, and every constant at an end of the
path, with itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.operators import (
    PRESENT,
    Bag,
    Index,
    Operator,
    Shared,
    Stateful,
    add,
    collect,
    difference,
    key_of,
    picker,
)
from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Row, Term


class Merge:
    """How rows of two sides meet: the key that is bound on both, compatibility of the rest, the merged row."""

    def __init__(self, left: Operator, right: Operator) -> None:
        shared = [name for name in left.variables if name in right.variables]
        certain = [name for name in shared if name in left.certain and name in right.certain]
        self.variables = (*left.variables, *(name for name in right.variables if name not in shared))
        self.crosses = not certain
        """Whether each row on one side has the key of each on the other."""
        self.left_key = [left.variables.index(name) for name in certain]
        self.right_key = [right.variables.index(name) for name in certain]
        self.loose = [
            (left.variables.index(name), right.variables.index(name)) for name in shared if name not in certain
        ]
        self.shared = [(left.variables.index(name), right.variables.index(name)) for name in shared]
        self.rest = picker(right.variables, self.variables[len(left.variables) :])
        self.width = len(self.variables)

    def compatible(self, left: Row, right: Row) -> bool:
        """Whether two rows with the same key agree wherever both are bound."""
        return all(left[i] is None or right[j] is None or left[i] == right[j] for i, j in self.loose)

    def merged(self, left: Row, right: Row) -> Row:
        """One row of both; what is unbound on the left is taken from the right."""
        if self.loose:
            row = list(left)
            for i, j in self.loose:
                row[i] = right[j] if row[i] is None else row[i]
            left = tuple(row)
        return left + self.rest(right)


class TwoSided(Stateful):
    """An operator that remembers the rows of both sides by the key that is bound on both."""

    def __init__(self, left: Operator, right: Operator, merge: Merge) -> None:
        self._left, self._right = left, right
        self._lefts = Index(merge.left_key, len(left.variables))
        self._rights = Index(merge.right_key, len(right.variables))


class JoinRows(TwoSided):
    """Join: the product rule, new left with old right and all left with new right."""

    def __init__(self, left: Operator, right: Operator, effort: EvaluationBudget) -> None:
        self._merge, self._effort = Merge(left, right), effort
        super().__init__(left, right, self._merge)
        self._crosses = self._merge.crosses
        self.variables, self.certain = self._merge.variables, left.certain | right.certain

    def pull(self) -> Bag:
        """The change of the product."""
        change: Bag = {}
        left, right = self._left.pull(), self._right.pull()
        if self._crosses:
            self._spend(len(left) * len(self._rights) + len(right) * (len(self._lefts) + len(left)))
        for row, count in left.items():
            self._pairs(change, {row: count}, self._rights.get(self._lefts.key(row)))
        self._lefts.add(left)
        for row, count in right.items():
            self._pairs(change, self._lefts.get(self._rights.key(row)), {row: count})
        self._rights.add(right)
        return change

    def _spend(self, pairs: int) -> None:
        """Each pair is a row that is kept; how many a product without a key has is known before it is made."""
        self._effort.spend(pairs * self._effort.weight)

    def _pairs(self, change: Bag, lefts: Bag, rights: Bag) -> None:
        merge = self._merge
        if not self._crosses:
            self._spend(len(lefts) * len(rights))
        if not merge.loose:
            rests = [(merge.rest(right), n) for right, n in rights.items()]
            for left, m in lefts.items():
                for rest, n in rests:
                    add(change, left + rest, m * n)
            return
        for left, m in lefts.items():
            for right, n in rights.items():
                if merge.compatible(left, right):
                    add(change, merge.merged(left, right), m * n)


Answer = Callable[[Bag, Bag], Bag]
"""The output for the rows of one key on both sides."""

Apart = Callable[[Bag], Bag]
"""The output for rows on the left without one of their key on the right, of several keys."""

Met = Callable[[Bag, Index], Bag]
"""The output for rows on the left, of several keys, which all have rows of their key on the right."""
TRUE: Final[Term] = f'"true"^^<{XSD}boolean>'
FALSE: Final[Term] = f'"false"^^<{XSD}boolean>'


_NONE: Final[Bag] = {}


@dataclass(frozen=True)
class Domain:
    """The outer solutions, ``variables`` of them under a ``key`` each that is made of the variables ``keyed``."""

    key: str
    keyed: tuple[str, ...]
    variables: tuple[str, ...]
    rows: Shared

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that every operator beside the domain carries."""
        return (self.key, *self.variables)

    @property
    def places(self) -> dict[str, int]:
        """Where in a key it says whether a variable has a value outside."""
        return {name: self.keyed.index(name) for name in self.variables}

    def tap(self) -> Operator:
        """The distinct outer solutions with their keys."""
        return self.rows.tap()


def has_value(key: Term | None, place: int) -> bool:
    """Whether the outer variable at this place of a key has a value."""
    return key is not None and key[place] == PRESENT


class PerKey(TwoSided):
    """An operator whose output for one key depends on the rows of both sides with that key only."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        merge: Merge,
        answer: Answer,
        apart: Apart,
        variables: tuple[str, ...],
        certain: frozenset[str],
        met: Met | None = None,
    ) -> None:
        super().__init__(left, right, merge)
        self.variables, self.certain = variables, certain
        self._answer, self._apart, self._met = answer, apart, met

    def pull(self) -> Bag:
        """The change of the output over all touched keys; without rows on the left there is none.

        Rows of different keys are different: they hold the rows on the left.
        """
        left, right = self._left.pull(), self._right.pull()
        if not left and not right:
            return {}
        if not self._lefts.bags:
            return self._begun(left, right)
        lefts, rights, answer = self._lefts.bags, self._rights.bags, self._answer
        there = lefts.keys()
        touched = set(map(self._lefts.key, left))
        keys = touched | (there & set(map(self._rights.key, right)))
        before = {key: answer(lefts[key], rights.get(key, _NONE)) for key in keys & there}
        self._lefts.add(left)
        self._rights.add(right)
        change: Bag = {}
        for key in keys:
            after = answer(lefts[key], rights.get(key, _NONE)) if key in lefts else {}
            old = before.get(key)
            change.update(difference(after, old) if old else after)
        return change

    def _begun(self, left: Bag, right: Bag) -> Bag:
        """The output where there was no row on the left: those without one of their key on the right all at once.

        The others too, where ``met`` tells.
        """
        self._lefts.add(left)
        self._rights.add(right)
        lefts, rights, answer = self._lefts.bags, self._rights.bags, self._answer
        met = lefts.keys() & rights.keys()
        if not met:
            return self._apart(left)
        alone, key = Bag(), self._lefts.key
        if len(met) < len(lefts):
            alone = {row: count for row, count in left.items() if key(row) not in met}
        change = self._apart(alone)
        if self._met is not None:
            change.update(
                self._met({row: left[row] for row in left.keys() - alone.keys()} if alone else left, self._rights)
            )
            return change
        for each in met:
            change.update(answer(lefts[each], rights[each]))
        return change


def optional(
    left: Operator, right: Operator, condition: Batch | None, merge: Merge, effort: EvaluationBudget
) -> PerKey:
    """LeftJoin(left, right, condition)."""
    padding = (None,) * (merge.width - len(left.variables))

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights) * effort.weight))
        if not rights:
            return {row + padding: count for row, count in lefts.items()}
        if condition is None and not merge.loose:
            rests = [(merge.rest(other), count) for other, count in rights.items()]
            return {row + rest: count * other for row, count in lefts.items() for rest, other in rests}
        pairs = [(row, other) for row in lefts for other in rights if not merge.loose or merge.compatible(row, other)]
        merged = [merge.merged(row, other) for row, other in pairs]
        kept = condition.holds(merged) if condition else [True] * len(merged)
        found: Bag = {}
        matched: set[Row] = set()
        for (row, other), whole, keep in zip(pairs, merged, kept, strict=True):
            if keep:
                matched.add(row)
                add(found, whole, lefts[row] * rights[other])
        for row, count in lefts.items():
            if row not in matched:
                add(found, row + padding, count)
        return found

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return {row + padding: count for row, count in lefts.items()}

    def met(lefts: Bag, others: Index) -> Bag:
        rights = [others.bags[key] for key in map(key_of(merge.left_key), lefts)]
        effort.spend(len(lefts) + sum(map(len, rights)) * effort.weight)
        pairs, rest = zip(lefts.items(), rights, strict=True), merge.rest
        return {row + rest(one): count * other for (row, count), ones in pairs for one, other in ones.items()}

    plain = condition is None and not merge.loose
    return PerKey(left, right, merge, answer, apart, merge.variables, left.certain, met if plain else None)


def without(
    left: Operator, right: Operator, names: frozenset[str], domain: Domain | None, effort: EvaluationBudget
) -> PerKey:
    """MINUS: rows that are compatible with none on the right, with which they share a bound variable of ``names``.

    A variable for which EXISTS has put a value is none any more.
    """
    merge = Merge(left, right)
    places = {} if domain is None else domain.places
    key = -1 if domain is None else left.variables.index(domain.key)
    shared = [(i, j, places.get(left.variables[i])) for i, j in merge.shared if left.variables[i] in names]
    plain = bool(shared) and not merge.loose and not places

    def removes(row: Row, other: Row) -> bool:
        return merge.compatible(row, other) and any(
            row[i] is not None and other[j] is not None and (place is None or not has_value(row[key], place))
            for i, j, place in shared
        )

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights)))
        if plain and rights:
            return {}
        return {row: count for row, count in lefts.items() if not any(removes(row, other) for other in rights)}

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return lefts.copy()

    def met(lefts: Bag, _others: Index) -> Bag:
        effort.spend(len(lefts))
        return {}

    return PerKey(left, right, merge, answer, apart, left.variables, left.certain, met if plain else None)


def existing(left: Operator, right: Operator, wanted: object, effort: EvaluationBudget) -> PerKey:
    """EXISTS (``wanted`` true) and NOT EXISTS (false): rows with a compatible one on the right, or with none."""
    merge = Merge(left, right)

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights)) if merge.loose else len(lefts))
        if not (merge.loose and rights):
            return dict(lefts) if bool(rights) is wanted else {}
        return {row: count for row, count in lefts.items() if _meets(merge, row, rights) is wanted}

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return {} if wanted else lefts.copy()

    def met(lefts: Bag, _others: Index) -> Bag:
        effort.spend(len(lefts))
        return lefts.copy() if wanted else {}

    return PerKey(left, right, merge, answer, apart, left.variables, left.certain, None if merge.loose else met)


def marked(left: Operator, right: Operator, name: str, effort: EvaluationBudget) -> PerKey:
    """EXISTS as a value: one more column, true for rows with a compatible one on the right, else false."""
    merge = Merge(left, right)

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights)) if merge.loose else len(lefts))
        return {(*row, TRUE if _meets(merge, row, rights) else FALSE): count for row, count in lefts.items()}

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return {(*row, FALSE): count for row, count in lefts.items()}

    return PerKey(left, right, merge, answer, apart, (*left.variables, name), left.certain | {name})


def _meets(merge: Merge, row: Row, rights: Bag) -> bool:
    """Whether a row is compatible with one of those that have its key."""
    return bool(rights) if not merge.loose else any(merge.compatible(row, other) for other in rights)


START, END, NODE = ".start", ".end", ".node"
_ONCE: Final = "?"

Edges = dict[Term, set[Term]]
_NOWHERE: Final = frozenset[Term]()


class GraphNodes:
    """The terms in two columns, each as often as it stands there."""

    variables: tuple[str, ...] = (NODE,)
    certain: frozenset[str] = frozenset(variables)

    def __init__(self, pairs: Operator) -> None:
        self._pairs = pairs

    def pull(self) -> Bag:
        """The change, one column after the other."""
        change = self._pairs.pull()
        return collect(((cell,), count) for row, count in change.items() for cell in row)


class Reachability(Stateful):
    """The pairs (start, end) for the starts that ``demand`` holds: along ``edges``, and in place for those of ``same``.

    All three inputs are sets. When edges change, the starts that could reach one are followed again from scratch, so
    cycles need no care. With the modifier ``?`` one step is made, otherwise any number.
    """

    variables: tuple[str, ...] = (START, END)
    certain: frozenset[str] = frozenset(variables)

    def __init__(
        self, edges: Operator, demand: Operator, same: Operator | None, modifier: str, effort: EvaluationBudget
    ) -> None:
        self._edges, self._demand, self._same, self._effort = edges, demand, same, effort
        self._once = modifier == _ONCE
        self.forget()

    def forget(self) -> None:
        """Begin again from nothing."""
        self._forward: Edges = {}
        self._backward: Edges = {}
        self._starts: set[Term] = set()
        self._own: set[Term] = set()
        self._ends: Edges = {}

    @property
    def held(self) -> int:
        """How many edges, starts and ends it remembers."""
        return sum(map(len, (*self._forward.values(), *self._ends.values(), self._starts, self._own)))

    def pull(self) -> Bag:
        """The pairs of the touched starts, new ones less old ones."""
        touched = self._follow_edges(self._edges.pull())
        touched |= _update(self._starts, self._demand.pull())
        if self._same is not None:
            touched |= _update(self._own, self._same.pull())
        change: Bag = {}
        for start in touched:
            self._refresh(change, start)
        return change

    def _follow_edges(self, change: Bag) -> set[Term]:
        """Take in changed edges; the starts that could reach one of them, before or after."""
        gone = []
        for row, count in change.items():
            source, target = _pair(row)
            if count > 0:
                self._forward.setdefault(source, set()).add(target)
                self._backward.setdefault(target, set()).add(source)
            else:
                gone.append((source, target))
        sources = {source for source, _ in map(_pair, change)}
        touched = sources if self._once else sources | _reached(sources, self._backward, self._effort)
        for source, target in gone:
            _take(self._forward, source, target)
            _take(self._backward, target, source)
        return touched & self._starts

    def _refresh(self, change: Bag, start: Term) -> None:
        old = self._ends.pop(start, set())
        new = self._follow(start) if start in self._starts else set()
        if new:
            self._ends[start] = new
        for end in old - new:
            add(change, (start, end), -1)
        for end in new - old:
            add(change, (start, end), 1)

    def _follow(self, start: Term) -> set[Term]:
        ends = set(self._forward.get(start, ())) if self._once else _reached((start,), self._forward, self._effort)
        if start in self._own:
            ends.add(start)
        return ends


def _pair(row: tuple[Term | None, ...]) -> tuple[Term, Term]:
    source, target = row
    assert source is not None
    assert target is not None
    return source, target


def _update(known: set[Term], change: Bag) -> set[Term]:
    """Bring a set of nodes up to date; the nodes that came or went."""
    touched = set()
    for (node,), count in change.items():
        assert node is not None
        (known.add if count > 0 else known.discard)(node)
        touched.add(node)
    return touched


def _take(edges: Edges, source: Term, target: Term) -> None:
    targets = edges[source]
    targets.discard(target)
    if not targets:
        del edges[source]


def _reached(starts: Iterable[Term], edges: Mapping[Term, set[Term]], effort: EvaluationBudget) -> set[Term]:
    """The nodes at the end of one step or more."""
    found: set[Term] = set()
    waiting = list(starts)
    while waiting:
        ends = edges.get(waiting.pop(), _NOWHERE)
        effort.spend(1 + len(ends))
        fresh = ends - found
        found |= fresh
        waiting += fresh
    return found


class PathSolutions:
    """Pairs put in the place of two nodes of a pattern: constants and a variable at both ends must agree."""

    def __init__(self, pairs: Operator, nodes: tuple[al.Node, al.Node]) -> None:
        self.variables = tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, al.Var)))
        self.certain = frozenset(self.variables)
        self._pairs, self._nodes = pairs, nodes
        self._at = [nodes.index(al.Var(name)) for name in self.variables]

    def pull(self) -> Bag:
        """The change over the variables."""
        one, two = self._nodes
        found: Bag = {}
        for pair, count in self._pairs.pull().items():
            start, end = pair
            if (isinstance(one, str) and one != start) or (isinstance(two, str) and two != end):
                continue
            if one != two or start == end:
                add(found, tuple([pair[at] for at in self._at]), count)
        return found
