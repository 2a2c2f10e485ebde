"""Recordings on disk: each channel is a common run folder, judged by the common oracle.

Application time is the place in the order in which publications took effect, from 1, as ms: an answer's instant is that
of the last publication that caused it, if the system names one (docs/sepbm-systems.md).
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamgauge.formats import stream, tables
from streamgauge.formats.files import hardlink, overwrite, stage
from streamgauge.formats.manifest import TableError
from streamgauge.formats.run import RunError, read_json, read_run, stored_verdict, write_json, write_run, write_verdict
from streamgauge.harness.resources import machine, versions
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.oracle.judging.metrics import ADVANCE
from streamgauge.query import parse, parse_sparql, print_query
from streamgauge.query.printer import sparql
from streamgauge.semantics.profiles import SENS
from streamgauge.suites.sepbm import (
    STREAM,
    Configuration,
    CountedNotification,
    DueRows,
    PublicationRecord,
    ReceivedNotification,
    SepbmChannel,
    SepbmRecording,
)
from streamgauge.suites.sepbm.analysis import Analysis, analyse, in_effect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT: Final = "streamgauge sepbm recording"
VERSION: Final = 1
ABOUT, FACTS, CHANNELS = "recording.json", "stream.parquet", "channels"
_PUBLISHED, _BESIDE, _SAMPLES, _CAUSES = "published.parquet", "beside.parquet", "samples.parquet", "causes.parquet"
_DIALECT: Final = "rspql"


class AnswerCauses(NamedTuple):
    """The publications that caused an answer, by the system's own numbers."""

    report: int
    causes: tuple[int, ...]


class RecordingError(MistakeError, ValueError):
    """A recording that cannot be read or written; the sentence names the file and the field or column."""


def write(folder: Path, recording: SepbmRecording, configuration: Configuration) -> None:
    """Write a recording, replacing an earlier one in the folder and the facts for its judgement.

    Subscribers are notified of changes after the base load, under SENS. RecordingError if the disk is full.
    """
    with _recording_errors():
        if (folder / ABOUT).exists():
            # Channels of an earlier recording that this one does not have would be read as its own.
            shutil.rmtree(folder / CHANNELS, ignore_errors=True)
            (folder / FACTS).unlink(missing_ok=True)
        _put(folder / _PUBLISHED, PublicationRecord, recording.published)
        _put(folder / _BESIDE, CountedNotification, recording.beside)
        _put(folder / _SAMPLES, Sample, recording.samples)
        places = _places(recording.published)
        channels = {channel.name: channel for channel in configuration.channels}
        sizes = {
            publication.number: len(publication.added) + len(publication.removed)
            for publication in configuration.sequence()
        }
        fed = _fed(recording, sizes)
        for name, heard in _by_channel(recording).items():
            answers = tuple(_answer(notification, channels[name].variables, places) for notification in heard)
            header = _header(recording, channels[name], configuration)
            write_run(folder / CHANNELS / name, Run(header, answers, fed, recording.samples), f"../../{FACTS}")
            causes = [AnswerCauses(report, notification.causes) for report, notification in enumerate(heard)]
            _put(folder / CHANNELS / name / _CAUSES, AnswerCauses, causes)
        write_json(folder / ABOUT, {"format": FORMAT, "version": VERSION, **_about(recording)})


def write_facts(folder: Path, elements: Iterable[StreamElement]) -> None:
    """Write the valid facts with their closure, on which the channels of a recording are judged."""
    with _recording_errors(), stage(folder / FACTS) as place:
        stream.write(elements, place)
        overwrite(place, folder / FACTS)


def read(folder: Path) -> SepbmRecording:
    """The recording of a folder."""
    with _recording_errors():
        about = read_json(folder / ABOUT, FORMAT, VERSION)
        published = tables.read_records(folder / _PUBLISHED, PublicationRecord)
        beside = tables.read_records(folder / _BESIDE, CountedNotification)
        samples = tables.samples(folder)
        try:
            names = tuple(map(str, about["channels"]))
            fields = {name: about[name] for name in _PLAIN}
        except (KeyError, TypeError) as error:
            raise RecordingError(f"{folder / ABOUT}: field {error} is missing") from error
        heard = [notification for name in names for notification in _heard(folder / CHANNELS / name, name)]
        return SepbmRecording(
            channels=names,
            published=published,
            heard=tuple(sorted(heard, key=attrgetter("received"))),
            samples=samples,
            beside=beside,
            **fields,
        )


