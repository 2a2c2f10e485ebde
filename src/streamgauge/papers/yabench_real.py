"""YABench's tables and figures from real engines, run here in real time, beside the published files."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from streamgauge.harness.importing import ForeignError
from streamgauge.model.verdict import Judgement
from streamgauge.papers import yabench_boxes as plots
from streamgauge.papers.result import Line, Reproduction, Section, Table
from streamgauge.papers.rules.yabench_lines import Line as Judged
from streamgauge.papers.yabench_differs import RULE, greatest_memory, ours, paragraph
from streamgauge.papers.yabench_files import Published, Results
from streamgauge.papers.yabench_published import LOADS, NAMES, SIZE, SOURCE, TABLE_1
from streamgauge.papers.yabench_runs import Doer, Done, Outcome, available, do
from streamgauge.papers.yabench_trials import Side, trials
from streamgauge.report.numbers import NOTHING, duration, percent
from streamgauge.report.plots import Figure
from streamgauge.report.svg import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGN = {Outcome.RIGHT: "✓", Outcome.NEXT: "✓ *", Outcome.WRONG: "✗"}
PARTS = {1: "Experiment 1", 2: "Experiment 2", 3: "Experiment 3"}


@dataclass(frozen=True)
class Found:
    """What was done: every test on every side, who is absent, the published files, whether Q1-Q7 had their stream."""

    done: Sequence[Done]
    sides: Sequence[Side]
    absent: dict[str, str]
    results: Results | None
    hurricane: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """The series of the plots: the published engines, then the sides."""
        return (*(f"{name}, published" for name in NAMES.values()), *(side.label for side in self.sides))

    def series(self, side: Side) -> int:
        """A side's place among the labels."""
        return len(NAMES) + list(self.sides).index(side)

    def of(self, test: str) -> list[Done]:
        """A test on every side that has runs."""
        return [done for done in self.done if done.test.name == test and done.runs]

    def published(self, number: int, engine: str, load: str | None) -> Published | None:
        """The result files, ``None`` where there are none."""
        if self.results is None or load is None:
            return None
        try:
            return self.results.lines(number, engine, load)
        except ForeignError:
            return None

    def memory(self, number: int, engine: str, load: str | None) -> list[tuple[float, float]]:
        """The published memory over time, empty where there is none."""
        if self.results is None or load is None:
            return []
        try:
            return self.results.memory_over_time(number, engine, load)
        except ForeignError:
            return []


@dataclass(frozen=True)
class Wanted:
    """What is asked: engines, tests (all when empty), published files and CSRBench's stream where they are, runs."""

    engines: tuple[str, ...]
    only: tuple[str, ...]
    data: Path | None
    hurricane: Path | None
    runs: Path
    repetitions: int


def on_engines(wanted: Wanted, spark: "Callable[[], SparkSession]", tell: Callable[[str, float], None]) -> Reproduction:
    """YABench's experiments on these engines; those that are absent say how to get them."""
    results = None if wanted.data is None else Results(wanted.data)
    asked = trials(wanted.hurricane, wanted.only)
    taking_part, absent = available(wanted.engines)
    done = tuple(do(asked, taking_part, Doer(wanted.runs, spark, wanted.repetitions, tell)))
    return reproduction(Found(done, taking_part, absent, results, wanted.hurricane is not None))


def reproduction(found: Found) -> Reproduction:
    """The page's content."""
    drawing = Drawing()
    sections = [_who(found), *_csrbench(found), *_last(found)]
    for number, heading in PARTS.items():
        sections += _experiment(found, number, heading, drawing)
    sections += _gracious(found, drawing)
    tabled = [{"section": section.id, "sentences": list(section.sentences), **_json(table)}
              for section in sections for table in section.tables]  # fmt: skip
    data = {"paper": SOURCE, "absent": found.absent, "tables": tabled}
    return Reproduction("YABench's experiments on real engines", SOURCE, tuple(sections), data, found.labels)


def _json(table: Table) -> dict[str, object]:
    return {"table": table.heading, "columns": list(table.columns), "lines": [list(line.cells) for line in table.lines]}


def _who(found: Found) -> Section:
    """Who took part, how every run was judged by the common judge, and who is absent."""
    columns = ("test", "engine", "semantics", "runs", "right", "precision", "recall", "feeder at most", "memory")
    lines = tuple(Line(_summary(done)) for done in found.done)
    sentences = (
        "Every run was fed in real time, stamped where the engine has no clock for it by when it was handed over, as "
        "YABench fed it. The common judge goes by the clock that the engine's semantics names; the figures below are "
        "by YABench's own rules, which go by the stream's times.",
        *(f"{name} is absent: {sentence}" for name, sentence in found.absent.items()),
        *dict.fromkeys(
            f"{done.side.label} refuses {done.test.name}: {done.reason}" for done in found.done if done.reason
        ),
    )
    return Section("runs", "Runs", sentences, (Table("By the common judge", columns, lines),))


