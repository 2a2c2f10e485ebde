"""The one place that makes a Spark session: local by default, a cluster by ``master`` or ``SPARK_REMOTE``."""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark import SparkConf, SparkContext

from streamgauge.outgoing.sockets import check_reachable
from streamgauge.spark.contexts import running_context
from streamgauge.spark.failures import JOB_ERRORS, words
from streamgauge.spark.interrupts import guard
from streamgauge.spark.jvm import open_gateway, socket_settings
from streamgauge.spark.jvm_options import LOG_LEVEL, driver_settings
from streamgauge.spark.requirements import HEAP, SparkStartError, connect_address, connect_lack
from streamgauge.spark.settings import MIN_PARTITIONS, OURS, PARTITIONS, chosen, fit, of_user
from streamgauge.spark.workers import ask, cores

_STARTING = threading.Lock()
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""A local session listens on the loopback address only; on a cluster the executors must reach the driver."""

MASTER_S = 5.0
"""Seconds that an address of a standalone master may take to accept a connection."""

T = TypeVar("T")


def session(
    master: str | None = None,
    *,
    memory: str = HEAP,
    shuffle: int | None = None,
    app: str = "streamgauge",
    also: Mapping[str, str] | None = None,
) -> SparkSession:
    """The Spark session: ``master`` (default ``local[*]``), or Spark Connect (``sc://``, ``SPARK_REMOTE``).

    The user's settings (``settings.of_user``) override ours, ``SPARK_DRIVER_MEMORY`` overrides ``memory``. ``shuffle``
    is the number of shuffle partitions; by default one per core of a cluster, and ``settings.fit`` sets it for each
    job. ``also`` are further settings, of which an existing session ignores those of its JVM. SparkStartError
    (JavaMissingError) has the message if Java or memory is insufficient, the master is unreachable, or its workers
    cannot run a task. Thread-safe.
    """
    with _STARTING:
        return _session(master, memory, shuffle, app, also or {})


def _session(master: str | None, memory: str, shuffle: int | None, app: str, also: Mapping[str, str]) -> SparkSession:
    remote = connect_address(master)
    # Otherwise PySpark starts its workers with the ``python3`` of the path, which may lack Streamgauge.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    place = master or os.environ.get("MASTER", "local[*]")
    user = of_user()
    wanted = {**OURS, PARTITIONS: str(shuffle or MIN_PARTITIONS)}
    builder = SparkSession.builder.appName(app)
    if remote:
        # Before PySpark imports its client, which would end the process without a package.
        if lack := connect_lack():
            raise SparkStartError(lack)
        connected = _created(_configured(builder.remote(remote), chosen(wanted, user)).getOrCreate, remote)
        ask(connected, remote)
        return connected
    new = running_context() is None
    local = place.startswith("local")
    wanted |= also
    if local:
        wanted |= _LOOPBACK
    if new:
        wanted |= driver_settings(memory, local=local, user=user) | (socket_settings() if local else {})
        reach(place)
    settings = chosen(wanted, user)
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


def reach(master: str) -> None:
    """SparkStartError if no standalone master answers at its addresses, after MASTER_S for each."""
    if not master.startswith("spark://"):
        return
    # A standalone cluster may have standby masters (spark://a:7077,b:7077); one that answers is enough.
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            check_reachable(host or place, int(port) if port.isdecimal() else 7077, MASTER_S)
        except OSError:
            continue
        else:
            return
    raise SparkStartError(
        f"no Spark master answers at {master}: is it running, and is this the address that its page shows?"
    )
