"""The stream table as a format among the others (see formats/stream.py)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Final

from streamgauge.formats.documents import FormatError
from streamgauge.formats.lines import are_canonical
from streamgauge.formats.streams.format import Format, Reading, Refuse, TermCheck, Whole
from streamgauge.formats.streams.options import honoured
from streamgauge.model.element import StreamElement

PORTION: Final = 500
"""Elements whose terms are checked together."""


def read(whole: Whole, reading: Reading, _refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a table, with their own streams and sequence numbers; FormatError where time goes back."""
    from streamgauge.formats import stream as table  # late: Arrow, which streams of text do without

    path = whole.path
    if path is None:
        raise FormatError(f"{whole.place}: a stream table is read from a file or folder")
    _refuse_foreign(path)
    last: int | None = None
    elements = table.elements(path)
    for element in elements if _is_sealed(path) and not reading.checked else _checked(elements, str(path), reading):
        if reading.lateness is None and last is not None and element.time < last:
            where = f"{path}, sequence {element.sequence}"
            raise FormatError(f"{where}: time goes back from {last} to {element.time} ms: declare a lateness bound")
        last = element.time
        yield element


def _refuse_foreign(path: Path) -> None:
    """FormatError for a Parquet file of another kind, as pandas or DuckDB write of their tables."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names if path.is_file() else ["subject"]
    except (pa.ArrowException, OSError):
        return  # the table's reader says what is wrong with it
    if not {"subject", "predicate", "object"}.intersection(names):
        has = f"it has the columns {', '.join(names)[:120]}"
        raise FormatError(f"{path}: not a stream table (docs/run-folder.md): {has}: write it as CSV or JSON lines")


def _is_sealed(path: Path) -> bool:
    """Whether all files of a table were written here, from elements that had been read and checked."""
    from streamgauge.formats.seals import parquet_seal
    from streamgauge.formats.stream import files

    return all(parquet_seal(file) is not None for file in files(path))


def _checked(elements: Iterable[StreamElement], place: str, reading: Reading) -> Iterator[StreamElement]:
    """Elements whose triples are well-formed; FormatError names the sequence of another.

    A table without a seal may have been written by any program. Terms in canonical syntax are checked together, in an
    eighth of the time that parsing each takes; a reading that is ``checked`` parses all.
    """
    check, rest = TermCheck(replace(reading, checked=True)), iter(elements)
    while portion := tuple(islice(rest, PORTION)):
        certain = not reading.checked and _canonical(portion)
        for element in portion:
            try:
                if not certain:
                    check(element.added)
            except ValueError as error:
                raise FormatError(f"{place}, sequence {element.sequence}: {error}") from error
            yield element


def _canonical(portion: Iterable[StreamElement]) -> bool:
    """Whether all terms are certainly well-formed; the table has looked at their positions."""
    return are_canonical({term for element in portion for triple in element.added for term in triple})


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
