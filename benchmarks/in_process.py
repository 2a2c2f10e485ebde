"""Goals of `live` in process, each beside what it is held to: terms as texts, as numbers, as N-Triples, Arrow, Parquet.

python -m benchmarks.in_process [--stations 10000] [--seconds 15] [--repeat 3] [--rows strings ids ...]

Select of YABench's experiment 1 on its stream, every station once a second, 7 triples each. CPU of this process, the
least of ``--repeat`` runs, in turn with what it is held to. `memory` is the peak of a process of its own that makes
the stream as it is fed, with the interpreter and the package. `sliding`, `ntriples` and `parquet` have a ratio: over
tumbling windows, over pyoxigraph's parsing of the same bytes as one text, and over reading the same file as elements
one by one. The self-join is experiment 3, big, ``LONGER`` times as long, beside rsp-rs in a process of its own
(native_peers.py): both under its semantics, with all input in memory as terms.
"""

import argparse
import gc
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyoxigraph as ox

from benchmarks import engines
from benchmarks.live import CLOSE, Push, from_memory, from_ntriples, run
from benchmarks.measure import OneOf, options, own_cost
from benchmarks.results import ResultTable, goals_reached
from benchmarks.stations import observations, window_query
from streamgauge.engines import live
from streamgauge.formats.batches import BatchWriter, ElementBatch, read_batches
from streamgauge.formats.stream import element_batches, elements, write
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement

PIECE = 1170
"""Elements of a batch: about 8,192 triples, as the pipe sends."""

LONGER = 8
"""How many times as long its stream is: it has few triples a second."""

Call = Callable[[], object]


def stream(stations: int, seconds: int) -> list[StreamElement]:
    return [element for second in range(seconds) for element in observations(stations, second)]


def evaluated(name: str, slide: int, feed: Callable[[Push], int]) -> Call:
    """A run over elements that are pushed."""
    return lambda: run(window_query(name, 5000, slide), CLOSE, feed)


def in_batches(batches: Callable[[], Iterator[ElementBatch | StreamElement]], until: int) -> Call:
    """A run over elements in columns."""

    def answered() -> None:
        session = live.start(window_query("select", 5000, 5000), CLOSE, list[Answer]().append)
        for batch in batches():
            session.push_batch(batch)  # type: ignore[attr-defined]
        session.advance(until)

    return answered


def coded(fed: Sequence[StreamElement]) -> bytes:
    writer = BatchWriter()
    return b"".join([writer.encode(fed[at : at + PIECE]) for at in range(0, len(fed), PIECE)]) + writer.end()


def decoded(data: bytes) -> Iterator[ElementBatch]:
    file: io.BufferedReader = io.BufferedReader(io.BytesIO(data))
    while file.peek(1):
        for together in read_batches(file):
            yield from together  # type: ignore[misc]


def least(calls: Sequence[Call], repeat: int) -> list[float]:
    """The least CPU seconds of calls that take turns; what was there before is frozen, as engines' host does."""
    gc.collect()
    gc.freeze()
    best = [float("inf")] * len(calls)
    for _ in range(repeat):
        for at, call in enumerate(calls):
            with own_cost() as spent:
                call()
            best[at] = min(best[at], spent.cpu)
    return best


