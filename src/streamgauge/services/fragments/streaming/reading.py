"""The facts that a query needs, read from its sources again and again with few requests."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from streamgauge.compute.drivers.fetched import border
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term, Triple
from streamgauge.services.fragments.fetching.contract import Fetched, Source, UnavailableError
from streamgauge.services.fragments.fetching.together import together
from streamgauge.services.fragments.fetching.web import Use
from streamgauge.services.fragments.streaming.demand import OUTER, Wanted
from streamgauge.services.fragments.streaming.forms import Asking, Values, asking, facts_of, terms_at
from streamgauge.services.fragments.streaming.parts import Key, Part, Read, quads_of
from streamgauge.services.fragments.style import Style

READINGS: Final = 5
"""How often a source is read again whose answers straddle a change."""

SETTLED: Final = 60_000
"""How long (ms) facts that say no end are taken to hold where their source does not say how long."""


class Rounds(Protocol):
    """Where sources send their requests (``fetching.web.Web``)."""

    @property
    def clock(self) -> Callable[[], int]:
        """The own clock, ms."""
        ...

    def round(self, use: Use = Use.KEPT) -> AbstractContextManager[None]:
        """What comes in a round is used again in it; ASKED: nothing else is."""
        ...

    def skew(self, address: str) -> int:
        """By how many ms the clock of an address's server is ahead of the own."""
        ...


@dataclass(frozen=True, slots=True)
class _Settled:
    """A pattern whose facts say no end: what was fetched by source, when (own clock, ms), beside which values."""

    fetched: tuple[Mapping[Key, Fetched], ...]
    triples: frozenset[Triple]
    since: int
    values: Values


class Reader:
    """Reads the facts of triple patterns; each ``read`` asks anew for what is no longer fresh.

    A pattern whose facts say no end is asked for again after ``settled`` ms, or when those that it joins with have
    values that were not there when it was read. Without a style facts have no times.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        style: Style | None,
        wanted: Sequence[Wanted],
        web: Rounds,
        settled: int = SETTLED,
    ) -> None:
        self._sources, self._wanted, self._web = sources, wanted, web
        self._facts = partial(facts_of, style=style)
        self._settled_for = settled
        self._asking = [asking(each.pattern, style) for each in wanted]
        self._settled: dict[int, _Settled] = {}
        self._order: list[int] = []
        self._before: list[dict[Key, Fetched]] = [{} for _ in sources]

    async def read(self, given: Values | None = None) -> list[Read]:
        """The facts by source, each as it was at one version; ``given`` are the values that come from outside.

        SourceError when a source cannot be read, or changes faster than it can be.
        """
        use, settled = Use.KEPT, dict(self._settled)
        for _ in range(READINGS):
            with self._web.round(use):
                parts = [Part(source) for source in self._sources]
                reads = await self._read(parts, given or {})
            read = zip(parts, reads, self._before, strict=True)
            torn = [part.source.address for part, facts, before in read if self._torn(part, facts, before)]
            self._before = [part.fetched for part in parts]
            if not torn:
                return reads
            use, self._settled = Use.ASKED, dict(settled)
        raise UnavailableError(torn[0], f"changes faster than it can be read {READINGS} times")

    def _torn(self, part: Part, read: Read, before: Mapping[Key, Fetched]) -> bool:
        """Whether answers that came now are of several versions, or facts among them have ended since."""
        came = [each for key, each in part.fetched.items() if _stamp(each) != _stamp(before.get(key))]
        if len({each.version for each in came if each.version is not None}) > 1:
            return True
        ends = border(read.facts, read.at)
        now = self._web.clock() + self._web.skew(part.source.address)
        return not came and ends is not None and ends <= now

    async def _read(self, parts: Sequence[Part], given: Values) -> list[Read]:
        found: dict[int, frozenset[Triple]] = {}
        fetched: list[dict[Key, Fetched]] = [{} for _ in parts]
        for number in await self._sequence(parts):
            values = self._values(number, given, found)
            kept = self._kept(number, values)
            if kept is None:
                asked = self._asking[number]
                covers = await together(part.cover(asked, values) for part in parts)
                kept = self._learn(number, covers, values)
            found[number] = kept.triples
            for own, each in zip(fetched, kept.fetched, strict=True):
                own.update(each)
        return [self._whole({**own, **part.fetched}) for own, part in zip(fetched, parts, strict=True)]

    async def _sequence(self, parts: Sequence[Part]) -> list[int]:
        """The patterns in the order in which they are read: what may have changed first, then those with few quads."""
        if not self._order:
            counts = await together(_count(parts, each) for each in self._asking) if self._joined else []
            self._order = sorted(range(len(self._wanted)), key=counts.__getitem__ if counts else int)
        return sorted(self._order, key=lambda number: number in self._settled)

    @property
    def _joined(self) -> bool:
        return any(each.suppliers for each in self._wanted)

    def _values(self, number: int, given: Values, found: Mapping[int, frozenset[Triple]]) -> Values:
        """What a pattern's variables may be, by what was found at its suppliers: any of them has all that matters."""
        values: dict[Var, frozenset[Term]] = {}
        for variable, suppliers in self._wanted[number].suppliers.items():
            sets = [terms_at(self._wanted[each].pattern, variable, found[each]) for each in suppliers if each in found]
            if OUTER in suppliers and variable in given:
                sets.append(given[variable])
            if sets:
                values[variable] = frozenset.intersection(*sets)
        return values

    def _kept(self, number: int, values: Values) -> _Settled | None:
        """What is there of a settled pattern, when it can still be taken."""
        kept = self._settled.get(number)
        if kept is None or self._web.clock() >= kept.since + self._settled_for:
            return None
        pattern = self._wanted[number].pattern
        known = all(
            terms <= kept.values.get(variable, frozenset()) | terms_at(pattern, variable, kept.triples)
            for variable, terms in values.items()
        )
        return kept if known else None

    def _learn(self, number: int, covers: Sequence[Mapping[Key, Fetched]], values: Values) -> _Settled:
        """Take in what was fetched for a pattern; it is settled when it has facts and none of them says an end."""
        facts = [fact for each in covers for fact in self._facts(quads_of(each.values()))]
        triples = frozenset(fact.triple for fact in facts)
        learned = _Settled(tuple(covers), triples, self._web.clock(), values)
        if facts and all(fact.static for fact in facts):
            self._settled[number] = learned
        else:
            self._settled.pop(number, None)
        return learned

    def _whole(self, fetched: Mapping[Key, Fetched]) -> Read:
        parts = fetched.values()
        ends = [each.until for each in parts if each.until is not None]
        at = max((each.at for each in parts), default=0)
        return Read(tuple(self._facts(quads_of(parts))), at, min(ends, default=None))


async def _count(parts: Sequence[Part], asked: Asking) -> int:
    return sum(await together(part.count(asked.entry) for part in parts))


def _stamp(fetched: Fetched | None) -> object:
    """What tells an answer from one before it."""
    return fetched and (fetched.at, fetched.until, fetched.validator, fetched.version)
