"""YABench's experiments and result files, expected sizes of regenerated streams, and its text against its files."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from streamgauge import workloads
from streamgauge.harness.importing import MIB, ForeignError, read_samples, read_text
from streamgauge.model.query import ContinuousQuery
from streamgauge.oracle.judging.judge import Means, expected_reports
from streamgauge.papers.reproduction import ComparedClaim, ReproductionSteps, Tell, claims_table, paper
from streamgauge.papers.yabench.oracle_files import OracleLine
from streamgauge.papers.yabench.oracle_files import parse as parse_line
from streamgauge.query import fill, parse
from streamgauge.report.numbers import percent
from streamgauge.report.sections import PageTable, TableLine
from streamgauge.semantics.profiles import YABENCH, YABENCH_CHANGE
from streamgauge.workloads.plan import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PAPER: Final = paper("yabench")
NAMES: Final = {"csparql": "C-SPARQL", "cqels": "CQELS"}
LOADS: Final = ("small", "medium", "big")
WINDOW: Final = {"WSIZE": "5s", "WSLIDE": "5s"}
SIZE: Final = 5000
"""The windows' size and slide, ms."""


@dataclass(frozen=True)
class YabenchExperiment:
    """An experiment: query and parameters, seed, duration (ms), number of stations by load."""

    query: str
    parameters: dict[str, str]
    seed: int
    duration: int
    stations: dict[str, int]


EXPERIMENTS: Final = {number: YabenchExperiment(**PAPER.value(f"experiment_{number}")) for number in (1, 2, 3, 4)}


@dataclass(frozen=True)
class PublishedLines:
    """The result files of an experiment, engine and load (or test), sorted by name."""

    files: dict[str, list[OracleLine]]

    @property
    def windows(self) -> int:
        """The number of windows of the longest file."""
        return max(map(len, self.files.values()))

    def column(self, value: Callable[[OracleLine], float], window: int) -> list[float]:
        """One figure of a window (numbered from 0) for each run that has the window."""
        return [value(lines[window]) for lines in self.files.values() if window < len(lines)]

    def medians(self, value: Callable[[OracleLine], float]) -> list[float]:
        """The medians over the runs, by window."""
        return [median(self.column(value, window)) for window in range(self.windows)]


class ResultFiles:
    """The published files in a folder; ForeignError names a missing or invalid one."""

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
        files = [
            file
            for file in sorted(self.folder(number, engine).glob("ORACLE_*"))
            # ORACLE_small1 to ORACLE_small10 are the runs of ``small``.
            if file.name.removeprefix("ORACLE_").rstrip("0123456789") == load
        ]
        if not files:
            raise ForeignError(
                f"{self.folder(number, engine)}: no file ORACLE_{load}: the published results are missing"
            )
        return PublishedLines({file.name: _lines(file) for file in files})

    def memory(self, number: int, engine: str, load: str) -> list[float]:
        """The resident memory over time in MiB, averaged over the runs."""
        return [size for _, size in self.memory_over_time(number, engine, load)]

    def memory_over_time(self, number: int, engine: str, load: str) -> list[tuple[float, float]]:
        """(time in s, resident memory in MiB), averaged over the runs."""
        _, samples = read_samples(self.folder(number, engine) / f"P_{load}_agg", 0)
        return [(sample.at / 1e9, sample.rss / MIB) for sample in samples]


def _lines(file: Path) -> list[OracleLine]:
    lines = []
    for number, text in enumerate(read_text(file).splitlines(), 1):
        try:
            lines.append(parse_line(text))
        except ValueError as error:
            raise ForeignError(f"{file}, line {number}: {error}") from error
    return lines


def percent_of(values: Sequence[float]) -> str:
    """The range of shares in percent."""
    low, high = percent(min(values)), percent(max(values))
    return low if low == high else f"{low} to {high}"


Sizes = list[tuple[int, int]]
"""(expected rows, input triples) by window."""


def query_of(experiment: YabenchExperiment) -> tuple[str, ContinuousQuery]:
    """The experiment's query as text and parsed."""
    template = workloads.query_text(workloads.load("weather"), experiment.query)
    text = fill(template, {**WINDOW, **experiment.parameters})
    return text, parse(text)


