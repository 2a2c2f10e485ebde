"""An engine in a process of its own as a session: elements and advances in, answers out, as JSON lines."""

import contextlib
import io
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import IO

from streamgauge.formats.endings import START_LIMIT, advice, in_words, kernel_kills, start_limit
from streamgauge.formats.lines import Late, LineError, decode_output, encode_advance, encode_element
from streamgauge.formats.task import Task, TaskRefusedError, encode_task, word
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement

START_LIMIT_S = 60.0
EXIT_LIMIT_S = 5.0
"""How long a program that has ended its output may take to exit, before that is told without its exit code."""

END_LIMIT_S = 600.0


class PipeError(RuntimeError):
    """A program that broke the contract or ended badly; the sentence says how."""


def start_piped(command: Sequence[str], task: Task, emit: Callable[[Answer], None]) -> "PipedSession":
    """Start a program, give it its task and wait until it is ready.

    PipeError when it does not get ready, TaskRefusedError with its sentence when it does not take the task.
    """
    return PipedSession(command, task, emit)


class PipedSession:
    """A program on the pipe; ``emit`` is called from a thread of its own as answers come, ``received`` left 0.

    ``close`` ends the program's input and waits for its last answers. PipeError tells of a program that fails.
    """

    def __init__(self, command: Sequence[str], task: Task, emit: Callable[[Answer], None]) -> None:
        self._emit, self.late, self._failure, self._refused = emit, 0, "", ""
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, bufsize=0
        )
        self._kills = kernel_kills()
        self._ready = threading.Event()
        self._noticing = threading.Lock()
        self._closing, self._ended = False, ""
        self._tell: Callable[[str], None] | None = None
        self._reader = threading.Thread(target=self._read, name="engine-answers", daemon=True)
        self._reader.start()
        self._write(encode_task(task))
        limit = start_limit(START_LIMIT_S)
        ready = self._ready.wait(limit)
        if self._refused:
            self._end()
            raise TaskRefusedError(self._refused)
        if not ready or self._failure:
            why = self._why()
            self._end()
            raise PipeError(f"the engine {self._unready(limit)}: {why}")

    def push(self, element: StreamElement) -> None:
        """An element has come."""
        self._write(encode_element(element))

    def advance(self, time: int) -> None:
        """Nothing earlier than ``time`` (ms) will come."""
        self._write(encode_advance(time))

    def on_failure(self, tell: Callable[[str], None]) -> None:
        """Have it told when the program ends before its input does: a sentence, at once, from a thread of its own."""
        with self._noticing:
            self._tell = tell
            ended = self._ended
        if ended:
            tell(ended)

    def close(self) -> None:
        """No more input: wait for the last answers."""
        assert self._process.stdin is not None
        self._closing = True
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
        if code is not None:
            self._reader.join()
        why = self._why()
        self._end()
        if code is None:
            raise PipeError(f"the engine was still running {END_LIMIT_S:.0f} s after the end of its input; ended")
        if code != 0 or self._failure:
            raise PipeError(f"the engine ended with {self._how(code)}: {why}")

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except OSError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_LIMIT_S)
            code, why = self._process.returncode, self._why()
            self._end()
            how = "" if code is None else f" and ended with {self._how(code)}"
            raise PipeError(f"the engine stopped reading its input{how}: {why}") from error

    def _read(self) -> None:
        """Hand on every answer as it comes."""
        assert self._process.stdout is not None
        with io.BufferedReader(self._process.stdout) as output:  # type: ignore[type-var]
            for line in output:
                said = word(line)
                if said is None and not self._told(line):
                    break
                if said is not None:
                    self._refused = said.sentence
                    self._ready.set()
        self._ready.set()
        if not self._closing:
            self._notice()

    def _notice(self) -> None:
        """The output has ended while input may still come."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_LIMIT_S)
        code = self._process.returncode
        how = "ended its output" if code is None else f"ended with {self._how(code)}"
        with self._noticing:
            self._ended = f"the engine {how} before its input did: {self._why()}"
            tell = self._tell
        if tell is not None:
            tell(self._ended)

    def _told(self, line: bytes) -> bool:
        try:
            said = decode_output(line)
        except LineError as error:
            self._failure = f"it wrote a line that is no answer: {error}"
            self._process.kill()
            return False
        if isinstance(said, Late):
            self.late = said.count
        else:
            self._emit(said)
        return True

    def _how(self, code: int) -> str:
        return in_words(code, self._kills, kernel_kills())

    def _unready(self, limit: float) -> str:
        """How it did not get ready."""
        if self._failure:
            return "failed before it was ready"
        return f"did not get ready within {limit:g} s ({START_LIMIT} allows more)"

    def _why(self) -> str:
        if self._failure:
            return self._failure
        words = self._words.fileno()
        text = os.pread(words, 2000, max(0, os.fstat(words).st_size - 2000)).decode(errors="replace").strip()
        return f"its last words: {text}{advice(text)}" if text else "it said nothing on standard error"

    def _end(self) -> None:
        """Leave no process and no pipe behind."""
        self._closing = True
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._reader.join(5)
        self._words.close()
