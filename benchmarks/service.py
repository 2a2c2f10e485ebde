"""The query service by HTTP: CPU of its process for each element that is posted.

python -m benchmarks.service [--parts posts queries state] [--elements 4000] [--repeat 3] [--before OTHER/src]

`posts`: JSON lines of one reading (three triples), 1, 10, 100 or 1,000 in a POST, over one connection; one query
filters them. `queries`: 100 in a POST, for 1, 20 and 200 queries, each filters another sensor. `state`: a
service that keeps a state beside one that keeps none, in turn, and the median of the ratios. Each point is a server
of its own, of these sources and, with ``--before``, of those of another checkout in turn; the least of ``--repeat``
counts, in microseconds of user and system time for an element.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.measure import KeptConnection, awaited, cpu, free_port, run_parts
from benchmarks.results import ResultTable

SIZES: Final = (1, 10, 100, 1000)
QUERIES: Final = (1, 20, 200)
WARM: Final = 200
"""Elements that are posted before CPU is counted."""
OWN: Final = Path(__file__).parents[1] / "src"
COLUMNS: Final = ("queries", "elements in a POST", "us an element", "before", "ratio")


@contextmanager
def serving(sources: Path, *options: str) -> Iterator[tuple[int, int]]:
    """A query service of some sources; its process and its port."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "streamgauge",
        "engine",
        "serve",
        "live",
        "--port",
        str(port),
        "--max-queries",
        "500",
        *options,
    ]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(sources)}, stderr=subprocess.DEVNULL) as server:
        try:
            awaited(port)
            yield server.pid, port
        finally:
            server.terminate()


def query_of(sensor: int) -> bytes:
    """A query for the readings of one sensor."""
    return (
        f"SELECT ?o ?v FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT5S] "
        f"WHERE {{ WINDOW <urn:w> {{ ?o <urn:sensor> <urn:sensor:{sensor}> ; <urn:value> ?v FILTER(?v > 50) }} }}"
    ).encode()


def line_of(number: int) -> bytes:
    """One reading, of 200 sensors in turn, 10 ms after the one before."""
    subject, value = f"<urn:o:{number}>", number * 37 % 100
    triples = (
        f"{subject} <urn:type> <urn:Reading> .\n{subject} <urn:sensor> <urn:sensor:{number % 200}> .\n"
        f'{subject} <urn:value> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    )
    return json.dumps({"t": number * 10, "n": number, "stream": "urn:s", "add": triples}).encode() + b"\n"


async def posted(sources: Path, queries: int, size: int, elements: int, *options: str) -> float:
    """Microseconds of CPU of the server for an element; RuntimeError for a status other than 202."""
    with serving(sources, *options) as (pid, port):
        connection = KeptConnection(port)
        for sensor in range(queries):
            status, body = await connection.send("POST", "/queries", query_of(sensor), "application/sparql-query")
            if status != 201:
                raise RuntimeError(f"query {sensor}: {status} {body[:200]!r}")

        async def post(first: int, end: int) -> None:
            for at in range(first, end, size):
                body = b"".join(map(line_of, range(at, min(at + size, end))))
                while (
                    status := (await connection.send("POST", "/streams/urn:s", body, "application/x-ndjson"))[0]
                ) == 503:
                    await asyncio.sleep(0.05)
                if status != 202:
                    raise RuntimeError(f"element {at}: {status}")

        await post(0, WARM)
        before = cpu(pid)
        await post(WARM, WARM + elements)
        return (cpu(pid) - before) / elements * 1e6


def _table(points: Iterator[tuple[int, int]], arguments: argparse.Namespace) -> None:
    checkouts = [OWN, *([arguments.before] if arguments.before else [])]
    with ResultTable("service", COLUMNS) as table:
        for queries, size in points:
            elements = arguments.elements * min(size, 20)
            costs = [
                [asyncio.run(posted(sources, queries, size, elements)) for sources in checkouts]
                for _ in range(arguments.repeat)
            ]
            now, *before = (min(sides) for sides in zip(*costs, strict=True))
            table.add(
                queries, size, f"{now:.1f}", *([f"{before[0]:.1f}", f"{now / before[0]:.2f}"] if before else ["", ""])
            )


def posts(arguments: argparse.Namespace) -> None:
    _table(((1, size) for size in SIZES), arguments)


def several(arguments: argparse.Namespace) -> None:
    _table(((queries, 100) for queries in QUERIES), arguments)


def state(arguments: argparse.Namespace) -> None:
    """The cost of a state while elements are posted, each POST after the reply to the one before."""
    with ResultTable("service_state", ("elements in a POST", "us an element", "with a state", "ratio")) as table:
        for size in SIZES[1:]:
            pairs = [_with_and_without(size, arguments.elements * min(size, 20)) for _ in range(arguments.repeat)]
            plain, kept = (min(sides) for sides in zip(*pairs, strict=True))
            ratio = median(kept / plain for plain, kept in pairs)
            table.add(size, f"{plain:.1f}", f"{kept:.1f}", f"{ratio:.3f}")


def _with_and_without(size: int, elements: int) -> tuple[float, float]:
    """The cost without a state and with one."""
    with TemporaryDirectory() as folder:
        plain = asyncio.run(posted(OWN, 1, size, elements))
        return plain, asyncio.run(posted(OWN, 1, size, elements, "--state", folder))


PARTS = {"posts": posts, "queries": several, "state": state}


if __name__ == "__main__":
    run_parts(__doc__, PARTS, elements=4000, repeat=3, before=Path)
