"""Stream formats: bytes to elements and back, chosen by name or by the file's ending; the one layer of reading.

An input (a file, standard input, a broker, a request) supplies documents, an open file or messages. Every module here
with a ``FORMATS`` tuple adds its formats; adding one edits no other file.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import IO, TYPE_CHECKING, Final, cast
from urllib.parse import parse_qsl

import pyoxigraph as ox

from streamgauge.formats.charsets import CharsetError, charset_of, in_utf8
from streamgauge.formats.documents import ARCHIVES, Document, FormatError, documents, ending, file_document
from streamgauge.formats.streams.format import (
    STREAM,
    Decode,
    Format,
    Reading,
    Refuse,
    Relabel,
    Way,
    Whole,
    checked,
    one_by_one,
    refused,
)
from streamgauge.formats.streams.options import check_options
from streamgauge.formats.syntaxes import BY_ENDING, parse_open
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.terms import Triple

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken

__all__ = [
    "HEAD",
    "STREAM",
    "Format",
    "FormatError",
    "Reading",
    "Refuse",
    "format_by_bytes",
    "format_claimants",
    "formats_by_media_type",
    "message_decoder",
    "one_by_one",
    "parse_file",
    "possible_formats",
    "rdf_syntax",
    "read_elements",
    "read_open",
    "read_stream",
    "read_triples",
    "read_whole",
    "refused",
    "stream_format",
    "stream_formats",
    "whole_path",
    "write_stream",
]

_OF_DATA: Final = {".txt": ox.RdfFormat.N_TRIPLES, ".xml": ox.RdfFormat.RDF_XML, ".json": ox.RdfFormat.JSON_LD}
"""Endings of RDF syntaxes in background data; for streams they are too general."""

HEAD: Final = 2**14
"""First bytes that decide between formats with the same ending."""


@cache
def stream_formats() -> dict[str, Format]:
    """Every format by its name, sorted."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    known = [form for module in modules for form in getattr(module, "FORMATS", ())]
    return {form.name: form for form in sorted(known, key=lambda form: form.name)}


@cache
def formats_by_media_type() -> dict[str, Format]:
    """The formats of messages by the media types that name them."""
    return {media_type: form for form in stream_formats().values() for media_type in form.media_types}


def read_stream(
    path: str | Path,
    form: str | None = None,
    *,
    stream: str = STREAM,
    interval: int = 1000,
    lateness: int | None = None,
    report_time: Callable[[int], None] = lambda _time: None,
) -> Iterator[StreamElement]:
    """The elements of a file or folder, compressed or not, in format ``form`` or that of the file's ending.

    ``interval`` is the ms between numbered files or frames; ``lateness`` (ms) allows time to go back.
    ``report_time`` receives the time (ms) of each advance in the file. FormatError names the file and line.
    """
    source = Path(path)
    if not source.exists():
        raise FormatError(f"{source}: there is no such file or folder")
    reading = Reading(stream=stream, interval=interval, lateness=lateness, checked=True)
    return read_elements(source, stream_format(source, form), reading, report_time)


def read_elements(
    path: Path, form: Format, reading: Reading, report_time: Callable[[int], None] = lambda _time: None
) -> Iterator[StreamElement]:
    """The elements of a file or folder in a format; ``report_time`` receives the advances that JSON lines may have."""
    for item in one_by_one(read_whole(whole_path(path, reading), form, reading, refused)):
        if isinstance(item, StreamElement):
            yield item
        else:
            report_time(item.time)


def whole_path(path: Path, reading: Reading) -> Whole:
    """A file, folder or archive with the documents in it."""
    return Whole(str(path), documents(path, reading.charset, reading.base), path)


def read_whole(whole: Whole, form: Format, reading: Reading, refuse: Refuse) -> "Iterator[Taken]":
    """The elements and advances of finite documents; FormatError for an option that the format does not support."""
    timed = form.timed if reading.is_timed(form) else None
    read = timed or form.read
    # The first way that the format has: by a time property if one is named, as a whole, or as it comes.
    way: Way = "timed" if timed is not None else "read" if read is not None else "follow"
    check_options(form, way, reading, whole.place, stream_formats().values())
    if read is not None:
        return _read(whole, lambda: read(whole, reading, refuse))
    follow = form.follow
    if follow is None:
        raise FormatError(f"{whole.place}: {form.name} is not read from files")
    return _read(whole, lambda: _follow_documents(whole, form, reading, refuse))


