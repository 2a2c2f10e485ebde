"""Import of runs recorded by other tools: each becomes a run folder that ``check`` judges.

Every module here with ``recognises`` is a format; a new one is found by itself. Errors name the file, line or field.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from shutil import rmtree
from typing import Any, Protocol, TypeAlias, cast

from streamgauge.formats.bounds import BoundError, unique_members
from streamgauge.formats.files import made_folder, overwrite, stage
from streamgauge.formats.manifest import commit
from streamgauge.formats.places import Place, local
from streamgauge.formats.results import ResultsError, read_term
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import StreamError, write
from streamgauge.formats.streams import Reading
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run, RunHeader, Sample
from streamgauge.model.semantics import Report, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.expected.reports import beside
from streamgauge.query import detect, fill, parse
from streamgauge.semantics.beginning import begun_run
from streamgauge.sources.named import Course, NamedSource, recorded, refuse_names

NS = 1_000_000
"""Nanoseconds per millisecond."""


class ForeignError(MistakeError, ValueError):
    """A foreign file that cannot be imported; the sentence names the file, and the line or field."""


class AnswerTimes(StrEnum):
    """The meaning of an answer's timestamp."""

    COUNT = "count"  # the report's number times the slide, not a clock
    RECEIVED = "received"  # the time of receipt, ms since the feed began
    INSTANT = "instant"  # the application time of the report, ms


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The options of an import: the query's text and parameters, the stream and its reading, the semantics, ...

    ``advance_to`` (ms) is the end of stream time, ``times`` the meaning of timestamps, ``test`` one test of a folder.
    """

    query: str | None = None
    stream: Path | NamedSource | None = None
    semantics: Semantics | None = None
    engine: str | None = None
    samples: Path | None = None
    static: str | Path | None = None
    advance_to: int | None = None
    times: AnswerTimes | None = None
    test: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    reading: Reading = field(default_factory=lambda: Reading(checked=True))


@dataclass(frozen=True, slots=True)
class ForeignAnswers:
    """The content of a foreign file of answers.

    ``started`` (ns) is the start of the feed on the clock of the answers; ``factor`` the pace, ``None`` if unknown;
    ``notes`` describe irregularities of the file, ``workload`` goes into the run's header.
    """

    answers: tuple[Answer, ...]
    engine: str
    started: int = 0
    factor: float | None = None
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()
    workload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run to write: its name, its stream's file, and a function from the stream's last time to the run.

    ``streams`` are those that the query reads, ``files`` texts to store with the run, by name.
    """

    name: str
    stream: NamedSource
    streams: tuple[str, ...]
    reading: Reading
    run: Callable[[int], Run]
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def assemble(
    answers: Path,
    form: str,
    recorded: ForeignAnswers,
    request: ImportRequest,
    advance: Callable[[ContinuousQuery, int], int],
) -> ImportedRun:
    """The run of recorded answers; ``advance`` computes the end of time from the query and the stream's last time.

    ForeignError names a missing option of the command line.
    """
    if request.query is None:
        raise ForeignError(f"{answers}: the query is missing: name it with --query FILE")
    if request.stream is None:
        raise ForeignError(f"{answers}: the stream is missing: name it with --stream FILE")
    if request.semantics is None:
        raise ForeignError(f"{answers}: the semantics of the engine are missing: name them with --semantics NAME")
    text = fill(request.query, request.values)
    query = beside(parse(text), request.static)
    source = request.stream if isinstance(request.stream, NamedSource) else NamedSource(str(request.stream))
    refuse_names((source,), query.streams)

    def run(last: int) -> Run:
        # Known only when the stream has been read, which is done after the options are checked.
        until = request.advance_to if request.advance_to is not None else advance(query, last)
        return Run(
            _header(answers, form, recorded, request, (text, query, until)), recorded.answers, (), recorded.samples
        )

    notes = (*recorded.notes, *query.notes)
    return ImportedRun(_name(answers), source, query.streams, request.reading, run, notes=notes)


def _header(
    source: Path,
    form: str,
    recorded: ForeignAnswers,
    request: ImportRequest,
    query_given: tuple[str, ContinuousQuery, int],
) -> RunHeader:
    text, query, until = query_given
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
    """The end of time (ms) a window's size after the last element, so that every window with elements closed."""
    # A worked example: the last element is at 23 s, and the window has 10 s. Time ends at 33 s.
    return last + max((window.window.size for window in query.windows if window.window.kind != "count"), default=0)


