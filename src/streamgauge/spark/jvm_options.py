"""Options of the driver's JVM: its heap, garbage collector and compilers."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streamgauge.spark import class_archive
from streamgauge.spark.requirements import MIB, JavaMissingError, heap, heap_bytes, java, java_lack
from streamgauge.spark.requirements import memory as free_memory
from streamgauge.spark.settings import EXTRA_JAVA_OPTIONS, JAVA_OPTIONS

LOG_LEVEL: Final = "STREAMGAUGE_SPARK_LOG"
"""The variable for the level of Spark's log (info, warn, ...); if it is set, all of Spark's output is shown."""

_LOG = Path(__file__).with_name("log4j2.properties")

_METASPACE: Final = "-XX:MetaspaceSize=256m"
"""Metaspace that starts small grows by collections of the whole heap, so it starts large."""

_FAST: Final = "-XX:+UseParallelGC"

SMALL_HEAP: Final = 1024 * MIB
"""A heap up to this size (bytes) is wanted where memory is scarce: `_SPARING` is used for it."""

_SPARING: Final = (
    "-XX:+UseSerialGC -Xms64m -XX:MaxNewSize=40m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40 -XX:-ShrinkHeapInSteps"
)
"""Start small and stay near what is in use, also over hundreds of jobs; the parallel collector never gives back
(`python -m benchmarks.scale_suites --parts yabench --cluster`, whose driver has 512 MiB)."""

CLEANING: Final = {"spark.cleaner.periodicGC.interval": "30s"}
"""By default 30 minutes: what jobs have sent to all tasks is freed only after a collection of the whole heap, and a
small heap was full of it (61 of 240 MiB were in use)."""

PLANNING: Final = "-XX:TieredStopAtLevel=1"
"""A cluster's driver only plans: the first compiler is enough, and its code takes half the memory."""

LATE: Final = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=12000"
    " -XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=800000"
)
"""A session lives for seconds or minutes, in the first of which the second compiler takes much of the CPU: it
compiles what ran twenty times as often as is usual, as loops over rows soon have."""

EARLY: Final = (
    "-XX:Tier4InvocationThreshold=5000 -XX:Tier4MinInvocationThreshold=600"
    " -XX:Tier4CompileThreshold=15000 -XX:Tier4BackEdgeThreshold=40000"
)
"""The JVM's own thresholds, for a session that answers single messages from its start."""


_OPTION_VARIABLES: Final = ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


def driver_settings(memory: str, *, local: bool, user: Mapping[str, str]) -> dict[str, str]:
    """Settings of the driver's JVM, which runs the tasks too if ``local``; SparkStartError without a suitable Java.

    ``user`` are the user's settings (``settings.of_user``): a JVM takes one collector, so theirs leaves ours out.
    """
    if lack := java_lack():
        raise JavaMissingError(lack)
    mapped = class_archive.options(java() or "")
    level = f" -Dstreamgauge.log={level}" if (level := os.environ.get(LOG_LEVEL)) else ""
    size = heap(os.environ.get("SPARK_DRIVER_MEMORY"), memory, free_memory())
    small = heap_bytes(size) <= SMALL_HEAP
    collector = "" if _names_collector(user) else _SPARING if small else _FAST
    compiler = LATE if local else PLANNING
    return {
        "spark.driver.memory": size,
        JAVA_OPTIONS: f"{compiler} -Dlog4j2.configurationFile={_LOG}{level} {_METASPACE} {collector}{mapped}",
        **(CLEANING if small else {}),
    }


def _names_collector(user: Mapping[str, str]) -> bool:
    """Whether the user's options of the JVM, in settings or environment, choose a garbage collector."""
    options = [user.get(EXTRA_JAVA_OPTIONS, ""), user.get(JAVA_OPTIONS, "")]
    options += [os.environ.get(name, "") for name in _OPTION_VARIABLES]
    return any(re.search(r"-XX:\+Use\w+GC\b", text) for text in options)
