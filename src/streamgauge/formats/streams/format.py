"""The contract of a stream format, with what all formats share: blank node labels, term checks, order of time."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import starmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term
from streamgauge.formats.charsets import CharsetError, text_in_utf8
from streamgauge.formats.codings import CodingError, unpack_gzip
from streamgauge.formats.contexts import ContextError, read_contexts
from streamgauge.formats.documents import Document, FormatError
from streamgauge.formats.lines import Input
from streamgauge.formats.streams.groups import WINDOW, Groups
from streamgauge.formats.streams.marks import LineMark
from streamgauge.model.controls import visible
from streamgauge.model.element import StreamElement
from streamgauge.model.own_data import OWN_DATA_NAMES, OwnData
from streamgauge.model.terms import Term, Triple, is_triple_of, misplaced, with_blank_nodes

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch, Taken

STREAM = "http://ex.org/streams/test"
"""The stream's IRI where a file names none (YABench's and CSRBench's queries use it)."""

Note: TypeAlias = Callable[[str], None]
"""Receives a sentence about an assumption that was made while reading a file."""


def logged(sentence: str) -> None:
    """A note as a warning of the logger ``streamgauge``."""
    logging.getLogger("streamgauge").warning(visible(sentence))


OPTIONS: Final = (*OWN_DATA_NAMES, "interval", "once")
"""The fields of ``Reading`` that a format honours or not; a bound as ``limit`` changes no element."""

Way: TypeAlias = Literal["read", "timed", "follow", "decoder"]
"""How bytes become elements: a whole file by its own times, by a time property, as it comes, message by message."""


@dataclass(frozen=True, slots=True)
class Reading(OwnData):
    """How to read: the stream's IRI, ms between numbered files, frames or messages, how late elements may come (ms).

    Without ``lateness`` a time that goes back is refused. ``limit`` are the bytes that one line or message may have.
    ``once``: the numbers that elements carry rise in each stream, and one that does not is a repetition and left out.
    ``checked``: every term is looked at, also where a format takes it as it is written. ``among``: the streams one of
    which an element that names none would have to choose, which is refused; then ``stream`` does not count.

    ``prefixes`` are those of prefixed names beside the well-known ones. ``note`` hears what was taken for granted.
    ``named`` are options that were named although they have their default value. ``numbered_from`` is the number of the
    first element that has none. ``mark`` is where a reader of lines leaves word of how to continue it, and finds it.
    """

    stream: str = STREAM
    interval: int = 1000
    lateness: int | None = None
    limit: int = 16 * 2**20
    once: bool = False
    checked: bool = False
    among: tuple[str, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)
    note: Note = logged
    named: frozenset[str] = frozenset()
    numbered_from: int = 0
    mark: LineMark | None = field(default=None, compare=False)

    @property
    def chosen(self) -> frozenset[str]:
        """The options that the user named or that differ from their defaults."""
        return self.named | {name for name in OPTIONS if getattr(self, name) != _DEFAULTS[name]}

    def without(self, options: Iterable[str]) -> "Reading":
        """The reading without these options."""
        options = frozenset(options)
        defaults: dict[str, Any] = {name: _DEFAULTS[name] for name in options & set(OPTIONS)}
        return replace(self, named=self.named - options, **defaults)

    def is_timed(self, form: "Format") -> bool:
        """Whether a format's files are read by the times of a property or column."""
        return form.timed is not None and (self.time_property is not None or form.read is None)

    def contexts(self) -> dict[str, Any]:
        """The JSON-LD contexts of the option ``context``, by their IRIs; FormatError."""
        try:
            return read_contexts(self.context)
        except ContextError as error:
            raise FormatError(str(error)) from error


_DEFAULTS: Final = {option.name: option.default for option in fields(Reading)}

Item: TypeAlias = tuple[object, int, tuple[Triple, ...]]
"""(place, time in ms, triples) of a future element; the place is formatted only when an error needs it."""

Refuse: TypeAlias = Callable[[FormatError], None]
"""The handler of a bad line or message: raise the error, or count it and return to go on with the next."""

Read: TypeAlias = Callable[["Whole", Reading, Refuse], Iterator[StreamElement]]
"""(documents, how to read, handler of bad lines or messages) -> elements."""

