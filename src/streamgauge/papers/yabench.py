"""YABench's experiments: expected sizes of regenerated streams, experiment 4 simulated, the text's figures again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from streamgauge.formats.stream import elements
from streamgauge.papers import yabench_engines as engines
from streamgauge.papers.result import Line, Reproduction, Section, Table
from streamgauge.papers.rules import Settings
from streamgauge.papers.rules.yabench_lines import Line as Judged
from streamgauge.papers.steps import Steps
from streamgauge.papers.yabench_claims import claims
from streamgauge.papers.yabench_files import Results
from streamgauge.papers.yabench_published import (
    EXPERIMENTS,
    FIGURE_5,
    HAND_EDITED,
    LOADS,
    NAMES,
    NOT_TO_BE_HAD,
    SOURCE,
)
from streamgauge.papers.yabench_sizes import generate, query_of, tables
from streamgauge.report import charts
from streamgauge.report.numbers import percent
from streamgauge.report.plots import FULL, PHONE, SHARE, STREAM_TIME, Figure, draw
from streamgauge.report.svg import Drawing
from streamgauge.report.thin import box

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str, float], None]

MODES = ("non-gracious", "gracious")

Lines = dict[tuple[str, str], list[Judged]]
"""(engine, mode) to the lines of experiment 4."""


def reproduce(
    data: Path,
    spark: "Callable[[], SparkSession]",
    loads: Sequence[str] = LOADS,
    tell: Tell = lambda _what, _share: None,
    keep: Path | None = None,
) -> Reproduction:
    """Every figure that can be had, beside the published one; sizes are kept below ``keep`` until all are done."""
    results = Results(data)
    steps = Steps(keep, data)
    tell("experiment 4", 0.0)
    ours = experiment_4(spark)
    sizes = tuple(tables(results, spark, loads, tell, steps))
    told = claims(results)
    steps.end()
    sections = (
        Section(
            "sizes",
            "Experiments 1 and 2: expected sizes",
            ("Streams made again from their seeds; the rows and triples that windows should hold are counted.",),
            sizes,
        ),
        _experiment_4(results, ours),
        _figure_5(),
        Section(
            "text",
            "Figures in the text, from the published files",
            ("What the paper calls a mean of delays or recall is the median over the ten runs.",),
            (told,),
            tuple(_recall(results)),
        ),
        Section("missing", "What could not be had", NOT_TO_BE_HAD),
    )
    tabled = [{"section": section.id, **_json(table)} for section in sections for table in section.tables]
    return Reproduction(
        "YABench, experiments 1, 2 and 4",
        SOURCE,
        sections,
        {"paper": SOURCE, "tables": tabled, "not_to_be_had": list(NOT_TO_BE_HAD)},
    )


def _json(table: Table) -> dict[str, object]:
    lines = [{**dict(zip(table.columns, line.cells, strict=True)), "agrees": line.agrees} for line in table.lines]
    return {"table": table.heading, "lines": lines, "note": table.note}


def experiment_4(spark: "Callable[[], SparkSession]") -> Lines:
    """What YABench's oracle says of the simulated engines."""
    experiment = EXPERIMENTS[4]
    with TemporaryDirectory() as scratch:
        stream = tuple(elements(generate(spark, experiment, "one", Path(scratch) / "stream")))
    asked = query_of(experiment)
    found = {}
    for mode in MODES:
        settings = Settings(gracious=mode == "gracious", single_result=False)
        late = engines.LATE if mode == "non-gracious" else 0
        closed = engines.csparql(stream, asked[1], experiment.duration)
        changed = engines.cqels(stream, asked[1], experiment.duration, late)
        found["csparql", mode] = engines.judged(stream, asked, closed, settings)
        found["cqels", mode] = engines.judged(stream, asked, changed, settings)
    return found


def _experiment_4(results: Results, ours: Lines) -> Section:
    lines = tuple(line for engine in NAMES for mode in MODES for line in _compared(results, ours, engine, mode))
    columns = ("engine", "mode", "window", "P, R published", "P, R ours", "actual, expected, input published",
               "actual, expected, input ours", "borders published, ms", "borders ours, ms")  # fmt: skip
    note = "Actual sizes and, on content change, expected ones count as YABench's oracle does (docs/reproduce.md)."
    table = Table("Experiment 4, line by line, without the delays", columns, lines, note)
    return Section(
        "experiment-4",
        "Experiment 4: gracious mode",
        (engines.CSPARQL_DOES, engines.CQELS_DOES),
        (table,),
        tuple(_borders(ours)),
    )


