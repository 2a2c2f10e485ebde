"""Run folders: ``run.json`` and Parquet tables, written while a run is observed; its verdict (docs/run-folder.md)."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from streamgauge.formats import tables
from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.manifest import NAME, TableError, commit, manifest
from streamgauge.formats.paged import PagedRecords, RecordForm, pages, read_records
from streamgauge.formats.places import Place, RemotePlace, place
from streamgauge.formats.seals import SealError, seal, unseal
from streamgauge.formats.windows import WINDOW_FORM, WINDOWS, windows_table
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.model.verdict import Verdict

_VERDICT = "streamgauge verdict"
"""The format of verdict.json, of the same version."""


def write_verdict(path: str | Path, verdict: Verdict) -> None:
    """Write a verdict into a run folder, replacing an earlier one; RunError."""
    root = Path(path)
    folder = root / "windows.parquet"
    try:
        # Windows that are read page by page from this very table must not be replaced by themselves.
        if not (isinstance(verdict.windows, PagedRecords) and verdict.windows.is_of(folder)):
            tables.write_groups(folder, 0, WINDOWS, pages(verdict.windows, windows_table))
            commit(folder)
    except TableError as error:
        raise RunError(str(error)) from error
    data = {"format": _VERDICT, "version": VERSION, "verdict": encode(verdict, leave_out={"windows"})}
    write_json(root / "verdict.json", data)


def read_verdict(path: str | Path) -> Verdict:
    """The verdict in a run folder; RunError names the file and the invalid field or column."""
    root = Path(path)
    file = root / "verdict.json"
    data = read_json(file, _VERDICT, VERSION)
    try:
        windows = read_records(root / "windows.parquet", WINDOW_FORM)
        return decode(Verdict, data.get("verdict"), "verdict", {"windows": windows})
    except FieldError as error:
        raise RunError(f"{file}: field {error}") from error
    except TableError as error:
        raise RunError(str(error)) from error


def stored_verdict(path: Path) -> Verdict | None:
    """The verdict in a run folder, ``None`` if it has none that can be read."""
    try:
        return read_verdict(path)
    except RunError:
        return None


_SEALED = ("static", *tables.TABLES, "rows")
"""The tables whose files are listed in run.json."""

FORMAT = "streamgauge run"
VERSION = 1
"""The schema version; other versions are refused."""

UNFINISHED = "the recording was not finished: the folder has what was written until then"

Parse: TypeAlias = Callable[[str, str], ContinuousQuery]
"""(query text, dialect) -> query."""

_CHUNK = 50_000
_STATIC_CHUNK = 500_000


class RunError(MistakeError, ValueError):
    """A run folder that cannot be read or written; the sentence names the file and the field or column."""


class RunWriter:
    """Writes a run while it is observed: header first, tables in part files, header again at the end.

    Everything flushed stays readable; RunError if the disk is full. Records are flushed every 50,000, by ``flush`` and
    by ``finish``. An earlier run in the folder is replaced. Thread-safe.
    """

    def __init__(self, path: str | Path, header: RunHeader, stream: str | Path | None = None) -> None:
        """``stream`` is the place of the stream table, if not ``stream`` or ``stream.parquet`` in the folder."""
        self._root = Path(path)
        self._stream = None if stream is None else str(stream)
        self._header = header
        self._waiting: dict[str, list[Any]] = {name: [] for name in tables.TABLES}
        self._parts = dict.fromkeys(("static", *tables.TABLES), 0)
        self._reports = 0
        self._finished = False
        self._lock = RLock()
        # Before the new header: a killed process must not leave it beside the tables of the run before.
        _clear(self._root)
        self._write_header(finished=False)
        static = iter(header.query.static)
        self._part("static", list(islice(static, _STATIC_CHUNK)))
        while more := list(islice(static, _STATIC_CHUNK)):
            self._part("static", more)
        for name in tables.TABLES:
            self._part(name, [])

    def answers(self, answers: Iterable[Answer]) -> None:
        """Append answers, in order of arrival."""
        self._append("answers", answers)

    def fed(self, fed: Iterable[Fed]) -> None:
        """Append hand-overs of elements."""
        self._append("fed", fed)

    def samples(self, samples: Iterable[Sample]) -> None:
        """Append samples of resource usage."""
        self._append("samples", samples)

    def flush(self) -> None:
        """Write everything appended so far to disk."""
        with self._lock:
            for name, waiting in self._waiting.items():
                if waiting:
                    self._waiting[name] = []
                    self._part(name, waiting)

    def finish(self, header: RunHeader | None = None) -> None:
        """Flush, and write the final header."""
        self._header = header or self._header
        self.flush()
        self._write_header(finished=True)
        self._finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._finished:
            self.finish()
        # After a RunError the disk is full, and a flush would raise it again in place of the first.
        elif not self._finished and not isinstance(error, RunError):
            self.flush()

    def _append(self, name: str, records: Iterable[Any]) -> None:
        with self._lock:
            self._waiting[name].extend(records)
            if len(self._waiting[name]) >= _CHUNK:
                self.flush()

    def _part(self, name: str, records: list[Any]) -> None:
        try:
            if name == "answers":
                # Rows before answers: if the process is killed in between, the rows of the lost answers are left out on
                # reading.
                rows = tables.rows_table(records, self._reports)
                tables.write_part(self._root / "rows.parquet", self._parts[name], rows)
                table = tables.answers_table(records, self._reports)
                self._reports += len(records)
            else:
                table = tables.records_table(name, records)
            tables.write_part(self._root / f"{name}.parquet", self._parts[name], table)
        except TableError as error:
            raise RunError(str(error)) from error
        self._parts[name] += 1

    def _write_header(self, *, finished: bool) -> None:
        write_header(self._root, self._header, self._stream, finished=finished)


def write_header(root: Path, header: RunHeader, stream: str | None, *, finished: bool) -> None:
    """Write a run folder's ``run.json`` atomically; RunError."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "finished": finished,
        "stream": stream,
        "header": encode(header, leave_out={"query"}),
    }
    if finished:
        written = [name for name in _SEALED if (root / f"{name}.parquet").exists()]
        data["parts"] = {name: _digests(root / f"{name}.parquet", complete=True) for name in written}
    write_json(root / "run.json", data)


