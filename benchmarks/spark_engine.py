"""The spark engine in 5 s batches beside one batch job, `live`, and Spark's own window operator, in one run.

python -m benchmarks.spark_engine [--parts jobs native] [--stations 10000] [--seconds 120] [--query select|average] ...

`jobs`: the engine beside one batch job over all windows (the better of two runs) and beside `live` in process from
memory, unless ``--without-live``. `native`: one average over one triple pattern, by Spark's window operator with a
RocksDB state that appends closed windows to Parquet, once as it is and once with triples that repeat in a window taken
out (a content is a set), and by the engine. CPU is user + system time of the process tree with the JVM; wall is the
median of the second half of the batches (the JVM is warm), and so is CPU of `jobs`; CPU of `native` is of all batches.
``--stream FOLDER`` has a file of stream for each second.
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
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.measure import Cost, OneOf, cpu, measured, options, own_cost, warm_median, write_weather
from benchmarks.oracle import due_reports
from benchmarks.results import ResultTable
from streamgauge.engines import live
from streamgauge.engines.spark.micro_batches import BatchAnswers
from streamgauge.engines.spark.panes import ROWS
from streamgauge.engines.spark.pipeline import Job, run
from streamgauge.formats.stream import elements
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.query import parse
from streamgauge.spark.answers import answers
from streamgauge.spark.session import session

BATCH_S: Final = 5
ONTOLOGY: Final = "http://knoesis.wright.edu/ssw/ont/"
VALUE: Final = f"{ONTOLOGY}sensor-observation.owl#floatValue"
TEXT: Final = f"""PREFIX om-owl: <{ONTOLOGY}sensor-observation.owl#>
PREFIX weather: <{ONTOLOGY}weather.owl#>
REGISTER RSTREAM <urn:answers> AS SELECT %s
FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT5S STEP PT5S]
WHERE {{ WINDOW <urn:w> {{ %s }} %s }}
"""
OBSERVED: Final = """?obs om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ;
  om-owl:result [ om-owl:floatValue ?value ]"""
SELECTS: Final = {"select": "?sensor ?obs ?value", "average": "(AVG(?value) AS ?avg)"}
ONE_PATTERN: Final = TEXT % (SELECTS["average"], "?result om-owl:floatValue ?value", "")
SEMANTICS: Final = Semantics("benchmark", lateness=0, origin=Origin.FIXED, t0=0)
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def stream(folder: Path, stations: int, seconds: int) -> None:
    """One file a second of event time, in order."""
    made = write_weather(folder.with_name("generated"), stations=stations, interval="1s", duration=f"{seconds}s")
    table = pq.read_table(made)
    folder.mkdir()
    for second in range(seconds):
        inside = pc.and_(pc.greater_equal(table["time"], second * 1000), pc.less(table["time"], (second + 1) * 1000))
        file = folder / f"{second:05}.parquet"
        pq.write_table(table.filter(inside), file)
        os.utime(file, (1_000_000 + second, 1_000_000 + second))


@dataclass(frozen=True)
class BatchCosts:
    """Wall and CPU s of each batch, CPU s of all, the most rows and bytes of state, and how many reports there were."""

    walls: list[float]
    cpus: list[float]
    cpu: float
    reports: int
    rows: int = 0
    state: int = 0


def by_engine(spark: SparkSession, text: str, root: Path, name: str) -> BatchCosts:
    """The spark engine on the stream."""
    at: list[tuple[float, float, int]] = []

    def tell(done: BatchAnswers) -> None:
        at.append((time.monotonic(), cpu(), done.after.rows - done.before.rows))

    places = str(root / "stream"), str(root / f"{name}-answers"), root / f"{name}-checkpoint"
    before = cpu()
    state = run(spark, Job(parse(text), text, "rspql", SEMANTICS, *places, files=BATCH_S, drain=True), tell)
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(at) if b[2]]
    return BatchCosts([wall for wall, _ in steps], [each for _, each in steps], cpu() - before, state.sent)


def by_jobs(spark: SparkSession, query: ContinuousQuery, root: Path, seconds: int) -> Cost:
    """The same windows answered from scratch, all in one job: the better of two runs."""
    found = []
    for _ in range(2):
        with measured() as spent:
            rows = spark.read.parquet(str(root / "stream"))
            due = due_reports(5000, 5000, seconds * 1000)
            answered = answers(spark, rows, due, query.form, windows=query.windows)
            answered.write.mode("overwrite").parquet(str(root / "scratch"))
        found.append(spent)
    return min(found, key=lambda each: each.wall)


def by_live(query: ContinuousQuery, root: Path) -> Cost:
    """`live` in process on the same files, the elements in memory."""
    held = list(elements(root / "stream"))
    with own_cost() as spent:
        answering = live.start(query, SEMANTICS, lambda _answer: None)
        for element in held:
            answering.push(element)
        answering.advance(held[-1].time + 1)
    return spent


def jobs(given: argparse.Namespace, spark: SparkSession, root: Path, triples: int) -> None:
    text = TEXT % (SELECTS[given.query], OBSERVED, "FILTER(?value > 50.0)")
    found = by_engine(spark, text, root, "jobs")
    batch = triples * BATCH_S / given.seconds
    own = Cost(warm_median(found.walls), warm_median(found.cpus))
    sides = [("spark engine", batch, own)]
    sides.append(("one batch job over all windows", triples, by_jobs(spark, parse(text), root, given.seconds)))
    if not given.without_live:
        sides.append(("live, from memory", triples, by_live(parse(text), root)))
    columns = ("side", "triples/s wall", "triples per CPU s", "spark engine's wall", "CPU")
    with ResultTable("spark_engine", columns) as table:
        for name, size, spent in sides:
            shares = (own.wall * size / batch / spent.wall, own.cpu * size / batch / spent.cpu)
            table.add(
                name, f"{size / spent.wall:,.0f}", f"{size / spent.cpu:,.0f}", *(f"{each:.2f}x" for each in shares)
            )
    print(f"{found.reports} reports; batches take {min(found.walls):.2f} to {max(found.walls):.2f} s")


def by_operator(spark: SparkSession, root: Path, once: Callable[[DataFrame], DataFrame], name: str) -> BatchCosts:
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
    held, size = (
        max(sum(operator[key] for operator in each["stateOperators"]) for each in progress)
        for key in ("numRowsTotal", "memoryUsedBytes")
    )
    walls = [each["durationMs"]["triggerExecution"] / 1000 for each in progress]
    return BatchCosts(walls, [], spent, spark.read.parquet(str(root / name)).count(), held, size)


def native(_given: argparse.Namespace, spark: SparkSession, root: Path, triples: int) -> None:
    triple = ["w", "subject", "predicate", "object"]
    batch = triples * BATCH_S / len(list((root / "stream").glob("*.parquet")))
    sides: dict[str, Callable[[], BatchCosts]] = {
        "native, repeats counted": lambda: by_operator(spark, root, lambda rows: rows, "plain"),
        "native, repeats taken out": lambda: by_operator(spark, root, lambda rows: rows.dropDuplicates(triple), "once"),
        "spark engine": lambda: by_engine(spark, ONE_PATTERN, root, "native"),
    }
    columns = ("side", "triples/s wall", "triples per CPU s", "state at most", "windows")
    with ResultTable("spark_native", columns) as table:
        for name, made in sides.items():
            found = made()
            state = f"{found.rows:,} rows, {found.state >> 10:,} KiB" if found.rows else "none"
            rates = f"{batch / warm_median(found.walls):,.0f}", f"{triples / found.cpu:,.0f}"
            table.add(name, *rates, state, found.reports)


PARTS: Final = {"jobs": jobs, "native": native}


def main() -> None:
    given = options(
        __doc__, parts=OneOf(PARTS), stations=10_000, seconds=120, query=OneOf(SELECTS, "select"), without_live=False,
        stream=Path,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if given.stream is None:
            stream(root / "stream", given.stations, given.seconds)
        else:
            shutil.copytree(given.stream, root / "stream")
            given.seconds = len(list((root / "stream").glob("*.parquet")))
        triples = sum(pq.read_metadata(file).num_rows for file in (root / "stream").glob("*.parquet"))
        print(f"{triples:,} triples, load {os.getloadavg()[0]:.1f}")
        spark = session("local[2]", memory="4g", shuffle=2)
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        for name in given.parts:
            PARTS[name](given, spark, root, triples)
        spark.stop()


if __name__ == "__main__":
    main()
