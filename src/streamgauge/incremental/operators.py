"""Operators on signed bags: each pulls the change of its inputs and gives the change of its output.

A bag maps rows to multiplicities, negative for what goes; no row has 0. Linear operators pass changes, the join is
bilinear, DISTINCT counts; the state of each is the sum of its changes.

An operator may have several readers (``Shared``). A reader's pull has the operator pulled first, once in a pull of the
whole query: its leaves give nothing new within one. Each operator of ``p1*/p2*/.../pn*`` has two readers and two more
below it, so without that a pull would be 2 ** n.

Property paths with ``*``, ``+`` and ``?`` give the nodes that requested nodes reach (SPARQL 1.1, 18.4, ZeroLengthPath
and ALP): pairs are a set; a path of length zero joins every node of the graph, and every constant at an end of the
path, with itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, Protocol, TypeAlias

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term

Bag = dict[Row, int]
Delta = Mapping[Row, int]
"""The exact change of a bag of solutions."""


def add(bag: Bag, row: Row, count: int) -> None:
    """Add ``count`` (of either sign) copies of a row in place."""
    now = bag.get(row, 0) + count
    if now:
        bag[row] = now
    else:
        bag.pop(row, None)


def add_all(bag: Bag, delta: Mapping[Row, int]) -> None:
    """Add a whole change in place."""
    if not bag:
        bag.update(delta)
        return
    get = bag.get
    for row, count in delta.items():
        now = get(row, 0) + count
        if now:
            bag[row] = now
        else:
            del bag[row]


def collect(rows: Iterable[tuple[Row, int]]) -> Bag:
    """The bag of these signed rows."""
    bag: Bag = {}
    for row, count in rows:
        add(bag, row, count)
    return bag


def difference(after: Mapping[Row, int], before: Mapping[Row, int]) -> Bag:
    """The change from ``before`` to ``after``."""
    change = dict(after)
    add_all(change, {row: -count for row, count in before.items()})
    return change


Key = tuple[Term | None, ...]
CELL: Final = 64
"""Characters of a computed value that count as one row."""

Take: TypeAlias = Callable[[], Bag]
"""Gives the change of a leaf since it was last asked; the caller may keep it."""


class Operator(Protocol):
    """A node of the running query: its columns, those that are bound in every row, and the change since last asked."""

    variables: tuple[str, ...]
    certain: frozenset[str]

    def pull(self) -> Bag:
        """The change of the output since the last pull."""
        ...


class Stateful(Protocol):
    """An operator that remembers rows."""

    @property
    def held(self) -> int:
        """How many it remembers."""
        ...

    def forget(self) -> None:
        """Begin again: the next pull is a change from nothing."""
        ...


class LeafSource:
    """A basic graph pattern."""

    def __init__(self, take: Take, variables: tuple[str, ...]) -> None:
        self.variables, self.certain = variables, frozenset(variables)
        self.pull = take


class Constant:
    """Inline data: everything at the first pull, nothing later."""

    held = 0

    def __init__(self, variables: tuple[str, ...], rows: Sequence[Row]) -> None:
        self.variables = variables
        self.certain = frozenset(name for at, name in enumerate(variables) if all(row[at] is not None for row in rows))
        self._rows = collect((row, 1) for row in rows)
        self._given = False

    def forget(self) -> None:
        """Give the rows again."""
        self._given = False

    def pull(self) -> Bag:
        """The rows, once."""
        if self._given:
            return {}
        self._given = True
        return self._rows.copy()


class FilterRows:
    """FILTER."""

    def __init__(self, inner: Operator, condition: Batch) -> None:
        self.variables, self.certain = inner.variables, inner.certain
        self._inner, self._condition = inner, condition

    def pull(self) -> Bag:
        """The rows of the change for which the condition holds."""
        change = self._inner.pull()
        kept = self._condition.holds(change) if change else ()
        return {row: count for (row, count), keep in zip(change.items(), kept, strict=True) if keep}


class Compute:
    """BIND and SELECT expressions: one more column, unbound where the expression errs."""

    def __init__(self, inner: Operator, name: str, value: Batch, effort: EvaluationBudget) -> None:
        self.variables, self.certain = (*inner.variables, name), inner.certain
        self._inner, self._value, self._effort = inner, value, effort

    def pull(self) -> Bag:
        """The rows of the change with their values."""
        change = self._inner.pull()
        values = self._value.values(change) if change else ()
        self._effort.spend(sum(len(value) for value in values if value) // CELL)
        return {(*row, value): count for (row, count), value in zip(change.items(), values, strict=True)}


class Pick:
    """Projection, by name; a name that the input does not have is unbound."""

    def __init__(self, inner: Operator, variables: tuple[str, ...]) -> None:
        self.variables, self.certain = variables, inner.certain & frozenset(variables)
        self._inner = inner
        self._take = picker(inner.variables, variables)
        self._injective = frozenset(inner.variables) <= frozenset(variables)

    def pull(self) -> Bag:
        """The change, column by column."""
        change = self._inner.pull()
        rows, counts = map(self._take, change), change.values()
        return dict(zip(rows, counts, strict=True)) if self._injective else collect(zip(rows, counts, strict=True))


class Both:
    """UNION: the sum of two bags with the same columns."""

    def __init__(self, left: Operator, right: Operator, certain: frozenset[str]) -> None:
        self.variables, self.certain = left.variables, certain
        self._left, self._right = left, right

    def pull(self) -> Bag:
        """The sum of both changes."""
        change = self._left.pull()
        add_all(change, self._right.pull())
        return change


class Unique:
    """DISTINCT: a row comes with its first copy and goes with its last."""

    def __init__(self, inner: Operator) -> None:
        self.variables, self.certain = inner.variables, inner.certain
        self._inner = inner
        self._counts: Bag = {}

    @property
    def held(self) -> int:
        """How many rows have copies."""
        return len(self._counts)

    def forget(self) -> None:
        """Begin again from nothing."""
        self._counts.clear()

    def pull(self) -> Bag:
        """Rows whose number of copies rose from, or fell to, nothing."""
        change: Bag = {}
        counts = self._counts
        for row, count in self._inner.pull().items():
            had = counts.get(row, 0)
            now = had + count
            if now:
                counts[row] = now
                if not had:
                    change[row] = 1
            elif had:
                del counts[row]
                change[row] = -1
        return change


def picker(variables: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], Row]:
    """A function from a row over ``variables`` to the row over ``wanted`` (unbound where it is missing)."""
    positions = [variables.index(name) if name in variables else -1 for name in wanted]
    if positions == list(range(len(variables))):
        return lambda row: row
    if -1 in positions:
        return lambda row: tuple([row[at] if at >= 0 else None for at in positions])
    if not positions:
        return lambda _row: ()
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return itemgetter(*positions)


@dataclass
class Pull:
    """The pull of a whole query that is under way, by its number."""

    number: int = 0


class Shared:
    """An operator whose changes are handed to all of its taps; ``pull`` is the query's."""

    def __init__(self, inner: Operator, pull: Pull) -> None:
        self.inner, self._pull, self._fetched = inner, pull, -1
        self._taps: list[Tap] = []

    @property
    def held(self) -> int:
        """How many rows wait for a reader."""
        return sum(len(tap.pending) for tap in self._taps)

    def forget(self) -> None:
        """Begin again from nothing."""
        for tap in self._taps:
            tap.pending = {}

    def tap(self) -> "Tap":
        """One more reader; all of them are made before the first change."""
        tap = Tap(self)
        self._taps.append(tap)
        return tap

    def fetch(self) -> None:
        """Hand the change since the last time to every tap, unless this pull of the query has done so."""
        if self._fetched == self._pull.number:
            return
        self._fetched = self._pull.number
        change = self.inner.pull()
        if change:
            for tap in self._taps:
                add_all(tap.pending, change)


class Tap:
    """A reader of a shared operator."""

    def __init__(self, shared: Shared) -> None:
        self.variables, self.certain = shared.inner.variables, shared.inner.certain
        self._shared = shared
        self.pending: Bag = {}

    def pull(self) -> Bag:
        """The change since this reader's last pull."""
        self._shared.fetch()
        change, self.pending = self.pending, {}
        return change


PRESENT = "1"
"""In a key, at the place of a column that is bound in the row."""


class Keyed:
    """One more column that tells rows apart by some of their columns: which are bound, then their values."""

    def __init__(self, inner: Operator, name: str, by: Sequence[str]) -> None:
        self.variables, self.certain = (*inner.variables, name), inner.certain | {name}
        self._inner = inner
        self._at = [inner.variables.index(column) for column in by]

    def pull(self) -> Bag:
        """The rows of the change with their keys."""
        return {(*row, self._key(row)): count for row, count in self._inner.pull().items()}

    def _key(self, row: Row) -> str:
        cells = [row[at] for at in self._at]
        return "".join([PRESENT if cell is not None else "0" for cell in cells]) + repr(cells)


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


class Reachability:
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
