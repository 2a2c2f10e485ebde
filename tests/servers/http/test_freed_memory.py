"""Memory that requests leave behind goes back to the system, whenever it was freed."""

import ctypes
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from streamgauge.servers.http.deadlines import resident
from streamgauge.servers.http.freed_memory import GIVE_BACK, FreedMemory, Idleness

MEBI = 2**20


@pytest.fixture(autouse=True)
def _glibc():
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("malloc_trim and mallinfo2 are glibc's")


def looks(*sizes, idle=lambda: False):
    """Whether each look gave memory back; ``sizes`` are (resident, free) MiB, a pair for the start and each reading."""
    values = iter(sizes)
    pair = [0, 0]

    def of_process():
        pair[:] = next(values)
        return pair[0] * MEBI

    freed = FreedMemory(of_process, lambda: pair[1] * MEBI, idle)
    given = []
    while True:
        try:
            given.append(freed.give_back())
        except StopIteration:
            return given


def test_nothing_is_given_back_where_nothing_was_freed():
    assert looks((100, 1), (100, 1), (103, 2)) == [False, False]


def test_what_was_in_use_at_one_call_is_given_back_by_a_later_one():
    """60 MiB of requests are in use when the first call comes, and are freed after it: the process does not grow."""
    assert looks((100, 1), (160, 1), (160, 1), (160, 61), (100, 61), (100, 61)) == [True, True, False]


def test_what_was_given_back_taken_again_and_freed_is_given_back():
    assert looks((100, 61), (160, 61), (100, 61)) == [True]


def test_marks_follow_what_becomes_less():
    assert looks((100, 61), (100, 1), (100, 61), (100, 61)) == [False, True]


@pytest.mark.server
def test_blocks_of_the_process_go_back_to_the_system():
    """In a process of its own: one that runs tests has free blocks of theirs."""
    code = f"from {__name__} import blocks_go_back\nblocks_go_back()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


def blocks_go_back():
    """Small blocks with one in use behind them, as large ones and the last ones go back without a call."""
    freed = FreedMemory(idle=lambda: False)
    freed.give_back()
    before = resident()
    blocks = [bytes(4000) for _ in range(40 * MEBI // 4000)]
    freed.give_back()
    last = bytes(4000)
    del blocks
    assert resident() > before + 30 * MEBI
    assert freed.give_back()
    assert resident() < before + GIVE_BACK
    assert last


class Ring:
    """An object that only a collection of garbage frees."""

    def __init__(self):
        self.ring = self


def test_garbage_is_collected_once_the_process_is_idle_after_memory_was_freed():
    idle, kept = [False, False, True, True], list[bool]()

    def asked():
        kept.append(alive() is not None)
        return idle.pop(0)

    gc.disable()
    try:
        alive = weakref.ref(Ring())
        given = looks((100, 1), *[(160, 1)] * 6, idle=asked)
    finally:
        gc.enable()
    assert (given, kept) == ([True, False, True, False], [True, True, True, False])


def test_a_process_is_idle_that_computes_for_less_than_a_tenth_of_the_time():
    times, computed = iter((0.0, 3.0, 6.0, 9.0)), iter((1.0, 1.2, 3.0, 3.4))
    idle = Idleness(lambda: next(times), lambda: next(computed))
    assert [idle(), idle(), idle()] == [True, False, False]
