"""The plan ``incremental``: what is fetched, ends or changes moves an evaluator that is kept up to date."""

from collections.abc import Sequence

from streamgauge.compute.changes.evaluator import Kept
from streamgauge.compute.changes.pool import Pool
from streamgauge.compute.drivers.fetched import Holding
from streamgauge.services.fragments.fetching.contract import Source
from streamgauge.services.fragments.streaming.asked import Asked, Ordered
from streamgauge.services.fragments.streaming.demand import demand
from streamgauge.services.fragments.streaming.plan import Polled, first_of
from streamgauge.services.fragments.streaming.reading import Reader, Renewal, Rounds
from streamgauge.services.fragments.style import Style


class Incremental:
    """Facts of a query's patterns, held by a reader and an evaluator."""

    def __init__(
        self,
        asked: Asked,
        sources: Sequence[Source],
        style: Style,
        web: Rounds,
        settled: int,
        renewal: Renewal = Renewal.CHANGES,
    ) -> None:
        self._sources, self._web = sources, web
        self._reader = Reader(sources, style, demand(asked.kept.pattern), web, settled, renewal)
        pool = Pool()
        self._kept = Kept(asked.kept, pool)
        self._holding = Holding(*pool.feeds(None))
        self._ordered = None if asked.order is None else Ordered(asked, asked.order)

    async def poll(self) -> Polled:
        """Read what is due, let facts enter and leave."""
        reads = await self._reader.read()
        for number, read in enumerate(reads):
            self._holding.fetched(number, read.facts, read.at)
        bag = self._kept.answer()
        return Polled(
            dict(bag) if self._ordered is None else self._ordered.answer(bag),
            max((read.at for read in reads), default=0),
            first_of(self._sources, [self._holding.border(number) for number in range(len(reads))], self._web),
            first_of(self._sources, [read.until for read in reads], self._web),
            bool(reads) and not len(self._holding) and any(read.facts for read in reads),
        )
