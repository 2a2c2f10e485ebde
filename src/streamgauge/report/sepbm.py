"""SEP-BM's metrics as tables, plots and JSON: notification time and throughput by channel, with verdicts."""

from collections import Counter
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
_MAX_CHANNELS_SHOWN: Final = 40
"""Maximum number of channels in a table or plot."""

NOTE: Final = (
    "Notification time is measured from the publication that caused a notification until the broker created it, "
    "`received` until the subscriber received it; means are over notifications. Deferred: sent only after a later "
    "publication was acknowledged. A publication is complete if all its notifications arrived before the run's end."
)


def named(recording: SepbmRecording) -> str:
    """The name of a run: the system, its options, its publishers and its rate."""
    options = [value if key == "strategy" else f"{key} {value}" for key, value in recording.options.items()]
    publishers = [f"{recording.publishers} publishers"] if recording.publishers > 1 else []
    pace = [] if recording.rate is None else [f"{rate(recording.rate)} publications/s"]
    return ", ".join([recording.system, *options, *publishers, *pace])


def by_name(outcomes: Mapping[Path, JudgedRecording]) -> dict[str, JudgedRecording]:
    """Recordings by name; several with the same name are told apart by their folders."""
    names = {folder: named(outcome.recording) for folder, outcome in outcomes.items()}
    repeated = {name for name, count in Counter(names.values()).items() if count > 1}
    return {
        f"{names[folder]} ({folder})" if names[folder] in repeated else names[folder]: outcome
        for folder, outcome in outcomes.items()
    }


@dataclass(frozen=True)
class Compared:
    """Judged runs of one configuration by name."""

    title: str
    outcomes: Mapping[str, JudgedRecording]

    @property
    def headline(self) -> str:
        """A sentence: how many runs were right."""
        right = sum(outcome.right for outcome in self.outcomes.values())
        return f"{right} of {counted(len(self.outcomes), 'run')} sent all notifications that were due, and no others."

    @property
    def look(self) -> PageStyle:
        """The frame of the page."""
        return PageStyle("Streamgauge SEP-BM", self.title, self.headline, WORDS, tuple(self.outcomes))


def page(compared: Compared) -> str:
    """One self-contained HTML file as text."""
    cards = [
        (index, name, outcome.right, _figure(outcome), _bound(outcome))
        for index, (name, outcome) in enumerate(compared.outcomes.items())
    ]
    return render("cards.html.j2", compared.look, tuple(_sections(ChartDrawing(), compared)), cards=cards)


def write(compared: Compared, path: Path) -> None:
    """Write the page (UTF-8), replacing an existing file; OSError."""
    path.write_text(page(compared), encoding="utf-8")


def shown(compared: Compared) -> Iterator[RenderableType]:
    """The runs for the terminal."""
    for section in _sections(None, compared):
        yield f"\n[bold]{escape(section.heading)}[/bold]"
        yield from map(escape, section.sentences)
        yield from (rich_table(table, compared.look.tally(table)) for table in section.tables)
    yield compared.headline


def data(compared: Compared) -> dict[str, object]:
    """The runs as JSON values."""
    return {"runs": [as_json(name, outcome) for name, outcome in compared.outcomes.items()]}


def _sections(drawing: ChartDrawing | None, compared: Compared) -> Iterator[PageSection]:
    outcomes = compared.outcomes
    plots = () if drawing is None else tuple(by_channel_plot(drawing, outcomes))
    yield PageSection("runs", "Runs", (NOTE,), tuple(overall(outcomes)), plots)
    for place, (name, outcome) in enumerate(outcomes.items(), 1):
        yield _run(place, name, outcome)


def _figure(outcome: JudgedRecording) -> str:
    scored = score(outcome.analysis)
    times = scored.notified or scored.received
    return f"{NOTHING if times is None else fine(times.mean)}, {rate(scored.throughput.rate)} publications/s"


def _bound(outcome: JudgedRecording) -> str:
    scored = score(outcome.analysis)
    return f"{counted(scored.due, 'notification')} due, {scored.missed:,} missed, {scored.surplus:,} surplus"


