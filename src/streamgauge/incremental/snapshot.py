"""Queries over snapshots of contents: the operators of the incremental evaluator, starting empty at each look.

Pays off if little of a content remains until the next look, because changes in between cost nothing. The joins are
columnar: a column is a list of terms, a solution is one index into all columns, and primitives process whole columns.
There is no state between looks, and the join order follows actual sizes.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from streamgauge.incremental.bands import Band, band
from streamgauge.incremental.conditions import Test
from streamgauge.incremental.crossovers import BY_NUMBERS, FEW_ROWS
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.join_pool import JoinPool
from streamgauge.incremental.list_joins import JoinSide, PendingCondition, SolutionTable, pending, relation_tests, rows
from streamgauge.incremental.operators import Bag, Delta, Take, difference, repeated
from streamgauge.incremental.plan import BgpRequest, PlannedBgp, TripleRelation, plan
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.incremental.window_pieces import PartedTriples, WindowBegins
from streamgauge.model import algebra as al
from streamgauge.model.algebra import Node, Var
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Row, Term, Triple

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch
    from streamgauge.incremental.drivers.content import WindowContent
    from streamgauge.incremental.id_joins import IdConditions, IdGraph, IdTable
    from streamgauge.incremental.spans import TripleSpans
    from streamgauge.incremental.term_ids import IdTriples


class SnapshotContents(JoinPool):
    """The contents of one or more queries, partitioned for their patterns at each look.

    Contents of at least ``least`` triples are joined by term ids if they arrive as such (``in_columns``), or if triples
    are seen at several looks (``again``) and the joins of the last look made more rows than there were triples.
    """

    def __init__(
        self,
        again: bool = False,
        least: int = BY_NUMBERS,
        begins: WindowBegins | None = None,
        in_columns: bool = False,
    ) -> None:
        super().__init__()
        self._begins = begins
        self._parted: dict[Node | None, Parted] = {}
        self._seen: list[tuple[Term | None, WindowContent]] = []
        self._matches: dict[int, Matches] = {}
        self._least, self._again = least, again
        self._numbers: IdConditions | None = None
        self._in_columns = in_columns

    def ask(self, request: BgpRequest) -> Bag:
        """Request the solutions of a pattern at each look."""
        if isinstance(request.graph, Var):
            raise UnsupportedError("GRAPH over each graph: spread the query first")
        return super().ask(request)

    def pending(self, bag: Bag) -> bool:
        """Whether solutions have not been taken at this look."""
        return bool(bag) or (id(bag) in self._matches and self._matches[id(bag)].fresh)

    def change(self, bag: Bag) -> Bag:
        """Take the solutions of a pattern; empty if they were taken before."""
        matches = self._matches.get(id(bag))
        return super().change(bag) if matches is None else matches.take()

    def rows(self, bag: Bag) -> list[Row]:
        """Take the solutions of a pattern as rows, repeated by multiplicity."""
        matches = self._matches.get(id(bag))
        return list(repeated(self.taken(bag).items())) if matches is None else matches.rows()

    def bind(self, graph: Term | None, content: "WindowContent") -> None:
        """Register a content of a graph (``None``: the default graph), which is read at each look."""
        # Once: further contents belong to the same patterns.
        for request, bag in self.leaves if not self._matches else ():
            parted = self._parted.setdefault(request.graph, Parted())
            self._matches[id(bag)] = Matches(plan(request.bgp, request.conditions), request.output, parted)
        if graph in self._parted:
            self._seen.append((graph, content))

    def cut(self, time: int, t0: int) -> int | None:
        """Gather the arrivals since the last cut, if the beginnings of windows are known."""
        begins = self._begins
        if begins is None:
            return None
        for graph, content in self._seen:
            if (predicates := self._parted[graph].predicates) is not None:
                content.gather(predicates, lambda at: begins.last(at, t0))
        return begins.following(time, t0)

    def look(self) -> None:
        """Read the current contents."""
        # Before the first graph of a look, whose columns keep their ids; batches bring terms whatever joins them.
        if self._numbers is not None:
            self._numbers.ids.forget()
        multiplying = any(matches.multiplied for matches in self._matches.values())
        for graph, parted in self._parted.items():
            contents = [content for name, content in self._seen if name == graph]
            graphs = [triples for content in contents for triples in content.graphs()]
            size = sum(map(len, graphs))
            if size >= self._least and (self._in_columns or (self._again and multiplying)):
                parted.fill_numbers(self._graph(contents))
            else:
                parted.fill(graphs)
        for matches in self._matches.values():
            matches.renew()

    def _graph(self, contents: "Sequence[WindowContent]") -> "IdGraph":
        """The contents of a graph as term ids."""
        from streamgauge.incremental.id_joins import IdGraph

        ids = self._conditions.ids
        numbered = ids.joined([content.columns(ids) for content in contents])
        return IdGraph(ids, numbered.ids, self._conditions)

    @property
    def _conditions(self) -> "IdConditions":
        if self._numbers is None:
            from streamgauge.incremental.id_joins import IdConditions
            from streamgauge.incremental.term_ids import TermIds

            self._numbers = IdConditions(TermIds())
        return self._numbers

    def numbered(self, batch: "ElementBatch") -> "IdTriples":
        """The triples of a batch as term ids."""
        self._in_columns = True
        return self._conditions.ids.of_batch(batch)

    def release(self) -> None:
        """End the look; the partitions are emptied."""
        for parted in self._parted.values():
            parted.fill(())


class Snapshots(KeptAnswer):
    """The answer of a query, evaluated from scratch at each look; ``ranked``: as for OperatorTree.

    Raises UnsupportedError for what ``evaluator.refuse`` names.
    """

    def __init__(
        self,
        form: al.QueryForm,
        contents: SnapshotContents,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
        names: Sequence[Term] = (),
        ranked: bool = False,
    ) -> None:

        def leaf(request: BgpRequest) -> Take:
            self._only = contents.ask(request)
            return partial(contents.taken, self._only)

        super().__init__(form, leaf, empty_aggregate, names, ranked=ranked)
        # The first pull, made by the base class, has left rows over nothing in the operators.
        self.tree.forget()
        self._contents = contents

    def settle(self) -> Delta:
        """The change of the answer since the last call."""
        return self.delta()

    def delta(self) -> Bag:
        """The change of the answer since the last call: its difference to the previous answer, which is stored."""
        # Operators keep nothing between looks, so a change is the difference of two whole answers.
        before, self._shown = self._shown, self.answer()
        return difference(self._shown, before)

    def answer(self) -> Bag:
        """Evaluate, once per look: row -> multiplicity."""
        try:
            return self.tree.pull()
        finally:
            self.tree.forget()

    def rows(self) -> tuple[Row, ...]:
        """Evaluate, once per look: the rows, repeated by multiplicity."""
        # Rows of a lone pattern need no bag; while watched they pass the operator, or its counts would stay 0.
        if not self.tree.is_leaf or self.tree.watched:
            return repeated(self.answer().items())
        return tuple(self._contents.rows(self._only))


class Parted:
    """The triples of a graph by requested predicate; ``None`` stands for all predicates."""

    def __init__(self) -> None:
        self._parts: dict[Term | None, list[Triple]] = {}
        self._tests: dict[TripleRelation, list[tuple[int, Test]]] = {}
        self._sides: dict[TripleRelation, JoinSide] = {}
        self._numbers: IdGraph | None = None
        self.size = 0
        """The number of triples."""

    def ask(self, relation: TripleRelation) -> None:
        """Request the triples of a relation at each look."""
        self._parts.setdefault(relation.constants[1], [])
        if relation not in self._tests:
            self._tests[relation] = relation_tests(relation)

    @property
    def predicates(self) -> list[Term] | None:
        """The requested predicates; ``None`` for all."""
        predicates = [predicate for predicate in self._parts if predicate is not None]
        return predicates if len(predicates) == len(self._parts) else None

    def table(self) -> "SolutionTable | IdTable":
        """A table with one empty solution."""
        return SolutionTable() if self._numbers is None else self._numbers.table()

    def side(self, relation: TripleRelation) -> "JoinSide | TripleSpans":
        """The triples of a relation, built once per look."""
        if self._numbers is not None:
            return self._numbers.side(relation, self._tests[relation])
        if relation not in self._sides:
            triples = rows(relation, self._parts[relation.constants[1]], self._tests[relation])
            self._sides[relation] = JoinSide(triples, relation.columns)
        return self._sides[relation]

    def fill(self, graphs: Sequence[Collection[Triple]]) -> None:
        """Replace the content by the triples of these graphs."""
        self._numbers = None
        self.size = sum(map(len, graphs))
        self._sides.clear()
        for part in self._parts.values():
            part.clear()
        if None in self._parts:
            self._parts[None].extend(chain.from_iterable(graphs))
        put_of = {predicate: part.append for predicate, part in self._parts.items() if predicate is not None}.get
        for graph in graphs:
            # Already by predicate since it was gathered at a cut; whole lists are appended instead of single triples.
            if isinstance(graph, PartedTriples):
                for predicate, triples in graph.parts.items():
                    self._parts[predicate].extend(triples)
                continue
            for triple in graph:
                put = put_of(triple[1])
                if put is not None:
                    put(triple)

    def fill_numbers(self, graph: "IdGraph") -> None:
        """Replace the content by triples as term ids."""
        self._numbers, self.size = graph, graph.size

    def bag(self, table: Any, output: Sequence[str]) -> Bag:
        """Solutions projected to some variables, as a bag."""
        if not output:
            return {(): table.size} if table.size else {}
        if self._numbers is not None and len(output) == 1:
            return self._numbers.bag(table.columns[output[0]]) if table.size else {}
        rows = self.rows(table, output)
        # Usually there are no duplicates, and fromkeys alone is enough.
        bag = dict.fromkeys(rows, 1)
        return bag if len(bag) == len(rows) else dict(Counter(rows))

    def rows(self, table: Any, output: Sequence[str]) -> list[Row]:
        """Solutions projected to some variables, as rows."""
        if not output:
            return [()] * table.size
        columns = [table.columns[name] for name in output] if table.size else []
        if self._numbers is not None:
            columns = self._numbers.texts(columns)
        return list(zip(*columns, strict=True))


class Matches:
    """The solutions of a planned pattern over a partitioned graph, projected to ``output``; taken once per look."""

    def __init__(self, planned: PlannedBgp, output: Sequence[str], parted: Parted) -> None:
        self._names, self._relation_of = planned.names, planned.relation_of
        self._output = tuple(output)
        self._relations, self._parted = planned.relations, parted
        for relation in planned.relations:
            parted.ask(relation)
        self._conditions = [pending(condition) for condition in planned.conditions]
        self.fresh = self.multiplied = False
        uses = [
            (name, relation, place)
            for at, relation in enumerate(self._relation_of)
            for place, name in enumerate(self._names(at))
        ]
        often = Counter(name for name, _, _ in uses)
        self._common = tuple(dict.fromkeys(use for use in uses if often[use[0]] > 1))

    def renew(self) -> None:
        """Begin a look: the solutions can be taken again."""
        self.fresh = True

    def take(self) -> Bag:
        """Take the solutions as a bag; empty if they were taken before."""
        if not self.fresh:
            return {}
        self.fresh = False
        return self._parted.bag(self._joined(), self._output)

    def rows(self) -> list[Row]:
        """Take the solutions as rows, repeated by multiplicity; replaces ``take``."""
        if not self.fresh:
            return []
        self.fresh = False
        return self._parted.rows(self._joined(), self._output)

    def shared(self) -> dict[str, set[Term]]:
        """The terms of each variable that occurs in several patterns."""
        cells: dict[str, set[Term]] = {}
        for name, relation, place in self._common:
            cells.setdefault(name, set()).update(self._parted.side(self._relations[relation]).cells((place,)))  # type: ignore[call-arg, arg-type]
        return cells

    def _joined(self) -> Any:
        sides = [self._parted.side(relation) for relation in self._relations]
        waiting: list[Any] = [(self._names(at), sides[relation]) for at, relation in enumerate(self._relation_of)]
        table = _Joining(waiting, list(self._conditions), self._output).join(self._parted.table())
        self.multiplied = table.largest > self._parted.size
        return table


@dataclass(frozen=True, slots=True)
class _Joining:
    """The remaining sides and conditions of a join, over terms or term ids."""

    waiting: list[Any]
    conditions: list[PendingCondition]
    output: tuple[str, ...]

    def join(self, table: Any) -> Any:
        """Join everything to a table, with the columns of the output."""
        while self.waiting and table.size:
            chosen = self._cheapest(table)
            # A side that multiplies is first reduced by those that join it without growth, as a bushy plan would.
            if table.grown(*chosen) > max(table.size, chosen[1].size):
                chosen = self._apart(chosen, table)
            self._join(table, chosen, ())
        return table

    def _apart(self, first: Any, other: Any) -> Any:
        """A side that would multiply the solutions, first joined with all sides that do not multiply it."""
        table = other.empty()
        self._join(table, first, other.columns)
        while self.waiting and table.size:
            chosen = self._cheapest(table)
            if table.grown(*chosen) > table.size:
                break
            self._join(table, chosen, other.columns)
        return table.as_side()

    def _cheapest(self, table: Any) -> Any:
        return (
            min(self.waiting, key=lambda relation: table.cost(*relation)) if len(self.waiting) > 1 else self.waiting[0]
        )

    def _join(self, table: Any, chosen: Any, more: Iterable[str]) -> None:
        """Join, apply possible conditions, and keep the columns needed by others, by the output, or in ``more``."""
        if chosen in self.waiting:
            self.waiting.remove(chosen)
        later = [names for names, _ in self.waiting] + [condition.names for condition in self.conditions]
        table.join(*chosen, frozenset(chain(*later, self.output, more)), self._band(table, *chosen))
        table.largest = max(table.largest, table.size)
        for condition in [condition for condition in self.conditions if table.columns.keys() >= set(condition.names)]:
            self.conditions.remove(condition)
            table.filter(condition)

    def _band(self, table: Any, names: Sequence[str], side: Any) -> Band | None:
        """The band between a table and a side whose join would make many times the rows of both."""
        opened = set(names).difference(table.columns)
        both = [condition for condition in self.conditions if not opened.isdisjoint(condition.names)]
        if not both or len(opened) == len(names) or not table.makes(FEW_ROWS * (table.size + side.size), names, side):
            return None
        return band([condition.condition for condition in both], table.columns, opened)[0]
