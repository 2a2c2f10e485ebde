"""`live` as fast as it takes elements, against re-evaluating each report with pyoxigraph; both sides in one run.

python benchmarks/live.py [--stations 10000] [--seconds 30] [--queries select average variation] [--samples 3]
YABench's stream (7 triples an observation). pyoxigraph evaluates ``samples`` reports, spread over the run: loading the
content, answering, reading all rows; its total is the mean times the number of reports (an extrapolation).
gc.freeze() is called on the elements before each run, the collector stays on. Times in seconds, rates in triples per
second of wall time, with the elements in memory, as JSON lines (what an engine in a process of its own reads), and as
N-Triples.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyoxigraph as ox

from streamgauge.compute.spark.session import session
from streamgauge.engines import live
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.semantics.profiles import CQELS, CSPARQL
from streamgauge.wire.canonical import Canonical
from streamgauge.wire.lines import decode_input, encode_element
from streamgauge.wire.stream import elements
from streamgauge.workloads.weather import STREAM, generate

SEED = 1430236906
PREFIXES = (
    "PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#> "
    "PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#> "
)
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


def stream(stations: int, seconds: int) -> list[StreamElement]:
    spark = session("local[2]", memory="2g", shuffle=2)
    with tempfile.TemporaryDirectory() as folder:
        table = generate(spark, SEED, stations=stations, interval="1s", duration=f"{seconds}s")
        table.write.parquet(f"{folder}/stream")
        spark.stop()
        return list(elements(f"{folder}/stream"))


def run(query: ContinuousQuery, semantics: Semantics, feed: Callable[[Callable[[StreamElement], None]], int]) -> float:
    """The wall time of one run; ``feed`` pushes everything and returns how far time came."""
    answers: list[Answer] = []
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    running = live.start(query, semantics, answers.append)
    running.advance(feed(running.push))
    spent = time.perf_counter() - start
    gc.unfreeze()
    run.answers = answers  # type: ignore[attr-defined]
    return spent


def from_memory(fed: Sequence[StreamElement], push: Callable[[StreamElement], None]) -> int:
    for element in fed:
        push(element)
    return fed[-1].time // 1000 * 1000


def from_lines(lines: Sequence[bytes], until: int, push: Callable[[StreamElement], None]) -> int:
    for line in lines:
        element = decode_input(line)
        assert isinstance(element, StreamElement)
        push(element)
    return until


def from_ntriples(fed: Sequence[tuple[int, bytes]], until: int, push: Callable[[StreamElement], None]) -> int:
    canonical = Canonical()
    for sequence, (time_, text) in enumerate(fed):
        added = canonical.triples(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
        push(StreamElement(STREAM, time_, sequence, added))
    return until


def reevaluation(query: ContinuousQuery, fed: Sequence[StreamElement], scopes: Sequence[tuple[int, int]]) -> float:
    """The mean time of loading and answering these scopes [start, end) with pyoxigraph."""
    text, spent = sparql(query.form), 0.0
    for begin, end in scopes:
        inside = [element for element in fed if begin <= element.time < end]
        content = "\n".join(f"{s} {p} {o} ." for element in inside for s, p, o in element.added).encode()
        start = time.perf_counter()
        store = ox.Store()
        store.bulk_extend(ox.parse(content, format=ox.RdfFormat.N_QUADS))
        found = store.query(text)
        assert isinstance(found, ox.QuerySolutions)
        sum(1 for _ in found)
        spent += time.perf_counter() - start
    return spent / len(scopes)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--stations", type=int, default=10_000)
    options.add_argument("--seconds", type=int, default=30)
    options.add_argument("--queries", nargs="*", choices=sorted(QUERIES), default=list(QUERIES))
    options.add_argument("--samples", type=int, default=3)
    given = options.parse_args()
    fed = stream(given.stations, given.seconds)
    lines = [encode_element(element) for element in fed]
    size = sum(len(element.added) for element in fed)
    print(f"{len(fed):,} elements, {size:,} triples")
    print("query      run             live s   triples/s  from lines  from N-Triples   reports       rows", end="")
    print("   pyoxigraph s   ratio")
    for name in given.queries:
        for label, semantics, window in RUNS:
            query = ContinuousQuery(parse_sparql(PREFIXES + QUERIES[name]), (StreamWindow(STREAM, window),))
            line(f"{name:10} {label:14}", query, semantics, fed, lines, given.samples, size)


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
    answers: list[Answer] = run.answers  # type: ignore[attr-defined]
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
        f"{title} {spent:8.2f} {size / spent:11,.0f} {size / coded:11,.0f} {size / parsed:15,.0f}"
        f" {candidates:9,} {rows:10,} {peer:14,.1f} {peer / spent:7,.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
