"""What an importer gives: answers that others recorded, and how they become a run beside its query and stream."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from streamgauge.formats.streams import Reading
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import MistakeError
from streamgauge.model.obstacles import obstacle
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run, RunHeader, Sample
from streamgauge.model.semantics import Report, Semantics
from streamgauge.oracle.expected.background import beside
from streamgauge.query import detect, fill, parse
from streamgauge.sources.named import NamedSource, refuse_names

NS = 1_000_000
"""Nanoseconds of a millisecond."""


class ForeignError(MistakeError, ValueError):
    """A foreign file that cannot be imported; the sentence names the file, and the line or field."""


class Times(StrEnum):
    """What the time written beside an answer is."""

    COUNT = "count"  # the report's number times the slide: no clock at all
    RECEIVED = "received"  # when it came, ms since the feed began
    INSTANT = "instant"  # the application time that it speaks of, ms


@dataclass(frozen=True, slots=True)
class Request:
    """What is said beside the sources: the query's text and parameters, the stream and its reading, the semantics, ...

    ``advance_to`` (ms) is how far time came, ``times`` what the answers' times are, ``test`` one test of a folder.
    """

    query: str | None = None
    stream: Path | NamedSource | None = None
    semantics: Semantics | None = None
    engine: str | None = None
    samples: Path | None = None
    static: Path | None = None
    advance_to: int | None = None
    times: Times | None = None
    test: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    reading: Reading = field(default_factory=lambda: Reading(checked=True))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a foreign file of answers holds.

    ``started`` (ns) is when the feed began on the clock of the answers; ``factor`` the pace, ``None`` when unknown;
    ``notes`` name what was odd in the file, ``workload`` is kept in the run's header.
    """

    answers: tuple[Answer, ...]
    engine: str
    started: int = 0
    factor: float | None = None
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()
    workload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Imported:
    """One run to be written: its name, its stream's file, and the run once the stream's last time is known.

    ``streams`` are those that the query reads, ``files`` texts to put beside the run, by name.
    """

    name: str
    stream: NamedSource
    streams: tuple[str, ...]
    reading: Reading
    run: Callable[[int], Run]
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def assemble(
    answers: Path, form: str, recorded: Recorded, request: Request, advance: Callable[[ContinuousQuery, int], int]
) -> Imported:
    """The run of recorded answers; ``advance`` gives how far time came from the query and the stream's last time.

    ForeignError says what has to be named on the command line.
    """
    if request.query is None:
        raise ForeignError(f"{answers}: which query was asked? Name it with --query FILE")
    if request.stream is None:
        raise ForeignError(f"{answers}: which stream was it asked on? Name it with --stream FILE")
    if request.semantics is None:
        raise ForeignError(f"{answers}: under which semantics did the engine run? Name it with --semantics NAME")
    text = fill(request.query, request.values)
    query = beside(parse(text), request.static)
    source = request.stream if isinstance(request.stream, NamedSource) else NamedSource(str(request.stream))
    refuse_names((source,), query.streams)

    def run(last: int) -> Run:
        until = request.advance_to if request.advance_to is not None else advance(query, last)
        return Run(
            _header(answers, form, recorded, request, (text, query, until)), recorded.answers, (), recorded.samples
        )

    notes = (*recorded.notes, *query.notes)
    return Imported(_name(answers), source, query.streams, request.reading, run, notes=notes)


def _header(
    source: Path, form: str, recorded: Recorded, request: Request, asked: tuple[str, ContinuousQuery, int]
) -> RunHeader:
    text, query, until = asked
    assert request.semantics is not None
    return RunHeader(
        engine=request.engine or recorded.engine,
        query=query,
        query_text=text,
        dialect=detect(text),
        semantics=request.semantics,
        advanced_to=until,
        started=recorded.started,
        factor=recorded.factor,
        workload={
            "imported_from": str(source),
            "format": form,
            "stream": request.stream.address if isinstance(request.stream, NamedSource) else str(request.stream),
            **recorded.workload,
            **({"notes": list(recorded.notes)} if recorded.notes else {}),
        },
    )


def _name(source: Path) -> str:
    return source.name.removesuffix(".gz").removesuffix(".json")


def after_last(query: ContinuousQuery, last: int) -> int:
    """Time went on for a window's size after the last element (ms), so that every window that holds one closed."""
    return last + max((each.window.size for each in query.windows if each.window.kind != "count"), default=0)


def by_answers(
    answers: Iterable[Answer], started: int, semantics: Semantics | None
) -> Callable[[ContinuousQuery, int], int]:
    """Time came as far as the last element, or as the last answer of a window that closed; ms."""
    closes = semantics is not None and Report.WINDOW_CLOSE in semantics.report
    heard = max((answer.received for answer in answers), default=started) if closes else started
    return lambda _query, last: max(last, (heard - started) // NS)


def read_json(path: Path) -> Any:
    """The JSON in a file; ForeignError names file, line and column."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ForeignError(f"{path}, line {error.lineno}, column {error.colno}: not JSON") from error
    except RecursionError as error:
        raise ForeignError(f"{path}: no JSON that can be read: nested too deeply") from error


def read_text(path: Path) -> str:
    """A file's text (UTF-8); ForeignError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ForeignError(f"{path}: {obstacle(error)}") from error
    except OSError as error:
        raise ForeignError(f"{path}: cannot be read: {obstacle(error)}") from error
