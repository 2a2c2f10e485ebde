"""The plan ``incremental``: facts that are fetched, end or change move an evaluator that is kept up to date.

Also the evaluation over facts that are there at once, and over the data's own named graphs, which both plans share.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from streamgauge.incremental import Bag, SnapshotContents, Snapshots
from streamgauge.incremental.drivers.content import Holding
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.operators import add
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.traversal import every_pattern
from streamgauge.servers.fragments.client.contract import LinkedDataSource, SourceError
from streamgauge.servers.fragments.live_queries.fact_forms import SourceFacts
from streamgauge.servers.fragments.live_queries.pattern_needs import pattern_needs
from streamgauge.servers.fragments.live_queries.poll_loop import PollResult, first_of
from streamgauge.servers.fragments.live_queries.query import LiveQuery, OrderedAnswer
from streamgauge.servers.fragments.live_queries.reader import FactReader, PollRounds, RenewalMode
from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.style import Style

NamedTriples: TypeAlias = Mapping[Term, Collection[Triple]]
"""Triples by the name of their graph."""

NO_NAMED_GRAPHS: Final[NamedTriples] = {}
"""No named graphs."""


class LocalEvaluator:
    """A query form that is evaluated over one set of triples, and named graphs, after the other."""

    def __init__(self, form: al.QueryForm) -> None:
        self._form = form
        self._triples: Collection[Triple] = ()
        self._named = NO_NAMED_GRAPHS
        self._see(())

    def answer(self, triples: Collection[Triple], named: NamedTriples = NO_NAMED_GRAPHS) -> Bag:
        """The answer of the query form over these triples and named graphs."""
        if tuple(named) != self._names:
            self._see(tuple(named))
        self._triples, self._named = triples, named
        self._contents.look()
        try:
            return dict(self._snapshots.answer())
        finally:
            self._contents.release()
            self._triples, self._named = (), NO_NAMED_GRAPHS

    def _see(self, names: tuple[Term, ...]) -> None:
        self._names, self._contents = names, SnapshotContents()
        self._snapshots = Snapshots(self._form, self._contents, names=names)
        self._contents.see(None, lambda: (tuple(self._triples),))
        for name in names:
            self._contents.see(name, partial(self._in, name))

    def _in(self, name: Term) -> tuple[tuple[Triple, ...]]:
        return (tuple(self._named[name]),)


def rows_of(pattern: al.Pattern) -> al.Select:
    """The query for all of a pattern's solutions."""
    variables = al.pattern_variables(pattern)
    return al.Select(al.Project(pattern, variables), tuple(var.name for var in variables))


def joined_bags(left: tuple[Row, Bag], right: tuple[Row, Bag]) -> Bag:
    """The solutions of both that are compatible, merged: the columns of the left, then those only of the right.

    Each side is the names of its columns and a bag.
    """
    names, rows = left
    others, found = right
    pairs = [(names.index(name), at) for at, name in enumerate(others) if name in names]
    more = [at for at, name in enumerate(others) if name not in names]
    result: Bag = {}
    for row, count in rows.items():
        for other, times in found.items():
            cells = _merged(row, other, pairs)
            if cells is not None:
                add(result, (*cells, *(other[at] for at in more)), count * times)
    return result


def _merged(row: Row, other: Row, pairs: Sequence[tuple[int, int]]) -> Row | None:
    cells = list(row)
    for own, its in pairs:
        if cells[own] is None:
            cells[own] = other[its]
        elif other[its] is not None and other[its] != cells[own]:
            return None
    return tuple(cells)


MOST_GRAPHS: Final = 500
"""Named graphs that a query may be over: ``GRAPH ?g`` is evaluated in each."""


def asks_graphs(pattern: al.Pattern) -> bool:
    """Whether GRAPH is anywhere in a pattern."""
    return any(isinstance(each, al.Graph) for each in every_pattern(pattern))


def named_graphs(reads: Sequence[SourceFacts]) -> NamedTriples:
    """The named graphs that sources have together, names in order; SourceError when they are too many."""
    found: dict[Term, set[Triple]] = {}
    for quad in (quad for read in reads for quad in read.named):
        found.setdefault(quad[3], set()).add(quad[:3])
    if len(found) > MOST_GRAPHS:
        asked = f"{len(found)} named graphs have what it asks for"
        raise SourceError("GRAPH", f"{asked}: name the graph, or connect ?g; at most {MOST_GRAPHS} are taken")
    return {name: frozenset(found[name]) for name in sorted(found)}


class FetchedGraphs:
    """Named graphs of sources, as triples that enter and leave a pool."""

    def __init__(self, pool: WindowJoins, names: Iterable[Term]) -> None:
        self._held = {name: Holding(*pool.feeds(name)) for name in names}
        self._seen: dict[int, tuple[Quad, ...]] = {}

    def fetched(self, reads: Sequence[SourceFacts]) -> None:
        """Take the quads that sources have now, all of them in graphs whose names are known."""
        for number, read in enumerate(reads):
            if self._seen.get(number) is read.named:
                continue
            self._seen[number] = read.named
            facts: dict[Term, list[Fact]] = {}
            for quad in read.named:
                facts.setdefault(quad[3], []).append(Fact(quad[:3]))
            for name, holding in self._held.items():
                holding.fetched(number, facts.get(name, ()), 0)


class _QueryEvaluation:
    """A query's evaluator over named graphs of these names, and what holds in it."""

    def __init__(self, asked: LiveQuery, names: tuple[Term, ...]) -> None:
        self.names = names
        pool = WindowJoins()
        self.kept = KeptAnswer(asked.kept, pool.leaf, names=names)
        self.holding = Holding(*pool.feeds(None))
        self.graphs = FetchedGraphs(pool, names)


class IncrementalPlan:
    """Facts of a query's patterns, held by a reader and an evaluator; another one when named graphs come or go."""

    def __init__(
        self,
        asked: LiveQuery,
        sources: Sequence[LinkedDataSource],
        style: Style,
        web: PollRounds,
        settled: int,
        renewal: RenewalMode = RenewalMode.CHANGES,
    ) -> None:
        self._asked, self._sources, self._web = asked, sources, web
        self._reader = FactReader(sources, style, pattern_needs(asked.kept.pattern), web, settled, renewal)
        self._lock = _QueryEvaluation(asked, ())
        self._ordered = None if asked.order is None else OrderedAnswer(asked, asked.order)

    async def poll(self) -> PollResult:
        """Read what is due, let facts enter and leave."""
        reads = await self._reader.read()
        names = tuple(named_graphs(reads))
        if names != self._lock.names:
            self._lock = _QueryEvaluation(self._asked, names)
        holding = self._lock.holding
        self._lock.graphs.fetched(reads)
        for number, read in enumerate(reads):
            holding.fetched(number, read.facts, read.at)
        bag = self._lock.kept.answer()
        return PollResult(
            dict(bag) if self._ordered is None else self._ordered.answer(bag),
            max((read.at for read in reads), default=0),
            first_of(self._sources, [holding.border(number) for number in range(len(reads))], self._web),
            first_of(self._sources, [read.until for read in reads], self._web),
            bool(reads) and not len(holding) and any(read.facts for read in reads),
        )
