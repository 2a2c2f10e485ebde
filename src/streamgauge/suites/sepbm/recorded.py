"""Recordings on disk: what was run, and each channel as a common run folder (docs/sepbm-systems.md).

Application time is the place in the order in which publications took effect, from 1, as ms: an answer's instant is
that of the last publication that caused it, where the system names one.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamgauge.formats import observed, stream, tables
from streamgauge.formats.making import making, put
from streamgauge.formats.run import RunError, read_json, write_json, write_run
from streamgauge.harness.surroundings import machine, versions
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.oracle.judging.clock import ADVANCE
from streamgauge.query import parse_sparql, print_query
from streamgauge.query.printer import sparql
from streamgauge.semantics.profiles import SENS
from streamgauge.suites.sepbm.analysing import in_effect
from streamgauge.suites.sepbm.contract import STREAM, Beside, Channel, Configuration, Heard, Published, Recording

FORMAT: Final = "streamgauge sepbm recording"
VERSION: Final = 1
ABOUT, FACTS, CHANNELS = "recording.json", "stream.parquet", "channels"
_PUBLISHED, _BESIDE, _SAMPLES, _CAUSES = "published.parquet", "beside.parquet", "samples.parquet", "causes.parquet"
_DIALECT: Final = "rspql"


def _needed(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_NUMBERS: Final = pa.list_(pa.int64())
_SCHEMAS: Final = {
    _PUBLISHED: pa.schema(
        [*(_needed(name, pa.int64()) for name in ("number", "called", "acknowledged")), ("known_as", pa.int64())]
    ),
    _BESIDE: pa.schema(
        [
            _needed("channel", pa.string()),
            _needed("subscriber", pa.int64()),
            _needed("causes", _NUMBERS),
            _needed("rows", pa.int64()),
            _needed("received", pa.int64()),
        ]
    ),
    _CAUSES: pa.schema([_needed("report", pa.int64()), _needed("causes", _NUMBERS)]),
}


class RecordingError(MistakeError, ValueError):
    """A recording that cannot be read or written; the sentence names the file and the field or column."""


def write(folder: Path, recording: Recording, configuration: Configuration, semantics: Semantics | None = None) -> None:
    """A recording; an earlier one in the folder is replaced, with the facts that it was judged on.

    Subscribers are told of what comes after the base load, under SENS unless another semantics is given.
    RecordingError when the disk is full.
    """
    told = replace(SENS, since=1) if semantics is None else semantics
    with _named():
        if (folder / ABOUT).exists():
            shutil.rmtree(folder / CHANNELS, ignore_errors=True)
            (folder / FACTS).unlink(missing_ok=True)
        _put(folder, _PUBLISHED, recording.published)
        _put(folder, _BESIDE, recording.beside)
        tables.write_part(folder / _SAMPLES, 0, observed.table("samples", recording.samples))
        places = _places(recording.published)
        channels = {each.name: each for each in configuration.channels}
        sizes = {each.number: len(each.added) + len(each.removed) for each in configuration.sequence()}
        fed = _fed(recording, sizes)
        for name, heard in _by_channel(recording).items():
            answers = tuple(_answer(each, channels[name].variables, places) for each in heard)
            header = _header(recording, channels[name], told, configuration)
            write_run(folder / CHANNELS / name, Run(header, answers, fed, recording.samples), f"../../{FACTS}")
            causes = {"report": list(range(len(heard))), "causes": [each.causes for each in heard]}
            tables.write_part(folder / CHANNELS / name / _CAUSES, 0, pa.table(causes, schema=_SCHEMAS[_CAUSES]))
        write_json(folder / ABOUT, {"format": FORMAT, "version": VERSION, **_about(recording)})


def write_facts(folder: Path, elements: Iterable[StreamElement]) -> None:
    """The facts that stood, with what follows from them, which the channels of a recording are judged on."""
    with _named(), making(folder / FACTS) as place:
        stream.write(elements, place)
        put(place, folder / FACTS)


def read(folder: Path) -> Recording:
    """The recording of a folder."""
    with _named():
        about = read_json(folder / ABOUT, FORMAT, VERSION)
        published = tuple(Published(*row) for row in _rows(folder / _PUBLISHED))
        beside = tuple(
            Beside(channel, who, tuple(causes), *rest) for channel, who, causes, *rest in _rows(folder / _BESIDE)
        )
        samples = observed.samples(folder)
        try:
            names = tuple(map(str, about["channels"]))
            given = {name: about[name] for name in _PLAIN}
        except (KeyError, TypeError) as error:
            raise RecordingError(f"{folder / ABOUT}: field {error} is missing") from error
        heard = [each for name in names for each in _heard(folder / CHANNELS / name, name)]
        return Recording(
            channels=names,
            published=published,
            heard=tuple(sorted(heard, key=attrgetter("received"))),
            samples=samples,
            beside=beside,
            **given,
        )


_TABLES: Final = ("channels", "published", "heard", "samples", "beside")
_PLAIN: Final = tuple(field.name for field in fields(Recording) if field.name not in _TABLES)
"""What of a recording ``recording.json`` has as it is."""


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except (RunError, tables.TableError) as error:
        raise RecordingError(str(error)) from error


def _about(recording: Recording) -> dict[str, Any]:
    return {"channels": list(recording.channels), **{name: getattr(recording, name) for name in _PLAIN}}


def _put(folder: Path, name: str, records: Iterable[tuple[Any, ...]]) -> None:
    schema = _SCHEMAS[name]
    columns: list[Any] = list(zip(*records, strict=True)) or [[] for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    tables.write_part(folder / name, 0, pa.table(arrays, schema=schema))


def _rows(path: Path) -> Iterator[tuple[Any, ...]]:
    found = tables.read(path, _SCHEMAS[path.name])
    return zip(*(column.to_pylist() for column in found.columns), strict=True)


def _places(published: Iterable[Published]) -> Mapping[int, int]:
    """By the system's number of a publication its place in the order in which they took effect, from 1."""
    return {each.known_as: place for place, each in enumerate(in_effect(published), 1) if each.known_as is not None}


