"""The pipeline at growing sizes: CPU seconds a million triples of each stage, and the peak memory of its driver.

python -m benchmarks.scale [MILLIONS ...] [--master local[2] | --cluster [--workers 2]]

The stream is YABench's weather at 1,000 stations, 7,000 triples a second of stream time; the query is that of its
experiment 1, the observations above a temperature, over windows of 10 s. A stage is a program of its own, as a user
starts it: `generate`, `stream` (Structured Streaming), `check` by compiled plans and by the definition in tasks; then,
of the same answers with another comparison declared, `explain` and `report`; at the end, as it takes longest, with
other borders declared than they were given under, `check --gracious`. The answers of `stream` are judged as another
engine's, as compiled plans do not judge themselves. `--cluster` starts a standalone cluster by the recipe of
docs/spark-engine.md on this machine: workers of one core with executors of 4 GiB, and a driver of 1 GiB, each with its
Python. Each worker is held to a core, so that one of them leaves the other to the driver.

CPU is that of the program with its JVM and workers, those of the cluster too. Memory is the peak of the driver's
Python, of its JVM with it, and of the larger executor with its Python.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from tests.prove.clusters import Cluster

from benchmarks.measure import parser
from benchmarks.results import ResultTable
from streamgauge.cli.exits import Exit
from streamgauge.formats.run import read_heads, stream_place, write_header
from streamgauge.model.semantics import Borders
from streamgauge.query import parse

TRIPLES_A_SECOND: Final = 7_000
SIZES: Final = ("1", "5")
QUERY: Final = """PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
REGISTER <http://ex.org/answers/select> AS
SELECT ?sensor ?obs ?value
FROM NAMED WINDOW <http://ex.org/windows/w> ON <http://ex.org/streams/test> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <http://ex.org/windows/w> { ?obs om-owl:observedProperty weather:_AirTemperature ;
  om-owl:procedure ?sensor ; om-owl:result ?result . ?result om-owl:floatValue ?value . } FILTER(?value > 50) }
"""
PLANTED: Final = QUERY.replace("?value > 50", "?value < 50")
"""The query that an engine is declared to have answered which in fact compared by another operator."""

COLUMNS: Final = (
    "triples",
    "stage",
    "wall, s",
    "CPU s",
    "CPU s a million",
    "driver's Python, MiB",
    "with its JVM, MiB",
    "an executor, MiB",
)
EVERY_S: Final = 0.5
EXECUTORS_EVERY: Final = 8
"""Looks per reading of executors' memory, which walks all their pages: at every look it took an eighth of a core."""
MIB: Final = 1 << 20


class ProcessCost:
    """The CPU seconds of a program and all that it starts, and its peak memory (bytes), watched while it runs."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.python = self.with_jvm = self.executor = 0
        self._cpu: dict[tuple[int, float], float] = {}
        self._workers = [psutil.Process(one.pid) for one in cluster.running] if cluster else []
        self._before: dict[tuple[int, float], float] = {}
        for worker in self._workers:
            self._count([worker, *worker.children(recursive=True)], self._before)

    @property
    def cpu(self) -> float:
        """CPU seconds of all processes, each as far as it was seen, without what workers had used before."""
        return sum(seconds - self._before.get(process, 0.0) for process, seconds in self._cpu.items())

    @staticmethod
    def _count(processes: Sequence[psutil.Process], into: dict[tuple[int, float], float]) -> None:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                into[process.pid, process.create_time()] = times.user + times.system

    def watch(self, program: "subprocess.Popen[bytes]") -> None:
        """Look at the program until it ends."""
        own = psutil.Process(program.pid)
        for number in itertools.takewhile(lambda _: program.poll() is None, itertools.count()):
            self._look(own)
            if number % EXECUTORS_EVERY == 0:
                self.executor = max(self.executor, *map(_executor, self._workers), 0)
            time.sleep(EVERY_S)

    def _look(self, own: psutil.Process) -> None:
        with suppress(psutil.NoSuchProcess):
            processes = [own, *own.children(recursive=True)]
            far = [process for worker in self._workers for process in (worker, *worker.children(recursive=True))]
            self._count([*processes, *far], self._cpu)
            self.python = max(self.python, own.memory_info().rss)
            jvm = [process.memory_info().rss for process in processes if process.name() == "java"]
            self.with_jvm = max(self.with_jvm, own.memory_info().rss + sum(jvm))


def _executor(worker: psutil.Process) -> int:
    """The memory (bytes) of a worker's executor with its Python."""
    size = 0
    for process in worker.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            size += process.memory_full_info().pss  # workers of Python share most of what they loaded
    return size


