"""Resource usage of process trees, sampled during a run; the machine and versions in a run's header."""

import contextlib
import os
import platform
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import psutil

from streamgauge.model.run import Sample

EVERY_S = 0.5
"""Default interval between samples."""


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """Usage of a process tree: resident bytes, threads, CPU s including those of ended and waited-for processes."""

    rss: int = 0
    threads: int = 0
    cpu: float = 0.0


def tree(pid: int) -> list[psutil.Process]:
    """The process and its descendants; empty if it has ended."""
    try:
        root = psutil.Process(pid)
        # A zombie has ended, but keeps its id until it is waited for.
        return [] if root.status() == psutil.STATUS_ZOMBIE else [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def usage(pid: int) -> TreeUsage | None:
    """The tree's usage, ``None`` if the process has ended; a process that ends during the call is skipped."""
    rss, threads, cpu, alive = 0, 0, 0.0, False
    for process in tree(pid):
        with contextlib.suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            rss += int(process.memory_info().rss)
            threads += int(process.num_threads())
            # With waited-for children, so that the sum does not fall when a short-lived one ends.
            cpu += float(times.user + times.system + times.children_user + times.children_system)
            alive = True
    return TreeUsage(rss, threads, cpu) if alive else None


def spent(pid: int) -> float:
    """CPU seconds that the tree has used so far, 0 if the process has ended."""
    current = usage(pid)
    return 0.0 if current is None else current.cpu


def reaped() -> float:
    """CPU seconds of all waited-for child processes of this one, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class ResourceSampler:
    """Samples the process trees of each side (system, clients) in a thread, from ``start`` to ``stop``.

    ``sides`` has the root processes of each side, whose trees are added up. ``samples`` gets a sample of each side
    every ``every`` s and at the end, while its processes exist; ``total`` is the CPU time (s) that a side used.
    """

    def __init__(
        self,
        sides: Mapping[str, Sequence[int]],
        every: float = EVERY_S,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._sides, self._every, self._clock = dict(sides), every, clock
        self._memory = int(psutil.virtual_memory().total)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resource-sampler", daemon=True)
        self.samples: dict[str, list[Sample]] = {side: [] for side in sides}
        self.total: dict[str, float] = dict.fromkeys(sides, 0.0)
        self.began = 0

    def start(self) -> None:
        """Start the sampling thread."""
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample and end the thread; no effect if it was not started."""
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        self.began = at = self._clock()
        before = {side: current for side in self._sides if (current := self._usage(side)) is not None}
        ended = False
        while before and not ended:
            ended = self._done.wait(self._every)
            now = self._clock()
            before = {
                side: current
                for side, last in before.items()
                if (current := self._sample(side, last, at, now)) is not None
            }
            at = now

    def _sample(self, side: str, before: TreeUsage, last: int, now: int) -> TreeUsage | None:
        """Add a sample of a side, whose last one was at ``last`` (ns); ``None`` if its processes have ended."""
        current = self._usage(side)
        if current is None:
            return None
        # The sum falls when a process ends without having been waited for by its parent.
        used = max(0.0, current.cpu - before.cpu)
        self.total[side] += used
        busy = 100 * used / max(1e-9, (now - last) / 1e9)
        self.samples[side].append(Sample(now, current.rss, 100 * current.rss / self._memory, busy, current.threads))
        return TreeUsage(current.rss, current.threads, max(before.cpu, current.cpu))

    def _usage(self, side: str) -> TreeUsage | None:
        """The total usage of a side's trees, ``None`` if all have ended."""
        processes = [process for pid in self._sides[side] if (process := usage(pid)) is not None]
        if not processes:
            return None
        rss, threads = sum(process.rss for process in processes), sum(process.threads for process in processes)
        return TreeUsage(rss, threads, sum(process.cpu for process in processes))


def versions() -> dict[str, str]:
    """The versions that matter for a run's figures; PySpark's only if it is installed."""
    from importlib.metadata import PackageNotFoundError, version

    versions_ = {"python": platform.python_version()}
    for name in ("streamgauge", "pyspark", "pyoxigraph", "pyarrow"):
        with contextlib.suppress(PackageNotFoundError):
            versions_[name] = version(name)
    return versions_


def machine() -> dict[str, object]:
    """The system, its number of processors, and its memory in MiB."""
    memory = psutil.virtual_memory().total
    return {"system": platform.platform(), "cpus": os.cpu_count() or 1, "memory_mb": memory >> 20}