def overall(outcomes: Mapping[str, JudgedRecording]) -> Iterator[PageTable]:
    """The tables of each run's metrics and, for judged runs, of the common oracle's verdicts."""
    lines = tuple(line(name, score(outcome.analysis)) for name, outcome in outcomes.items())
    yield PageTable("", ("run", *COLUMNS[1:]), lines)
    if any(outcome.verdicts for outcome in outcomes.values()):
        columns = ("run", "channels right", "precision", "recall", "judged by")
        judged = tuple(_judged(name, outcome.verdicts) for name, outcome in outcomes.items() if outcome.verdicts)
        yield PageTable("The common oracle", columns, judged, "Precision and recall over the rows of all reports.")


def _judged(name: str, verdicts: Mapping[str, Verdict]) -> TableLine:
    right = sum(verdict.judgement in {Judgement.RIGHT, Judgement.LATE} for verdict in verdicts.values())
    precision, recall = micro(verdicts.values())
    by = ", ".join(sorted({str(verdict.evaluator) for verdict in verdicts.values()}))
    cells = (name, f"{right} of {len(verdicts)}", percent(precision), percent(recall), by)
    return TableLine(cells, right == len(verdicts))


def micro(verdicts: Iterable[Verdict]) -> tuple[float, float]:
    """Precision and recall over the rows of all reports of all channels."""
    windows = [window for verdict in verdicts for window in verdict.windows]
    positives = sum(window.true_positives for window in windows)
    actual, due = sum(window.actual for window in windows), sum(window.expected for window in windows)
    # Without a row on either side both are 1, as nothing is wrong.
    return positives / actual if actual else float(not due), positives / due if due else float(not actual)


def _time(statistic: str, received: bool = False) -> Callable[[NotificationScore], float | None]:
    """A statistic of the times until notifications were created; until receipt with ``received`` or if unknown."""

    def value(score: NotificationScore) -> float | None:
        times = score.received if received else score.notified or score.received
        return None if times is None else getattr(times, statistic)

    return value


def _shown_time(ms: float | None) -> str:
    return NOTHING if ms is None else fine(ms)


def fine(ms: float) -> str:
    """A time in ms, or in microseconds below 1 ms."""
    # A worked example: 0.25 ms are `250 µs`.
    return duration(ms) if ms >= 1 else f"{ms * 1000:,.0f} µs"


def _run(place: int, name: str, outcome: JudgedRecording) -> PageSection:
    analysis, recording = outcome.analysis, outcome.recording
    lines = [line("all", score(analysis)), *(line(kind, score(analysis, kind=kind)) for kind in ChangeKind)]
    slow = [channel for channel in analysis.channels if channel in SLOW]
    if slow:
        lines.append(line(f"the {len(slow)} slow ones", score(analysis, slow)))
    scores = by_channel(analysis)
    shown = dict(list(scores.items())[:_MAX_CHANNELS_SHOWN])
    channels = tuple(
        _channel(channel, channel_score, outcome.verdicts.get(channel)) for channel, channel_score in shown.items()
    )
    notes = [
        f"{counted(len(recording.published), 'publication')}, {counted(len(recording.channels), 'channel')}; loaded in "
        f"{number(recording.loading_s)} s."
    ]
    if len(scores) > _MAX_CHANNELS_SHOWN:
        notes.append(f"The first {_MAX_CHANNELS_SHOWN} channels are shown.")
    if recording.failure:
        notes.append(f"The run failed: {recording.failure}")
    tables = (
        PageTable("", COLUMNS, tuple(lines)),
        PageTable("By channel", (*COLUMNS, "precision", "recall"), channels),
    )
    return PageSection(f"run-{place}", name, tuple(notes), tables)


def _channel(name: str, score: NotificationScore, verdict: Verdict | None) -> TableLine:
    shares = (NOTHING, NOTHING) if verdict is None else (percent(verdict.precision), percent(verdict.recall))
    return TableLine((*line(name, score).cells, *shares))


MEASURES: Final[tuple[Measure[NotificationScore], ...]] = (
    Measure("due", lambda scored: scored.due, count),
    Measure("told", lambda scored: scored.delivered, count),
    Measure("missed", lambda scored: scored.missed, count),
    Measure("surplus", lambda scored: scored.surplus, count),
    Measure("deferred", lambda scored: scored.deferred, count),
    Measure("notification time, mean", _time("mean"), _shown_time),
    Measure("median", _time("p50"), _shown_time),
    Measure("p99", _time("p99"), _shown_time),
    Measure("received, mean", _time("mean", received=True), _shown_time),
    Measure("complete publications", lambda scored: scored.throughput.complete, count),
    Measure("publications/s", lambda scored: scored.throughput.rate, rate),
)
COLUMNS: Final = ("channels", *(measure.name for measure in MEASURES))


