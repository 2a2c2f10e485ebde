"""Soak: `live` behind the pipe on a stream that is made as it is fed, every window checked, memory sampled.

python -m benchmarks.soak [--minutes 30] [--stations 10000] [--report close change] [--engine live]

Every station reports once a second (7 triples; 10,000 stations are 70,000 triples a second), ``--minutes`` of stream
time as fast as the engine takes them; nothing of the stream is stored. Which rows are due is known from the rule by
which values are made, without any evaluator: the rows of every 5 s (a window that closes, or the new rows of content
change) are compared with it as bags, as they come. Printed at each quarter are wrong windows, the stream's speed over
real time, CPU time and resident memory of the engine's process tree.
"""

import argparse
import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from benchmarks.measure import observations
from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.formats.pipe import READY, Task, encode_task
from streamgauge.harness.resources import spent, usage
from streamgauge.harness.systems.pipe import program
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.query import fill
from streamgauge.semantics.profiles import CQELS, RSPQL
from streamgauge.workloads import load, query_text

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
    found: Rows = Counter()
    for second in range(begin // 1000, (begin + SIZE_MS) // 1000):
        for station in range(stations):
            value = (station * 7 + second * 13) % 100
            if value > THRESHOLD:
                at = second * 1000 + station * 1000 // stations
                sensor, obs = (
                    f"<http://knoesis.wright.edu/ssw/{name}>"
                    for name in (f"System_A{station}", f"Observation_A{station}_{at}")
                )
                found[sensor, obs, float(value)] += 1
    return found


def lines(stations: int, seconds: int) -> Iterator[bytes]:
    """The stream second by second, and that it has ended."""
    for second in range(seconds):
        yield from map(encode_element, observations(stations, second))
    yield encode_advance(seconds * 1000)


def task(semantics: Semantics) -> Task:
    text = fill(query_text(load("weather"), "select"), {"WSIZE": "5s", "WSLIDE": "5s", "TEMP": str(THRESHOLD)})
    return Task(text, "rspql", semantics)


def soak(name: str, report: str, stations: int, minutes: int) -> bool:
    """One soak; whether every window was right."""
    process = subprocess.Popen(program(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    checked = Checked(stations)
    process.stdin.write(encode_task(task(SEMANTICS[report])))
    process.stdin.flush()
    if process.stdout.readline() != READY:
        raise SystemExit(f"{name} did not get ready")
    reader = threading.Thread(target=_read, args=(process, checked, report == "close"))
    reader.start()
    print(f"{name}, {report}: {stations * 7:,} triples a second of stream time, {minutes} min of it", flush=True)
    _feed(process, checked, lines(stations, minutes * 60), minutes * 60 * stations + 1)
    process.stdin.close()
    reader.join()
    code = process.wait()
    while checked.begin < minutes * 60_000:
        checked.close()
    wrong = f"{len(checked.wrong)} wrong, the first from {checked.wrong[0]} ms" if checked.wrong else "every one right"
    print(f"  {checked.windows:,} windows, {wrong}; {checked.rows:,} rows; exit code {code}", flush=True)
    return not checked.wrong and code == 0


def _read(process: "subprocess.Popen[bytes]", checked: Checked, closes: bool) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        checked.take(line, closes)


def _feed(process: "subprocess.Popen[bytes]", checked: Checked, given: Iterator[bytes], count: int) -> None:
    """Write everything, and tell at each quarter how far it is."""
    assert process.stdin is not None
    start, before, fed = time.monotonic(), spent(process.pid), 0
    told = 0
    while chunk := list(islice(given, CHUNK)):
        process.stdin.write(b"".join(chunk))
        fed += len(chunk)
        if fed * 4 // count > told:
            told = fed * 4 // count
            _tell(process, checked, told, time.monotonic() - start, spent(process.pid) - before, fed)


def _tell(
    process: "subprocess.Popen[bytes]", checked: Checked, quarter: int, wall: float, cpu: float, fed: int
) -> None:
    now = usage(process.pid)
    seconds = fed / checked.stations
    memory = f"{now.rss / 2**20:,.0f} MiB" if now else "gone"
    print(
        f"  {quarter}/4: {seconds:,.0f} s of stream in {wall:,.0f} s ({seconds / wall:.1f}x real time), "
        f"CPU {cpu:,.0f} s ({fed * 7 / max(cpu, 1e-9):,.0f} triples/s of CPU), {memory}; "
        f"{checked.windows:,} windows, {len(checked.wrong)} wrong",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=int, default=30)
    options.add_argument("--stations", type=int, default=10_000)
    options.add_argument("--report", nargs="*", choices=sorted(SEMANTICS), default=["close"])
    options.add_argument("--engine", default="live")
    given = options.parse_args()
    right = [soak(given.engine, report, given.stations, given.minutes) for report in given.report]
    raise SystemExit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