def by_answers(
    answers: Iterable[Answer], started: int, semantics: Semantics | None
) -> Callable[[ContinuousQuery, int], int]:
    """The end of time (ms) at the last element, or at the last answer if windows report when they close."""
    closes = semantics is not None and Report.WINDOW_CLOSE in semantics.report
    # Under window close an answer proves that time had come to its close; under content change it may just be late.
    heard = max((answer.received for answer in answers), default=started) if closes else started
    return lambda _query, last: max(last, (heard - started) // NS)


def read_json(path: Path) -> Any:
    """The JSON in a file; ForeignError names file, line and column."""
    try:
        return json.loads(read_text(path), object_pairs_hook=unique_members)
    except json.JSONDecodeError as error:
        raise ForeignError(f"{path}, line {error.lineno}, column {error.colno}: not JSON") from error
    except RecursionError as error:
        raise ForeignError(f"{path}: this JSON is nested too deeply to be read") from error
    except BoundError as error:
        raise ForeignError(f"{path}: {error}") from error


def read_text(path: Path) -> str:
    """A file's text (UTF-8); ForeignError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ForeignError(f"{path}: {obstacle(error)}") from error
    except OSError as error:
        raise ForeignError(f"{path}: cannot be read: {obstacle(error)}") from error


class Fields:
    """Reads fields of one file's JSON objects; every error is a ForeignError with the file and the field."""

    def __init__(self, file: str) -> None:
        self._file = file

    def fail(self, where: str, what: str) -> ForeignError:
        """The error for a field."""
        return ForeignError(f"{self._file}: {where or 'the document'} {what}")

    def member(self, value: Any, where: str, name: str, kind: type) -> Any:
        """A member of an object, of that type."""
        if not isinstance(value, Mapping):
            raise self.fail(where, f"is {_short(value)}: expected an object")
        place = f"{where}.{name}" if where else name
        if name not in value:
            raise self.fail(place, "is missing")
        member = value[name]
        # JSON's true is an int in Python.
        if not isinstance(member, kind) or (kind is int and isinstance(member, bool)):
            raise self.fail(place, f"is {_short(member)}: expected {_KINDS[kind]}")
        return member

    def variables(self, document: Any, where: str) -> tuple[str, ...]:
        """``head.vars`` of a result."""
        head = self.member(document, where, "head", dict)
        place = f"{where}.head" if where else "head"
        names = self.member(head, place, "vars", list)
        if any(not isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise self.fail(f"{place}.vars", f"is {_short(names)}: expected distinct names")
        return tuple(names)

    def row(self, binding: Any, variables: tuple[str, ...], where: str) -> Row:
        """One solution; a variable without a value is unbound, one that ``head.vars`` does not name is refused."""
        if not isinstance(binding, Mapping):
            raise self.fail(where, f"is {_short(binding)}: expected an object of variables")
        for name in binding:
            if name not in variables:
                raise self.fail(f"{where}.{name}", f"is not a variable of head.vars ({', '.join(variables)})")
        return tuple(self._term(binding[name], f"{where}.{name}") if name in binding else None for name in variables)

    def _term(self, value: Any, where: str) -> Term:
        self.member(value, where, "type", str)
        try:
            return read_term(value)
        except ResultsError as error:
            raise self.fail(where, f"is {error}") from error


_KINDS = {int: "a whole number", str: "text", list: "a list", dict: "an object", bool: "true or false"}


def _short(value: object) -> str:
    return repr(value)[:60]


HEADER = "time,rss_mem,cpu_percent,mem_percent,threads"
MIB = 1 << 20


def read_samples(path: Path, started: int) -> tuple[str | None, tuple[Sample, ...]]:
    """(engine's name if the file has it, samples, counted from ``started`` in ns); ForeignError names the line."""
    lines = list(enumerate(read_text(path).splitlines(), 1))
    name = None
    # The first line may be the engine's name, before the header.
    if lines and lines[0][1].strip() != HEADER:
        name = lines.pop(0)[1].strip() or None
    if not lines or lines[0][1].strip() != HEADER:
        number = lines[0][0] if lines else 1
        raise ForeignError(f"{path}, line {number}: expected the line {HEADER!r}, after at most an engine's name")
    return name, tuple(_sample(path, number, line, started) for number, line in lines[1:] if line.strip())


def _sample(path: Path, number: int, line: str, started: int) -> Sample:
    try:
        time, rss, cpu, memory, threads = map(float, line.split(","))
        return Sample(started + round(time * 1e9), round(rss * MIB), memory, cpu, round(threads))
    except (ValueError, OverflowError) as error:
        raise ForeignError(f"{path}, line {number}: expected five numbers ({HEADER}): {line[:80]}") from error


class Importer(Protocol):
    """The members of a format's module: its name, a line about it, whether a path is one, and the runs in it."""

    NAME: str
    ABOUT: str

    def recognises(self, path: Path) -> bool:
        """Whether the path looks like this format; it never raises."""

    def read(self, path: Path, request: ImportRequest) -> Iterable[ImportedRun]:
        """The runs in it; ForeignError names the file and the line or field."""


@cache
def formats() -> dict[str, Importer]:
    """Every format by its name, sorted."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    importers = [cast(Importer, module) for module in modules if hasattr(module, "recognises")]
    return {one.NAME: one for one in sorted(importers, key=lambda one: one.NAME)}


WriteStream: TypeAlias = Callable[[NamedSource, Sequence[str], Reading, Place], AbstractContextManager[Course]]
"""Writes a recorded source, read for streams of a query, as a stream table to a new folder.

The table is removed again if the block fails.
"""


@contextmanager
def write_here(source: NamedSource, streams: Sequence[str], reading: Reading, folder: Place) -> Iterator[Course]:
    """Write a stream table in this process."""
    course = Course()
    target = made_folder(folder if isinstance(folder, Path) else local(str(folder), "import without Spark"))
    try:
        write(recorded((source,), streams, reading, course), target / "part-0.parquet")
        commit(target)
        yield course
    except BaseException:
        rmtree(target, ignore_errors=True)
        raise


def import_runs(
    sources: Sequence[Path],
    request: ImportRequest,
    out: Path,
    form: str | None = None,
    write_stream: WriteStream = write_here,
    at: Place | None = None,
) -> Iterator[tuple[Path, ImportedRun]]:
    """Write every run of the sources as a run folder, which is ``out`` itself for one run, else a folder in it.

    Stream tables go into the run folders, or into folders of the same names ``at`` another place. ForeignError names
    the source, and the invalid line or field; nothing is overwritten.
    """
    runs = [imported for source in sources for imported in _importer(source, form).read(source, request)]
    names = [imported.name for imported in runs]
    for imported in runs:
        if names.count(imported.name) > 1:
            raise ForeignError(f"two runs are named {imported.name}: import them one by one")
    # All checks before the first run is written: an import is either refused or complete.
    targets = [out if len(runs) == 1 else out / imported.name for imported in runs]
    for target in (*targets, *(at / target.name for target in targets if isinstance(at, Path))):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ForeignError(f"{target} already exists: remove it or name another place with --out")
    for target, imported in zip(targets, runs, strict=True):
        until = _write(target, imported, write_stream, at)
        note = f"time is assumed to end at {until:,} ms, so no later report is expected (--advance-to changes it)"
        yield target, replace(imported, notes=(*imported.notes, note))


def _importer(source: Path, form: str | None) -> Importer:
    if not source.exists():
        raise ForeignError(f"{source}: there is no such file or folder")
    if form is not None:
        if (name := spelled(form, formats())) is None:
            raise ForeignError(f"unknown import format {form!r}: {offered(form, formats())}")
        return formats()[name]
    # Sorted by name, so that the same format is found in each run if several recognise a file.
    for one in formats().values():
        if one.recognises(source):
            return one
    raise ForeignError(f"{source}: its format is not recognised: name it with --format {', '.join(formats())}")


def _write(target: Path, imported: ImportedRun, write_stream: WriteStream, at: Place | None) -> int:
    """Write the run folder atomically and return the end of stream time (ms)."""
    with stage(target) as folder:
        made_folder(folder)
        # A stream elsewhere is not staged: it would have to be moved across file systems.
        stream = folder / "stream" if at is None else at / target.name
        try:
            with write_stream(imported.stream, imported.streams, imported.reading, stream) as course:
                run = begun_run(imported.run(course.last or 0), course.first)
                written = None if at is None else str(stream.absolute() if isinstance(stream, Path) else stream)
                write_run(folder, run, written)
                for name, text in imported.files.items():
                    (folder / name).write_text(text, encoding="utf-8")
                overwrite(folder, target)
                return run.header.advanced_to
        except StreamError as error:
            raise ForeignError(f"{imported.stream.address}: {error}") from error
