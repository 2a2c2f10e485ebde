"""Memory that the C library keeps after it was freed, given back to the system: glibc's, nothing elsewhere."""

import ctypes
from collections.abc import Callable
from typing import Final

from streamgauge.servers.http.deadlines import resident

GIVE_BACK: Final = 4 * 2**20
"""Bytes that are worth a call of malloc_trim, which takes 1 ms for each 500 gaps between blocks in use."""

LARGE_BLOCK: Final = 512 * 2**10
"""Blocks of so many bytes are the system's once freed: glibc raises the bound to 32 MiB by itself, and keeps them."""

_MMAP_THRESHOLD: Final = -3
"""glibc's parameter of mallopt for that bound (malloc.h)."""


class _Mallinfo2(ctypes.Structure):
    """What malloc has (malloc.h, glibc 2.33): ``fordblks`` are bytes of free blocks, ``fsmblks`` of very small ones."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def _free_blocks(library: ctypes.CDLL) -> Callable[[], int]:
    """The bytes of free blocks that malloc has, whether they are the system's by now or not."""
    mallinfo = getattr(library, "mallinfo2", None)
    if mallinfo is None:
        return int
    mallinfo.restype = _Mallinfo2
    return lambda: int(mallinfo().fordblks)


class FreedMemory:
    """Gives free blocks back once there are ``GIVE_BACK`` bytes of them that may be resident.

    A block that was given back stays free and is not resident: neither number alone says how much can be given back.
    What is freed after a call raises the ``free`` bytes, what is taken again and freed the ``resident`` ones.
    """

    def __init__(self, resident: Callable[[], int] = resident, free: Callable[[], int] | None = None) -> None:
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)  # of glibc alone
        self._set = getattr(library, "mallopt", None) if self._trim else None
        self._resident, self._free = resident, free or _free_blocks(library)
        self._least_resident, self._least_free = resident(), self._free()

    def give_back_large(self) -> None:
        """From now on large blocks are given back when they are freed."""
        if self._set is not None:
            self._set(_MMAP_THRESHOLD, LARGE_BLOCK)

    def give_back(self) -> bool:
        """Give free blocks to the system where there may be enough of them; whether it did."""
        if self._trim is None:
            return False
        resident, free = self._resident(), self._free()
        enough = resident >= self._least_resident + GIVE_BACK or free >= self._least_free + GIVE_BACK
        if enough:
            self._trim(0)
            resident, free = self._resident(), self._free()
            self._least_resident, self._least_free = resident, free
        else:
            self._least_resident, self._least_free = min(self._least_resident, resident), min(self._least_free, free)
        return enough
