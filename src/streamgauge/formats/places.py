"""Places of tables: a local path, ``file:``, or the URL of a Hadoop file system, which Spark opens.

A URL must never be taken for a path: ``Path("hdfs://host/x")`` is a local folder named ``hdfs:``.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from streamgauge.model.mistake import MistakeError

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
"""A scheme of at least two letters before a slash: ``12:30.nq`` and ``C:/x`` are paths."""

_LOCAL_HOSTS: Final = ("", "localhost")


HADOOP: Final = ("abfs", "abfss", "gs", "hdfs", "o3fs", "ofs", "s3a", "viewfs", "webhdfs")
"""Schemes of Hadoop file systems, which distinguish a folder of tables from a source of messages."""


class RemotePlaceError(MistakeError, ValueError):
    """A place on a Hadoop file system where a local path is needed, or an invalid file URL."""


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """A file or folder on a Hadoop file system, by its URL: ``hdfs://host:9000/a``, ``s3a://bucket/a``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "RemotePlace":
        return RemotePlace(f"{self.url.rstrip('/')}/{name}")

    @property
    def scheme(self) -> str:
        """The scheme of the URL."""
        return self.url.partition(":")[0]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> "RemotePlace":
        """The folder that it is in."""
        return RemotePlace(self.url.rstrip("/").rpartition("/")[0])


Place: TypeAlias = Path | RemotePlace
"""A local path, or a place that only Spark can open."""


def exists(text: str | Path) -> bool:
    """Whether a text names a file or folder; false for impossible paths, such as too long ones."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def place(text: str | Path) -> Place:
    """The place of a path or URL, where ``file:`` is local; RemotePlaceError for a file of another host.

    Examples: ``a/b``, ``file:/a/b`` and ``file:///a/b`` are local, ``hdfs://h:9000/a`` and ``s3a://bucket/a`` are not.
    """
    # An existing file wins, as names of files may look like URLs.
    url = None if exists(text) else _URL.match(str(text))
    if url is None:
        return Path(text)
    scheme, rest = url[1].lower(), url[2]
    if scheme != "file":
        # Path has collapsed the slashes of a URL.
        slashes = "//" if isinstance(text, Path) else str(text)[len(url[1]) + 1 : -len(rest) or None]
        return RemotePlace(f"{scheme}:{slashes}{rest}")
    parts = urlsplit(str(text))
    if parts.netloc not in _LOCAL_HOSTS:
        raise RemotePlaceError(f"{text}: a file of the host {parts.netloc}: write file:///path for a local one")
    return Path(unquote(parts.path))


def local(path: str | Path, use: str = "this") -> Path:
    """The local path of a place; RemotePlaceError for another file system, which ``use`` does not support."""
    place_ = place(path)
    if isinstance(place_, RemotePlace):
        raise RemotePlaceError(
            f"{place_}: {use} works on local files; this place is on another file system: give a local path "
            "(`hadoop fs -get` and `aws s3 cp` copy files here, -put and cp there)"
        )
    return place_
