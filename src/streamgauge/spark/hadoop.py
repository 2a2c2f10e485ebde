"""Files on Hadoop file systems, through the JVM of a Spark session: credentials and schemes are those of Hadoop.

The driver moves small files whole; tables are read and written by Spark's tasks.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import SparkSession
from py4j.protocol import Py4JJavaError

from streamgauge.formats.places import RemotePlace
from streamgauge.model.mistake import MistakeError
from streamgauge.spark.failures import words

HADOOP: Final = "3.5.0"
"""PySpark's version of Hadoop, which the jars of file systems must match."""

_ABSENT: Final = re.compile(r"No FileSystem for scheme|Class \S+ not found|NoClassDefFoundError|ClassNotFoundException")
_LIBRARIES: Final = {"s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure", "gs": "gcs-connector"}
_BLANK: Final = re.compile(r"\s+")


class HadoopError(MistakeError, OSError):
    """Hadoop cannot read or write a place; the message names the place and the reason."""


class HadoopFile(NamedTuple):
    """A file or folder: its place, its length in bytes, and whether it is a folder."""

    place: RemotePlace
    size: int
    folder: bool


class HadoopFiles:
    """The file systems of a session; HadoopError if one cannot be reached."""

    def __init__(self, session: SparkSession) -> None:
        try:
            self._jvm: Any = session._jvm
            # With the session's own settings, which the configuration of the context lacks.
            self._settings = session._jsparkSession.sessionState().newHadoopConf()
        except Exception as error:  # the remote session has neither, and says so by several types
            raise HadoopError(
                "Spark Connect gives no access to Hadoop's files: write to and read from other file systems with a "
                "classic master (--master)"
            ) from error

    def exists(self, place: RemotePlace) -> bool:
        """Whether a file or folder exists."""
        with _told(place):
            path = self._path(place)
            return bool(self._system(path).exists(path))

    def listed(self, place: RemotePlace) -> list[HadoopFile]:
        """The files and folders in a folder, by name; for a file, the file."""
        with _told(place):
            path = self._path(place)
            statuses = self._system(path).listStatus(path)
            files = [HadoopFile(RemotePlace(str(one.getPath())), one.getLen(), one.isDirectory()) for one in statuses]
        return sorted(files, key=lambda file: file.place.name)

    def get(self, place: RemotePlace, target: Path) -> None:
        """Copy a file or a whole folder to the local file system."""
        with _told(place):
            path = self._path(place)
            target.parent.mkdir(parents=True, exist_ok=True)
            # The last argument asks for Hadoop's raw local file system, which writes no .crc file beside the copy.
            self._system(path).copyToLocalFile(False, path, self._jvm_path(f"file:{target.absolute()}"), True)

    def put(self, source: Path, place: RemotePlace) -> None:
        """Copy a local file or folder to this file system; an existing file is replaced."""
        with _told(place):
            path, copied = self._path(place), self._jvm_path(f"file:{source.absolute()}")
            here = self._system(copied)  # by streams: an object store's own way of copying has another HTTP client
            self._jvm.org.apache.hadoop.fs.FileUtil.copy(
                here, copied, self._system(path), path, False, True, self._settings
            )

    def remove(self, place: RemotePlace) -> None:
        """Remove a file or a folder with its contents, if it exists."""
        with _told(place):
            path = self._path(place)
            self._system(path).delete(path, True)

    def digest(self, place: RemotePlace) -> str | None:
        """The checksum or ETag that the file system stores for a file; ``None`` if it stores none."""
        with _told(place):
            path = self._path(place)
            system = self._system(path)
            checksum = system.getFileChecksum(path)
            if checksum is not None:
                return str(checksum.toString())
            status = system.getFileStatus(path)
            tagged = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.EtagSource")
            return f"ETag {status.getEtag()}" if tagged.isInstance(status) else None

    def _path(self, place: RemotePlace) -> Any:
        return self._jvm_path(place.url)

    def _jvm_path(self, url: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(url)

    def _system(self, path: Any) -> Any:
        return path.getFileSystem(self._settings)


@contextmanager
def _told(place: RemotePlace) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise HadoopError(reason(place, error)) from error


def reason(place: RemotePlace, error: Exception) -> str:
    """The sentence for a place that Hadoop could not open, read or write."""
    message = _BLANK.sub(" ", words(error))
    scheme = place.scheme
    if not _ABSENT.search(f"{message} {error}"):
        return f"{place}: {message}"
    library = _LIBRARIES.get(scheme)
    if library is None:
        return f"{place}: Hadoop knows no file system {scheme!r}: hdfs://, s3a:// and file: are some"
    named = f"org.apache.hadoop:{library}:{HADOOP}" if library.startswith("hadoop") else library
    return (
        f"{place}: Spark has no {library}, which opens {scheme}://: add it, as by PYSPARK_SUBMIT_ARGS='--packages "
        f"{named} pyspark-shell'"
    )
