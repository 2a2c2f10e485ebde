"""Stream formats: files to elements and back, chosen by name or by the file's ending.

Every module here with a ``FORMATS`` tuple adds its formats; adding one edits no other file.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pyoxigraph as ox

from streamgauge.formats.lines import Input
from streamgauge.formats.streams.format import (
    STREAM,
    Format,
    FormatError,
    Reading,
    Refuse,
    Relabel,
    ending,
    files,
    open_bytes,
    parse,
    refused,
)
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.terms import Triple

__all__ = [
    "STREAM",
    "Format",
    "FormatError",
    "Reading",
    "Refuse",
    "rdf_syntax",
    "read_elements",
    "read_inputs",
    "read_stream",
    "read_triples",
    "refused",
    "stream_format",
    "stream_formats",
    "write_stream",
]


@cache
def stream_formats() -> dict[str, Format]:
    """Every format by its name, sorted."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [form for module in modules for form in getattr(module, "FORMATS", ())]
    return {form.name: form for form in sorted(found, key=lambda form: form.name)}


def read_stream(
    path: str | Path,
    form: str | None = None,
    *,
    stream: str = STREAM,
    interval: int = 1000,
    lateness: int | None = None,
    told: Callable[[int], None] = lambda _time: None,
) -> Iterator[StreamElement]:
    """The elements of a file or folder; ``form`` names the format, else the file's ending does; ``.gz`` is unpacked.

    ``interval`` is the ms between numbered files or frames; ``lateness`` (ms) allows time to go back; ``told`` hears
    how far the file says that time has come (ms). FormatError names the file and line of what is wrong.
    """
    source = Path(path)
    if not source.exists():
        raise FormatError(f"{source}: there is no such file or folder")
    return read_elements(source, stream_format(source, form), Reading(stream, interval, lateness, checked=True), told)


def read_elements(
    path: Path, form: Format, reading: Reading, told: Callable[[int], None] = lambda _time: None
) -> Iterator[StreamElement]:
    """The elements of a file or folder in a format; ``told`` hears the advances of one that is read line by line."""
    if form.timed is not None and reading.is_timed(form):
        yield from form.timed(path, reading, refused)
        return
    if form.read is not None:
        yield from form.read(path, reading)
        return
    for item in read_inputs(path, form, reading, refused):
        if isinstance(item, StreamElement):
            yield item
        else:
            told(item.time)


def read_inputs(path: Path, form: Format, reading: Reading, refuse: Refuse) -> Iterator[Input]:
    """Elements and advances of a file or folder, as they come."""
    if form.follow is None:
        raise FormatError(f"{path}: {form.name} is read as whole files only")
    for file in files(path, form.endings):
        with open_bytes(file) as opened:
            try:
                yield from form.follow(opened, str(file), reading, refuse)
            except (OSError, EOFError) as error:
                raise FormatError(f"{file}: cannot be read: {obstacle(error)}") from error


def write_stream(elements: Iterable[StreamElement], path: str | Path, form: str | None = None) -> None:
    """Write elements to a file in a format, by name or ending; FormatError when it cannot hold them or be written."""
    target = Path(path)
    chosen = stream_format(target, form)
    if chosen.write is None:
        able = ", ".join(name for name, one in stream_formats().items() if one.write is not None)
        raise FormatError(f"{target}: {chosen.name} is read only: formats to write are {able}")
    try:
        with target.open("wb") as file:
            chosen.write(elements, file)
    except OSError as error:
        raise FormatError(f"{target}: could not be written: {obstacle(error)}") from error


def read_triples(path: str | Path) -> Iterator[Triple]:
    """The triples of an RDF file by its ending (background data); FormatError names file and line."""
    source, relabel = Path(path), Relabel("s")
    return map(relabel.triple, parse(source, rdf_syntax(source)))


def rdf_syntax(path: Path) -> ox.RdfFormat:
    """The syntax of an RDF file by its ending; FormatError, for a folder too."""
    if path.is_dir():
        raise FormatError(f"{path}: a folder, where an RDF file is needed: name a file in it")
    syntax = ox.RdfFormat.from_extension(ending(path).removeprefix(".").replace("owl", "rdf"))
    if syntax is None:
        raise FormatError(
            f"{path}: no RDF format has the ending {ending(path)!r}: use .nt, .ttl, .rdf (or .owl), .nq or .trig"
        )
    return syntax


def stream_format(path: Path, form: str | None) -> Format:
    """The format of that name, else the one that claims the ending of the file or of a folder's files."""
    formats = stream_formats()
    if form is not None:
        if (found := spelled(form, formats)) is None:
            raise FormatError(f"there is no stream format {form!r}: {offered(form, formats)}")
        return formats[found]
    endings = [ending(path)] if not path.is_dir() else sorted({ending(file) for file in path.iterdir()} - {""})
    for one in formats.values():
        if set(one.endings) & set(endings):
            return one
    raise FormatError(
        f"{path}: no stream format has the ending {' or '.join(endings) or 'none'}: name one of {', '.join(formats)}"
    )
