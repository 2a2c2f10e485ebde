"""Recording a run: the engine in a process of its own, every answer stamped, its resources sampled."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from streamgauge.bench.recording.feed import Pace, PacedFeeder, StoppedError, feed_fast
from streamgauge.bench.recording.sample import end, sample
from streamgauge.engines import command as command_of
from streamgauge.engines import load
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.query import print_query
from streamgauge.wire.lines import Late, LineError, decode_output
from streamgauge.wire.task import GO, READY, Task, encode_task

START_LIMIT_S = 60.0
PRELOAD_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on an engine: wall time of the whole run (s) and what it may write (bytes)."""

    seconds: float = 600.0
    output: int = 1 << 30


@dataclass
class _Observed:
    """What the threads see; failures are sentences, the first one counts."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    ready: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    failure: str | None = None
    written: int = 0

    def fail(self, sentence: str) -> None:
        self.failure = self.failure or sentence


def program(name: str) -> list[str]:
    """The command that runs an engine on the pipe: its own, else a Python process that hosts it."""
    own = command_of(load(name))
    return [sys.executable, "-m", "streamgauge.bench.recording.host", name] if own is None else list(own)


def task_of(header: RunHeader, dialect: str | None = None) -> Task:
    """What an engine is asked, its query in the dialect that it reads; ValueError when that cannot say it."""
    text, own = header.query_text, header.dialect
    if dialect is not None and dialect != own:
        text, own = print_query(header.query, dialect), dialect
    return Task(text, own, header.semantics, header.query.static, header.options)


def record(
    header: RunHeader,
    command: Sequence[str],
    stream: Iterable[StreamElement],
    limits: Limits,
    clock: Callable[[], int] = time.monotonic_ns,
    task: Task | None = None,
) -> Run:
    """Run the engine on the stream and return what was observed; a crash, hang or flood is in ``failure``."""
    asked = task_of(header) if task is None else task
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, bufsize=0)
        try:
            return _observe(header, asked, process, stream, limits, clock, words)
        finally:
            _kill(process)


def _observe(
    header: RunHeader,
    task: Task,
    process: "subprocess.Popen[bytes]",
    stream: Iterable[StreamElement],
    limits: Limits,
    clock: Callable[[], int],
    words: IO[bytes],
) -> Run:
    seen = _Observed()
    done = threading.Event()
    threads = [
        threading.Thread(target=_read, args=(process, seen, limits, clock), daemon=True),
        threading.Thread(target=sample, args=(process.pid, seen.samples, done, clock), daemon=True),
        threading.Thread(target=_watch, args=(process, seen, limits, done), daemon=True),
    ]
    for thread in threads:
        thread.start()
    started, fed = _feed(header, task, process, stream, clock, seen)
    code = process.wait()
    threads[0].join()
    done.set()
    for thread in threads[1:]:
        thread.join()
    if code != 0:
        seen.fail(f"the engine ended with exit code {code} after {len(seen.lines)} answers; {_last_words(words)}")
    answers, late = _answers(seen)
    found = replace(header, started=started, failure=seen.failure, late=late)
    return Run(found, answers, tuple(fed), tuple(seen.samples))


def _feed(
    header: RunHeader,
    task: Task,
    process: "subprocess.Popen[bytes]",
    stream: Iterable[StreamElement],
    clock: Callable[[], int],
    seen: _Observed,
) -> tuple[int, list[Fed]]:
    """Give the engine its task, wait until it is ready, feed it and close its input."""
    assert process.stdin is not None
    write = process.stdin.write
    semantics = header.semantics
    pace = Pace(header.factor, header.begin, header.advanced_to, semantics.due, semantics.lateness)
    try:
        write(encode_task(task))
        _await(process, seen, START_LIMIT_S)
        started = clock()
        if task.preload:
            fed = feed_fast(stream, pace, write, clock)
            write(GO)
            _await(process, seen, PRELOAD_LIMIT_S)
            started = clock()
            write(GO)
        elif pace.factor is None:
            fed = feed_fast(stream, pace, write, clock)
        else:
            fed = PacedFeeder(pace, write, clock).feed(stream, started)
    except (OSError, StoppedError):
        seen.fail(f"the engine stopped reading its input; {_exit(process)}")
        return clock(), []
    finally:
        _close(process)
    return started, fed


def _await(process: "subprocess.Popen[bytes]", seen: _Observed, seconds: float) -> None:
    """Wait until the engine says that it is ready; one that does not is ended."""
    if not seen.ready.acquire(timeout=seconds) and process.poll() is None:
        seen.fail(f"the engine did not say that it is ready within {seconds:.0f} s")
        process.kill()


def _read(
    process: "subprocess.Popen[bytes]",
    seen: _Observed,
    limits: Limits,
    clock: Callable[[], int],
) -> None:
    """Stamp every line of the engine as it comes; a flood ends the engine."""
    assert process.stdout is not None
    with os.fdopen(os.dup(process.stdout.fileno()), "rb", buffering=1 << 20) as output:
        for line in output:
            if line == READY:
                seen.ready.release()
                continue
            seen.lines.append((clock(), line))
            seen.written += len(line)
            if seen.written > limits.output:
                seen.fail(f"the engine wrote more than {limits.output >> 20} MiB of answers: a flood, so it was ended")
                process.kill()
                break
    seen.ready.release(2)


def _watch(process: "subprocess.Popen[bytes]", seen: _Observed, limits: Limits, done: threading.Event) -> None:
    """End an engine that takes longer than its limit."""
    if done.wait(limits.seconds) or process.poll() is not None:
        return
    seen.fail(f"the engine was still running after its time limit of {limits.seconds:g} s, so it was ended")
    process.kill()


def _answers(seen: _Observed) -> tuple[tuple[Answer, ...], int]:
    """The answers, and how many elements the engine said came too late to count."""
    answers: list[Answer] = []
    late = 0
    for number, (received, line) in enumerate(seen.lines, 1):
        try:
            said = decode_output(line)
        except LineError as error:
            seen.fail(f"line {number} of the engine's output is not an answer: {error}")
            break
        if isinstance(said, Late):
            late = said.count
        else:
            answers.append(replace(said, received=received))
    return tuple(answers), late


def _exit(process: "subprocess.Popen[bytes]") -> str:
    code = process.poll()
    return "it is still running" if code is None else f"it ended with exit code {code}"


def _last_words(words: IO[bytes]) -> str:
    words.seek(0, os.SEEK_END)
    words.seek(max(0, words.tell() - 2000))
    text = words.read().decode(errors="replace").strip()
    return f"its last words: {text}" if text else "it said nothing on standard error"


def _close(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the engine's whole process tree and release its pipes."""
    end(process.pid)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