def _follow_documents(whole: Whole, form: Format, reading: Reading, refuse: Refuse) -> "Iterator[Taken]":
    assert form.follow is not None
    for document in whole.with_endings(form.endings):
        with document.open(binary=form.binary) as opened:
            try:
                yield from form.follow(opened, document.place, reading, refuse)
            except (OSError, EOFError) as error:
                raise FormatError(f"{document.place}: cannot be read: {obstacle(error)}") from error


def _read(whole: Whole, read: "Callable[[], Iterator[Taken]]") -> "Iterator[Taken]":
    try:
        yield from read()
    except CharsetError as error:
        raise FormatError(f"{whole.place}: {error}") from error


def read_open(file: IO[bytes], place: str, form: Format, reading: Reading, refuse: Refuse) -> "Iterator[Taken]":
    """Elements and advances of bytes as they arrive; a format that needs the whole file waits for its end.

    FormatError for an option that the format does not support.
    """
    if form.follow is not None:
        check_options(form, "follow", reading, place, stream_formats().values())
        return _follow(file, place, form, reading, refuse)
    # Standard input has no name; with one, formats that look at endings treat it like a file.
    ending_of_form = form.endings[0] if form.endings else ""
    document = Document(place, f"stdin{ending_of_form}", lambda: file, reading.base, reading.charset)
    return read_whole(Whole(place, (document,)), form, reading, refuse)


def _follow(file: IO[bytes], place: str, form: Format, reading: Reading, refuse: Refuse) -> "Iterator[Taken]":
    assert form.follow is not None
    try:
        if reading.mark is not None and form.resumes:
            reading.mark.charset = charset_of(cast(io.BufferedReader, file).peek(HEAD), reading.charset)
        yield from form.follow(file if form.binary else in_utf8(file, reading.charset), place, reading, refuse)
    except CharsetError as error:
        raise FormatError(f"{place}: {error}") from error


def message_decoder(form: Format, reading: Reading, place: str) -> Decode:
    """The reader of messages of a format; FormatError for an unsupported option."""
    if form.decoder is None:
        able = [one.name for one in stream_formats().values() if one.decoder is not None]
        raise FormatError(f"{place}: messages cannot be in the format {form.name!r}: use one of {', '.join(able)}")
    check_options(form, "decoder", reading, place, stream_formats().values())
    return form.decoder(reading)


def write_stream(elements: Iterable[StreamElement], path: str | Path, form: str | None = None) -> None:
    """Write elements to a file in format ``form`` or that of its ending; FormatError if it cannot express them."""
    target = Path(path)
    chosen = _named(form) if form is not None else _claimants(target, [ending(target)])[0]
    if chosen.write is None:
        able = ", ".join(name for name, one in stream_formats().items() if one.write is not None)
        raise FormatError(f"{target}: {chosen.name} can only be read: write one of {able}")
    try:
        with target.open("wb") as file:
            chosen.write(_sound(elements, target), file)
    except OSError as error:
        raise FormatError(f"{target}: could not be written: {obstacle(error)}") from error


def _sound(elements: Iterable[StreamElement], target: Path) -> Iterator[StreamElement]:
    """The same elements; FormatError for one with a malformed triple."""
    for element in elements:
        try:
            yield checked(element)
        except ValueError as error:
            raise FormatError(f"{target}: {error}") from error


def read_triples(path: str | Path) -> Iterator[Triple]:
    """The triples of an RDF file by its ending (background data); FormatError names file and line.

    Options follow the file name as for streams: ``rooms.jsonld?base=http://b.example/&context=IRI=FILE``.
    """
    source, reading = _with_options(path)
    return map(Relabel("s").triple, _parsed(source, rdf_syntax(source), reading))


def parse_file(path: Path, base: str | None = None) -> Iterator[ox.Quad]:
    """The quads of an RDF file by its ending, in any compression and charset; FormatError names file and line."""
    return _parsed(path, rdf_syntax(path), Reading(base=base))


def _with_options(path: str | Path) -> tuple[Path, Reading]:
    """The file and its options, which follow a ``?`` unless a file has the whole name; FormatError."""
    name, mark, text = str(path).partition("?")
    # A file may have a "?" in its name; then it is no option.
    if not mark or Path(path).exists():
        return Path(path), Reading()
    options = dict(parse_qsl(text, keep_blank_values=True))
    if unknown := sorted(options.keys() - set(_OF_FILES)):
        raise FormatError(f"{name}: {unknown[0]} is not an option of an RDF file: use {', '.join(_OF_FILES)}")
    base, context, charset = map(options.get, _OF_FILES)
    return Path(name), Reading(base=base, context=context, charset=charset)


_OF_FILES: Final = ("base", "context", "charset")