def generate(spark: "Callable[[], SparkSession]", experiment: YabenchExperiment, load: str, target: Path) -> Path:
    """The experiment's stream as a table on disk."""
    weather = workloads.load("weather")
    size = {"stations": experiment.stations[load], "duration": experiment.duration}
    parameters = workloads.parameters(weather, size)
    Maker(spark).write_stream(weather, experiment.seed, parameters, target)
    return target


@dataclass(frozen=True)
class LoadLines:
    """The lines of a load: C-SPARQL's, and in experiment 1 CQELS's."""

    closing: tuple[TableLine, ...]
    changing: tuple[TableLine, ...] = ()


def tables(
    results: ResultFiles,
    spark: "Callable[[], SparkSession]",
    loads: Sequence[str],
    tell: Tell,
    steps: ReproductionSteps,
) -> Iterator[PageTable]:
    """A table for each comparable experiment and engine."""
    lines: dict[tuple[int, str], list[TableLine]] = {(1, "csparql"): [], (1, "cqels"): [], (2, "csparql"): []}
    todo = [(number, load) for number in (1, 2) for load in loads]
    for done, (number, load) in enumerate(todo):
        tell(f"experiment {number}, {load}", done / len(todo))
        sizes = steps.do(f"sizes-{number}-{load}", LoadLines, partial(_load, results, spark, number, load))
        lines[number, "csparql"] += sizes.closing
        if number == 1:
            lines[1, "cqels"] += sizes.changing
    for (number, engine), own in lines.items():
        yield PAPER.table("sizes", own, number=number, engine=NAMES[engine])


def _load(results: ResultFiles, spark: "Callable[[], SparkSession]", number: int, load: str) -> LoadLines:
    experiment = EXPERIMENTS[number]
    with TemporaryDirectory() as scratch:
        stream = generate(spark, experiment, load, Path(scratch) / "stream")
        published = results.lines(number, "csparql", load)
        sizes = closing(experiment, stream, Means(spark), published.windows)
        closed = tuple(compared(load, published, sizes))
        if number != 1:
            return LoadLines(closed)
        changes = changing(experiment, stream, Means(spark), [size for _, size in sizes])
        return LoadLines(closed, tuple(compared(load, results.lines(1, "cqels", load), changes)))


def closing(experiment: YabenchExperiment, stream: Path, means: Means, windows: int) -> Sizes:
    """The rows and content size of each window that closes, with windows closed at both ends from 0 on."""
    reports = expected_reports(query_of(experiment)[1], YABENCH, stream, means, windows=windows)
    return [(len(report.rows), report.content) for report in reports]


