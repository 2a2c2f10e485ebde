"""Programs on the pipe as systems under test: every output line gets a timestamp, every failure becomes a sentence.

``record`` does one run with a new program and samples its resources; ``PipeProgram`` does many tasks with one program,
which is restarted if it has ended.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Final, Self, TypeAlias

from streamgauge.engines import command as command_of
from streamgauge.engines import load
from streamgauge.formats.lines import Late, LineError, decode_output
from streamgauge.formats.pipe import (
    CLOSE,
    FORMS,
    GO,
    START_LIMIT,
    Form,
    Task,
    TaskRefusedError,
    advice,
    encode_task,
    start_limit,
    word,
)
from streamgauge.harness.forms import BatchForm, LineForm, Stream, form_of, offered
from streamgauge.harness.pace import PacedFeeder, RunPace, StoppedError, Write, feed_fast
from streamgauge.harness.process import ChildProcess, write_all
from streamgauge.harness.resources import ResourceSampler, reaped, spent
from streamgauge.harness.systems import Clock, RunLimits, SystemUnderTest
from streamgauge.model.answer import Answer
from streamgauge.model.phrases import counted
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.query import print_query
from streamgauge.semantics.static_data import as_printed

__all__ = ["PipeProgram", "RunLimits", "Watch", "feed", "program", "record", "task_of"]

START_LIMIT_S: Final = 60.0
"""Seconds until a program has to be ready."""

PRELOAD_LIMIT_S: Final = 600.0
"""Seconds for a program to load its whole input before the run."""

Line = tuple[int, bytes]
"""The time of arrival of a line (monotonic ns), and the line."""


def program(name: str) -> list[str]:
    """The command of an engine on the pipe: its own, else a Python process that hosts it."""
    own = command_of(load(name))
    return [sys.executable, "-m", "streamgauge.harness.host", name] if own is None else list(own)


def task_of(header: RunHeader, dialect: str | None = None) -> Task:
    """The task of a run, with the query in the engine's dialect; ValueError if the dialect cannot express it.

    A query with relative IRIs and no BASE is printed with absolute ones, because engines resolve them differently.
    """
    text, own = header.query_text, header.dialect
    if dialect is None and header.query.notes:
        dialect = own
    if dialect is not None:
        text, own = print_query(header.query, dialect), dialect
    semantics = as_printed(header.query, header.semantics, own)
    return Task(text, own, semantics, header.query.static, header.options)


def record(
    header: RunHeader,
    command: Sequence[str],
    stream: Stream,
    limits: RunLimits,
    clock: Clock = time.monotonic_ns,
    task: Task | None = None,
    watch: "Watch | None" = None,
) -> Run:
    """Run the engine on the stream and return the run; a crash, hang, flood or refusal is its ``failure``.

    ``watch`` is called before the run with the observation and the samples, for other threads to read meanwhile.
    """
    # Waited-for children count as a whole when they end, so the difference has processes that no sample has seen.
    before = reaped()
    with PipeProgram(command, limits, clock) as system:
        run = system.run_alone(header, stream, task_of(header) if task is None else task, watch)
    # ``cpu`` of the observation is what the process tree had used when the feed began.
    cpu = max(0.0, reaped() - before - (run.header.cpu or 0.0))
    return replace(run, header=replace(run.header, cpu=cpu))


def feed(
    header: RunHeader, stream: Stream, write: Write, clock: Clock, form: LineForm | BatchForm, start: Callable[[], int]
) -> list[Fed]:
    """Hand over the stream at the run's pace, or as fast as possible if it has none or the input is preloaded.

    ``start`` is called when the first element is ready, and returns that time (ns).
    """
    pace = _pace(header)
    if pace.factor is None:
        start()
        return feed_fast(stream, pace, write, clock, form)
    with form.one_by_one(stream) as coming:
        return PacedFeeder(pace, write, clock, form=form).hand_over(coming, start())


def _pace(header: RunHeader) -> RunPace:
    semantics = header.semantics
    factor = None if header.options.get("preload") is True else header.factor
    return RunPace(factor, header.begin, header.advanced_to, semantics.due, semantics.lateness)


@dataclass
class Observation:
    """The state of one task, shared by the threads; failures are sentences, and the first one counts.

    ``ready`` counts the program's ready messages, ``form`` is the one that it chose for elements, ``closed`` is set by
    its closed message or at the end of its output (``over``). ``early``: the output ended before the input.
    ``stopped``: it stopped reading (a sentence, which is the failure unless the exit code or an invalid answer tells
    more). ``left`` is the number of processes that it left running. ``spent`` are the CPU seconds of its process tree
    when the feed began, at ``started`` (ns).
    """

    lines: list[Line] = field(default_factory=list)
    form: LineForm | BatchForm = field(default_factory=LineForm)
    ready: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    closed: threading.Event = field(default_factory=threading.Event)
    over: bool = False
    early: bool = False
    stopped: str = ""
    left: int = 0
    refused: str = ""
    failure: str | None = None
    written: int = 0
    spent: float = 0.0
    started: int = 0

    def fail(self, sentence: str) -> None:
        """Set the failure if it is the first one, with invalid characters escaped."""
        self.failure = self.failure or sentence.encode(errors="backslashreplace").decode()

    def take(self, received: int, line: bytes, limits: RunLimits) -> bool:
        """Process one line of output; false if the program has exceeded its output limit."""
        message = word(line)
        if message is None:
            self.lines.append((received, line))
        elif message.kind == "closed":
            self.closed.set()
        else:
            self.refused = message.sentence
            if message.form == "arrow":
                self.form = form_of(message.form)
            self.ready.release()
        self.written += len(line)
        if self.written > limits.output:
            self.fail(f"the engine wrote more than {limits.output >> 20} MiB of answers: a flood, so it was ended")
            return False
        return True

    def end(self) -> None:
        """Record the end of the output, and wake all waiting threads."""
        self.over = True
        # Twice: a preloaded task waits for two ready messages.
        self.ready.release(2)
        self.closed.set()

    def answers(self) -> tuple[tuple[Answer, ...], int]:
        """The decoded answers, and the number of elements that the engine dropped as late."""
        answers: list[Answer] = []
        late = 0
        for number, (received, line) in enumerate(self.lines, 1):
            try:
                message = decode_output(line)
            except LineError as error:
                self.fail(f"line {number} of the engine's output is not an answer: {error}")
                break
            if isinstance(message, Late):
                late = message.count
            else:
                answers.append(replace(message, received=received))
        return tuple(answers), late

    def run(self, header: RunHeader, fed: Iterable[Fed], sampler: ResourceSampler | None = None) -> Run:
        """The run; faults of a program that ended normally become its failure unless there is one already."""
        answers, late = self.answers()
        # The first of several faults becomes the failure, in this order.
        if self.stopped:
            self.fail(self.stopped)
        if self.early:
            so_far = counted(len(self.lines), "answer")
            self.fail(f"the engine closed its output before the end of its input, after {so_far}")
        if self.left:
            self.fail(f"the engine left {self.left} of its processes running when it ended; they were ended")
        final = replace(header, started=self.started, failure=self.failure, late=late)
        if sampler is None:
            return Run(final, answers, tuple(fed))
        return Run(replace(final, cpu=self.spent), answers, tuple(fed), tuple(sampler.samples["system"]))


Watch: TypeAlias = Callable[[Observation, ResourceSampler], object]
"""Called with the observation and the samples of a run, both of which grow during it."""


OPEN_OUTPUT_S: Final = 20
"""Seconds for which a program's output may stay open after its end, by processes that inherited it."""


