"""YABench's experiments: expected sizes of regenerated streams, experiment 4 simulated, the text's figures again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from streamgauge.formats.stream import elements
from streamgauge.papers.claims import claims_table
from streamgauge.papers.reproduction import Reproduction, ReproductionSteps, Tell
from streamgauge.papers.rules import RuleSettings
from streamgauge.papers.yabench import plots, simulation
from streamgauge.papers.yabench.measure import claims, generate, query_of, tables
from streamgauge.papers.yabench.oracle_files import OracleLine
from streamgauge.papers.yabench.results import EXPERIMENTS, LOADS, NAMES, PAPER, SIZE, ResultFiles
from streamgauge.report import charts
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.numbers import NOTHING, percent
from streamgauge.report.plots import SHARE, Figure, draw
from streamgauge.report.points import box
from streamgauge.report.sections import PageSection, PageTable, TableLine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HAND_EDITED: Final = {tuple(place) for place in PAPER.value("hand_edited")}
_NOT_TO_BE_HAD: Final = tuple(PAPER.value("not_to_be_had"))
MODES: Final = ("non-gracious", "gracious")

Lines = dict[tuple[str, str], list[OracleLine]]
"""(engine, mode) to the lines of experiment 4."""


def reproduce(
    data: Path,
    spark: "Callable[[], SparkSession]",
    loads: Sequence[str] = LOADS,
    tell: Tell = lambda _what, _share: None,
    keep: Path | None = None,
) -> Reproduction:
    """Every figure that can be had, beside the published one; sizes are kept below ``keep`` until all are done."""
    results = ResultFiles(data)
    steps = ReproductionSteps(keep, data)
    tell("experiment 4", 0.0)
    ours = experiment_4(spark)
    sizes = tuple(tables(results, spark, loads, tell, steps))
    told = claims(results)
    steps.end()
    sections = (
        PageSection(
            "sizes",
            "Experiments 1 and 2: expected sizes",
            ("Streams made again from their seeds; the rows and triples that windows should hold are counted.",),
            sizes,
        ),
        _experiment_4(results, ours),
        _figure_5(),
        PageSection(
            "text",
            "Figures in the text, from the published files",
            ("What the paper calls a mean of delays or recall is the median over the ten runs.",),
            (told,),
            tuple(_recall(results)),
        ),
        PageSection("missing", "What could not be had", _NOT_TO_BE_HAD),
    )
    tabled = [{"section": section.id, **_json(table)} for section in sections for table in section.tables]
    return PAPER.reproduction(
        "YABench, experiments 1, 2 and 4",
        sections,
        {"paper": PAPER.source, "tables": tabled, "not_to_be_had": list(_NOT_TO_BE_HAD)},
    )


def _json(table: PageTable) -> dict[str, object]:
    lines = [{**dict(zip(table.columns, line.cells, strict=True)), "agrees": line.agrees} for line in table.lines]
    return {"table": table.heading, "lines": lines, "note": table.note}


def experiment_4(spark: "Callable[[], SparkSession]") -> Lines:
    """The lines of YABench's oracle on the simulated engines."""
    experiment = EXPERIMENTS[4]
    with TemporaryDirectory() as scratch:
        stream = tuple(elements(generate(spark, experiment, "one", Path(scratch) / "stream")))
    asked = query_of(experiment)
    found = {}
    for mode in MODES:
        settings = RuleSettings(gracious=mode == "gracious", single_result=False)
        late = simulation.LATE if mode == "non-gracious" else 0
        closed = simulation.csparql(stream, asked[1], experiment.duration)
        changed = simulation.cqels(stream, asked[1], experiment.duration, late)
        found["csparql", mode] = simulation.judged(stream, asked, closed, settings)
        found["cqels", mode] = simulation.judged(stream, asked, changed, settings)
    return found


