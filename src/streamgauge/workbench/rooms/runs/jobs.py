"""Child processes of the workbench that run experiments and judge runs; each ends with all of its descendants.

A job is ``streamgauge run`` or ``streamgauge check`` in a separate process, so that the workbench stays responsive. The
run store keeps finished runs: stopping a job loses none of them, and starting it again resumes.
"""

import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Final

from streamgauge.harness.process import ChildProcess
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.mistake import MistakeError
from streamgauge.report.numbers import NOTHING, duration, mebibytes, number, percent
from streamgauge.report.series import median_delay
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.suites.experiments.progress import JudgedTrial, ProgressReader

AT_ONCE: Final = 2
"""Maximum concurrent jobs, because concurrent engines delay each other."""

KEPT: Final = 100
"""Maximum finished jobs that are still shown."""

STOP_S: Final = 10.0
"""Seconds for a job to stop; then it is killed with all of its descendants."""

LOOK_S: Final = 0.5
"""Seconds for which the state of a job is cached."""

SHARE: Final = 10
"""How many times the CPU time of the last verdict so far there is none: judging takes a tenth of a core at most."""

VERDICT_S: Final = 5.0
"""CPU seconds that a verdict so far may take."""

POINTS: Final = 240
"""Points of a small plot."""

_START: Final = """
import os, signal, sys, threading

def leave():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=leave, daemon=True).start()
os.chdir(sys.argv.pop(1))
from streamgauge.cli.main import main
main()
"""
"""A command in a folder (its first word) that is interrupted when its input ends, as when the workbench is killed.

A shell has its background jobs ignore an interruption, which children inherit. Paths in run folders are relative to
the folder, as those of a command that a user calls there.
"""

_DONE: Final = frozenset((0, 1, 3, 4, 5))
"""Exit codes of commands that succeeded, whatever the verdict."""


class JobRefusedError(MistakeError):
    """A job that may not begin now; the sentence says why."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as a page shows it: measures in words, small plots as points of a polyline in a box of 100 by 30."""

    going: bool
    stopping: bool
    sentence: str
    step: str
    share: float
    trial: str
    measures: Sequence[tuple[str, str]] = ()
    note: str = ""
    plots: Sequence[tuple[str, str]] = ()
    outcomes: Sequence[JudgedTrial] = ()


