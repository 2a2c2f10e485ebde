"""The contract of a stream format, and the parts of all formats: files, gzip, blank nodes, the order of time."""

import gzip
import io
import logging
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, TypeAlias, cast

import pyoxigraph as ox

from streamgauge.formats.bounded_files import ByteReader, bounded
from streamgauge.formats.bounds import BoundError
from streamgauge.formats.canonical import parse_term
from streamgauge.formats.lines import Input
from streamgauge.model.controls import visible
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.terms import Term, Triple

STREAM = "http://ex.org/streams/test"
"""The stream's IRI where a file names none (YABench's and CSRBench's queries use it)."""


class FormatError(MistakeError, ValueError):
    """A file that is not what its format says; the sentence names the file and the line."""


Note: TypeAlias = Callable[[str], None]
"""Told, in a sentence, of something that was taken for granted when a file was read."""


def logged(sentence: str) -> None:
    """A note as a warning of the logger ``streamgauge``."""
    logging.getLogger("streamgauge").warning(visible(sentence))


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read: the stream's IRI, ms between numbered files, frames or messages, how late elements may come (ms).

    Without ``lateness`` a time that goes back is refused. ``limit`` are the bytes that one line or message may have.
    ``once``: the numbers that elements carry rise in each stream, and one that does not is a repetition and left out.
    ``checked``: every term is looked at, also where a format takes it as it is written. ``among``: the streams one of
    which an element that names none would have to choose, which is refused; then ``stream`` does not count.

    ``time_property`` states the time of elements in data that people have (docs/own-data.md): an IRI, a prefixed name,
    several of them joined by ``/``, or a column's name. ``time_in`` is what a number counts (ms, s, us, ns),
    ``time_zone`` the zone of times without one, ``parts`` the properties whose objects belong to the element although
    they are IRIs, ``csv_mapping`` the file that says what columns are. ``prefixes`` are those of prefixed names beside
    the well-known ones. ``note`` hears what was taken for granted. ``stamped`` is the former name of ``time_property``.
    """

    stream: str = STREAM
    interval: int = 1000
    lateness: int | None = None
    stamped: str | None = None
    limit: int = 16 * 2**20
    once: bool = False
    checked: bool = False
    among: tuple[str, ...] = ()
    time_property: str | None = None
    time_in: str = "ms"
    time_zone: str | None = None
    parts: str | None = None
    csv_mapping: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)
    note: Note = logged

    def is_timed(self, form: "Format") -> bool:
        """Whether a format's files are read by the times that a property or column states."""
        return form.timed is not None and (self.time_property is not None or form.read is None)

    def __post_init__(self) -> None:
        """``stamped`` is the time property where no other is named."""
        if self.time_property is None and self.stamped is not None:
            object.__setattr__(self, "time_property", self.stamped)


Item: TypeAlias = tuple[str, int, tuple[Triple, ...]]
"""(file and line, time in ms, triples) of one element to be."""

Read: TypeAlias = Callable[[Path, Reading], Iterator[StreamElement]]
Write: TypeAlias = Callable[[Iterable[StreamElement], IO[bytes]], None]

Refuse: TypeAlias = Callable[[FormatError], None]
"""The handler of a bad line or message: raise the error, or count it and return to go on with the next."""

Follow: TypeAlias = Callable[[IO[bytes], str, Reading, Refuse], Iterator[Input]]
"""(open file, its name, how to read, what to do with bad parts) -> elements and advances as they come."""

Decode: TypeAlias = Callable[[bytes, str, int | None], Sequence[Input]]
"""(message, its place, its time of arrival in ms where that counts) -> what it holds; FormatError names the place."""

Encode: TypeAlias = Callable[[StreamElement], bytes]

Timed: TypeAlias = Callable[[Path, Reading, Refuse], Iterator[StreamElement]]
"""(file or folder, how to read, what to do with bad parts) -> elements by the times that a property states."""


