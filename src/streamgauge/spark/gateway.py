"""The JVM of a Spark session, started so that its standard error reaches users without Spark's own chatter.

PySpark starts the JVM with the standard error of this process. Here the JVM has a pipe in its place; a thread passes on
each line that is not known chatter.
"""

import atexit
import os
import re
import subprocess
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from streamgauge.spark.requirements import SparkStartError

if TYPE_CHECKING:
    from pyspark import SparkConf

LOG_LEVEL: Final = "STREAMGAUGE_SPARK_LOG"
"""The variable that names a level of Spark's log (info, warn, ...): all that Spark says is shown then."""

CHATTER: Final = re.compile(
    r"^WARNING: |^NOTE: Picked up |^Picked up |^Setting default log level |^To adjust logging level |"
    r"^Using Spark's default log4j profile|^SLF4J|^log4j:WARN|StatusLogger|NativeCodeLoader|^\s*\[Stage \d|"
    r"^(\d\d(\d\d)?/\d\d/\d\d )?\d\d:\d\d:\d\d(\.\d+)? (WARN|INFO|DEBUG) |VM warning: Sharing is only supported"
)
"""Lines that Spark, its logging and the JVM write when nothing is wrong."""

_KEPT = 20
_STACK = re.compile(r"^\s*(at |\.\.\. \d+ more)")
_WAIT = 5.0
_END_S = 30.0


def open_gateway(conf: "SparkConf") -> None:
    """Start the JVM that this process's sessions use, unless there is one; SparkStartError with the JVM's own words."""
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ or os.environ.get(LOG_LEVEL):
        return
    reading, writing = os.pipe()
    relay = Relay()
    thread = threading.Thread(target=relay.read, args=(reading,), daemon=True, name="spark-stderr")
    thread.start()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})
    except PySparkRuntimeError as error:
        os.close(writing)
        thread.join(_WAIT)
        raise SparkStartError(f"Spark's JVM did not start: {relay.words() or error}") from error
    except BaseException:
        os.close(writing)
        raise
    os.close(writing)
    relay.release()
    atexit.register(_await_end, gateway.proc, os.getpid())
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _await_end(jvm: "subprocess.Popen[bytes]", owner: int) -> None:
    """Let the JVM end before this process does: who started this process takes what is left over for a fault.

    The JVM ends when its standard input does; PySpark does not wait until the JVM has.
    """
    if os.getpid() != owner:
        return
    if jvm.stdin is not None:
        jvm.stdin.close()
    try:
        jvm.wait(_END_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


class Relay:
    """Lines of a JVM on their way to standard error, without chatter; held until the JVM is known to run."""

    def __init__(self) -> None:
        self._held: deque[str] | None = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def read(self, reading: int) -> None:
        """Take lines from a pipe until its other end is closed."""
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not CHATTER.search(line):
                    self._take(line)

    def _take(self, line: str) -> None:
        with self._lock:
            if self._held is None:
                _write(line)
            else:
                self._held.append(line)

    def release(self) -> None:
        """Write what is held, and from now on each line as it comes."""
        with self._lock:
            for line in self._held or ():
                _write(line)
            self._held = None

    def words(self) -> str:
        """The lines that are held back, as one, without Java's stacks."""
        with self._lock:
            lines = [line.strip() for line in self._held or () if line.strip() and not _STACK.match(line)]
        return "; ".join(lines).removeprefix('Exception in thread "main" org.apache.spark.SparkException: ')


def _write(line: str) -> None:
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):  # closed: nobody reads any more
        return
