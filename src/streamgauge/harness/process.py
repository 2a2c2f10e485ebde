"""Processes that the harness starts: engines on the pipe, servers of this package, programs of clients.

All are one ``ChildProcess``: what a process starts carries its mark, so that it ends with all that it started; what it
writes on standard error goes to a file, whose end is in the sentence of its failure.
"""

import contextlib
import fcntl
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final, Self
from uuid import uuid4

import psutil

from streamgauge.formats.pipe import START_LIMIT, in_words, kernel_kills, start_limit

PIPE: Final = 1 << 18
"""Bytes that the pipes to and from a program hold where the system allows it, so that its ends wait less."""

READY_S: Final = 60.0
"""How long a server, or a program of clients, may take until it is ready; more on a busy machine."""

END_S: Final = 20.0
"""How long a process that is asked to end may take."""

_ROUNDS: Final = 20
_LOOK_S: Final = 0.01
_TAIL: Final = 2000
_HEAD: Final = 1 << 16


class ChildProcess(subprocess.Popen[bytes]):
    """A process that is ended with all that it started, also with what outlives it; its standard error is kept."""

    def __init__(self, command: Sequence[str], *, piped: bool = True, session: bool = False) -> None:
        """``piped``: its standard input and output are pipes of ours, else it reads nothing and writes to our output.

        ``session``: it has a session of its own, so that an interruption of ours is none of its.
        """
        self._kills = kernel_kills()
        self._mark = f"STREAMGAUGE_PROGRAM_{uuid4().hex}"
        self.words = tempfile.TemporaryFile()  # noqa: SIM115 (closed by ``release``)
        stream = subprocess.PIPE if piped else subprocess.DEVNULL
        marked = {**os.environ, self._mark: "1"}
        try:
            super().__init__(
                command,
                stdin=stream,
                stdout=stream if piped else None,
                stderr=self.words,
                bufsize=0,
                env=marked,
                start_new_session=session,
            )
        except BaseException:
            self.words.close()
            raise
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, AttributeError):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)

    def how(self) -> str:
        """The exit code in words, as far as it has one, with the kernel's reason where that can be read."""
        code = self.poll()
        return "no exit code yet" if code is None else in_words(code, self._kills, kernel_kills())

    def last_words(self, limit: int = _TAIL) -> str:
        """The last ``most`` bytes that it wrote on standard error, without white space around them."""
        return "" if self.words.closed else self._said(max(0, self.written() - limit), limit).strip()

    def first_words(self, limit: int = _HEAD) -> str:
        """The first ``most`` bytes that it wrote on standard error."""
        return self._said(0, limit)

    def written(self) -> int:
        """How many bytes it has written on standard error."""
        return os.fstat(self.words.fileno()).st_size

    def _said(self, at: int, limit: int) -> str:
        """Read without moving the file's offset, which the process shares."""
        return os.pread(self.words.fileno(), limit, at).decode(errors="replace")

    def started(self) -> list[psutil.Process]:
        """The processes that it started, directly or not, and that still run."""
        processes = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid != self.pid and self._mark in process.environ():
                    processes.append(process)
        return processes

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

    def await_end(self, seconds: float = END_S) -> int:
        """The exit code, waited for so long (s); then the process is ended with all that it started."""
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def close_input(self) -> None:
        """Nothing more is written to it."""
        if self.stdin is not None:
            with contextlib.suppress(OSError):
                self.stdin.close()

    def release(self) -> None:
        """Close our ends of its pipes and the file of its standard error."""
        for pipe in (self.stdin, self.stdout, self.words):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def __exit__(self, *_: object) -> None:
        """End it with all that it started."""
        self.kill()
        self.wait()
        self.release()


class ServiceError(RuntimeError):
    """A server that did not start; the sentence has the end of what it wrote."""


_START: Final = "from streamgauge.cli.main import main; main()"
_ADDRESS: Final = re.compile(r"^.* at (http://\S+).*\n", re.MULTILINE)


