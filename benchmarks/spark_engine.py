"""The spark engine in 5 s batches beside one batch job, `live`, and Spark's own window operator, in one run.

python -m benchmarks.spark_engine [--parts jobs latency flat cores native] [--stations 10000] [--seconds 120] ...

`jobs`: the engine in batches of ``--files`` seconds (several sizes: each in turn) beside one batch job over all windows
(the better of two runs) and beside `live` in process from memory, unless ``--without-live``. `latency`: files come at
``--rate`` triples a second, half of the capacity, to a job that waits for them; the seconds from each window's close,
on the clock of the stream, until its answer is on the disk (run it alone: its first reports are those of a JVM that
has just begun). `flat`: the cost of a triple in streams of ``--millions``, warm. `cores`: local[1] beside local[2], in
turn, in a JVM that is warm. `native`: one average over one triple pattern, by Spark's window operator with a
RocksDB state that appends closed windows to Parquet, once as it is and once with triples that repeat in a window taken
out (a content is a set), and by the engine. CPU is user + system time of the process tree with the JVM; wall is the
median of the second half of the batches (the JVM is warm), and so is CPU of `jobs`; CPU of `native` is of all batches.
``--stream FOLDER`` has a file of stream for each second.
"""

import argparse
import os
import shutil
import signal
import tempfile
import threading
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

from benchmarks.measure import Cost, OneOf, cpu, measured, options, own_cost, times_text, warm_median, write_weather
from benchmarks.oracle import due_reports
from benchmarks.results import ResultTable
from streamgauge.engines import live
from streamgauge.engines.spark.micro_batches import BatchDone
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
    generated = write_weather(folder.with_name("generated"), stations=stations, interval="1s", duration=f"{seconds}s")
    table = pq.read_table(generated)
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


def by_engine(
    spark: SparkSession, text: str, root: Path, name: str, files: int = BATCH_S, source: str = "stream"
) -> BatchCosts:
    """The spark engine on the stream, or on another folder of ``root``."""
    at: list[tuple[float, float, int]] = []

    def tell(done: BatchDone) -> None:
        at.append((time.monotonic(), cpu(), done.after.rows - done.before.rows))

    places = str(root / source), str(root / f"{name}-answers"), root / f"{name}-checkpoint"
    before = cpu()
    state = run(spark, Job(parse(text), text, "rspql", SEMANTICS, *places, files=files, drain=True), tell)
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(at) if b[2]]
    return BatchCosts([wall for wall, _ in steps], [spent for _, spent in steps], cpu() - before, state.sent)


def by_jobs(spark: SparkSession, query: ContinuousQuery, root: Path, seconds: int) -> Cost:
    """The same windows answered from scratch, all in one job: the better of two runs."""
    costs = []
    for _ in range(2):
        with measured() as spent:
            rows = spark.read.parquet(str(root / "stream"))
            due = due_reports(5000, 5000, seconds * 1000)
            answered = answers(spark, rows, due, query.form, windows=query.windows)
            answered.write.mode("overwrite").parquet(str(root / "scratch"))
        costs.append(spent)
    return min(costs, key=lambda cost: cost.wall)


def by_live(query: ContinuousQuery, root: Path) -> Cost:
    """`live` in process on the same files, the elements in memory."""
    elements_ = list(elements(root / "stream"))
    with own_cost() as spent:
        answering = live.start(query, SEMANTICS, lambda _answer: None)
        for element in elements_:
            answering.push(element)
        answering.advance(elements_[-1].time + 1)
    return spent


def jobs(arguments: argparse.Namespace, spark: SparkSession, root: Path, triples: int) -> None:
    text = stars(arguments)
    sides: list[tuple[str, float, Cost]] = []
    for files in arguments.files:
        costs = by_engine(spark, text, root, f"jobs-{files}", files)
        own = Cost(warm_median(costs.walls), warm_median(costs.cpus))
        sides.append((f"spark engine, batches of {files} s", triples * files / arguments.seconds, own))
        print(f"{costs.reports} reports; batches take {min(costs.walls):.2f} to {max(costs.walls):.2f} s")
    sides.append(("one batch job over all windows", triples, by_jobs(spark, parse(text), root, arguments.seconds)))
    if not arguments.without_live:
        sides.append(("live, from memory", triples, by_live(parse(text), root)))
    _, batch, own = sides[0]
    columns = ("side", "triples/s wall", "triples per CPU s", "first side's wall", "CPU")
    with ResultTable("spark_engine", columns) as table:
        for name, size, spent in sides:
            shares = (own.wall * size / batch / spent.wall, own.cpu * size / batch / spent.cpu)
            table.add(
                name, f"{size / spent.wall:,.0f}", f"{size / spent.cpu:,.0f}", *(f"{share:.2f}x" for share in shares)
            )


def stars(arguments: argparse.Namespace) -> str:
    """The query over two stars."""
    return TEXT % (SELECTS[arguments.query], OBSERVED, "FILTER(?value > 50.0)")


def shown(root: Path, name: str, seconds: int) -> Path:
    """An own folder with the first so many files of the stream."""
    folder = root / name
    folder.mkdir()
    for file in sorted((root / "stream").glob("*.parquet"))[:seconds]:
        os.link(file, folder / file.name)
    return folder


