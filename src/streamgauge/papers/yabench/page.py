"""The page on YABench's experiments 1, 2 and 4 and figure 5: expected sizes, simulated engines, figures in the text.

The engines that YABench describes are simulated as page.toml states, without other assumptions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from streamgauge.formats.stream import elements
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Borders, Scope, Semantics
from streamgauge.model.terms import RDF_TYPE, Row
from streamgauge.papers.reproduction import Reproduction, ReproductionSteps, Tell, claims_table
from streamgauge.papers.rules import RuleSettings
from streamgauge.papers.yabench import rules
from streamgauge.papers.yabench.measure import (
    EXPERIMENTS,
    LOADS,
    NAMES,
    PAPER,
    SIZE,
    PublishedLines,
    ResultFiles,
    claims,
    generate,
    query_of,
    tables,
)
from streamgauge.papers.yabench.oracle_files import OracleLine
from streamgauge.query import parse
from streamgauge.report import charts
from streamgauge.report.charts import ChartAxis, ChartDrawing
from streamgauge.report.numbers import NOTHING, duration, mebibytes, number, percent
from streamgauge.report.plots import FULL, PHONE, RUN_TIME, SHARE, STREAM_TIME, Figure, figure
from streamgauge.report.sections import PageSection, PageTable, TableLine
from streamgauge.report.series import Box, Point, bins, box
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CSPARQL, YABENCH, YABENCH_CHANGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Shown = Mapping[int, tuple[str, PublishedLines]]
"""Series number -> (label, lines)."""

DELAY = ChartAxis("delay, ms", ",~r", None, "symlog")
MOST_BINS = 60
WIDE = (FULL._replace(height=190), PHONE)


def boxes(
    drawing: ChartDrawing,
    title: str,
    shown: Shown,
    value: Callable[[OracleLine], float],
    how: tuple[ChartAxis, Callable[[float], str]],
) -> Iterator[Figure]:
    """A box per window and series: whiskers to the lowest and highest run, quartiles over the runs."""
    axis, show = how
    placed = [
        charts.PlacedBox(f"W{window + 1}", series, drawn := box(values), _tip(f"{label}, W{window + 1}", drawn, show))
        for series, (label, lines) in shown.items()
        for window in range(lines.windows)
        if (values := lines.column(value, window))
    ]
    if placed:
        # By number: as texts, W10 would come before W2. The sort is stable, so that series keep their order within a
        # window.
        placed.sort(key=lambda one: int(one.x[1:]))
        chart = partial(charts.boxes, placed, ChartAxis("window"), axis)
        yield figure(drawing, title, chart, tuple(shown), "Whiskers: lowest and highest run; box: quartiles.", WIDE)


def _tip(what: str, box: Box, show: Callable[[float], str]) -> str:
    return f"{what}: lowest {show(box.low)}, median {show(box.middle)}, highest {show(box.high)}"


def correctness(drawing: ChartDrawing, title: str, shown: Shown) -> Iterator[Figure]:
    """Figures 3a to 3c: precision and recall."""
    precision, recall = (SHARE._replace(title=f"{name}, %") for name in ("precision", "recall"))
    yield from boxes(drawing, f"{title}: precision", shown, lambda line: line.precision, (precision, percent))
    yield from boxes(drawing, f"{title}: recall", shown, lambda line: line.recall, (recall, percent))


def delay(drawing: ChartDrawing, title: str, shown: Shown) -> Iterator[Figure]:
    """Figures 3d to 3f: delays."""
    yield from boxes(drawing, f"{title}: delay", shown, lambda line: float(line.delay), (DELAY, duration))


def memory(
    drawing: ChartDrawing, title: str, curves: Mapping[int, tuple[str, Sequence[tuple[float, float]]]]
) -> Iterator[Figure]:
    """Figures 4a to 4c: resident memory (MiB) over the time of the run (s)."""
    lines = [
        charts.ChartLine(series, False, bins(_over_time(label, values), MOST_BINS, lambda value: f"{value:,.0f} MiB"))
        for series, (label, values) in curves.items()
        if values
    ]
    if lines:
        chart = partial(charts.lines, lines, RUN_TIME, ChartAxis("resident memory, MiB"))
        yield figure(drawing, f"{title}: memory", chart, tuple(line.series for line in lines), sizes=WIDE)


def _over_time(label: str, values: Sequence[tuple[float, float]]) -> list[Point]:
    return [Point(at, size, f"{label}, {at:.1f} s: {mebibytes(size * 2**20)}") for at, size in values if at >= 0]


def size_and_delay(
    drawing: ChartDrawing, title: str, curves: Mapping[int, tuple[str, Sequence[OracleLine]]]
) -> Iterator[Figure]:
    """Figure 4d: result size and delay of one run, by window."""
    points = {
        series: [
            Point(line.actual, line.delay, f"{label}, W{at}: {number(line.actual)} rows, {duration(line.delay)}")
            for at, line in enumerate(lines, 1)
        ]
        for series, (label, lines) in curves.items()
        if lines
    }
    if points:
        chart = partial(charts.scatter, points, ChartAxis("result size, rows"), DELAY)
        yield figure(drawing, title, chart, tuple(points), "The first run of each.")


def borders(drawing: ChartDrawing, title: str, lines: Sequence[OracleLine], size_ms: int) -> Iterator[Figure]:
    """Figure 6: each window's borders, and those found by gracious mode."""
    fits = [_fit(place, line, size_ms) for place, line in enumerate(lines)]
    if fits:
        sizes = (FULL._replace(height=24 * len(fits)), PHONE._replace(height=24 * len(fits)))
        note = "Outline: the window; filled: the borders under which precision and recall are best."
        yield figure(drawing, title, partial(charts.reconstructed, fits, STREAM_TIME), note=note, sizes=sizes)