def _digests(table: Path, *, complete: bool = False) -> list[str | None]:
    """The digests of a table's parts, in order; a ``complete`` folder gets its manifest. TableError."""
    listed = commit(table) if complete and table.is_dir() else manifest(table)
    return [part.digest for part in listed.parts]


def write_run(path: str | Path, run: Run, stream: str | Path | None = None) -> None:
    """Write a whole run folder, without its stream; RunError."""
    with RunWriter(path, run.header, stream) as writer:
        writer.answers(run.answers)
        writer.fed(run.fed)
        writer.samples(run.samples)


def read_run(path: str | Path, parse: Parse) -> Run:
    """The run in a folder; RunError names the file and the invalid field or column."""
    root = Path(path)
    data = read_json(root / "run.json", FORMAT, VERSION)
    try:
        static = tables.static(root) if (root / "static.parquet").exists() else ()
        header = _header(root / "run.json", data, parse, static)
        answers = tables.answers(root, finished=data.get("finished", True) is not False)
        run = Run(header, answers, tables.fed(root), tables.samples(root), root)
        _check_parts(root, data)  # after the seals, which name the file
        return run
    except TableError as error:
        raise RunError(str(error)) from error


def read_heads(path: str | Path, parse: Parse) -> Run | None:
    """The run in a folder without rows, hand-overs and samples, but with a head per answer; RunError.

    ``None`` for older folders, whose rows cannot be assigned to answers by position: use ``read_run``.
    """
    root = Path(path)
    data = read_json(root / "run.json", FORMAT, VERSION)
    try:
        static = tables.static(root) if (root / "static.parquet").exists() else ()
        heads = RecordForm(tables.ANSWERS, partial(tables.head_answers, root), tables.LATER)
        answers = read_records(root / "answers.parquet", heads) if tables.are_numbered(root) else None
        tables.check(root / "rows.parquet")
        _check_parts(root, data)
        return None if answers is None else Run(_header(root / "run.json", data, parse, static), answers, (), (), root)
    except TableError as error:
        raise RunError(str(error)) from error


FED_FORM: Final = RecordForm(tables.schema_of(Fed), partial(tables.records, kind=Fed))
"""Hand-overs, which take 0.2 KB each in memory."""


def read_shown(path: str | Path, parse: Parse) -> Run:
    """The run for a report: without rows, its hand-overs on disk; RunError."""
    root = Path(path)
    heads = read_heads(path, parse)
    if heads is None:
        return read_run(path, parse)
    try:
        return replace(heads, fed=read_records(root / "fed.parquet", FED_FORM), samples=tables.samples(root))
    except TableError as error:
        raise RunError(str(error)) from error