def measured(stage: "StageCommand", folder: Path, cluster: Cluster | None) -> tuple[float, ProcessCost]:
    """The wall seconds and the cost of a stage; SystemExit with its words when it fails."""
    cost, began = ProcessCost(cluster), time.monotonic()
    command = [sys.executable, "-m", "streamgauge.cli.main", *map(str, stage.words)]
    with (folder / "said").open("wb") as output:
        program = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | {"COLUMNS": "80"})
        cost.watch(program)
    if program.returncode not in stage.codes:
        raise SystemExit((folder / "said").read_text())
    return time.monotonic() - began, cost


class StageCommand(NamedTuple):
    """A command, and what has to be done before it; ``codes`` are the exit codes of its success."""

    name: str
    words: list[object]
    codes: tuple[int, ...] = (0,)
    before: Callable[[], object] = lambda: None


def stages(folder: Path, millions: float, master: str) -> Iterator[StageCommand]:
    """The commands of the stages, in order."""
    seconds = max(20, round(millions * 1e6 / TRIPLES_A_SECOND / 10) * 10)
    query, stream, run = folder / "query.rq", folder / "stream", folder / "run"
    query.write_text(QUERY, encoding="utf-8")
    size = ["--stations", "1000", "--duration", f"{seconds}s"]
    at = ["--master", master]
    state = ["--checkpoint", folder / "state", "--drain", *at]
    judge = ["check", run, *at, "--evaluator"]
    declared = partial(_declared, run)
    yield StageCommand("generate", ["generate", "weather", *size, "--out", stream, *at])
    yield StageCommand("stream", ["stream", query, "--from", stream, "--to", run, *state])
    yield StageCommand("check, compiled plans", [*judge, "spark"], before=declared)
    yield StageCommand("check, definition", [*judge, "definition"], before=declared)
    yield StageCommand("explain", ["explain", run, *at], before=partial(declared, PLANTED))
    yield StageCommand("report", ["report", run, "--out", folder / "report.html"])
    wrong_borders = partial(declared, borders=Borders.OPEN_CLOSED)
    yield StageCommand("check --gracious", [*judge, "spark", "--gracious"], (Exit.WRONG,), wrong_borders)


def _declared(run: Path, query: str = QUERY, borders: Borders = Borders.CLOSED_OPEN) -> None:
    """Have a run declare this query and these borders, and no engine of ours."""
    heads = read_heads(run, parse)
    assert heads is not None
    semantics = replace(heads.header.semantics, borders=borders)
    header = replace(heads.header, evaluator=None, query=parse(query), query_text=query, semantics=semantics)
    write_header(run, header, str(stream_place(run)), finished=True)


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A standalone cluster of workers with one core each, and the settings that programs get by the environment."""
    cluster = Cluster(folder)
    os.environ |= {
        "PYSPARK_SUBMIT_ARGS": "--conf spark.executor.memory=3g pyspark-shell",
        "SPARK_DRIVER_MEMORY": "512m",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "SPARK_LOCAL_IP": cluster.host,
        "STREAMGAUGE_WORKERS_LIMIT_S": "900",  # JVMs of workers start slowly on a busy machine
    }
    try:
        cluster.start()
        for core in range(workers):
            # An executor's JVM and Python would take two cores, and two workers would be no faster than one.
            cluster.work(inside=("taskset", "-c", str(core % (os.cpu_count() or 1))), memory="4g")
        yield cluster
    finally:
        cluster.stop()


def main() -> None:
    command = parser(__doc__, master="local[2]")
    command.add_argument("millions", nargs="*", metavar="MILLIONS", default=SIZES)
    command.add_argument("--cluster", action="store_true")
    command.add_argument("--workers", type=int, default=2)
    arguments = command.parse_args()
    usual = arguments.millions == SIZES and not arguments.cluster
    with ExitStack() as stack:
        table = stack.enter_context(ResultTable("scale", COLUMNS, not usual))
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(standalone(root, arguments.workers)) if arguments.cluster else None
        master = cluster.url if cluster else arguments.master
        for size in map(float, arguments.millions):
            folder = root / f"{size:g}"
            folder.mkdir()
            for stage in stages(folder, size, master):
                stage.before()
                table.add(f"{size:g} million", stage.name, *_shown(*measured(stage, folder, cluster), size))


def _shown(wall: float, cost: ProcessCost, millions: float) -> tuple[str, ...]:
    memory = (f"{peak / MIB:,.0f}" for peak in (cost.python, cost.with_jvm, cost.executor))
    return f"{wall:.0f}", f"{cost.cpu:.0f}", f"{cost.cpu / millions:.1f}", *memory


if __name__ == "__main__":
    main()
