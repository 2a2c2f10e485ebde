"""Publications through HTTP to a broker in a process of its own, with a journal, at a fixed rate, and who is told.

python -m benchmarks.broker_http [--rate 500] [--seconds 8] [--subscribers 1] [--configuration FOLDER]
Without a configuration there is one channel (a join of two patterns), of whose answer each publication (two triples)
is a new row. With one, which `streamgauge sepbm generate` writes, its base load and ontology are served, its channels
are there, and its publications come in turn, are deleted in turn, and come again. `acknowledged` is from the due time
of a request to its answer, which comes when it is durable; `told` from the same to the first notification of it at a
channel's first subscriber, by server-sent events. The client keeps 32 connections. Subscribers take all, and count; a
channel has `subscribers` of them. `cpu` is the broker's process's, a publication.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from math import inf
from pathlib import Path
from typing import TypeAlias

import psutil

from benchmarks.measure import times_text
from streamgauge.suites.sepbm import BASE, ONTOLOGY, Stored, read

Publication: TypeAlias = tuple[str, bytes]
"""A path and a graph."""

QUERY = "SELECT * { ?x a <urn:P> ; <urn:n> ?n }"
CONNECTIONS = 32
WARM = 50
PROGRAM = [sys.executable, "-c", "from streamgauge.cli.main import main; main()"]


class Connections:
    """Requests over connections that are kept."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.LifoQueue()

    async def open(self) -> None:
        """Connect."""
        for _ in range(CONNECTIONS):
            self._free.put_nowait(await asyncio.open_connection("127.0.0.1", self._port))

    async def send(self, method: str, path: str, body: bytes, kind: str) -> bytes:
        """The body of the answer. A connection that the broker ended, as nothing was asked on it, is made anew."""
        reader, writer = connection = await self._free.get()
        if reader.at_eof():
            reader, writer = connection = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        length = re.search(rb"content-length: (\d+)", await reader.readuntil(b"\r\n\r\n"))
        assert length is not None
        said = await reader.readexactly(int(length[1]))
        self._free.put_nowait(connection)
        return said

    async def number(self, channel: str) -> int:
        """Of a channel's last notification."""
        return int(json.loads(await self.send("GET", f"/channels/{channel}", b"", "text/plain"))["notification"])


class Listener:
    """A subscriber of a channel: how many notifications it got, and when each publication was told."""

    def __init__(self, channel: str, reads: bool) -> None:
        self.channel, self.count, self._reads = channel, 0, reads
        self.told: dict[int, float] = {}

    async def run(self, port: int, ready: asyncio.Semaphore) -> None:
        """Take notifications, in the order of their numbers without a gap; ``count`` is -1 after one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        writer.write(f"GET /channels/{self.channel}/notifications HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        ready.release()
        while line := await reader.readline():
            if line.startswith(b"id: "):
                self.count = int(line[4:]) if int(line[4:]) == self.count + 1 else -1
            elif line.startswith(b"data: {") and self._reads:
                self.told |= dict.fromkeys(json.loads(line[6:])["publications"], time.perf_counter())


def rows() -> Iterator[Publication]:
    """Each a new row."""
    for n in count():
        yield "/publish", f'<urn:s{n}> a <urn:P> ; <urn:n> "{n}" .'.encode()


def in_turn(configuration: Stored) -> Iterator[Publication]:
    """The sequence's publications, published and deleted by turns."""
    graphs = ["".join(f"{' '.join(triple)} .\n" for triple in each.added).encode() for each in configuration.sequence()]
    for path in cycle(("/publish", "/delete")):
        yield from ((path, graph) for graph in graphs if graph)


@dataclass(frozen=True)
class PublicationLoad:
    """The load of publications on the broker."""

    channels: Mapping[str, str]
    publications: Iterator[Publication]
    rate: float
    seconds: float
    subscribers: int


async def measure(port: int, pid: int, load: PublicationLoad) -> str:
    """One line of figures, ms."""
    http = Connections(port)
    await http.open()
    for name, query in load.channels.items():
        await http.send("PUT", f"/channels/{name}", query.encode(), "application/sparql-query")
    listeners = [Listener(name, reads=n == 0) for name in load.channels for n in range(load.subscribers)]
    listening = await begun(listeners, port)
    due: dict[int, float] = {}
    taken: dict[int, float] = {}

    async def publish(at: float) -> None:
        said = await http.send("POST", *next(load.publications), "text/turtle")
        number = json.loads(said)["publication"]
        due[number], taken[number] = at, time.perf_counter() - at

    for _ in range(WARM):
        await publish(time.perf_counter())
    due.clear()
    taken.clear()
    process = psutil.Process(pid)
    planned, spent, start = int(load.rate * load.seconds), sum(process.cpu_times()[:2]), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for n in range(planned):
            at = start + n / load.rate
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            group.create_task(publish(at))
    took = time.perf_counter() - start
    last = {name: await http.number(name) for name in load.channels}
    while any(0 <= each.count < last[each.channel] for each in listeners):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    cpu = (sum(process.cpu_times()[:2]) - spent) / planned
    for task in listening:
        task.cancel()
    once = sum(each.count == last[each.channel] for each in listeners)
    first = [min(each.told.get(number, inf) for each in listeners) for number in due]
    told = [came - at for came, at in zip(first, due.values(), strict=True) if came < inf]
    return (
        f"{planned / took:.0f} publications/s; acknowledged {_ms(list(taken.values()))}; told {_ms(told)}; "
        f"{once} of {len(listeners)} subscribers got each of their channel's notifications once; "
        f"cpu {1000 * cpu:.2f} ms; load {os.getloadavg()[0]:.1f}"
    )


def port_of(running: "subprocess.Popen[str]") -> int:
    """The port that the broker names."""
    said = []
    for line in running.stderr or ():
        said.append(line)
        if found := re.search(r":(\d+)/\n", line):
            return int(found[1])
    raise SystemExit(f"the broker did not begin: {''.join(said)}")


async def begun(listeners: Sequence[Listener], port: int) -> list[asyncio.Task[None]]:
    """All listeners, when they are subscribed."""
    ready = asyncio.Semaphore(0)
    listening = [asyncio.create_task(each.run(port, ready)) for each in listeners]
    for _ in listeners:
        await ready.acquire()
    return listening


def _ms(seconds: Sequence[float]) -> str:
    """Median, 99th percentile and maximum in ms."""
    return times_text([1000 * each for each in seconds])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--subscribers", type=int, default=1)
    parser.add_argument("--configuration", type=Path)
    asked = parser.parse_args()
    channels, publications, words = {"c": QUERY}, rows(), list[str]()
    if asked.configuration is not None:
        stored = read(asked.configuration)
        channels, publications = {each.name: each.query for each in stored.channels}, in_turn(stored)
        words = [str(stored.folder / BASE), "--ontology", str(stored.folder / ONTOLOGY)]
    load = PublicationLoad(channels, publications, asked.rate, asked.seconds, asked.subscribers)
    with tempfile.TemporaryDirectory() as folder:
        words += ["--port", "0", "--journal", str(Path(folder) / "journal"), "--max-subscribers", str(10**6)]
        words += ["--max-connections", str(10**6)]
        with subprocess.Popen([*PROGRAM, "broker", "serve", *words], stderr=subprocess.PIPE, text=True) as running:
            try:
                print(asyncio.run(measure(port_of(running), running.pid, load)))
            finally:
                running.terminate()


if __name__ == "__main__":
    main()
