"""The plan ``streamer``: the loop as it was published (Taelman et al., ESWC 2016, section 6), for any query.

The dynamic query is asked at each poll, the time filter keeps what holds at the server's Date, each row gives a
materialised static query, the result manager answers it from its cache or asks it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from streamgauge.incremental import Bag
from streamgauge.incremental.bags import add_all
from streamgauge.incremental.drivers.fetched import border
from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.rebuild import with_pattern
from streamgauge.servers.fragments.annotations import places
from streamgauge.servers.fragments.fetching.contract import Source
from streamgauge.servers.fragments.fetching.together import together
from streamgauge.servers.fragments.streaming.asked import Asked, Ordered
from streamgauge.servers.fragments.streaming.demand import demand
from streamgauge.servers.fragments.streaming.evaluating import Local, Named, joined, rows_of
from streamgauge.servers.fragments.streaming.forms import matching, where
from streamgauge.servers.fragments.streaming.graphs import named
from streamgauge.servers.fragments.streaming.materialiser import materialised
from streamgauge.servers.fragments.streaming.plan import Polled, first_of
from streamgauge.servers.fragments.streaming.reading import Reader, Rounds
from streamgauge.servers.fragments.streaming.results import Find, Results
from streamgauge.servers.fragments.streaming.rewriter import Split, split, whole
from streamgauge.servers.fragments.style import Style


class Caching(StrEnum):
    """What is done with static answers."""

    ON = "on"
    OFF = "off"  # the same plan, each static query asked anew at each poll
    PROTOTYPE = "prototype"  # QueryStreamer.js without its cache: static patterns are part of the dynamic query


@dataclass(slots=True)
class _Rewritten:
    """A query's parts with what evaluates them, and when (own clock, ms) they were told apart."""

    split: Split
    since: int
    reader: Reader
    dynamic: Local
    static: Find | None
    results: Results | None


@dataclass(slots=True)
class Streamer:
    """A query, its sources, and what is known of its parts; they are told apart again after ``settled`` ms."""

    asked: Asked
    sources: Sequence[Source]
    style: Style
    web: Rounds
    settled: int
    caching: Caching = Caching.ON
    _parts: _Rewritten | None = field(default=None, init=False)
    _ordered: Ordered | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._ordered = None if self.asked.order is None else Ordered(self.asked, self.asked.order)

    @property
    def results(self) -> Results | None:
        """The result manager, when there is a static part."""
        return None if self._parts is None else self._parts.results

    async def poll(self) -> Polled:
        """One iteration of the streaming loop."""
        parts = await self._rewritten()
        reads = await parts.reader.read()
        holding = {fact.triple for read in reads for fact in read.facts if fact.holds(read.at)}
        bag = await self._around(parts, holding, named(reads))
        timed = any(not fact.static for read in reads for fact in read.facts)
        return Polled(
            bag if self._ordered is None else self._ordered.answer(bag),
            max((read.at for read in reads), default=0),
            first_of(self.sources, [border(read.facts, read.at) for read in reads], self.web),
            first_of(self.sources, [read.until for read in reads], self.web),
            timed and not holding,
        )

    async def _around(self, parts: _Rewritten, holding: Collection[Triple], named: Named) -> Bag:
        """The answer: the dynamic rows joined with their static answers, and what the query does above that."""
        names = tuple(map(_name, al.pattern_variables(parts.split.dynamic)))
        rows = parts.dynamic.answer(holding, named)
        if parts.split.static is not None:
            rows = await self._joined(parts, names, rows)
            names = tuple(dict.fromkeys((*names, *map(_name, al.pattern_variables(parts.split.static)))))
        inline = al.Values(tuple(map(al.Var, names)), tuple(row for row, many in rows.items() for _ in range(many)))
        return Local(with_pattern(self.asked.kept, parts.split.around(inline))).answer(holding, named)

    async def _joined(self, parts: _Rewritten, names: Row, rows: Bag) -> Bag:
        """Each dynamic row with the answer of its materialised static query."""
        assert parts.split.static is not None
        at = [names.index(var.name) for var in parts.split.shared]
        by_key: dict[Row, Bag] = {}
        for row, count in rows.items():
            by_key.setdefault(tuple(row[place] for place in at), {})[row] = count
        found = await together(self._static(parts, key) for key in by_key)
        others = tuple(map(_name, al.pattern_variables(parts.split.static)))
        result: Bag = {}
        for own, static in zip(by_key.values(), found, strict=True):
            add_all(result, joined((names, own), (others, static)))
        return result

    async def _static(self, parts: _Rewritten, key: Row) -> Bag:
        if parts.results is not None:
            return await parts.results.of(key)
        assert parts.static is not None
        return (await parts.static(key))[0]

    async def _ask(self, parts: Split, local: Local, key: Row) -> tuple[Bag, int]:
        """The answer of a materialised static query, and until when it may be used (own clock, ms)."""
        assert parts.static is not None
        given: dict[al.Var, Term] = {var: term for var, term in zip(parts.shared, key, strict=True) if term is not None}
        reader = Reader(self.sources, where(self.style), materialised(parts.static, given), self.web, self.settled)
        reads = await reader.read({var: frozenset((term,)) for var, term in given.items()})
        triples = {fact.triple for read in reads for fact in read.facts}
        until = first_of(self.sources, [read.until for read in reads], self.web)
        now = self.web.clock()
        return local.answer(triples), max(until or 0, now + self.settled)

    async def _rewritten(self) -> _Rewritten:
        """The query's parts, told apart at the start and again when that is long ago."""
        now = self.web.clock()
        if self._parts is None or now >= self._parts.since + self.settled:
            parts = await self._split()
            if self._parts is None or (parts.dynamic, parts.static) != (
                self._parts.split.dynamic,
                self._parts.split.static,
            ):
                self._parts = self._made(parts, now)
            self._parts.since = now
        return self._parts

    def _made(self, parts: Split, now: int) -> _Rewritten:
        reader = Reader(self.sources, self.style, demand(parts.around(parts.dynamic)), self.web, 0)
        ask = None if parts.static is None else partial(self._ask, parts, Local(rows_of(parts.static)))
        results = Results(ask, self.web.clock) if ask is not None and self.caching is Caching.ON else None
        return _Rewritten(parts, now, reader, Local(rows_of(parts.dynamic)), ask, results)

    async def _split(self) -> Split:
        """Detection: a pattern is static when it has facts, and none of them a time."""
        pattern = self.asked.kept.pattern
        if self.caching is Caching.PROTOTYPE:
            return whole(pattern)
        wanted = demand(pattern)
        reads = await Reader(self.sources, self.style, wanted, self.web, self.settled).read()
        facts = [fact for read in reads for fact in read.facts]
        known = {each.pattern: _still(each.pattern, facts) for each in wanted if each.graph is None}
        return split(pattern, lambda triple: known.get(triple, False))


def _still(pattern: al.TriplePattern, facts: Sequence[Fact]) -> bool:
    triples = frozenset(matching(places(pattern), (fact.triple for fact in facts)))
    return bool(triples) and all(fact.static for fact in facts if fact.triple in triples)


def _name(variable: al.Var) -> str:
    return variable.name
