"""When the triples of a graph arrived last, kept as facts that timestamp() reads (``query/stamps.py``)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from streamgauge.model.terms import Triple
from streamgauge.query.stamps import stamp, time_fact

Feed: TypeAlias = Callable[[Iterable[Triple]], None]
"""What lets triples enter or leave a graph of the evaluator."""


class Latest:
    """The stamps of one graph: a triple's time is that of its latest arrival that is still there."""

    def __init__(self, enter: Feed, leave: Feed) -> None:
        self._enter, self._leave = enter, leave
        self._times: dict[Triple, dict[int, int]] = {}

    def came(self, time: int, triples: Iterable[Triple]) -> None:
        """Triples arrived at ``time`` (ms)."""
        for triple in triples:
            times = self._times.get(triple)
            if times is None:
                self._times[triple] = {time: 1}
                self._enter((*stamp(triple), time_fact(triple, time)))
                continue
            before = max(times)
            times[time] = times.get(time, 0) + 1
            if time > before:
                self._move(triple, before, time)

    def went(self, time: int, triples: Iterable[Triple]) -> None:
        """What arrived at ``time`` (ms) is no longer there."""
        for triple in triples:
            times = self._times[triple]
            before = max(times)
            times[time] -= 1
            if not times[time]:
                del times[time]
            if not times:
                del self._times[triple]
                self._leave((*stamp(triple), time_fact(triple, time)))
            elif (now := max(times)) != before:
                self._move(triple, before, now)

    def _move(self, triple: Triple, before: int, now: int) -> None:
        self._leave((time_fact(triple, before),))
        self._enter((time_fact(triple, now),))