def _by_channel(recording: Recording) -> dict[str, list[Heard]]:
    found: dict[str, list[Heard]] = {name: [] for name in recording.channels}
    for each in recording.heard:
        found[each.channel].append(each)
    return found


def _answer(heard: Heard, variables: tuple[str, ...], places: Mapping[int, int]) -> Answer:
    instant = max((places[cause] for cause in heard.causes if cause in places), default=None)
    return Answer(variables, heard.added, heard.removed, instant=instant, received=heard.received, made=heard.made)


def _heard(folder: Path, channel: str) -> list[Heard]:
    causes = [tuple(found) for _, found in _rows(folder / _CAUSES)]
    answers = observed.answers(folder, finished=True)
    if len(causes) != len(answers):
        raise RecordingError(
            f"{folder / _CAUSES}: {len(causes)} rows for {len(answers)} answers: one for each belongs here"
        )
    return [
        Heard(channel, why, each.added, each.removed, each.received, each.made)
        for each, why in zip(answers, causes, strict=True)
    ]


def _fed(recording: Recording, sizes: Mapping[int, int]) -> tuple[Fed, ...]:
    """Each publication when it was called, as an element after which time has come as far as its place."""
    found = []
    for place, each in enumerate(in_effect(recording.published), 1):
        found.append(Fed(each.number, place, each.called, each.called, sizes[each.number]))
        found.append(Fed(ADVANCE, place, each.called, each.called))
    return tuple(found)


def continuous(channel: Channel) -> ContinuousQuery:
    """A channel's query as a continuous one, over the facts that stand."""
    form = parse_sparql(channel.query)
    return ContinuousQuery(form, (StreamWindow(STREAM, Window(1, 1, "landmark")),), sparql=sparql(form))


def _header(recording: Recording, channel: Channel, semantics: Semantics, configuration: Configuration) -> RunHeader:
    query = continuous(channel)
    pace: dict[str, object] = {} if recording.rate is None else {"rate": recording.rate}
    return RunHeader(
        engine=recording.system,
        query=query,
        query_text=print_query(query, _DIALECT),
        dialect=_DIALECT,
        semantics=semantics,
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