def _check_parts(root: Path, data: Mapping[str, Any]) -> None:
    """TableError or RunError if the tables' files are not those of the run.

    A table with an unsealed file was written by another program, so it is not checked.
    """
    listed = data.get("parts", {})
    if not isinstance(listed, dict):
        raise RunError(f"{root / 'run.json'}: field parts: expected an object of lists, a list of digests for a table")
    for name, seals in listed.items():
        if name in _SEALED and None not in (digests := _digests(root / f"{name}.parquet")) and digests != seals:
            raise RunError(
                f"{root / f'{name}.parquet'}: its files are not those of run.json: one is missing or of another "
                "run: restore the folder from a copy, or run again"
            )


def read_header(path: str | Path, parse: Parse) -> RunHeader:
    """The header of a run folder, without its tables and thus without the query's static data; RunError."""
    file = Path(path) / "run.json"
    return _header(file, read_json(file, FORMAT, VERSION), parse, ())


def stream_path(path: str | Path) -> Path:
    """The path of a run's stream table (``stream_place``); RunError if it is on another file system."""
    place_ = stream_place(path)
    if isinstance(place_, RemotePlace):
        raise RunError(f"{place_}: the stream of {path} is on another file system, where only `check` reads it")
    return place_


def stream_place(path: str | Path) -> Place:
    """The place of a run's stream table: that in run.json, else ``stream`` or ``stream.parquet`` in the folder."""
    root = Path(path)
    named = read_json(root / "run.json", FORMAT, VERSION).get("stream")
    if named and isinstance(far := place(str(named)), RemotePlace):
        return far
    # An absolute path replaces the root, so a folder may name a stream elsewhere.
    candidates = [root / str(named)] if named else [root / "stream", root / "stream.parquet"]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise RunError(f"{' or '.join(map(str, candidates))}: missing: the stream of the run belongs there")


def write_json(file: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON object with its seal atomically; RunError."""
    # In the same folder, as renaming is atomic within a file system only.
    unfinished = file.with_name(f".{file.name}")
    text = json.dumps(seal(data), indent=2, ensure_ascii=False) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise RunError(str(tables.not_written(file, error))) from error
    finally:
        unfinished.unlink(missing_ok=True)


def read_json(file: Path, form: str, version: int) -> dict[str, Any]:
    """A JSON object of that format and version, with its seal checked; RunError."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{file}: missing: this is not a folder of a {form}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RunError(f"{file}: not readable JSON from {where} on: was it edited or truncated?") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{file}: cannot be read: {obstacle(error)}") from error
    except (ValueError, RecursionError) as error:  # a number with too many digits, or values nested too deeply
        raise RunError(f"{file}: not readable JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != form:
        raise RunError(f"{file}: field format: expected {form!r}, so this is another kind of file")
    if data.get("version") != version:
        raise RunError(f"{file}: field version is {data.get('version')!r}: this release reads version {version}")
    try:
        return unseal(data, file)
    except SealError as error:
        raise RunError(str(error)) from error


def _clear(root: Path) -> None:
    """Remove an earlier run's files, but not the stream or foreign files."""
    for name in ("static", *tables.TABLES, "rows", "windows"):
        table = root / f"{name}.parquet"
        for part in [*table.glob("*.parquet"), table / NAME] if table.is_dir() else [table]:
            part.unlink(missing_ok=True)
    (root / "verdict.json").unlink(missing_ok=True)


def _header(file: Path, data: dict[str, Any], parse: Parse, static: tuple[Any, ...]) -> RunHeader:
    fields = data.get("header")
    if not isinstance(fields, dict):
        raise RunError(f"{file}: field header is missing")
    for name in ("query_text", "dialect"):
        if not isinstance(fields.get(name), str):
            raise RunError(f"{file}: field header.{name} is missing or not text")
    try:
        query = parse(fields["query_text"], fields["dialect"]).with_static(static)
    except ValueError as error:
        raise RunError(f"{file}: field header.query_text: {error}") from error
    if not data.get("finished", True) and fields.get("failure") is None:
        # A run that was cut off counts as failed, so that nobody takes what it had until then for all of it.
        fields = fields | {"failure": UNFINISHED}
    try:
        return decode(RunHeader, fields, "header", {"query": query})
    except FieldError as error:
        raise RunError(f"{file}: field {error}") from error