class Goals:
    """The rows of the table: each adds its figure, its goal and whether it was reached."""

    def __init__(self, arguments: argparse.Namespace, table: ResultTable) -> None:
        self._given, self._table = arguments, table
        self._fed = stream(arguments.stations, arguments.seconds)
        self._size, self._until = 7 * len(self._fed), arguments.seconds * 1000 - 1000

    def _add(self, name: str, figure: str, goal: str, reached: bool) -> None:
        self._table.add(name, figure, goal, "reached" if reached else "not reached")

    def _rate(self, name: str, spent: float, goal: int) -> None:
        rate = self._size / spent
        self._add(name, f"{rate:,.0f} triples/CPU s", f"{goal:,}", rate >= goal)

    def strings(self) -> None:
        """Elements in memory, windows that tumble and that slide."""
        calls = [evaluated("select", slide, partial(from_memory, self._fed)) for slide in (5000, 1000)]
        tumbling, sliding = least(calls, self._given.repeat)
        self._rate("from strings, 5 s/5 s", tumbling, 1_400_000)
        self._rate("from strings, 5 s/1 s", sliding, 1_400_000)

    def ids(self) -> None:
        """Batches in memory, whose terms are numbered."""
        batches = list(decoded(coded(self._fed)))
        (spent,) = least([in_batches(lambda: iter(batches), self._until)], self._given.repeat)
        self._rate("on ids, 5 s/5 s", spent, 2_500_000)

    def arrow(self) -> None:
        """Batches of the pipe, decoded."""
        data = coded(self._fed)
        (spent,) = least([in_batches(lambda: decoded(data), self._until)], self._given.repeat)
        per_triple = 1e6 * spent / self._size
        self._add("Arrow to answers", f"{per_triple:.2f} us a triple", "0.50", per_triple <= 0.5)

    def ntriples(self) -> None:
        """N-Triples of each element, beside pyoxigraph's parser over all of it."""
        texts = [
            (element.time, "".join(f"{s} {p} {o} .\n" for s, p, o in element.added).encode()) for element in self._fed
        ]
        whole = b"".join([text for _, text in texts])
        calls = [
            evaluated("select", 5000, partial(from_ntriples, texts, self._until)),
            lambda: sum(1 for _ in ox.parse(whole, format=ox.RdfFormat.N_TRIPLES)),
        ]
        own, other = least(calls, self._given.repeat)
        per_triple, ratio = 1e6 * own / self._size, own / other
        self._add("N-Triples to answers", f"{per_triple:.2f} us a triple, {ratio:.2f}x parsing", "2x", ratio <= 2)

    def parquet(self) -> None:
        """A stream table, in columns and element by element."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stream.parquet"
            write(self._fed, file)
            calls = [
                in_batches(lambda: element_batches(file), self._until),
                lambda: sum(1 for _ in elements(file)),
            ]
            columns, one_by_one = (1e6 * spent / self._size for spent in least(calls, self._given.repeat))
        figure = f"{columns:.2f} us a triple to answers in columns, {one_by_one:.2f} to elements"
        self._add("from Parquet", figure, "less than 3.3", one_by_one < 3.3)

    def self_join(self) -> None:
        """Pairs of observations of one station, and rsp-rs beside, where it can be built."""
        case = engines.EngineCase("variation/big/5s/5s", "rsp-rs", engines.semantics_of("live", "rsp-js"), "preload")
        seconds = LONGER * self._given.seconds
        with tempfile.TemporaryDirectory() as folder:
            stream = engines.stream_of(case, seconds, Path(folder))
            header = engines.header_of(case, stream, seconds)
            batches = list(element_batches(stream))
            places = [Path(folder) / f"{n}" for n in range(self._given.repeat)]
            peer = [engines.measure(case, stream, seconds, place) for place in places]

        def answered() -> None:
            session = live.start(header.query, case.semantics, list[Answer]().append)
            for batch in batches:
                session.push_batch(batch)  # type: ignore[attr-defined]
            session.advance(header.advanced_to)

        (own,) = least([answered], self._given.repeat)
        per_triple = 1e6 / int(str(header.workload["triples"]))
        costs = [engines.figures(case, run, "").cpu for run in peer if not isinstance(run, str)]
        if not costs:
            self._table.add("self-join beside rsp-rs", f"{per_triple * own:.2f} us a triple", f"10x; {peer[0]}", "")
            return
        figure = f"{per_triple * own:.2f} us a triple, {per_triple * min(costs):.2f} of rsp-rs, {min(costs) / own:.1f}x"
        self._add("self-join beside rsp-rs", figure, "10x", min(costs) >= 10 * own)

    def memory(self) -> None:
        """The peak of processes of their own."""
        for slide in (5000, 1000):
            size = map(str, (self._given.stations, self._given.seconds, slide))
            words = [sys.executable, "-m", "benchmarks.in_process_memory", *size]
            peak = int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            self._add(f"memory, 5 s/{slide // 1000} s", f"{peak:,.0f} MiB", "250 MiB", peak <= 250)


ROWS = ("memory", "strings", "ids", "arrow", "ntriples", "parquet", "self_join")


def main() -> None:
    arguments = options(__doc__, stations=10_000, seconds=15, repeat=3, rows=OneOf(ROWS))
    with ResultTable("in_process", ("what", "figure", "goal", "outcome"), summary=goals_reached) as table:
        goals = Goals(arguments, table)
        for name in arguments.rows:
            getattr(goals, name)()


if __name__ == "__main__":
    main()
