"""YABench's tables and figures from real engines, run in real time, next to the published files.

If figures differ from the published ones by more than claims.toml tolerates, a paragraph gives the reason.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from streamgauge.harness.importing import ForeignError
from streamgauge.model.verdict import Judgement
from streamgauge.papers.reproduction import Reproduction, Tell
from streamgauge.papers.yabench import page
from streamgauge.papers.yabench.measure import LOADS, NAMES, PAPER, SIZE, PublishedLines, ResultFiles, last_result
from streamgauge.papers.yabench.oracle_files import OracleLine
from streamgauge.papers.yabench.trials import TableOneCell, TrialOutcome, TrialRunner, TrialSide, available, do, trials
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.numbers import NOTHING, duration, percent
from streamgauge.report.plots import Figure
from streamgauge.report.sections import PageSection, PageTable, TableLine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINTS: Final = PAPER.claims["recall_on_engines"].tolerance["at_most"]
"""Tolerated difference of medians of precision or recall (0.05: five percentage points)."""

FACTOR: Final = PAPER.claims["delay_on_engines"].tolerance["factor"][1]
LEAST_MS: Final = 50.0
"""Differences of median delays up to this are tolerated, whatever the factor, ms."""

MEMORY_FACTOR: Final = PAPER.claims["memory_on_engines"].tolerance["factor"][1]
"""Tolerated factor between peaks of memory."""

TORN: Final = PAPER.claims["recall_on_engines"].why

TOLERANCES: Final = {
    name: f"{value:g}"
    for name, value in (("points", POINTS * 100), ("factor", FACTOR), ("least", LEAST_MS), ("memory", MEMORY_FACTOR))
}
"""The tolerances in the sentences of the page."""

SIGN: Final = {TableOneCell.RIGHT: "✓", TableOneCell.NEXT: "✓ *", TableOneCell.WRONG: "✗"}
PARTS = (1, 2, 3)
"""The experiments with windows and memory over time."""


@dataclass(frozen=True)
class YabenchRuns:
    """The runs of every test on every side, absent engines, published files; ``hurricane``: Q1-Q7 had their stream."""

    done: Sequence[TrialOutcome]
    sides: Sequence[TrialSide]
    absent: dict[str, str]
    results: ResultFiles | None
    hurricane: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """The series of the plots: the published engines, then the sides."""
        return (*(f"{name}, published" for name in NAMES.values()), *(side.label for side in self.sides))

    def series(self, side: TrialSide) -> int:
        """The index of a side among the labels."""
        return len(NAMES) + list(self.sides).index(side)

    def of(self, test: str) -> list[TrialOutcome]:
        """The outcomes of a test on all sides with runs."""
        return [done for done in self.done if done.test.name == test and done.runs]

    def published(self, number: int, engine: str, load: str | None) -> PublishedLines | None:
        """The result files, ``None`` if there are none."""
        if self.results is None or load is None:
            return None
        try:
            return self.results.lines(number, engine, load)
        except ForeignError:
            return None

    def memory(self, number: int, engine: str, load: str | None) -> list[tuple[float, float]]:
        """The published memory over time, empty if there is none."""
        if self.results is None or load is None:
            return []
        try:
            return self.results.memory_over_time(number, engine, load)
        except ForeignError:
            return []


@dataclass(frozen=True)
class YabenchRequest:
    """A request: engines, tests (empty: all), published files, CSRBench's stream, folder of runs."""

    engines: tuple[str, ...]
    only: tuple[str, ...]
    data: Path | None
    hurricane: Path | None
    runs: Path
    repetitions: int


def on_engines(wanted: YabenchRequest, spark: "Callable[[], SparkSession]", tell: Tell) -> Reproduction:
    """YABench's experiments on these engines; absent engines have a sentence."""
    results = None if wanted.data is None else ResultFiles(wanted.data)
    trials_ = trials(wanted.hurricane, wanted.only)
    taking_part, absent = available(wanted.engines)
    done = tuple(do(trials_, taking_part, TrialRunner(wanted.runs, spark, wanted.repetitions, tell)))
    return reproduction(YabenchRuns(done, taking_part, absent, results, wanted.hurricane is not None))


