"""The stream table as a format among the others (see formats/stream.py)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from streamgauge.formats.streams.format import Format, FormatError, Reading, TermCheck
from streamgauge.model.element import StreamElement


def read(path: Path, reading: Reading) -> Iterator[StreamElement]:
    """The elements of a stream table, under its own stream names and sequence numbers; times checked as everywhere."""
    from streamgauge.formats import stream as table  # late: Arrow, which streams of text do without

    last: int | None = None
    check = TermCheck(reading)
    for element in table.elements(path):
        if reading.lateness is None and last is not None and element.time < last:
            where = f"{path}, sequence {element.sequence}"
            raise FormatError(f"{where}: time goes back from {last} to {element.time} ms: declare a lateness bound")
        last = element.time
        try:
            check(element.added)
        except ValueError as error:
            raise FormatError(f"{path}, sequence {element.sequence}: {error}") from error
        yield element


def write(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
    """Write elements as one Parquet file."""
    from streamgauge.formats import stream as table

    table.write(stream, file)


FORMATS = (Format("parquet", "the stream table, a Parquet file or a folder of them", (".parquet",), read, write),)