Write: TypeAlias = Callable[[Iterable[StreamElement], IO[bytes]], None]

Follow: TypeAlias = Callable[[IO[bytes], str, Reading, Refuse], Iterator["Taken"]]
"""(open file, its name, how to read, handler of bad lines) -> elements and advances as they arrive."""

Decode: TypeAlias = Callable[[bytes, str, int | None], Sequence["Taken"]]
"""(message, its place, its arrival time in ms if that is its time) -> its elements; FormatError names the place."""

Encode: TypeAlias = Callable[[StreamElement], bytes]


@dataclass(frozen=True, slots=True)
class Whole:
    """All documents of a finite source: a file, folder, archive or standard input, which has no ``path``."""

    place: str
    documents: Sequence[Document]
    path: Path | None = None

    def with_endings(self, endings: tuple[str, ...]) -> Sequence[Document]:
        """The only document whatever its ending, or those of several with these endings; FormatError if none has."""
        # A single file is read whatever its name; in a folder, files of other endings may be notes or metadata.
        if len(self.documents) == 1 and (self.path is None or not self.path.is_dir()):
            return self.documents
        chosen = [document for document in self.documents if document.ending in endings]
        if not chosen:
            kinds = ", ".join(filter(None, endings))
            raise FormatError(f"{self.place}: it contains no stream: expected a file or folder with {kinds}")
        return chosen


@dataclass(frozen=True, slots=True)
class Format:
    """A stream format: its name, a description, the file name endings it claims, and its readers and writers.

    ``read`` takes whole files, ``follow`` a growing one (and whole files if there is no ``read``); ``decoder`` returns
    a reader of single messages, ``encode`` writes one. ``timed`` takes whole files whose times are a property or
    column: always if there is no ``read``, else when the user names such a property. ``honours`` lists the options of
    each way of reading; others are refused. ``binary``: its bytes are not text. ``recognises`` decides by first bytes
    between formats with the same endings. ``guesses_time``: the time column need not be named. ``lines``: each line
    stands alone. ``resumes``: ``follow`` keeps the ``mark`` of its reading, from which another reader
    continues. ``parts``: files may be cut between any lines, of which each is an element, or consecutive ones with one
    time are. ``media_types`` identify it in requests whose body is messages.
    """

    name: str
    about: str
    endings: tuple[str, ...]
    read: Read | None = None
    write: Write | None = None
    follow: Follow | None = None
    decoder: Callable[[Reading], Decode] | None = None
    encode: Encode | None = None
    timed: Read | None = None
    honours: Mapping[Way, frozenset[str]] = field(default_factory=dict)
    binary: bool = False
    recognises: Callable[[bytes], bool] | None = None
    guesses_time: bool = False
    lines: bool = False
    resumes: bool = False
    parts: Literal["lines", "times"] | None = None
    media_types: tuple[str, ...] = ()

    @property
    def options(self) -> frozenset[str]:
        """The options that at least one way of reading honours."""
        return frozenset[str]().union(*self.honours.values())


_IRI = re.compile(
    r"<(?:https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?=[/?#>])|urn:[A-Za-z0-9]+:)"
    r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]*(?:#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?>"
)
"""IRIs that are certainly valid; the parser decides about all others."""
_KNOWN_LIMIT = 100_000
_LARGEST: Final = 2**63 - 1


def checked(element: StreamElement) -> StreamElement:
    """The element itself if its triples are well formed; ValueError names the first that is not."""
    triples = (*element.added, *element.removed)
    try:
        # All at once, since nearly all are sound; which one is not is looked for afterwards.
        sound = all(starmap(is_triple_of, triples))
    except (AttributeError, TypeError):
        sound = False
    for at, triple in enumerate(() if sound else triples):
        check_triple(triple, f"element {element.sequence}, triple {at}")
    return element


def check_triple(triple: object, where: str) -> None:
    """ValueError unless this is a tuple of three terms, each allowed at its position."""
    if not isinstance(triple, tuple | list):
        raise ValueError(f"{where}: {triple!r:.80} is not a triple: give a tuple of three N-Triples terms")
    if fault := misplaced(triple):
        raise ValueError(f"{where}: {triple!r:.120} is not a triple: it {fault}")


