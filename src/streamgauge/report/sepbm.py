"""SEP-BM's metrics as tables, plots and JSON: notification time and throughput by channel, verdicts beside."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import RenderableType
from rich.markup import escape

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.report import charts
from streamgauge.report.charts import ChartAxis, ChartDrawing
from streamgauge.report.document import swatch
from streamgauge.report.measures import Measure, count, texts
from streamgauge.report.numbers import NOTHING, duration, number, percent, rate
from streamgauge.report.plots import FULL, PHONE, Figure, figure
from streamgauge.report.sections import PageSection, PageStyle, PageTable, TableLine, render, rich_table
from streamgauge.report.series import Point
from streamgauge.suites.sepbm import SepbmRecording
from streamgauge.suites.sepbm.analysis import SLOW, ChangeKind, NotificationScore, by_channel, score
from streamgauge.suites.sepbm.characteristics import MEANING, ChannelCharacter, RankedTrait
from streamgauge.suites.sepbm.recordings import JudgedRecording

WORDS: Final = {True: "right", False: "not right", None: "not judged"}
_WIDE: Final = FULL._replace(height=230)
_MOST: Final = 40
"""Channels in a table or plot; more are told by their shares."""

NOTE: Final = (
    "Notification time runs from the publication that caused a notification until the broker made it, received until "
    "the subscriber had it; means are over notifications. Deferred: notified only after a later publication was "
    "acknowledged. A publication is complete when all its notifications came before the run's end."
)


def named(recording: SepbmRecording) -> str:
    """A run in a few words: the system, its options, how it was published to."""
    options = [value if key == "strategy" else f"{key} {value}" for key, value in recording.options.items()]
    many = [f"{recording.publishers} publishers"] if recording.publishers > 1 else []
    pace = [] if recording.rate is None else [f"{rate(recording.rate)} publications/s"]
    return ", ".join([recording.system, *options, *many, *pace])


@dataclass(frozen=True)
class Compared:
    """Runs on one configuration, by their names."""

    title: str
    outcomes: Mapping[str, JudgedRecording]

    @property
    def headline(self) -> str:
        """The outcome in a sentence."""
        right = sum(each.right for each in self.outcomes.values())
        return f"{right} of {counted(len(self.outcomes), 'run')} told all that was due, and nothing else."


def page(compared: Compared) -> str:
    """One self-contained HTML file as text."""
    labels = tuple(compared.outcomes)
    swatches = [swatch(index) for index in range(len(labels))]
    look = PageStyle("Streamgauge SEP-BM", compared.title, compared.headline, WORDS, _tally, labels, swatches)
    cards = [
        (index, name, outcome.right, _figure(outcome), _bound(outcome))
        for index, (name, outcome) in enumerate(compared.outcomes.items())
    ]
    return render("cards.html.j2", look, tuple(_sections(ChartDrawing(), compared)), cards=cards)


def write(compared: Compared, path: Path) -> None:
    """Write the page (UTF-8), replacing what is there; OSError when that fails."""
    path.write_text(page(compared), encoding="utf-8")


def shown(compared: Compared) -> Iterator[RenderableType]:
    """The runs for the terminal."""
    for section in _sections(None, compared):
        yield f"\n[bold]{escape(section.heading)}[/bold]"
        yield from map(escape, section.sentences)
        yield from (rich_table(table, _tally(table)) for table in section.tables)
    yield compared.headline


def data(compared: Compared) -> dict[str, object]:
    """The runs for programs."""
    return {"runs": [as_json(name, outcome) for name, outcome in compared.outcomes.items()]}


def _sections(drawing: ChartDrawing | None, compared: Compared) -> Iterator[PageSection]:
    outcomes = compared.outcomes
    plots = () if drawing is None else tuple(by_channel_plot(drawing, outcomes))
    yield PageSection("runs", "Runs", (NOTE,), tuple(overall(outcomes)), plots)
    for place, (name, outcome) in enumerate(outcomes.items(), 1):
        yield _run(place, name, outcome)


def _tally(table: PageTable) -> str:
    judged = [each.agrees for each in table.lines if each.agrees is not None]
    return f"{sum(judged):,} of {len(judged):,} right" if judged else ""


def _figure(outcome: JudgedRecording) -> str:
    found = score(outcome.analysis)
    times = found.made or found.received
    return f"{NOTHING if times is None else fine(times.mean)}, {rate(found.throughput.rate)} publications/s"


def _bound(outcome: JudgedRecording) -> str:
    found = score(outcome.analysis)
    return f"{counted(found.due, 'notification')} due, {found.missed:,} missed, {found.surplus:,} surplus"


def overall(outcomes: Mapping[str, JudgedRecording]) -> Iterator[PageTable]:
    """A line a run, and what the oracle says of it."""
    lines = tuple(line(name, score(outcome.analysis)) for name, outcome in outcomes.items())
    yield PageTable("", ("run", *COLUMNS[1:]), lines)
    if any(outcome.verdicts for outcome in outcomes.values()):
        columns = ("run", "channels right", "precision", "recall", "judged by")
        judged = tuple(_judged(name, outcome.verdicts) for name, outcome in outcomes.items() if outcome.verdicts)
        yield PageTable("The common oracle", columns, judged, "Precision and recall over the rows of all reports.")


def _judged(name: str, verdicts: Mapping[str, Verdict]) -> TableLine:
    right = sum(each.judgement in {Judgement.RIGHT, Judgement.LATE} for each in verdicts.values())
    precision, recall = micro(verdicts.values())
    by = ", ".join(sorted({str(each.evaluator) for each in verdicts.values()}))
    cells = (name, f"{right} of {len(verdicts)}", percent(precision), percent(recall), by)
    return TableLine(cells, right == len(verdicts))


def micro(verdicts: Iterable[Verdict]) -> tuple[float, float]:
    """Precision and recall over the rows of all reports of all channels."""
    windows = [window for each in verdicts for window in each.windows]
    found = sum(window.true_positives for window in windows)
    said, due = sum(window.actual for window in windows), sum(window.expected for window in windows)
    return found / said if said else float(not due), found / due if due else float(not said)


def _time(statistic: str, received: bool = False) -> Callable[[NotificationScore], float | None]:
    """A statistic of the times to making, or where these are not said or asked for, to being received."""

    def value(found: NotificationScore) -> float | None:
        times = found.received if received else found.made or found.received
        return None if times is None else getattr(times, statistic)

    return value


def _shown_time(ms: float | None) -> str:
    return NOTHING if ms is None else fine(ms)


def fine(ms: float) -> str:
    """A time in ms, in microseconds where it is short."""
    return duration(ms) if ms >= 1 else f"{ms * 1000:,.0f} µs"


def _run(place: int, name: str, outcome: JudgedRecording) -> PageSection:
    analysis, recording = outcome.analysis, outcome.recording
    lines = [line("all", score(analysis)), *(line(kind, score(analysis, kind=kind)) for kind in ChangeKind)]
    slow = [channel for channel in analysis.channels if channel in SLOW]
    if slow:
        lines.append(line(f"the {len(slow)} slow ones", score(analysis, slow)))
    scores = by_channel(analysis)
    shown = dict(list(scores.items())[:_MOST])
    channels = tuple(_channel(channel, found, outcome.verdicts.get(channel)) for channel, found in shown.items())
    said = [
        f"{counted(len(recording.published), 'publication')}, {counted(len(recording.channels), 'channel')}; loaded in "
        f"{number(recording.loading_s)} s."
    ]
    if len(scores) > _MOST:
        said.append(f"The first {_MOST} channels are shown.")
    if recording.failure:
        said.append(f"The run failed: {recording.failure}")
    tables = (
        PageTable("", COLUMNS, tuple(lines)),
        PageTable("By channel", (*COLUMNS, "precision", "recall"), channels),
    )
    return PageSection(f"run-{place}", name, tuple(said), tables)


def _channel(name: str, found: NotificationScore, verdict: Verdict | None) -> TableLine:
    shares = (NOTHING, NOTHING) if verdict is None else (percent(verdict.precision), percent(verdict.recall))
    return TableLine((*line(name, found).cells, *shares))


MEASURES: Final[tuple[Measure[NotificationScore], ...]] = (
    Measure("due", lambda found: found.due, count),
    Measure("told", lambda found: found.told, count),
    Measure("missed", lambda found: found.missed, count),
    Measure("surplus", lambda found: found.surplus, count),
    Measure("deferred", lambda found: found.deferred, count),
    Measure("notification time, mean", _time("mean"), _shown_time),
    Measure("median", _time("p50"), _shown_time),
    Measure("p99", _time("p99"), _shown_time),
    Measure("received, mean", _time("mean", received=True), _shown_time),
    Measure("complete publications", lambda found: found.throughput.complete, count),
    Measure("publications/s", lambda found: found.throughput.rate, rate),
)
COLUMNS: Final = ("channels", *(measure.name for measure in MEASURES))


def line(name: str, found: NotificationScore) -> TableLine:
    """One line of the metrics."""
    return TableLine((name, *texts(MEASURES, found)))


def mean_times(outcome: JudgedRecording) -> dict[str, float]:
    """The mean notification times (ms) of a run's channels."""
    return times_of(by_channel(outcome.analysis))


