"""YABench's experiments and their published result files: ORACLE_ lines per run, and the aggregated P_ files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from streamgauge.harness.importing import MIB, ForeignError, read_samples, read_text
from streamgauge.papers.claims import paper
from streamgauge.papers.yabench.oracle_files import OracleLine, parse
from streamgauge.report.numbers import percent

PAPER: Final = paper("yabench")
NAMES: Final = {"csparql": "C-SPARQL", "cqels": "CQELS"}
LOADS: Final = ("small", "medium", "big")
WINDOW: Final = {"WSIZE": "5s", "WSLIDE": "5s"}
SIZE: Final = 5000
"""The windows' size and slide, ms."""


@dataclass(frozen=True)
class YabenchExperiment:
    """One experiment: its query with parameters, its seed and duration (ms), the stations of each load."""

    query: str
    parameters: dict[str, str]
    seed: int
    duration: int
    stations: dict[str, int]


EXPERIMENTS: Final = {number: YabenchExperiment(**PAPER.value(f"experiment_{number}")) for number in (1, 2, 3, 4)}


@dataclass(frozen=True)
class PublishedLines:
    """The result files of one experiment, engine and load (or test), in order of their names."""

    files: dict[str, list[OracleLine]]

    @property
    def windows(self) -> int:
        """The number of windows of the longest file."""
        return max(map(len, self.files.values()))

    def column(self, value: Callable[[OracleLine], float], window: int) -> list[float]:
        """A figure of one window (from 0) over the runs."""
        return [value(lines[window]) for lines in self.files.values() if window < len(lines)]

    def medians(self, value: Callable[[OracleLine], float]) -> list[float]:
        """The medians over the runs, a window each."""
        return [median(self.column(value, window)) for window in range(self.windows)]


class ResultFiles:
    """The published files below a folder; ForeignError names what is missing or wrong."""

    def __init__(self, data: Path) -> None:
        """``data`` holds ``experiments`` (or is it)."""
        self._root = data / "experiments" if (data / "experiments").is_dir() else data
        if not (self._root / "Experiment_1").is_dir():
            raise ForeignError(
                f"{self._root}: no Experiment_1 here: --data names the folder of YABench-One's experiments"
            )

    def folder(self, number: int, engine: str) -> Path:
        """The folder of an experiment's files."""
        return self._root / f"Experiment_{number}" / engine

    def lines(self, number: int, engine: str, load: str) -> PublishedLines:
        """The ORACLE_ files of a load."""
        found = [
            file
            for file in sorted(self.folder(number, engine).glob("ORACLE_*"))
            if file.name.removeprefix("ORACLE_").rstrip("0123456789") == load
        ]
        if not found:
            raise ForeignError(
                f"{self.folder(number, engine)}: no file ORACLE_{load}: the published results are missing"
            )
        return PublishedLines({file.name: _lines(file) for file in found})

    def memory(self, number: int, engine: str, load: str) -> list[float]:
        """The resident memory over time in MiB, mean over the runs."""
        return [size for _, size in self.memory_over_time(number, engine, load)]

    def memory_over_time(self, number: int, engine: str, load: str) -> list[tuple[float, float]]:
        """The resident memory in MiB with its times (s), mean over the runs."""
        _, samples = read_samples(self.folder(number, engine) / f"P_{load}_agg", 0)
        return [(sample.at / 1e9, sample.rss / MIB) for sample in samples]


def _lines(file: Path) -> list[OracleLine]:
    found = []
    for number, text in enumerate(read_text(file).splitlines(), 1):
        try:
            found.append(parse(text))
        except ValueError as error:
            raise ForeignError(f"{file}, line {number}: {error}") from error
    return found


def percent_of(values: Sequence[float]) -> str:
    """Shares as percent, from lowest to highest."""
    low, high = percent(min(values)), percent(max(values))
    return low if low == high else f"{low} to {high}"