def _fit(place: int, line: OracleLine, size_ms: int) -> charts.FittedBorders:
    start, end = place * size_ms / 1000, (place + 1) * size_ms / 1000
    word = "right" if (line.precision, line.recall) == (1.0, 1.0) else "wrong"
    shares = f"precision {percent(line.precision)}, recall {percent(line.recall)}"
    tip = f"window {place + 1}: [{line.start / 1000:g}, {line.end / 1000:g}] s, {shares}"
    return charts.FittedBorders(start, end, line.start / 1000, line.end / 1000, word, tip)


NS = 1_000_000

FIRST, OTHERS = 10, 2
"""ms between the triples of the first observation, while the engine starts, and of the others."""
LATE = 40
"""How late (ms) the first observation came to CQELS in the run without gracious mode."""

RANGE = replace(YABENCH_CHANGE, name="pure RANGE", scope=Scope.RANGE, borders=Borders.CLOSED_OPEN)


def csparql(stream: Sequence[StreamElement], query: ContinuousQuery, until: int) -> tuple[Answer, ...]:
    """Triples arrive one by one, and windows start within the first observation, so each border splits one.

    No window then contains the observation on its border completely, so it is in no answer.
    """
    numbers = count()
    torn = [
        StreamElement(element.stream, element.time + place * (OTHERS if at else FIRST), next(numbers), (triple,))
        for at, element in enumerate(stream)
        for place, triple in enumerate(element.added)
    ]
    # In the middle of the first observation, whose triples come slowly while the engine starts.
    t0 = torn[0].time + len(stream[0].added) * FIRST // 2
    reports = expected(torn, query, replace(CSPARQL, t0=t0), until + t0, t0)
    return tuple(Answer(report.variables, report.rows, received=report.due.instant * NS) for report in reports)


def cqels(stream: Sequence[StreamElement], query: ContinuousQuery, until: int, late: int = 0) -> tuple[Answer, ...]:
    """The query has no SLIDE: each observation reports the rows that are new over (t - 5 s, t], one per report.

    First those in which the new observation is ?ob1, then those in which it is ?ob2, oldest partner first; the first
    observation arrives ``late`` (ms).
    """
    fed = [replace(stream[0], time=stream[0].time + late), *stream[1:]]
    reports = expected(fed, query, RANGE, until, 0)
    return tuple(
        Answer(report.variables, (row,), received=report.due.instant * NS)
        for report in reports
        for row in sorted(report.rows, key=_joined(report))
    )


