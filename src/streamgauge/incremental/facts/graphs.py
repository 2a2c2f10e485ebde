"""Patterns of queries over standing facts, in the default graph and in named graphs: how they join a shape.

Existing solutions are found in turns, between which facts may change. Few solutions take one turn. Many are
partitioned by the value of one variable, the anchor: changes to solutions whose anchor has not been processed are
dropped, because its turn will find them; all other changes count immediately.

A worked example: ``?x :in ?g . ?x :name ?n``, anchor ``?x``, facts about a, b and c. The first turn processes ``?x`` =
a; b and c wait. Now ``c :name "C"`` is published: the change is a row with ``?x`` = c, which waits, so the row is
dropped. ``a :name "A"`` is published: a does not wait, so the row counts. ``d :in g`` and ``d :name "D"`` are
published: d is new and does not wait, so its row counts. The next turn finds b and c, including the dropped row.

A named graph exists while it contains a fact. Rules do not apply to its facts. A pattern with a variable for the graph
is joined in each graph that has all its predicates.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import length_hint
from typing import Final, TypeAlias

from streamgauge.incremental.budget import ChangeBudget, EvaluationBudget, TooMuchError
from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.shapes import PatternOwner, ShapeJoins, ShapePool, Taker
from streamgauge.incremental.operators import Bag, add, add_all
from streamgauge.incremental.pattern_shapes import original
from streamgauge.incremental.plan import BgpRequest
from streamgauge.incremental.release import let_go
from streamgauge.model.algebra import Var
from streamgauge.model.terms import RDF_TYPE, Term, Triple

TURN: Final = 10_000
"""Facts read in one turn: some milliseconds."""

SINGLE: Final = 50_000
"""Facts that a turn may read beyond TURN, because one value of the anchor is processed in one turn."""

_Told = tuple[ShapeJoins, Taker, tuple[Term, ...]]


class PendingRows:
    """Rows of a pattern that were found but not taken: first the existing solutions, then changes.

    Like changes of facts, entering and ``hand_over`` need exclusive access. The first ``take`` after ``hand_over``
    touches no shared state; later ones need exclusive access again.
    """

    def __init__(self) -> None:
        self._there: Bag = {}
        self._found: Bag = {}
        self._first: Bag | None = None
        self._closed = False

    def hand_over(self) -> None:
        """Freeze the solutions found so far for the next ``take``; later changes wait for ``open``."""
        there, self._there, self._closed = self._there, {}, True
        add_all(there, self._gathered())
        self._first = there

    def mix(self) -> None:
        """Merge the existing solutions with their changes."""
        there, self._there = self._there, {}
        add_all(self._found, there)

    def open(self) -> None:
        """Release the changes since ``hand_over``."""
        self._closed = False

    def take(self) -> Bag:
        """The change since it was taken last."""
        if self._first is not None:
            change, self._first = self._first, None
            return change
        return {} if self._closed else self._gathered()

    def let_go(self) -> None:
        """Free all rows in chunks; no changes may arrive any more."""
        let_go((self._found, self._first))

    def _gathered(self) -> Bag:
        """Take all rows found so far."""
        change = self._found.copy()
        self._found.clear()
        return change


class PatternEntry(PendingRows):
    """One pattern over the facts of one graph."""

    def __init__(self, bgp_request: BgpRequest, owner: PatternOwner, pool: ShapePool) -> None:
        super().__init__()
        self._asked, self._owner, self._pool = bgp_request, owner, pool
        self._width = len(bgp_request.output)
        self._wide = False
        self._told: _Told | None = None

    @property
    def waiting(self) -> int:
        """The number of rows found but not taken."""
        return len(self._found if self._first is None else self._first)

    def take(self) -> Bag:
        """The change since it was taken last."""
        if self._first is not None or self._closed:
            change = super().take()
        elif self._found:
            change = self._found.copy()
            self._found.clear()
        else:
            return {}
        return _narrowed(change, self._width) if self._wide else change

    def steps(self, effort: EvaluationBudget) -> Iterator[None]:
        """Find the existing solutions in steps, and receive changes from the first step on; TooMuchError."""
        running, constants = self._pool.joins(self._asked)
        self._enter(running, Taker(self._found, self._owner), constants)
        if running.looks(constants) <= TURN:
            limit = min(TURN, effort.left)
            there = Bag()
            left = running.find(Taker(there, self._owner), constants, limit)
            if left >= 0:
                self._there = there
                effort.spend(limit - left + len(there) * effort.weight)
                return
            # Below TURN the limit was the query's whole budget: one more than that ends it with the error.
            effort.spend(limit if limit == TURN else limit + 1)
        yield from self._parts(running, effort)

    def leave(self) -> None:
        """Stop receiving changes from the pool."""
        if self._told is not None:
            request, self._told = self._told, None
            self._pool.leave(*request)

    def _enter(self, running: ShapeJoins, taker: Taker, constants: tuple[Term, ...]) -> None:
        # The new subscription begins before the old one ends: the pool drops a shape without takers, and it would be
        # compiled again.
        before, self._told = self._told, (running, taker, constants)
        running.enter(taker, constants)
        if before is not None:
            self._pool.leave(*before)

    def _parts(self, running: ShapeJoins, effort: EvaluationBudget) -> Iterator[None]:
        """Find the solutions by value of the anchor, which is added to the rows as a column if missing."""
        anchor = running.anchor
        if anchor is None:
            raise effort.too_much
        name = original(self._asked, anchor.name)
        # Changes must show the value of the anchor, or it could not be told whether its turn is over.
        if name not in self._asked.output:
            self._asked = replace(self._asked, output=(*self._asked.output, name))
            self._wide = True
        at, news = self._asked.output.index(name), Bag()
        running, constants = self._pool.joins(self._asked)
        self._enter(running, Taker(news, self._owner), constants)
        assert running.anchor is not None
        values = list(running.anchor.values(*constants))
        waiting, places = iter(values), dict[Term | None, int]()
        while length_hint(waiting):
            self._part(running, constants, waiting, effort)
            yield
            if news and not places:
                places.update(zip(values, range(len(values)), strict=True))
            # How far the generated function has consumed the iterator, which it does not report.
            done = len(values) - length_hint(waiting)
            for row, count in news.items():
                # Values that wait are found when their turn comes; what is not among them at all, or is done, counts
                # now.
                if places.get(row[at], -1) < done:
                    add(self._found, row, count)
            news.clear()
        self._enter(running, Taker(self._found, self._owner), constants)

    def _part(
        self,
        running: ShapeJoins,
        constants: tuple[Term, ...],
        waiting: Iterator[Term],
        effort: EvaluationBudget,
    ) -> None:
        """Find and charge the solutions of the next waiting values, within one turn's limit."""
        limit, before = min(TURN + SINGLE, effort.left), len(self._found)
        left = running.find_parts(Taker(self._found, self._owner), constants, limit, TURN, waiting)
        if left < 0:
            raise effort.too_much
        effort.spend(limit - left + (len(self._found) - before) * effort.weight)


