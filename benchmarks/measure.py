"""Parts that benchmarks share: cost of processes with their children, percentiles, ports, and YABench's query."""

import gc
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import psutil

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CQELS, CSPARQL
from streamgauge.workloads.weather import STREAM

SEED: Final = 1430236906
ONTOLOGY: Final = "http://knoesis.wright.edu/ssw/ont/"
PREFIXES: Final = f"PREFIX om-owl: <{ONTOLOGY}sensor-observation.owl#> PREFIX weather: <{ONTOLOGY}weather.owl#> "
OBSERVED: Final = (
    "?obs{n} om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ; "
    "om-owl:result ?res{n} . ?res{n} om-owl:floatValue ?value{n} . "
)
QUERIES: Final = {
    "select": "SELECT ?sensor ?obs ?value { " + OBSERVED.format(n="") + "FILTER(?value > 50.0) }",
    "average": "SELECT (AVG(?value) AS ?avg) { " + OBSERVED.format(n="") + "}",
    "variation": "SELECT ?sensor ?obs1 ?obs2 { "
    + OBSERVED.format(n=1)
    + OBSERVED.format(n=2)
    + "FILTER(?value1 - ?value2 > 60.0) }",
}
"""The queries of YABench's experiments 1 to 3, without a window."""

RUNS = (
    ("close 5 s/5 s", CSPARQL, Window(5000, 5000)),
    ("close 5 s/1 s", CSPARQL, Window(5000, 1000)),
    ("change 5 s/5 s", replace(CQELS, name="change", r2s=R2S.ISTREAM), Window(5000, 5000)),
)
"""Ways to report, with semantics and window (ms)."""


def window_query(name: str, size: int, slide: int) -> ContinuousQuery:
    """One of the queries over a window of that size and slide, ms."""
    text = PREFIXES + QUERIES[name]
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, slide)),), sparql=text)


@dataclass
class Cost:
    """Wall and CPU seconds of a process with its children, and their peak resident memory (MB)."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0


def tree(process: psutil.Process | None = None) -> list[psutil.Process]:
    """A process, this one unless given, and all below it."""
    root = process or psutil.Process()
    return [root, *root.children(recursive=True)]


def cpu(process: psutil.Process | None = None, *, ended: bool = True) -> float:
    """User and system seconds of a process tree; ``ended`` counts children that are gone too."""
    times = [each.cpu_times() for each in tree(process)]
    return sum(each.user + each.system + ended * (each.children_user + each.children_system) for each in times)


def resident(process: psutil.Process | None = None) -> float:
    """Resident memory (MB) of a process tree now."""
    return sum(each.memory_info().rss for each in tree(process)) / 1e6


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of a block, in the object that is given, when the block has ended."""
    gc.collect()
    found, done = Cost(), threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            found.peak = max(found.peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    before, start = cpu(), time.monotonic()
    try:
        yield found
    finally:
        found.wall, found.cpu = time.monotonic() - start, cpu() - before
        done.set()
        watcher.join()


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def times_text(values: Sequence[float], form: str = ".1f") -> str:
    """Median, 99th percentile and maximum as text."""
    from streamgauge.oracle.judging.metrics import percentile

    p50, p99 = percentile(values, 50) or 0.0, percentile(values, 99) or 0.0
    return f"p50 {p50:{form}} p99 {p99:{form}} max {max(values, default=0.0):{form}}"


def observations(stations: int, second: int) -> Iterator[StreamElement]:
    """One second of the stream: every station once, at equal distances, values that go round."""
    for station in range(stations):
        time_ = second * 1000 + station * 1000 // stations
        me, result = (
            f"<http://knoesis.wright.edu/ssw/{kind}_A{station}_{time_}>" for kind in ("Observation", "Measure")
        )
        value = (station * 7 + second * 13) % 100
        yield StreamElement(STREAM, time_, second * stations + station, _triples(me, result, station, value))


def _triples(me: str, result: str, station: int, value: int) -> tuple[tuple[str, str, str], ...]:
    om, weather, rdf = (
        f"<{ONTOLOGY}sensor-observation.owl#",
        f"<{ONTOLOGY}weather.owl#",
        "<http://www.w3.org/1999/02/22-rdf",
    )
    return (
        (me, f"{rdf}-syntax-ns#type>", f"{weather}TemperatureObservation>"),
        (me, f"{om}observedProperty>", f"{weather}_AirTemperature>"),
        (me, f"{om}procedure>", f"<http://knoesis.wright.edu/ssw/System_A{station}>"),
        (me, f"{om}result>", result),
        (result, f"{rdf}-syntax-ns#type>", f"{om}MeasureData>"),
        (result, f"{om}floatValue>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#float>'),
        (result, f"{om}uom>", f"{weather}fahrenheit>"),
    )
