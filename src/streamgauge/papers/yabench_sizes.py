"""Expected rows and triples of experiments 1 and 2: streams made again from their seeds, published lines beside."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from streamgauge import workloads
from streamgauge.model.query import ContinuousQuery
from streamgauge.oracle.judging.expecting import expected_reports
from streamgauge.oracle.judging.judge import Means
from streamgauge.papers.result import Line, Table
from streamgauge.papers.steps import Steps
from streamgauge.papers.yabench_files import Published, Results
from streamgauge.papers.yabench_published import EXPERIMENTS, NAMES, SIZE, WINDOW, Experiment
from streamgauge.query import fill, parse
from streamgauge.semantics.profiles import YABENCH, YABENCH_CHANGE
from streamgauge.workloads.tables import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sizes = list[tuple[int, int]]
"""Expected rows and input triples, a window each."""

Tell = Callable[[str, float], None]


def query_of(experiment: Experiment) -> tuple[str, ContinuousQuery]:
    """The experiment's query as text and parsed."""
    template = workloads.query_text(workloads.load("weather"), experiment.query)
    text = fill(template, {**WINDOW, **experiment.parameters})
    return text, parse(text)


def generate(spark: "Callable[[], SparkSession]", experiment: Experiment, load: str, target: Path) -> Path:
    """The experiment's stream as a table on disk."""
    weather = workloads.load("weather")
    size = {"stations": experiment.stations[load], "duration": experiment.duration}
    given = workloads.parameters(weather, size)
    Maker(spark).write_stream(weather, experiment.seed, given, target)
    return target


@dataclass(frozen=True)
class Load:
    """The lines of a load: C-SPARQL's, and in experiment 1 CQELS's."""

    closing: tuple[Line, ...]
    changing: tuple[Line, ...] = ()


def tables(
    results: Results, spark: "Callable[[], SparkSession]", loads: Sequence[str], tell: Tell, steps: Steps
) -> Iterator[Table]:
    """A table per experiment and engine that can be compared."""
    lines: dict[tuple[int, str], list[Line]] = {(1, "csparql"): [], (1, "cqels"): [], (2, "csparql"): []}
    todo = [(number, load) for number in (1, 2) for load in loads]
    for done, (number, load) in enumerate(todo):
        tell(f"experiment {number}, {load}", done / len(todo))
        found = steps.do(f"sizes-{number}-{load}", Load, partial(_load, results, spark, number, load))
        lines[number, "csparql"] += found.closing
        if number == 1:
            lines[1, "cqels"] += found.changing
    columns = ("load", "window", "files", "rows published", "rows ours", "triples published", "triples ours")
    for (number, engine), own in lines.items():
        yield Table(f"Experiment {number}, {NAMES[engine]}", columns, tuple(own))


def _load(results: Results, spark: "Callable[[], SparkSession]", number: int, load: str) -> Load:
    experiment = EXPERIMENTS[number]
    with TemporaryDirectory() as scratch:
        stream = generate(spark, experiment, load, Path(scratch) / "stream")
        published = results.lines(number, "csparql", load)
        sizes = closing(experiment, stream, Means(spark), published.windows)
        closed = tuple(compared(load, published, sizes))
        if number != 1:
            return Load(closed)
        changes = changing(experiment, stream, Means(spark), [size for _, size in sizes])
        return Load(closed, tuple(compared(load, results.lines(1, "cqels", load), changes)))


def closing(experiment: Experiment, stream: Path, means: Means, windows: int) -> Sizes:
    """The sizes of the windows that close: closed at both ends, from 0 on."""
    found = expected_reports(query_of(experiment)[1], YABENCH, stream, means, windows=windows)
    return [(len(report.rows), report.content) for report in found]


def changing(experiment: Experiment, stream: Path, means: Means, inputs: Sequence[int]) -> Sizes:
    """New rows by the slide in which they are due; the triples are those of the same closed windows."""
    query = query_of(experiment)[1]
    found = expected_reports(query, YABENCH_CHANGE, stream, means, advance_to=experiment.duration)
    rows: Counter[int] = Counter()
    for report in found:
        rows[max(0, -(-report.due.instant // SIZE) - 1)] += len(report.rows)
    return [(rows[number], size) for number, size in enumerate(inputs[: max(rows) + 1])]


def compared(load: str, published: Published, ours: Sizes) -> Iterator[Line]:
    """A line per window: what all files say, and ours."""
    for window in range(published.windows):
        told = [
            (line.expected, line.input) for lines in published.files.values() for line in lines[window : window + 1]
        ]
        mine = ours[window] if window < len(ours) else (0, 0)
        rows, triples = (" or ".join(f"{value:,}" for value in sorted(set(side))) for side in zip(*told, strict=True))
        cells = (load, f"{window + 1}", f"{len(told)}", rows, f"{mine[0]:,}", triples, f"{mine[1]:,}")
        yield Line(cells, set(told) == {mine})