def _narrowed(change: Bag, width: int) -> Bag:
    """The rows without the columns beyond a width."""
    narrowed: Bag = {}
    for row, count in change.items():
        add(narrowed, row[:width], count)
    return narrowed


Quad: TypeAlias = tuple[Term, Triple]
"""The name of a graph, and a fact in it."""

JOINED = 1_000
"""The cost, in facts, of joining a pattern over another graph."""

MAX_GRAPHS = 10_000
"""Maximum number of named graphs."""


class GraphFacts(Facts):
    """The facts of one named graph; ``size`` is their number."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def has(self, triple: Triple) -> bool:
        """Whether a fact exists."""
        subject, predicate, end = triple
        if predicate == RDF_TYPE:
            return end in self.classes and subject in self.classes[end].members
        return predicate in self.properties and self.properties[predicate].has(subject, end)

    def knows(self, predicate: Term) -> bool:
        """Whether facts with a predicate may exist."""
        return bool(self.classes) if predicate == RDF_TYPE else predicate in self.properties

    def add(self, triple: Triple) -> None:
        """Add a new fact, then notify listeners."""
        subject, predicate, end = triple
        self.size += 1
        if predicate == RDF_TYPE:
            self.join(self.class_of(end), subject, 1)
        else:
            self.link(self.property_of(predicate), subject, end)

    def remove(self, triple: Triple) -> None:
        """Notify listeners of a fact, then remove it, along with an empty class or property without listeners."""
        subject, predicate, end = triple
        self.size -= 1
        if predicate == RDF_TYPE:
            of = self.classes[end]
            self.part(of, subject)
            # Listeners hold the class itself; were it dropped, they would miss facts of a new one with the same name.
            if not of.members and not of.enter:
                del self.classes[end]
            return
        pairs = self.properties[predicate]
        self.unlink(pairs, subject, end)
        if not pairs.out and not pairs.enter:
            del self.properties[predicate]


class _Graph:
    """One named graph: its facts, and the patterns over it, on the budget of the default graph."""

    def __init__(self, name: Term, budget: ChangeBudget) -> None:
        self.name, self.facts = name, GraphFacts()
        self.pool = ShapePool(self.facts, budget)


class NamedGraphs:
    """The named graphs, and the patterns over them."""

    def __init__(self, budget: ChangeBudget) -> None:
        self.budget = budget
        self._graphs: dict[Term, _Graph] = {}
        self._there: dict[Term, None] = {}
        self._entries: dict[Term | None, dict[GraphEntry, None]] = {}
        self.explicit = 0

    @property
    def names(self) -> tuple[Term, ...]:
        """The graphs that contain a fact."""
        return tuple(self._there)

    def graph(self, name: Term) -> _Graph:
        """A graph, created if it does not exist."""
        graph = self._graphs.get(name)
        if graph is None:
            graph = self._graphs[name] = _Graph(name, self.budget)
        return graph

    def check(self, added: Iterable[Quad]) -> None:
        """TooMuchError if there would be too many graphs."""
        fresh = {name for name, _ in added if name not in self._there}
        if len(self._there) + len(fresh) > MAX_GRAPHS:
            raise TooMuchError(
                f"there would be more than {MAX_GRAPHS} named graphs: delete some first, or use fewer names"
            )

    def change(self, added: Iterable[Quad], removed: Iterable[Quad] = ()) -> None:
        """Remove facts, then add others. Adding an existing fact, and removing a missing one, has no effect."""
        new = dict.fromkeys(added)
        moved: dict[Term, tuple[list[Triple], list[Triple]]] = {}
        for name, triple in dict.fromkeys(removed):
            # Removed and added in one change: the fact stays, and nobody is notified.
            if (name, triple) not in new and self._has(name, triple):
                moved.setdefault(name, ([], []))[1].append(triple)
        for name, triple in new:
            if not self._has(name, triple):
                moved.setdefault(name, ([], []))[0].append(triple)
        for name, (came, went) in moved.items():
            self._move(self.graph(name), came, went)

    def _has(self, name: Term, triple: Triple) -> bool:
        return name in self._there and self._graphs[name].facts.has(triple)

    def _move(self, graph: _Graph, came: list[Triple], went: list[Triple]) -> None:
        predicates = {triple[1] for triple in came}
        for entry in self._entries.get(None, ()):
            entry.appear(graph, predicates)
        for triple in went:
            graph.facts.remove(triple)
        for triple in came:
            graph.facts.add(triple)
        self.explicit += len(came) - len(went)
        if graph.facts.size:
            self._there[graph.name] = None
            return
        del self._there[graph.name]
        for entry in self._entries.get(None, ()):
            entry.vanish(graph.name)
        self.release(graph)

    def release(self, graph: _Graph) -> None:
        """Drop a graph without facts and patterns."""
        if not graph.facts.size and not graph.pool.shapes:
            self._graphs.pop(graph.name, None)

    def match(
        self, graph: Term | None, subject: Term | None, predicate: Term | None, end: Term | None
    ) -> Iterator[Quad | None]:
        """The facts with these terms (``None`` matches any) in one or all graphs; yields ``None`` per graph visited."""
        for name in self.names if graph is None else (graph,):
            yield None
            if name in self._there:
                yield from ((name, triple) for triple in self._graphs[name].facts.match(subject, predicate, end))

    def enter(self, entry: "GraphEntry") -> None:
        """Notify a pattern of changes from now on."""
        self._entries.setdefault(entry.name, {})[entry] = None

    def leave(self, entry: "GraphEntry") -> None:
        """Stop notifying a pattern."""
        entries = self._entries.get(entry.name, {})
        entries.pop(entry, None)
        if not entries:
            self._entries.pop(entry.name, None)


@dataclass(frozen=True, slots=True)
class _InGraph:
    """The owner of a pattern's solutions in one graph."""

    entry: "GraphEntry"
    graph: Term

    @property
    def share(self) -> int:
        return self.entry.owner.share

    def touch(self) -> None:
        self.entry.found_in(self.graph)

    def fail(self) -> None:
        self.entry.owner.fail()