class BenchJob:
    """A command of this package in a child process. Thread-safe."""

    def __init__(self, title: str, folder: Path, words: Sequence[str], *, watched: bool) -> None:
        """``words`` are called in the folder. ``watched``: the command is ``run``, which writes its progress."""
        self.title, self.sentence = title, ""
        self._first = "starting" if watched else "judging"
        self._scratch = TemporaryDirectory(prefix="streamgauge-job-")
        self.reader = ProgressReader(Path(self._scratch.name))
        self._lock, self._stopping = Lock(), False
        self._next, self._looked, self._view = 0.0, 0.0, JobView(True, False, "", "", 0.0, "")
        more = ("--progress", self._scratch.name) if watched else ()
        self._process = ChildProcess([sys.executable, "-c", _START, str(folder), *words, *more], session=True)
        self._waiter = Thread(target=self._wait, name="workbench-job", daemon=True)
        self._waiter.start()

    @property
    def going(self) -> bool:
        """Whether the command still runs."""
        return self._waiter.is_alive()

    def stop(self) -> None:
        """Ask the command to stop; it is ended when it does not in time."""
        if self._stopping or not self.going:
            return
        self._stopping = True
        # As Ctrl-C in a terminal: the command ends after keeping what it has.
        self._process.send_signal(signal.SIGINT)
        Thread(target=self._end, name="workbench-job-end", daemon=True).start()

    def join(self) -> None:
        """Wait until a job that was stopped is over."""
        # The time to stop in peace, and as much again for being killed.
        self._waiter.join(2 * STOP_S)

    def _end(self) -> None:
        self._waiter.join(STOP_S)
        if self.going:
            self._process.kill()

    def _wait(self) -> None:
        """Read the output of the command until it ends, kill remaining descendants, and record how it ended."""
        assert self._process.stdout is not None
        # Its output is not used, but a command whose pipe is full would wait.
        while self._process.stdout.read(1 << 16):
            pass
        code = self._process.wait()
        self._process.bury()
        words = self._process.last_words()
        with self._lock:
            self.reader.read()
            self.sentence = self._ended(code, words)
        self._process.release()
        self._scratch.cleanup()

    def _ended(self, code: int, words: str) -> str:
        if self._stopping:
            return f"Stopped; finished runs are kept ({len(self.reader.outcomes)} by now)."
        if code in _DONE:
            return "Done."
        # Code 2 is a mistake in the input, and its sentence is the last; anything else may end with a traceback.
        message = words.rpartition("streamgauge: ")[2] if code == 2 else words[-600:]
        return f"Not done: {message or self._process.how()}"

    def look(self) -> JobView:
        """The state of a job, refreshed at most every LOOK_S seconds; judges the current run if that is cheap."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOK_S or not self.going:
                if self.going:
                    self.reader.read()
                    self._judge()
                self._view = self._shown()
                # After judging, which may take longer than LOOK_S.
                self._looked = time.monotonic()
            return self._view

    def _judge(self) -> None:
        """The preliminary verdict, unless the last one took too long to repeat it now."""
        if time.monotonic() < self._next:
            return
        # CPU time rather than time on the clock, in which other threads and jobs run as well.
        began = time.thread_time()
        try:
            with DEADLINES.within(VERDICT_S):
                self.reader.verdict()
        except TooMuchError:
            self.reader.wrong = "Judging it while it runs takes too long."
        except (MistakeError, OSError) as error:
            self.reader.wrong = f"Not judged while it runs: {error}"
        self._next = time.monotonic() + SHARE * (time.thread_time() - began)

    def _shown(self) -> JobView:
        reader = self.reader
        over = not self.going
        return JobView(
            going=not over,
            stopping=self._stopping,
            sentence=self.sentence,
            step="" if over else reader.step or self._first,
            share=reader.share,
            trial="" if over else reader.trial,
            measures=() if over else self._measures(),
            note="" if over else reader.wrong,
            plots=() if over else self._plots(),
            outcomes=tuple(reader.outcomes),
        )

    def _measures(self) -> list[tuple[str, str]]:
        verdict, samples = self.reader.so_far, self.reader.samples
        delay = None if verdict is None else median_delay(verdict.windows)
        return [
            ("Windows so far", NOTHING if verdict is None else f"{len(verdict.windows):,}"),
            ("Precision so far", percent(None if verdict is None else verdict.precision)),
            ("Recall so far", percent(None if verdict is None else verdict.recall)),
            ("Median delay so far", duration(delay)),
            ("Memory", mebibytes(samples[-1][1]) if samples else NOTHING),
            ("CPU", f"{number(samples[-1][2])}%" if samples else NOTHING),
        ]

    def _plots(self) -> list[tuple[str, str]]:
        """The delays of the windows so far and the memory, each with its message, where there are two values."""
        windows = () if self.reader.so_far is None else self.reader.so_far.windows
        delays = [window.delay for window in windows if window.delay is not None]
        sizes = [float(size) for _, size, _ in self.reader.samples]
        plots = []
        if len(delays) > 1:
            message = f"Delay: median {duration(median(delays))}, at most {duration(max(delays))}"
            plots.append((message, polyline(delays)))
        if len(sizes) > 1:
            plots.append((f"Memory: at most {mebibytes(max(sizes))}", polyline(sizes)))
        return plots


def polyline(values: Sequence[float]) -> str:
    """Values as points in a box of 100 by 30, from 0 at its foot to the greatest; the greatest of each stretch.

    Example: ``polyline([0, 5, 10])`` is ``"0.0,30.0 50.0,15.0 100.0,0.0"``.
    """
    # Rounded up, so that there are never more points than that: 241 values make stretches of 2, that is 121 points.
    step = -(-len(values) // POINTS)
    drawn = [max(values[at : at + step]) for at in range(0, len(values), step)]
    # Never 0, by which the heights are divided.
    top, last = max([*drawn, 1e-9]), max(1, len(drawn) - 1)
    return " ".join(
        f"{100 * place / last:.1f},{30 - 30 * max(0.0, delay) / top:.1f}" for place, delay in enumerate(drawn)
    )


@dataclass
class Jobs:
    """The jobs of a workbench by key, at most one running job per key. Thread-safe."""

    most: int = AT_ONCE
    _jobs: dict[str, BenchJob] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _closed: bool = False

    def get(self, key: str) -> BenchJob | None:
        """The running or last job of a key."""
        return self._jobs.get(key)

    def start(self, key: str, make: Callable[[], BenchJob]) -> BenchJob:
        """Start a job; JobRefusedError if one of this key is running, or the maximum is reached."""
        with self._lock:
            going = [job for job in self._jobs.values() if job.going]
            before = self._jobs.get(key)
            if self._closed:
                raise JobRefusedError("the workbench is closing: start it again")
            if before is not None and before.going:
                raise JobRefusedError(f"{before.title} runs already: stop it, or wait until it is over")
            if len(going) >= self.most:
                names = " and ".join(job.title for job in going)
                raise JobRefusedError(
                    f"{names} run already, and {self.most} at once are the most: engines that run beside each other "
                    "delay each other"
                )
            # Within the lock: two requests at once must not start the same job twice.
            job = make()
            # To the end of the order, whose first finished jobs are forgotten.
            self._jobs.pop(key, None)
            self._jobs[key] = job
            for old in [name for name, job in self._jobs.items() if not job.going][: -KEPT or None]:
                del self._jobs[old]
            return job

    def close(self) -> list[str]:
        """Stop all jobs, wait until they are over, and say of each that it was stopped."""
        with self._lock:
            self._closed = True
            going = [job for job in self._jobs.values() if job.going]
        for job in going:
            job.stop()
        for job in going:
            job.join()
        return [f"{job.title}: {job.sentence or 'ended'}" for job in going]
