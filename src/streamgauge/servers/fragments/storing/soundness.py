"""A sound store: the check before its file is mapped, by the pages of LMDB's trees, the seal and the witness."""

from collections.abc import Iterable
from contextlib import closing
from os import urandom
from pathlib import Path

from streamgauge.servers.durability.witness import Witness
from streamgauge.servers.fragments.storing.mdbfile import MdbFile, PageError, Records, Value
from streamgauge.servers.fragments.storing.records import (
    FORMAT,
    PLAIN,
    SEAL,
    SEALED,
    SUMMED,
    Seal,
    Sealing,
    described,
    read_seal,
    summed,
    whole,
)
from streamgauge.servers.fragments.storing.shelf import DamagedStoreError


def data_of(folder: Path) -> Path:
    """LMDB's file in a folder."""
    return folder / "data.mdb"


def held_of(folder: Path) -> Path:
    """The file of a folder's lock and witness."""
    return folder / "held"


def advice(folder: Path) -> str:
    """How what is sound in a damaged store is saved."""
    return f"`streamgauge fragments verify {folder} --save-to NEW` saves the sound quads; or give an empty folder"


def refuse_vanished(folder: Path, before: Witness | None, *, begun: bool) -> None:
    """DamagedStoreError when the data are missing or empty, and a file beside them shows that there were some."""
    data, lock = data_of(folder), folder / "lock.mdb"
    if data.exists() and data.stat().st_size:
        return
    making = before is not None and before.number == 0
    if not making and (begun or lock.exists()):
        state = "empty" if data.exists() else "missing"
        beside = held_of(folder).name if begun else lock.name
        raise DamagedStoreError(
            f"{data}: damaged from its first byte on: it is {state} though {beside} beside it says that there were"
            " data, and nothing of them can be saved: restore it from a copy, or remove the folder to begin anew"
        )


def checked(folder: Path, before: Witness | None) -> Sealing | None:
    """The seal of a sound store, one of number 0 where nothing was written yet, ``None`` for a store without sums.

    ``before`` is what the folder's witness says. DamagedStoreError, in one sentence.
    """
    data = data_of(folder)
    try:
        with closing(MdbFile(data)) as file:
            return _checked(file.leaves(file.meta()), before)
    except (PageError, DamagedStoreError) as error:
        raise DamagedStoreError(f"{data}: damaged: {error}; {advice(folder)}") from error


def _checked(leaves: Iterable[Records], before: Witness | None) -> Sealing | None:
    form, seal, found, many = None, None, Sealing(Seal(b"", 0, 0, 0)), 0
    for records in leaves:
        many += len(records)
        if form == PLAIN or records[0][0][:1] == records[-1][0][:1] == b"t":
            continue
        for key, value in records:
            if not key or key[0] not in SEALED:
                continue
            if key == FORMAT:
                form = value
            if form == PLAIN:
                break
            if type(value) is not bytes or not whole(key, value):
                raise DamagedStoreError(f"{described(key)}: its checksum does not hold")
            if key == SEAL:
                seal = read_seal(value)
            else:
                found.enter(value)
    if form == PLAIN:
        if before is not None:
            raise DamagedStoreError("the mark of its format: it says that there are no checksums, but there were")
        return None
    if not many and (before is None or before.number == 0):
        return Sealing(Seal(urandom(16) if before is None else before.store, 0, 0, 0))
    _agree(form, seal, found, before)
    return Sealing(seal) if seal is not None else None


def _agree(form: Value | None, seal: Seal | None, found: Sealing, before: Witness | None) -> None:
    """DamagedStoreError where records, seal and witness contradict each other."""
    if form != summed(FORMAT, SUMMED):
        raise DamagedStoreError("the mark of its format is missing or none that this reads")
    if seal is None:
        raise DamagedStoreError("its seal is missing")
    if (seal.records, seal.total) != (found.records, found.total & (1 << 64) - 1):
        raise DamagedStoreError(
            f"its records are not those that were written ({found.records:,} of {seal.records:,} that a seal counts)"
        )
    if before is None:
        return
    if before.store != seal.store:
        raise DamagedStoreError("it is another folder's: the witness beside it names another store")
    if seal.number < before.number:
        lost = before.number - seal.number
        raise DamagedStoreError(f"after change {seal.number:,}: {lost:,} acknowledged changes are missing")
    if seal.number == before.number and seal.witness != before:
        raise DamagedStoreError(f"change {seal.number:,} is not the one that was acknowledged")