def _joined(report: ExpectedReport) -> Callable[[Row], tuple[bool, int]]:
    first, second = (report.variables.index(name) for name in ("ob1", "ob2"))

    def key(row: Row) -> tuple[bool, int]:
        left, right = (_time(row[place] or "") for place in (first, second))
        # False sorts before True: rows with the new observation as ?ob1, which has the later time, come first.
        return left < right, min(left, right)

    return key


def _time(observation: str) -> int:
    """The time at the end of an observation's IRI."""
    return int(observation.removesuffix(">").rpartition("_")[2])


def judged(
    stream: Sequence[StreamElement],
    query: tuple[str, ContinuousQuery],
    answers: tuple[Answer, ...],
    settings: RuleSettings,
) -> list[OracleLine]:
    """The lines of YABench's oracle; answers of one row each are judged on content change."""
    semantics = YABENCH_CHANGE if all(len(answer.added) == 1 for answer in answers) else YABENCH
    return rules.lines(_run(query, answers, semantics, stream[-1].time), stream, settings)


def _run(query: tuple[str, ContinuousQuery], answers: tuple[Answer, ...], semantics: Semantics, until: int) -> Run:
    return Run(RunHeader("simulated", query[1], query[0], "rspql", semantics, until, 0), answers, ())


EXAMPLE = """REGISTER <example> AS SELECT ?s
FROM NAMED WINDOW <http://ex.org/windows/w> ON <http://ex.org/streams/test> [RANGE 5s STEP 5s]
WHERE { WINDOW <http://ex.org/windows/w> { ?s a <http://ex.org/Observation> ; <http://ex.org/value> ?value } }"""


def figure_5() -> tuple[OracleLine, OracleLine]:
    """A window of 5 s holds three results; the engine's is shifted by 2.5 s and holds two, of which one is expected."""
    stream = [_observation(number, time) for number, time in enumerate((1000, 2000, 3000, 6000, 8000))]
    query = EXAMPLE, parse(EXAMPLE)
    rows = tuple((f"<http://ex.org/{number}>",) for number in (2, 3))
    answers = (Answer(("s",), rows, received=7500 * NS),)
    plain, gracious = (judged(stream, query, answers, RuleSettings(gracious=mode))[0] for mode in (False, True))
    return plain, gracious


def _observation(number: int, time: int) -> StreamElement:
    subject = f"<http://ex.org/{number}>"
    triples = ((subject, RDF_TYPE, "<http://ex.org/Observation>"), (subject, "<http://ex.org/value>", '"1"'))
    return StreamElement("http://ex.org/streams/test", time, number, triples)


_HAND_EDITED: Final = {tuple(place) for place in PAPER.value("hand_edited")}
_NOT_TO_BE_HAD: Final = tuple(PAPER.value("not_to_be_had"))
MODES: Final = ("non-gracious", "gracious")

Lines = dict[tuple[str, str], list[OracleLine]]
"""(engine, mode) -> the lines of experiment 4."""


