"""`live` as fast as it takes elements, against re-evaluating each report with pyoxigraph; both sides in one run.

python benchmarks/live.py [--stations 10000] [--seconds 30] [--queries select average variation] [--samples 3]
python benchmarks/live.py --many 1 10 100 [--stations 1000]     several queries in one session against one session each
python benchmarks/live.py --soak 30                     minutes of stream time, 7 triples per station and second
YABench's stream (7 triples an observation). pyoxigraph evaluates ``samples`` reports, spread over the run: loading the
content, answering, reading all rows; its total is the mean times the number of reports (an extrapolation).
gc.freeze() is called on the elements before each run, the collector stays on. Rates are triples per second of the
process's CPU time (wall time in brackets) with the elements in memory, as JSON lines (what an engine in a process of
its own reads), and as N-Triples.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import psutil
import pyoxigraph as ox

from streamgauge.engines import live
from streamgauge.formats.canonical import Canonical
from streamgauge.formats.lines import decode_input, encode_element
from streamgauge.formats.stream import elements
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.semantics.profiles import CQELS, CSPARQL
from streamgauge.spark.session import session
from streamgauge.workloads.weather import STREAM, generate

SEED = 1430236906
ONTOLOGY = "http://knoesis.wright.edu/ssw/ont/"
PREFIXES = f"PREFIX om-owl: <{ONTOLOGY}sensor-observation.owl#> PREFIX weather: <{ONTOLOGY}weather.owl#> "
OBSERVED = (
    "?obs{n} om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ; "
    "om-owl:result ?res{n} . ?res{n} om-owl:floatValue ?value{n} . "
)
QUERIES = {
    "select": "SELECT ?sensor ?obs ?value { " + OBSERVED.format(n="") + "FILTER(?value > 50.0) }",
    "average": "SELECT (AVG(?value) AS ?avg) { " + OBSERVED.format(n="") + "}",
    "variation": "SELECT ?sensor ?obs1 ?obs2 { "
    + OBSERVED.format(n=1)
    + OBSERVED.format(n=2)
    + "FILTER(?value1 - ?value2 > 60.0) }",
}
RUNS = (
    ("close 5 s/5 s", CSPARQL, Window(5000, 5000)),
    ("close 5 s/1 s", CSPARQL, Window(5000, 1000)),
    ("change 5 s/5 s", replace(CQELS, name="change", r2s=R2S.ISTREAM), Window(5000, 5000)),
)
Push = Callable[[StreamElement], None]


@dataclass(frozen=True)
class Spent:
    """What one run took, seconds, and what it answered."""

    cpu: float
    wall: float
    answers: list[Answer]

    def rate(self, triples: int) -> str:
        """Triples per second of CPU, and of wall time."""
        return f"{triples / self.cpu:11,.0f} ({triples / self.wall:9,.0f})"


def stream(stations: int, seconds: int) -> list[StreamElement]:
    spark = session("local[2]", memory="2g", shuffle=2)
    with tempfile.TemporaryDirectory() as folder:
        table = generate(spark, SEED, stations=stations, interval="1s", duration=f"{seconds}s")
        table.write.parquet(f"{folder}/stream")
        spark.stop()
        return list(elements(f"{folder}/stream"))


def asked(name: str, window: Window) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(PREFIXES + QUERIES[name]), (StreamWindow(STREAM, window),))


def run(query: ContinuousQuery, semantics: Semantics, feed: Callable[[Push], int]) -> Spent:
    """One run; ``feed`` pushes everything and returns how far time came."""
    answers: list[Answer] = []
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), time.process_time()
    running = live.start(query, semantics, answers.append)
    running.advance(feed(running.push))
    spent = Spent(time.process_time() - cpu, time.perf_counter() - wall, answers)
    gc.unfreeze()
    return spent


def from_memory(fed: Sequence[StreamElement], push: Push) -> int:
    for element in fed:
        push(element)
    return fed[-1].time // 1000 * 1000


def from_lines(lines: Sequence[bytes], until: int, push: Push) -> int:
    for line in lines:
        element = decode_input(line)
        assert isinstance(element, StreamElement)
        push(element)
    return until


def from_ntriples(fed: Sequence[tuple[int, bytes]], until: int, push: Push) -> int:
    canonical = Canonical()
    for sequence, (time_, text) in enumerate(fed):
        added = canonical.triples(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
        push(StreamElement(STREAM, time_, sequence, added))
    return until


def reevaluation(query: ContinuousQuery, fed: Sequence[StreamElement], scopes: Sequence[tuple[int, int]]) -> float:
    """The mean CPU time of loading and answering these scopes [start, end) with pyoxigraph."""
    text, spent = sparql(query.form), 0.0
    for begin, end in scopes:
        inside = [element for element in fed if begin <= element.time < end]
        content = "\n".join(f"{s} {p} {o} ." for element in inside for s, p, o in element.added).encode()
        start = time.process_time()
        store = ox.Store()
        store.bulk_extend(ox.parse(content, format=ox.RdfFormat.N_QUADS))
        found = store.query(text)
        assert isinstance(found, ox.QuerySolutions)
        sum(1 for _ in found)
        spent += time.process_time() - start
    return spent / len(scopes)


def compare(names: Sequence[str], fed: Sequence[StreamElement], samples: int) -> None:
    """Every query under every run, beside pyoxigraph."""
    lines = [encode_element(element) for element in fed]
    size = sum(len(element.added) for element in fed)
    print(f"{len(fed):,} elements, {size:,} triples")
    print("query      run              triples/s memory (wall)  from lines (wall)       from N-Triples (wall)", end="")
    print("   reports       rows pyoxigraph CPU s  ratio")
    for name in names:
        for label, semantics, window in RUNS:
            line(f"{name:10} {label:14}", asked(name, window), semantics, fed, lines, samples, size)


def line(
    title: str,
    query: ContinuousQuery,
    semantics: Semantics,
    fed: Sequence[StreamElement],
    lines: Sequence[bytes],
    samples: int,
    size: int,
) -> None:
    spent = run(query, semantics, partial(from_memory, fed))
    answers = spent.answers
    closes = semantics is CSPARQL
    candidates = len(answers) if closes else len({element.time for element in fed})
    scopes = [answer.scope for answer in answers if answer.scope]
    picked = [scopes[len(scopes) * (2 * at + 1) // (2 * samples)] for at in range(samples)]
    chosen = picked if closes else [(start, end + 1) for start, end in picked]
    peer = reevaluation(query, fed, chosen) * candidates
    rows = sum(len(answer.added) for answer in answers)
    until = fed[-1].time // 1000 * 1000
    coded = run(query, semantics, partial(from_lines, lines, until))
    texts = [(element.time, "".join(f"{s} {p} {o} .\n" for s, p, o in element.added).encode()) for element in fed]
    parsed = run(query, semantics, partial(from_ntriples, texts, until))
    print(
        f"{title} {spent.rate(size)} {coded.rate(size)} {parsed.rate(size)}"
        f" {candidates:9,} {rows:10,} {peer:14,.1f} {peer / spent.cpu:7,.0f}",
        flush=True,
    )


def many(numbers: Sequence[int], fed: Sequence[StreamElement]) -> None:
    """Queries that differ in their threshold: in one session, and in a session each."""
    size = sum(len(element.added) for element in fed)
    print(f"{size:,} triples; CPU s of n queries in one session, and in a session each")
    for label, semantics, window in RUNS:
        for number in numbers:
            queries = [thresholded(100 * at / number, window) for at in range(number)]
            one = together([queries], semantics, fed)
            each = together([[query] for query in queries], semantics, fed)
            print(
                f"{label:14} {number:4} queries: one session {one:8.2f} ({size / one:9,.0f} triples/s), "
                f"a session each {each:8.2f}, {each / one:4.1f}x",
                flush=True,
            )


def thresholded(value: float, window: Window) -> ContinuousQuery:
    text = QUERIES["select"].replace("50.0", f"{value:.1f}")
    return ContinuousQuery(parse_sparql(PREFIXES + text), (StreamWindow(STREAM, window),))


def together(groups: Sequence[Sequence[ContinuousQuery]], semantics: Semantics, fed: Sequence[StreamElement]) -> float:
    """The CPU time of a session for each group of queries; answers are dropped."""
    gc.collect()
    gc.freeze()
    start = time.process_time()
    for group in groups:
        running = live.start_all([(query, semantics, lambda _answer: None) for query in group])
        running.advance(from_memory(fed, running.push))
    gc.unfreeze()
    return time.process_time() - start


def soak(stations: int, minutes: int) -> None:
    """Ever-new observations, one a second and station; what the process holds after each minute of stream time."""
    process = psutil.Process()
    for label, semantics, window in RUNS:
        running = live.start(asked("select", window), semantics, lambda _answer: None)
        for minute in range(minutes):
            cpu = 0.0
            for second in range(minute * 60, minute * 60 + 60):
                fed = list(observations(stations, second))
                start = time.process_time()
                for element in fed:
                    running.push(element)
                cpu += time.process_time() - start
            resident = process.memory_info().rss >> 20
            print(
                f"{label:14} minute {minute + 1:3} {420 * stations / cpu:10,.0f} triples/s, {resident:,} MB", flush=True
            )


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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--stations", type=int, default=10_000)
    options.add_argument("--seconds", type=int, default=30)
    options.add_argument("--queries", nargs="*", choices=sorted(QUERIES), default=list(QUERIES))
    options.add_argument("--samples", type=int, default=3)
    options.add_argument("--many", nargs="*", type=int, metavar="QUERIES")
    options.add_argument("--soak", type=int, metavar="MINUTES")
    given = options.parse_args()
    if given.soak:
        soak(given.stations, given.soak)
        return
    fed = stream(given.stations, given.seconds)
    if given.many:
        many(given.many, fed)
    else:
        compare(given.queries, fed, given.samples)


if __name__ == "__main__":
    main()