def _parsed(path: Path, syntax: ox.RdfFormat, reading: Reading) -> Iterator[ox.Quad]:
    with file_document(path, reading.charset).open() as file:
        yield from parse_open(file, str(path), syntax, reading.base, reading.contexts())


def rdf_syntax(path: Path, *, registered: bool = False) -> ox.RdfFormat:
    """The syntax of an RDF file by its ending; FormatError for an unknown ending or a folder.

    ``registered`` accepts only registered endings such as ``.ttl``, not general ones such as ``.txt``.
    """
    if path.is_dir():
        raise FormatError(f"{path}: this is a folder, but an RDF file is needed: name a file in it")
    syntax = BY_ENDING.get(ending(path), None if registered else _OF_DATA.get(ending(path)))
    if syntax is None:
        raise FormatError(f"{path}: no RDF format has the ending {ending(path)!r}: use {', '.join(BY_ENDING)}")
    return syntax


def stream_format(path: Path, form: str | None, reading: Reading | None = None) -> Format:
    """The format of that name, else the one for the ending of the file, or of the files of a folder or archive.

    First bytes, then options that only one of them supports, decide between formats with the same ending.
    """
    claimants = format_claimants(path, form)
    if len(claimants) == 1 or not path.exists():
        return claimants[0]
    head = _head(path, claimants)
    # Nothing to recognise yet, as in a file that is still to be written: the options alone decide.
    if not head:
        return next((form for form in claimants if _able(form, reading)), claimants[0])
    return format_by_bytes(claimants, head, reading)


def format_claimants(path: Path, form: str | None) -> Sequence[Format]:
    """The format of that name, else those that claim the ending of a file, or an ending in a folder or archive.

    Files beside those of a stream may have other endings: the first format that claims one of them decides which count.
    """
    if form is not None:
        return [_named(form)]
    if not _is_several(path):
        return _claimants(path, [ending(path)])
    endings = {document.ending for document in documents(path)} - {""}
    return _claimants(path, sorted(endings.intersection(_claimants(path, sorted(endings))[0].endings)))


def possible_formats(path: Path, form: str | None, reading: Reading) -> Sequence[Format]:
    """The format of a file; all that claim its ending while the file is still empty."""
    claimants = format_claimants(path, form)
    undecided = len(claimants) > 1 and path.is_file() and not _head(path, claimants)
    return claimants if undecided else [stream_format(path, form, reading)]


def format_by_bytes(claimants: Sequence[Format], head: bytes, reading: Reading | None = None) -> Format:
    """The format, among the claimants of an ending, that recognises the first bytes."""
    plain = [form for form in claimants if form.recognises is None]
    recognising = [form for form in claimants if form.recognises is not None and form.recognises(head)]
    able = [form for form in recognising if _able(form, reading)]
    # A format without ``recognises`` takes any bytes: it comes after those that recognise these and honour the options.
    return [*able, *([] if plain else recognising), *plain, *recognising, *claimants][0]


def _able(form: Format, reading: Reading | None) -> bool:
    """Whether a format honours the options of a reading in one way or another."""
    # Every format can be read with a lateness bound, whether or not it names the option.
    return reading is None or reading.chosen - {"lateness"} <= form.options


def _named(name: str) -> Format:
    formats = stream_formats()
    spelling = spelled(name, formats)
    if spelling is None:
        raise FormatError(f"unknown stream format {name!r}: {offered(name, formats)}")
    return formats[spelling]


def _claimants(path: Path, endings: Sequence[str]) -> list[Format]:
    """The formats that claim one of these endings: first those with it as their main ending and those for any bytes."""
    formats = stream_formats()
    claimants = [form for form in formats.values() if set(form.endings) & set(endings)]
    if not claimants:
        names = " or ".join(endings) or "none"
        raise FormatError(
            f"{path}: no stream format has the ending {names}: name the format, one of {', '.join(formats)}"
        )
    return sorted(claimants, key=lambda form: (form.endings[0] not in endings, form.recognises is not None))


def _is_several(path: Path) -> bool:
    return path.is_dir() or ending(path) in ARCHIVES


def _head(path: Path, claimants: Sequence[Format]) -> bytes:
    """The first bytes of a file, or of the first one that counts in a folder or archive."""
    endings = {ending for form in claimants for ending in form.endings}
    counting = (one for one in documents(path) if not _is_several(path) or one.ending in endings)
    try:
        with next(counting).open() as file:
            return cast(io.BufferedReader, file).peek(HEAD) if hasattr(file, "peek") else file.read(HEAD)
    except (CharsetError, OSError, EOFError) as error:
        raise FormatError(f"{path}: cannot be read: {obstacle(error)}") from error
