"""Memory that requests leave behind: garbage that is collected, and free blocks that go back to the system (glibc)."""

import ctypes
import gc
import time
from collections.abc import Callable
from typing import Final

from streamgauge.servers.http.deadlines import resident

GIVE_BACK: Final = 4 * 2**20
"""Bytes that are worth a call of malloc_trim, which looks at every gap between blocks in use."""

LARGE_BLOCK: Final = 512 * 2**10
"""Blocks of so many bytes are the system's once freed: glibc raises the bound to 32 MiB by itself, and keeps them."""

ARENAS: Final = 2
"""Heaps of malloc: each thread that has one of its own keeps 2 MiB of it, between blocks in use."""

IDLE_SHARE: Final = 0.1
"""The share of its time that an idle process computes at most."""

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
    """The bytes of free blocks that malloc has, whether they are the system's by now or not."""
    mallinfo = getattr(library, "mallinfo2", None)
    if mallinfo is None:
        return int
    mallinfo.restype = _Mallinfo2
    return lambda: int(mallinfo().fordblks)


class Idleness:
    """Whether a process has computed for less than ``IDLE_SHARE`` of the time since this was asked last."""

    def __init__(self, clock: Callable[[], float], computed: Callable[[], float]) -> None:
        self._clock, self._computed = clock, computed
        self._last = clock(), computed()

    def __call__(self) -> bool:
        """Ask, and begin to measure anew."""
        (before, had), self._last = self._last, (self._clock(), self._computed())
        now, has = self._last
        return has - had < IDLE_SHARE * (now - before)


class FreedMemory:
    """Gives free blocks back once there are ``GIVE_BACK`` bytes of them that may be resident.

    A block that was given back stays free and is not resident: neither number alone says how much can be given back.
    Blocks freed after a call raise the ``free`` bytes, blocks taken again and freed the ``resident`` ones.
    Garbage with cycles is collected when the process is idle, so that no request waits for the collection: CPython
    collects when objects are made, which an idle server does not do.
    """

    def __init__(
        self,
        resident: Callable[[], int] = resident,
        free: Callable[[], int] | None = None,
        idle: Callable[[], bool] | None = None,
    ) -> None:
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)  # of glibc alone
        self._set = getattr(library, "mallopt", None) if self._trim else None
        self._resident, self._free = resident, free or _free_blocks(library)
        self._idle = idle or Idleness(time.monotonic, time.process_time)
        self._least_resident, self._least_free, self._littered = resident(), self._free(), False

    def keep_little(self) -> None:
        """From now on large blocks are given back when they are freed, and threads share heaps."""
        if self._set is not None:
            self._set(_MMAP_THRESHOLD, LARGE_BLOCK)
            self._set(_ARENA_MAX, ARENAS)

    def give_back(self) -> bool:
        """Give free blocks to the system where there may be enough of them; whether it did."""
        if self._trim is None:
            return False
        resident, free = self._resident(), self._free()
        enough = resident >= self._least_resident + GIVE_BACK or free >= self._least_free + GIVE_BACK
        self._littered |= enough
        if self._idle() and self._littered:
            gc.collect()
            enough, self._littered = True, False
        if enough:
            self._trim(0)
            resident, free = self._resident(), self._free()
            self._least_resident, self._least_free = resident, free
        else:
            self._least_resident, self._least_free = min(self._least_resident, resident), min(self._least_free, free)
        return enough