def reproduce(
    data: Path,
    spark: "Callable[[], SparkSession]",
    loads: Sequence[str] = LOADS,
    tell: Tell = lambda _what, _share: None,
    keep: Path | None = None,
) -> Reproduction:
    """Every available figure next to the published one; sizes are stored below ``keep``."""
    results = ResultFiles(data)
    steps = ReproductionSteps(keep, data)
    tell("experiment 4", 0.0)
    ours = experiment_4(spark)
    sizes = tuple(tables(results, spark, loads, tell, steps))
    compared = claims(results)
    steps.end()
    sections = (
        PAPER.section("sizes", sizes),
        _experiment_4(results, ours),
        _figure_5(),
        PAPER.section("text", (compared,), _recall(results)),
        PAPER.section("missing", sentences=_NOT_TO_BE_HAD),
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
    """The lines of YABench's oracle for the simulated engines."""
    experiment = EXPERIMENTS[4]
    with TemporaryDirectory() as scratch:
        stream = tuple(elements(generate(spark, experiment, "one", Path(scratch) / "stream")))
    query = query_of(experiment)
    lines = {}
    for mode in MODES:
        settings = RuleSettings(gracious=mode == "gracious", single_result=False)
        late = LATE if mode == "non-gracious" else 0
        closed = csparql(stream, query[1], experiment.duration)
        changed = cqels(stream, query[1], experiment.duration, late)
        lines["csparql", mode] = judged(stream, query, closed, settings)
        lines["cqels", mode] = judged(stream, query, changed, settings)
    return lines


def _experiment_4(results: ResultFiles, ours: Lines) -> PageSection:
    lines = (line for engine in NAMES for mode in MODES for line in _compared(results, ours, engine, mode))
    return PAPER.section("simulated", (PAPER.table("simulated", lines),), _borders(ours), late=LATE)


def _compared(results: ResultFiles, ours: Lines, engine: str, mode: str) -> Iterator[TableLine]:
    (published,) = results.lines(4, engine, mode).files.values()
    for place, line in enumerate(published):
        mine = ours[engine, mode][place] if place < len(ours[engine, mode]) else None
        # These published lines cannot come from any run (published.toml), so they are shown but not counted.
        edited = (engine, mode, place) in _HAND_EDITED
        # The simulation has no delays of its own.
        same = mine is not None and _without_delay(line) == _without_delay(mine)
        beside = [cell for pair in zip(cells(line), cells(mine), strict=True) for cell in pair]
        yield TableLine((NAMES[engine], mode, f"{place + 1}", *beside), None if edited else same)


def _without_delay(line: OracleLine) -> tuple[float, ...]:
    return (line.precision, line.recall, line.actual, line.expected, line.input, line.start, line.end)


def cells(line: OracleLine | None) -> tuple[str, str, str]:
    """Precision and recall, sizes, and borders of a line."""
    if line is None:
        return NOTHING, NOTHING, NOTHING
    shares = f"{percent(line.precision)}, {percent(line.recall)}"
    return shares, f"{line.actual}, {line.expected}, {line.input}", f"[{line.start:,}, {line.end:,}]"


def _borders(ours: Lines) -> Iterator[Figure]:
    """Figure 6: the windows, and their borders in gracious mode."""
    drawing = ChartDrawing()
    for engine in NAMES:
        title = f"{NAMES[engine]}: the borders that gracious mode finds"
        yield from borders(drawing, title, ours[engine, "gracious"], SIZE)


def _recall(results: ResultFiles) -> Iterator[Figure]:
    """C-SPARQL's recall by window over the published runs, a plot per load."""
    drawing = ChartDrawing()
    for load in LOADS:
        published = results.lines(1, "csparql", load)
        columns = [published.column(lambda line: line.recall, window) for window in range(published.windows)]
        boxes = [
            charts.PlacedBox(f"{window}", 0, drawn := box(values), _tip(f"window {window}", drawn, percent))
            for window, values in enumerate(columns, 1)
        ]
        text = f"Experiment 1, {load}: C-SPARQL's recall, {percent(min(map(min, columns)))} at least"
        chart = partial(charts.boxes, boxes, charts.ChartAxis("window"), SHARE._replace(title="recall, %"))
        note = f"{len(published.files)} runs, from the published files. Whiskers: lowest and highest; box: quartiles."
        yield figure(drawing, text, chart, note=note)


def _figure_5() -> PageSection:
    plain, gracious = figure_5()
    compared = (
        PAPER.claims[f"figure_5_{name}"].beside(share, f"{share:.3f}")
        for name, share in (("precision", plain.precision), ("recall", plain.recall))
    )
    table = claims_table("Precision and recall of a shifted window", compared)
    table = replace(table, columns=("figure 5", *table.columns[1:]))
    return PAPER.section("figure-5", (table,), **asdict(gracious))
