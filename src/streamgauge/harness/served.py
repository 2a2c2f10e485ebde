"""Our services as processes of their own: ``streamgauge WORDS``, until they are left."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Final

from streamgauge.formats.endings import START_LIMIT, in_words, kernel_kills, start_limit

_START: Final = "from streamgauge.cli.main import main; main()"
_ADDRESS: Final = re.compile(r" at (http://\S+)")
_START_S: Final = 60.0
_LEAVE_S: Final = 5.0
_END_S: Final = 20.0
_LAST_LINES: Final = 20


class ServiceError(RuntimeError):
    """A service that did not start; the sentence has the end of what it said."""


class Service:
    """A service on a free port of this machine, begun: its ``pid`` and, once it was waited for, its ``address``."""

    def __init__(self, *words: str) -> None:
        self._name = " ".join(words[:2])
        self._kills = kernel_kills()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *words, "--port", "0"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self.pid = self._process.pid
        self.address = ""
        self._found = threading.Event()
        threading.Thread(target=self._listen, name="service-words", daemon=True).start()

    def wait(self) -> str:
        """Its address, once it serves; ServiceError when it ends before."""
        limit = start_limit(_START_S)
        if not self._found.wait(limit):
            self.end()
            raise ServiceError(
                f"{self._name} did not serve within {limit:g} s ({START_LIMIT} allows more){self.last_words()}"
            )
        if not self.address:
            raise ServiceError(f"{self._name} did not start{self._how()}{self.last_words()}")
        return self.address

    def _how(self) -> str:
        """Its exit code in words, once it has ended."""
        with suppress(subprocess.TimeoutExpired):
            return f", {in_words(self._process.wait(_LEAVE_S), self._kills, kernel_kills())}"
        return ""

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as words:
            for line in words:
                if not self.address and (at := _ADDRESS.search(line)):
                    self.address = at[1].rstrip("/")
                    self._found.set()
                else:
                    self._said.append(line)
        self._found.set()

    def last_words(self) -> str:
        """The end of what it said, behind a colon; empty when it said nothing."""
        said = "".join(self._said).strip()
        return f": {said[-1500:]}" if said else ""

    def end(self) -> None:
        """Ask it to end, and end it with all that it started when it does not."""
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