def latency(arguments: argparse.Namespace, spark: SparkSession, root: Path, triples: int) -> None:
    text, speed = stars(arguments), arguments.rate * arguments.seconds / triples
    folder, waits = shown(root, "coming", 0), list[float]()
    reports = (arguments.seconds - 1) // BATCH_S
    files = sorted((root / "stream").glob("*.parquet"))
    began = time.monotonic()

    def come() -> None:
        for second, file in enumerate(files):
            time.sleep(max(0.0, began + (second + 1) / speed - time.monotonic()))
            os.link(file, folder / file.name)

    def tell(done: BatchDone) -> None:
        now = time.monotonic() - began
        waits.extend(now - instant / 1000 / speed for instant in done.instants)
        if len(waits) == reports:
            os.kill(os.getpid(), signal.SIGINT)

    places = str(folder), str(root / "late-answers"), root / "late-checkpoint"
    job = Job(parse(text), text, "rspql", SEMANTICS, *places, every=arguments.every, files=arguments.files[0])
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # the own one of a session would cancel the batch that is at work
    coming = threading.Thread(target=come)
    coming.start()
    with measured() as spent:
        run(spark, job, tell)
    coming.join()
    columns = ("triples/s", "batches every ms", "first s", "second s", "from the second on", "CPU us a triple", "load")
    with ResultTable("spark_latency", columns) as table:
        spread, load = times_text(waits[1:], ".2f"), f"{os.getloadavg()[0]:.1f}"
        own = f"{1e6 * spent.cpu / triples:.1f}"
        table.add(f"{arguments.rate:,}", arguments.every, f"{waits[0]:.2f}", f"{waits[1]:.2f}", spread, own, load)


def flat(arguments: argparse.Namespace, spark: SparkSession, root: Path, triples: int) -> None:
    second = triples / arguments.seconds
    by_engine(spark, stars(arguments), root, "warming", source=shown(root, "warm", min(60, arguments.seconds)).name)
    with ResultTable("spark_flat", ("million triples", "batches", "CPU us a triple", "wall us", "load")) as table:
        for millions in arguments.millions:
            seconds = round(millions * 1e6 / second)
            if seconds > arguments.seconds:
                print(f"{millions:g} million triples: give --seconds {seconds} or more")
                continue
            name = f"flat-{millions:g}"
            costs_ = by_engine(spark, stars(arguments), root, name, source=shown(root, name, seconds).name)
            per_second = [1e6 * sum(costs) / len(costs) / second / BATCH_S for costs in (costs_.cpus, costs_.walls)]
            load = f"{os.getloadavg()[0]:.1f}"
            table.add(f"{millions:g}", len(costs_.walls) + 1, *(f"{figure:.2f}" for figure in per_second), load)


def cores(arguments: argparse.Namespace, spark: SparkSession, root: Path, triples: int) -> None:
    """Leaves no session."""
    files, rates = arguments.files[-1], dict[int, float]()
    for turn, count in enumerate((2, 1, 2)):  # the first one is for the JVM to be warm
        spark.stop()
        spark = session(f"local[{count}]", memory="4g", shuffle=2)
        costs = by_engine(spark, stars(arguments), root, f"cores-{turn}", files)
        rates[count] = triples * files / arguments.seconds / warm_median(costs.walls)
    with ResultTable("spark_cores", ("cores", "triples/s wall", "of one core", "load")) as table:
        for count, rate in sorted(rates.items()):
            table.add(count, f"{rate:,.0f}", f"{rate / rates[1]:.2f}x", f"{os.getloadavg()[0]:.1f}")
    spark.stop()


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
    progress = [batch for batch in running.recentProgress if batch["numInputRows"]]
    stored, size = (
        max(sum(operator[key] for operator in batch["stateOperators"]) for batch in progress)
        for key in ("numRowsTotal", "memoryUsedBytes")
    )
    walls = [batch["durationMs"]["triggerExecution"] / 1000 for batch in progress]
    return BatchCosts(walls, [], spent, spark.read.parquet(str(root / name)).count(), stored, size)


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
        for name, side in sides.items():
            outcome = side()
            state = f"{outcome.rows:,} rows, {outcome.state >> 10:,} KiB" if outcome.rows else "none"
            rates = f"{batch / warm_median(outcome.walls):,.0f}", f"{triples / outcome.cpu:,.0f}"
            table.add(name, *rates, state, outcome.reports)


PARTS: Final = {"jobs": jobs, "latency": latency, "flat": flat, "native": native, "cores": cores}


def main() -> None:
    arguments = options(
        __doc__, parts=OneOf(PARTS, ("jobs", "native")), stations=10_000, seconds=120, query=OneOf(SELECTS, "select"),
        without_live=False, stream=Path, files=(BATCH_S,), rate=200_000, every=500, millions=(1.0, 5.0, 20.0),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if arguments.stream is None:
            stream(root / "stream", arguments.stations, arguments.seconds)
        else:
            shutil.copytree(arguments.stream, root / "stream")
            arguments.seconds = len(list((root / "stream").glob("*.parquet")))
        triples = sum(pq.read_metadata(file).num_rows for file in (root / "stream").glob("*.parquet"))
        print(f"{triples:,} triples, load {os.getloadavg()[0]:.1f}")
        spark = session("local[2]", memory="4g", shuffle=2)
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        for name in arguments.parts:
            PARTS[name](arguments, spark, root, triples)
        spark.stop()


if __name__ == "__main__":
    main()
