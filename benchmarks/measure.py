"""The frame of the benchmarks: options, costs of processes with their children, connections, and YABench's queries."""

import argparse
import asyncio
import gc
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import psutil
import pyarrow.parquet as pq

from streamgauge.query import fill
from streamgauge.workloads import load, query_text, weather


class OneOf(NamedTuple):
    """An option of given values: one of them, ``default``; any number where that is a tuple, or ``None`` for all."""

    values: Collection[str]
    default: str | tuple[str, ...] | None = None


def parser(text: str | None, **defaults: object) -> argparse.ArgumentParser:
    """A command with the options ``--name`` of the types of their defaults.

    ``False`` makes a switch, a tuple a list, a type an option that is ``None`` unless given.
    """
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **_option(default))
    return parser


def options(text: str | None, **defaults: object) -> argparse.Namespace:
    """The options that the command was given."""
    return parser(text, **defaults).parse_args()


def run_parts(text: str | None, parts: Mapping[str, Callable[[argparse.Namespace], None]], **defaults: object) -> None:
    """A command that does its parts, all or those of ``--parts``, with the options that it was given."""
    arguments = options(text, parts=OneOf(parts), **defaults)
    for name in arguments.parts:
        parts[name](arguments)


def _option(default: Any) -> dict[str, Any]:
    match default:
        case OneOf(values, str(chosen)):
            return {"choices": [*values], "default": chosen}
        case OneOf(values, chosen):
            return {"nargs": "*", "choices": [*values], "default": [*(chosen or values)]}
        case False:
            return {"action": "store_true"}
        case type():
            return {"type": default}
        case tuple():
            return {"nargs": "*", "type": type(default[0]), "default": [*default]}
    return {"type": type(default), "default": default}


@dataclass
class Cost:
    """Wall and CPU seconds, and the peak of resident memory (MB) where that was looked at."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0


@contextmanager
def own_cost() -> Iterator[Cost]:
    """The cost of a block to this process alone; objects of before are out of the collector's reach."""
    gc.collect()
    gc.freeze()
    cost = Cost()
    wall, spent = time.perf_counter(), own_cpu()
    try:
        yield cost
    finally:
        cost.wall, cost.cpu = time.perf_counter() - wall, own_cpu() - spent
        gc.unfreeze()


def own_cpu() -> float:
    """User and system seconds of this process; ``process_time`` goes in steps of 4 ms under a limit of CPU time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of a block to this process and all below it (a JVM), ended ones too."""
    gc.collect()
    cost, done = Cost(), threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            cost.peak = max(cost.peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    before, start = cpu(), time.monotonic()
    try:
        yield cost
    finally:
        cost.wall, cost.cpu = time.monotonic() - start, cpu() - before
        done.set()
        watcher.join()


def _tree(pid: int | None) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu(pid: int | None = None, *, ended: bool = True) -> float:
    """User and system seconds of a process, this one unless given, and all below it; ``ended`` counts gone children."""
    times = [process.cpu_times() for process in _tree(pid)]
    seconds = [time_.user + time_.system + ended * (time_.children_user + time_.children_system) for time_ in times]
    return float(sum(seconds))


def resident(pid: int | None = None) -> float:
    """Resident memory (MB) of a process and all below it now."""
    total = 0
    for process in _tree(pid):
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            total += process.memory_info().rss
    return total / 1e6


def own_peak() -> float:
    """The peak of this process's resident memory (MiB); ``ru_maxrss`` would be its parent's where that had more."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def awaited(port: int, seconds: float = 180.0) -> None:
    """Wait until somebody listens at a port; TimeoutError."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens at port {port} after {seconds:.0f} s")


def times_text(values: Sequence[float], form: str = ".1f") -> str:
    """Median, 99th percentile and maximum as text."""
    from streamgauge.oracle.judging.metrics import percentile

    p50, p99 = percentile(values, 50) or 0.0, percentile(values, 99) or 0.0
    return f"p50 {p50:{form}} p99 {p99:{form}} max {max(values, default=0.0):{form}}"


def warm_median(values: Sequence[float]) -> float:
    """The median of the second half, in which a JVM is warm."""
    return median(values[len(values) // 2 :])


def port_of(address: str) -> int:
    """The port of a server's address."""
    return int(address.rpartition(":")[2])


class KeptConnection:
    """One connection that is kept, and made anew when the server ended it: its own CPU is small beside a server's."""

    def __init__(self, port: int, **headers: str) -> None:
        self._port = port
        self._headers = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: bytes = b"", kind: str = "text/plain") -> tuple[int, bytes]:
        """The status and the body of the answer."""
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        reader, writer = self._streams
        try:
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{self._headers}"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            said = await reader.readuntil(b"\r\n\r\n")
            return int(said[9:12]), await self._body(reader, said.lower())
        except BaseException:
            self.close()
            raise

    @staticmethod
    async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
        if length := re.search(rb"content-length: (\d+)", head):
            return await reader.readexactly(int(length[1]))
        body = b""
        while b"chunked" in head and (size := int(await reader.readline(), 16)):
            body += (await reader.readexactly(size + 2))[:size]
        if b"chunked" in head:
            await reader.readline()
        return body

    def close(self) -> None:
        """End the connection; the next request makes another."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


class HttpPool:
    """Requests over connections that are kept, at most so many at once."""

    def __init__(self, port: int, most: int, **headers: str) -> None:
        self._free: asyncio.LifoQueue[KeptConnection] = asyncio.LifoQueue()
        for _ in range(most):
            self._free.put_nowait(KeptConnection(port, **headers))

    async def send(self, method: str, path: str, body: bytes = b"", kind: str = "text/plain") -> tuple[int, bytes]:
        """The status and the body of the answer."""
        connection = await self._free.get()
        try:
            return await connection.send(method, path, body, kind)
        finally:
            self._free.put_nowait(connection)


SEED: Final = 1430236906


def weather_text(name: str, **parameters: str) -> str:
    """A query of the weather workload, with its windows."""
    return fill(query_text(load("weather"), name), parameters)


def write_weather(folder: Path, seed: int = SEED, **size: object) -> Path:
    """The weather workload's stream as a table in a new folder, made in this process; ``size``: its parameters."""
    folder.mkdir(parents=True)
    plan = weather.plan(seed, **size)
    with pq.ParquetWriter(folder / "part-0.parquet", plan.schema) as writer:
        for batch in plan.batches():
            writer.write_batch(batch)
    return folder
