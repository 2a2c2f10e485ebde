"""Triples of a frame as one file of N-Triples."""

from collections.abc import Callable
from errno import EEXIST
from pathlib import Path
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from streamgauge.formats.files import making, put

LINE: Final = "concat_ws(' ', subject, predicate, object, '.') line"
"""A triple as a line: its terms are in N-Triples already."""

_ROWS: Final = 50_000
"""Lines that one task sorts, about, and that are on their way to the file at once."""


def write_lines(lines: DataFrame, out: Path, tell: Callable[[int], None] | None = None) -> None:
    """Rows of one column ``line``, sorted by bytes, as a file that is there whole or not at all; FileExistsError.

    ``tell`` is told how many there are before they are written. Memory does not grow with them.
    """
    if out.exists():
        raise FileExistsError(EEXIST, "it is there already: remove it or name another place", str(out))
    found = lines.persist(StorageLevel.DISK_ONLY)
    try:
        count = found.count()
        if tell is not None:
            tell(count)
        ordered = found.repartitionByRange(1 + count // _ROWS, "line").sortWithinPartitions("line")
        with making(out) as place:
            with place.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for (line,) in ordered.toLocalIterator(prefetchPartitions=True))
            put(place, out)
    finally:
        found.unpersist()