@dataclass(frozen=True, slots=True)
class Format:
    """A stream format: its name, what it is, the file name endings it claims, and what it can do.

    ``read`` takes whole files, ``follow`` one that has no end yet (a format without ``read`` is read that way);
    ``decoder`` makes the reader of single messages, ``encode`` writes one. ``timed`` takes whole files whose times are
    a property or a column: always where there is no ``read``, else where such a property is named.
    """

    name: str
    about: str
    endings: tuple[str, ...]
    read: Read | None = None
    write: Write | None = None
    follow: Follow | None = None
    decoder: Callable[[Reading], Decode] | None = None
    encode: Encode | None = None
    timed: Timed | None = None


_IRI = re.compile(
    r"<(?:https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?=[/?#>])|urn:[A-Za-z0-9]+:)"
    r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]*(?:#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?>"
)
"""IRIs that are surely right; others are looked at by the parser."""
_KNOWN_LIMIT = 100_000


class TermCheck:
    """Refuses triples of a file that were taken as they are written and are none: the stream table would keep them."""

    def __init__(self, reading: Reading) -> None:
        self._known: set[Term] = set()
        self._checked = reading.checked

    def __call__(self, triples: Iterable[Triple]) -> None:
        """Raise ValueError with the first term that is none, or stands where it may not."""
        for subject, predicate, item in triples if self._checked else ():
            for term in (subject, predicate, item):
                if term not in self._known and not _IRI.fullmatch(term):
                    self._learn(term)
            if subject[0] == '"' or predicate[0] != "<":
                raise ValueError(f"no triple: {subject} {predicate} {item}"[:200])

    def _learn(self, term: Term) -> None:
        try:
            parse_term(term)
        except ValueError as error:
            raise ValueError(f"{term[:120]} is no N-Triples term: {error}") from error
        if len(self._known) >= _KNOWN_LIMIT:
            self._known.clear()
        self._known.add(term)


class Numbering:
    """Numbers elements in system time; FormatError where time goes back and no lateness bound is declared."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._next = 0
        self._last: int | None = None
        self._numbers: dict[str, int] = {}

    @property
    def next(self) -> int:
        """The number of the next element that carries none."""
        return self._next

    def element(self, place: str, time: int, triples: tuple[Triple, ...]) -> StreamElement:
        """The next element."""
        if self._reading.among:
            raise FormatError(f"{place}: {which(self._reading.among)}")
        self._check(place, time)
        self._next += 1
        return StreamElement(self._reading.stream, time, self._next - 1, triples)

    def own(self, place: str, element: StreamElement) -> StreamElement | None:
        """An element that has a number of its own, none when it is a repetition."""
        self._next = element.sequence + 1
        if self._reading.once:
            if element.sequence <= self._numbers.get(element.stream, element.sequence - 1):
                return None
            self._numbers[element.stream] = element.sequence
        self._check(place, element.time)
        return element

    def _check(self, place: str, time: int) -> None:
        last = self._last
        if self._reading.lateness is None and last is not None and time < last:
            raise FormatError(f"{place}: time goes back from {last} to {time} ms: declare a lateness bound or sort")
        self._last = time


def which(streams: Sequence[str]) -> str:
    """Why an element that names no stream cannot be of one of several."""
    named = " and ".join(f"<{name}>" for name in streams)
    return f"the query reads {named}, and nothing here says which of them this is: name it, as in <{streams[0]}>=FILE"


def number(items: Iterable[Item], reading: Reading) -> Iterator[StreamElement]:
    """Elements numbered in system time; FormatError where time goes back and no lateness bound is declared."""
    numbering = Numbering(reading)
    return (numbering.element(*item) for item in items)


def refused(error: FormatError) -> None:
    """Stop at the first bad line or message."""
    raise error


def files(path: Path, endings: tuple[str, ...]) -> list[Path]:
    """The file itself, or the folder's files with these endings in name order; FormatError when there is none."""
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.is_file() and ending(file) in endings)
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise FormatError(
            f"{path}: no stream here: a file or a folder of {', '.join(filter(None, endings))} is expected"
        )
    return found


_TEXTS = frozenset({".nq", ".nt", ".ttl", ".trig", ".n3", ".n3t", ".jsonl", ".ndjson", ".json", ".csv", ".txt", ".log"})
"""Endings of files of text, which may begin with a byte order mark."""


