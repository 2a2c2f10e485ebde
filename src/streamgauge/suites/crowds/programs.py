"""Programs of the experiment: told what to do by one JSON line, they say JSON lines until their input ends."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from streamgauge.formats.endings import in_words, kernel_kills, start_limit

READY_S = 60.0
END_S = 20.0


class ProgramError(RuntimeError):
    """A program that did not start, or failed; the sentence has the end of what it said."""


class Program:
    """A module run as a process of its own; ``said`` is everything that it said, line by line."""

    def __init__(self, module: str, task: Mapping[str, Any], words: Sequence[str] = ()) -> None:
        self._name = module
        self._kills = kernel_kills()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.said: list[dict[str, Any]] = []
        self._waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._listen, self._listen_to_errors)
        ]
        for thread in self._threads:
            thread.start()
        self.tell(**task)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def wait_for(self, word: str, within: float | None = None) -> dict[str, Any]:
        """The next line that has this field; ProgramError when it ends or says nothing for so long (s).

        Without ``within`` it has READY_S, more on a busy machine.
        """
        within = start_limit(READY_S) if within is None else within
        while True:
            try:
                line = self._waiting.get(timeout=within)
            except queue.Empty:
                raise ProgramError(f"{self._name} said no {word} within {within:.0f} s{self._last_words()}") from None
            if line is None:
                raise ProgramError(f"{self._name} ended before it said {word}{self._last_words()}")
            if word in line:
                return line

    def tell(self, **fields: object) -> None:
        """Say a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(fields) + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End its input, wait until it has ended; ProgramError when it failed."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        for thread in self._threads:
            thread.join(END_S)
        if code != 0:
            ended = in_words(code, self._kills, kernel_kills())
            raise ProgramError(f"{self._name} ended with {ended}{self._last_words()}")

    def __enter__(self) -> "Program":
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Let it end; what went wrong before is told, not what ending brings."""
        try:
            self.end()
        except ProgramError:
            if kind is None:
                raise

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            self.said.append(line)
            self._waiting.put(line)
        self._waiting.put(None)

    def _listen_to_errors(self) -> None:
        assert self._process.stderr is not None
        for text in self._process.stderr:
            self._errors = [*self._errors[-19:], text]

    def _last_words(self) -> str:
        text = "".join(self._errors).strip()
        return f": {text[-1500:]}" if text else ""


def task() -> dict[str, Any]:
    """What this process is told to do."""
    read: dict[str, Any] = json.loads(sys.stdin.readline())
    return read


def say(**fields: object) -> None:
    """Say a line."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
