"""Durable queries: what a state costs while a query runs, and how long it takes to go on with one.

python -m benchmarks.durable [--parts checkpoint recovery service shapes] [--rate 20000] [--seconds 20] [--repeat 3]
    [--triples 5000000] [--queries 100]

`checkpoint`: another process writes a file of JSON lines at ``--rate`` elements a second, which is followed, with and
without a state in turn. Printed: CPU of this process, per cent of one core, and the longest transaction, for which
answers stand still. `recovery`: a watch of ``--queries`` alerts over one window is closed when that holds
``--triples``, and begun again in a process of its own: seconds until it takes elements, CPU until the next answers,
and its peak memory. `service`: the same of a service that has the queries. `shapes`: the same of a service with
five queries of each of 20 shapes; both services compare the digest of the next answers with those of the service that
goes on without a restart; with 5 million triples it took 5 GB.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median

from benchmarks.measure import own_cpu, run_parts
from benchmarks.results import ResultTable
from streamgauge.engines import load
from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.servers.durable.journal import SessionJournal
from streamgauge.servers.queries.durability import PROGRESS_S, NotDurableError, ServiceJournal
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.watching import watch

READINGS = "urn:readings"
SENSORS = 1000
BODY = 4000
"""Elements that are published together."""

WINDOW = (600, 60)
"""Size and slide (s) of the window that recovered queries have."""

ALERTS = (
    "SELECT ?s (AVG(?v) AS ?mean) FROM NAMED WINDOW <urn:w> ON <urn:readings> [RANGE PT%dS STEP PT%dS] "
    "WHERE { WINDOW <urn:w> { ?o <urn:sensor> ?s ; <urn:value> ?v ; <urn:place> ?p } } GROUP BY ?s HAVING(AVG(?v) > %d)"
)
SHAPES = (
    "SELECT ?s (AVG(?v) AS ?a) %s { ?o <urn:sensor> ?s ; <urn:value> ?v } } GROUP BY ?s HAVING(AVG(?v) > %d / 1.9)",
    "SELECT ?s (MAX(?v) AS ?a) %s { ?o <urn:sensor> ?s ; <urn:value> ?v } } GROUP BY ?s HAVING(MAX(?v) > %d)",
    "SELECT ?p (MIN(?v) AS ?a) %s { ?o <urn:place> ?p ; <urn:value> ?v FILTER(?v > %d) } } GROUP BY ?p",
    "SELECT ?s (COUNT(*) AS ?n) %s { ?o <urn:sensor> ?s } } GROUP BY ?s HAVING(COUNT(*) > %d)",
    "SELECT ?p (SUM(?v) AS ?a) %s { ?o <urn:place> ?p ; <urn:value> ?v } } GROUP BY ?p HAVING(SUM(?v) > 1000 * %d)",
    "SELECT ?o ?s ?v %s { ?o <urn:sensor> ?s ; <urn:value> ?v FILTER(?v > %d) } }",
    "SELECT DISTINCT ?s %s { ?o <urn:sensor> ?s ; <urn:value> ?v FILTER(?v = %d) } }",
    "SELECT ?p (COUNT(DISTINCT ?s) AS ?n) %s { ?o <urn:place> ?p ; <urn:sensor> ?s ; <urn:value> %d } } GROUP BY ?p",
    "ASK %s { ?o <urn:sensor> <urn:s7> ; <urn:value> ?v FILTER(?v > %d) } }",
    "CONSTRUCT { ?s <urn:above> ?v } %s { ?o <urn:sensor> ?s ; <urn:value> ?v FILTER(?v > %d) } }",
    "SELECT ?o ?p %s { ?o <urn:value> %d OPTIONAL { ?o <urn:place> ?p FILTER(?p = <urn:p7>) } } }",
    "SELECT ?o %s { ?o <urn:value> %d FILTER NOT EXISTS { ?o <urn:place> <urn:p7> } } }",
    "SELECT ?o ?s %s { ?o <urn:sensor> ?s ; <urn:value> %d MINUS { ?o <urn:place> <urn:p7> } } }",
    "SELECT ?o %s { { ?o <urn:value> %d } UNION { ?o <urn:place> <urn:p7> ; <urn:sensor> <urn:s7> } } }",
    "SELECT ?o ?v %s { ?o <urn:value> ?v FILTER(?v < %d) } } ORDER BY DESC(?v) ?o LIMIT 10",
    "SELECT ?o ?f %s { ?o <urn:value> ?v BIND(?v * 1.8 + 32 AS ?f) FILTER(?f > 1.8 * %d + 32) } }",
    "SELECT ?o ?s %s { VALUES ?s { <urn:s1> <urn:s2> } ?o <urn:sensor> ?s ; <urn:value> ?v FILTER(?v > %d) } }",
    "SELECT ?o %s { ?o <urn:value> ?v FILTER(?v IN (1, 2, %d)) } }",
    'SELECT ?o ?s %s { ?o <urn:sensor> ?s ; <urn:value> %d FILTER(STRENDS(STR(?s), "7")) } }',
    "SELECT ?o ?w %s { ?o <urn:place> <urn:p7> ; <urn:value> ?w . FILTER(?w > %d) } }",
)
"""Twenty shapes of alerts, each with a bound."""

WRITER = """
import sys, time
from benchmarks.durable import lines
rate, seconds = int(sys.argv[2]), int(sys.argv[3])
begun = time.monotonic()
with open(sys.argv[1], "ab", buffering=0) as file:
    for at, tick in enumerate(lines(rate, 20 * seconds, 20)):
        time.sleep(max(0.0, begun + at / 20 - time.monotonic()))
        file.write(tick)
