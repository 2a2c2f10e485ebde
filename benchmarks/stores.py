"""Our stores beside SQLite, RocksDB (pyoxigraph) and LMDB with an entry a quad, and their cost as data and time grow.

python -m benchmarks.stores [--parts peers sizes history] [--size 100000] [--sizes 100000 10000000] [--updates 10000]

Figures are CPU times (user + system) of the process, the least of 5 rounds, in microseconds a call unless said. Every
side has the same quads (departures: four facts that stay, two that end, a graph for three departures) and the same
calls on the same matches; changes are on the disk when a call returns.
`peers`: all sides in one run; the ratio is the side's time over that of our store on disk. `sizes`: our two
stores at each size; resident memory is that of a process which opened the folder and answered all that is measured.
`history`: a store in memory that keeps what left, after a tenth, a fifth, a half and all of so many updates of 20 facts
with new graphs; its last column asks what a departure's delays were 200 updates before.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import OneOf, options, own_cost, own_peak
from benchmarks.results import ResultTable
from benchmarks.store_peers import PEERS, BlocksOnSqlite, Peer
from streamgauge.servers.fragments import ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore, Store

BATCH = 20
ROUNDS = 5
TRAIN = "http://example.org/train#"
NOW = 1_700_000_000_000
DELAY: Match = (None, f"<{TRAIN}p4>", None, None)
"""The largest range that is asked for: a predicate of every departure."""


def departure(number: int) -> str:
    """The IRI of the departure of that number."""
    return f"<http://example.org/departure/{number}>"


def quads(size: int) -> Iterator[ExpiringQuad]:
    """About ``size`` quads, by departure."""
    for number in range(int(size / 6.34)):
        subject, graph = departure(number), f"<http://example.org/graphs#{number // 3}>"
        end = NOW + number % 60 * 1000
        for place in range(4):
            yield (subject, f"<{TRAIN}p{place}>", f'"{(number * 7919 + place) % 200_000}"', ""), None
        for place in (4, 5):
            yield (subject, f"<{TRAIN}p{place}>", f'"{(number * 31 + place) % 60}"', graph), end
        if number % 3 == 0:
            yield (graph, "<http://example.org/temporal#expiration>", f'"{end}"', ""), end


def update(number: int, size: int) -> list[Quad]:
    """The ``number``-th batch of new facts, all in a graph of their own."""
    graph = f"<http://example.org/graphs#new{number}>"
    return [(departure(index), DELAY[1] or "", f'"{(number + index) % 60}"', graph) for index in range(size)]


def spent(call: Callable[[int], object], calls: int) -> float:
    """CPU microseconds a call, the least of some rounds."""
    repetitions = []
    for number in range(ROUNDS):
        with own_cost() as cost:
            for index in range(calls):
                call(number * calls + index)
        repetitions.append(cost.cpu / calls * 1e6)
    return min(repetitions)


def calls(store: Peer | Store, size: int) -> dict[str, tuple[Callable[[int], object], int]]:
    """The calls that are measured on every side, and how often."""
    draws, departures = random.Random(1), int(size / 6.34)
    total = store.count(DELAY)
    assert total == departures
    assert len(store.page((departure(5), None, None, None), 0, 100)) == 6

    def one() -> Match:
        return departure(draws.randrange(departures)), DELAY[1], None, None

    def replace(number: int) -> None:
        store.change(update(number, BATCH), [*_new(store, update(number + 1, BATCH))])

    store.change((), [*_new(store, update(0, BATCH))])
    return {
        "count of a predicate": (lambda _: store.count(DELAY), 300),
        "count of subject and predicate": (lambda _: store.count(one()), 300),
        "page of subject and predicate": (lambda _: store.page(one(), 0, 100), 300),
        "first page of a predicate": (lambda _: store.page(DELAY, 0, 100), 100),
        "page at offset 10,000": (lambda _: store.page(DELAY, 10_000, 100), 20),
        "page in the middle": (lambda _: store.page(DELAY, total // 2, 100), 20),
        f"change of {BATCH} for {BATCH}": (replace, 10),
    }


def _new(store: object, added: list[Quad]) -> list[Any]:
    return added if isinstance(store, tuple(PEERS.values())) else [(quad, NOW + 60_000) for quad in added]


def measured(store: Peer | Store, size: int) -> dict[str, float]:
    """Every measure of a side."""
    return {name: spent(call, often) for name, (call, often) in calls(store, size).items()}


def peers(arguments: argparse.Namespace) -> None:
    """All sides in one run."""
    size: int = arguments.size
    sides: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ours: dict[str, Store] = {
            "disk": DiskStore(Path(folder) / "disk"),
            "memory": MemoryStore(),
            "our blocks on SQLite": Store(BlocksOnSqlite(Path(folder) / "our blocks on SQLite")),
        }
        for name, store in ours.items():
            sides[name] = _side(name, store, partial(store.load, quads(size)), size, Path(folder) / name)
        for number, (name, kind) in enumerate(PEERS.items()):
            there = Path(folder) / str(number)
            peer = kind(there)
            sides[name] = _side(name, peer, partial(_fill, peer, size), size, there)
    with ResultTable("stores", (f"{size:,} quads", *sides)) as table:
        for measure, base in sides["disk"].items():
            cells = [
                f"{side[measure]:,.1f}" + ("" if name == "disk" else f" ({side[measure] / base:,.1f}x)")
                for name, side in sides.items()
            ]
            table.add(measure, *cells)


def _fill(peer: Peer, size: int) -> None:
    batch: list[Quad] = []
    for quad, _ in quads(size):
        batch.append(quad)
        if len(batch) == 20_000:
            peer.change((), batch)
            batch = []
    peer.change((), batch)


def _side(name: str, store: Peer | Store, load: Callable[[], object], size: int, folder: Path) -> dict[str, float]:
    with own_cost() as loading:
        load()
    figures = {"loading, a quad": loading.cpu / size * 1e6, **measured(store, size)}
    store.close()
    size_on_disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if name != "memory" else 0
    return {**figures, "bytes on disk, a quad": size_on_disk / size}


def sizes(arguments: argparse.Namespace) -> None:
    """Our stores at every size, each in a process of its own."""
    for size in arguments.sizes:
        for kind in ("memory", "disk"):
            _other_process("--one", kind, size)


def _other_process(option: str, value: str, size: int) -> None:
    subprocess.run([sys.executable, "-m", "benchmarks.stores", option, value, "--size", str(size)], check=True)


def one(kind: str, size: int) -> None:
    """One of our stores at one size; that on disk is filled by another process."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "disk":
            _other_process("--fill", folder, size)
        with own_cost() as begun:
            store: Store = DiskStore(Path(folder)) if kind == "disk" else MemoryStore()
            if kind == "memory":
                store.load(quads(size))
        word = "opened" if kind == "disk" else "loaded"
        print(f"{kind}, {size:,}: {word} in {begun.cpu:.2f} s CPU, {begun.wall:.1f} s")
        for measure, time_taken in measured(store, size).items():
            print(f"{kind}, {size:,}: {measure}: {time_taken:,.1f}")
        memory = psutil.Process().memory_info()
        print(f"{kind}, {size:,}: resident {memory.rss / 2**20:,.0f} MiB, of them mapped {memory.shared / 2**20:,.0f}")
        store.close()


