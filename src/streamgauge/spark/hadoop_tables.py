"""Tables on Hadoop file systems: written by tasks, committed by a manifest, and read by tasks.

The digests of their parts are those of the file system: the checksum of HDFS, the ETag of an object store. Tasks check
the checksums of Parquet's pages as they read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats.manifest import NAME, Manifest, Range, TableError, TablePart, decoded, encoded
from streamgauge.formats.manifest import commit as commit_folder
from streamgauge.formats.places import Place, RemotePlace
from streamgauge.formats.tables import check, seal_folder
from streamgauge.model.mistake import MistakeError
from streamgauge.spark.failures import JOB_ERRORS
from streamgauge.spark.files import FILE, location, placed
from streamgauge.spark.hadoop import HadoopError, HadoopFile, HadoopFiles, reason

_CHECKED: Final = {"parquet.page.verify-checksum.enabled": "true"}
_PARTS: Final = {**_CHECKED, "pathGlobFilter": "*.parquet"}
"""A stream table may have the file ``advanced_to`` beside its parts."""

_RANGES: Final = (("sequence", "report", "index"), ("time", "instant", "at"))


def write_table(frame: DataFrame, folder: Place) -> Manifest:
    """Write a frame as Parquet files with a manifest to a new folder; HadoopError, TableError.

    The files of a failed write stay unless the folder is a ``new_table``.
    """
    if isinstance(folder, Path):
        frame.write.mode("error").parquet(str(folder.absolute()))
        seal_folder(folder)
        return commit_folder(folder)
    files = HadoopFiles(frame.sparkSession)
    if files.exists(folder):
        raise HadoopError(f"{folder} already exists: remove it or choose another folder")
    try:
        frame.write.mode("error").parquet(folder.url)
        return commit(frame.sparkSession, folder)
    except JOB_ERRORS as error:
        raise HadoopError(reason(folder, error)) from error


@contextmanager
def new_table(session: SparkSession, folder: Place) -> Iterator[None]:
    """A new folder for a table, removed again if what writes it, or comes after, fails; HadoopError if it exists."""
    if folder.exists() if isinstance(folder, Path) else HadoopFiles(session).exists(folder):
        raise HadoopError(f"{folder} already exists: remove it or choose another folder")
    try:
        yield
    except BaseException:
        with suppress(*JOB_ERRORS, MistakeError):  # the first error counts
            if isinstance(folder, Path):
                rmtree(folder, ignore_errors=True)
            else:
                HadoopFiles(session).remove(folder)
        raise


def read_parquet(session: SparkSession, *files: Place | str, schema: str | None = None) -> DataFrame:
    """Parquet files, or those of folders, as a frame, whose tasks check the checksums of pages."""
    single = any(isinstance(file, Path) and file.is_file() for file in files)  # of whatever name
    reader = session.read.options(**(_CHECKED if single else _PARTS))
    return (reader if schema is None else reader.schema(schema)).parquet(*map(location, files))


def stream_parquet(session: SparkSession, folder: Place | str, schema: str, per_batch: int) -> DataFrame:
    """A growing folder of Parquet files as a streaming frame, ``per_batch`` files at a time; checked as well."""
    reader = session.readStream.schema(schema).options(**_PARTS).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(location(folder))


def read_table(session: SparkSession, table: Place) -> DataFrame:
    """A table as a frame: a file, or a folder of files; TableError for a damaged one, HadoopError."""
    if isinstance(table, Path):
        check(table)
        return read_parquet(session, table)
    try:
        return read_parquet(session, table)
    except JOB_ERRORS as error:
        raise HadoopError(reason(table, error)) from error


def commit(session: SparkSession, folder: RemotePlace) -> Manifest:
    """Write the manifest of a folder whose table is complete; TableError, HadoopError."""
    content = _made(session, folder, part_files(HadoopFiles(session), folder))
    put_text(HadoopFiles(session), encoded(content), folder / NAME)
    return content


def put_text(files: HadoopFiles, text: str, target: RemotePlace) -> None:
    """Write a small file of text, in place of an earlier one; HadoopError."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "text"
        file.write_text(text, "utf-8")
        files.put(file, target)