class GraphEntry(PendingRows):
    """Triple patterns over one named graph, or over all if the name is a variable: rows found but not taken.

    A pattern without triples has one solution in each existing graph.
    """

    def __init__(self, bgp_request: BgpRequest, owner: PatternOwner, graphs: NamedGraphs) -> None:
        super().__init__()
        self.owner, self._graphs = owner, graphs
        self.name = bgp_request.graph if isinstance(bgp_request.graph, str) else None
        self._place = _column(bgp_request)
        output = tuple(name for at, name in enumerate(bgp_request.output) if at != self._place)
        self._asked = replace(bgp_request, graph=None, output=output)
        predicates = {triple.predicate for triple in bgp_request.bgp.patterns}
        self._predicates = (
            frozenset(map(str, predicates)) if all(isinstance(predicate, str) for predicate in predicates) else None
        )
        self._inner: dict[Term, PatternEntry] = {}
        self._dirty: dict[tuple[Term, PatternEntry], None] = {}

    @property
    def waiting(self) -> int:
        """The number of rows found but not taken."""
        if self._first is not None:
            return len(self._first)
        return len(self._found) + sum(part.waiting for _, part in self._dirty)

    def steps(self, effort: EvaluationBudget) -> Iterator[None]:
        """Find the existing solutions graph by graph, and receive changes from the first step on; TooMuchError."""
        self._graphs.enter(self)
        for name in self._graphs.names if self.name is None else (self.name,):
            if name not in self._inner:
                effort.spend(JOINED if self.name is None else 0)
                yield from self._begin(self._graphs.graph(name), effort)
                yield

    def _begin(self, graph: _Graph, effort: EvaluationBudget) -> Iterator[None]:
        """Find the existing solutions in one graph."""
        inner = self._inner[graph.name] = PatternEntry(self._asked, _InGraph(self, graph.name), graph.pool)
        if self._asked.bgp.patterns:
            yield from inner.steps(effort)
            inner.mix()
            self._dirty[graph.name, inner] = None
        else:
            self._add(graph.name, {(): 1})

    def appear(self, graph: _Graph, predicates: set[Term]) -> None:
        """Facts with these predicates are about to be added to a graph; join it once it has all predicates."""
        if graph.name in self._inner or not predicates:
            return
        # With ten thousand graphs a pattern must not be joined in those that cannot have a solution.
        missing = (self._predicates or frozenset()) - predicates
        if not all(map(graph.facts.knows, missing)):
            return
        try:
            for _ in self._begin(graph, EvaluationBudget(self._graphs.budget.most)):
                pass
        except TooMuchError:
            self.owner.fail()

    def vanish(self, name: Term) -> None:
        """A graph has become empty."""
        inner = self._inner.pop(name, None)
        if inner is None:
            return
        if self._asked.bgp.patterns:
            inner.leave()
        else:
            self._add(name, {(): -1})

    def found_in(self, name: Term) -> None:
        """Solutions were found in a graph."""
        if name in self._inner:
            self._dirty[name, self._inner[name]] = None
        self.owner.touch()

    def leave(self) -> None:
        """Stop receiving changes, and release the graphs."""
        self._graphs.leave(self)
        for name, inner in self._inner.items():
            inner.leave()
            self._graphs.release(self._graphs.graph(name))
        self._inner.clear()

    def _gathered(self) -> Bag:
        for name, inner in self._dirty:
            self._collect(name, inner.take())
        self._dirty.clear()
        return super()._gathered()

    def _add(self, name: Term, rows: Bag) -> None:
        self._collect(name, rows)
        self.owner.touch()

    def _collect(self, name: Term, rows: Bag) -> None:
        """Add rows found in a graph, with its name in their column."""
        place = self._place
        if place is not None:
            rows = {(*row[:place], name, *row[place:]): count for row, count in rows.items()}
        add_all(self._found, rows)


def _column(bgp_request: BgpRequest) -> int | None:
    """The column of the graph's name; ``None`` if rows have none."""
    graph = bgp_request.graph
    return bgp_request.output.index(graph.name) if isinstance(graph, Var) and graph.name in bgp_request.output else None