def reproduction(yabench_runs: YabenchRuns) -> Reproduction:
    """The content of the page."""
    drawing = ChartDrawing()
    sections = [_who(yabench_runs), *_csrbench(yabench_runs), *_last(yabench_runs)]
    for number in PARTS:
        sections += _experiment(yabench_runs, number, drawing)
    sections += _gracious(yabench_runs, drawing)
    tabled = [{"section": section.id, "sentences": list(section.sentences), **_json(table)}
              for section in sections for table in section.tables]  # fmt: skip
    data = {"paper": PAPER.source, "absent": yabench_runs.absent, "tables": tabled}
    return PAPER.reproduction("YABench's experiments on real engines", sections, data, yabench_runs.labels)


def _json(table: PageTable) -> dict[str, object]:
    return {"table": table.heading, "columns": list(table.columns), "lines": [list(line.cells) for line in table.lines]}


def _who(yabench_runs: YabenchRuns) -> PageSection:
    """The engines that took part, the common judge's verdict on every run, and absent engines."""
    table = PAPER.table("runs", (TableLine(_summary(done)) for done in yabench_runs.done))
    sentences = (
        *(f"{name} is absent: {sentence}" for name, sentence in yabench_runs.absent.items()),
        *dict.fromkeys(
            f"{done.side.label} refuses {done.test.name}: {done.reason}" for done in yabench_runs.done if done.reason
        ),
    )
    return PAPER.section("runs", (table,), sentences=sentences)


def _summary(done: TrialOutcome) -> tuple[str, ...]:
    if not done.runs:
        return done.test.name, done.side.engine, done.side.semantics, "0", *[NOTHING] * 5
    right = sum(kept.judgement in {Judgement.RIGHT, Judgement.LATE} for kept in done.runs)
    shares = (percent(fmean(kept.precision for kept in done.runs)), percent(fmean(kept.recall for kept in done.runs)))
    fed = duration(max(kept.feeder for kept in done.runs))
    runs = f"{len(done.runs)}"
    memory = f"{greatest_memory(done):,.0f} MiB"
    return done.test.name, done.side.engine, done.side.semantics, runs, f"{right}", *shares, fed, memory


def _csrbench(yabench_runs: YabenchRuns) -> Iterator[PageSection]:
    """Table 1: the queries of CSRBench."""
    names = list(dict.fromkeys(done.test.name for done in yabench_runs.done if not done.test.number))
    if not names:
        return
    lines = (_cell(yabench_runs, done) for name in names for done in yabench_runs.of(name))
    stream = "CSRBench's own" if yabench_runs.hurricane else (
        "a stand-in for CSRBench's (28 stations, 34 s, temperature and humidity), so cells are not compared"
    )  # fmt: skip
    yield PAPER.section("table-1", (PAPER.table("table-1", lines),), stream=stream)


def _cell(yabench_runs: YabenchRuns, done: TrialOutcome) -> TableLine:
    # The cell of most runs, as the paper gives one for each query; all others are counted beside it.
    counted = Counter(kept.outcome for kept in done.runs if kept.outcome is not None)
    ours_is = counted.most_common(1)[0][0]
    outcome_text = None
    if done.side.engine in NAMES:
        # The table has the queries on which an engine fails; all others pass.
        outcome_text = done.test.name not in PAPER.value("table_1")[done.side.engine]
    published = NOTHING if outcome_text is None else "✓ or ✓ *" if outcome_text else "✗"
    all_runs = ", ".join(f"{SIGN[outcome]} {count}" for outcome, count in counted.most_common())
    agrees = (
        None
        if outcome_text is None or not yabench_runs.hurricane
        else outcome_text == (ours_is is not TableOneCell.WRONG)
    )
    return TableLine((done.test.name, done.side.label, published, SIGN[ours_is], all_runs), agrees)