def ending(path: Path) -> str:
    """The file name's ending in lower case, ``.gz`` left out."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def open_bytes(path: Path) -> IO[bytes]:
    """A file for reading, unpacked when its name ends in ``.gz``; FormatError when it cannot be opened."""
    try:
        file = _opened(path)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {obstacle(error)}") from error
    if ending(path) in _TEXTS:
        _pass_mark(cast(io.BufferedReader, file), path)
    return file


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def _pass_mark(file: io.BufferedReader, path: Path) -> None:
    """Pass over the byte order mark with which editors of Windows begin a text."""
    try:
        if file.peek(len(BOM_UTF8))[: len(BOM_UTF8)] == BOM_UTF8:
            file.read(len(BOM_UTF8))
    except (OSError, EOFError) as error:
        file.close()
        raise FormatError(f"{path}, line 1: cannot be unpacked: {obstacle(error)}") from error


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, from 1; FormatError for what is no UTF-8 or no gzip."""
    last = 0
    with open_bytes(path) as file:
        try:
            for last, line in enumerate(file, 1):
                yield last, line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}, line {last}: not UTF-8 text: save the file as UTF-8") from error
        except (OSError, EOFError) as error:
            raise FormatError(f"{path}, line {last + 1}: cannot be unpacked: {obstacle(error)}") from error


def bounded_lines(file: IO[bytes], place: str, limit: int, refuse: Refuse) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file, numbered from 1; a longer one than ``limit`` bytes is refused and passed over."""
    count = 0
    while line := file.readline(limit + 1):
        count += 1
        if len(line) <= limit:
            yield count, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(limit)
        refuse(FormatError(f"{place}, line {count}: longer than {limit} bytes: raise the limit"))


def parse(path: Path, syntax: ox.RdfFormat) -> Iterator[ox.Quad]:
    """The quads of an RDF file; FormatError with file and line for wrong syntax, unknown prefixes included."""
    with open_bytes(path) as file:
        yield from parse_open(file, str(path), syntax)


def arriving(file: IO[bytes]) -> io.RawIOBase:
    """A buffered file read as its bytes come, for parsers that would else wait for as many as they ask for."""
    return ByteReader(cast(io.BufferedReader, file).read1)


def parse_open(file: IO[bytes] | io.RawIOBase, place: str, syntax: ox.RdfFormat) -> Iterator[ox.Quad]:
    """The quads of an open RDF file, as ``parse``."""
    try:
        yield from ox.parse(cast(IO[bytes], bounded(file, syntax)), format=syntax)
    except BoundError as error:
        raise FormatError(f"{place}: {error}") from error
    except SyntaxError as error:
        raise FormatError(f"{place}, line {error.lineno}: {reason(error)}") from error
    except (OSError, EOFError) as error:
        raise FormatError(f"{place}: cannot be read: {obstacle(error)}") from error


_OFTEN: Final = {
    r"The subject of a triple must be an IRI or a blank node": "a subject is expected here: <IRI>, or _:name",
    r"The predicate of a triple must be an IRI": "a predicate is expected here: <IRI>",
    r"The object of a triple must be .*": 'an object is expected here: <IRI>, _:name or "literal"',
    r"The prefix (\S*:) has not been declared": r"The prefix \1 has not been declared: add @prefix \1 <...> .",
    r"Invalid UTF-8 character encoding": "not UTF-8 text: save the file as UTF-8",
    r"Unexpected end of file": "the file ends in the middle of a statement",
}
"""Messages of pyoxigraph, and the sentences in their place."""


def reason(error: SyntaxError) -> str:
    """The message of pyoxigraph without the position; frequent mistakes in other words."""
    said = re.sub(r"^(?:\S+ )?Parser error at .*?: ", "", error.msg)
    for pattern, words in _OFTEN.items():
        if found := re.fullmatch(pattern, said):
            return found.expand(words)
    return said


class Relabel:
    """Triples of one file, blank nodes named in order of appearance, so that reading is repeatable."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, str] = {}

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

    def blank(self, name: Term) -> Term:
        """The name here of a blank node that the file calls so."""
        return self._known.setdefault(name, f"_:{self._prefix}b{len(self._known)}")
