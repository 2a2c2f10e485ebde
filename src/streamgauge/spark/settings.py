"""Settings of Spark sessions: ours, the user's, which win, and those that follow from the size of a job."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyspark.sql
from pyspark.sql import SparkSession

from streamgauge.spark.requirements import SparkStartError

_PACKAGE: Final = Path(pyspark.sql.__file__).parents[1]
"""The folder of PySpark, which contains Spark."""

PARTITIONS: Final = "spark.sql.shuffle.partitions"
HASH_JOINS: Final = "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold"
JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
"""Options of the driver's JVM; Spark adds the user's own after them, those of `EXTRA_JAVA_OPTIONS`."""

EXTRA_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

OURS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",  # for a page that nobody is shown, a thousand would be kept with their plans
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.streaming.ui.retainedBatches": "5",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",  # a batch may have rows that are whole windows
    "spark.buffer.pageSize": "1m",  # by default 64 MB: each table that a small job sends to all tasks keeps one
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # or every column costs calls to say where it was made
    "spark.sql.dataFrameQueryContext.enabled": "false",
}
"""Settings that suit short jobs; those of the user go before them."""

NEEDED: Final = {"spark.sql.session.timeZone": "UTC"}
"""Settings that answers depend on; no user's setting changes them."""

MIN_PARTITIONS: Final = 4
"""Minimum partitions of a shuffle: two per core of the smallest machine, so that one long task delays less."""

ROW_BYTES: Final = 128
"""Bytes of a row of a shuffle, about: a few terms or their numbers, times and keys."""

PARTITION_BYTES: Final = 64 << 20
"""Bytes that one partition of a shuffle has at most, about, so that a task's sort stays in memory."""

HASHED_ROWS: Final = MIN_PARTITIONS * PARTITION_BYTES // ROW_BYTES
"""Up to so many rows adaptive plans may turn sorted joins into hash joins, which are faster but do not spill.

Derived: a partition has its PARTITION_BYTES at most then, also where there are no more of them than MIN_PARTITIONS.
"""


def of_user(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Settings in ``spark-defaults.conf`` and ``PYSPARK_SUBMIT_ARGS`` (``--conf``, ``--properties-file``).

    SparkStartError for arguments that cannot be read.
    """
    home = Path(environment.get("SPARK_CONF_DIR") or Path(environment.get("SPARK_HOME", _PACKAGE)) / "conf")
    words = _submitted(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    files = [value for name, value in _options(words) if name == "--properties-file"]
    settings = dict(_lines(Path(files[-1]) if files else home / "spark-defaults.conf"))
    # As in spark-submit, --conf goes before the file.
    return settings | dict(value.split("=", 1) for name, value in _options(words) if name == "--conf" and "=" in value)


def _submitted(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SparkStartError(f"PYSPARK_SUBMIT_ARGS: {str(error).lower()} in {text!r}") from error


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """The options with their values, ``--name value`` and ``--name=value`` alike."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        name = "--conf" if name == "-c" else name
        if name.startswith("--"):
            yield name, value if equals else " ".join(words[place + 1 : place + 2])


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """The entries of a properties file; none if it does not exist."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        # Java's properties allow a blank, ``=`` or ``:`` between key and value.
        name, *value = re.split(r"\s*[\s=:]\s*", line.strip(), maxsplit=1)
        if name and not name.startswith(("#", "!")):
            yield name, value[0] if value else ""


def chosen(wanted: Mapping[str, str], user: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session: ``wanted``, but what the user set; options of the JVM are joined."""
    settings = {name: value for name, value in wanted.items() if name not in user} | NEEDED
    if JAVA_OPTIONS in wanted and JAVA_OPTIONS in user:
        settings[JAVA_OPTIONS] = f"{wanted[JAVA_OPTIONS]} {user[JAVA_OPTIONS]}"
    return settings


def partitions(rows: int, cores: int) -> int:
    """The number of partitions for a shuffle of that many rows: by bytes, and at least one for each core.

    Worked example: 20 million rows are 2.6 GB, 39 partitions of 64 MiB; 1,000 rows on 8 cores have 8.
    """
    return max(cores, -(-rows * ROW_BYTES // PARTITION_BYTES))


def fit(spark: SparkSession, rows: int, cores: int = 1) -> None:
    """Set the partitions of a session's next jobs for ``rows`` rows, never fewer than before; user settings stay."""
    user = of_user()
    wanted = max(int(spark.conf.get(PARTITIONS, "0")), partitions(rows, cores))
    for name, value in {PARTITIONS: str(wanted), HASH_JOINS: "128m" if rows <= HASHED_ROWS else "0"}.items():
        if name not in user:
            spark.conf.set(name, value)
