"""Recording a run: the engine in a process of its own, every answer stamped, its resources sampled."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import IO

from streamgauge.engines import command as command_of
from streamgauge.engines import load
from streamgauge.formats.endings import START_LIMIT, start_limit
from streamgauge.formats.task import GO, Task, encode_task
from streamgauge.formats.written import Written
from streamgauge.harness.feed import Pace, PacedFeeder, StoppedError, Write, feed_fast
from streamgauge.harness.observed import Clock, Limits, Observed, Program, how_it_ended, last_words, read, start
from streamgauge.harness.sample import reaped, sample, spent
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.query import print_query

__all__ = ["Limits", "feed", "program", "record", "task_of"]

START_LIMIT_S = 60.0
PRELOAD_LIMIT_S = 600.0


def program(name: str) -> list[str]:
    """The command that runs an engine on the pipe: its own, else a Python process that hosts it."""
    own = command_of(load(name))
    return [sys.executable, "-m", "streamgauge.harness.host", name] if own is None else list(own)


def task_of(header: RunHeader, dialect: str | None = None) -> Task:
    """What an engine is asked, its query printed in the dialect that it reads; ValueError when that cannot say it.

    A text whose IRIs are relative to no BASE is printed too: engines would take them each in its own way.
    """
    text, own = header.query_text, header.dialect
    if dialect is None and header.query.notes:
        dialect = own
    if dialect is not None:
        text, own = print_query(header.query, dialect), dialect
    return Task(text, own, header.semantics, header.query.static, header.options)


def record(
    header: RunHeader,
    command: Sequence[str],
    stream: Iterable[StreamElement | Written],
    limits: Limits,
    clock: Clock = time.monotonic_ns,
    task: Task | None = None,
) -> Run:
    """Run the engine on the stream and return what was observed; a crash, hang, flood or refusal is in ``failure``."""
    asked = task_of(header) if task is None else task
    before = reaped()
    with tempfile.TemporaryFile() as words:
        process = start(command, words)
        try:
            run = _observe(header, asked, process, stream, limits, clock, words)
        finally:
            _kill(process)
    cpu = max(0.0, reaped() - before - (run.header.cpu or 0.0))
    return replace(run, header=replace(run.header, cpu=cpu))


def _observe(
    header: RunHeader,
    task: Task,
    process: Program,
    stream: Iterable[StreamElement | Written],
    limits: Limits,
    clock: Clock,
    words: IO[bytes],
) -> Run:
    seen = Observed()
    done = threading.Event()
    threads = [
        threading.Thread(target=_bury, args=(process, seen), daemon=True),
        threading.Thread(target=read, args=(process, lambda: seen, limits, clock), daemon=True),
        threading.Thread(target=sample, args=(process.pid, seen.samples, done, clock), daemon=True),
        threading.Thread(target=_watch, args=(process, seen, limits, done, words), daemon=True),
    ]
    for thread in threads:
        thread.start()
    started, fed = _feed(header, task, process, stream, clock, seen, words)
    for thread in threads[:2]:
        thread.join()
    done.set()
    for thread in threads[2:]:
        thread.join()
    if process.returncode:
        ended = f"the engine ended with {process.how()} after {len(seen.lines)} answers; {last_words(words)}"
        seen.fail(seen.stopped or ended)
    answers, late = seen.answers()
    _fail(seen)
    found = replace(header, started=started, failure=seen.failure, late=late, cpu=seen.spent)
    return Run(found, answers, tuple(fed), tuple(seen.samples))


def _fail(seen: Observed) -> None:
    """Say how a program failed that has ended with exit code 0 and right answers, if nothing was said before."""
    if seen.stopped:
        seen.fail(seen.stopped)
    if seen.early:
        seen.fail(f"the engine closed its output before the end of its input, after {len(seen.lines)} answers")
    if seen.left:
        seen.fail(f"the engine left {seen.left} of its processes running when it ended; they were ended")


def _bury(process: Program, seen: Observed) -> None:
    seen.left = process.bury()


def _feed(
    header: RunHeader,
    task: Task,
    process: Program,
    stream: Iterable[StreamElement | Written],
    clock: Clock,
    seen: Observed,
    words: IO[bytes],
) -> tuple[int, list[Fed]]:
    """Give the engine its task, wait until it is ready, feed it and close its input."""
    assert process.stdin is not None
    write = _whole(process.stdin.write)
    started, fed = clock(), list[Fed]()
    try:
        write(encode_task(task))
        if not _await(process, seen, start_limit(START_LIMIT_S)):
            return started, fed
        seen.spent = spent(process.pid)
        started = clock()
        fed = feed(header, stream, write, clock, started)
        if task.preload:
            write(GO)
            _await(process, seen, PRELOAD_LIMIT_S)
            seen.spent = spent(process.pid)
            started = clock()
            write(GO)
        seen.early = seen.over
    except StoppedError as stopped:
        fed = stopped.fed
        seen.stopped = _stopped(process, words)
    except OSError:
        seen.stopped = _stopped(process, words)
    finally:
        _close(process)
    return started, fed


def _whole(write: Callable[[memoryview], int | None]) -> Write:
    """Writes all that it is given: a signal may interrupt one write in its middle."""

    def write_all(data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[write(left) or 0 :]

    return write_all


def _stopped(process: Program, words: IO[bytes]) -> str:
    """Why nobody reads: it may be about to end."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return f"the engine stopped reading its input; {how_it_ended(process)}; {last_words(words)}"


def feed(
    header: RunHeader, stream: Iterable[StreamElement | Written], write: Write, clock: Clock, started: int
) -> list[Fed]:
    """Hand the stream over at the run's pace, as fast as it is taken when it has none or the input is preloaded."""
    semantics = header.semantics
    pace = Pace(header.factor, header.begin, header.advanced_to, semantics.due, semantics.lateness)
    if header.factor is None or header.options.get("preload") is True:
        return feed_fast(stream, pace, write, clock)
    return PacedFeeder(pace, write, clock).feed(stream, started)


def _await(process: Program, seen: Observed, seconds: float) -> bool:
    """Wait until the engine is ready; one that does not say so is ended, one that refuses is not fed."""
    if not seen.ready.acquire(timeout=seconds) and process.poll() is None:
        seen.fail(f"the engine did not say that it is ready within {seconds:g} s ({START_LIMIT} allows more)")
        process.kill()
    if seen.refused:
        seen.fail(f"the engine refuses the task: {seen.refused}")
    return not seen.refused


def _watch(process: Program, seen: Observed, limits: Limits, done: threading.Event, words: IO[bytes]) -> None:
    """End an engine that takes longer, or says more on standard error, than its limits."""
    until = time.monotonic() + limits.seconds
    while not done.wait(min(0.5, max(0.0, until - time.monotonic()))) and process.poll() is None:
        if os.fstat(words.fileno()).st_size > limits.output:
            seen.fail(f"the engine wrote more than {limits.output >> 20} MiB on standard error, so it was ended")
        elif time.monotonic() >= until:
            seen.fail(f"the engine was still running after its time limit of {limits.seconds:g} s, so it was ended")
        else:
            continue
        process.kill()
        return


def _close(process: Program) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()


def _kill(process: Program) -> None:
    """End the engine with all that it started and release its pipes."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
