"""The JVM of this process's sessions: its start, its words, its end.

PySpark starts the JVM with the standard error of this process. Here the JVM has a pipe in its place; a thread passes on
each line that is not known chatter.
"""

import atexit
import itertools
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import pyspark.sql  # noqa: F401 - the one door into PySpark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from streamgauge.spark.jvm_options import LOG_LEVEL
from streamgauge.spark.names import keep_names
from streamgauge.spark.requirements import SparkStartError

SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
SOCKET_FOLDER: Final = "spark.python.unix.domain.socket.dir"

CHATTER: Final = re.compile(
    r"^WARNING: |^NOTE: Picked up |^Picked up |^Setting default log level |^To adjust logging level |"
    r"^Using Spark's default log4j profile|^SLF4J|^log4j:WARN|StatusLogger|NativeCodeLoader|^\s*\[Stage \d|"
    r"^(\d\d(\d\d)?/\d\d/\d\d )?\d\d:\d\d:\d\d(\.\d+)? (WARN|INFO|DEBUG) |VM warning: Sharing is only supported|"
    r"ShuffleBlockFetcherIterator: Error occurred while fetching local blocks, null$"
)
"""Lines that Spark, its logging and the JVM print in normal operation, or when tasks of a job are cancelled."""

_TRACE: Final = "Traceback (most recent call last):"
_DAEMON: Final = re.compile(r'^  File ".*[/\\]pyspark[/\\]daemon\.py", line |^BrokenPipeError: ')
"""Lines of the trace that a worker prints when its task is cancelled before it has written all its rows."""

_KEPT = 20
_STACK = re.compile(r"^\s*(at |\.\.\. \d+ more)")
_WAIT = 5.0
_END_S = 30.0


_SOCKET_FOLDER_LENGTH: Final = 61
"""Spark's limit, characters: the paths of its sockets have 43 more, and some systems allow 104 in all."""


def socket_settings() -> dict[str, str]:
    """Settings that make a local session pass results and tasks over sockets in a folder that only its user reads.

    Over TCP, Spark listens on a port for each result and serves the first client: where another program happens to try
    that port, the job fails. Without Unix sockets, or with too long a path to temporary files, TCP is used.
    """
    if not hasattr(socket, "AF_UNIX"):
        return {}
    for parent in (tempfile.gettempdir(), "/tmp"):
        if len(parent) + len("/streamgauge-") + 8 <= _SOCKET_FOLDER_LENGTH and os.access(parent, os.W_OK | os.X_OK):
            folder = tempfile.mkdtemp(prefix="streamgauge-", dir=parent)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return {SOCKETS: "true", SOCKET_FOLDER: folder}
    return {}


def open_gateway(conf: SparkConf) -> None:
    """Start the JVM of this process's sessions, unless it runs; SparkStartError with the JVM's own message."""
    # Under spark-submit, which sets the port, the JVM started this process and has its own standard error.
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ or os.environ.get(LOG_LEVEL):
        return
    if "pyspark-shell" not in shlex.split(arguments := os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")):
        raise SparkStartError(f"PYSPARK_SUBMIT_ARGS must end with pyspark-shell, and is {arguments!r}")
    reading, writing = os.pipe()
    relay = Relay()
    thread = threading.Thread(target=relay.read, args=(reading,), daemon=True, name="spark-stderr")
    thread.start()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})
    except PySparkRuntimeError as error:
        os.close(writing)
        # The JVM's reason may still be in the pipe.
        thread.join(_WAIT)
        raise SparkStartError(f"Spark's JVM did not start: {relay.words() or error}") from error
    except BaseException:
        os.close(writing)
        raise
    os.close(writing)
    # From here on lines are passed on: before, they may be the reason of a failed start, which becomes one message.
    relay.release()
    atexit.register(_await_end, gateway.proc, os.getpid(), relay)
    keep_names(gateway)
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _await_end(jvm: "subprocess.Popen[bytes]", owner: int, relay: "Relay") -> None:
    """Wait for the JVM to end before this process does, because a parent treats leftover processes as a fault.

    The JVM ends with its standard input; PySpark does not wait for it. Workers whose tasks end with it write traces
    without further information.
    """
    # A forked worker inherits the handlers of ``atexit``, and must not wait for the JVM of its parent.
    if os.getpid() != owner:
        return
    relay.end()
    context = SparkContext._active_spark_context
    if context is not None and (updates := getattr(context, "_accumulatorServer", None)) is not None:
        updates.handle_error = _expected  # its connection ends with the JVM: EOFError, which it prints with its stack
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway._gateway_client.is_connected = False  # or objects that are freed last are told to a JVM that has gone
    if jvm.stdin is not None:
        jvm.stdin.close()
    try:
        jvm.wait(_END_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def _expected(*_request: object) -> None:
    """A connection that ends because the JVM does is not an error."""


class Relay:
    """Passes a JVM's lines to standard error, without chatter; buffers them until the JVM has started."""

    def __init__(self) -> None:
        self._held: deque[str] | None = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def read(self, reading: int) -> None:
        """Take lines from a pipe until its other end is closed."""
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in without_usage(without_cancelled(lines)):
                if not CHATTER.search(line):
                    self._take(line)

    def _take(self, line: str) -> None:
        with self._lock:
            if self._held is None:
                _write(line)
            else:
                self._held.append(line)

    def release(self) -> None:
        """Write the buffered lines, and from now on each line at once."""
        with self._lock:
            for line in self._held or ():
                _write(line)
            self._held = None

    def end(self) -> None:
        """Discard further lines, but keep reading."""
        with self._lock:
            # Keeps no line, but the pipe is read on: the JVM would wait at a full one.
            self._held = deque(maxlen=0)

    def words(self) -> str:
        """The buffered lines as one line, without Java's stacks."""
        with self._lock:
            lines = [line.strip() for line in self._held or () if line.strip() and not _STACK.match(line)]
        return "; ".join(lines).removeprefix('Exception in thread "main" org.apache.spark.SparkException: ')


def without_usage(lines: Iterable[str]) -> Iterator[str]:
    """The lines before spark-submit's list of its options, which it prints after its error and which fills pages."""
    rest = iter(lines)
    yield from itertools.takewhile(lambda line: not line.startswith("Usage: spark-submit "), rest)
    # The pipe is read to its end: the JVM would wait at a full one.
    deque(rest, maxlen=0)


def without_cancelled(lines: Iterable[str]) -> Iterator[str]:
    """The lines without the traces of workers whose tasks were cancelled, also where such traces are interleaved."""
    trace: list[str] = []
    cancelled = 0
    for line in lines:
        if line.startswith(_TRACE) or (trace and _DAEMON.match(line)):
            trace.append(line)
            if line.startswith("BrokenPipeError"):
                # Several workers write at once: each further trace that has begun still has lines of its own to come.
                cancelled += sum(held.startswith(_TRACE) for held in trace) - 1
                trace.clear()
        elif cancelled and _DAEMON.match(line):
            cancelled -= line.startswith("BrokenPipeError")
        else:
            yield from trace
            trace.clear()
            yield line
    yield from trace


def _write(line: str) -> None:
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):  # closed: nobody reads any more
        return