def line(name: str, score: NotificationScore) -> TableLine:
    """One line of the metrics."""
    return TableLine((name, *texts(MEASURES, score)))


def mean_times(outcome: JudgedRecording) -> dict[str, float]:
    """The mean notification times (ms) of a run's channels."""
    return times_of(by_channel(outcome.analysis))


def times_of(scores: Mapping[str, NotificationScore]) -> dict[str, float]:
    """The mean notification time (ms) of each notified channel: until creation, or until receipt if unknown."""
    return {
        name: times.mean for name, score in scores.items() if (times := score.notified or score.received) is not None
    }


def by_channel_plot(drawing: ChartDrawing, outcomes: Mapping[str, JudgedRecording]) -> Iterator[Figure]:
    """Figures 4 and 6: the mean notification time of each channel, a mark for each run."""
    times = {place: mean_times(outcome) for place, outcome in enumerate(outcomes.values())}
    names = tuple(dict.fromkeys(name for outcome in outcomes.values() for name in outcome.recording.channels))
    yield from plotted(drawing, "Notification time by channel", times, NOTIFICATION, names, fine)


NOTIFICATION: Final = ChartAxis("mean notification time", scale="log", unit="ms")
THROUGHPUT: Final = ChartAxis("publications a second", scale="log")


def plotted(
    drawing: ChartDrawing,
    title: str,
    rates_by_series: Mapping[int, Mapping[str, float]],
    axis: ChartAxis,
    names: Sequence[str],
    show: Callable[[float], str] = rate,
) -> Iterator[Figure]:
    """A value (above 0) per series and name, on a logarithmic axis; absent values are gaps."""
    names = names[:_MAX_CHANNELS_SHOWN]
    points = {
        series: [
            Point(place, values[name], f"{name}: {show(values[name])}")
            for place, name in enumerate(names, 1)
            if values.get(name, 0) > 0
        ]
        for series, values in rates_by_series.items()
    }
    if not any(points.values()):
        return
    # A logarithmic axis has no place for 0, so such names are listed in the note instead.
    silent = [name for name in names if not any(values.get(name, 0) > 0 for values in rates_by_series.values())]
    note = f"Nothing to show for {', '.join(silent)}." if silent else ""
    x = ChartAxis("", domain=(0.5, len(names) + 0.5), ticks=tuple((at, name) for at, name in enumerate(names, 1)))
    yield figure(
        drawing, title, lambda size: charts.scatter(points, x, axis, size), tuple(points), note, sizes=(_WIDE, PHONE)
    )


def as_json(name: str, outcome: JudgedRecording) -> dict[str, object]:
    """A run as JSON values."""
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
        "channels": {channel: score_json(channel_score) for channel, channel_score in by_channel(analysis).items()},
        "verdicts": {channel: _verdict_json(verdict) for channel, verdict in outcome.verdicts.items()},
    }


def score_json(score: NotificationScore) -> dict[str, object]:
    """The metrics as JSON values; times in ms."""
    plain = score._asdict()
    for name in ("notified", "received"):
        plain[name] = None if plain[name] is None else plain[name]._asdict()
    return plain | {"throughput": score.throughput._asdict() | {"rate": score.throughput.rate}}


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    plain = asdict(verdict)
    return {
        name: plain[name] for name in ("judgement", "evaluator", "precision", "recall", "missed", "surplus", "reason")
    }


def characters(characters_: Sequence[ChannelCharacter]) -> PageTable:
    """The properties P1 to P10 of each channel's query, data and rules."""
    lines = tuple(TableLine((character.channel, *map(_plain, character.values.values()))) for character in characters_)
    return PageTable("", ("channel", *MEANING), lines, "; ".join(f"{name}: {text}" for name, text in MEANING.items()))


def ranks(traits: Sequence[RankedTrait]) -> PageTable:
    """The rank correlation of each property with the channels' notification times, the strongest first."""
    lines = tuple(
        TableLine((trait.strategy, trait.property, number(trait.rho), str(trait.channels))) for trait in traits
    )
    return PageTable(
        "Rank correlation with notification time", ("run", "property", "Spearman's rho", "channels"), lines
    )


def _plain(value: float | None) -> str:
    return NOTHING if value is None else number(value)
