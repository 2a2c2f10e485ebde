"""The contract of a source of Linked Data, whatever its interface; ``sources/`` has a file for each kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import Quad, QuadPattern

Binding = dict[Var, Term]
"""A solution mapping."""


class SourceError(Exception):
    """Why a source cannot be read; the sentence says what and where, ``address`` of which response."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(f"{address:.300}: {what}")
        self.address = address


class UnavailableError(SourceError):
    """A source that does not answer now, after retries: it may later, ``after`` so many seconds where it says."""

    def __init__(self, address: str, what: str, after: float | None = None) -> None:
        super().__init__(address, what)
        self.after = after


class UnknownHostError(UnavailableError):
    """A source whose host is known nowhere."""


class HopelessError(SourceError):
    """A source that cannot be asked, now or later: its certificate is not trusted, no TLS is spoken there."""


class StatusError(SourceError):
    """A response of a status other than 200; ``status`` is it."""

    def __init__(self, address: str, status: int, said: str) -> None:
        super().__init__(address, f"answers {status}{said}")
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchedQuads:
    """The quads of a pattern as a source served them.

    ``at`` is the source's time (its Date, ms) when it served the first page, ``until`` when the first of its pages is
    no longer fresh (ms of the source's clock, ``None`` when it does not say). ``validator`` changes with the quads,
    ``version`` with any quad of the data set (the header quads.VERSION, ``None`` where it is absent): what was fetched
    at one version is a snapshot.
    """

    quads: tuple[Quad, ...]
    at: int
    until: int | None = None
    validator: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class FetchedChange:
    """The changes of a data set since a version: quads added, quads removed; the rest as in ``FetchedQuads``."""

    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]
    at: int
    until: int | None
    version: str


class LinkedDataSource(Protocol):
    """One data set behind an address."""

    @property
    def address(self) -> str:
        """The source's start address."""
        ...

    async def count(self, pattern: QuadPattern) -> int:
        """How many quads match, as the source estimates; 0 only when none does."""
        ...

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """All matching quads; with ``seeds`` at least those that join with one of them.

        Repeated variables are held, pages that straddle a change are read again. SourceError when it cannot be had.
        """
        ...


@dataclass(frozen=True, slots=True)
class BgpSolutions:
    """The solutions of a basic graph pattern over quads; ``at`` and ``until`` are the earliest of what was fetched.

    ``versions`` are those of the data sets in the order of the sources, ``None`` for one that does not say or changed
    between what was fetched.
    """

    rows: tuple[Binding, ...]
    at: int
    until: int | None
    versions: tuple[str | None, ...] = ()
