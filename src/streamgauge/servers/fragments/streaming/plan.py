"""What both plans of the query streamer are: something that is polled and says the answer as it is then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamgauge.incremental import Bag
from streamgauge.servers.fragments.fetching.contract import Source
from streamgauge.servers.fragments.streaming.reading import Rounds


@dataclass(frozen=True, slots=True)
class Polled:
    """The answer's rows and their multiplicities, in order where it has one, at ``instant`` (server's time, ms).

    ``due`` is when a fact that the answer depends on begins or ends next, ``until`` when what was read is no longer
    fresh; both ms of the own clock, ``None`` where nothing is known. ``lapsed``: what has ended was not yet renewed.
    """

    bag: Bag
    instant: int
    due: int | None
    until: int | None
    lapsed: bool = False


class Plan(Protocol):
    """A way to keep a query current."""

    async def poll(self) -> Polled:
        """The answer now; SourceError or LabelError when it cannot be told."""
        ...


def first_of(sources: Sequence[Source], times: Sequence[int | None], web: Rounds) -> int | None:
    """The first of the sources' times (ms, each of its own clock) by the own clock: see ``Rounds.due``."""
    found = [
        web.due(source.address, time, getattr(source, "told", False))
        for source, time in zip(sources, times, strict=True)
        if time is not None
    ]
    return min(found, default=None)