def _compared(results: Results, ours: Lines, engine: str, mode: str) -> Iterator[Line]:
    (published,) = results.lines(4, engine, mode).files.values()
    for place, told in enumerate(published):
        mine = ours[engine, mode][place] if place < len(ours[engine, mode]) else None
        edited = (engine, mode, place) in HAND_EDITED
        same = mine is not None and _without_delay(told) == _without_delay(mine)
        cells = [cell for pair in zip(_cells(told), _cells(mine), strict=True) for cell in pair]
        yield Line((NAMES[engine], mode, f"{place + 1}", *cells), None if edited else same)


def _without_delay(line: Judged) -> tuple[float, ...]:
    return (line.precision, line.recall, line.actual, line.expected, line.input, line.start, line.end)


def _cells(line: Judged | None) -> tuple[str, str, str]:
    if line is None:
        return "–", "–", "–"
    shares = f"{percent(line.precision)}, {percent(line.recall)}"
    return shares, f"{line.actual}, {line.expected}, {line.input}", f"[{line.start:,}, {line.end:,}]"


def _borders(ours: Lines) -> Iterator[Figure]:
    """Figure 6: the windows as they are, and as gracious mode moved them."""
    drawing = Drawing()
    for engine in NAMES:
        fits = [_fit(engine, place, line) for place, line in enumerate(ours[engine, "gracious"])]
        text = f"{NAMES[engine]}: the borders that gracious mode finds"

        def chart(size: charts.Size, fits: list[charts.Fit] = fits) -> charts.Spec:
            return charts.reconstructed(fits, STREAM_TIME, size._replace(height=24 * len(fits)))

        note = "Outline: the window; filled: the borders under which precision and recall are best."
        yield Figure(text, note, draw(drawing, text, chart, (FULL, PHONE)), (), "full")


def _recall(results: Results) -> Iterator[Figure]:
    """C-SPARQL's recall by window over the published runs, a plot per load."""
    drawing = Drawing()
    for load in LOADS:
        found = results.lines(1, "csparql", load)
        columns = [found.column(lambda line: line.recall, window) for window in range(found.windows)]
        boxes = [_box(window, values) for window, values in enumerate(columns, 1)]
        text = f"Experiment 1, {load}: C-SPARQL's recall, {percent(min(map(min, columns)))} at least"

        def chart(size: charts.Size, boxes: list[charts.Placed] = boxes) -> charts.Spec:
            return charts.boxes(boxes, charts.Axis("window"), SHARE._replace(title="recall, %"), size)

        note = f"{len(found.files)} runs, from the published files. Whiskers: lowest and highest; box: quartiles."
        yield Figure(text, note, draw(drawing, text, chart))


def _box(window: int, values: Sequence[float]) -> charts.Placed:
    made = box(values)
    tip = f"window {window}: lowest {percent(made.low)}, median {percent(made.middle)}, highest {percent(made.high)}"
    return charts.Placed(f"{window}", 0, made, tip)


def _fit(engine: str, place: int, line: Judged) -> charts.Fit:
    start, end = place * 5.0, place * 5.0 + 5
    tip = f"{NAMES[engine]}, window {place + 1}: [{line.start / 1000:g}, {line.end / 1000:g}] s"
    return charts.Fit(start, end, line.start / 1000, line.end / 1000, "right", tip)


def _figure_5() -> Section:
    plain, gracious = engines.figure_5()
    shares = (plain.precision, plain.recall)
    lines = (
        Line(("precision", f"{FIGURE_5[0]:.3f}", f"{shares[0]:.3f}"), shares[0] == FIGURE_5[0]),
        Line(("recall", f"{FIGURE_5[1]:.3f}", f"{shares[1]:.3f}"), shares[1] == FIGURE_5[1]),
    )
    sentence = (
        f"{engines.figure_5.__doc__} Gracious mode finds [{gracious.start:,}, {gracious.end:,}] ms, with "
        f" precision {gracious.precision:g} and recall {gracious.recall:g}."
    )
    table = Table("Precision and recall of a shifted window", ("figure 5", "published", "ours"), lines)
    return Section("figure-5", "Figure 5: a shifted window", (sentence,), (table,))