def changing(experiment: YabenchExperiment, stream: Path, means: Means, inputs: Sequence[int]) -> Sizes:
    """The numbers of new rows by the slide in which they are due, with the triples of the window that closes there."""
    query = query_of(experiment)[1]
    reports = expected_reports(query, YABENCH_CHANGE, stream, means, advance_to=experiment.duration)
    rows: Counter[int] = Counter()
    for report in reports:
        # The slide that ends at the instant or next after it, from 0: 5000 ms is in slide 0, 5001 ms in slide 1.
        rows[max(0, -(-report.due.instant // SIZE) - 1)] += len(report.rows)
    return [(rows[number], size) for number, size in enumerate(inputs[: max(rows) + 1])]


def compared(load: str, published: PublishedLines, ours: Sizes) -> Iterator[TableLine]:
    """A line per window with the values of all files and ours."""
    for window in range(published.windows):
        published_sizes = [
            (line.expected, line.input) for lines in published.files.values() for line in lines[window : window + 1]
        ]
        mine = ours[window] if window < len(ours) else (0, 0)
        rows, triples = (
            " or ".join(f"{value:,}" for value in sorted(set(side))) for side in zip(*published_sizes, strict=True)
        )
        cells = (load, f"{window + 1}", f"{len(published_sizes)}", rows, f"{mine[0]:,}", triples, f"{mine[1]:,}")
        # All files have to agree with each other, too.
        yield TableLine(cells, set(published_sizes) == {mine})


SAME, OTHER = "the files agree", "the files say otherwise"
"""The outcome of a claim of the text; it is not counted, as it does not concern our values."""


def claims(results: ResultFiles) -> PageTable:
    """Every claim of the text with the figure recomputed from the published files."""
    shown = claims_table("The text and the files", _claims(results))
    columns = ("claim", "text", "files", "outcome", *shown.columns[3:5])
    lines = (TableLine((*line.cells[:3], SAME if line.agrees else OTHER, *line.cells[3:5])) for line in shown.lines)
    return PageTable(shown.heading, columns, tuple(lines))


def _claims(results: ResultFiles) -> Iterator[ComparedClaim]:
    yield from _correct(results)
    yield from _late(results)
    yield from _memory(results)
    yield from _averages(results)
    yield from _last_results(results)


def _correct(results: ResultFiles) -> Iterator[ComparedClaim]:
    claims_ = PAPER.claims
    for load in ("small", "medium", "big"):
        published = results.lines(1, "cqels", load)
        shares = [
            share for lines in published.files.values() for line in lines for share in (line.precision, line.recall)
        ]
        yield claims_["cqels_correct"].beside(shares, percent_of(shares), load=load)
    small = results.lines(1, "csparql", "small")
    below = [f"W{i + 1}" for i in range(small.windows) if min(small.column(lambda line: line.precision, i)) < 1]
    yield claims_["csparql_precision"].beside(below, ", ".join(below))
    recall = small.medians(lambda line: line.recall)
    yield claims_["csparql_recall"].beside(recall, percent_of(recall))
    for load in ("medium", "big"):
        published = results.lines(1, "csparql", load)
        columns = [published.column(lambda line: line.recall, i) for i in range(published.windows)]
        # Negative width as the key: the two windows of the largest spread come first, then they are put in order of
        # time.
        widest = sorted(sorted(range(published.windows), key=lambda i: min(columns[i]) - max(columns[i]))[:2])
        text = ", ".join(f"W{i + 1} ({percent_of(columns[i])})" for i in widest)
        yield claims_["csparql_spread"].beside([f"W{i + 1}" for i in widest], text, load=load)


def _late(results: ResultFiles) -> Iterator[ComparedClaim]:
    cqels = results.lines(1, "cqels", "small").medians(lambda line: line.delay)
    text = f"{min(cqels):g} to {max(cqels):g} ms"
    yield PAPER.claims["cqels_delay"].beside(text, text)
    published = results.lines(1, "csparql", "small")
    first, *rest = published.medians(lambda line: line.delay)
    text = f"{first:g}, then {min(rest):g} to {max(rest):g} ms"
    yield PAPER.claims["csparql_delay"].beside(text, text)
    least = min(line.delay for lines in published.files.values() for line in lines)
    yield PAPER.claims["negative_delay"].beside(least, f"{least} ms")


def _memory(results: ResultFiles) -> Iterator[ComparedClaim]:
    for load in ("small", "medium"):
        mean = fmean(results.memory(1, "csparql", load))
        yield PAPER.claims[f"mean_memory_{load}"].beside(round(mean), f"{mean:.0f} MiB")
    peak = max(results.memory(1, "cqels", "medium"))
    yield PAPER.claims["memory_levels_off"].beside(peak, f"{peak:,.0f} MiB at most")
    for engine in ("cqels", "csparql"):
        peak = max(results.memory(1, engine, "big"))
        yield PAPER.claims[f"memory_big_{engine}"].beside(round(peak), f"{peak:,.0f} MiB")


def _averages(results: ResultFiles) -> Iterator[ComparedClaim]:
    first, *rest = small = results.lines(2, "cqels", "small").medians(lambda line: line.precision)
    text = ", ".join(f"{share * 100:.0f}" for share in small)
    yield PAPER.claims["average_small"].beside([first, max(rest, default=0)], text)
    for engine in ("cqels", "csparql"):
        medium = results.lines(2, engine, "medium").medians(lambda line: line.precision)
        yield PAPER.claims["average_medium"].beside(medium, percent_of(medium), engine=NAMES[engine])


def _last_results(results: ResultFiles) -> Iterator[ComparedClaim]:
    """Table 2's lower bound; the text only says that small is about 30 s."""
    for load in ("small", "medium", "big"):
        arrival = last_result(results.lines(1, "cqels", load))
        name = "last_result_small" if load == "small" else "last_result"
        yield PAPER.claims[name].beside(arrival, f"{arrival:.1f} s", load=load)


def last_result(lines: PublishedLines) -> float:
    """A lower bound of the arrival of the last result (s): the last window's end plus its mean delay."""
    return fmean(lines.column(lambda line: line.end + line.delay, lines.windows - 1)) / 1000
