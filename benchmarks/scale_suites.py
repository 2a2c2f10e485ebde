"""The suites of the papers through Spark at their full size, with the driver of the sizes: 1 GiB with its Python.

python -m benchmarks.scale_suites [--parts universities sepbm yabench] [--universities 100] [--extended 10]
    [--repetitions 10] [--only E1/small ...] [--master local[2]] [--cluster]

`universities` generates LUBM's data with its full closure. `sepbm` generates SEP-BM's configuration: base load,
closure, channels, and the reference answers to all publications. `yabench` takes experiments 1 to 3 at each load
through `pipeline`: generated, answered as C-SPARQL and as CQELS by the live engine, judged on Spark, reported. Every
repetition has a stream of its own: an engine without a clock answers the same stream in the same way.

CPU and memory are as in `benchmarks.scale`; so is `--cluster`.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.measure import OneOf, parser
from benchmarks.results import ResultTable
from benchmarks.scale import MIB, ProcessCost, StageCommand, measured, standalone
from streamgauge.papers.yabench.trials import YabenchTrial, trials

COLUMNS: Final = ("what", "wall, s", "CPU s", "driver's Python, MiB", "with its JVM, MiB", "an executor, MiB")
SEMANTICS: Final = ("csparql", "cqels")


def universities(folder: Path, arguments: argparse.Namespace, at: list[object]) -> Iterator[tuple[str, StageCommand]]:
    """LUBM's data with the closure."""
    what = f"LUBM({arguments.universities}) with its closure"
    size = ["--universities", arguments.universities, "--closure", "full", "--format", "ntriples"]
    yield what, StageCommand("", ["generate", "university", *size, "--out", folder / "lubm", *at])


def sepbm(folder: Path, arguments: argparse.Namespace, at: list[object]) -> Iterator[tuple[str, StageCommand]]:
    """SEP-BM's configuration with its reference answers."""
    words = ["sepbm", "generate", folder / "sepbm", "--universities", arguments.extended, *at]
    yield f"SEP-BM({arguments.extended}) with its reference answers", StageCommand("", words)


def yabench(folder: Path, arguments: argparse.Namespace, at: list[object]) -> Iterator[tuple[str, StageCommand]]:
    """Experiments 1 to 3 of YABench, a pipeline for each load."""
    for trial in trials(None, arguments.only or ("E1", "E2", "E3")):
        name = trial.name.replace("/", "-")
        file = folder / f"{name}.toml"
        file.write_text(experiment_file(name, trial, arguments.repetitions), encoding="utf-8")
        words = ["pipeline", file, "--out", folder / name, *at]
        yield f"YABench {trial.name}, {arguments.repetitions} streams", StageCommand("", words)


def experiment_file(name: str, trial: YabenchTrial, repetitions: int) -> str:
    """The experiment file of a trial: its seed and those after it, under both semantics."""
    seeds = list(range(trial.seed, trial.seed + repetitions))
    tables = {
        "workload": trial.workload,
        "query": {"name": trial.query["name"]},
        "query.parameters": trial.query["parameters"],
        "feed": {"pace": "fast", "advance_to": trial.duration + trial.window},
    }
    lines = [f"name = {json.dumps(name)}", f"seeds = {seeds}"]
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join([*lines, "[[engine]]", 'name = "live"', f"semantics = {json.dumps(SEMANTICS)}", ""])


PARTS: Final = {"universities": universities, "sepbm": sepbm, "yabench": yabench}


def main() -> None:
    command = parser(
        __doc__, parts=OneOf(PARTS), universities=100, extended=10, repetitions=10, only=("",), master="local[2]"
    )
    command.add_argument("--cluster", action="store_true")
    arguments = command.parse_args()
    arguments.only = tuple(filter(None, arguments.only))
    with ExitStack() as stack:
        table = stack.enter_context(ResultTable("scale_suites", COLUMNS, set(arguments.parts) != set(PARTS)))
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(standalone(root)) if arguments.cluster else None
        at: list[object] = ["--master", cluster.url if cluster else arguments.master]
        for part in arguments.parts:
            for what, stage in PARTS[part](root, arguments, at):
                table.add(what, *_shown(*measured(stage, root, cluster)))


def _shown(wall: float, cost: ProcessCost) -> tuple[str, ...]:
    memory = (f"{peak / MIB:,.0f}" for peak in (cost.python, cost.with_jvm, cost.executor))
    return f"{wall:.0f}", f"{cost.cpu:.0f}", *memory


if __name__ == "__main__":
    main()