def fill(folder: Path, size: int) -> None:
    """Fill a store on disk."""
    with own_cost() as spent:
        store = DiskStore(folder)
        store.load(quads(size))
        store.close()
    peak = own_peak()
    mebibytes = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
    print(
        f"disk, {size:,}: loaded in {spent.cpu:.1f} s CPU, {spent.wall:.1f} s, peak {peak:,.0f} MiB, "
        f"{mebibytes:,.0f} MiB on disk"
    )


def history(arguments: argparse.Namespace) -> None:
    """Cost of reads and changes while the past is kept: all of it, some of it, none of it."""
    columns = ("kept", "updates", "runs kept", "page of what is there", "count", "nearest end", "change",
               "page as it was")  # fmt: skip
    kinds = (("nothing", None), ("10,000 runs", Keep(runs=10_000)), ("everything", Keep()))
    with ResultTable("stores_history", columns) as table:
        for name, keep in kinds:
            _history(table, name, keep, arguments.updates)


def _history(table: ResultTable, name: str, keep: Keep | None, updates: int) -> None:
    """Rows of one policy after a tenth, a fifth, half and all of the updates."""
    store = MemoryStore(keep)
    store.load(quads(10_000), at=NOW)
    store.change((), [(quad, NOW + 60_000) for quad in update(0, BATCH)], NOW)
    for tenth in range(1, 11):
        changing = 0.0
        for number in range((tenth - 1) * updates // 10, tenth * updates // 10):
            added = [(quad, NOW + 60_000 + number) for quad in update(number + 1, BATCH)]
            before = time.process_time()
            store.change(update(number, BATCH), added, NOW + number + 1)
            changing += time.process_time() - before
        if tenth in (1, 2, 5, 10):
            _history_row(table, name, store, tenth * updates // 10, changing / (updates // 10) * 1e6)


def _history_row(table: ResultTable, name: str, store: MemoryStore, number: int, changing: float) -> None:
    current: Match = (None, None, None, update(number, 1)[0][3])
    assert store.count(current) == BATCH
    before = NOW + number - 200
    assert store.kept == 0 or store.at(DELAY, before, 100)
    measures = [
        spent(lambda _: store.page(current, 0, 100), 300),
        spent(lambda _: store.count(current), 300),
        spent(lambda age: store.nearest(current, NOW - age), 300),
        changing,
        spent(lambda _: store.at((departure(3), DELAY[1], None, None), before, 100), 100) if store.kept else 0.0,
    ]
    table.add(name, f"{number:,}", f"{store.kept:,}", *(f"{measure:,.1f}" for measure in measures))


PARTS = {"peers": peers, "sizes": sizes, "history": history}


def main() -> None:
    arguments = options(
        __doc__, parts=OneOf(PARTS), size=100_000, sizes=(100_000, 10_000_000), updates=10_000, one="", fill=Path
    )
    if arguments.fill is not None:
        fill(arguments.fill, arguments.size)
    elif arguments.one:
        one(arguments.one, arguments.size)
    else:
        for name in arguments.parts:
            PARTS[name](arguments)


if __name__ == "__main__":
    main()