_TABLES: Final = ("channels", "published", "heard", "samples", "beside")
_PLAIN: Final = tuple(field.name for field in fields(SepbmRecording) if field.name not in _TABLES)
"""The fields of a recording that are written to ``recording.json`` unchanged."""


@contextmanager
def _recording_errors() -> Iterator[None]:
    try:
        yield
    except (RunError, TableError) as error:
        raise RecordingError(str(error)) from error


def _about(recording: SepbmRecording) -> dict[str, Any]:
    return {"channels": list(recording.channels), **{name: getattr(recording, name) for name in _PLAIN}}


def _put(table: Path, kind: type[Any], records: Sequence[Any]) -> None:
    tables.write_part(table, 0, tables.table_of(tables.schema_of(kind), records))


def _places(published: Iterable[PublicationRecord]) -> Mapping[int, int]:
    """Each publication's place in the order of effect, from 1, by the system's number for it."""
    return {
        record.known_as: place for place, record in enumerate(in_effect(published), 1) if record.known_as is not None
    }


def _by_channel(recording: SepbmRecording) -> dict[str, list[ReceivedNotification]]:
    notifications: dict[str, list[ReceivedNotification]] = {name: [] for name in recording.channels}
    for notification in recording.heard:
        notifications[notification.channel].append(notification)
    return notifications


def _answer(heard: ReceivedNotification, variables: tuple[str, ...], places: Mapping[int, int]) -> Answer:
    # With several causes the answer is of the last of them: at earlier instants it was not yet complete.
    instant = max((places[cause] for cause in heard.causes if cause in places), default=None)
    return Answer(variables, heard.added, heard.removed, instant=instant, received=heard.received, made=heard.made)


def _heard(folder: Path, channel: str) -> list[ReceivedNotification]:
    causes = tables.read_records(folder / _CAUSES, AnswerCauses)
    answers = tables.answers(folder, finished=True)
    if len(causes) != len(answers):
        raise RecordingError(
            f"{folder / _CAUSES}: {len(causes)} rows for {len(answers)} answers, but each answer needs one"
        )
    return [
        ReceivedNotification(channel, why.causes, answer.added, answer.removed, answer.received, answer.made)
        for answer, why in zip(answers, causes, strict=True)
    ]


def _fed(recording: SepbmRecording, sizes: Mapping[int, int]) -> tuple[Fed, ...]:
    """Each publication as an element, followed by an advance of time to its place in the order of effect."""
    inputs = []
    for place, record in enumerate(in_effect(recording.published), 1):
        inputs.append(Fed(record.number, place, record.called, record.called, sizes[record.number]))
        # Without it, a report at this time would be due only with the next publication.
        inputs.append(Fed(ADVANCE, place, record.called, record.called))
    return tuple(inputs)


def continuous(channel: SepbmChannel) -> ContinuousQuery:
    """The query of a channel as a continuous query over the valid facts."""
    form = parse_sparql(channel.query)
    return ContinuousQuery(form, (StreamWindow(STREAM, Window(1, 1, "landmark")),), sparql=sparql(form))


def _header(recording: SepbmRecording, channel: SepbmChannel, configuration: Configuration) -> RunHeader:
    query = continuous(channel)
    pace: dict[str, object] = {} if recording.rate is None else {"rate": recording.rate}
    return RunHeader(
        engine=recording.system,
        query=query,
        query_text=print_query(query, _DIALECT),
        dialect=_DIALECT,
        # The base load is valid from 0 on, and subscribers are told of changes after it.
        semantics=replace(SENS, since=1),
        advanced_to=len(recording.published),
        started=recording.started,
        evaluator=recording.evaluator,
        workload={
            "name": "sepbm",
            "configuration": configuration.folder.name,
            "channel": channel.name,
            "publishers": recording.publishers,
            **pace,
        },
        versions=versions(),
        machine=machine(),
        failure=recording.failure,
        options=recording.options,
    )