def times_of(scores: Mapping[str, NotificationScore]) -> dict[str, float]:
    """The mean notification time (ms) of each channel that was told something: to making, where that is said."""
    return {name: times.mean for name, each in scores.items() if (times := each.made or each.received) is not None}


def by_channel_plot(drawing: ChartDrawing, outcomes: Mapping[str, JudgedRecording]) -> Iterator[Figure]:
    """Figures 4 and 6: the mean notification time of each channel, a mark for each run."""
    times = {place: mean_times(outcome) for place, outcome in enumerate(outcomes.values())}
    names = tuple(dict.fromkeys(name for outcome in outcomes.values() for name in outcome.recording.channels))
    yield from plotted(drawing, "Notification time by channel", times, NOTIFICATION, names, fine)


def rates(outcome: JudgedRecording) -> dict[str, float]:
    """The publication throughput of each channel, publications a second."""
    return {name: each.throughput.rate for name, each in by_channel(outcome.analysis).items()}


NOTIFICATION: Final = ChartAxis("mean notification time", scale="log", unit="ms")
THROUGHPUT: Final = ChartAxis("publications a second", scale="log")


def plotted(
    drawing: ChartDrawing,
    title: str,
    found: Mapping[int, Mapping[str, float]],
    axis: ChartAxis,
    names: Sequence[str],
    show: Callable[[float], str] = rate,
) -> Iterator[Figure]:
    """A value (above 0) for each series at each of these names, on a logarithmic axis; names without one have a gap."""
    names = names[:_MOST]
    points = {
        series: [
            Point(place, values[name], f"{name}: {show(values[name])}")
            for place, name in enumerate(names, 1)
            if values.get(name, 0) > 0
        ]
        for series, values in found.items()
    }
    if not any(points.values()):
        return
    silent = [name for name in names if not any(values.get(name, 0) > 0 for values in found.values())]
    note = f"Nothing to show for {', '.join(silent)}." if silent else ""
    x = ChartAxis("", domain=(0.5, len(names) + 0.5), ticks=tuple((at, name) for at, name in enumerate(names, 1)))
    yield figure(
        drawing, title, lambda size: charts.scatter(points, x, axis, size), tuple(points), note, sizes=(_WIDE, PHONE)
    )