def _last(yabench_runs: YabenchRuns) -> Iterator[PageSection]:
    """Table 2: the last answers of CQELS."""
    lines = []
    for done in yabench_runs.done:
        arrivals = [kept.last_answer for kept in done.runs if kept.last_answer is not None]
        if done.test.number not in PARTS or done.side.published != "cqels" or not arrivals:
            continue
        figures = (f"{fmean(arrivals):.1f}", f"{min(arrivals):.1f}", f"{max(arrivals):.1f}")
        lines.append(TableLine((done.test.name, done.side.label, _bound(yabench_runs, done), *figures)))
    if lines:
        yield PAPER.section("table-2", (PAPER.table("table-2", lines),))


def _bound(yabench_runs: YabenchRuns, done: TrialOutcome) -> str:
    published = yabench_runs.published(done.test.number, "cqels", done.test.load)
    if published is None:
        return NOTHING
    return f"{last_result(published):.1f}"


def _experiment(yabench_runs: YabenchRuns, number: int, drawing: ChartDrawing) -> Iterator[PageSection]:
    """Figures 3 and 4 (experiment 1), and the same for experiments 2 and 3."""
    tests = list(dict.fromkeys(done.test.name for done in yabench_runs.done if done.test.number == number))
    if not tests:
        return
    sentences: list[str] = []
    tables: list[PageTable] = []
    figures: list[Figure] = []
    for test in tests:
        dones = yabench_runs.of(test)
        if not dones:
            continue
        sentences += _paragraphs(yabench_runs, dones)
        tables.append(_medians(yabench_runs, test, dones))
        figures += _figures(yabench_runs, test, dones, drawing)
    yield PAPER.section(f"experiment-{number}", tables, figures, sentences, **TOLERANCES)


def _paragraphs(yabench_runs: YabenchRuns, dones: Iterable[TrialOutcome]) -> Iterator[str]:
    for done in dones:
        published = yabench_runs.published(done.test.number, done.side.published, done.test.load)
        if published is not None:
            memory = [size for _, size in yabench_runs.memory(done.test.number, done.side.published, done.test.load)]
            yield paragraph(done, published, memory)


Value = Callable[[OracleLine], float]
MEASURES: tuple[tuple[str, Value, Callable[[float], str]], ...] = (
    ("precision", lambda line: line.precision, percent),
    ("recall", lambda line: line.recall, percent),
    ("actual rows", lambda line: line.actual, lambda value: f"{value:,.0f}"),
    ("expected rows", lambda line: line.expected, lambda value: f"{value:,.0f}"),
    ("input triples", lambda line: line.input, lambda value: f"{value:,.0f}"),
    ("delay", lambda line: line.delay, duration),
)


def _medians(yabench_runs: YabenchRuns, test: str, dones: Sequence[TrialOutcome]) -> PageTable:
    """The medians over the runs by window, the published ones above ours."""
    shown = _shown(yabench_runs, dones)
    windows = max((lines.windows for _, lines in shown.values()), default=0)
    rows = [
        TableLine((label, measure, f"{len(lines.files)}", *_cells(lines.medians(value), show, windows)))
        for label, lines in shown.values()
        for measure, value, show in MEASURES
    ]
    refused = dict.fromkeys(kept.refused for done in dones for kept in done.runs if kept.refused)
    columns = (f"W{number}" for number in range(1, windows + 1))
    return PAPER.table("medians", rows, columns, " ".join(refused), test=test)


def _cells(values: Sequence[float], show: Callable[[float], str], windows: int) -> list[str]:
    return [*map(show, values), *[NOTHING] * (windows - len(values))]


