"""Memory after requests and runs: garbage is collected, and free blocks of malloc go back to the system (glibc)."""

import ctypes
import gc
import time
from collections.abc import Callable
from typing import Final

from streamgauge.servers.http.deadlines import resident

GIVE_BACK: Final = 4 * 2**20
"""Bytes that justify a call of malloc_trim, which visits every gap between used blocks."""

LARGE_BLOCK: Final = 512 * 2**10
"""Blocks of at least this size are unmapped when freed. By default glibc raises the bound to 32 MiB and keeps them."""

ARENAS: Final = 2
"""Heaps of malloc. By default most threads get their own, and each keeps about 2 MiB free between used blocks."""

IDLE_SHARE: Final = 0.1
"""Share of its time that a process computes at most while it counts as idle."""

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
"""glibc's parameters of mallopt for both (malloc.h)."""


class _Mallinfo2(ctypes.Structure):
    """The state of malloc (malloc.h, glibc 2.33): ``fordblks`` are the bytes of free blocks."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def _free_blocks(library: ctypes.CDLL) -> Callable[[], int]:
    """A function that returns the bytes in free blocks of malloc, resident or not; 0 without mallinfo2."""
    mallinfo = getattr(library, "mallinfo2", None)
    if mallinfo is None:
        return int
    mallinfo.restype = _Mallinfo2
    return lambda: int(mallinfo().fordblks)


class Idleness:
    """Tells whether the process has computed for less than ``IDLE_SHARE`` of the time since the last call."""

    def __init__(self, clock: Callable[[], float], computed: Callable[[], float]) -> None:
        self._clock, self._computed = clock, computed
        self._last = clock(), computed()

    def __call__(self) -> bool:
        """Whether it was idle; starts the next period."""
        (before, had), self._last = self._last, (self._clock(), self._computed())
        now, has = self._last
        return has - had < IDLE_SHARE * (now - before)


class FreedMemory:
    """Gives free blocks back to the system once ``GIVE_BACK`` bytes of them may be resident.

    A block that was given back still counts as free for malloc, so free bytes alone say nothing; nor do resident bytes,
    which include used blocks. Growth of either since its minimum after the last call is a sign: newly freed blocks
    raise the ``free`` bytes, blocks that were taken again and freed raise the ``resident`` ones.

    Cyclic garbage is collected while the process is idle, so that no request waits for it. CPython by itself collects
    only when objects are allocated, which an idle server does not do.
    """

    def __init__(
        self,
        resident: Callable[[], int] = resident,
        free: Callable[[], int] | None = None,
        idle: Callable[[], bool] | None = None,
    ) -> None:
        # The symbols of the running process: the C library that Python itself uses, whatever its file name.
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)  # of glibc alone
        self._set = getattr(library, "mallopt", None) if self._trim else None
        self._resident, self._free = resident, free or _free_blocks(library)
        self._idle = idle or Idleness(time.monotonic, time.process_time)
        self._least_resident, self._least_free, self._littered = resident(), self._free(), False

    def keep_little(self) -> None:
        """Configure malloc to unmap large blocks when they are freed and to share heaps among threads."""
        if self._set is not None:
            self._set(_MMAP_THRESHOLD, LARGE_BLOCK)
            self._set(_ARENA_MAX, ARENAS)

    def give_back(self) -> bool:
        """Give free blocks back if there may be enough of them; returns whether it did."""
        if self._trim is None:
            return False
        resident, free = self._resident(), self._free()
        enough = resident >= self._least_resident + GIVE_BACK or free >= self._least_free + GIVE_BACK
        self._littered |= enough
        # `_idle` is called in any case, since each call begins its next period.
        if self._idle() and self._littered:
            # Once per busy period: an idle server that has been collected makes no garbage, and a full collection costs
            # tens of ms.
            gc.collect()
            enough, self._littered = True, False
        # The minima restart from what is left: blocks that stay free in between used ones never count again.
        if enough:
            self._trim(0)
            resident, free = self._resident(), self._free()
            self._least_resident, self._least_free = resident, free
        else:
            self._least_resident, self._least_free = min(self._least_resident, resident), min(self._least_free, free)
        return enough
