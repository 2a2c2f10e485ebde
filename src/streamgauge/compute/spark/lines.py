"""Triples of a frame as one file of N-Triples."""

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

LINE: Final = "concat_ws(' ', subject, predicate, object, '.') line"
"""A triple as a line: its terms are in N-Triples already."""


def write_lines(ordered: DataFrame, out: Path) -> None:
    """Rows of one column as lines, in their order; one partition after the other is in memory. FileExistsError."""
    with out.open("x", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for (line,) in ordered.toLocalIterator(prefetchPartitions=True))
