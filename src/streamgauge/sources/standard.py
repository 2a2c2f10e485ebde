"""Standard input and output: ``-``, with options ``-?form=nquads``."""

import io
import os
import sys
from collections.abc import Iterator
from threading import Event
from typing import IO, TYPE_CHECKING, cast

from streamgauge.formats.documents import BUFFER
from streamgauge.formats.streams import Reading, Refuse, read_open, stream_formats
from streamgauge.sources.contract import Address, Sink, Source, SourceError, read_options
from streamgauge.sources.decoders import ReadingOptions, Refusals
from streamgauge.sources.files import ByteSink, ByteSource, WritingOptions
from streamgauge.sources.tail import waiting

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken

SCHEMES = ("-",)


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """Standard input, as JSON lines unless another format is named."""
    options = read_options(ReadingOptions, address)
    reading, name, closing = options.over(reading), options.form or form or "jsonl", Event()
    # Parquet is read from its end, which a pipe does not allow.
    able = [one.name for one in stream_formats().values() if one.name != "parquet"]
    if name not in able:
        raise SourceError(f"{address.text}: {name!r} cannot be read from standard input: use one of {', '.join(able)}")

    def read(refuse: Refuse) -> "Iterator[Taken]":
        # A copy, as closing the source must not close standard input.
        descriptor = os.dup(sys.stdin.fileno())
        try:
            file = cast(IO[bytes], io.BufferedReader(waiting(descriptor, closing), BUFFER))
            yield from read_open(file, "standard input", stream_formats()[name], reading, refuse)
        finally:
            os.close(descriptor)

    return ByteSource(address, closing, Refusals(options.bad), read)


def open_sink(address: Address) -> Sink:
    """A sink that writes to standard output."""
    sys.stdout.flush()
    return ByteSink(sys.stdout.fileno(), read_options(WritingOptions, address).end, None)