def _summary(done: Done) -> tuple[str, ...]:
    if not done.runs:
        return done.test.name, done.side.engine, done.side.semantics, "0", *[NOTHING] * 5
    right = sum(kept.judgement in {Judgement.RIGHT, Judgement.LATE} for kept in done.runs)
    shares = (percent(fmean(kept.precision for kept in done.runs)), percent(fmean(kept.recall for kept in done.runs)))
    fed = duration(max(kept.feeder for kept in done.runs))
    runs = f"{len(done.runs)}"
    memory = f"{greatest_memory(done):,.0f} MiB"
    return done.test.name, done.side.engine, done.side.semantics, runs, f"{right}", *shares, fed, memory


def _csrbench(found: Found) -> Iterator[Section]:
    """Table 1."""
    names = list(dict.fromkeys(done.test.name for done in found.done if not done.test.number))
    if not names:
        return
    lines = tuple(_cell(found, done) for name in names for done in found.of(name))
    stream = "CSRBench's own" if found.hurricane else (
        "a stand-in for CSRBench's (28 stations, 34 s, temperature and humidity), so cells are not compared"
    )  # fmt: skip
    sentences = (
        f"The stream is {stream}. A cell is what most runs give. ✓: right under the engine's own clock, or the "
        "stream's; ✓ *: right, but as a rule some rows are in the next window (every missing row is surplus in the "
        "first later window that does not overlap, and no other row is surplus); ✗: wrong. Of the published engines, "
        "one that reports windows that close should report CSRBench's: none before the first full one.",
    )
    columns = ("query", "engine", "published", "ours", "runs")
    yield Section("table-1", "Table 1: CSRBench's queries", sentences, (Table("Table 1", columns, lines),))


def _cell(found: Found, done: Done) -> Line:
    counted = Counter(kept.outcome for kept in done.runs if kept.outcome is not None)
    ours_is = counted.most_common(1)[0][0]
    told = None
    if done.side.engine in NAMES:
        told = TABLE_1[done.side.engine].get(done.test.name, True)
    published = NOTHING if told is None else "✓ or ✓ *" if told else "✗"
    all_runs = ", ".join(f"{SIGN[each]} {count}" for each, count in counted.most_common())
    agrees = None if told is None or not found.hurricane else told == (ours_is is not Outcome.WRONG)
    return Line((done.test.name, done.side.label, published, SIGN[ours_is], all_runs), agrees)


def _last(found: Found) -> Iterator[Section]:
    """Table 2."""
    lines = []
    for done in found.done:
        arrivals = [kept.last_answer for kept in done.runs if kept.last_answer is not None]
        if done.test.number not in PARTS or done.side.published != "cqels" or not arrivals:
            continue
        figures = (f"{fmean(arrivals):.1f}", f"{min(arrivals):.1f}", f"{max(arrivals):.1f}")
        lines.append(Line((done.test.name, done.side.label, _bound(found, done), *figures)))
    if lines:
        columns = ("test", "engine", "published, at least", "average", "min", "max")
        note = "The published values are not in the files: the last window's end plus its mean delay is a lower bound."
        table = Table("Arrival of the last result, s after the start", columns, tuple(lines), note)
        yield Section("table-2", "Table 2: arrival of the last result", (), (table,))


def _bound(found: Found, done: Done) -> str:
    published = found.published(done.test.number, "cqels", done.test.load)
    if published is None:
        return NOTHING
    return f"{fmean(published.column(lambda line: line.end + line.delay, published.windows - 1)) / 1000:.1f}"


def _experiment(found: Found, number: int, heading: str, drawing: Drawing) -> Iterator[Section]:
    """Figures 3 and 4 (experiment 1), the same for experiments 2 and 3."""
    tests = list(dict.fromkeys(done.test.name for done in found.done if done.test.number == number))
    if not tests:
        return
    sentences: list[str] = [RULE] if number != 3 else ["The result files of experiment 3 are not published."]
    tables: list[Table] = []
    figures: list[Figure] = []
    for test in tests:
        dones = found.of(test)
        if not dones:
            continue
        sentences += _paragraphs(found, dones)
        tables.append(_medians(found, test, dones))
        figures += _figures(found, test, dones, drawing)
    yield Section(f"experiment-{number}", heading, tuple(sentences), tuple(tables), tuple(figures))


def _paragraphs(found: Found, dones: Iterable[Done]) -> Iterator[str]:
    for done in dones:
        published = found.published(done.test.number, done.side.published, done.test.load)
        if published is not None:
            memory = [size for _, size in found.memory(done.test.number, done.side.published, done.test.load)]
            yield paragraph(done, published, memory)


