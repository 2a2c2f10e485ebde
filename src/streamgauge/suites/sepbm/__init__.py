"""SEP-BM: a benchmark of semantic publish/subscribe (Murth, Winkler, Biffl, Kühn and Moser, 2010).

A configuration, a folder written once, has the publications and the rows due; ``adapters/`` has the systems under
test, a file each. A recording of a configuration on a system is judged by the common oracle, as a channel is a
continuous query over landmark facts. State 0 of a configuration is its base load, state k follows publication k.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyoxigraph as ox

from streamgauge.formats import tables
from streamgauge.formats.canonical import to_triples
from streamgauge.formats.files import made_folder
from streamgauge.formats.lines import LineError
from streamgauge.formats.manifest import TableError
from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.seals import SealError, check_beside
from streamgauge.formats.streams import FormatError, read_triples
from streamgauge.harness.systems import SystemUnderTest
from streamgauge.model.algebra import Select
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.run import Sample
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query import parse_sparql
from streamgauge.reasoning import OntologyError, Rules, read_rules
from streamgauge.servers.broker.contract import Publication

STREAM: Final = "http://ex.org/streams/publications"
"""The stream of the channels' continuous queries; a publication's time (ms) is its number."""


@dataclass(frozen=True, slots=True)
class SepbmChannel:
    """A channel: its name and its SELECT query."""

    name: str
    query: str

    @property
    def form(self) -> Select:
        """Its query, parsed; ValueError for one that is not a SELECT."""
        form = parse_sparql(self.query)
        if not isinstance(form, Select):
            raise ValueError(f"channel {self.name}: a channel needs a SELECT query")
        return form

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of its rows in order; ValueError for a query that is not a SELECT."""
        return self.form.variables


class DueRows(NamedTuple):
    """The rows that a publication, by its number, adds to a channel's answer and removes from it, as sets."""

    channel: str
    publication: int
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()


