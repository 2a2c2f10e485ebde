"""Many quads served from disk: what loading and serving them take.

python -m benchmarks.fragments_disk FOLDER [--quads 10000000] [--seconds 8] [--connections 10]

Departures of six triples each, as ``benchmarks.fragments`` makes them, in a store in FOLDER, which is made when it is
not there (the largest resident memory and the CPU time of that are printed). Then a server on it is asked by one
predicate, by one departure and one predicate drawn among all, and for a page of one predicate drawn among all. CPU ms
per request of the server's processes; memory after each load: resident, and what of it is no page of a file, which is
what the machine cannot take back.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from urllib.parse import quote

import psutil

from benchmarks.fragments import TRAIN, RequestLoad, lines, measure, running
from benchmarks.measure import free_port
from benchmarks.results import ResultTable

PREDICATE = quote(f"{TRAIN}delay", safe="")
SIX = 6
"""Quads of a departure."""

LOADING = """
import sys
from pathlib import Path
from streamgauge.servers.fragments.writes.feeds import load
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.labels import Style

store = DiskStore(Path(sys.argv[2]))
load(Path(sys.argv[1]), store, Style())
store.close()
"""


def fill(folder: Path, quads: int) -> None:
    """A file with so many quads, and a store with what is in it, which a process of its own makes."""
    file = folder / "data.nq"
    with file.open("w") as written:
        written.writelines(islice(lines(quads // SIX + 1, 0), quads))
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", LOADING, str(file), str(folder / "store" / "data")], check=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"loaded {quads:,} quads: {time.perf_counter() - began:,.0f} s, {spent.ru_utime + spent.ru_stime:,.0f} s CPU, "
        f"at most {spent.ru_maxrss / 1e3:,.0f} MB resident"
    )


def drawn(quads: int, seed: int) -> dict[str, Iterator[str]]:
    """The addresses of each load."""
    draw, departures = random.Random(seed), quads // SIX

    def lookups() -> Iterator[str]:
        while True:
            subject = quote(f"http://example.org/departure/{draw.randrange(departures)}", safe="")
            yield f"/data?subject={subject}&predicate={PREDICATE}"

    def pages() -> Iterator[str]:
        while True:
            yield f"/data?predicate={PREDICATE}&page={draw.randrange(1, departures // 100)}"

    return {"p": repeat(f"/data?predicate={PREDICATE}"), "s+p, drawn": lookups(), "p, page drawn": pages()}


def anonymous(server: psutil.Process) -> float:
    """MB of a process that are no pages of files."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quads", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--connections", type=int, default=10)
    given = parser.parse_args()
    (given.folder / "store").mkdir(parents=True, exist_ok=True)
    if not (given.folder / "store" / "data").is_dir():
        fill(given.folder, given.quads)
    port, began = free_port(), time.perf_counter()
    words = [str(given.folder / "data.nq"), "--store", str(given.folder / "store"), "--port", str(port)]
    program = [sys.executable, "-m", "streamgauge.cli.main", "fragments", "serve", *words]
    with running(program, port) as server:
        print(f"serves after {time.perf_counter() - began:.1f} s, {anonymous(server):,.0f} MB\n")
        columns = ("request", "requests", "CPU ms", "p50 ms", "MB resident", "MB of its own")
        with ResultTable("fragments_disk", columns) as table:
            for what, asked in drawn(given.quads, 0).items():
                load = RequestLoad("data", what, "application/trig", given.connections)
                found = measure(server, port, asked, load, given.seconds)
                held = (f"{found.memory:,.0f}", f"{anonymous(server):,.0f}")
                table.add(what, f"{found.requests:,}", f"{found.cpu:.3f}", f"{found.p50:.1f}", *held)
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