def as_json(name: str, outcome: JudgedRecording) -> dict[str, object]:
    """A run for programs."""
    recording, analysis = outcome.recording, outcome.analysis
    return {
        "name": name,
        "system": recording.system,
        "options": recording.options,
        "publishers": recording.publishers,
        "rate": recording.rate,
        "failure": recording.failure,
        "publications": len(recording.published),
        "all": score_json(score(analysis)),
        **{str(kind): score_json(score(analysis, kind=kind)) for kind in ChangeKind},
        "slow": score_json(score(analysis, SLOW)),
        "channels": {channel: score_json(found) for channel, found in by_channel(analysis).items()},
        "verdicts": {channel: _verdict_json(verdict) for channel, verdict in outcome.verdicts.items()},
    }


def score_json(found: NotificationScore) -> dict[str, object]:
    """The metrics for programs; times in ms."""
    plain = found._asdict()
    for name in ("made", "received"):
        plain[name] = None if plain[name] is None else plain[name]._asdict()
    return plain | {"throughput": found.throughput._asdict() | {"rate": found.throughput.rate}}


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    plain = asdict(verdict)
    return {
        name: plain[name] for name in ("judgement", "evaluator", "precision", "recall", "missed", "surplus", "reason")
    }


def characters(found: Sequence[ChannelCharacter]) -> PageTable:
    """A line a channel: its query, its data and rules, P1 to P10."""
    lines = tuple(TableLine((each.channel, *map(_plain, each.values.values()))) for each in found)
    return PageTable("", ("channel", *MEANING), lines, "; ".join(f"{name}: {text}" for name, text in MEANING.items()))


def ranks(found: Sequence[RankedTrait]) -> PageTable:
    """The agreement of the channels' order by each property with that by notification time, the closest first."""
    lines = tuple(TableLine((each.strategy, each.property, number(each.rho), str(each.channels))) for each in found)
    return PageTable(
        "Rank correlation with notification time", ("run", "property", "Spearman's rho", "channels"), lines
    )


def _plain(value: float | None) -> str:
    return NOTHING if value is None else number(value)