"""


def reading(number: int, time_ms: int) -> StreamElement:
    """A reading of a sensor in three triples, as it is written in many systems: a node of its own."""
    node = f"<urn:o{number}>"
    value = f'"{number * 7919 % 997}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    triples = ((node, "<urn:sensor>", f"<urn:s{number % SENSORS}>"), (node, "<urn:value>", value))
    return StreamElement(READINGS, time_ms, number, (*triples, (node, "<urn:place>", f"<urn:p{number % 50}>")))


def lines(rate: int, ticks: int, per_second: int) -> Iterator[bytes]:
    """The lines of each of so many ticks."""
    for tick in range(ticks):
        numbers = range(tick * rate // per_second, (tick + 1) * rate // per_second)
        yield b"".join([encode_element(reading(number, number * 1000 // rate)) for number in numbers])


@contextmanager
def slow_writes() -> Iterator[list[float]]:
    """The wall seconds of each transaction of a state."""
    write, seconds = SessionJournal.write, list[float]()

    def timed(journal: SessionJournal, change: object) -> None:
        begun = time.monotonic()
        write(journal, change)  # type: ignore[arg-type]
        seconds.append(time.monotonic() - begun)

    SessionJournal.write = timed  # type: ignore[method-assign, assignment]
    try:
        yield seconds
    finally:
        SessionJournal.write = write  # type: ignore[method-assign]


def followed(arguments: argparse.Namespace, folder: Path, *, durable: bool) -> tuple[float, list[float], int]:
    """CPU seconds of a second of the stream, wall seconds of each transaction, bytes of the state."""
    source, state = folder / "readings.jsonl", folder / "state"
    source.write_bytes(b"")
    words = [sys.executable, "-c", WRITER, str(source), str(arguments.rate), str(arguments.seconds)]
    kept = state if durable else None
    with slow_writes() as writes, watch(ALERTS % (2, 1, 500), f"{source}?follow=1", state=kept) as answers:
        writer, spent, begun = subprocess.Popen(words), own_cpu(), 0
        for answer in answers:
            assert answer.instant is not None
            spent, begun = (own_cpu(), answer.instant) if not begun else (spent, begun)
            if answer.instant >= 1000 * (arguments.seconds - 1):
                break
        assert answer.instant is not None
        cost = (own_cpu() - spent) / (answer.instant - begun) * 1000
        writer.wait()
    size = sum(file.stat().st_size for file in state.iterdir()) if durable else 0
    return cost, writes, size


def checkpoint(arguments: argparse.Namespace) -> None:
    """The cost of a state while a query runs."""
    columns = (
        "state",
        "CPU of a core, %",
        "more, % of a core",
        "longest transaction, ms",
        "bytes of state",
    )
    costs: dict[bool, list[float]] = {False: [], True: []}
    longest, sizes = 0.0, [0]
    for _, durable in itertools.product(range(arguments.repeat), (False, True)):
        with tempfile.TemporaryDirectory() as folder:
            cost, writes, size = followed(arguments, Path(folder), durable=durable)
        costs[durable].append(cost)
        longest, sizes = max(longest, *writes, 0.0), [*sizes, size]
    plain, kept = median(costs[False]), median(costs[True])
    pairs = [more - less for less, more in zip(costs[False], costs[True], strict=True)]
    with ResultTable("durable_checkpoint", columns) as table:
        table.add("none", f"{100 * plain:.1f}", "", "", "")
        table.add("kept", f"{100 * kept:.1f}", f"{100 * median(pairs):.1f}", f"{1000 * longest:.1f}", f"{max(sizes):,}")


def alerts(queries: int, seconds: int, slide: int) -> dict[str, str]:
    """Alerts with a bound each."""
    return {f"above{bound}": ALERTS % (seconds, slide, bound) for bound in range(400, 400 + queries)}


GO_ON = """
import json, sys, time
from benchmarks.durable import alerts, reading
from benchmarks.measure import own_cpu, own_peak
from streamgauge.watching import watch
state, queries, size, slide, number, at = sys.argv[1], *map(int, sys.argv[2:])
imported, begun = own_cpu(), time.monotonic()
with watch(alerts(queries, size, slide), [reading(number, at)], state=state) as answers:
    ready, clock = own_cpu(), time.monotonic() - begun
    first = [next(answers) for _ in range(queries)]
    answered = own_cpu()
