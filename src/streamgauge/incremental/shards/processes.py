"""The processes of shards, each with a queue of messages to write and a thread that reads its answers."""

import contextlib
import io
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from streamgauge.formats.pipe import START_LIMIT, START_LIMIT_S, in_words, kernel_kills, start_limit
from streamgauge.incremental.shards.messages import Pieces, Word, read

WAITING: Final = 1 << 26
"""Maximum bytes queued for one shard, which bounds how far it may fall behind."""

END_S: Final = 5.0
"""Seconds for a process to end after its output did."""

Receive: TypeAlias = Callable[[int, Word, bytes], None]
Ended: TypeAlias = Callable[[int, str], None]


class ShardProcess:
    """The process of one shard; ``receive`` is called with its messages, ``ended`` with the way its output ended."""

    def __init__(self, number: int, receive: Receive, ended: Ended) -> None:
        self._number, self._receive, self._ended = number, receive, ended
        self._kills = kernel_kills()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamgauge.incremental.shards.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._queue: deque[Pieces] = deque()
        self._bytes, self._over = 0, False
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=run, name=f"shard-{number}-{name}", daemon=True)
            for name, run in (("input", self._write), ("answers", self._read))
        ]
        for thread in self._threads:
            thread.start()

    def send(self, pieces: Pieces) -> None:
        """Queue a message; blocks while the queue is full. No effect once the process has ended."""
        size = sum(map(len, pieces))
        with self._changed:
            while self._bytes and self._bytes + size > WAITING and not self._over:
                self._changed.wait()
            self._queue.append(pieces)
            self._bytes += size
            self._changed.notify_all()

    def end(self, kill: bool) -> None:
        """Wait for the process to end, or kill it."""
        if kill:
            self.process.kill()
        self.process.wait()
        self._stop()
        for thread in self._threads:
            # ``ended`` may be called by the reading thread itself.
            if thread is not threading.current_thread():
                thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def _stop(self) -> None:
        with self._changed:
            self._over = True
            self._queue.clear()
            self._bytes = 0
            self._changed.notify_all()

    def _write(self) -> None:
        assert self.process.stdin is not None
        out = self.process.stdin
        while True:
            with self._changed:
                while not self._queue and not self._over:
                    self._changed.wait()
                if self._over:
                    return
                # It stays in the queue while it is written, so that its bytes count against the bound.
                pieces = self._queue[0]
            try:
                for piece in pieces:
                    left = memoryview(piece)
                    while len(left):
                        # Unbuffered pipes write what fits; the rest is written in further turns.
                        left = left[out.write(left) or 0 :]
            # The process has ended; ``_read`` sees the end of its output and reports how.
            except OSError:
                self._stop()
                return
            with self._changed:
                if self._queue:
                    self._queue.popleft()
                    self._bytes -= sum(map(len, pieces))
                self._changed.notify_all()

    def _read(self) -> None:
        assert self.process.stdout is not None
        output = io.BufferedReader(self.process.stdout, 1 << 18)  # type: ignore[type-var]
        while (message := read(output)) is not None:
            self._receive(self._number, *message)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        code = self.process.returncode
        how = "ended its output" if code is None else f"ended with {in_words(code, self._kills, kernel_kills())}"
        self._stop()
        self._ended(self._number, how)


def await_ready(ready: threading.Semaphore, processes: int) -> str:
    """Wait until all processes are ready; returns a sentence if one is not in time, else an empty string."""
    limit = start_limit(START_LIMIT_S)
    for _ in range(processes):
        if not ready.acquire(timeout=limit):
            return f"a shard did not get ready within {limit:g} s ({START_LIMIT} allows more)"
    return ""