def _shown(yabench_runs: YabenchRuns, dones: Sequence[TrialOutcome]) -> dict[int, tuple[str, PublishedLines]]:
    """Series number -> (label, lines): published ones, if there are files, and ours, if the rules gave lines."""
    shown: dict[int, tuple[str, PublishedLines]] = {}
    for place, engine in enumerate(NAMES):
        lines = yabench_runs.published(dones[0].test.number, engine, dones[0].test.load)
        if lines is not None:
            shown[place] = (yabench_runs.labels[place], lines)
    for done in dones:
        if (mine := ours(done)).files:
            shown[yabench_runs.series(done.side)] = (done.side.label, mine)
    return shown


def _titles(test: str, load: str | None, first: bool) -> tuple[str, str, str]:
    """The titles of the figures of correctness, delay and memory; experiment 1's have the paper's numbers."""
    if not first or load is None:
        return test, test, test
    place = LOADS.index(load)
    return f"Figure 3{'abc'[place]}: {test}", f"Figure 3{'def'[place]}: {test}", f"Figure 4{'abc'[place]}: {test}"


def _figures(
    yabench_runs: YabenchRuns, test: str, dones: Sequence[TrialOutcome], drawing: ChartDrawing
) -> Iterator[Figure]:
    """Boxes of correctness and delay, memory, and result sizes for experiment 1 small (figure 4d)."""
    trial = dones[0].test
    shown = _shown(yabench_runs, dones)
    right, late, used = _titles(test, trial.load, trial.number == 1)
    yield from page.correctness(drawing, right, shown)
    yield from page.delay(drawing, late, shown)
    over_time = {yabench_runs.series(done.side): (done.side.label, done.runs[0].memory) for done in dones}
    for place, engine in enumerate(NAMES):
        if points := yabench_runs.memory(trial.number, engine, trial.load):
            over_time[place] = (yabench_runs.labels[place], tuple(points))
    yield from page.memory(drawing, used, dict(sorted(over_time.items())))
    if test == "E1/small":
        single = {yabench_runs.series(done.side): (done.side.label, done.runs[0].lines) for done in dones}
        yield from page.size_and_delay(drawing, "Figure 4d: result size and delay, E1/small", single)


def _gracious(yabench_runs: YabenchRuns, drawing: ChartDrawing) -> Iterator[PageSection]:
    """Figures 6a and 6b: windows fitted by gracious mode."""
    dones = yabench_runs.of("E4")
    if not dones:
        return
    rows = [line for done in dones for line in _modes(done)]
    figures = [
        figure
        for done in dones
        for figure in page.borders(
            drawing, f"Figure 6b: {done.side.label}, the borders that gracious mode finds", done.runs[0].gracious, SIZE
        )
    ]
    sentences = (
        *_paragraphs(yabench_runs, dones),
        *(f"{done.side.label}: {kept.refused}." for done in dones for kept in done.runs if kept.refused),
    )
    tables = (PAPER.table("modes", rows),)
    yield PAPER.section("experiment-4", tables, figures, sentences, published=PAPER.value("figure_6"))


def _modes(done: TrialOutcome) -> Iterator[TableLine]:
    kept = done.runs[0]
    for mode, lines in (("non-gracious", kept.lines), ("gracious", kept.gracious)):
        for place, line in enumerate(lines, 1):
            yield TableLine((done.side.label, mode, f"{place}", *page.cells(line)))


def ours(done: TrialOutcome) -> PublishedLines:
    """The lines of the runs in the form of published ones."""
    return PublishedLines({f"{number}": list(kept.lines) for number, kept in enumerate(done.runs) if kept.lines})


