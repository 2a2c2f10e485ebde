"""Checks the workers of a cluster before the first job: do they run tasks, and is Streamgauge installed there?

A job whose workers lack a package may be retried again and again, and one without workers waits forever; a small task
with a time limit detects both.
"""

import os
import re
import threading
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.sql import functions as fn

from streamgauge.spark.failures import words
from streamgauge.spark.requirements import SparkStartError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LIMIT: Final = "STREAMGAUGE_WORKERS_LIMIT_S"
"""The variable that sets how long workers may take to do their first task, seconds."""

SECONDS: Final = 90.0
_TAG: Final = "streamgauge-workers"
_ABSENT = re.compile(r"No module named '([\w.]+)'")
_TASK = re.compile(r"^.* failed \d+ times, most recent failure: Lost task .*? executor [^)]*\): ")
"""The start of a failed job's message, which names its task and executor before the cause."""

_MAX_TASKS = 64
"""Maximum number of tasks; there is one for each core of the cluster up to this number."""

T = TypeVar("T")


def ask(spark: "SparkSession", place: str, seconds: float | None = None) -> None:
    """Let the workers import Streamgauge; SparkStartError if they lack something or do no task in time."""
    limit = seconds or float(os.environ.get(LIMIT, SECONDS))
    tasks = max(1, min(_MAX_TASKS, cores(spark)))
    probe = fn.arrow_udf(_asked(), "string")
    # One row in each partition, and thereby one in each task.
    table = spark.range(0, tasks, 1, tasks).select(probe(fn.col("id")).alias("said"))
    try:
        replies = {row.said for row in _in_time(spark, table.collect, limit)}
    except TimeoutError as error:
        raise SparkStartError(
            f"no worker of {place} has done a task within {limit:g} s: check on the master's page that workers "
            f"with free memory and cores are registered, or allow more time by {LIMIT}"
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
    """The number of concurrent tasks of the cluster; 2 for a remote session, which does not report it."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return 2


def _asked() -> "Callable[[pa.Array], pa.Array]":
    """A function that is pickled by value: by reference, workers would import this module, which they may lack."""

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
    """A sentence on a failed task, from a job's message: its first line, then all of it."""
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
        # A tag belongs to the thread that adds it, so no other job is interrupted.
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
