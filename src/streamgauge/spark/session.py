"""The one place that makes a Spark session: local by default, a cluster by ``master`` or ``SPARK_REMOTE``.

PySpark starts the JVM with the standard error of this process. Here the JVM has a pipe in its place; a thread passes on
each line that is not known chatter.

The workers of a cluster are asked before the first job: do they take tasks, and does their Python have Streamgauge? A
job whose workers lack a package may be tried again and again, and one without workers waits for ever; a small task with
a time limit tells both at once.
"""

import atexit
import os
import re
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from streamgauge.outgoing.sockets import check_reachable
from streamgauge.spark import class_archive
from streamgauge.spark.contexts import running_context
from streamgauge.spark.interrupts import guard
from streamgauge.spark.names import keep_names
from streamgauge.spark.requirements import (
    HEAP,
    JavaMissingError,
    SparkStartError,
    connect_address,
    connect_lack,
    heap,
    java,
    java_lack,
    words,
)
from streamgauge.spark.requirements import memory as memory_here
from streamgauge.spark.settings import MIN_PARTITIONS, OURS, PARTITIONS, chosen, fit, of_user

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LIMIT: Final = "STREAMGAUGE_WORKERS_LIMIT_S"
"""The variable that sets how long workers may take to do their first task, seconds."""

SECONDS: Final = 90.0
_TAG: Final = "streamgauge-workers"
_ABSENT = re.compile(r"No module named '([\w.]+)'")
_TASK = re.compile(r"^.* failed \d+ times, most recent failure: Lost task .*? executor [^)]*\): ")
"""Where a job names its task and executor, before it says what went wrong."""

_MAX_TASKS = 64
"""Tasks at most: one for each core that the cluster offers, up to so many."""

T = TypeVar("T")


def ask(spark: "SparkSession", place: str, seconds: float | None = None) -> None:
    """Have the workers import Streamgauge; SparkStartError says what they lack, or that none took a task in time."""
    limit = seconds or float(os.environ.get(LIMIT, SECONDS))
    tasks = max(1, min(_MAX_TASKS, cores(spark)))
    probe = fn.arrow_udf(_asked(), "string")
    table = spark.range(0, tasks, 1, tasks).select(probe(fn.col("id")).alias("said"))
    try:
        replies = {row.said for row in _in_time(spark, table.collect, limit)}
    except TimeoutError as error:
        raise SparkStartError(
            f"no worker of {place} has done a task within {limit:g} s: are there workers, with memory and cores that "
            f"nobody else has taken? {LIMIT} allows more time"
        ) from error
    except Exception as error:  # a job fails with errors of Spark, of Py4J and of the remote protocol
        raise SparkStartError(reason(place, f"{words(error)}\n{error}")) from error
    here = installed("streamgauge")
    other = sorted(reply for reply in replies if reply != f"Streamgauge {here}")
    if other:
        raise SparkStartError(
            f"the workers of {place} have {other[0]}, here is Streamgauge {here}: install the same version "
            "there, or name a Python that has it by PYSPARK_PYTHON"
        )


def cores(spark: "SparkSession") -> int:
    """How many tasks the session's cluster runs at once; 2 where a remote session does not say."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return 2


def _asked() -> "Callable[[pa.Array], pa.Array]":
    """A function that workers get as it is, not by the name of a module that they may lack."""

    def version(numbers: "pa.Array") -> "pa.Array":
        import importlib
        import sys

        import pyarrow as pa

        try:
            text = f"Streamgauge {importlib.import_module('streamgauge').__version__}"
        except ImportError:
            text = f"no Streamgauge (Python {sys.version.split()[0]}, {sys.executable})"
        return pa.array([text] * len(numbers))

    version.__annotations__ = {}
    return version


def reason(place: str, message: str) -> str:
    """The sentence for a task that failed, of what the job says: its first line, then all."""
    absent = _ABSENT.search(message)
    if absent:
        return (
            f"the Python of the workers of {place} has no {absent[1]}: install Streamgauge there, or name a Python "
            "that has it by PYSPARK_PYTHON"
        )
    first = _TASK.sub("", message.strip().splitlines()[0])
    hint = ": name their Python by PYSPARK_PYTHON" if "Cannot run program" in first else ""
    return f"the workers of {place} cannot do a task: {first}{hint}"


def _in_time(spark: "SparkSession", job: Callable[[], T], seconds: float) -> T:
    """The job's result; TimeoutError when it takes longer, and the job is ended."""
    results: list[T] = []
    failed: list[Exception] = []

    def work() -> None:
        spark.addTag(_TAG)
        try:
            results.append(job())
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True, name=_TAG)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        spark.interruptTag(_TAG)
        raise TimeoutError(f"not done within {seconds:g} s")
    if failed:
        raise failed[0]
    return results[0]


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
    atexit.register(_await_end, gateway.proc, os.getpid(), relay)
    keep_names(gateway)
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _await_end(jvm: "subprocess.Popen[bytes]", owner: int, relay: "Relay") -> None:
    """Let the JVM end before this process does: who started this process takes what is left over for a fault.

    The JVM ends when its standard input does; PySpark does not wait until the JVM has. Workers whose tasks end with it
    write traces that say no more than that.
    """
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
    """A connection that ends because the JVM does is no error."""


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

    def end(self) -> None:
        """Write nothing any more."""
        with self._lock:
            self._held = deque(maxlen=0)

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


