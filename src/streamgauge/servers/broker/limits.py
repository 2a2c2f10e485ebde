"""The limits of a broker: every number is a bound, beyond which a request is refused by name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds. ``graph`` is the most triples of one publication, ``facts`` the most that are
    published and not deleted, ``waiting`` the most publications that wait, ``batch``
    the most that are taken together; ``kept`` notifications (of ``kept_bytes``) of a channel can be resumed from, and a
    subscriber that is ``lag`` behind is left; ``rows`` is the most of a channel's answer when it is created. ``body``
    is the most bytes of one request, ``connections`` the most at once, ``subscribers`` the most of one channel.
    ``effort`` is how many facts and rows are looked at, at most, to answer a query when its channel begins (a row that
    is kept counts as eight), ``seconds`` how long its evaluation computes then, ``growth`` how many bytes the process
    grows by meanwhile, ``creations`` how many channels wait to begin. ``change`` is how many are looked at for one
    channel because of a publication, with 100 more for each of its triples, three times as many at most, and 100 for
    each triple beyond 10,000; ``looks`` how many WHERE of an update looks at; ``derived`` how often, at most, one
    publication lets rules derive or lose something, three times more for each triple beyond 10,000. ``term`` is the
    most characters of a published term, ``text`` of what a query computes. ``answer`` is the most rows of the answer
    that a message of SEPA's begins with.
    """

    channels: int = 20_000
    query_text: int = 64 * 2**10
    rows: int = 2_000_000
    graph: int = 100_000
    facts: int = 20_000_000
    effort: int = 10_000_000
    seconds: float = 10.0
    growth: int = 512 * 2**20
    creations: int = 64
    change: int = 20_000
    looks: int = 50_000
    answer: int = 100_000
    derived: int = 10_000
    term: int = 2**20
    text: int = 64 * 2**20
    waiting: int = 10_000
    batch: int = 256
    keys: int = 100_000
    subscribers: int = 10_000
    kept: int = 10_000
    kept_bytes: int = 16 * 2**20
    lag: int = 5_000
    body: int = 32 * 2**20
    connections: int = 5_000


class LimitError(ValueError):
    """Something beyond a limit; the sentence names it."""


class BusyError(RuntimeError):
    """No more is taken just now; come again."""
