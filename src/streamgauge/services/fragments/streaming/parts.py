"""What one reading has of one source: fragments, whole or restricted to values where that takes fewer requests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.services.fragments.fetching.contract import Fetched, Source
from streamgauge.services.fragments.quads import Quad, QuadPattern
from streamgauge.services.fragments.streaming.forms import Asking, Place, Values, bound

SEEDS: Final = 1000
"""The most values that a pattern is restricted to."""

Key: TypeAlias = tuple[QuadPattern, tuple[tuple[Var, Term], ...]]
"""A pattern and the values that it was restricted to."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one source: facts, its time (ms) at the last answer, until when all of it is fresh.

    ``until`` is ``None`` where nothing says so.
    """

    facts: tuple[Fact, ...]
    at: int
    until: int | None


@dataclass(slots=True)
class Part:
    """A source in one reading; each fragment is fetched once."""

    source: Source
    fetched: dict[Key, Fetched] = field(default_factory=dict)
    _counts: dict[QuadPattern, int] = field(default_factory=dict)

    async def count(self, pattern: QuadPattern) -> int:
        """How many quads match, asked once."""
        if pattern not in self._counts:
            self._counts[pattern] = await self.source.count(pattern)
        return self._counts[pattern]

    async def cover(self, asking: Asking, values: Values) -> dict[Key, Fetched]:
        """What has the quads of a pattern's facts, labels too, at least of those that have the values."""
        found: dict[Key, Fetched] = {}
        for group in asking.groups:
            known: dict[Var, frozenset[Term]] = dict(values)
            waiting = list(group)
            while waiting:
                place = min(waiting, key=partial(self._order, known))
                waiting.remove(place)
                key = await self._fetch(place.asked, known)
                quads = self.fetched[key].quads if key is not None else ()
                if key is not None:
                    found[key] = self.fetched[key]
                for variable, terms in (bound(place.pattern, quads) | asking.computed(place, quads)).items():
                    known[variable] = known.get(variable, terms) & terms
        return found

    async def _fetch(self, pattern: QuadPattern, known: Values) -> Key | None:
        """Fetch a pattern, its source told which values matter; ``None`` when none can match."""
        variable = _narrowest(pattern, known)
        terms = () if variable is None else sorted(known[variable])
        if variable is not None and not terms:
            return None
        whole = (pattern, ()) in self.fetched or variable is None or len(terms) > SEEDS
        key: Key = pattern, () if whole or variable is None else tuple((variable, term) for term in terms)
        if key not in self.fetched:
            self.fetched[key] = await self.source.fetch(pattern, [{name: term} for name, term in key[1]])
        return key

    def _order(self, known: Values, place: Place) -> int:
        """What is there costs nothing, then what is restricted to few values, then what has few variables."""
        if (place.asked, ()) in self.fetched:
            return 0
        variable = _narrowest(place.asked, known)
        return SEEDS * (1 + len(place.asked.variables)) if variable is None else len(known[variable])


def _narrowest(pattern: QuadPattern, known: Values) -> Var | None:
    """The variable with the fewest values."""
    found = [variable for variable in pattern.variables if variable in known]
    return min(found, key=lambda variable: len(known[variable]), default=None)


def quads_of(fetched: Iterable[Fetched]) -> dict[Quad, None]:
    """All quads, each once."""
    return {quad: None for each in fetched for quad in each.quads}
