"""What is known of one source: fragments, whole or of some values, as they are at one version."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.fetching.contract import Changed, Fetched, Source
from streamgauge.servers.fragments.quads import ANYWHERE, Quad, QuadPattern
from streamgauge.servers.fragments.streaming.forms import Asking, Place, Values, bound, taken

SEEDS: Final = 1000
"""The most values that a pattern is restricted to."""

ALL: Final = QuadPattern(Var("s"), Var("p"), Var("o"), ANYWHERE)
"""Everything in a data set."""

Key: TypeAlias = tuple[QuadPattern, Var | None]
"""What a fragment is of: a pattern, and the variable whose values it was restricted by."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one source: facts, its time (ms) at the last answer, until when all of it is fresh.

    ``until`` is ``None`` where nothing says so; ``named`` are quads of the data's own named graphs.
    """

    facts: tuple[Fact, ...]
    at: int
    until: int | None
    named: tuple[Quad, ...] = ()


@dataclass(frozen=True, slots=True)
class Fragment:
    """Quads of a pattern, those with ``terms`` at its variable where there is one; ``parts`` are what it came by."""

    key: Key
    terms: frozenset[Term]
    quads: frozenset[Quad]
    parts: tuple[Fetched, ...]
    _by: dict[Term, list[Quad]] = field(default_factory=dict, compare=False, repr=False)
    """The quads by their predicate, once that was asked for."""

    def of(self, pattern: QuadPattern) -> list[Quad]:
        """Its quads that match a pattern."""
        if isinstance(pattern.predicate, Var) or self.key[0].predicate == pattern.predicate:
            return taken(pattern, self.quads)
        if not self._by:
            for quad in self.quads:
                self._by.setdefault(quad[1], []).append(quad)
        return taken(pattern, self._by.get(pattern.predicate, ()))

    def moved(self, changed: Changed) -> "Fragment":
        """The fragment after what changed."""
        added, removed = (frozenset(self.having(quads)) for quads in (changed.added, changed.removed))
        part = Fetched((), changed.at, changed.until, None, changed.version)
        if not added and not removed:
            return replace(self, parts=(part,))
        return replace(self, quads=self.quads - removed | added, parts=(part,), _by={})

    def having(self, quads: Iterable[Quad]) -> list[Quad]:
        """Which of some quads are of it, when they are there."""
        pattern, variable = self.key
        found = taken(pattern, quads)
        if variable is None:
            return found
        place = pattern.nodes.index(variable)
        return [quad for quad in found if quad[place] in self.terms]


@dataclass(slots=True)
class Part:
    """A source in one reading; what ``fragments`` has is not fetched again. ``came`` is what was fetched in it.

    ``lost``: its server does not know how it came from what was known to what there is.
    """

    source: Source
    fragments: dict[Key, Fragment] = field(default_factory=dict)
    came: list[Fetched] = field(default_factory=list)
    lost: bool = False

    async def cover(self, asking: Asking, values: Values) -> dict[Key, Fragment]:
        """What has the quads of a pattern's facts, labels too, at least of those that have the values."""
        found: dict[Key, Fragment] = {}
        for group in asking.groups:
            known: dict[Var, frozenset[Term]] = dict(values)
            waiting = list(group)
            while waiting:
                place = min(waiting, key=partial(self._rank, known))
                waiting.remove(place)
                fragment = await self._fetch(place.asked, known)
                quads = [] if fragment is None else fragment.of(place.asked)
                if fragment is not None:
                    found[fragment.key] = fragment
                for variable, terms in (bound(place.pattern, quads) | asking.computed(place, quads)).items():
                    known[variable] = known.get(variable, terms) & terms
        return found

    async def take_all(self, predicates: frozenset[Term]) -> None:
        """Fetch all that has one of these predicates; without any, everything."""
        variable = Var("p") if predicates else None
        await self._more((ALL, variable), predicates)

    async def _fetch(self, pattern: QuadPattern, known: Values) -> Fragment | None:
        """The fragment of a pattern, its source told which values matter; ``None`` when none can match."""
        if (there := self._there(pattern)) is not None:
            return there
        variable = _narrowest(pattern, known)
        if variable is None or len(known[variable]) > SEEDS:
            return await self._more((pattern, None), frozenset())
        return await self._more((pattern, variable), known[variable]) if known[variable] else None

    def _there(self, pattern: QuadPattern) -> Fragment | None:
        """What has all of a pattern already."""
        for key in ((pattern, None), (ALL, None)):
            if key in self.fragments:
                return self.fragments[key]
        some = self.fragments.get((ALL, Var("p")))
        return some if some is not None and pattern.predicate in some.terms else None

    async def _more(self, key: Key, terms: frozenset[Term]) -> Fragment:
        """The fragment of a key, fetched as far as it is not there."""
        pattern, variable = key
        held = self.fragments.get(key) or Fragment(key, frozenset(), frozenset(), ())
        missing = sorted(terms - held.terms)
        if missing or not held.parts:
            seeds = [] if variable is None else [{variable: term} for term in missing]
            fetched = await self.source.fetch(pattern, seeds)
            self.came.append(fetched)
            made = Fragment(key, held.terms | terms, held.quads.union(fetched.quads), (*held.parts, fetched))
            self.fragments[key] = made
        return self.fragments[key]

    def _rank(self, known: Values, place: Place) -> int:
        """What is there first, then what is restricted to few values, then what has few variables."""
        if self._there(place.asked) is not None:
            return 0
        variable = _narrowest(place.asked, known)
        return SEEDS * (1 + len(place.asked.variables)) if variable is None else len(known[variable])


def _narrowest(pattern: QuadPattern, known: Values) -> Var | None:
    """The variable with the fewest values."""
    found = [variable for variable in pattern.variables if variable in known]
    return min(found, key=lambda variable: len(known[variable]), default=None)


def quads_of(fragments: Iterable[Fragment]) -> dict[Quad, None]:
    """All quads, each once."""
    return {quad: None for each in fragments for quad in each.quads}


def parts_of(fragments: Iterable[Fragment]) -> Iterator[Fetched]:
    """What fragments came by."""
    return (part for each in fragments for part in each.parts)


def versions(parts: Iterable[Fetched]) -> frozenset[str]:
    """The versions of the data set that parts are of, as far as they say."""
    return frozenset(each.version for each in parts if each.version is not None)


def predicates_of(asked: Sequence[Asking]) -> frozenset[Term]:
    """The predicates of all that is asked for; none when a variable stands in such a place."""
    found = {place.asked.predicate for each in asked for group in each.groups for place in group}
    return frozenset() if any(isinstance(each, Var) for each in found) else frozenset(map(str, found))
