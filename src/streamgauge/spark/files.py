"""Files of Spark: triples of a frame as one file of N-Triples, and paths as Spark reads them."""

import re
from collections.abc import Callable, Iterable
from errno import EEXIST
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark import StorageLevel

from streamgauge.formats.files import PlaceError, overwrite, stage
from streamgauge.formats.places import Place, RemotePlace, place

LINE: Final = "concat_ws(' ', subject, predicate, object, '.') line"
"""A triple as a line: its terms are in N-Triples already."""

_ROWS: Final = 500_000
"""Lines that one task sorts, about."""

_BLOCK: Final = 1 << 20
"""Bytes that are joined at once."""


def write_lines(lines: DataFrame, out: Path, tell: Callable[[int], None] | None = None) -> None:
    """Write rows of one column ``line``, sorted by bytes, to a file atomically; FileExistsError, PlaceError.

    ``tell`` receives their number before they are written. Memory is constant. Tasks write parts beside the file, so
    its folder must be the same on the driver and the workers.
    """
    if out.exists():
        raise FileExistsError(EEXIST, "it already exists: remove it or choose another place", str(out))
    # Partitioning by range samples the lines in a job of its own, so they would be computed three times.
    kept = lines.persist(StorageLevel.DISK_ONLY)
    try:
        # Counting fills the cache on disk, and gives the number of ranges; the sample and the sort then read from
        # there.
        count = kept.count()
        if tell is not None:
            tell(count)
        ordered = kept.repartitionByRange(1 + count // _ROWS, "line").sortWithinPartitions("line")
        with stage(out) as folder:
            # Not by `toLocalIterator`: until it ends, the driver's JVM keeps all that it has passed on.
            ordered.write.text(str(folder.absolute()), compression="none", lineSep="\n")
            written = _join(folder, folder / "lines")
            if written != count:
                where = "name a folder that is the same on the driver and the workers"
                raise PlaceError(f"{out.parent}: {written:,} of {count:,} lines that tasks wrote are here: {where}")
            overwrite(folder / "lines", out)
    finally:
        kept.unpersist()


def _join(folder: Path, out: Path) -> int:
    """Move the lines of a folder's parts into a file, in the order of the parts; returns their number."""
    count = 0
    with out.open("xb") as file:
        for part in sorted(folder.glob("part-*")):
            with part.open("rb") as lines:
                while block := lines.read(_BLOCK):
                    count += block.count(b"\n")
                    file.write(block)
            part.unlink()  # so that the disk holds little more than the file
    return count


FILE: Final = "_metadata.file_path"
"""The column with the file of each row read from files, whose place is found by ``placed``."""


def placed(files: Iterable[Place]) -> Callable[[str], Place]:
    """A function from a file as Spark names it, ``file:///my%20readings/a.parquet``, to the one among these."""
    known = {_identity(str(file)): file for file in files}
    return lambda url: known[_identity(unquote(url))]


def _identity(text: str) -> tuple[str, str]:
    """Scheme, and host with path: ``file:/a``, ``file:///a`` and ``/a`` are the same."""
    scheme, colon, rest = text.partition(":/")
    return (scheme, rest.lstrip("/")) if colon else ("file", text.lstrip("/"))


def file_name() -> Column:
    """The name of the file of each row read from files.

    Spark gives it as a part of a URL, ``my%20readings.nq``, where a plus sign is not a space.
    """
    return fn.url_decode(fn.replace(fn.col("_metadata.file_name"), fn.lit("+"), fn.lit("%2B")))


_PATTERN: Final = re.compile(r"([\\{}\[\]*?])")
"""The characters of Hadoop's file patterns (FileSystem.globStatus)."""


def location(path: Place | str) -> str:
    r"""The location of exactly this file or folder, given as a path or URL.

    Spark resolves relative paths where its JVM was started, and interprets paths as glob patterns: for a folder named
    ``runs [1]``, a batch job reports that it does not exist, and a streaming job silently reads nothing.

    Example: ``location("/data/runs [1]")`` is ``/data/runs \[1\]``.
    """
    place_ = place(path) if isinstance(path, str) else path
    return _PATTERN.sub(r"\\\1", str(place_ if isinstance(place_, RemotePlace) else place_.absolute()))
