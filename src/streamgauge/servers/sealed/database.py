"""A sealed journal in one SQLite database, with a write-ahead log that is synced once per transaction.

SQLite is proven for what a journal needs: transactions are atomic and durable, and a crash at any point leaves the
state before or after one; docs/broker.md has the costs. Damage that SQLite does not detect (a changed bit, a log that
lost its end, the file of another journal) is detected by checksums and a witness.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, cast

from streamgauge.model.mistake import obstacle
from streamgauge.servers.durability import Witness, WitnessFile, explained, open_beside, open_private, unreadable
from streamgauge.servers.sealed.seal import Seal, new_id
from streamgauge.servers.sealed.soundness import (
    JournalError,
    NotWrittenError,
    RowSeal,
    Schema,
    checked,
    log_of,
    mark_of,
    packed,
    refuse_vanished,
    row_sum,
)


class SealedDatabase:
    """A file with the tables of a ``schema``, created if missing and locked by this process. For one thread at a time.

    ``patience`` is how long (s) to wait for another process to release the file. JournalError for a damaged file, which
    is not changed; NotWrittenError, from all methods that change something, if the disk refuses the change.
    """

    schema: ClassVar[Schema]

    def __init__(self, path: Path, *, patience: float = 5.0) -> None:
        self._path = path
        try:
            refuse_vanished(path)
        except OSError as error:
            raise JournalError(f"{path}: no journal can be kept here: {obstacle(error)}") from error
        with _log_preserved(path):
            with suppress(OSError):  # SQLite will fail in the same way, and report it
                # Created by us and not by SQLite, whose files everybody may read under the usual umask.
                os.close(open_private(path))
            try:
                # `isolation_level=None` keeps the module from beginning transactions by itself; they are explicit
                # below. The broker calls from several threads, one at a time.
                self._database = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
            except sqlite3.Error as error:
                raise JournalError(f"{path}: no journal can be kept here: {self._unopened(error)}") from error
            try:
                self._prepare()
            except (sqlite3.Error, OSError) as error:
                self._database.close()
                raise JournalError(self._refusal(error)) from error
            except BaseException:
                self._database.close()
                raise

    def _refusal(self, error: sqlite3.Error | OSError) -> str:
        """Why the file cannot be used, for the JournalError."""
        # Errors of the module itself, such as a closed connection, have no name.
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")) or isinstance(error, OSError):
            return f"{self._path}: no journal can be kept here: {self._why(error)}"
        damaged = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
        if not damaged:
            return f"{self._path}: no journal can be kept here: {self._unopened(error)}"
        message = f"{self._path}: no journal can be kept here: page 1 is damaged or was never a journal's"
        return f"{message}: {self.schema.advice(self._path)}"

    def _unopened(self, error: sqlite3.Error) -> str:
        """Why the file cannot be opened, which SQLite does not report; SQLite's message for other errors."""
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return "another process has it open: end that one, or name another folder"
        try:
            # SQLite says "unable to open database file" for every cause; opening it ourselves gives the system's error.
            # "ab" changes nothing.
            with self._path.open("ab"):
                return self._lost(error) or str(error)
        except OSError as cause:
            return obstacle(cause)

    def _why(self, error: sqlite3.Error | OSError) -> str:
        if lost := self._lost(error):
            return lost
        full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
        return explained(self._path.parent, str(error), full=full)

    def _lost(self, error: sqlite3.Error | OSError) -> str:
        """Where the disk cannot read the file, with the remedy; empty for other errors."""
        lost = unreadable(self._path) if getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR") else ""
        return f"{lost}: {self.schema.advice(self._path)}" if lost else ""

    def _prepare(self) -> None:
        run = self._database.execute
        # Exclusive before WAL: SQLite then keeps the log's index in memory, and no other process can open the file.
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        # In WAL mode NORMAL does not sync at a commit, and a power failure would take back what was acknowledged.
        run("PRAGMA synchronous = FULL")
        # A negative number counts in KiB: 64 MiB instead of 2.
        run("PRAGMA cache_size = -65536")
        run("PRAGMA temp_store = MEMORY")
        (version,) = run("PRAGMA user_version").fetchone()
        # A version of 0 alone could be damage to page 1; tables that are there show that it is.
        new = version == 0 and not run("SELECT 1 FROM sqlite_master").fetchone()
        with open_beside(mark_of(self._path)) as mark:
            witness = WitnessFile(mark)
            # ``begun`` is separate from ``before``: a damaged witness still proves that a journal was here.
            before, begun = witness.read(), not witness.empty
        # Before anything is created: a journal that lost its pages would otherwise be taken for a new one.
        self._refuse_version(version, new=new, begun=begun)
        if new:
            run("BEGIN IMMEDIATE")
            self.schema.create(self._database)
            self._begin()
        else:
            self._resume(checked(self.schema, self._path, self._database, before), before)

    def _refuse_version(self, version: int, *, new: bool, begun: bool) -> None:
        """JournalError for an unsupported version; the witness shows whether it is damage."""
        schema, path = self.schema, self._path
        if begun and version != schema.version:
            raise JournalError(
                f"{path}: damaged: page 1 or the log: its version is {version} and that of the journal that was kept"
                f" here is {schema.version}: {schema.advice(path)}; to begin anew remove {mark_of(path).name} too"
            )
        if not new and version != schema.version:
            raise JournalError(f"{path}: its version is {version}, this reads {schema.version}: name another file")

    def _begin(self) -> None:
        """Name and seal a journal in the transaction that created its tables; change 0 is only there for the seal."""
        run, name, newest = self._database.execute, new_id(), self.schema.newest
        run("INSERT INTO journal VALUES (?, ?)", (name, row_sum("journal", (name,))))
        if run(f"SELECT 1 FROM {newest}").fetchone() is None:
            run(f"INSERT INTO {newest} VALUES (0, ?, NULL)", (row_sum(newest, (0,)),))
        seal = Seal(name, 1, *self._counted())
        run(f"UPDATE {newest} SET seal = ?", (packed(seal),))
        run("COMMIT")
        self._resume(seal, None)

    def _counted(self) -> tuple[int, int]:
        """The number of all rows, and the sum of their checksums."""
        queries = [f"SELECT count(*), coalesce(sum(sum), 0) FROM {table}" for table in self.schema.tables]
        counts = [self._database.execute(query).fetchone() for query in queries]
        return sum(rows for rows, _ in counts), sum(total for _, total in counts)

    def _resume(self, seal: Seal, before: Witness | None) -> None:
        """Continue from a seal, and make the witness agree with it."""
        self._seal = RowSeal(seal)
        self._inserts = {table: self._insertion(table) for table in self.schema.tables}
        self._recall()
        self._cursor, self._sealed = self._database.cursor(), cast(Seal | None, None)
        self._mark = open_beside(mark_of(self._path))
        self._witness = WitnessFile(self._mark)
        # The witness may be a change behind after a crash between the commit and its own write.
        if seal.witness != before:
            self._witness.begin(seal.witness)

    def _insertion(self, table: str) -> str:
        columns = len(self._database.execute(f"PRAGMA table_info({table})").fetchall())
        return f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"

    def _recall(self) -> None:
        """Read the cached number of the newest change again."""
        (self._newest,) = self._database.execute(f"SELECT max(number) FROM {self.schema.newest}").fetchone()

    def _number(self, newest: int) -> None:
        """Store the number of the newest change together with the seal, in the only row of its table."""
        table = self.schema.newest
        # The table's only row is changed in place: its old checksum leaves the seal, the new one enters.
        self._seal.leave(row_sum(table, (self._newest,)))
        self._newest = newest
        value = self._seal.entered(table, (newest,))
        self._sealed = self._seal.next
        self._cursor.execute(f"UPDATE {table} SET number = ?, sum = ?, seal = ?", (newest, value, packed(self._sealed)))

    def _insert(self, table: str, row: Sequence[object]) -> None:
        self._cursor.execute(self._inserts[table], (*row, self._seal.entered(table, row)))

    def _delete(self, table: str, which: str, *values: str | int) -> None:
        # The stored sums, since these are what was sealed when the rows were written.
        gone = self._database.execute(f"SELECT sum FROM {table} WHERE {which}", values).fetchall()
        if gone:
            self._database.execute(f"DELETE FROM {table} WHERE {which}", values)
            for (value,) in gone:
                self._seal.leave(value)

    def close(self) -> None:
        """Close the database and the witness."""
        with suppress(sqlite3.ProgrammingError):  # closed before
            self._cursor.close()  # a statement that failed would keep the file locked
        self._database.close()
        self._mark.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block whose changes are committed atomically and sealed; afterwards the witness is updated.

        NotWrittenError if the disk refuses: nothing has changed.
        """
        self._sealed = None
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._not_written(error) from error
        try:
            yield
            sealed = self._sealed
            # A change without a number of its own (a channel, a subscriber) still moves the seal.
            if sealed is None:
                sealed = self._seal.next
                self._cursor.execute(f"UPDATE {self.schema.newest} SET seal = ?", (packed(sealed),))
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._not_written(error) from error
        except BaseException:
            self._roll_back()
            raise
        # Only after the commit: a witness ahead of its journal would mean that acknowledged changes were lost.
        self._witness.follow(self._seal.commit(sealed))

    @contextmanager
    def filled(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for a block that inserts many rows with their sums; the seal is recounted at its end."""
        with self.transaction():
            yield self._database
            self._recall()
            # Recounted, since the block inserts rows past `_insert`.
            self._seal.count(*self._counted())

    def _roll_back(self) -> None:
        """Restore the database and the cached figures to the state before the transaction."""
        if self._database.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to report
                self._database.execute("ROLLBACK")
        self._seal.roll_back()
        self._recall()

    def _not_written(self, error: sqlite3.Error) -> JournalError:
        """The error for a write that failed."""
        name = error.sqlite_errorname if hasattr(error, "sqlite_errorname") else ""
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return JournalError(
                f"{self._path}: damaged while it was written ({error}): {self.schema.advice(self._path)}"
            )
        # Every other failure may pass: a full disk, a quota, a lock.
        return NotWrittenError(f"{self._path}: could not be written: {self._why(error)}")


@contextmanager
def _log_preserved(path: Path) -> Iterator[None]:
    """Give the log a second name (hard link) during the block: SQLite deletes the log of a journal that is refused."""
    log = log_of(path)
    kept = log.with_name(f"{log.name}-before")
    if kept.exists() and not log.exists():
        kept.rename(log)  # the process that refused the journal was killed before it could do this
    kept.unlink(missing_ok=True)
    with suppress(OSError):  # no log, or a file system without hard links
        os.link(log, kept)
    try:
        yield
    except BaseException:
        if kept.exists() and not log.exists():
            kept.rename(log)
        raise
    finally:
        kept.unlink(missing_ok=True)