Value = Callable[[Judged], float]
MEASURES: tuple[tuple[str, Value, Callable[[float], str]], ...] = (
    ("precision", lambda line: line.precision, percent),
    ("recall", lambda line: line.recall, percent),
    ("actual rows", lambda line: line.actual, lambda value: f"{value:,.0f}"),
    ("expected rows", lambda line: line.expected, lambda value: f"{value:,.0f}"),
    ("input triples", lambda line: line.input, lambda value: f"{value:,.0f}"),
    ("delay", lambda line: line.delay, duration),
)


def _medians(found: Found, test: str, dones: Sequence[Done]) -> Table:
    """The medians over the runs by window, published ones above ours."""
    shown = _shown(found, dones)
    windows = max((lines.windows for _, lines in shown.values()), default=0)
    rows = [
        Line((label, measure, f"{len(lines.files)}", *_cells(lines.medians(value), show, windows)))
        for label, lines in shown.values()
        for measure, value, show in MEASURES
    ]
    refused = dict.fromkeys(kept.refused for done in dones for kept in done.runs if kept.refused)
    columns = ("engine", "median of", "runs", *(f"W{number}" for number in range(1, windows + 1)))
    return Table(f"{test}, by YABench's rules", columns, tuple(rows), " ".join(refused))


def _cells(values: Sequence[float], show: Callable[[float], str], windows: int) -> list[str]:
    return [*map(show, values), *[NOTHING] * (windows - len(values))]


def _shown(found: Found, dones: Sequence[Done]) -> dict[int, tuple[str, Published]]:
    """Series to label and lines: published ones where there are files, and ours where the rules gave lines."""
    shown: dict[int, tuple[str, Published]] = {}
    for place, engine in enumerate(NAMES):
        lines = found.published(dones[0].test.number, engine, dones[0].test.load)
        if lines is not None:
            shown[place] = (found.labels[place], lines)
    for done in dones:
        if (mine := ours(done)).files:
            shown[found.series(done.side)] = (done.side.label, mine)
    return shown


def _titles(test: str, load: str | None, first: bool) -> tuple[str, str, str]:
    """What the figures of correctness, delay and memory are called; experiment 1's by the paper's numbers."""
    if not first or load is None:
        return test, test, test
    place = LOADS.index(load)
    return f"Figure 3{'abc'[place]}: {test}", f"Figure 3{'def'[place]}: {test}", f"Figure 4{'abc'[place]}: {test}"


def _figures(found: Found, test: str, dones: Sequence[Done], drawing: Drawing) -> Iterator[Figure]:
    """Boxes of correctness and delay, memory, and for experiment 1 small the result sizes (figure 4d)."""
    trial = dones[0].test
    shown = _shown(found, dones)
    right, late, used = _titles(test, trial.load, trial.number == 1)
    yield from plots.correctness(drawing, right, shown)
    yield from plots.delay(drawing, late, shown)
    over_time = {found.series(done.side): (done.side.label, done.runs[0].memory) for done in dones}
    for place, engine in enumerate(NAMES):
        if told := found.memory(trial.number, engine, trial.load):
            over_time[place] = (found.labels[place], tuple(told))
    yield from plots.memory(drawing, used, dict(sorted(over_time.items())))
    if test == "E1/small":
        single = {found.series(done.side): (done.side.label, done.runs[0]) for done in dones}
        yield from plots.size_and_delay(drawing, "Figure 4d: result size and delay, E1/small", single)


def _gracious(found: Found, drawing: Drawing) -> Iterator[Section]:
    """Figures 6a and 6b."""
    dones = found.of("E4")
    if not dones:
        return
    rows = [line for done in dones for line in _modes(done)]
    columns = ("engine", "mode", "window", "precision, recall", "actual, expected, input", "borders, ms")
    figures = [
        figure
        for done in dones
        for figure in plots.borders(
            drawing, f"Figure 6b: {done.side.label}, the borders that gracious mode finds", done.runs[0].gracious, SIZE
        )
    ]
    sentences = (
        "Published: without gracious mode CQELS has 100, 47.8, 36.4 and 38.1% (figure 6a) and with it 100% four times, "
        "its windows' starts moved left (figure 6b); C-SPARQL has a recall of 60%, and 100% in gracious mode.",
        *_paragraphs(found, dones),
        *(f"{done.side.label}: {kept.refused}." for done in dones for kept in done.runs if kept.refused),
    )
    table = Table("Figures 6a and 6b, line by line", columns, tuple(rows))
    yield Section("experiment-4", "Experiment 4: gracious mode", sentences, (table,), tuple(figures))


def _modes(done: Done) -> Iterator[Line]:
    kept = done.runs[0]
    for mode, lines in (("non-gracious", kept.lines), ("gracious", kept.gracious)):
        for place, line in enumerate(lines, 1):
            shares = f"{percent(line.precision)}, {percent(line.recall)}"
            sizes = f"{line.actual}, {line.expected}, {line.input}"
            yield Line((done.side.label, mode, f"{place}", shares, sizes, f"[{line.start:,}, {line.end:,}]"))
