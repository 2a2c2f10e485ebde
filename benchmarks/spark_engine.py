"""The spark engine in 5 s batches against one batch job over all windows, and against `live`, in one run.

python -m benchmarks.spark_engine [--stations 10000] [--seconds 120] [--query select|average] [--without-live]
CPU is user + system time of the process tree with the JVM; the second half of the batches counts (the JVM is warm).
"""

import argparse
import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.measure import SEED, cpu
from benchmarks.oracle import due_reports
from streamgauge.engines import live
from streamgauge.engines.spark.micro_batches import BatchAnswers
from streamgauge.engines.spark.pipeline import Job, run
from streamgauge.formats.stream import elements
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.query import parse
from streamgauge.spark.answers import answers
from streamgauge.spark.session import session
from streamgauge.workloads.weather import generate

BATCH_S = 5
TEXT = """PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
REGISTER RSTREAM <urn:answers> AS SELECT {select}
FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT5S STEP PT5S]
WHERE {{ WINDOW <urn:w> {{ ?obs om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ;
  om-owl:result [ om-owl:floatValue ?value ] }} FILTER(?value > 50.0) }}
"""
SELECTS = {"select": "?sensor ?obs ?value", "average": "(AVG(?value) AS ?avg)"}
SEMANTICS = Semantics("benchmark", lateness=0, origin=Origin.FIXED, t0=0)


def stream(spark: SparkSession, folder: Path, stations: int, seconds: int) -> int:
    """One file a second of event time, in order; the number of triples."""
    generate(spark, SEED, stations=stations, duration=f"{seconds}s").write.parquet(str(folder.with_name("generated")))
    table = pq.read_table(folder.with_name("generated"))
    table = table.filter(pc.less(table["time"], seconds * 1000))
    table = table.sort_by([("sequence", "ascending"), ("position", "ascending")])
    for second in range(seconds):
        inside = pc.and_(pc.greater_equal(table["time"], second * 1000), pc.less(table["time"], (second + 1) * 1000))
        file = folder / f"{second:05}.parquet"
        pq.write_table(table.filter(inside), file)
        os.utime(file, (1_000_000 + second, 1_000_000 + second))
    return len(table)


def by_engine(spark: SparkSession, query: ContinuousQuery, text: str, root: Path) -> tuple[float, float, int]:
    """Wall and CPU seconds a batch, medians over the second half, and how many reports there were."""
    at: list[tuple[float, float, int]] = []

    def tell(done: BatchAnswers) -> None:
        at.append((time.monotonic(), cpu(), done.after.rows - done.before.rows))

    places = (str(root / "stream"), str(root / "answers"), root / "checkpoint")
    state = run(spark, Job(query, text, "rspql", SEMANTICS, *places, files=BATCH_S, drain=True), tell)
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(at) if b[2]]
    warm = steps[len(steps) // 2 :]
    print(f"  batches, wall s: {', '.join(f'{wall:.2f}' for wall, _ in warm)}")
    return median(wall for wall, _ in warm), median(spent for _, spent in warm), state.sent


def by_jobs(spark: SparkSession, query: ContinuousQuery, root: Path, seconds: int) -> tuple[float, float]:
    """The same windows answered from scratch, all in one job: wall and CPU s (the better of two runs)."""
    found = []
    for _ in range(2):
        before, start = cpu(), time.monotonic()
        rows = spark.read.parquet(str(root / "stream"))
        due = due_reports(5000, 5000, seconds * 1000)
        answers(spark, rows, due, query.form, windows=query.windows).write.mode("overwrite").parquet(
            str(root / "scratch")
        )
        found.append((time.monotonic() - start, cpu() - before))
    return min(found)


def by_live(query: ContinuousQuery, root: Path) -> tuple[float, float]:
    """`live` in process on the same files, the elements in memory: wall and CPU s."""
    held = list(elements(root / "stream"))
    before, start = cpu(), time.monotonic()
    answering = live.start(query, SEMANTICS, lambda _answer: None)
    for element in held:
        answering.push(element)
    answering.advance(held[-1].time + 1)
    return time.monotonic() - start, cpu() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stations", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--query", choices=SELECTS, default="select")
    parser.add_argument("--without-live", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        compare(Path(root), arguments)


def compare(root: Path, arguments: argparse.Namespace) -> None:
    spark = session("local[2]", memory="4g", shuffle=2)
    (root / "stream").mkdir()
    triples = stream(spark, root / "stream", arguments.stations, arguments.seconds)
    text = TEXT.format(select=SELECTS[arguments.query])
    query = parse(text)
    print(f"{arguments.query}: {triples:,} triples, load {os.getloadavg()[0]:.1f}, pyarrow {pa.__version__}")
    wall, spent, reports = by_engine(spark, query, text, root)
    batch = triples * BATCH_S / arguments.seconds
    say("spark engine", batch, wall, spent)
    print(f"  {reports} reports")
    own_wall, own_spent = wall / batch, spent / batch
    others = {"one batch job over all windows": by_jobs(spark, query, root, arguments.seconds)}
    if not arguments.without_live:
        others["live, from memory"] = by_live(query, root)
    for name, (wall, spent) in others.items():
        say(name, triples, wall, spent)
        ratios = own_wall * triples / wall, own_spent * triples / spent
        print(f"  spark engine / {name}: wall {ratios[0]:.2f}x, CPU {ratios[1]:.2f}x")
    spark.stop()


def say(name: str, triples: float, wall: float, spent: float) -> None:
    print(f"{name:32} {triples / wall:12,.0f} triples/s wall   {triples / spent:12,.0f} triples/CPU s", flush=True)


if __name__ == "__main__":
    main()
