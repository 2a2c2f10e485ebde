"""Files and folders: a path or ``file:``. ``follow=1`` goes on reading a file that still grows."""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import Reading, Refuse, read_inputs, stream_format
from streamgauge.formats.streams.format import Format
from streamgauge.model.mistake import obstacle
from streamgauge.sources.address import Address, read_options
from streamgauge.sources.contract import Sink, Source, SourceError
from streamgauge.sources.decoders import ReadingOptions, Refusals
from streamgauge.sources.endless_files import Growing
from streamgauge.sources.streams import ByteSink, ByteSource, WritingOptions

SCHEMES = ("file",)


@dataclass(frozen=True, slots=True)
class FileOptions(ReadingOptions):
    """Reading a file: as it is, or on and on (``follow``)."""

    follow: bool = False


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """A file or folder; the format is named or told by the ending. FormatError, SourceError."""
    options = read_options(FileOptions, address)
    path, reading = Path(address.path), options.over(reading)
    if not path.exists():
        raise SourceError(f"{address.text}: there is no such file or folder")
    chosen, closing = stream_format(path, options.form or form), Event()
    if options.follow:
        read = _followed(address, path, chosen, reading, closing)
    elif chosen.timed is not None and reading.is_timed(chosen):
        read = partial(chosen.timed, path, reading)
    elif chosen.read is not None and options.bad == "stop":
        read = _whole(path, chosen, reading)
    else:
        read = _parts(path, chosen, reading)
    return ByteSource(address, closing, Refusals(options.bad), read)


def open_sink(address: Address) -> Sink:
    """A file that messages are added to; SourceError when it cannot be opened."""
    options = read_options(WritingOptions, address)
    try:
        descriptor = os.open(address.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise SourceError(f"{address.text}: cannot be written: {obstacle(error)}") from error

    def take_back(count: int) -> None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - count)

    return ByteSink(descriptor, options.end, take_back)


def _whole(path: Path, form: Format, reading: Reading) -> Callable[[Refuse], Iterator[Input]]:
    def read(_refuse: Refuse) -> Iterator[Input]:
        assert form.read is not None
        return form.read(path, reading)

    return read


def _parts(path: Path, form: Format, reading: Reading) -> Callable[[Refuse], Iterator[Input]]:
    return lambda refuse: read_inputs(path, form, reading, refuse)


def _followed(
    address: Address, path: Path, form: Format, reading: Reading, closing: Event
) -> Callable[[Refuse], Iterator[Input]]:
    follow = form.follow
    if follow is None or not path.is_file() or path.suffix == ".gz":
        raise SourceError(
            f"{address.text}: {form.name} is not followed here: only a plain file is, as of nquads or jsonl"
        )

    def read(refuse: Refuse) -> Iterator[Input]:
        with io.BufferedReader(Growing(path.open("rb", buffering=0), closing)) as file:
            yield from follow(file, str(path), reading, refuse)

    return read
