"""The one place that makes a Spark session: local by default, a cluster by ``master`` or ``SPARK_REMOTE``."""

import os
import shutil
import sys
import warnings
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamgauge.compute.spark import class_archive

JOB_ERRORS = (PySparkException, Py4JJavaError)
"""A failed job raises Spark's error, or the JVM's own where a broadcast failed, which wraps the cause."""

NO_JAVA = (
    "Spark needs Java 17 or newer and none was found: install a JRE (Debian: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) or set JAVA_HOME. `streamgauge doctor` checks the rest."
)

_LOG = Path(__file__).with_name("log4j2.properties")


class JavaMissingError(RuntimeError):
    """Spark was asked for on a machine without Java."""


def java() -> str | None:
    """The path of the java program that Spark would use, ``None`` when there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (found := Path(home) / "bin" / "java").exists():
        return str(found)
    return shutil.which("java")


_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""A local session listens to nobody else; on a cluster the executors must reach the driver."""


def session(
    master: str | None = None, *, memory: str = "4g", shuffle: int = 4, app: str = "streamgauge"
) -> SparkSession:
    """The Spark session: ``master`` (default ``local[*]``), or Spark Connect when ``SPARK_REMOTE`` is set.

    ``SPARK_DRIVER_MEMORY`` goes before ``memory``.
    Raises JavaMissingError with the sentence to print when a local JVM is needed and missing.
    """
    remote = os.environ.get("SPARK_REMOTE")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote is None and java() is None:
        raise JavaMissingError(NO_JAVA)
    builder = SparkSession.builder.appName(app)
    chosen = master or os.environ.get("MASTER", "local[*]")
    builder = builder.remote(remote) if remote else builder.master(chosen)
    settings = _settings(memory, shuffle) | (_LOOPBACK if chosen.startswith("local") and not remote else {})
    for key, value in settings.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = builder.getOrCreate()
    if not remote:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def _settings(memory: str, shuffle: int) -> dict[str, str]:
    mapped = class_archive.options(java() or "")
    return {
        "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", memory),
        "spark.sql.shuffle.partitions": str(shuffle),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG} -XX:+UseParallelGC{mapped}",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # or every column costs calls to say where it was made
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "128m",
    }
