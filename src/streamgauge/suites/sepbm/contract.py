"""What SEP-BM's parts hand to each other: a configuration, a system with the six operations, what was observed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

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
class Channel:
    """A channel: its name and its SELECT query."""

    name: str
    query: str

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of its rows, in their order; ValueError says why its query cannot be a channel's."""
        form = parse_sparql(self.query)
        if not isinstance(form, Select):
            raise ValueError(f"channel {self.name}: its query is no SELECT: only rows can come and go")
        return form.variables


class Due(NamedTuple):
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
    channels: tuple[Channel, ...]

    def rules(self) -> Rules:
        """The ontology's rules."""
        ...

    def base(self) -> Iterator[Triple]:
        """The explicit facts that are loaded before there are channels."""
        ...

    def sequence(self) -> Iterator[Publication]:
        """The publications in order."""
        ...

    def due(self) -> Iterator[Due]:
        """What the channels are due when the sequence is published one by one, by publication."""
        ...


class Heard(NamedTuple):
    """What a subscriber was told. ``received`` and ``made`` are monotonic ns, ``made`` ``None`` when it is not said.

    ``causes`` are the publications that caused it by the numbers that the system gave them, empty when it is silent.
    """

    channel: str
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    received: int
    made: int | None = None


Hear = Callable[[Heard], None]


class System(Protocol):
    """A system under test: the six operations (section 4.1), from any thread; UnusableSystemError says what failed.

    An adapter is a module of ``adapters`` with ``start(options, clock) -> System``, ``OPTIONS`` (what each means),
    and ``ABOUT``, a sentence. ``clock`` is monotonic, in ns.
    """

    @property
    def evaluator(self) -> str | None:
        """What computes its answers, ``changes`` or ``definition``, which may not judge it; ``None``: none of ours."""
        ...

    @property
    def processes(self) -> Sequence[int]:
        """The roots of the process trees whose resources are the system's; the runner's own when it is in process."""
        ...

    def load(self, configuration: Configuration) -> None:
        """The ontology's rules and the base load are there, before there are channels."""
        ...

    def create_channel(self, channel: Channel) -> None:
        """A channel begins."""
        ...

    def delete_channel(self, name: str) -> None:
        """It ends."""
        ...

    def subscribe(self, name: str, hear: Hear) -> None:
        """One subscriber of a channel; ``hear`` is called from any thread, in the channel's order."""
        ...

    def unsubscribe(self, name: str) -> None:
        """It leaves."""
        ...

    def publish(self, graph: Sequence[Triple]) -> int | None:
        """Facts are there from now on; returns when acknowledged, with the system's number for it if it has one."""
        ...

    def delete(self, graph: Sequence[Triple]) -> int | None:
        """They are there no more."""
        ...

    def settle(self) -> None:
        """Return when what is acknowledged has been processed and what it led to has been told; also called before.

        What the system puts off, as those do that guess, may stay put off.
        """
        ...

    def finish(self) -> None:
        """Return when all that was caused by what is acknowledged has been told, what was put off too."""
        ...

    def close(self) -> None:
        """Leave nothing running."""
        ...


class Published(NamedTuple):
    """A publication of the sequence: called and acknowledged (monotonic ns), the system's number for it if any."""

    number: int
    called: int
    acknowledged: int
    known_as: int | None = None


class Beside(NamedTuple):
    """What subscribers of a channel beside the first were told, without the rows: how many, and when (monotonic ns)."""

    channel: str
    subscriber: int
    causes: tuple[int, ...]
    rows: int
    received: int


@dataclass(frozen=True, slots=True)
class Recording:
    """A configuration run on a system: everything observed. ``started`` (monotonic ns) is when the sequence began.

    ``publishers`` is how many published at once, ``rate`` publications a second (``None``: each waits for completion;
    otherwise ``called`` is when it was planned); ``channels`` are those that were there, which may be fewer than the
    configuration's. ``heard`` is what the first subscriber of each channel was told, in the order of reception, and
    ``beside`` what its others were, of whom ``subscribers`` counts all.
    """

    system: str
    options: dict[str, str]
    channels: tuple[str, ...]
    published: tuple[Published, ...]
    heard: tuple[Heard, ...]
    samples: tuple[Sample, ...]
    started: int
    loading_s: float
    publishers: int = 1
    rate: float | None = None
    failure: str | None = None
    subscribers: int = 1
    beside: tuple[Beside, ...] = ()
    evaluator: str | None = None


class UnusableSystemError(MistakeError, RuntimeError):
    """A system that is not there, refuses or failed; the sentence says which and what to do."""
