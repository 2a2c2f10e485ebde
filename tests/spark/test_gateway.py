"""Standard error of Spark's JVM: chatter goes, all else comes, and a JVM that does not start says why in a sentence."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.accumulators import AccumulatorUnixServer, _start_update_server
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.util import _load_from_socket

from streamgauge.spark import jvm as gateway
from streamgauge.spark.jvm import CHATTER, Relay, without_cancelled

CHATTERING = [
    "WARNING: Using incubator modules: jdk.incubator.vector",
    'Setting default log level to "WARN".',
    "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).",
    "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
    "26/11/23 04:38:43 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...",
    "2026/11/23 04:38:43 INFO SparkContext: Running Spark version 4.3.0",
    "04:38:43 WARN TaskSchedulerImpl: Initial job has not accepted any resources",
    "[Stage 3:=======>                                             (12 + 2) / 40]",
    "log4j:WARN No appenders could be found for logger (x).",
    "SLF4J: Failed to load class",
    "ERROR StatusLogger Reconfiguration failed: No configuration found",
    "21:40:25 ERROR ShuffleBlockFetcherIterator: Error occurred while fetching local blocks, null",
    "Picked up JAVA_TOOL_OPTIONS: -Xmx8g",
    "NOTE: Picked up JDK_JAVA_OPTIONS:  -Xmx8g",
    "OpenJDK 64-Bit Server VM warning: Sharing is only supported for boot loader classes because ...",
    "WARNING: A terminally deprecated method in sun.misc.Unsafe has been called",
]
NEWS = [
    "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x0) failed; error='Not enough space' (errno=12)",
    'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
    "04:41:05 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: Master removed our application",
    "# A fatal error has been detected by the Java Runtime Environment:",
    "Traceback (most recent call last):",
]


def relayed(lines, capsys, *, released: bool) -> tuple[str, Relay]:
    reading, writing = os.pipe()
    os.write(writing, "".join(f"{line}\n" for line in lines).encode())
    os.close(writing)
    relay = Relay()
    if released:
        relay.release()
    relay.read(reading)
    return capsys.readouterr().err, relay


TRACE = "Traceback (most recent call last):"
FRAMES = [f'  File "/x/pyspark.zip/pyspark/daemon.py", line {n}, in worker' for n in (264, 95)]
BROKEN = "BrokenPipeError: [Errno 32] Broken pipe"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["a", TRACE, *FRAMES, BROKEN, "b"], ["a", "b"]),
        ([TRACE, TRACE, *FRAMES, *FRAMES, BROKEN, BROKEN, "b"], ["b"]),
        ([TRACE, *FRAMES, TRACE, BROKEN, *FRAMES, BROKEN, BROKEN], [BROKEN]),
        ([TRACE, *FRAMES, "OSError: full"], [TRACE, *FRAMES, "OSError: full"]),
        ([TRACE, '  File "/x/job.py", line 1, in f', BROKEN], [TRACE, '  File "/x/job.py", line 1, in f', BROKEN]),
        ([TRACE, FRAMES[0]], [TRACE, FRAMES[0]]),
    ],
)
def test_traces_of_cancelled_tasks_are_left_out(lines, left):
    assert list(without_cancelled(lines)) == left


@pytest.mark.parametrize("line", CHATTERING)
def test_chatter_reaches_nobody(line):
    assert CHATTER.search(line)


def test_news_come_as_they_are(capsys):
    said, _ = relayed([*CHATTERING, *NEWS], capsys, released=True)
    assert said.splitlines() == NEWS


def test_lines_are_held_until_the_jvm_runs(capsys):
    said, relay = relayed(NEWS, capsys, released=False)
    assert said == ""
    relay.release()
    assert capsys.readouterr().err.splitlines() == NEWS


def test_a_jvm_that_does_not_start_is_quoted_without_its_stack(capsys):
    lines = [
        'Exception in thread "main" org.apache.spark.SparkException: Master must start with spark',
        "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)",
        "\t... 9 more",
        "Error: it ended",
    ]
    _, relay = relayed(lines, capsys, released=False)
    assert relay.words() == "Master must start with spark; Error: it ended"


SESSION = """
from streamgauge.spark.session import session
spark = session("local[1]", memory="512m", shuffle=1)
assert spark.range(3).count() == 3
assert spark.sparkContext.parallelize([1, 2], 1).map(lambda number: number + 1).sum() == 5
assert "streamgauge" in spark.sparkContext._jvm.System.getProperty("log4j2.configurationFile")
"""
"""With a worker in Python: the JVM's connection for accumulators, which ends with the JVM, is there too."""


