"""The stream table as a format among the others (see formats/stream.py)."""

from collections.abc import Iterable, Iterator
from typing import IO

from streamgauge.formats.documents import FormatError
from streamgauge.formats.streams.format import Format, Reading, Refuse, TermCheck, Whole
from streamgauge.formats.streams.options import honoured
from streamgauge.model.element import StreamElement


def read(whole: Whole, reading: Reading, _refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a table, with their own streams and sequence numbers; FormatError where time goes back."""
    from streamgauge.formats import stream as table  # late: Arrow, which streams of text do without

    path = whole.path
    if path is None:
        raise FormatError(f"{whole.place}: a stream table is read from a file or folder")
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


FORMATS = (
    Format(
        "parquet",
        "the stream table, a Parquet file or a folder of them",
        (".parquet",),
        read,
        write,
        honours={"read": honoured("lateness")},
        binary=True,
    ),
)
