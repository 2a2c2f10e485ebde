"""Facts that are fetched, end and change, as triples that enter and leave the evaluator."""

from collections.abc import Hashable, Iterable

from streamgauge.incremental.drivers.latest import Feed
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Triple


class Holding:
    """The triples that hold among the facts of sources, each at the time (ms) that its source showed.

    A triple that several sources have enters for each of them.
    """

    def __init__(self, enter: Feed, leave: Feed) -> None:
        self._enter, self._leave = enter, leave
        self._facts: dict[Hashable, tuple[tuple[Fact, ...], int]] = {}
        self._holding: dict[Hashable, set[Triple]] = {}

    def fetched(self, source: Hashable, facts: Iterable[Fact], at: int) -> None:
        """A source has these facts now, at its time: what does not hold leaves, what holds enters."""
        known = tuple(facts)
        self._facts[source] = known, at
        now = {fact.triple for fact in known if fact.holds(at)}
        before = self._holding.get(source, set())
        self._leave(before - now)
        self._enter(now - before)
        self._holding[source] = now

    def border(self, source: Hashable) -> int | None:
        """When a fact of the source begins or ends to hold next (ms of its clock); ``None`` when none will."""
        facts, at = self._facts[source]
        return border(facts, at)

    def __len__(self) -> int:
        return sum(map(len, self._holding.values()))


def border(facts: Iterable[Fact], at: int) -> int | None:
    """When one of the facts begins or ends to hold next after ``at`` (ms); ``None`` when none will."""
    times = (time for fact in facts for time in (fact.initial, fact.final) if time is not None and time > at)
    return min(times, default=None)
