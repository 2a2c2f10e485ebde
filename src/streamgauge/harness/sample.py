"""Samples of a process tree: memory, CPU and threads of an engine and everything that it started."""

import contextlib
import resource
import threading
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from streamgauge.model.run import Sample

EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Use:
    """What a process tree uses now: resident bytes, threads, and CPU seconds since each process began."""

    rss: int = 0
    threads: int = 0
    cpu: float = 0.0


def tree(pid: int) -> list[psutil.Process]:
    """The process and its descendants; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [] if root.status() == psutil.STATUS_ZOMBIE else [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def use(pid: int) -> Use | None:
    """The tree's use, ``None`` when the process is gone; a process that ends meanwhile counts as nothing."""
    rss, threads, cpu, found = 0, 0, 0.0, False
    for process in tree(pid):
        with contextlib.suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            rss += int(process.memory_info().rss)
            threads += int(process.num_threads())
            cpu += float(times.user + times.system)
            found = True
    return Use(rss, threads, cpu) if found else None


def spent(pid: int) -> float:
    """CPU seconds that the tree has used until now, and its processes that have ended and were waited for."""
    total = 0.0
    for process in tree(pid):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += float(times.user + times.system + times.children_user + times.children_system)
    return total


def reaped() -> float:
    """CPU seconds of all processes that this one started and waited for, with those that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sample(pid: int, samples: list[Sample], done: threading.Event, clock: Callable[[], int]) -> None:
    """Append a sample every half second, one at once and one at the end, until ``done`` or the process is gone."""
    total = int(psutil.virtual_memory().total)
    before, at = use(pid), clock()
    while before is not None:
        ended = done.wait(EVERY_S)
        now, then = use(pid), clock()
        if now is None:
            return
        busy = 100 * max(0.0, now.cpu - before.cpu) / max(1e-9, (then - at) / 1e9)
        samples.append(Sample(then, now.rss, 100 * now.rss / total, busy, now.threads))
        before, at = now, then
        if ended:
            return
