"""What is observed of a program on the pipe: its lines stamped as they come, its failure as a sentence."""

import contextlib
import fcntl
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO
from uuid import uuid4

import psutil

from streamgauge.formats.endings import advice, in_words, kernel_kills
from streamgauge.formats.lines import Late, LineError, decode_output
from streamgauge.formats.task import word
from streamgauge.model.answer import Answer
from streamgauge.model.run import Sample

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on an engine: wall time of the whole run (s) and what it may write (bytes)."""

    seconds: float = 600.0
    output: int = 1 << 30


@dataclass
class Observed:
    """What the threads see; failures are sentences, the first one counts.

    ``ready`` counts how often the program said so, ``closed`` is set when it said so or its output is ``over``;
    ``early`` says that its output was over before its input, ``stopped`` that it took no more input (a sentence: a
    failure unless its exit code or an answer that is none says more), ``left`` counts the processes that it left
    running; ``spent`` is what its process tree had used (CPU s) when the feed began.
    """

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
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

    def fail(self, sentence: str) -> None:
        """Keep the sentence if it is the first, as text that a file can hold."""
        self.failure = self.failure or sentence.encode(errors="backslashreplace").decode()

    def hear(self, received: int, line: bytes, limits: Limits) -> bool:
        """Take in one line; whether the program may go on, which a flood may not."""
        said = word(line)
        if said is None:
            self.lines.append((received, line))
        elif said.said == "closed":
            self.closed.set()
        else:
            self.refused = said.sentence
            self.ready.release()
        self.written += len(line)
        if self.written > limits.output:
            self.fail(f"the engine wrote more than {limits.output >> 20} MiB of answers: a flood, so it was ended")
            return False
        return True

    def end(self) -> None:
        """Nothing more will be heard: nobody waits any longer."""
        self.over = True
        self.ready.release(2)
        self.closed.set()

    def answers(self) -> tuple[tuple[Answer, ...], int]:
        """The answers, and how many elements the engine said came too late to count."""
        answers: list[Answer] = []
        late = 0
        for number, (received, line) in enumerate(self.lines, 1):
            try:
                said = decode_output(line)
            except LineError as error:
                self.fail(f"line {number} of the engine's output is not an answer: {error}")
                break
            if isinstance(said, Late):
                late = said.count
            else:
                answers.append(replace(said, received=received))
        return tuple(answers), late


class Program(subprocess.Popen[bytes]):
    """A program with its standard streams piped, which can be ended with all that it started.

    Whatever it starts, also what outlives it, carries its mark: the name of a variable of the environment.
    """

    def __init__(self, command: Sequence[str], words: IO[bytes]) -> None:
        """What it says on standard error goes to ``words``."""
        self._kills = kernel_kills()
        self._mark = f"STREAMGAUGE_PROGRAM_{uuid4().hex}"
        marked = {**os.environ, self._mark: "1"}
        super().__init__(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, bufsize=0, env=marked)

    def how(self) -> str:
        """Its exit code in words, as far as it has one, with the kernel's reason where that can be read."""
        code = self.poll()
        return "no exit code yet" if code is None else in_words(code, self._kills, kernel_kills())

    def started(self) -> list[psutil.Process]:
        """What it has started, directly or not, and still runs."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid != self.pid and self._mark in process.environ():
                    found.append(process)
        return found

    def kill(self) -> None:
        """End it and all that it started, also what it starts meanwhile."""
        super().kill()
        for _ in range(_ROUNDS):
            if not (left := self.started()):
                break
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def bury(self) -> int:
        """Wait until it has ended; how many processes it left running, which have a second to go and are ended."""
        self.wait()
        until = time.monotonic() + 1
        while left := len(self.started()):
            if time.monotonic() > until:
                self.kill()
                break
            time.sleep(0.05)
        return left


_ROUNDS = 20


PIPE = 1 << 18
"""Bytes that the pipes to and from a program hold where the system allows it, so that its ends wait less."""


def start(command: Sequence[str], words: IO[bytes]) -> Program:
    """A program on the pipe."""
    program = Program(command, words)
    for pipe in (program.stdin, program.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
    return program


def read(process: "subprocess.Popen[bytes]", seen: Callable[[], Observed], limits: Limits, clock: Clock) -> None:
    """Stamp every line of the engine as it comes, for whatever is observed then; a flood ends the engine."""
    assert process.stdout is not None
    with os.fdopen(os.dup(process.stdout.fileno()), "rb", buffering=1 << 20) as output:
        for line in iter(partial(output.readline, limits.output + 1), b""):
            if not seen().hear(clock(), line, limits):
                process.kill()
                break
    seen().end()


def last_words(words: IO[bytes]) -> str:
    """The end of what a program said on standard error, for a sentence."""
    words.seek(0, os.SEEK_END)
    words.seek(max(0, words.tell() - 2000))
    text = words.read().decode(errors="replace").strip()
    return f"its last words: {text}{advice(text)}" if text else "it said nothing on standard error"


def how_it_ended(process: Program) -> str:
    """Its exit code, as far as it has one."""
    return "it is still running" if process.poll() is None else f"it ended with {process.how()}"
