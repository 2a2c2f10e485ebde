"""The limits of a query service: every number is a bound, beyond which a request is refused by name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds; sizes in bytes unless named otherwise, times in seconds. ``None`` is no bound.

    An identity may have ``queries`` and ``subscribers``, and send ``elements_per_second``.
    ``waiting`` elements may wait for a query before publishers are slowed; ``kept`` answers (of ``kept_bytes``) of a
    query can be resumed from, and a subscriber that is ``lag`` of them behind is left. ``memory`` bounds what one query
    is estimated to hold: its static data, what its windows hold, its kept answers. ``seconds`` of CPU are what one
    element, and what is due because of it, may take, and ``growth`` what the process may grow by meanwhile, beyond what
    windows are estimated to hold; a query is understood in ``seconds``, while ``registrations`` of others wait. Time
    may come past ``jump`` reports at once.
    """

    queries: int = 100
    query_text: int = 64 * 2**10
    static_triples: int = 1_000_000
    shared_triples: int = 5_000_000
    subscribers: int = 1000
    waiting: int = 50_000
    kept: int = 1000
    kept_bytes: int = 16 * 2**20
    lag: int = 500
    body: int = 16 * 2**20
    elements_per_second: float | None = None
    lifetime: float | None = None
    memory: int = 2 * 2**30
    streams: int = 1000
    seconds: float = 10.0
    growth: int = 512 * 2**20
    registrations: int = 64
    jump: int = 100_000


TRIPLE_BYTES = 400
"""The estimated bytes of a triple in a window."""


class QueryLimitError(ValueError):
    """Something beyond a limit; the sentence names it."""


class QueriesBusyError(RuntimeError):
    """The service takes no more just now; ``after`` is when to come again, in seconds."""

    def __init__(self, sentence: str, after: float) -> None:
        super().__init__(sentence)
        self.after = after