def _experiment_4(results: ResultFiles, ours: Lines) -> PageSection:
    lines = tuple(line for engine in NAMES for mode in MODES for line in _compared(results, ours, engine, mode))
    columns = ("engine", "mode", "window", "P, R published", "P, R ours", "actual, expected, input published",
               "actual, expected, input ours", "borders published, ms", "borders ours, ms")  # fmt: skip
    note = "Actual sizes and, on content change, expected ones count as YABench's oracle does (docs/reproduce.md)."
    table = PageTable("Experiment 4, line by line, without the delays", columns, lines, note)
    return PageSection(
        "experiment-4",
        "Experiment 4: gracious mode",
        (simulation.CSPARQL_DOES, simulation.CQELS_DOES),
        (table,),
        tuple(_borders(ours)),
    )


def _compared(results: ResultFiles, ours: Lines, engine: str, mode: str) -> Iterator[TableLine]:
    (published,) = results.lines(4, engine, mode).files.values()
    for place, told in enumerate(published):
        mine = ours[engine, mode][place] if place < len(ours[engine, mode]) else None
        edited = (engine, mode, place) in _HAND_EDITED
        same = mine is not None and _without_delay(told) == _without_delay(mine)
        cells = [cell for pair in zip(_cells(told), _cells(mine), strict=True) for cell in pair]
        yield TableLine((NAMES[engine], mode, f"{place + 1}", *cells), None if edited else same)


def _without_delay(line: OracleLine) -> tuple[float, ...]:
    return (line.precision, line.recall, line.actual, line.expected, line.input, line.start, line.end)


def _cells(line: OracleLine | None) -> tuple[str, str, str]:
    if line is None:
        return NOTHING, NOTHING, NOTHING
    shares = f"{percent(line.precision)}, {percent(line.recall)}"
    return shares, f"{line.actual}, {line.expected}, {line.input}", f"[{line.start:,}, {line.end:,}]"


def _borders(ours: Lines) -> Iterator[Figure]:
    """Figure 6: the windows as they are, and as gracious mode moved them."""
    drawing = ChartDrawing()
    for engine in NAMES:
        title = f"{NAMES[engine]}: the borders that gracious mode finds"
        yield from plots.borders(drawing, title, ours[engine, "gracious"], SIZE)


def _recall(results: ResultFiles) -> Iterator[Figure]:
    """C-SPARQL's recall by window over the published runs, a plot per load."""
    drawing = ChartDrawing()
    for load in LOADS:
        found = results.lines(1, "csparql", load)
        columns = [found.column(lambda line: line.recall, window) for window in range(found.windows)]
        boxes = [_box(window, values) for window, values in enumerate(columns, 1)]
        text = f"Experiment 1, {load}: C-SPARQL's recall, {percent(min(map(min, columns)))} at least"

        def chart(size: charts.ChartSize, boxes: list[charts.PlacedBox] = boxes) -> charts.Spec:
            return charts.boxes(boxes, charts.ChartAxis("window"), SHARE._replace(title="recall, %"), size)

        note = f"{len(found.files)} runs, from the published files. Whiskers: lowest and highest; box: quartiles."
        yield Figure(text, note, draw(drawing, text, chart))


def _box(window: int, values: Sequence[float]) -> charts.PlacedBox:
    made = box(values)
    tip = f"window {window}: lowest {percent(made.low)}, median {percent(made.middle)}, highest {percent(made.high)}"
    return charts.PlacedBox(f"{window}", 0, made, tip)


def _figure_5() -> PageSection:
    plain, gracious = simulation.figure_5()
    told = (
        PAPER.claims[f"figure_5_{name}"].beside(share, f"{share:.3f}")
        for name, share in (("precision", plain.precision), ("recall", plain.recall))
    )
    sentence = (
        f"{simulation.figure_5.__doc__} Gracious mode finds [{gracious.start:,}, {gracious.end:,}] ms, with "
        f" precision {gracious.precision:g} and recall {gracious.recall:g}."
    )
    table = claims_table("Precision and recall of a shifted window", told)
    table = replace(table, columns=("figure 5", *table.columns[1:]))
    return PageSection("figure-5", "Figure 5: a shifted window", (sentence,), (table,))
