"""Programs on the pipe under test: given tasks, fed at a pace, every line stamped, every failure a sentence.

``record`` does one run with a program of its own and samples its resources; ``PipeProgram`` does one task after another
with the same program, started again when it has ended.
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
PRELOAD_LIMIT_S: Final = 600.0

Line = tuple[int, bytes]
"""A line of a program and when it came, monotonic ns."""


def program(name: str) -> list[str]:
    """The command that runs an engine on the pipe: its own, else a Python process that hosts it."""
    own = command_of(load(name))
    return [sys.executable, "-m", "streamgauge.harness.host", name] if own is None else list(own)


def task_of(header: RunHeader, dialect: str | None = None) -> Task:
    """The task of a run, its query printed in the dialect that the engine reads; ValueError when that cannot say it.

    A text whose IRIs are relative to no BASE is printed too: engines would take them each in its own way.
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
    """Run the engine on the stream and return the run; a crash, hang, flood or refusal is in ``failure``.

    ``watch`` is given, before the run begins, what other threads may look at while it goes on.
    """
    before = reaped()
    with PipeProgram(command, limits, clock) as system:
        run = system.run_alone(header, stream, task_of(header) if task is None else task, watch)
    cpu = max(0.0, reaped() - before - (run.header.cpu or 0.0))
    return replace(run, header=replace(run.header, cpu=cpu))


def feed(
    header: RunHeader, stream: Stream, write: Write, clock: Clock, form: LineForm | BatchForm, start: Callable[[], int]
) -> list[Fed]:
    """Hand the stream over at the run's pace, as fast as it is taken when it has none or the input is preloaded.

    ``start`` is called when the first element can be handed over, and says when that was (ns).
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
    """The state of one task as the threads see it; failures are sentences, the first one counts.

    ``ready`` counts how often the program said so, ``form`` is the one in which it takes elements, ``closed`` is
    set when it said so or its output is ``over``; ``early`` says that its output was over before its input,
    ``stopped`` that it took no more input (a sentence: a failure unless its exit code or an answer that is none
    says more), ``left`` counts the processes that it left running; ``spent`` is what its process tree had used (CPU
    s) when the feed began, at ``started`` (ns).
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
        """Keep the sentence if it is the first, as text that a file can hold."""
        self.failure = self.failure or sentence.encode(errors="backslashreplace").decode()

    def take(self, received: int, line: bytes, limits: RunLimits) -> bool:
        """Take in one line; whether the program may go on, which a flood may not."""
        message = word(line)
        if message is None:
            self.lines.append((received, line))
        elif message.said == "closed":
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
        """No line comes any more: no thread waits any longer."""
        self.over = True
        self.ready.release(2)
        self.closed.set()

    def answers(self) -> tuple[tuple[Answer, ...], int]:
        """The answers, and how many elements the engine said came too late to count."""
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
        """The run, with the failure of a program that ended well if no other was found before."""
        answers, late = self.answers()
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
"""Given the observation of a run and its samples, both of which grow while the run goes on."""


HELD_S: Final = 20
"""Seconds after the end of a program for which its output may stay open."""


