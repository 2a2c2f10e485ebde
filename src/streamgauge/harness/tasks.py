"""Many short runs: one program on the pipe is given one task after another, and started again when it has ended."""

import contextlib
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import IO, Self

from streamgauge.formats.endings import START_LIMIT, start_limit
from streamgauge.formats.task import CLOSE, Task, TaskRefusedError, encode_task
from streamgauge.harness.feed import StoppedError
from streamgauge.harness.observed import Clock, Limits, Observed, Program, how_it_ended, last_words, read, start
from streamgauge.harness.record import START_LIMIT_S, feed
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed, Run, RunHeader


class Tasks:
    """Runs of one program, recorded one after another; a context manager that leaves no process behind.

    Runs have no samples of resources: one process does them all. A run's preload option is not heeded.
    """

    def __init__(self, command: Sequence[str], limits: Limits, clock: Clock = time.monotonic_ns) -> None:
        self._command, self._limits, self._clock = command, limits, clock
        self._process: Program | None = None
        self._reader: threading.Thread | None = None
        self._words: IO[bytes] | None = None
        self._seen = Observed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def record(self, header: RunHeader, stream: Iterable[StreamElement], task: Task) -> Run:
        """One run; a crash, hang or flood is in its ``failure``, TaskRefusedError has the program's own sentence."""
        again = self._process is not None
        run = self._record(header, stream, task)
        if again and run.header.failure is None and not run.fed:
            run = self._record(header, stream, task)
        if run.header.failure is None and not run.fed:
            return replace(run, header=replace(run.header, failure="the engine ended before it was ready"))
        return run

    def _record(self, header: RunHeader, stream: Iterable[StreamElement], task: Task) -> Run:
        """One run; nothing fed and no failure when the program has ended, as it may, after the task before."""
        self._seen = seen = Observed()
        process = self._started()
        timer = threading.Timer(self._limits.seconds, self._too_long, (process, seen))
        timer.start()
        try:
            started, fed = self._feed(header, stream, task, process)
            seen.closed.wait(self._limits.seconds + 1)
        finally:
            timer.cancel()
            self._settle(process, seen)
        answers, late = seen.answers()
        if seen.stopped:
            seen.fail(seen.stopped)
        return Run(replace(header, started=started, failure=seen.failure, late=late), answers, tuple(fed))

    def _feed(
        self, header: RunHeader, stream: Iterable[StreamElement], task: Task, process: Program
    ) -> tuple[int, list[Fed]]:
        """Give the program its task and, when it is ready, the stream: when that began (ns) and what was fed."""
        seen, started, fed, ready = self._seen, self._clock(), list[Fed](), False
        assert process.stdin is not None
        try:
            process.stdin.write(encode_task(task))
            if not seen.ready.acquire(timeout=(limit := start_limit(START_LIMIT_S))):
                seen.fail(f"the engine did not say that it is ready within {limit:g} s ({START_LIMIT} allows more)")
                process.kill()
            if seen.refused:
                raise TaskRefusedError(seen.refused)
            started, ready = self._clock(), not seen.over
            if ready:
                fed = feed(header, stream, process.stdin.write, self._clock, started)
                process.stdin.write(CLOSE)
        except (OSError, StoppedError):
            seen.closed.wait(1)
            if ready:
                seen.stopped = f"the engine stopped reading its input; {how_it_ended(process)}; {self._last_words()}"
        return started, fed

    def _started(self) -> Program:
        """The program, started when it does not run."""
        if self._process is None:
            self._words = tempfile.TemporaryFile()  # noqa: SIM115
            self._process = start(self._command, self._words)
            args = (self._process, lambda: self._seen, self._limits, self._clock)
            self._reader = threading.Thread(target=read, args=args, name="engine-lines", daemon=True)
            self._reader.start()
        return self._process

    def _too_long(self, process: Program, seen: Observed) -> None:
        seen.fail(f"the engine was still running after its time limit of {self._limits.seconds:g} s, so it was ended")
        process.kill()

    def _settle(self, process: Program, seen: Observed) -> None:
        """Forget a program that has ended, and how if it was badly; end one that failed."""
        assert self._reader is not None
        if seen.failure is None and not seen.stopped and not seen.over:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process.wait(1) != 0:
                seen.fail(seen.stopped or f"the engine ended with {process.how()}; {self._last_words()}")
        self.end()

    def _last_words(self) -> str:
        assert self._words is not None
        return last_words(self._words)

    def end(self) -> None:
        """End the program with all that it started, and release its pipes."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if self._reader is not None:
            self._reader.join(5)
        for pipe in (process.stdin, process.stdout, self._words):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
