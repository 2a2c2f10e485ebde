"""Offline checks of a journal, on a copy: SQLite changes files even when it only opens them."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from streamgauge.servers.durability import UNREADABLE, Inspection, Witness, copy_readable, unpack
from streamgauge.servers.sealed.soundness import (
    JournalError,
    Schema,
    in_use,
    inspect,
    log_of,
    mark_of,
    refuse_vanished,
)


def verify_copy(schema: Schema, path: Path) -> Inspection:
    """All damage of a journal, which is not changed. JournalError if it does not exist or is in use."""
    refuse_absent(path)
    try:
        refuse_vanished(path)
    except JournalError as error:
        inspection = Inspection()
        inspection.note("byte 0", str(error))
        return inspection
    # Read before the copy: the copy has no witness beside it.
    mark = mark_in(path)
    inspection = Inspection()
    with readable_copy(path, inspection) as copy, closing(sqlite3.connect(copy, isolation_level=None)) as database:
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            inspection.note("page 1", f"no journal ({error})")
            return inspection
        if version != schema.version:
            # Nothing of this version's checks applies, neither seal nor row checksums.
            inspection.note("page 1 or the log", f"its version is {version}, not {schema.version}")
            return inspection
        return inspect(schema, database, mark, inspection)[0]


@contextmanager
def readable_copy(path: Path, inspection: Inspection) -> Iterator[Path]:
    """A temporary copy of a journal and its log; bytes that cannot be read are noted."""
    with TemporaryDirectory(prefix="streamgauge-verify-") as folder:
        copy = Path(folder) / "journal"
        for source, to in ((path, copy), (log_of(path), log_of(copy))):
            if source == path or source.exists():
                for start, end in copy_readable(source, to):
                    inspection.note(f"{source.name}, bytes {start:,} to {end:,}", UNREADABLE)
        yield copy


def refuse_absent(path: Path) -> None:
    """JournalError for a journal that does not exist, cannot be read, or is in use."""
    beside = [file for file in (mark_of(path), log_of(path)) if file.exists()]
    if not path.exists() and not beside:
        raise JournalError(f"{path}: no journal is there")
    # A copy of a journal that is being written would show damage that is not there.
    if path.exists() and in_use(path):
        raise JournalError(f"{path}: a server has it open: stop that first")
    if path.exists() and not os.access(path, os.R_OK):
        raise JournalError(f"{path}: it cannot be read: ask for the right to read it")


def mark_in(path: Path) -> Witness | None:
    """The witness of a journal; ``None`` if it is missing or unreadable."""
    try:
        return unpack(mark_of(path).read_bytes())
    except OSError:
        return None