ABOUT, BASE, ONTOLOGY, CHANNELS, SEQUENCE, DUE = (
    "configuration.json",
    "base.nt",
    "ontology.nt",
    "channels",
    "sequence.jsonl",
    "due.parquet",
)
VERSION: Final = 1
_DUE: Final = pa.schema(
    [
        pa.field("channel", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("sign", pa.int8(), nullable=False),
        pa.field("row", pa.list_(pa.string()), nullable=False),
    ]
)
_ROWS: Final = 50_000


class ConfigurationError(MistakeError, ValueError):
    """A configuration that cannot be read or generated; the sentence names file and line, or the request."""


@dataclass(frozen=True, slots=True)
class About:
    """The content of ``configuration.json``.

    ``made`` is the request that generated it, ``alike`` the source and value of each derived channel.
    """

    made: Mapping[str, Any]
    alike: Mapping[str, tuple[str, Term]] = field(default_factory=dict)


@dataclass
class Configuration:
    """A folder: base load, ontology, channels, sequence, and due rows (section 4.2); channels are in memory.

    ``configuration.json`` describes its generation; ``base.nt`` and ``ontology.nt`` are N-Triples; ``channels/NAME.rq``
    are the queries; ``sequence.jsonl`` has a publication per line (``n``, ``add``, ``remove``: N-Triples text),
    numbered from 1; ``due.parquet`` has the columns channel, n, sign (1 or -1) and row (a list of terms).
    """

    folder: Path
    channels: tuple[SepbmChannel, ...]
    about: About

    def rules(self) -> Rules:
        """The ontology's rules; ConfigurationError names an unsupported axiom."""
        try:
            return read_rules(self.ontology())
        except OntologyError as error:
            raise ConfigurationError(f"{self.folder / ONTOLOGY}: {error}") from error

    def ontology(self) -> tuple[Triple, ...]:
        """The ontology's triples; ConfigurationError names file and line."""
        try:
            return tuple(read_triples(self.folder / ONTOLOGY))
        except FormatError as error:
            raise ConfigurationError(str(error)) from error
        except OSError as error:
            raise ConfigurationError(f"{self.folder / ONTOLOGY}: {obstacle(error)}") from error

    def base(self) -> Iterator[Triple]:
        """The explicit facts that are loaded before channels are created; ConfigurationError names file and line."""
        try:
            yield from StaticFile(self.folder / BASE)
        except LineError as error:
            raise ConfigurationError(str(error)) from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{self.folder / BASE}: {obstacle(error)}") from error

    def sequence(self) -> Iterator[Publication]:
        """The publications in order; ConfigurationError names file and line."""
        file = self.folder / SEQUENCE
        for number, line in enumerate(_lines(file), 1):
            try:
                yield _publication(json.loads(line), number)
            except (ValueError, SyntaxError, KeyError, TypeError, AttributeError) as error:
                raise ConfigurationError(f"{file}:{number}: no publication with n, add, remove: {error}") from error

    def due(self) -> Iterator[DueRows]:
        """The rows due, by publication and channel; ConfigurationError if the file is missing."""
        try:
            table = tables.read(self.folder / DUE, _DUE)
        except TableError as error:
            raise ConfigurationError(f"{error}; generate it with `streamgauge sepbm generate`") from error
        rows = zip(*(table.column(name).to_pylist() for name in ("n", "channel", "sign", "row")), strict=True)
        # The file is sorted by publication and channel, so equal keys are neighbours.
        for (number, channel), group in groupby(rows, lambda row: row[:2]):
            signed = [(sign, tuple(row)) for _, _, sign, row in group]
            yield DueRows(
                channel, number, *(tuple(row for sign, row in signed if sign == wanted) for wanted in (1, -1))
            )


class ReceivedNotification(NamedTuple):
    """A notification as a subscriber received it; ``received`` and ``made`` (``None``: unknown) are monotonic ns.

    ``causes`` are its publications by the system's numbers, empty if the system does not name them.
    """

    channel: str
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    received: int
    made: int | None = None


Receive = Callable[[ReceivedNotification], None]


class SepbmSystem(SystemUnderTest[Configuration, SepbmChannel, Publication, ReceivedNotification], Protocol):
    """A system under test; operations may come from any thread, UnusableSystemError names a failure.

    ``start`` loads the rules and the base load, ``subscribe`` creates a channel with its first subscriber, ``feed``
    publishes or deletes a graph, ``advance`` to the end runs deferred evaluations; ``unsubscribe`` deletes a channel.
    An adapter is a module of ``adapters`` with ``start(options, clock) -> SepbmSystem``, ``OPTIONS`` (their meanings),
    and ``ABOUT``, a sentence. ``clock`` is monotonic, in ns.
    """


class PublicationRecord(NamedTuple):
    """A publication of the sequence: called and acknowledged (monotonic ns), and the system's number, if any."""

    number: int
    called: int
    acknowledged: int
    known_as: int | None = None


class CountedNotification(NamedTuple):
    """A notification to a further subscriber of a channel: number of rows, and time (monotonic ns)."""

    channel: str
    subscriber: int
    causes: tuple[int, ...]
    rows: int
    received: int


@dataclass(frozen=True, slots=True)
class SepbmRecording:
    """The observation of a configuration run on a system. ``started`` (monotonic ns) is the start of the sequence.

    ``publishers`` ran concurrently, at ``rate`` publications per second (``None``: each waits for completion; otherwise
    ``called`` is the planned time); ``channels`` are those of the run, perhaps fewer than the configuration's.
    ``heard`` is what the first subscriber of each channel received, in order, ``beside`` what the others did;
    ``subscribers`` counts all of a channel.
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
    """A system under test is absent, refused a request or failed; the sentence says what to do."""


def read(folder: Path) -> Configuration:
    """Read the configuration in a folder; ConfigurationError names a missing or invalid part."""
    file = folder / ABOUT
    try:
        check_beside(folder)
    except SealError as error:
        raise ConfigurationError(str(error)) from error
    try:
        document = json.loads("".join(_lines(file)))
        alike = {name: (str(of), str(value)) for name, (of, value) in document["alike"].items()}
        version, made_from = document["version"], document["made"]
    except ConfigurationError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{file}: not written by `streamgauge sepbm generate`: generate it again") from error
    if version != VERSION:
        raise ConfigurationError(f"{file}: version {version}, but version {VERSION} is supported: generate it again")
    channels = tuple(
        SepbmChannel(path.stem, "".join(_lines(path))) for path in sorted((folder / CHANNELS).glob("*.rq"))
    )
    if not channels:
        raise ConfigurationError(
            f"{folder / CHANNELS}: no channels: a query NAME.rq for each channel is expected in this folder"
        )
    return Configuration(folder, channels, About(made_from, alike))


def write(
    folder: Path,
    about: About,
    ontology: Iterable[Triple],
    channels: Iterable[SepbmChannel],
    sequence: Iterable[Publication],
) -> None:
    """Write everything except the base load and the due rows; equal values give equal bytes. OSError."""
    made_folder(folder / CHANNELS)
    document = {"version": VERSION, "made": about.made, "alike": about.alike}
    _put(folder / ABOUT, json.dumps(document, indent=2) + "\n")
    _put(folder / ONTOLOGY, triples_text(sorted(set(ontology))))
    for channel in channels:
        _put(folder / CHANNELS / f"{channel.name}.rq", channel.query)
    with (folder / SEQUENCE).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(map(_line, sequence))


def write_due(folder: Path, due: Iterable[DueRows]) -> None:
    """Write the rows due, by publication, channel, sign and row."""
    # Sorted, so that equal values give equal bytes; unbound cells are "" in the key, since None does not compare.
    rows = sorted(
        (change.publication, change.channel, -sign, tuple(cell or "" for cell in row), sign, row)
        for change in due
        for sign, rows in ((1, change.added), (-1, change.removed))
        for row in rows
    )
    with tables.writer(folder / DUE, _DUE) as writer:
        for first in range(0, len(rows), _ROWS):
            part = rows[first : first + _ROWS]
            columns = zip(
                *((channel, number, sign, list(row)) for number, channel, _, _, sign, row in part), strict=True
            )
            writer.write_table(
                pa.table([pa.array(*column) for column in zip(columns, _DUE.types, strict=True)], schema=_DUE)
            )


def triples_text(triples: Iterable[Triple]) -> str:
    """The triples as N-Triples text."""
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def _line(publication: Publication) -> str:
    add, remove = (encode_basestring_ascii(triples_text(part)) for part in (publication.added, publication.removed))
    return f'{{"n": {publication.number}, "add": {add}, "remove": {remove}}}\n'


def _publication(document: dict[str, Any], number: int) -> Publication:
    # A line that was lost or doubled would shift the rows due of all publications after it.
    if document["n"] != number:
        raise ValueError(f"n is {document['n']}, but publications are numbered from 1")
    added, removed = (to_triples(ox.parse(document[name], format=ox.RdfFormat.N_TRIPLES)) for name in ("add", "remove"))
    return Publication(number, added, removed)


def _lines(file: Path) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8", newline="\n") as opened:
            yield from opened
    except (OSError, UnicodeDecodeError) as error:
        why = obstacle(error)
        raise ConfigurationError(
            f"{file}: cannot be read: {why}; generate it with `streamgauge sepbm generate`"
        ) from error


def _put(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")


Span = tuple[int, int]
"""The first and the last state of an interval."""


def in_order(sequence: Iterable[Publication], order: Sequence[int]) -> list[Publication]:
    """The publications in the order in which they took effect; ConfigurationError unless it has each once."""
    listed = list(sequence)
    if order and sorted(order) != [publication.number for publication in listed]:
        raise ConfigurationError(
            f"the order of effect has {len(order)} entries: each of the {len(listed)} publications must occur once"
        )
    return [listed[number - 1] for number in order] if order else listed


def spans(publications: Sequence[Publication], there: Iterable[Triple]) -> Mapping[Triple, list[Span]]:
    """For each fact of ``there`` or of a publication, the intervals of states in which it holds, inclusive."""
    # Worked example: a fact of the base load that publication 3 deletes and publication 5 publishes again, of 7: the
    # spans (0, 2) and (5, 7).
    begun = dict.fromkeys(there, 0)
    spans_by_triple: dict[Triple, list[Span]] = {}
    for state, publication in enumerate(publications, 1):
        for triple in dict.fromkeys(publication.removed):
            # Deleted and published by the same publication, the fact goes on.
            if triple not in publication.added and triple in begun:
                spans_by_triple.setdefault(triple, []).append((begun.pop(triple), state - 1))
        for triple in publication.added:
            begun.setdefault(triple, state)
    for triple, first in begun.items():
        spans_by_triple.setdefault(triple, []).append((first, len(publications)))
    return spans_by_triple
