"""Offline checks of a store: inspecting it for damage, and saving its sound quads as a new store."""

import fcntl
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streamgauge.model.terms import Term
from streamgauge.servers.durability import Inspection, Saved, Witness, unpack
from streamgauge.servers.fragments import ExpiringQuad
from streamgauge.servers.fragments.store import DamagedStoreError, Keep, disk
from streamgauge.servers.fragments.store.lmdb_file import LmdbFile, MetaPage, PageError
from streamgauge.servers.fragments.store.quad_keys import KEY, TIME, WIDTH, quad_key, time_of

_ORDERS: Final = b"012345"


def verify(folder: Path) -> Inspection:
    """All damage of a store, which is not changed. FolderError if it does not exist or is in use."""
    _refuse_absent(folder)
    inspection, before = Inspection(), _before(folder)
    try:
        disk.refuse_vanished(folder, before)
        if disk.data_file(folder).exists():
            disk.check_store(folder, before)
    except DamagedStoreError as error:
        inspection.note(
            str(disk.data_file(folder)), str(error).partition("damaged: ")[2].rpartition("; `")[0] or str(error)
        )
    if disk.data_file(folder).exists():
        try:
            for key, _ in _sound(folder, inspection):
                inspection.count(disk.KINDS.get(key[0], "others"))
        except disk.FolderError as error:
            inspection.note(disk.data_file(folder).name, str(error).partition("damaged: ")[2])
    return inspection


def save(folder: Path, new: Path) -> Saved:
    """Load the sound quads into a new folder; FolderError if nothing can be read.

    Each quad is in six orders, so a damaged block loses nothing unless the other five blocks are damaged as well.
    """
    _refuse_absent(folder)
    if new.exists() and any(new.iterdir()):
        raise disk.FolderError(f"{new}: it already exists: choose another folder")
    inspection = Inspection()
    if not disk.data_file(folder).exists():
        raise disk.FolderError(f"{disk.data_file(folder)}: it is missing, and nothing of it can be saved")
    rest = _Salvage()
    for key, value in _sound(folder, inspection):
        rest.take(key, value)
    store = disk.DiskStore(new, Keep() if rest.keeps else None)
    try:
        saved = store.load(rest.quads(), at=rest.last if rest.keeps else None)
    finally:
        store.close()
    return Saved(f"{saved:,} quads", (*map(str, inspection.damages), *rest.losses(saved)))


@dataclass(slots=True)
class _Salvage:
    """Terms, keys and ends collected from the sound records of a store."""

    texts: dict[bytes, Term] = field(default_factory=dict)
    keys: set[bytes] = field(default_factory=set)
    ends: dict[bytes, int] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    """Quads by order, from the sizes of its blocks, which are stored apart from the blocks."""
    keeps: bool = False
    last: int = 0
    without_text: int = 0

    def take(self, key: bytes, value: bytes) -> None:
        """Collect the content of a sound record."""
        kind = key[0]
        if kind in _ORDERS:
            number = kind - _ORDERS[0]
            self.keys.update(quad_key(value[at : at + KEY], number) for at in range(0, len(value), KEY))
        elif kind == ord("k"):
            for at in range(0, len(value), KEY + TIME):
                self.ends[value[at : at + KEY]] = time_of(value[at + KEY : at + KEY + TIME])
        # The same ends once more, in the order of time.
        elif kind == ord("e"):
            for at in range(0, len(value), KEY + TIME):
                self.ends[value[at + TIME : at + TIME + KEY]] = time_of(value[at : at + TIME])
        elif kind == ord("t"):
            self.texts[key[1:]] = value.decode()
        # The same text once more, by its number: either record is enough to save a term.
        elif key.startswith(b"n="):
            self.texts[value] = key[2:].decode()
        elif kind == ord("s") and key[1] in _ORDERS:
            self.counts[key[1]] += int.from_bytes(value) // KEY
        elif key == b"m:keeps":
            self.keeps = True
        elif key == b"m:last":
            self.last = time_of(value)

    def quads(self) -> Iterator[ExpiringQuad]:
        """The quads whose four terms are known, with their ends."""
        for key in sorted(self.keys):
            terms = [self.texts.get(key[at : at + WIDTH]) for at in range(0, KEY, WIDTH)]
            if None in terms:
                self.without_text += 1
                continue
            s, p, o, g = (str(term) for term in terms)
            yield (s, p, o, g), self.ends.get(key)

    def losses(self, saved: int) -> Iterator[str]:
        """Sentences that describe what could not be saved."""
        lost = max(self.counts.values(), default=0) - saved
        if lost > 0:
            yield f"{lost:,} quads are lost"
        if self.without_text:
            yield f"{self.without_text:,} quads are lost because the text of a term is"
        if self.keeps:
            yield "the history is not saved: the new store begins its own"
            yield "versions start again: clients that know an older one have to fetch their fragments again"


def _sound(folder: Path, inspection: Inspection) -> Iterator[tuple[bytes, bytes]]:
    """The intact records of a store's pages in use; damage is noted. FolderError if no meta page can be read."""
    data = disk.data_file(folder)
    with closing(LmdbFile(data)) as file:
        meta = _readable(file, data)
        for page, records in file.live_leaves(meta):
            if isinstance(records, PageError):
                inspection.note(data.name, str(records))
                continue
            for key, value in records:
                try:
                    content = file.value(value)
                except PageError as error:
                    inspection.note(data.name, str(error))
                    continue
                if not key or not disk.checksum_holds(key, content):
                    inspection.note(f"{data.name}, page {page}", f"{disk.record_name(key)}: its checksum does not hold")
                else:
                    yield key, content[:-4]


def _readable(file: LmdbFile, data: Path) -> MetaPage:
    """The newest meta page whose list of free pages can be read: without it, stale pages would pass for data."""
    metas = []
    # LMDB writes its two meta pages in turn: the other one describes the transaction before.
    for page in range(2):
        try:
            metas.append(file.read_meta(page))
        except PageError:
            continue
    for meta in sorted(metas, key=lambda meta: -meta.transaction):
        try:
            file.free(meta)
        except PageError:
            continue
        return meta
    raise disk.FolderError(
        f"{data}: damaged: neither meta page can be read, so no other page can be found; nothing is saved"
    )


def _refuse_absent(folder: Path) -> None:
    lock = disk.lock_file(folder)
    if not any(file.exists() for file in (lock, disk.data_file(folder), folder / "lock.mdb")):
        raise disk.FolderError(f"{folder}: no store is there")
    if not lock.exists():
        return
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            raise disk.FolderError(f"{folder}: a server has it open: stop the server first") from error


def _before(folder: Path) -> Witness | None:
    if not disk.lock_file(folder).exists():
        return None
    return unpack(disk.lock_file(folder).read_bytes())
