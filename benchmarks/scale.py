"""The pipeline at growing sizes: CPU seconds a million triples of each stage, and the peak memory of its driver.

python -m benchmarks.scale [MILLIONS ...] [--master local[2]]

The stream is YABench's weather at 1,000 stations, 7,000 triples a second of stream time; the query counts observations
by sensor over windows of 10 s. A stage is a program of its own, as a user starts it: `generate`, `stream` (Structured
Streaming), `check` by the definition in tasks. CPU is that of the program with its JVM and workers; memory is the peak
of the driver's Python, and of its JVM with it.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from benchmarks.measure import parser
from benchmarks.results import ResultTable

TRIPLES_A_SECOND: Final = 7_000
SIZES: Final = ("1", "5")
QUERY: Final = """PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
REGISTER <http://ex.org/answers/count> AS
SELECT ?sensor (COUNT(?obs) AS ?count)
FROM NAMED WINDOW <http://ex.org/windows/w> ON <http://ex.org/streams/test> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <http://ex.org/windows/w> { ?obs om-owl:observedProperty weather:_AirTemperature ;
  om-owl:procedure ?sensor . } }
GROUP BY ?sensor
"""
COLUMNS: Final = (
    "triples",
    "stage",
    "wall, s",
    "CPU s",
    "CPU s a million",
    "driver's Python, MiB",
    "with its JVM, MiB",
)
EVERY_S: Final = 0.2
MIB: Final = 1 << 20


class ProcessCost:
    """The CPU seconds of a program and all that it starts, and its peak memory (bytes), watched while it runs."""

    def __init__(self) -> None:
        self.python = self.with_jvm = 0
        self._cpu: dict[tuple[int, float], float] = {}

    @property
    def cpu(self) -> float:
        """CPU seconds of all processes, each as far as it was seen."""
        return sum(self._cpu.values())

    def watch(self, program: "subprocess.Popen[bytes]") -> None:
        """Look at the program until it ends."""
        own = psutil.Process(program.pid)
        while program.poll() is None:
            self._look(own)
            time.sleep(EVERY_S)

    def _look(self, own: psutil.Process) -> None:
        try:
            processes = [own, *own.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        memory = 0
        for process in processes:
            try:
                times, size = process.cpu_times(), process.memory_info().rss
                self._cpu[process.pid, process.create_time()] = times.user + times.system
                if process == own:
                    self.python = max(self.python, size)
                if process == own or process.name() == "java":
                    memory += size
            except psutil.NoSuchProcess:
                continue
        self.with_jvm = max(self.with_jvm, memory)


def measured(words: list[str], folder: Path) -> tuple[float, ProcessCost]:
    """The wall seconds and the cost of a command; SystemExit with its words when it fails."""
    cost, began = ProcessCost(), time.monotonic()
    command = [sys.executable, "-m", "streamgauge.cli.main", *words]
    with (folder / "said").open("wb") as said:
        program = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | {"COLUMNS": "80"})
        cost.watch(program)
    if program.returncode:
        raise SystemExit((folder / "said").read_text())
    return time.monotonic() - began, cost


def stages(folder: Path, millions: float, master: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of the stages, in order."""
    seconds = max(20, round(millions * 1e6 / TRIPLES_A_SECOND / 10) * 10)
    query, stream, run = folder / "count.rq", folder / "stream", folder / "run"
    query.write_text(QUERY, encoding="utf-8")
    size = ["--stations", "1000", "--duration", f"{seconds}s"]
    yield "generate", ["generate", "weather", *size, "--out", str(stream), "--master", master]
    state = ["--checkpoint", str(folder / "state"), "--drain", "--master", master]
    yield "stream", ["stream", str(query), "--from", str(stream), "--to", str(run), *state]
    yield "check, definition in tasks", ["check", str(run), "--master", master]


def main() -> None:
    command = parser(__doc__, master="local[2]")
    command.add_argument("millions", nargs="*", metavar="MILLIONS", default=SIZES)
    given = command.parse_args()
    with ResultTable("scale", COLUMNS, given.millions != SIZES) as table:
        for size in given.millions:
            with tempfile.TemporaryDirectory() as scratch:
                for name, words in stages(Path(scratch), float(size), given.master):
                    wall, cost = measured(words, Path(scratch))
                    share = cost.cpu / float(size)
                    memory = (f"{cost.python / MIB:,.0f}", f"{cost.with_jvm / MIB:,.0f}")
                    table.add(
                        f"{float(size):g} million", name, f"{wall:.0f}", f"{cost.cpu:.0f}", f"{share:.1f}", *memory
                    )


if __name__ == "__main__":
    main()
