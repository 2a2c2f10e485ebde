"""Soak: `live` behind the pipe on a stream that is made as it is fed, every window checked, memory sampled.

python -m benchmarks.soak [--minutes 30] [--stations 10000] [--report close change] [--engine live] [--tells 4]

Every station reports once a second (7 triples; 10,000 stations are 70,000 triples a second), ``--minutes`` of stream
time as fast as the engine takes them; nothing of the stream is stored. Which rows are due is known from the rule by
which values are made, without any evaluator: the rows of every 5 s (a window that closes, or the new rows of content
change) are compared with it as bags, as they come. Printed ``--tells`` times, as at each quarter: wrong windows, the
stream's speed over real time, CPU time and resident memory of the engine's process tree.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import IO

from benchmarks.measure import OneOf, options, weather_text
from benchmarks.stations import observations
from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.formats.pipe import READY, Task, encode_task
from streamgauge.harness.process import ChildProcess, write_all
from streamgauge.harness.resources import spent, usage
from streamgauge.harness.systems.pipe import program
from streamgauge.model.semantics import R2S
from streamgauge.semantics.profiles import CQELS, RSPQL

THRESHOLD = 50.0
SIZE_MS = 5000
SEMANTICS = {"close": RSPQL, "change": replace(CQELS, name="change", r2s=R2S.ISTREAM)}
CHUNK = 256

Rows = Counter[tuple[str, str, float]]


@dataclass
class Checked:
    """The answers seen so far; ``begin`` is the start (ms) of the window whose rows are gathered."""

    stations: int
    windows: int = 0
    wrong: list[int] = field(default_factory=list)
    rows: int = 0
    begin: int = 0
    gathered: Rows = field(default_factory=Counter)

    def take(self, line: bytes, closes: bool) -> None:
        """One answer: a window's rows, named by its close, or new rows at an instant within one."""
        answer = json.loads(line)
        if "instant" not in answer:
            return
        begin = answer["instant"] - SIZE_MS if closes else answer["instant"] // SIZE_MS * SIZE_MS
        while self.begin < begin:
            self.close()
        rows = [(sensor, obs, float(value[1 : value.rindex('"')])) for sensor, obs, value in answer["add"]]
        self.gathered.update(rows)
        self.rows += len(rows)

    def close(self) -> None:
        """The window that begins at ``begin`` is over: its rows are what the rule says, or it is wrong."""
        if self.gathered != due(self.stations, self.begin):
            self.wrong.append(self.begin)
        self.windows += 1
        self.begin += SIZE_MS
        self.gathered = Counter()


def due(stations: int, begin: int) -> Rows:
    """The rows of the window that begins at ``begin`` (ms), by the rule of ``observations``: value above 50."""
    rows: Rows = Counter()
    for second in range(begin // 1000, (begin + SIZE_MS) // 1000):
        for station in range(stations):
            value = (station * 7 + second * 13) % 100
            if value > THRESHOLD:
                at = second * 1000 + station * 1000 // stations
                sensor, obs = (
                    f"<http://knoesis.wright.edu/ssw/{name}>"
                    for name in (f"System_A{station}", f"Observation_A{station}_{at}")
                )
                rows[sensor, obs, float(value)] += 1
    return rows


def lines(stations: int, seconds: int) -> Iterator[bytes]:
    """The stream second by second, and that it has ended."""
    for second in range(seconds):
        yield from map(encode_element, observations(stations, second))
    yield encode_advance(seconds * 1000)


def soak(name: str, report: str, arguments: argparse.Namespace) -> bool:
    """One soak; whether every window was right."""
    checked = Checked(arguments.stations)
    text = weather_text("select", WSIZE="5s", WSLIDE="5s", TEMP=str(THRESHOLD))
    with ChildProcess(program(name)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        output = process.stdout
        write_all(process.stdin, encode_task(Task(text, "rspql", SEMANTICS[report])))
        if output.readline() != READY:
            raise SystemExit(f"{name} did not get ready")
        reader = threading.Thread(target=lambda: _read(output, checked, report == "close"))
        reader.start()
        minutes = arguments.minutes
        print(
            f"{name}, {report}: {arguments.stations * 7:,} triples a second of stream time, {minutes} min of it",
            flush=True,
        )
        _feed(process, checked, minutes * 60, arguments.tells)
        process.close_input()
        reader.join()
        code = process.wait()
    while checked.begin < minutes * 60_000:
        checked.close()
    wrong = f"{len(checked.wrong)} wrong, the first from {checked.wrong[0]} ms" if checked.wrong else "every one right"
    print(f"  {checked.windows:,} windows, {wrong}; {checked.rows:,} rows; exit code {code}", flush=True)
    return not checked.wrong and code == 0


def _read(output: IO[bytes], checked: Checked, closes: bool) -> None:
    with os.fdopen(os.dup(output.fileno()), "rb") as buffered:
        for line in buffered:
            checked.take(line, closes)


def _feed(process: ChildProcess, checked: Checked, seconds: int, tells: int) -> None:
    """Write everything, and tell so many times how far it is."""
    assert process.stdin is not None
    start, before, fed, advances = time.monotonic(), spent(process.pid), 0, 0
    feed, count = lines(checked.stations, seconds), seconds * checked.stations + 1
    while chunk := list(islice(feed, CHUNK)):
        write_all(process.stdin, b"".join(chunk))
        fed += len(chunk)
        if fed * tells // count > advances:
            advances = fed * tells // count
            _tell(
                process.pid, checked, f"{advances}/{tells}", time.monotonic() - start, spent(process.pid) - before, fed
            )


def _tell(pid: int, checked: Checked, part: str, wall: float, cpu: float, fed: int) -> None:
    now = usage(pid)
    seconds = fed / checked.stations
    memory = f"{now.rss / 2**20:,.0f} MiB" if now else "gone"
    print(
        f"  {part}: {seconds:,.0f} s of stream in {wall:,.0f} s ({seconds / wall:.1f}x real time), "
        f"CPU {cpu:,.0f} s ({fed * 7 / max(cpu, 1e-9):,.0f} triples/s of CPU), {memory}; "
        f"{checked.windows:,} windows, {len(checked.wrong)} wrong",
        flush=True,
    )


def main() -> int:
    arguments = options(
        __doc__, minutes=30, stations=10_000, report=OneOf(SEMANTICS, ("close",)), engine="live", tells=4
    )
    right = [soak(arguments.engine, report, arguments) for report in arguments.report]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