peak = round(own_peak())
print(json.dumps([ready - imported, clock, answered - ready, len({name for name, _ in first}), peak]))
"""


SERVE_ON = """
import json, sys, time
from benchmarks.durable import READINGS, next_answers, reading, service
from benchmarks.measure import own_cpu, own_peak
state, number, at = sys.argv[1], *map(int, sys.argv[2:])
imported, begun = own_cpu(), time.monotonic()
queries = service(state)
assert queries.settle(3600)
ready, clock = own_cpu(), time.monotonic() - begun
count, digest = next_answers(queries, reading(number, at))
print(json.dumps([ready - imported, clock, own_cpu() - ready, count, round(own_peak()), digest]))
"""


def service(state: str | Path) -> Queries:
    """A service with a state."""
    journal = ServiceJournal(Path(state), time.monotonic)
    return Queries(load, ("live",), QueryLimits(memory=2**34, seconds=3600.0), journal=journal)


def next_answers(queries: Queries, element: StreamElement) -> tuple[int, str]:
    """How many answers an element causes, once they are on the disk, and a digest of them all."""
    before = {query.name: query.answers.number for query in queries.queries()}
    queries.publish(READINGS, [element])
    assert queries.settle(3600)
    assert queries.journal is not None
    queries.journal.wait(queries.journal.ticket(), 3600)
    lines = [
        (query.name.encode(), answer.line)
        for query in queries.queries()
        for answer in query.answers.kept()
        if answer.number > before[query.name]
    ]
    return len(lines), sha256(b"\n".join(itertools.chain.from_iterable(sorted(lines)))).hexdigest()


def recovery(arguments: argparse.Namespace) -> None:
    """How long it takes to go on with the state of a watch."""

    def fill(folder: Path, items: Iterator[StreamElement], _last: StreamElement) -> None:
        with watch(alerts(arguments.queries, *WINDOW), items, state=folder, end="stream") as answers:
            for _ in answers:
                pass

    gone_on(arguments, "durable_recovery", fill, [GO_ON, arguments.queries, *WINDOW])


def service_recovery(arguments: argparse.Namespace) -> None:
    """How long it takes to go on with the state of a service."""
    texts = [*alerts(arguments.queries, *WINDOW).values()]
    gone_on(arguments, "durable_service", partial(fill_service, texts), [SERVE_ON])


def shapes_recovery(arguments: argparse.Namespace) -> None:
    """The same where the queries have twenty shapes."""
    size, slide = WINDOW
    window = f"FROM NAMED WINDOW <urn:w> ON <urn:readings> [RANGE PT{size}S STEP PT{slide}S] WHERE {{ WINDOW <urn:w>"
    bounds = range(990, 990 + arguments.queries // len(SHAPES))
    texts = [shape % (window, bound) for shape in SHAPES for bound in bounds]
    gone_on(arguments, "durable_shapes", partial(fill_service, texts), [SERVE_ON])


def fill_service(texts: Sequence[str], folder: Path, items: Iterator[StreamElement], last: StreamElement) -> str:
    """Fill a service, copy its state to a folder, and go on; the digest of the answers to the last element."""
    going = folder.with_name("going")
    queries = service(going)
    for text in texts:
        queries.register(QueryRegistration(text))
    while body := [*itertools.islice(items, BODY)]:
        # While a hundred queries answer, the journal may have to wait longer than a client would.
        with suppress(NotDurableError):
            queries.publish(READINGS, body)
        assert queries.settle(3600)
    assert queries.journal is not None
    queries.journal.wait(queries.journal.ticket(), 3600)
    # The journal writes once more how far the queries have come; a copy in the midst of that would be damaged.
    time.sleep(2 * PROGRESS_S)
    shutil.copytree(going, folder)
    _, digest = next_answers(queries, last)
    queries.close("filled")
    return digest


def gone_on(
    arguments: argparse.Namespace,
    name: str,
    fill: Callable[[Path, Iterator[StreamElement], StreamElement], str | None],
    go_on: Sequence[object],
) -> None:
    """A table of how long a process takes to go on with a state that was filled, by a program and its arguments."""
    elements, (seconds, slide) = arguments.triples // 3, WINDOW
    last = reading(elements, 1000 * seconds)
    columns = ("window", "queries", "triples", "state, MB", "to be ready, CPU s", "wall s", "next answers, CPU s")
    with ResultTable(name, (*columns, "peak, MiB")) as table, tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        before = fill(state, (reading(n, n * 1000 * seconds // elements) for n in range(elements)), last)
        size = sum(file.stat().st_size for file in state.iterdir()) / 1e6
        program, *words = go_on
        command = [sys.executable, "-c", str(program), str(state), *map(str, (*words, last.sequence, last.time))]
        ready, clock, answered, names, peak, *after = json.loads(subprocess.check_output(command, text=True))
        assert names == arguments.queries, f"{names} queries have answered"
        assert before is None or [before] == after, "the answers are others than without a restart"
        figures = (f"{size:,.0f}", f"{ready:.1f}", f"{clock:.1f}", f"{answered:.1f}", f"{peak:,}")
        table.add(f"{seconds} s, every {slide} s", f"{arguments.queries}", f"{3 * elements:,}", *figures)


def main() -> None:
    parts = {"checkpoint": checkpoint, "recovery": recovery, "service": service_recovery, "shapes": shapes_recovery}
    run_parts(__doc__, parts, rate=20_000, seconds=20, repeat=3, triples=5_000_000, queries=100)


if __name__ == "__main__":
    main()