class PipeProgram:
    """A program on the pipe as a system under test; a context manager that leaves no process behind.

    Elements are sent in the form that the program chooses from ``forms``, or as lines if the stream is short. Answers
    are only stored with their time of arrival, and decoded after the run, so that decoding does not disturb it.
    """

    evaluator: str | None = None

    def __init__(
        self,
        command: Sequence[str],
        limits: RunLimits,
        clock: Clock = time.monotonic_ns,
        forms: tuple[Form, ...] = FORMS,
    ) -> None:
        self._command, self._limits, self._clock, self._forms = command, limits, clock, forms
        self._child: ChildProcess | None = None
        self._reader: threading.Thread | None = None
        self._seen = Observation()
        self._receive: Callable[[Line], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def processes(self) -> Sequence[int]:
        """The program's process id while it runs, as a tuple."""
        return () if self._child is None else (self._child.pid,)

    def start(self, task: Task) -> None:
        """Send the program its task and wait until it is ready; it is killed if that takes too long.

        TaskRefusedError, OSError.
        """
        self._ask(replace(task, forms=self._forms))

    def _ask(self, task: Task) -> None:
        self.feed(encode_task(task))
        self._await_ready(start_limit(START_LIMIT_S))
        if self._seen.refused:
            raise TaskRefusedError(self._seen.refused)

    def subscribe(self, query: str, receive: Callable[[Line], None]) -> None:  # noqa: ARG002 (a task has one query)
        """Call ``receive`` for each output line once the task is settled; its timestamp is that of its arrival."""
        self._receive = receive

    def unsubscribe(self, query: str) -> None:  # noqa: ARG002
        """Discard the output lines of the task."""
        self._receive = None

    def feed(self, element: bytes) -> None:
        """Write input; OSError if the program has stopped reading."""
        write_all(self._stdin, element)

    def advance(self, time: int) -> None:
        """Advance the program's time to ``time`` (ms)."""
        form = self._seen.form
        self.feed(form.encoded([form.advance(time)]))  # type: ignore[list-item]

    def settle(self) -> None:
        """End the task, and wait for its last answer or the end of the program."""
        self.feed(CLOSE)
        # A second longer than the watchdog waits: it kills first, and knows the reason.
        self._seen.closed.wait(self._limits.seconds + 1)
        if self._receive is not None:
            for line in self._seen.lines:
                self._receive(line)

    def close(self) -> None:
        """Kill the program with all processes that it started, and close its pipes."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        if self._reader is not None:
            self._reader.join(5)
        child.release()

    def run_alone(self, header: RunHeader, stream: Stream, task: Task, watch: Watch | None = None) -> Run:
        """One run of a new program, which ends at the end of its input; its resources are sampled."""
        child, seen = self._begin(), self._seen
        bury = threading.Thread(target=self._bury, args=(child, seen), daemon=True)
        bury.start()
        with ResourceSampler({"system": (child.pid,)}, clock=self._clock) as sampler, self._watched(child, seen):
            if watch is not None:
                watch(seen, sampler)
            fed = self._hand_over(header, stream, task, child)
            bury.join()
            self._await_output(child, seen)
        if child.returncode:
            ended = (
                f"the engine ended with {child.how()} after {counted(len(seen.lines), 'answer')}; {last_words(child)}"
            )
            seen.fail(seen.stopped or ended)
        return seen.run(header, fed, sampler)

    def record(self, header: RunHeader, stream: Stream, task: Task) -> Run:
        """One of many runs of the same program; a crash, hang or flood is its ``failure``. TaskRefusedError.

        It has no resource samples, because one process does all runs, and is never preloaded.
        """
        again = self._child is not None
        run = self._record(header, stream, task)
        # The program may have ended after the task before, which shows only now: a new one gets the task.
        if again and run.header.failure is None and not run.fed:
            run = self._record(header, stream, task)
        if run.header.failure is None and not run.fed:
            return replace(run, header=replace(run.header, failure="the engine ended before it was ready"))
        return run

    def _record(self, header: RunHeader, stream: Stream, task: Task) -> Run:
        """One run; nothing is fed, without a failure, if the program had ended after the previous task."""
        child = self._begin()
        seen, fed, ready = self._seen, list[Fed](), False
        try:
            with self._watched(child, seen):
                self._ask(replace(task, forms=offered(self._forms, stream)))
                seen.started, ready = self._clock(), not seen.over
                if ready:
                    fed = feed(header, stream, self.feed, self._clock, seen.form, self._stamped)
                    self.settle()
        except (OSError, StoppedError) as error:
            fed = error.fed if isinstance(error, StoppedError) else fed
            seen.closed.wait(1)
            if ready:
                seen.stopped = _stopped(child)
        finally:
            self._look_after(child, seen)
        return seen.run(header, fed)

    def _hand_over(self, header: RunHeader, stream: Stream, task: Task, child: ChildProcess) -> list[Fed]:
        """Send the program its task and the stream, and close its input; returns what was fed."""
        seen, fed = self._seen, list[Fed]()
        try:
            self._ask(replace(task, forms=offered(self._forms, stream)))
            fed = feed(header, stream, self.feed, self._clock, seen.form, partial(self._begun, child))
            if task.preload:
                self.feed(GO)
                self._await_ready(PRELOAD_LIMIT_S)
                self._begun(child)
                self.feed(GO)
            # Here the input is still open: an output that is closed already was closed by the program itself.
            seen.early = seen.over
        except TaskRefusedError as refused:
            seen.fail(f"the engine refuses the task: {refused}")
        except StoppedError as stopped:
            fed = stopped.fed
            seen.stopped = _stopped(child)
        except OSError:
            seen.stopped = _stopped(child)
        finally:
            child.close_input()
        return fed

    def _begun(self, child: ChildProcess) -> int:
        """Start the run: store the CPU time used so far, and return the time (ns)."""
        self._seen.spent = spent(child.pid)
        return self._stamped()

    def _stamped(self) -> int:
        """Store and return the time (ns) at which the run starts."""
        self._seen.started = self._clock()
        return self._seen.started

    def _begin(self) -> ChildProcess:
        """Start a new observation, and the program if it is not running."""
        self._seen = Observation(started=self._clock())
        if self._child is None:
            self._child = ChildProcess(self._command)
            self._reader = threading.Thread(target=self._read, args=(self._child,), name="engine-lines", daemon=True)
            self._reader.start()
        return self._child

    def _read(self, child: ChildProcess) -> None:
        """Timestamp every line of output on arrival, for the current task; kill the engine if it exceeds its limit."""
        assert child.stdout is not None
        # A copy of the descriptor: ``close`` may close the pipe while this thread still reads.
        with os.fdopen(os.dup(child.stdout.fileno()), "rb", buffering=1 << 20) as output:
            # Bounded: a program that writes no line end would fill the memory before the limit is checked.
            for line in iter(partial(output.readline, self._limits.output + 1), b""):
                if not self._seen.take(self._clock(), line, self._limits):
                    child.kill()
                    break
        self._seen.end()

    def _await_output(self, child: ChildProcess, seen: Observation) -> None:
        """Wait for the last line of output; processes that keep it open are killed."""
        assert self._reader is not None
        for _ in range(OPEN_OUTPUT_S):
            self._reader.join(1)
            if not self._reader.is_alive():
                return
            seen.left = max(seen.left, len(child.started()))
            child.kill()
        seen.fail("a process that could not be found kept the engine's output open, so it was abandoned")
        seen.end()

    @staticmethod
    def _bury(child: ChildProcess, seen: Observation) -> None:
        seen.left = child.bury()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._child is not None
        assert self._child.stdin is not None
        return self._child.stdin

    def _await_ready(self, seconds: float) -> None:
        """Wait until the program is ready; kill it if it is not ready in time."""
        assert self._child is not None
        if not self._seen.ready.acquire(timeout=seconds) and self._child.poll() is None:
            self._seen.fail(f"the engine was not ready within {seconds:g} s ({START_LIMIT} allows more)")
            self._child.kill()

    @contextlib.contextmanager
    def _watched(self, child: ChildProcess, seen: Observation) -> Iterator[None]:
        """Kill the program if it exceeds its time, or its output on standard error, during the block."""
        done = threading.Event()
        watchdog = threading.Thread(target=self._watch, args=(child, seen, done), name="engine-limits", daemon=True)
        watchdog.start()
        try:
            yield
        finally:
            done.set()
            watchdog.join()

    def _watch(self, child: ChildProcess, seen: Observation, done: threading.Event) -> None:
        limits, until = self._limits, time.monotonic() + self._limits.seconds
        while not done.wait(min(0.5, max(0.0, until - time.monotonic()))) and child.poll() is None:
            if child.written() > limits.output:
                seen.fail(f"the engine wrote more than {limits.output >> 20} MiB on standard error, so it was ended")
            elif time.monotonic() >= until:
                seen.fail(f"the engine was still running after its time limit of {limits.seconds:g} s, so it was ended")
            else:
                continue
            child.kill()
            return

    def _look_after(self, child: ChildProcess, seen: Observation) -> None:
        """After a run, drop a program that has ended or failed, and note how it ended."""
        if seen.failure is None and not seen.stopped and not seen.over:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            if child.wait(1) != 0:
                seen.fail(seen.stopped or f"the engine ended with {child.how()}; {last_words(child)}")
        self.close()


_CONTRACT: type[SystemUnderTest[Task, str, bytes, Line]] = PipeProgram


def _stopped(child: ChildProcess) -> str:
    """Why a program has stopped reading; waits briefly, because it may be about to end."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1)
    ended = "it is still running" if child.poll() is None else f"it ended with {child.how()}"
    return f"the engine stopped reading its input; {ended}; {last_words(child)}"


def last_words(child: ChildProcess) -> str:
    """The end of a program's standard error, as part of a sentence."""
    text = child.last_words()
    return f"its last words: {text}{advice(text)}" if text else "its standard error is empty"