JOB_ERRORS = (PySparkException, Py4JJavaError)
"""A failed job raises Spark's error, or the JVM's own where a broadcast failed, which wraps the cause."""

_JVM: Final = "-XX:+UseParallelGC -XX:MetaspaceSize=256m"
"""Room for classes that began small would grow by collections of the whole heap."""

_LATE: Final = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=12000"
    " -XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=800000"
)
"""A session lives for seconds or minutes, in the first of which the second compiler takes much of the CPU: it
compiles what ran twenty times as often as is usual, as loops over rows soon have."""

_STARTING = threading.Lock()
_LOG = Path(__file__).with_name("log4j2.properties")
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""A local session listens to nobody else; on a cluster the executors must reach the driver."""


def session(
    master: str | None = None,
    *,
    memory: str = HEAP,
    shuffle: int | None = None,
    app: str = "streamgauge",
    also: Mapping[str, str] | None = None,
) -> SparkSession:
    """The Spark session: ``master`` (default ``local[*]``), or Spark Connect (``sc://``, ``SPARK_REMOTE``).

    Settings of the user (``settings.of_user``) go before ours, ``SPARK_DRIVER_MEMORY`` before ``memory``. ``shuffle``
    is the number of its partitions; unless given there is one for each core of a cluster, and ``settings.fit`` sets it
    for a job. ``also`` are further settings, of which a session that is there already does not take those of its JVM.
    SparkStartError (JavaMissingError) has the sentence to print when Java or memory will not do, the master is not
    there, or its workers cannot do a task. Threads wait for one another.
    """
    with _STARTING:
        return _session(master, memory, shuffle, app, also or {})


def _session(master: str | None, memory: str, shuffle: int | None, app: str, also: Mapping[str, str]) -> SparkSession:
    remote = connect_address(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    place = master or os.environ.get("MASTER", "local[*]")
    user = of_user()
    wanted = {"spark.driver.defaultJavaOptions": _LATE, **OURS, PARTITIONS: str(shuffle or MIN_PARTITIONS)}
    builder = SparkSession.builder.appName(app)
    if remote:
        if lack := connect_lack():
            raise SparkStartError(lack)
        connected = _created(_configured(builder.remote(remote), chosen(wanted, user)).getOrCreate, remote)
        ask(connected, remote)
        return connected
    new = running_context() is None
    wanted |= also
    if new:
        wanted |= _driver(memory)
        reach(place)
    local = place.startswith("local")
    settings = chosen(wanted | (_LOOPBACK if local else {}), user)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named = {"spark.master": place, "spark.app.name": app, **settings}
        open_gateway(_conf(SparkConf(loadDefaults=False), named))
    if SparkContext._active_spark_context is None:  # a handler of Ctrl-C that came after a context stays
        _created(lambda: guard(SparkContext.getOrCreate(_conf(SparkConf(), named))), place)
    spark = _created(_configured(builder.master(place), settings).getOrCreate, place)
    spark.sparkContext.setLogLevel(os.environ.get(LOG_LEVEL, "ERROR").upper())
    if new and not local:
        ask(spark, place)
    if shuffle is None and not local:
        fit(spark, 0, cores(spark))
    return spark


def _driver(memory: str) -> dict[str, str]:
    """Settings of the driver's JVM; SparkStartError when this machine has none that will do."""
    if lack := java_lack():
        raise JavaMissingError(lack)
    mapped = class_archive.options(java() or "")
    level = f" -Dstreamgauge.log={level}" if (level := os.environ.get(LOG_LEVEL)) else ""
    return {
        "spark.driver.memory": heap(os.environ.get("SPARK_DRIVER_MEMORY"), memory, memory_here()),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG}{level} {_JVM}{mapped}",
    }


def _conf(conf: SparkConf, settings: Mapping[str, str]) -> SparkConf:
    for key, value in settings.items():
        conf.set(key, value)
    return conf


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _created(create: Callable[[], T], place: str) -> T:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return create()
    except JOB_ERRORS as error:
        raise SparkStartError(f"Spark did not start on {place}: {words(error)}") from error


def reach(master: str, seconds: float = 5.0) -> None:
    """Say at once when nobody answers at the address of a standalone master: SparkStartError after ``seconds`` each."""
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            check_reachable(host or place, int(port) if port.isdecimal() else 7077, seconds)
        except OSError:
            continue
        else:
            return
    raise SparkStartError(
        f"no Spark master answers at {master}: is it running, and is this the address that its page shows?"
    )
