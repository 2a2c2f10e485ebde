"""Processes that the harness starts: engines on the pipe, servers of this package, client programs.

All are a ``ChildProcess``: it marks its environment, which its descendants inherit, so that they can be found and ended
with it even if they detach from it; its standard error goes to a file, whose end is quoted in errors.
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
"""Size in bytes of the pipes to and from a program, if the system allows it: fewer waits on both ends."""

READY_S: Final = 60.0
"""Time for a server or client program to become ready; ``start_limit`` allows more on a busy machine."""

END_S: Final = 20.0
"""Time for a process to end after it was asked to."""

_KILL_ROUNDS: Final = 20
_LOOK_S: Final = 0.01
_TAIL: Final = 2000
_HEAD: Final = 1 << 16


class ChildProcess(subprocess.Popen[bytes]):
    """A process that is ended together with its descendants, even those that outlive it; its standard error is kept."""

    def __init__(self, command: Sequence[str], *, piped: bool = True, session: bool = False) -> None:
        """Start the command. With ``piped`` its standard input and output are pipes, else it writes to our output.

        With ``session`` it has its own session, so that Ctrl-C does not reach it.
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
                    # Linux only, and limited for users by /proc/sys/fs/pipe-max-size.
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)

    def how(self) -> str:
        """The exit code in words, with the kernel's reason (out of memory) if that can be read."""
        code = self.poll()
        return "no exit code yet" if code is None else in_words(code, self._kills, kernel_kills())

    def last_words(self, limit: int = _TAIL) -> str:
        """The last ``limit`` bytes of its standard error, stripped."""
        return "" if self.words.closed else self._read_errors(max(0, self.written() - limit), limit).strip()

    def first_words(self, limit: int = _HEAD) -> str:
        """The first ``limit`` bytes of its standard error."""
        return self._read_errors(0, limit)

    def written(self) -> int:
        """The size of its standard error in bytes."""
        return os.fstat(self.words.fileno()).st_size

    def _read_errors(self, at: int, limit: int) -> str:
        """Read without moving the file's offset, which the process shares."""
        return os.pread(self.words.fileno(), limit, at).decode(errors="replace")

    def started(self) -> list[psutil.Process]:
        """Its running descendants, found by the mark in their environment."""
        processes = []
        # By the mark and not by their parents: a program that has detached has another parent.
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid != self.pid and self._mark in process.environ():
                    processes.append(process)
        return processes

    def kill(self) -> None:
        """Kill it and its descendants, repeatedly, since these may start others meanwhile."""
        # First itself, so that it starts no further processes.
        super().kill()
        for _ in range(_KILL_ROUNDS):
            if not (left := self.started()):
                break
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def bury(self) -> int:
        """Wait for its end; returns the number of descendants that still run a second later, which are killed."""
        self.wait()
        until = time.monotonic() + 1
        while left := len(self.started()):
            if time.monotonic() > until:
                self.kill()
                break
            time.sleep(0.05)
        return left

    def await_end(self, seconds: float = END_S) -> int:
        """The exit code; after ``seconds`` the process is killed with its descendants."""
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def close_input(self) -> None:
        """Close its standard input."""
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
        """Kill it with its descendants, and close its pipes."""
        self.kill()
        self.wait()
        self.release()


class ServiceError(RuntimeError):
    """A server that did not start; the sentence quotes the end of its standard error."""


_START: Final = "from streamgauge.cli.main import main; main()"
# With the end of the line: the file may end within a line that is being written, and so within the port.
_ADDRESS: Final = re.compile(r"^.* at (http://\S+).*\n", re.MULTILINE)


class ServerProcess:
    """``streamgauge WORDS`` on a free port: its ``pid`` and, after ``wait``, its ``address``."""

    def __init__(self, *words: str) -> None:
        self._name = " ".join(words[:2])
        self._process = ChildProcess([sys.executable, "-c", _START, *words, "--port", "0"], piped=False, session=True)
        self.pid = self._process.pid
        self.address = ""

    def wait(self) -> str:
        """Wait until the server serves, and return its address; ServiceError if it ends or takes too long."""
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
        """The end of its standard error without its address, after a colon; empty if there is nothing else."""
        message = _ADDRESS.sub("", self._process.last_words() + "\n").strip()
        return f": {message}" if message else ""

    def end(self) -> None:
        """Ask it to end, and kill it with its descendants if it does not."""
        self._process.terminate()
        self._process.await_end()
        self._process.release()

    def __enter__(self) -> Self:
        """Wait until it serves; ServiceError."""
        try:
            self.wait()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class ProgramError(RuntimeError):
    """A program that did not start, or failed; the sentence quotes the end of its standard error."""


class JsonProgram:
    """A module run as a process: it reads a task as one line of JSON, and writes lines of JSON until its input ends.

    ``lines`` has every line that it wrote, and ``receive`` is called with each. A context manager that waits for its
    end.
    """

    def __init__(
        self, module: str, task: Mapping[str, Any], receive: Callable[[dict[str, Any]], object] = lambda _line: None
    ) -> None:
        self._name, self._receive = module, receive
        self._process = ChildProcess([sys.executable, "-m", module], session=True)
        self.pid = self._process.pid
        self.lines: list[dict[str, Any]] = []
        self._unread: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="program-lines", daemon=True)
        self._reader.start()
        self.tell(**task)

    def wait_for(self, word: str, within: float | None = None) -> dict[str, Any]:
        """The next line with the field ``word``; ProgramError if the program ends, or is silent for ``within`` seconds.

        The default is READY_S, more on a busy machine.
        """
        within = start_limit(READY_S) if within is None else within
        while True:
            try:
                line = self._unread.get(timeout=within)
            except queue.Empty:
                raise ProgramError(
                    f"{self._name} did not report {word} within {within:.0f} s{self._last_words()}"
                ) from None
            if line is None:
                raise ProgramError(f"{self._name} ended before it reported {word}{self._last_words()}")
            if word in line:
                return line

    def tell(self, **fields: object) -> None:
        """Send the program a line of JSON with these fields."""
        assert self._process.stdin is not None
        write_all(self._process.stdin, json.dumps(fields).encode() + b"\n")

    def end(self) -> None:
        """Close its input and wait for its end; ProgramError if it failed."""
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
        """Wait for its end; an error of the block takes precedence over one of the program."""
        try:
            self.end()
        except ProgramError:
            if kind is None:
                raise

    def _read(self) -> None:
        assert self._process.stdout is not None
        # A copy of the descriptor: ``release`` may close the pipe while this thread still reads.
        with os.fdopen(os.dup(self._process.stdout.fileno()), "rb") as lines:
            for text in lines:
                line = json.loads(text)
                self.lines.append(line)
                self._receive(line)
                self._unread.put(line)
        # Wakes a waiting ``wait_for`` when the program has ended.
        self._unread.put(None)

    def _last_words(self) -> str:
        message = self._process.last_words()
        return f": {message}" if message else ""


def write_all(pipe: IO[bytes], data: bytes) -> None:
    """Write all bytes to an unbuffered pipe, whose ``write`` may be cut short by a signal."""
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) or 0 :]
