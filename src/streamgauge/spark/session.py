"""The one place that makes a Spark session: local by default, a cluster by ``master`` or ``SPARK_REMOTE``."""

import os
import socket
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamgauge.spark import class_archive, workers
from streamgauge.spark.gateway import LOG_LEVEL, open_gateway
from streamgauge.spark.requirements import (
    HEAP,
    JavaMissingError,
    SparkStartError,
    heap,
    java,
    java_lack,
    words,
)
from streamgauge.spark.requirements import memory as memory_here

JOB_ERRORS = (PySparkException, Py4JJavaError)
"""A failed job raises Spark's error, or the JVM's own where a broadcast failed, which wraps the cause."""

_LOG = Path(__file__).with_name("log4j2.properties")
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""A local session listens to nobody else; on a cluster the executors must reach the driver."""


def session(
    master: str | None = None, *, memory: str = HEAP, shuffle: int = 4, app: str = "streamgauge"
) -> SparkSession:
    """The Spark session: ``master`` (default ``local[*]``), or Spark Connect when ``SPARK_REMOTE`` is set.

    ``SPARK_DRIVER_MEMORY`` goes before ``memory``. SparkStartError (JavaMissingError) has the sentence to print when
    Java or memory will not do, the master is not there, or its workers cannot do a task.
    """
    remote = os.environ.get("SPARK_REMOTE")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = master or os.environ.get("MASTER", "local[*]")
    settings = {**_SETTINGS, "spark.sql.shuffle.partitions": str(shuffle)}
    builder = SparkSession.builder.appName(app)
    if remote:
        connected = _created(_configured(builder.remote(remote), settings), remote)
        workers.ask(connected, remote)
        return connected
    new = SparkSession.getActiveSession() is None
    if new:
        settings |= _driver(memory)
        reach(chosen)
    local = chosen.startswith("local")
    settings |= _LOOPBACK if local else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_gateway(_conf({"spark.master": chosen, "spark.app.name": app, **settings}))
    spark = _created(_configured(builder.master(chosen), settings), chosen)
    spark.sparkContext.setLogLevel(os.environ.get(LOG_LEVEL, "ERROR").upper())
    if new and not local:
        workers.ask(spark, chosen)
    return spark


def _driver(memory: str) -> dict[str, str]:
    """Settings of the driver's JVM; SparkStartError when this machine has none that will do."""
    if lack := java_lack():
        raise JavaMissingError(lack)
    mapped = class_archive.options(java() or "")
    level = f" -Dstreamgauge.log={level}" if (level := os.environ.get(LOG_LEVEL)) else ""
    return {
        "spark.driver.memory": heap(os.environ.get("SPARK_DRIVER_MEMORY"), memory, memory_here()),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG}{level} -XX:+UseParallelGC{mapped}",
    }


def _conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    return conf


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _created(builder: SparkSession.Builder, place: str) -> SparkSession:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return builder.getOrCreate()
    except JOB_ERRORS as error:
        raise SparkStartError(f"Spark did not start on {place}: {words(error)}") from error


def reach(master: str, seconds: float = 5.0) -> None:
    """Say at once when nobody answers at the address of a standalone master: SparkStartError after ``seconds`` each."""
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host or place, int(port) if port.isdecimal() else 7077), seconds).close()
        except OSError:
            continue
        else:
            return
    raise SparkStartError(
        f"no Spark master answers at {master}: is it running, and is this the address that its page shows?"
    )


_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # or every column costs calls to say where it was made
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "128m",
}
