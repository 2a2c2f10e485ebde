"""One aggregate over one triple pattern in 5 s windows: Spark's window operator against the spark engine, in one run.

python -m benchmarks.spark_native [--stations 10000] [--seconds 100] [--stream FOLDER]
The native side keeps a RocksDB state and appends closed windows to Parquet, once as it is and once with triples that
repeat in a window taken out (a content is a set). CPU is that of the process tree over all batches, the first included;
wall is the median of the second half of the batches. FOLDER has a file of stream for each second.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.measure import cpu
from benchmarks.spark_engine import BATCH_S, SEMANTICS, stream
from streamgauge.engines.spark.micro_batches import BatchAnswers
from streamgauge.engines.spark.panes import ROWS
from streamgauge.engines.spark.pipeline import Job, run
from streamgauge.query import parse
from streamgauge.spark.session import session

VALUE = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#floatValue"
TEXT = f"""REGISTER RSTREAM <urn:answers> AS SELECT (AVG(?value) AS ?avg)
FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT5S STEP PT5S]
WHERE {{ WINDOW <urn:w> {{ ?result <{VALUE}> ?value }} }}
"""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class NativeCost:
    """Wall s of each batch, CPU s of all, the most rows and bytes that were in the state, how many windows were said.

    A state of no rows is none.
    """

    walls: list[float]
    cpu: float
    rows: int
    state: int
    windows: int


def native(spark: SparkSession, root: Path, once: Callable[[DataFrame], DataFrame], name: str) -> NativeCost:
    """Spark's own operator; ``once`` takes out what repeats."""
    rows = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", BATCH_S).parquet(str(root / "stream"))
    value = fn.substring_index(fn.substring_index("object", '"', 2), '"', -1).try_cast("float")
    timed = rows.filter(fn.col("predicate") == f"<{VALUE}>").withColumn("at", fn.timestamp_millis("time"))
    kept = once(timed.withWatermark("at", "0 seconds").withColumn("w", fn.window("at", "5 seconds")))
    closed = kept.groupBy("w").agg(fn.avg(value).alias("avg"), fn.count("*").alias("rows"))
    writer = closed.writeStream.outputMode("append").format("parquet").option("path", str(root / name))
    before = cpu()
    running = writer.option("checkpointLocation", str(root / f"{name}-state")).trigger(availableNow=True).start()
    running.awaitTermination()
    spent = cpu() - before
    progress = [each for each in running.recentProgress if each["numInputRows"]]
    states = [
        sum(op[key] for op in each["stateOperators"])
        for key in ("numRowsTotal", "memoryUsedBytes")
        for each in progress
    ]
    walls = [each["durationMs"]["triggerExecution"] / 1000 for each in progress]
    half = len(states) // 2
    return NativeCost(
        walls, spent, max(states[:half]), max(states[half:]), spark.read.parquet(str(root / name)).count()
    )


def engine(spark: SparkSession, root: Path) -> NativeCost:
    """The cost of the spark engine."""
    at: list[float] = []

    def tell(_done: BatchAnswers) -> None:
        at.append(time.monotonic())

    before = cpu()
    places = str(root / "stream"), str(root / "answers"), root / "checkpoint"
    state = run(spark, Job(parse(TEXT), TEXT, "rspql", SEMANTICS, *places, files=BATCH_S, drain=True), tell)
    return NativeCost([later - earlier for earlier, later in pairwise(at)], cpu() - before, 0, 0, state.sent)


def say(name: str, triples: int, batch: float, found: NativeCost) -> None:
    wall = median(found.walls[len(found.walls) // 2 :])
    speed = f"{batch / wall:10,.0f} triples/s wall {triples / found.cpu:10,.0f} triples/CPU s"
    print(
        f"{name:26} {speed}; state {found.rows:,} rows, {found.state >> 10:,} KiB; {found.windows} windows", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stations", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=100)
    parser.add_argument("--stream", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        compare(Path(root), arguments)


def compare(root: Path, arguments: argparse.Namespace) -> None:
    spark = session("local[2]", memory="4g", shuffle=2)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    if arguments.stream is None:
        (root / "stream").mkdir()
        stream(spark, root / "stream", arguments.stations, arguments.seconds)
    else:
        shutil.copytree(arguments.stream, root / "stream")
    files = list((root / "stream").glob("*.parquet"))
    triples = sum(pq.read_metadata(file).num_rows for file in files)
    batch = triples * BATCH_S / len(files)
    print(f"{triples:,} triples, load {os.getloadavg()[0]:.1f}")
    say("native, repeats counted", triples, batch, native(spark, root, lambda rows: rows, "plain"))
    triple = ["w", "subject", "predicate", "object"]
    say(
        "native, repeats taken out",
        triples,
        batch,
        native(spark, root, lambda rows: rows.dropDuplicates(triple), "once"),
    )
    say("spark engine", triples, batch, engine(spark, root))
    print(f"load {os.getloadavg()[0]:.1f}")
    spark.stop()


if __name__ == "__main__":
    main()