@pytest.mark.prove
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, ""),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.driver.extraJavaOptions=-XX:+UseG1GC pyspark-shell"}, ""),
        (
            {"PYSPARK_SUBMIT_ARGS": "--conf spark.a=b"},
            "PYSPARK_SUBMIT_ARGS must end with pyspark-shell, and is '--conf spark.a=b'",
        ),
        (
            {"PYSPARK_SUBMIT_ARGS": "--name 'a pyspark-shell"},
            """PYSPARK_SUBMIT_ARGS: no closing quotation in "--name 'a pyspark-shell\"""",
        ),
        (
            {"PYSPARK_SUBMIT_ARGS": "--zork pyspark-shell"},
            "Spark's JVM did not start: Error: Unrecognized option: --zork",
        ),
        (
            {"MASTER": "zork"},
            "Spark's JVM did not start: Master must either be yarn or start with spark, k8s, or local",
        ),
        ({"JAVA_TOOL_OPTIONS": "-Xnonsense"}, "Spark's JVM did not start: "),
    ],
    ids=[
        "silent",
        "with the user's collector",
        "no shell",
        "half a quotation",
        "no such word",
        "no such master",
        "no such option",
    ],
)
def test_a_session_says_nothing_or_why_it_cannot_start(settings, message):
    code = SESSION.replace('"local[1]", ', "") if "MASTER" in settings else SESSION
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    if not message:
        assert (done.returncode, done.stderr) == (0, "")
        return
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith(f"streamgauge.spark.requirements.SparkStartError: {message}")
    assert "\tat " not in done.stderr


def jvm(*words):
    """A program in the place of the JVM, of which this process has the standard input."""
    return subprocess.Popen(words, stdin=subprocess.PIPE)


@pytest.mark.server
def test_the_jvm_has_ended_before_its_process_does(monkeypatch):
    waiting = jvm("cat")
    gateway._await_end(waiting, os.getpid() + 1, gateway.Relay())
    assert waiting.poll() is None
    gateway._await_end(waiting, os.getpid(), gateway.Relay())
    assert waiting.poll() == 0
    monkeypatch.setattr(gateway, "_END_S", 0.05)
    stuck = jvm("sleep", "600")
    gateway._await_end(stuck, os.getpid(), gateway.Relay())
    assert stuck.poll() == -9


@pytest.mark.server
def test_the_connection_for_accumulators_ends_with_the_jvm_and_is_no_error(monkeypatch, capfd):
    """PySpark's server prints the stack of an EOFError when the JVM's side closes."""
    server = _start_update_server("secret", is_unix_domain_sock=False)
    finished = threading.Event()
    server.shutdown_request = lambda request: (request.close(), finished.set())
    context = SimpleNamespace(_accumulatorServer=server)
    monkeypatch.setattr(gateway.SparkContext, "_active_spark_context", context)
    with socket.create_connection(server.server_address) as connection:
        connection.sendall(b"secret" + bytes(4))
        assert connection.recv(1) == b"\1"
        gateway._await_end(jvm("cat"), os.getpid(), gateway.Relay())
    assert finished.wait(60)
    server.shutdown()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("length", "short"), [(30, True), (61, False)])
def test_sockets_are_in_a_private_folder_whose_path_spark_takes(tmp_path, monkeypatch, length, short):
    temporary = (tmp_path if short else tmp_path / ("x" * length)).resolve()
    temporary.mkdir(exist_ok=True)
    monkeypatch.setattr(gateway.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.setattr(gateway, "_SOCKET_FOLDER_LENGTH", len(str(tmp_path)) + 21)
    folder = Path(gateway.socket_settings()[gateway.SOCKET_FOLDER])
    assert folder.parent == (temporary if short else Path("/tmp"))
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()


def test_without_a_place_for_sockets_spark_keeps_to_tcp(monkeypatch):
    monkeypatch.setattr(gateway, "_SOCKET_FOLDER_LENGTH", 10)
    assert gateway.socket_settings() == {}


def test_results_and_tasks_come_over_sockets_of_that_folder(spark):
    """A stray client that tries ports of this machine cannot take a result, as there is none."""
    path, secret, server = spark.range(3)._jdf.collectToPython()
    assert (Path(path).parent.stat().st_mode & 0o777, Path(path).is_socket(), secret) == (0o700, True, None)
    with _load_from_socket((path, secret, server), BatchedSerializer(CPickleSerializer())) as rows:
        assert [row.id for row in rows] == [0, 1, 2]
    assert spark.sparkContext.parallelize([1, 2], 1).map(lambda number: number + 1).sum() == 5
    assert isinstance(spark.sparkContext._accumulatorServer, AccumulatorUnixServer)
