"""Updates of a crowd's server: the facts of stream elements as requests, and the publisher that sends them."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

import httpx

from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.harness.pace import HandoverLog, Schedule
from streamgauge.harness.process import ProgramError
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple

PATIENCE_S: Final = 60.0
NS: Final = 1_000_000
"""The number of nanoseconds in a millisecond."""


class FactRenewal(StrEnum):
    """How an update replaces the facts of the previous one."""

    KEPT = "kept"  # by the write interface: what stays as it was keeps its name and gets a later end
    PUBLISHED = "published"  # as the prototype: all anew under new names, after it the previous ones are removed
    PLAIN = "plain"  # without times, for clients that poll


@dataclass(frozen=True, slots=True)
class Update:
    """Facts that hold from ``time`` until their stated end (ms of the stream)."""

    time: int
    until: int
    triples: tuple[Triple, ...]


def updates(elements: Iterable[StreamElement], slack: int) -> Iterator[Update]:
    """The elements of a stream by time, with ends ``slack`` ms later, so that facts are renewed before they end.

    ValueError for an element without an end.
    """
    for at, group in groupby(elements, key=lambda element: element.time):
        together = list(group)
        if any(element.until is None for element in together):
            raise ValueError(f"an element at {at} ms has no end: facts of a data set that is renewed need one")
        until = max(element.until or 0 for element in together)
        # A dict drops duplicates and keeps the order of the stream.
        triples = dict.fromkeys(triple for element in together for triple in element.added)
        yield Update(at, until + slack, tuple(triples))


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """An update as a request: when it is due (ms of the stream), its path below the server's address, its content."""

    time: int
    path: str
    content: bytes
    kind: str


def streamed(elements: Sequence[StreamElement]) -> list[UpdateRequest]:
    """Elements as requests to the query service, one request per time."""
    path = f"/streams/{elements[0].stream.replace('/', '%2F')}"
    return [
        UpdateRequest(
            at,
            path,
            # The advance says that the time is complete, so that windows close without waiting for the next element.
            b"".join([*map(encode_element, group), encode_advance(at)]),
            "application/x-ndjson",
        )
        for at, group in groupby(sorted(elements, key=attrgetter("time")), attrgetter("time"))
    ]


def replaced(updates: Iterable[Update]) -> Iterator[UpdateRequest]:
    """Updates for a broker: delete the facts that only the previous update has, insert those of this one."""
    before: set[Triple] = set()
    for update in updates:
        come = set(update.triples)
        text = f"{_data('DELETE', before - come)}{_data('INSERT', come)}"
        # INSERT DATA has all facts, also those that are there: inserting them again has no effect.
        yield UpdateRequest(update.time, "/update", text.encode(), "application/sparql-update")
        before = come


def _data(verb: str, triples: Iterable[Triple]) -> str:
    lines = "".join(f"{' '.join(triple)} .\n" for triple in sorted(triples))
    return f"{verb} DATA {{\n{lines}}} ;\n" if lines else ""


class Handover(NamedTuple):
    """An update that a server acknowledged: when it was due (ms of the stream), sent and acknowledged, its number.

    ``sent`` and ``acknowledged`` are ms since 1970; ``known_as`` is the server's number for it, if it has one.
    """

    time: int
    sent: int
    acknowledged: int
    known_as: int | None


class Publisher(threading.Thread):
    """Feeds a system with requests at their times; ``begins`` is the stream's time 0, ms since 1970."""

    def __init__(
        self, feed: Callable[[UpdateRequest], int | None], requests: Iterable[UpdateRequest], begins: int
    ) -> None:
        super().__init__(name="streamgauge-publisher", daemon=True)
        self._feed, self.begins, self.log = feed, begins, HandoverLog(tuple(requests), time.time_ns)
        self._over = threading.Event()
        self._schedule = Schedule(begins * NS, NS, time.time_ns, self._over.wait)
        self.failure = ""

    def run(self) -> None:
        """Send all requests, or until ``end``; ``failure`` says how it failed."""
        times = ((place, element.time) for place, element in enumerate(self.log.elements))
        try:
            self.log.feed_planned(self._feed, times, self._schedule, self._over.is_set)
        except (httpx.HTTPError, OSError) as error:
            self.failure = f"{type(error).__name__}: {error}"
        except ProgramError as error:
            self.failure = str(error)

    @property
    def taken(self) -> list[Handover]:
        """The requests that were acknowledged, in order."""
        log = self.log
        columns = zip(log.elements, log.handed, log.acknowledged, log.known_as, strict=True)
        return [Handover(row.time, at // NS, back // NS, known) for row, at, back, known in columns if back]

    def end(self) -> None:
        """Stop sending and wait for the thread."""
        self._over.set()
        self.join(PATIENCE_S)

    def check(self, name: str) -> None:
        """ProgramError if a request failed, or none was sent."""
        # A crowd without any update would only measure idle clients.
        if self.failure or not self.taken:
            raise ProgramError(f"{name}: publishing failed: {self.failure or 'nothing was taken'}")


def wall_ms() -> int:
    """The wall clock, ms since 1970."""
    return time.time_ns() // 1_000_000
