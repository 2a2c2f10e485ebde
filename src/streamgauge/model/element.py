"""Stream elements: what enters a continuous query."""

from dataclasses import dataclass

from streamgauge.model.terms import Triple


@dataclass(frozen=True, slots=True)
class StreamElement:
    """A small graph that enters a stream (CSRBench, section 3).

    ``time`` is the application time in ms, ``sequence`` the system time (unique, a total order).
    ``added`` triples hold from ``time``; ``removed`` ones stop holding; ``until`` (ms) ends validity early.
    """

    stream: str
    time: int
    sequence: int
    added: tuple[Triple, ...]
    removed: tuple[Triple, ...] = ()
    until: int | None = None