def paragraph(done: TrialOutcome, published: PublishedLines, memory: Sequence[float]) -> str:
    """The figures that differ from the published files of the same load, with the reason, or that none does."""
    mine = ours(done)
    name = f"{done.test.name}, {done.side.label} beside the published {NAMES[done.side.published]}"
    if not mine.files:
        reason = done.reason or next((kept.refused or kept.failure for kept in done.runs), "it gave no lines")
        return f"{name}: nothing to compare: {reason}."
    shares = [*_shares("precision", mine, published, lambda line: line.precision),
              *_shares("recall", mine, published, lambda line: line.recall)]  # fmt: skip
    late = [*_delays(mine, published)]
    more = [*_memory(done, memory)]
    if not (shares or late or more):
        return f"{name}: no figure differs by more than the stated factors."
    # A list times True is the list, times False it is empty: reasons are given only for what differs.
    causes = [_why_shares(done)] * bool(shares) + [_why_delays(done)] * bool(late) + [_why_memory(done)] * bool(more)
    return f"{name}: {'; '.join([*shares, *late, *more])}. {' '.join(causes)}"


def _shares(
    what: str, mine: PublishedLines, theirs: PublishedLines, value: Callable[[OracleLine], float]
) -> Iterator[str]:
    # A run that ends early has fewer windows; only the common ones are compared.
    pairs = zip(mine.medians(value), theirs.medians(value), strict=False)
    shares = [
        f"W{number} {percent(own)} here, {percent(their)} published"
        for number, (own, their) in enumerate(pairs, 1)
        if abs(own - their) > POINTS
    ]
    if shares:
        yield f"{what} differs in {', '.join(shares)}"


def _delays(mine: PublishedLines, theirs: PublishedLines) -> Iterator[str]:
    own, their = (median(published.medians(lambda line: line.delay)) for published in (mine, theirs))
    # At least 1 ms each: of delays near 0, and of negative ones, the ratio says nothing.
    low, high = sorted((max(1.0, own), max(1.0, their)))
    # A worked example: delays of 0 and 40 ms differ by a factor of 40, but by no more than LEAST_MS, so nothing is
    # said.
    if high > FACTOR * low and high - low > LEAST_MS:
        yield f"the median delay of a window is {duration(own)} here, {duration(their)} published"


def greatest_memory(done: TrialOutcome) -> float:
    """The median over the runs of peak memory, MiB; 0 without samples."""
    peaks = [max((value for _, value in kept.memory), default=0.0) for kept in done.runs]
    return median(peaks) if peaks else 0.0


def _memory(done: TrialOutcome, published: Sequence[float]) -> Iterator[str]:
    own, their = greatest_memory(done), max(published, default=0.0)
    # A side without samples has 0 and is not compared.
    if own and their and max(own, their) > MEMORY_FACTOR * min(own, their):
        yield f"memory reaches {own:,.0f} MiB here, {their:,.0f} MiB published"


def _why_shares(done: TrialOutcome) -> str:
    """Whether the answers are wrong by the engine's own semantics, or only by YABench's rules."""
    right = sum(kept.judgement in {Judgement.RIGHT, Judgement.LATE} for kept in done.runs)
    precision, recall = (percent(median(values)) for values in zip(
        *((kept.precision, kept.recall) for kept in done.runs), strict=True
    ))  # fmt: skip
    # ``live`` gets an element whole, so its windows cannot split an observation as those of C-SPARQL do.
    torn = f" {TORN}" if done.side.published == "csparql" and done.side.engine != "live" else ""
    if right == len(done.runs):
        return (
            f"Under {done.side.semantics}, by the clock that this names, every window of every run is right: YABench "
            f"goes by the stream's times, so which rows it misses depends on when triples arrived.{torn}"
        )
    return (
        f"Under {done.side.semantics} the common judge finds {right} of {len(done.runs)} runs right, with a precision "
        f"of {precision} and a recall of {recall} (medians): the answers are not those of its semantics either.{torn}"
    )


def _why_delays(done: TrialOutcome) -> str:
    fed = duration(max(kept.feeder for kept in done.runs))
    return PAPER.claims["delay_on_engines"].why.format(fed=fed)


def _why_memory(done: TrialOutcome) -> str:
    if done.side.engine == "live":
        return "Memory is that of another program: live is not a JVM and keeps a window as integers."
    return PAPER.claims["memory_on_engines"].why
