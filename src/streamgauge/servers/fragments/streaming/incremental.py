"""The plan ``incremental``: what is fetched, ends or changes moves an evaluator that is kept up to date."""

from collections.abc import Sequence

from streamgauge.incremental.drivers.fetched import Holding
from streamgauge.incremental.evaluator import Kept
from streamgauge.incremental.pool import Pool
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.fetching.contract import Source
from streamgauge.servers.fragments.streaming.asked import Asked, Ordered
from streamgauge.servers.fragments.streaming.demand import demand
from streamgauge.servers.fragments.streaming.graphs import Graphs, named
from streamgauge.servers.fragments.streaming.plan import Polled, first_of
from streamgauge.servers.fragments.streaming.reading import Reader, Renewal, Rounds
from streamgauge.servers.fragments.style import Style


class _Evaluating:
    """A query's evaluator over named graphs of these names, and what holds in it."""

    def __init__(self, asked: Asked, names: tuple[Term, ...]) -> None:
        self.names = names
        pool = Pool()
        self.kept = Kept(asked.kept, pool, names=names)
        self.holding = Holding(*pool.feeds(None))
        self.graphs = Graphs(pool, names)


class Incremental:
    """Facts of a query's patterns, held by a reader and an evaluator; another one when named graphs come or go."""

    def __init__(
        self,
        asked: Asked,
        sources: Sequence[Source],
        style: Style,
        web: Rounds,
        settled: int,
        renewal: Renewal = Renewal.CHANGES,
    ) -> None:
        self._asked, self._sources, self._web = asked, sources, web
        self._reader = Reader(sources, style, demand(asked.kept.pattern), web, settled, renewal)
        self._evaluating = _Evaluating(asked, ())
        self._ordered = None if asked.order is None else Ordered(asked, asked.order)

    async def poll(self) -> Polled:
        """Read what is due, let facts enter and leave."""
        reads = await self._reader.read()
        names = tuple(named(reads))
        if names != self._evaluating.names:
            self._evaluating = _Evaluating(self._asked, names)
        holding = self._evaluating.holding
        self._evaluating.graphs.fetched(reads)
        for number, read in enumerate(reads):
            holding.fetched(number, read.facts, read.at)
        bag = self._evaluating.kept.answer()
        return Polled(
            dict(bag) if self._ordered is None else self._ordered.answer(bag),
            max((read.at for read in reads), default=0),
            first_of(self._sources, [holding.border(number) for number in range(len(reads))], self._web),
            first_of(self._sources, [read.until for read in reads], self._web),
            bool(reads) and not len(holding) and any(read.facts for read in reads),
        )