Tell = Callable[[str, int, int], None]
"""Called with the next step, the number of steps done and the number of all steps."""


@dataclass(frozen=True, slots=True)
class JudgingMeans:
    """The means of judging; ``spark`` starts the session on first use."""

    spark: "Callable[[], SparkSession]"
    tell: Tell = lambda _what, _done, _of: None


@dataclass(frozen=True, slots=True)
class JudgedRecording:
    """A recording, its metrics, and the verdicts on its channels (empty if it was not judged)."""

    recording: SepbmRecording
    analysis: Analysis
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether no notification is missing or surplus, and every verdict is right or late."""
        judged = (verdict.judgement in {Judgement.RIGHT, Judgement.LATE} for verdict in self.verdicts.values())
        complete = self.recording.failure is None and not self.analysis.missed and not self.analysis.surplus
        return complete and all(judged)


def outcome(folder: Path, configuration: Configuration, judging: JudgingMeans) -> JudgedRecording:
    """The recording in a folder, analysed; RecordingError and ConfigurationError name the file."""
    recording = read(folder)
    return JudgedRecording(
        recording, analyse(due(configuration, recording, judging), recording), kept_verdicts(folder, recording)
    )


def due(configuration: Configuration, recording: SepbmRecording, judging: JudgingMeans) -> Sequence[DueRows]:
    """The due rows for the order in which the publications took effect.

    They were computed with the configuration for its own order, and are computed again for any other.
    """
    order = another_order(configuration, recording)
    if not order:
        return tuple(configuration.due())
    from streamgauge.suites.sepbm.distributed import due as due_in

    return due_in(judging.spark(), configuration, order, lambda what: judging.tell(f"what was due: {what}", 0, 1))


def another_order(configuration: Configuration, recording: SepbmRecording) -> tuple[int, ...]:
    """All publications in the order of effect, unpublished ones at the end.

    Empty if this is the order of the sequence.
    """
    effect = [record.number for record in in_effect(recording.published)]
    # A single publisher keeps the order of the sequence, whose due rows are stored with the configuration.
    if effect == sorted(effect):
        return ()
    done = set(effect)
    return (
        *effect,
        *(publication.number for publication in configuration.sequence() if publication.number not in done),
    )


def judge(
    folder: Path, configuration: Configuration, judging: JudgingMeans, *, again: bool = True
) -> dict[str, Verdict]:
    """The common oracle's verdicts on all channels of a recording, stored in the channels' run folders.

    Without ``again``, existing verdicts are kept.
    """
    recording = read(folder)
    judging.tell("the facts that stood", 0, len(recording.channels))
    _facts(folder, configuration, recording, judging)
    verdicts = {}
    for done, name in enumerate(recording.channels):
        if not again and (before := stored_verdict(folder / CHANNELS / name)) is not None:
            verdicts[name] = before
            continue
        judging.tell(f"judging {name}", done, len(recording.channels))
        run = read_run(folder / CHANNELS / name, parse)
        verdicts[name] = judge_run(run, folder / FACTS, Means(judging.spark))
        write_verdict(folder / CHANNELS / name, verdicts[name])
    return verdicts


def kept_verdicts(folder: Path, recording: SepbmRecording) -> dict[str, Verdict]:
    """The verdicts that ``judge`` wrote, or none if any is missing."""
    verdicts = {
        name: verdict
        for name in recording.channels
        if (verdict := stored_verdict(folder / CHANNELS / name)) is not None
    }
    return verdicts if len(verdicts) == len(recording.channels) else {}


def _facts(folder: Path, configuration: Configuration, recording: SepbmRecording, judging: JudgingMeans) -> None:
    """Write the stream for judging all channels; that of the sequence's own order is shared by a configuration."""
    if (folder / FACTS).exists():
        return
    from streamgauge.suites.sepbm.distributed import history

    order = another_order(configuration, recording)
    if order:
        write_facts(folder, history(judging.spark(), configuration, order))
        return
    if not (configuration.folder / FACTS).exists():
        write_facts(configuration.folder, history(judging.spark(), configuration))
    hardlink(configuration.folder / FACTS, folder / FACTS)
