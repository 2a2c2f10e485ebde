"""Cost of `live` as windows, queries and stations grow, and its delay at half of the load that it carries.

python -m benchmarks.scale [--triples 700000] [--parts windows stations queries delay]

Experiment 1's query (select) on the stream of ``benchmarks.live``: every station reports once a second, 7 triples each.
Triples a second are of this process's CPU time, the elements in memory. Windows are tumbling or slide by a second;
stations vary at the same number of triples; queries that differ in their threshold share one session. The delay is
`live`'s behind the pipe in a process of its own: first as fast as it takes elements, which gives triples a second of
wall time, then paced at half of that, received less due for every report. The feeder's lateness is part of it.
"""

import argparse
from collections.abc import Sequence

from benchmarks.live import from_memory, run, thresholded, together
from benchmarks.measure import RUNS, observations, window_query
from benchmarks.results import ResultTable
from benchmarks.soak import task
from streamgauge.harness.systems.pipe import RunLimits, program, record
from streamgauge.model.element import StreamElement
from streamgauge.model.query import Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.query import parse
from streamgauge.suites.experiments.capacity import feeder_p99, percentile
from streamgauge.suites.experiments.plan import ahead

WINDOWS_S = (1, 5, 20, 60)
STATIONS = (10, 100, 1000, 10_000)
QUERIES = (1, 10, 100)
CLOSE, SLIDING, CHANGE = (semantics for _, semantics, _ in RUNS)


def stream(stations: int, triples: int, least: int = 15) -> list[StreamElement]:
    """About so many triples of so many stations, ``least`` seconds of it at least."""
    seconds = max(least, triples // (7 * stations))
    return [element for second in range(seconds) for element in observations(stations, second)]


def windows(triples: int, table: ResultTable) -> None:
    for label, semantics, slide in (
        ("close, tumbling", CLOSE, None),
        ("close, slide 1 s", SLIDING, 1),
        ("change", CHANGE, None),
    ):
        for seconds in WINDOWS_S:
            fed = stream(1000, triples, 3 * seconds)
            window = Window(seconds * 1000, (slide or seconds) * 1000)
            spent = run(
                window_query("select", window.size, window.slide),
                semantics,
                lambda push, fed=fed: from_memory(fed, push),
            )
            table.add(label, f"{seconds} s", f"{seconds * 7000:,}", f"{7 * len(fed) / spent.cpu:,.0f}")


def stations(triples: int, table: ResultTable) -> None:
    for label, semantics, window in RUNS:
        for number in STATIONS:
            fed = stream(number, triples)
            spent = run(
                window_query("select", window.size, window.slide),
                semantics,
                lambda push, fed=fed: from_memory(fed, push),
            )
            table.add(label, f"{number:,}", f"{7 * len(fed) / spent.cpu:,.0f}")


def queries(triples: int, table: ResultTable) -> None:
    fed = stream(1000, triples)
    for label, semantics, window in RUNS:
        for number in QUERIES:
            several = [thresholded(100 * at / number, window) for at in range(number)]
            cpu = together([several], semantics, fed)
            rate = 7 * len(fed) / cpu
            table.add(label, number, f"{rate:,.0f}", f"{rate * number:,.0f}")


def header(semantics: Semantics, fed: Sequence[StreamElement], factor: float | None) -> RunHeader:
    text = task(semantics).query
    end = (fed[-1].time // 1000 + 1) * 1000
    return RunHeader("live", parse(text), text, "rspql", semantics, end, 0, factor=factor)


def delay(triples: int, table: ResultTable) -> None:
    for label, semantics in (("close 5 s/5 s", CLOSE), ("change 5 s/5 s", CHANGE)):
        for number in (1000, 10_000):
            fed = stream(number, triples, 30)
            fast = record(header(semantics, fed, None), program("live"), fed, RunLimits())
            wall = (max(answer.received for answer in fast.answers) - fast.header.started) / 1e9
            carried = 7 * len(fed) / wall
            factor = carried / 2 / (7 * number)
            with ahead(iter(fed), factor) as given:
                paced = record(header(semantics, fed, factor), program("live"), given, RunLimits())
            p50, p99, most = (percentile(delays(paced), share) for share in (50, 99, 100))
            late = (f"{each:,.1f}" for each in (p50, p99, most, feeder_p99(paced)))
            table.add(label, f"{number:,}", f"{carried:,.0f}", f"{factor:.1f}", *late)


def delays(run: Run) -> list[float]:
    """Received less due, ms, for every answer: each names its instant."""
    start, factor = run.header.started, run.header.factor or 1.0
    return [(each.received - start) / 1e6 - (each.instant or 0) / factor for each in run.answers]


PARTS = {
    "windows": (windows, ("report", "window", "triples held", "triples/s of CPU")),
    "stations": (stations, ("report", "stations", "triples/s of CPU")),
    "queries": (queries, ("report", "queries in one session", "triples/s of CPU", "triples times queries")),
    "delay": (
        delay,
        (
            "report",
            "stations",
            "carries, triples/s of wall",
            "pace",
            "delay p50 ms",
            "p99 ms",
            "max ms",
            "feeder p99 ms",
        ),
    ),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--triples", type=int, default=700_000)
    options.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    given = options.parse_args()
    for name in given.parts:
        part, columns = PARTS[name]
        print(f"\n{name}: {given.triples:,} triples")
        with ResultTable(f"scale_{name}", columns) as table:
            part(given.triples, table)


if __name__ == "__main__":
    main()