class ServerProcess:
    """``streamgauge WORDS`` on a free port of this machine: its ``pid`` and, once it was waited for, ``address``."""

    def __init__(self, *words: str) -> None:
        self._name = " ".join(words[:2])
        self._process = ChildProcess([sys.executable, "-c", _START, *words, "--port", "0"], piped=False, session=True)
        self.pid = self._process.pid
        self.address = ""

    def wait(self) -> str:
        """The address, once the server serves; ServiceError when it ends before, or does not serve in time."""
        limit = start_limit(READY_S)
        until = time.monotonic() + limit
        while not (match := _ADDRESS.search(self._process.first_words())):
            if self._process.poll() is not None:
                raise self._failed(f"did not start, {self._process.how()}")
            if time.monotonic() > until:
                raise self._failed(f"did not serve within {limit:g} s ({START_LIMIT} allows more)")
            time.sleep(_LOOK_S)
        self.address = match[1].rstrip("/")
        return self.address

    def _failed(self, how: str) -> ServiceError:
        error = ServiceError(f"{self._name} {how}{self.last_words()}")
        self.end()
        return error

    def last_words(self) -> str:
        """The end of what it wrote beside its address, behind a colon; empty when it wrote nothing."""
        message = _ADDRESS.sub("", self._process.last_words() + "\n").strip()
        return f": {message}" if message else ""

    def end(self) -> None:
        """Ask it to end, and end it with all that it started when it does not."""
        self._process.terminate()
        self._process.await_end()
        self._process.release()

    def __enter__(self) -> Self:
        """Itself once it serves; ServiceError."""
        try:
            self.wait()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class ProgramError(RuntimeError):
    """A program that did not start, or failed; the sentence has the end of what it wrote."""


class JsonProgram:
    """A module run as a process: given a task as one line of JSON, it writes lines of JSON until its input ends.

    ``said`` has every line that it wrote, ``receive`` is called with each. A context manager that waits for its end.
    """

    def __init__(
        self, module: str, task: Mapping[str, Any], receive: Callable[[dict[str, Any]], object] = lambda _line: None
    ) -> None:
        self._name, self._receive = module, receive
        self._process = ChildProcess([sys.executable, "-m", module], session=True)
        self.pid = self._process.pid
        self.said: list[dict[str, Any]] = []
        self._unread: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="program-lines", daemon=True)
        self._reader.start()
        self.tell(**task)

    def wait_for(self, word: str, within: float | None = None) -> dict[str, Any]:
        """The next line that has this field; ProgramError when it ends or writes nothing for so long (s).

        Without ``within`` it has READY_S, more on a busy machine.
        """
        within = start_limit(READY_S) if within is None else within
        while True:
            try:
                line = self._unread.get(timeout=within)
            except queue.Empty:
                raise ProgramError(f"{self._name} said no {word} within {within:.0f} s{self._last_words()}") from None
            if line is None:
                raise ProgramError(f"{self._name} ended before it said {word}{self._last_words()}")
            if word in line:
                return line

    def tell(self, **fields: object) -> None:
        """Write a line to it."""
        assert self._process.stdin is not None
        write_all(self._process.stdin, json.dumps(fields).encode() + b"\n")

    def end(self) -> None:
        """End its input, wait until it has ended; ProgramError when it failed."""
        self._process.close_input()
        code = self._process.await_end()
        self._reader.join(END_S)
        message = self._last_words()
        self._process.release()
        if code != 0:
            raise ProgramError(f"{self._name} ended with {self._process.how()}{message}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let it end; an error before this end is raised, not the one that ending brings."""
        try:
            self.end()
        except ProgramError:
            if kind is None:
                raise

    def _read(self) -> None:
        assert self._process.stdout is not None
        with os.fdopen(os.dup(self._process.stdout.fileno()), "rb") as lines:
            for text in lines:
                line = json.loads(text)
                self.said.append(line)
                self._receive(line)
                self._unread.put(line)
        self._unread.put(None)

    def _last_words(self) -> str:
        message = self._process.last_words()
        return f": {message}" if message else ""


def write_all(pipe: IO[bytes], data: bytes) -> None:
    """Write all of it to an unbuffered pipe: a signal may interrupt one write in its middle."""
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) or 0 :]