def get_text(files: HadoopFiles, source: RemotePlace) -> str:
    """The text of a small file; HadoopError."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "text"
        files.get(source, file)
        return file.read_text("utf-8")


def manifest(session: SparkSession, folder: RemotePlace) -> Manifest:
    """The manifest of a table: its own, with parts that were added later, or a new one by a job; TableError."""
    files = HadoopFiles(session)
    present = part_files(files, folder)
    if not files.exists(folder / NAME):
        return _made(session, folder, present)
    listed = decoded(get_text(files, folder / NAME), str(folder / NAME))
    names = {file.place.name: file for file in present}
    for part in listed.parts:
        if part.file not in names:
            raise TableError(f"{folder / part.file}: missing: {folder / NAME} lists it: restore the table from a copy")
        if part.digest not in (None, files.digest(names[part.file].place)):
            raise TableError(f"{folder / part.file}: not the file that {folder / NAME} lists: its digest differs")
    known = {part.file for part in listed.parts}
    # A folder may grow after its manifest was written, as a stream's input does; what was added has no digest to
    # compare.
    added = [file for name, file in names.items() if name not in known]
    return Manifest((*listed.parts, *_measured(session, added)), None if added else listed.streams)


def measured(session: SparkSession, files: Sequence[RemotePlace]) -> dict[RemotePlace, TablePart]:
    """The manifest entries of part files, computed by one job; files without rows are omitted."""
    frame = read_parquet(session, *files) if files else None
    if frame is None:
        return {}
    order, times = (next((name for name in choice if name in frame.columns), None) for choice in _RANGES)
    bounds = [limit(fn.col(name)) if name else fn.lit(None) for name in (order, times) for limit in (fn.min, fn.max)]
    by_file = frame.groupBy(fn.col(FILE).alias("file")).agg(fn.count("*"), *bounds).collect()
    place_of = placed(files)
    counted = {place_of(row[0]): (row[1], _range(*row[2:4]), _range(*row[4:6])) for row in by_file}
    return {file: TablePart(file.name, *counted[file]) for file in files if file in counted}


def _range(least: int | None, greatest: int | None) -> Range | None:
    return None if least is None or greatest is None else Range(least, greatest)


def _measured(session: SparkSession, files: Sequence[HadoopFile]) -> Iterator[TablePart]:
    """The entries of part files in order of their sequence numbers, with digests."""
    entries = measured(session, [file.place for file in files])
    hadoop = HadoopFiles(session)
    for place, part in sorted(entries.items(), key=lambda entry: (entry[1].sequence or Range(-1, -1), entry[1].file)):
        yield TablePart(part.file, part.rows, part.sequence, part.time, hadoop.digest(place))


def _made(session: SparkSession, folder: RemotePlace, present: Sequence[HadoopFile]) -> Manifest:
    table = read_table(session, folder)
    streams = [row[0] for row in table.select("stream").distinct().collect()] if "stream" in table.columns else None
    return Manifest(tuple(_measured(session, present)), None if streams is None else tuple(sorted(streams)))


def part_files(files: HadoopFiles, folder: RemotePlace) -> list[HadoopFile]:
    """The Parquet files of a folder, by name; TableError for none."""
    if not files.exists(folder):
        raise TableError(f"{folder}: not found: a folder of Parquet files is expected")
    present = [file for file in files.listed(folder) if _is_part(file)]
    if not present:
        raise TableError(f"{folder}: the folder has no Parquet files: choose a folder of Parquet files")
    return present


def _is_part(file: HadoopFile) -> bool:
    name = file.place.name
    return not file.folder and name.endswith(".parquet") and not name.startswith(("_", "."))
