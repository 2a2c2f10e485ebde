"""The limits of a query service: every number is a bound, beyond which a request is refused by name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds; sizes in bytes unless named otherwise, times in seconds. ``None`` is no bound.

    An identity may have ``queries`` and ``subscribers``, and send ``elements_per_second``.
    ``waiting`` elements may be queued for a query before publishers are slowed down; ``kept`` answers (of
    ``kept_bytes``) of a query can be resumed from, and a subscriber that is ``lag`` answers behind is disconnected.
    ``memory`` bounds the estimated size of a query: its static data, windows and stored answers. ``seconds`` of CPU
    bound an element with the reports that it makes due, and ``growth`` the growth of the process meanwhile, beyond the
    estimated size of windows, for each query and each pattern that queries share; a query is parsed within ``seconds``,
    while ``registrations`` of others wait. Time may advance past at most ``jump`` reports at once.
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
    """The service is at capacity; retry after ``after`` seconds."""

    def __init__(self, sentence: str, after: float) -> None:
        super().__init__(sentence)
        self.after = after
