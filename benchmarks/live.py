"""Cost of `live` beside pyoxigraph, as windows, stations and queries grow, in the query service, and its delay.

python -m benchmarks.live [--parts peer windows stations queries service delay] [--stations 1000] [--seconds 30] ...

All parts run YABench's queries on its stream: every station reports once a second, 7 triples an observation. Rates are
triples a second of this process's CPU time, elements in memory unless said.
`peer`: every query beside re-evaluation by pyoxigraph, from memory, from JSON lines (what an engine in a process of its
own reads) and from N-Triples, wall time in brackets. pyoxigraph evaluates ``--samples`` reports, spread over the run:
loading the content, answering, reading all rows; its total is the mean times the number of reports (an extrapolation).
`windows`, `stations`: select as the window and the number of stations grow, about ``--triples`` in all.
`queries`: queries that differ in their threshold, in one session and in a session each.
`service`: equal queries in the core of the query service, without HTTP, CPU us an element: answered together (all were
registered before the first element), or each by a session of its own (an element lies between two registrations).
`delay`: `live` behind the pipe in a process of its own, first as fast as it takes elements, which gives triples a
second of wall time, then paced at half of that: received less due for every report, the feeder's lateness included.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import pyoxigraph as ox

from benchmarks.measure import Cost, OneOf, options, own_cost, weather_text, write_weather
from benchmarks.results import ResultTable
from benchmarks.stations import PREFIXES, QUERIES, RUNS, observations, window_query
from streamgauge.engines import live, load
from streamgauge.formats.lines import decode_input, encode_element
from streamgauge.formats.ntriples import NTriplesReader
from streamgauge.formats.stream import ahead, elements
from streamgauge.harness.systems.pipe import RunLimits, program, record
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.query import parse, parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.semantics.profiles import CSPARQL
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.suites.experiments.capacity import feeder_p99
from streamgauge.workloads.weather import STREAM

WINDOWS_S = (1, 5, 20, 60)
STATIONS = (10, 100, 1000, 10_000)
BATCH = 500
TOGETHER = 100
"""Elements whose N-Triples are read together: texts of 100 KB stay in the cache of a core."""
WAIT_S = 600.0
CLOSE, SLIDING, CHANGE = (semantics for _, semantics, _ in RUNS)

Push = Callable[[StreamElement], None]


def run(query: ContinuousQuery, semantics: Semantics, feed: Callable[[Push], int]) -> tuple[Cost, list[Answer]]:
    """The cost and the answers of one run; ``feed`` pushes everything and returns how far time came."""
    answers: list[Answer] = []
    with own_cost() as spent:
        session = live.start(query, semantics, answers.append)
        session.advance(feed(session.push))
    return spent, answers


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
    reader, sequence = NTriplesReader(), count()
    for at in range(0, len(fed), TOGETHER):
        several = fed[at : at + TOGETHER]
        for (time, _), added in zip(several, reader.several([text for _, text in several]), strict=True):
            push(StreamElement(STREAM, time, next(sequence), added))
    return until


def reevaluation(query: ContinuousQuery, fed: Sequence[StreamElement], scopes: Sequence[tuple[int, int]]) -> float:
    """The mean CPU time of loading and answering these scopes [start, end) with pyoxigraph."""
    text, spent = sparql(query.form), 0.0
    for begin, end in scopes:
        inside = [element for element in fed if begin <= element.time < end]
        content = "\n".join(f"{s} {p} {o} ." for element in inside for s, p, o in element.added).encode()
        with own_cost() as cost:
            store = ox.Store()
            store.bulk_extend(ox.parse(content, format=ox.RdfFormat.N_QUADS))
            solutions = store.query(text)
            assert isinstance(solutions, ox.QuerySolutions)
            sum(1 for _ in solutions)
        spent += cost.cpu
    return spent / len(scopes)


def peer(arguments: argparse.Namespace, table: ResultTable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        size = {"stations": arguments.stations, "interval": "1s", "duration": f"{arguments.seconds}s"}
        fed = list(elements(write_weather(Path(folder) / "stream", **size)))
    lines = [encode_element(element) for element in fed]
    for name in arguments.queries:
        for label, semantics, window in RUNS:
            query = window_query(name, window.size, window.slide)
            table.add(name, label, *_beside_pyoxigraph(query, semantics, fed, lines, arguments.samples))


def _beside_pyoxigraph(
    query: ContinuousQuery, semantics: Semantics, fed: Sequence[StreamElement], lines: Sequence[bytes], samples: int
) -> Iterator[str]:
    """The cells of a query: rates, reports, rows, and pyoxigraph's cost."""
    spent, answers = run(query, semantics, partial(from_memory, fed))
    closes = semantics is CSPARQL
    candidates = len(answers) if closes else len({element.time for element in fed})
    scopes = [answer.scope for answer in answers if answer.scope]
    picked = [scopes[len(scopes) * (2 * at + 1) // (2 * samples)] for at in range(samples)]
    chosen = picked if closes else [(start, end + 1) for start, end in picked]
    again = reevaluation(query, fed, chosen) * candidates
    until = fed[-1].time // 1000 * 1000
    texts = [(element.time, "".join(f"{s} {p} {o} .\n" for s, p, o in element.added).encode()) for element in fed]
    coded, _ = run(query, semantics, partial(from_lines, lines, until))
    parsed, _ = run(query, semantics, partial(from_ntriples, texts, until))
    size = sum(len(element.added) for element in fed)
    yield from (f"{size / cost.cpu:,.0f} ({size / cost.wall:,.0f})" for cost in (spent, coded, parsed))
    rows = sum(len(answer.added) for answer in answers)
    yield from (f"{candidates:,}", f"{rows:,}", f"{again:,.1f}", f"{again / spent.cpu:,.0f}x")


def stream(stations: int, triples: int, least: int = 15) -> list[StreamElement]:
    """About so many triples of so many stations, ``least`` seconds of it at least."""
    seconds = max(least, triples // (7 * stations))
    return [element for second in range(seconds) for element in observations(stations, second)]


def _rate(window: Window, semantics: Semantics, fed: Sequence[StreamElement]) -> str:
    spent, _ = run(window_query("select", window.size, window.slide), semantics, partial(from_memory, fed))
    return f"{7 * len(fed) / spent.cpu:,.0f}"


def windows(arguments: argparse.Namespace, table: ResultTable) -> None:
    runs = (("close, tumbling", CLOSE, None), ("close, slide 1 s", SLIDING, 1), ("change", CHANGE, None))
    for label, semantics, slide in runs:
        for seconds in WINDOWS_S:
            window = Window(seconds * 1000, (slide or seconds) * 1000)
            rate = _rate(window, semantics, stream(1000, arguments.triples, 3 * seconds))
            table.add(label, f"{seconds} s", f"{seconds * 7000:,}", rate)


def stations(arguments: argparse.Namespace, table: ResultTable) -> None:
    for label, semantics, window in RUNS:
        for number in STATIONS:
            table.add(label, f"{number:,}", _rate(window, semantics, stream(number, arguments.triples)))


def queries(arguments: argparse.Namespace, table: ResultTable) -> None:
    fed = stream(arguments.stations, arguments.triples)
    for label, semantics, window in RUNS:
        for number in arguments.many:
            several = [thresholded(100 * at / number, window) for at in range(number)]
            one = together([several], semantics, fed)
            shared = together([[query] for query in several], semantics, fed)
            rate = 7 * len(fed) / one
            table.add(label, number, f"{rate:,.0f}", f"{rate * number:,.0f}", f"{one:.2f}", f"{shared:.2f}",
                      f"{shared / one:.1f}x")  # fmt: skip


def thresholded(value: float, window: Window) -> ContinuousQuery:
    text = QUERIES["select"].replace("50.0", f"{value:.1f}")
    return ContinuousQuery(parse_sparql(PREFIXES + text), (StreamWindow(STREAM, window),))


def together(groups: Sequence[Sequence[ContinuousQuery]], semantics: Semantics, fed: Sequence[StreamElement]) -> float:
    """The CPU time of a session for each group of queries; answers are dropped."""
    with own_cost() as spent:
        for group in groups:
            session = live.start_all([(query, semantics, lambda _answer: None) for query in group])
            session.advance(from_memory(fed, session.push))
    return spent.cpu


def service(arguments: argparse.Namespace, table: ResultTable) -> None:
    between = list(observations(max(arguments.many), 0))
    fed = [observation for second in range(1, 13) for observation in observations(200, second)]
    for slide in (5, 1):
        for number in arguments.many:
            shared, own = (
                min(_microseconds(number, slide, fed, count) for _ in range(arguments.repeat))
                for count in ((), between)
            )
            ratio = f"{own / shared:.1f}x" if number > 1 else ""
            table.add(f"5 s/{slide} s", number, f"{shared:,.1f}", f"{own:,.1f}", ratio)


def _microseconds(number: int, slide: int, fed: Sequence[StreamElement], between: Sequence[StreamElement]) -> float:
    """CPU per element with so many queries; ``between`` are published one by one between their registrations."""
    service = Queries(load, ("live",), QueryLimits(waiting=len(fed) + 1))
    registration = QueryRegistration(weather_text("select", WSIZE="5s", WSLIDE=f"{slide}s", TEMP="50"), dialect="rspql")
    service.register(registration)
    for element in between[: number - 1]:
        service.publish(STREAM, [element])
        service.register(registration)
    for _ in range(number - 1 - len(between)):
        service.register(registration)
    service.settle(WAIT_S)
    with own_cost() as spent:
        for at in range(0, len(fed), BATCH):
            service.publish(STREAM, fed[at : at + BATCH])
            service.settle(WAIT_S)
    service.close("measured")
    return spent.cpu / len(fed) * 1e6


def delay(arguments: argparse.Namespace, table: ResultTable) -> None:
    for label, semantics in (("close 5 s/5 s", CLOSE), ("change 5 s/5 s", CHANGE)):
        for number in (1000, 10_000):
            fed = stream(number, arguments.triples, 30)
            fast = record(_header(semantics, fed, None), program("live"), fed, RunLimits())
            wall = (max(answer.received for answer in fast.answers) - fast.header.started) / 1e9
            carried = 7 * len(fed) / wall
            factor = carried / 2 / (7 * number)
            with ahead(iter(fed)) as slowly:
                paced = record(_header(semantics, fed, factor), program("live"), slowly, RunLimits())
            times = [percentile(_delays(paced), share) or 0.0 for share in (50, 99, 100)]
            late = (f"{milliseconds:,.1f}" for milliseconds in (*times, feeder_p99(paced)))
            table.add(label, f"{number:,}", f"{carried:,.0f}", f"{factor:.1f}", *late)


def _header(semantics: Semantics, fed: Sequence[StreamElement], factor: float | None) -> RunHeader:
    text = weather_text("select", WSIZE="5s", WSLIDE="5s", TEMP="50.0")
    end = (fed[-1].time // 1000 + 1) * 1000
    return RunHeader("live", parse(text), text, "rspql", semantics, end, 0, factor=factor)


def _delays(run: Run) -> list[float]:
    """Received less due, ms, for every answer: each names its instant."""
    start, factor = run.header.started, run.header.factor or 1.0
    return [(answer.received - start) / 1e6 - (answer.instant or 0) / factor for answer in run.answers]


PARTS = {
    "peer": (peer, "live", ("query", "run", "triples/s in memory (wall)", "from JSON lines", "from N-Triples",
                            "reports", "rows", "pyoxigraph, CPU s", "pyoxigraph / live, CPU")),
    "windows": (windows, "scale_windows", ("report", "window", "triples held", "triples/s of CPU")),
    "stations": (stations, "scale_stations", ("report", "stations", "triples/s of CPU")),
    "queries": (queries, "scale_queries", ("report", "queries", "triples/s of CPU", "triples times queries",
                                           "one session, CPU s", "a session each", "ratio")),
    "service": (service, "serving", ("window", "queries", "together, us", "each its own, us", "ratio")),
    "delay": (delay, "scale_delay", ("report", "stations", "carries, triples/s of wall", "pace", "delay p50 ms",
                                     "p99 ms", "max ms", "feeder p99 ms")),
}  # fmt: skip


def main() -> None:
    arguments = options(
        __doc__, parts=OneOf(PARTS), stations=1000, seconds=30, queries=OneOf(QUERIES), samples=3, triples=700_000,
        many=(1, 10, 100), repeat=3,
    )  # fmt: skip
    for name in arguments.parts:
        part, kept, columns = PARTS[name]
        with ResultTable(kept, columns) as table:
            part(arguments, table)


if __name__ == "__main__":
    main()
