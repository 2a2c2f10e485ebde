"""SEP-BM's nouns: a configuration with channels, a system with the operations of section 4.1, a recording."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from streamgauge.harness.system import SystemUnderTest
from streamgauge.model.algebra import Select
from streamgauge.model.mistake import MistakeError
from streamgauge.model.run import Sample
from streamgauge.model.terms import Row, Triple
from streamgauge.query import parse_sparql
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import Publication

STREAM: Final = "http://ex.org/streams/publications"
"""The stream that a channel's continuous query is over: time is the place of a publication, as ms."""


@dataclass(frozen=True, slots=True)
class SepbmChannel:
    """A channel: its name and its SELECT query."""

    name: str
    query: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of its rows, in their order; ValueError says why its query cannot be a channel's."""
        form = parse_sparql(self.query)
        if not isinstance(form, Select):
            raise ValueError(f"channel {self.name}: its query is no SELECT: only rows can come and go")
        return form.variables


class DueRows(NamedTuple):
    """The rows of a channel's answer that a publication, by its number, lets come and go: sets, in no order."""

    channel: str
    publication: int
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()


class Configuration(Protocol):
    """A folder: base load, ontology, channels, sequence, and what is due (section 4.2).

    ``configuration.json`` says how it was made; ``base.nt`` and ``ontology.nt`` are N-Triples; ``channels/NAME.rq`` are
    the queries; ``sequence.jsonl`` has a publication a line (``n``, ``add``, ``remove``: N-Triples text), numbered from
    1; ``due.parquet`` has the columns channel, n, sign (1 or -1) and row (a list of terms).
    """

    folder: Path
    channels: tuple[SepbmChannel, ...]

    def rules(self) -> Rules:
        """The ontology's rules."""
        ...

    def base(self) -> Iterator[Triple]:
        """The explicit facts that are loaded before there are channels."""
        ...

    def sequence(self) -> Iterator[Publication]:
        """The publications in order."""
        ...

    def due(self) -> Iterator[DueRows]:
        """The rows that are due when the sequence is published one by one, by publication."""
        ...


class ReceivedNotification(NamedTuple):
    """A notification as a subscriber received it; ``received`` and ``made`` (``None``: not said) are monotonic ns.

    ``causes`` are the publications that caused it by the numbers that the system gave them, empty when it is silent.
    """

    channel: str
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    received: int
    made: int | None = None


Receive = Callable[[ReceivedNotification], None]


class SepbmSystem(SystemUnderTest[Configuration, SepbmChannel, Publication, ReceivedNotification], Protocol):
    """A system under test; operations come from any thread, UnusableSystemError says what failed.

    ``start`` loads the rules and the base load, ``subscribe`` creates a channel with its first subscriber, ``feed``
    publishes or deletes a graph, ``advance`` to the end evaluates what was put off; ``unsubscribe`` deletes a channel.

    An adapter is a module of ``adapters`` with ``start(options, clock) -> SepbmSystem``, ``OPTIONS`` (what each means),
    and ``ABOUT``, a sentence. ``clock`` is monotonic, in ns.
    """


class PublicationRecord(NamedTuple):
    """A publication of the sequence: called and acknowledged (monotonic ns), the system's number for it if any."""

    number: int
    called: int
    acknowledged: int
    known_as: int | None = None


class CountedNotification(NamedTuple):
    """A notification to a subscriber of a channel beside the first: how many rows, and when (monotonic ns)."""

    channel: str
    subscriber: int
    causes: tuple[int, ...]
    rows: int
    received: int


@dataclass(frozen=True, slots=True)
class SepbmRecording:
    """A configuration run on a system: everything observed. ``started`` (monotonic ns) is when the sequence began.

    ``publishers`` is how many published at once, ``rate`` publications a second (``None``: each waits for completion;
    otherwise ``called`` is when it was planned); ``channels`` are those that were there, which may be fewer than the
    configuration's. ``heard`` is what the first subscriber of each channel was told, in the order of reception, and
    ``beside`` what its others were, of whom ``subscribers`` counts all.
    """

    system: str
    options: dict[str, str]
    channels: tuple[str, ...]
    published: tuple[PublicationRecord, ...]
    heard: tuple[ReceivedNotification, ...]
    samples: tuple[Sample, ...]
    started: int
    loading_s: float
    publishers: int = 1
    rate: float | None = None
    failure: str | None = None
    subscribers: int = 1
    beside: tuple[CountedNotification, ...] = ()
    evaluator: str | None = None


class UnusableSystemError(MistakeError, RuntimeError):
    """A system that is not there, refuses or failed; the sentence says which and what to do."""
