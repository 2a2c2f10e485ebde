"""Publications through HTTP to a broker in a process of its own, with a journal, at a fixed rate, and who is told.

python -m benchmarks.broker_http [--rate 500] [--seconds 8] [--subscribers 1]
One channel (a join of two patterns), of whose answer each publication (two triples) is a new row. `acknowledged` is
from the due time of a request to its answer, which comes when it is durable; `told` from the same to the notification
at the first subscriber, by server-sent events. The client keeps 32 connections. Subscribers take all, and count.
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
from collections.abc import Sequence
from pathlib import Path

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
        """The body of the answer."""
        reader, writer = connection = await self._free.get()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        length = re.search(rb"content-length: (\d+)", await reader.readuntil(b"\r\n\r\n"))
        assert length is not None
        said = await reader.readexactly(int(length[1]))
        self._free.put_nowait(connection)
        return said


class Listener:
    """A subscriber: how many notifications it got, and when each publication was told."""

    def __init__(self, reads: bool) -> None:
        self.count, self._reads = 0, reads
        self.told: dict[int, float] = {}

    async def run(self, port: int, ready: asyncio.Semaphore) -> None:
        """Take notifications, in the order of their numbers without a gap; ``count`` is -1 after one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        writer.write(b"GET /channels/c/notifications HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        ready.release()
        while line := await reader.readline():
            if line.startswith(b"id: "):
                self.count = int(line[4:]) if int(line[4:]) == self.count + 1 else -1
            elif line.startswith(b"data: {") and self._reads:
                self.told |= dict.fromkeys(json.loads(line[6:])["publications"], time.perf_counter())


async def measure(port: int, rate: float, seconds: float, subscribers: int) -> str:
    """One line of figures, ms."""
    http, ready = Connections(port), asyncio.Semaphore(0)
    await http.open()
    await http.send("PUT", "/channels/c", QUERY.encode(), "application/sparql-query")
    listeners = [Listener(reads=n == 0) for n in range(subscribers)]
    listening = [asyncio.create_task(each.run(port, ready)) for each in listeners]
    for _ in listeners:
        await ready.acquire()
    due: dict[int, float] = {}
    taken: dict[int, float] = {}

    async def publish(n: int, at: float) -> None:
        said = await http.send("POST", "/publish", f'<urn:s{n}> a <urn:P> ; <urn:n> "{n}" .'.encode(), "text/turtle")
        number = json.loads(said)["publication"]
        due[number], taken[number] = at, time.perf_counter() - at

    for n in range(WARM):
        await publish(n, time.perf_counter())
    due.clear()
    taken.clear()
    count, start = int(rate * seconds), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for n in range(count):
            at = start + n / rate
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            group.create_task(publish(WARM + n, at))
    took = time.perf_counter() - start
    while any(each.count < WARM + count for each in listeners):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    for task in listening:
        task.cancel()
    once = sum(each.count == WARM + count for each in listeners)
    told = [listeners[0].told[number] - at for number, at in due.items()]
    return (
        f"{count / took:.0f} publications/s; acknowledged {figures(list(taken.values()))}; told {figures(told)}; "
        f"{once} of {subscribers} subscribers got each of {WARM + count} once; load {os.getloadavg()[0]:.1f}"
    )


def figures(values: Sequence[float]) -> str:
    """Median, 99th percentile and maximum in ms."""
    order = sorted(values)
    p50, p99 = (1000 * order[int(share * (len(order) - 1))] for share in (0.5, 0.99))
    return f"p50 {p50:.1f} p99 {p99:.1f} max {1000 * order[-1]:.1f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--subscribers", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = ["broker", "serve", "--port", "0", "--journal", str(Path(folder) / "journal")]
        with subprocess.Popen([*PROGRAM, *words], stderr=subprocess.PIPE, text=True) as running:
            try:
                assert running.stderr is not None
                found = re.search(r":(\d+)/\n", running.stderr.readline())
                assert found is not None
                print(asyncio.run(measure(int(found[1]), asked.rate, asked.seconds, asked.subscribers)))
            finally:
                running.terminate()


if __name__ == "__main__":
    main()