class TermCheck:
    """Refuses malformed triples of formats that take terms as written, before they reach the stream table."""

    def __init__(self, reading: Reading) -> None:
        self._known: tuple[set[Term], set[Term], set[Term]] = (set(), set(), set())
        """Terms already accepted as subject, predicate and object."""
        self._checked = reading.checked

    def __call__(self, triples: Iterable[Triple]) -> None:
        """Raise ValueError with the first term that is malformed or not allowed at its position."""
        if not self._checked:
            return
        subjects, predicates, objects = self._known
        for triple in triples:
            if triple[0] not in subjects or triple[1] not in predicates or triple[2] not in objects:
                self._learn(triple)

    def terms(self, terms: Iterable[Term]) -> None:
        """Raise ValueError with the first term that is malformed."""
        for term in terms if self._checked else ():
            try:
                # The expression decides most IRIs without a call of the parser.
                if not _IRI.fullmatch(term):
                    parse_term(term)
            except ValueError as error:
                raise ValueError(f"{term[:120]} is not an N-Triples term: {error}") from error

    def _learn(self, triple: Triple) -> None:
        new = [(known, term) for known, term in zip(self._known, triple, strict=True) if term not in known]
        self.terms(term for _, term in new)
        if not is_triple_of(*triple):
            raise ValueError(f"not a triple: it {misplaced(triple)}")
        for known, term in new:
            # Forgetting costs only time, so the set is emptied rather than kept in order of use.
            if len(known) >= _KNOWN_LIMIT:
                known.clear()
            known.add(term)


class Numbering:
    """Numbers elements in system time; FormatError where time goes back and no lateness bound is declared."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._next = reading.numbered_from
        self._last: int | None = None
        self._numbers: dict[str, int] = {}
        if reading.mark is not None:
            before = reading.mark.carry("numbering", lambda: [self._next, self._last, {**self._numbers}])
            self._next, self._last, self._numbers = before or (self._next, None, {})

    @property
    def next(self) -> int:
        """The number for the next element that has none of its own."""
        return self._next

    def element(self, place: object, time: int, triples: tuple[Triple, ...]) -> StreamElement:
        """The next element of the reading's stream, at a time (ms); FormatError where time goes back."""
        if self._reading.among:
            raise FormatError(f"{place}: {which(self._reading.among)}")
        self._check(place, time)
        self._next += 1
        return StreamElement(self._reading.stream, time, self._next - 1, triples)

    def own(self, place: object, element: StreamElement) -> StreamElement | None:
        """An element with its own number; ``None`` if it is a repetition."""
        # Elements without a number that follow continue from here.
        self._next = element.sequence + 1
        if self._reading.once:
            if element.sequence <= self._numbers.get(element.stream, element.sequence - 1):
                return None
            self._numbers[element.stream] = element.sequence
        self._check(place, element.time)
        return element

    def own_batch(self, batch: "ElementBatch") -> bool:
        """Take note of elements with their own numbers; false if each is to be looked at, as ``own`` does."""
        times, sequences = batch.times, batch.sequences
        # Only rising batches need no check of each element.
        if self._reading.lateness is None and not (batch.rising and (self._last is None or times[0] >= self._last)):
            return False
        if self._reading.once:
            known = self._numbers.get(batch.stream)
            if (known is not None and sequences[0] <= known) or (sequences[1:] <= sequences[:-1]).any():
                return False
            self._numbers[batch.stream] = int(sequences[-1])
        self._next, self._last = int(sequences[-1]) + 1, int(times[-1])
        return True

    def _check(self, place: object, time: int) -> None:
        if not -_LARGEST - 1 <= time <= _LARGEST:
            raise FormatError(f"{place}: the time {time} is beyond 64 bits of ms")
        last = self._last
        if self._reading.lateness is None and last is not None and time < last:
            raise FormatError(f"{place}: time goes back from {last} to {time} ms: declare a lateness bound or sort")
        self._last = time


def one_by_one(items: "Iterable[Taken]") -> Iterator[Input]:
    """Items with the elements of batches apart."""
    for item in items:
        if isinstance(item, Input):
            yield item
        else:
            yield from item.elements()