class PipeProgram:
    """A program on the pipe as a system under test; a context manager that leaves no process behind.

    Elements go over in the form that the program asks for of ``forms``, as lines where the stream is known to be
    short; answers are lines as they come, decoded when the run is over.
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
        """The program's, while it runs."""
        return () if self._child is None else (self._child.pid,)

    def start(self, task: Task) -> None:
        """Give the program its task and wait until it is ready; one that never is ends. TaskRefusedError, OSError."""
        self._ask(replace(task, forms=self._forms))

    def _ask(self, task: Task) -> None:
        self.feed(encode_task(task))
        self._await_ready(start_limit(START_LIMIT_S))
        if self._seen.refused:
            raise TaskRefusedError(self._seen.refused)

    def subscribe(self, query: str, receive: Callable[[Line], None]) -> None:  # noqa: ARG002 (a task has one query)
        """Call ``receive`` for each line of the task's query once the task is settled; it was stamped as it came."""
        self._receive = receive

    def unsubscribe(self, query: str) -> None:  # noqa: ARG002
        """Drop the lines of the task's query."""
        self._receive = None

    def feed(self, element: bytes) -> None:
        """Write input; OSError when the program reads no more."""
        write_all(self._stdin, element)

    def advance(self, time: int) -> None:
        """Tell the program how far time has come, ms."""
        form = self._seen.form
        self.feed(form.encoded([form.advance(time)]))  # type: ignore[list-item]

    def settle(self) -> None:
        """End the task and wait until all its answers are out, or the program has ended."""
        self.feed(CLOSE)
        self._seen.closed.wait(self._limits.seconds + 1)
        if self._receive is not None:
            for line in self._seen.lines:
                self._receive(line)

    def close(self) -> None:
        """End the program with all that it started, and release its pipes."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        if self._reader is not None:
            self._reader.join(5)
        child.release()

    def run_alone(self, header: RunHeader, stream: Stream, task: Task, watch: Watch | None = None) -> Run:
        """One run of a program of its own, which ends with its input; sampled while it goes on."""
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
        """One run of many; a crash, hang or flood is in its ``failure``, TaskRefusedError has the program's sentence.

        It has no samples of resources, as one process does all runs. A run's preload option is not heeded.
        """
        again = self._child is not None
        run = self._record(header, stream, task)
        if again and run.header.failure is None and not run.fed:
            run = self._record(header, stream, task)
        if run.header.failure is None and not run.fed:
            return replace(run, header=replace(run.header, failure="the engine ended before it was ready"))
        return run

    def _record(self, header: RunHeader, stream: Stream, task: Task) -> Run:
        """One run; nothing fed and no failure when the program has ended, as it may, after the task before."""
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
        """Give the program its task and, when it is ready, the stream, then end its input: what was fed."""
        seen, fed = self._seen, list[Fed]()
        try:
            self._ask(replace(task, forms=offered(self._forms, stream)))
            fed = feed(header, stream, self.feed, self._clock, seen.form, partial(self._begun, child))
            if task.preload:
                self.feed(GO)
                self._await_ready(PRELOAD_LIMIT_S)
                self._begun(child)
                self.feed(GO)
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
        """The run begins: when that was (ns); a look at the whole process tree goes before."""
        self._seen.spent = spent(child.pid)
        return self._stamped()

    def _stamped(self) -> int:
        """The run begins: when that was (ns)."""
        self._seen.started = self._clock()
        return self._seen.started

    def _begin(self) -> ChildProcess:
        """A new observation of the program, which is started when it does not run."""
        self._seen = Observation(started=self._clock())
        if self._child is None:
            self._child = ChildProcess(self._command)
            self._reader = threading.Thread(target=self._read, args=(self._child,), name="engine-lines", daemon=True)
            self._reader.start()
        return self._child

    def _read(self, child: ChildProcess) -> None:
        """Stamp every line of the engine as it comes, for the task that goes on then; a flood ends the engine."""
        assert child.stdout is not None
        with os.fdopen(os.dup(child.stdout.fileno()), "rb", buffering=1 << 20) as output:
            for line in iter(partial(output.readline, self._limits.output + 1), b""):
                if not self._seen.take(self._clock(), line, self._limits):
                    child.kill()
                    break
        self._seen.end()

    def _await_output(self, child: ChildProcess, seen: Observation) -> None:
        """Wait for the last line; a process that the program left, and that is found late, is ended."""
        assert self._reader is not None
        for _ in range(HELD_S):
            self._reader.join(1)
            if not self._reader.is_alive():
                return
            seen.left = max(seen.left, len(child.started()))
            child.kill()
        seen.fail("the engine's output was held open by a process that was not found, so it was left")
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
        """Wait until the program is ready; one that does not say so is ended."""
        assert self._child is not None
        if not self._seen.ready.acquire(timeout=seconds) and self._child.poll() is None:
            self._seen.fail(f"the engine did not say that it is ready within {seconds:g} s ({START_LIMIT} allows more)")
            self._child.kill()

    @contextlib.contextmanager
    def _watched(self, child: ChildProcess, seen: Observation) -> Iterator[None]:
        """End a program that takes longer, or writes more on standard error, than its limits."""
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
        """Forget a program that has ended, and how if it was badly; end one that failed."""
        if seen.failure is None and not seen.stopped and not seen.over:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            if child.wait(1) != 0:
                seen.fail(seen.stopped or f"the engine ended with {child.how()}; {last_words(child)}")
        self.close()


_CONTRACT: type[SystemUnderTest[Task, str, bytes, Line]] = PipeProgram


def _stopped(child: ChildProcess) -> str:
    """Why a program reads no more: it may be about to end."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1)
    ended = "it is still running" if child.poll() is None else f"it ended with {child.how()}"
    return f"the engine stopped reading its input; {ended}; {last_words(child)}"


def last_words(child: ChildProcess) -> str:
    """The end of what a program wrote on standard error, for a sentence."""
    text = child.last_words()
    return f"its last words: {text}{advice(text)}" if text else "it said nothing on standard error"
