"""The oracle on Spark against pyoxigraph window by window: all windows of YABench's experiment 1, big, in one run.

python benchmarks/oracle.py [--stations 10000] [--seconds 30] [--query select|average|variation] [--without-pyoxigraph]
CPU is user + system time of the process tree, the JVM included. Times in seconds; windows in ms.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical
from streamgauge.model.algebra import Select
from streamgauge.model.report import DueReport, View
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.spark.answers import answers
from streamgauge.spark.session import session
from streamgauge.workloads.weather import generate

SEED = 1430236906
WINDOWS = ((5000, 5000), (5000, 1000))
PREFIXES = (
    "PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#> "
    "PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#> "
)
OBSERVED = (
    "?obs{n} om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ; "
    "om-owl:result [om-owl:floatValue ?value{n}] . "
)
QUERIES = {
    "select": "SELECT ?sensor ?obs ?value WHERE { " + OBSERVED.format(n="") + "FILTER(?value > 50.0) }",
    "average": "SELECT (AVG(?value) AS ?avg) WHERE { " + OBSERVED.format(n="") + "}",
    "variation": "SELECT ?sensor ?obs1 ?obs2 WHERE { "
    + OBSERVED.format(n="1")
    + OBSERVED.format(n="2")
    + "FILTER(?value1 - ?value2 > 60.0) }",
}


def due_reports(size: int, slide: int, end: int) -> list[DueReport]:
    closes = range(size, end + 1, slide)
    return [DueReport(close, (View(close - size, close, close - size, close - 1, 1 << 62),)) for close in closes]


def cpu() -> float:
    spent = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        times = process.cpu_times()
        spent += times.user + times.system + times.children_user + times.children_system
    return spent


@contextmanager
def measured(name: str, found: dict[str, tuple[float, float]]) -> Iterator[None]:
    before, start = cpu(), time.monotonic()
    yield
    found[name] = (cpu() - before, time.monotonic() - start)
    print(f"  {name:12} CPU {found[name][0]:8.2f} s   wall {found[name][1]:8.2f} s", flush=True)


def by_pyoxigraph(path: Path, due: list[DueReport], query: Select, rows: Callable[[int, tuple], None]) -> None:
    table = pq.read_table(path, columns=["time", "subject", "predicate", "object"])
    text, canonical = sparql(query), Canonical()
    for index, report in enumerate(due):
        inside = pc.and_(
            pc.greater_equal(table["time"], report.views[0].first), pc.less_equal(table["time"], report.last)
        )
        window = table.filter(inside)
        columns = [window.column(name).to_pylist() for name in ("subject", "predicate", "object")]
        lines = "\n".join(f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True))
        store = ox.Store()
        store.bulk_extend(ox.parse(lines.encode(), format=ox.RdfFormat.N_TRIPLES))
        for row in store.query(text):
            rows(index, tuple(canonical.term(row[name]) for name in query.variables))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stations", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--query", choices=QUERIES, default="select")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--without-pyoxigraph", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="oracle-"))
    try:
        compare(folder, arguments)
    finally:
        shutil.rmtree(folder)


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    spark = session("local[2]", memory="8g", shuffle=4)
    size = {"stations": arguments.stations, "duration": f"{arguments.seconds}s"}
    generate(spark, SEED, **size).write.parquet(str(folder / "stream"))
    stream = spark.read.parquet(str(folder / "stream"))
    query = parse_sparql(PREFIXES + QUERIES[arguments.query])
    assert isinstance(query, Select)
    print(f"{arguments.query}: {stream.count()} triples")
    for size_ms, slide in WINDOWS:
        due = due_reports(size_ms, slide, arguments.seconds * 1000)
        print(f"{size_ms} ms / {slide} ms: {len(due)} windows")
        found: dict[str, tuple[float, float]] = {}
        for attempt in range(arguments.repeat):
            with measured(f"spark {attempt + 1}", found):
                answers(spark, stream, due, query).write.mode("overwrite").parquet(str(folder / "answers"))
        print(f"  peak {peak():.0f} MB, {spark.read.parquet(str(folder / 'answers')).count()} rows")
        if not arguments.without_pyoxigraph:
            check(folder, due, query, found, arguments)
    spark.stop()


def check(
    folder: Path,
    due: list[DueReport],
    query: Select,
    found: dict[str, tuple[float, float]],
    arguments: argparse.Namespace,
) -> None:
    bag: Counter[int] = Counter()

    def count(index: int, row: tuple) -> None:
        bag[hash((index, row))] += 1

    with measured("pyoxigraph", found):
        by_pyoxigraph(folder / "stream", due, query, count)
    columns = pq.read_table(folder / "answers").to_pydict().values()
    for report, *row in zip(*columns, strict=True):
        bag[hash((report, tuple(row)))] -= 1
    if arguments.query != "average":
        print("  same answers" if not any(bag.values()) else f"  DIFFERENT: {sum(map(abs, bag.values()))} rows")
    best = min(spent for name, (spent, _) in found.items() if name.startswith("spark"))
    print(f"  pyoxigraph / spark: CPU {found['pyoxigraph'][0] / best:.1f}x (first {ratio(found):.1f}x)")


def ratio(found: dict[str, tuple[float, float]]) -> float:
    return found["pyoxigraph"][0] / found["spark 1"][0]


def peak() -> float:
    """Resident memory of the process tree now, in MB."""
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(process.memory_info().rss for process in tree) / 1e6


if __name__ == "__main__":
    main()