def which(streams: Sequence[str]) -> str:
    """Why an element without a stream name is refused when the query reads several."""
    named = " and ".join(f"<{name}>" for name in streams)
    return f"the query reads {named}, and this source does not say which it is: name it, as in <{streams[0]}>=FILE"


def number(items: Iterable[Item], reading: Reading) -> Iterator[StreamElement]:
    """Elements numbered in system time; FormatError where time goes back and no lateness bound is declared."""
    numbering = Numbering(reading)
    return (numbering.element(*item) for item in items)


def refused(error: FormatError) -> None:
    """Stop at the first bad line or message."""
    raise error


def message_text(payload: bytes, place: str, reading: Reading, charset: str | None = None) -> bytes:
    """The text of a message in UTF-8, decompressed if it is gzip; FormatError names the place."""
    try:
        return text_in_utf8(unpack_gzip(payload, reading.limit), reading.charset or charset)
    except (CharsetError, CodingError) as error:
        raise FormatError(f"{place}: {error}") from error


def bounded_lines(
    file: IO[bytes],
    place: str,
    limit: int,
    refuse: Refuse,
    together: bool = False,
    mark: LineMark | None = None,
) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file, numbered from 1; lines longer than ``limit`` bytes are refused and skipped.

    ``together``: all whole lines in the file's buffer come as one chunk, with the number of the first. ``mark``: the
    numbers go on from there.
    """
    count, peek = mark.line if mark is not None else 0, getattr(file, "peek", None) if together else None
    while line := (_whole_lines(file, peek, limit) if peek else b"") or file.readline(limit + 1):
        count += 1
        if len(line) <= limit:
            if mark is not None:
                mark.take(count, line)
            yield count, line
            # The chunk was counted as one line already.
            count += line.count(b"\n") - 1 if peek and line.endswith(b"\n") else 0
            continue
        size = len(line)
        while line and not line.endswith(b"\n"):
            # The rest of a long line is read and dropped in pieces, so that it is never in memory as a whole.
            line = file.readline(limit)
            size += len(line)
        if mark is not None:
            mark.pass_over(count, size)
        refuse(FormatError(f"{place}, line {count}: longer than {limit} bytes: raise the limit"))


def _whole_lines(file: IO[bytes], peek: Callable[[int], bytes], limit: int) -> bytes:
    """The whole lines in the file's buffer, read without blocking; empty if the first exceeds ``limit``."""
    # Up to the last line end in the buffer: what is behind it is the beginning of a line that has not come yet.
    end = peek(limit).rfind(b"\n", 0, limit) + 1
    return file.read(end) if end else b""


def write_each(encode: Callable[[StreamElement], bytes]) -> Callable[[Iterable[StreamElement], IO[bytes]], None]:
    """A writer of files that concatenates encoded elements."""

    def write(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
        for element in stream:
            file.write(encode(element))

    return write


class Relabel:
    """Relabels the blank nodes of one file in order of appearance, so that reading it twice gives equal triples."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0
        self._recent: dict[Term, Term] = {}
        self._numbers = Groups[int](prefix)

    def triple(self, quad: ox.Triple | ox.Quad) -> Triple:
        """The triple of a quad."""
        return self.term(quad.subject), str(quad.predicate), self.term(quad.object)

    def term(self, term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        """The N-Triples string of a term."""
        if isinstance(term, ox.BlankNode):
            return self.blank(str(term))
        if isinstance(term, ox.Triple):
            return f"<<( {' '.join(self.triple(term))} )>>"
        return str(term)

    def text(self, term: Term) -> Term:
        """The relabelled form of an N-Triples term."""
        return with_blank_nodes(term, self.blank) if term[0] == "_" or term.startswith("<<") else term

    def blank(self, name: Term) -> Term:
        """The new label of a blank node of the file."""
        label = self._recent.get(name)
        if label is None:
            if len(self._recent) >= WINDOW:
                self._recent.clear()
            label = self._recent[name] = f"_:{self._prefix}b{self._number(name)}"
        return label

    def _number(self, name: Term) -> int:
        numbers = self._numbers.get((name,))
        if not numbers:
            numbers = [self._count]
            self._numbers.begin((name,)).extend(numbers)
            self._count += 1
        return numbers[0]
