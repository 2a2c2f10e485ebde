"""A folder of queries: each file is registered under its name, and changes of files are applied.

An invalid file is refused without affecting others; if it was registered before, the previous query continues.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

from streamgauge.model.logs import fields
from streamgauge.servers.queries.catalogue import UnknownQueryError
from streamgauge.servers.queries.deliveries import Deliveries
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration, read_registration

OWNER: Final = "queries folder"
"""The identity that queries of the folder belong to."""

LOOK_S: Final = 1.0
"""Seconds between scans of the folder; a file is read once two scans in a row see the same."""

_LOG = getLogger(__name__)

Signature: TypeAlias = tuple[tuple[str, int, int, int] | None, ...]
"""(path, time of change in ns, bytes, inode) of each file of a query; ``None`` for one that is not there."""


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A query from its file and the options file beside it: where its answers go, and the other files it reads."""

    registration: QueryRegistration
    sinks: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()


class QueryFolder:
    """The queries of a folder (``*.rq``). Thread-safe.

    ``read`` reads a file with the options beside it, and raises an error of ``mistakes``, as registering does;
    ``refused`` has their sentences by the names of files.
    """

    def __init__(
        self,
        queries: Queries,
        folder: Path,
        read: Callable[[Path], QueryFile],
        deliveries: Deliveries,
        mistakes: tuple[type[Exception], ...],
    ) -> None:
        self._queries, self._folder, self._read, self._mistakes = queries, folder, read, mistakes
        self.deliveries = deliveries
        self.refused: dict[str, str] = {}
        self._lock = Lock()
        self._seen: dict[str, Signature] = {}
        self._done: dict[str, Signature] = {}
        self._others: dict[str, tuple[Path, ...]] = {}
        self._registered: dict[str, QueryRegistration] = dict(self._kept())

    def _kept(self) -> Mapping[str, QueryRegistration]:
        """The queries of the folder that the service had when it ended."""
        journal = self._queries.journal
        records: Mapping[str, Any] = {} if journal is None else journal.state.records("query")
        return {
            name: read_registration(record["request"]) for name, record in records.items() if record["owner"] == OWNER
        }

    def owns(self, name: str) -> bool:
        """Whether a query is that of a file."""
        return name in self._registered

    def look(self, *, at_once: bool = False) -> None:
        """Register new files, replace changed ones, end deleted ones; with ``at_once``, without a second scan."""
        with self._lock:
            files = {file.stem: file for file in sorted(self._folder.glob("*.rq"))}
            for name in self._registered.keys() - files.keys():
                self._end(name)
            # Also files that were refused, which are not among the registered queries.
            for name in self._done.keys() - files.keys():
                del self._done[name]
                self.refused.pop(f"{name}.rq", None)
            for name, file in files.items():
                signature = self._signature(file)
                # An editor or a copy may still be writing the file when it is first seen.
                steady = at_once or self._seen.get(name) == signature
                self._seen[name] = signature
                if steady and self._done.get(name) != signature:
                    self._take(name, file)
                    # Computed again, since reading the query may have shown further files that it depends on.
                    self._done[name] = self._seen[name] = self._signature(file)

    def _signature(self, file: Path) -> Signature:
        return tuple(map(_stamp, (file, file.with_suffix(".toml"), *self._others.get(file.stem, ()))))

    def _take(self, name: str, file: Path) -> None:
        """Register a query anew unless it is as it was; a file that cannot be used is refused."""
        try:
            query = self._read(file)
            self._others[name] = query.others
            if self._registered.get(name) != query.registration:
                # Before the old query ends: a mistake in the new text must not leave the name without a query.
                self._queries.check(query.registration)
                if name in self._registered:
                    self._end(name)
                self._queries.register(query.registration, OWNER, name)
                self._registered[name] = query.registration
            self.deliveries.run(name, query.sinks)
        except self._mistakes as error:
            kept = ": the query as it was goes on" if name in self._registered else ""
            self.refused[file.name] = str(error)
            _LOG.error("%s is refused%s: %s", file.name, kept, error, extra=fields(query=name))
        else:
            self.refused.pop(file.name, None)

    def _end(self, name: str) -> None:
        self.deliveries.run(name, ())
        del self._registered[name]
        try:
            self._queries.deregister(name)
        except UnknownQueryError:
            return


def _stamp(file: Path) -> tuple[str, int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    # The inode as well: a file that is renamed over another may have its time and size.
    return str(file), status.st_mtime_ns, status.st_size, status.st_ino
