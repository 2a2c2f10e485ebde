"""Parquet tables with typed columns, and the tables of a run folder as records.

A table that is a folder of part files (``manifest``) grows by whole parts, so everything written before a crash or a
full disk stays readable; the manifest is written at the end. Times are as in ``model.run`` and ``model.answer``.
"""

import errno
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.formats.manifest import TableError, files, retract, unreadable
from streamgauge.formats.seals import SealError, check_parquet, seal_parquet
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.run import Fed, Sample
from streamgauge.model.terms import Row, Triple

Record = TypeVar("Record")


def _needed(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


ANSWERS = pa.schema(
    [
        _needed("report", pa.int64()),
        _needed("received", pa.int64()),
        ("instant", pa.int64()),
        ("scope_start", pa.int64()),
        ("scope_end", pa.int64()),
        _needed("kind", pa.string()),
        _needed("variables", pa.list_(pa.string())),
        ("made", pa.int64()),
    ]
)
LATER = ("made",)
"""Columns of answers that older folders lack."""

ROWS = pa.schema(
    [
        _needed("report", pa.int64()),
        _needed("position", pa.int32()),
        _needed("sign", pa.int8()),
        _needed("values", pa.list_(pa.string())),
    ]
)
_KINDS = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def schema_of(record: type[Any], later: Collection[str] = ()) -> pa.Schema:
    """The columns of a record's type, one per field in its order.

    ``X | None`` may be null, ``tuple[X, ...]`` is a list, ``tuple[X, X]`` one of that length; ``later`` columns, which
    older files lack, may be null too.
    """
    hints = get_type_hints(record)
    return pa.schema(
        [
            pa.field(name, _kind(hint), nullable=name in later or type(None) in get_args(hint))
            for name, hint in hints.items()
        ]
    )


def _kind(hint: Any) -> pa.DataType:
    # Worked examples: `str | None` is a string, `tuple[int, ...]` a list of integers, `tuple[int, int]` a list of two.
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        return pa.list_(_kind(first)) if others == [...] else pa.list_(_kind(first), 1 + len(others))
    (kind,) = (kind for kind in get_args(hint) or (hint,) if kind is not type(None))
    return _KINDS[kind] if kind in _KINDS else _kind(kind)


FED = schema_of(Fed)
SAMPLES = schema_of(Sample)
STATIC = pa.schema([_needed(name, pa.string()) for name in ("subject", "predicate", "object")])

TABLES = ("answers", "fed", "samples")
"""The tables that grow during a run; ``rows`` grows with ``answers``."""


def records_table(name: str, records: Sequence[Any]) -> pa.Table:
    """The table of fed elements, samples or static triples."""
    if name == "static":
        return _table(STATIC, list(zip(*records, strict=True)) if records else [[], [], []])
    return table_of({"fed": FED, "samples": SAMPLES}[name], records)


def table_of(schema: pa.Schema, records: Sequence[Any]) -> pa.Table:
    """Records as a table with the columns of their type (``schema_of``); TableError for a value out of range."""
    return _table(schema, [[getattr(record, column) for record in records] for column in schema.names])


def answers_table(answers: Sequence[Answer], first: int) -> pa.Table:
    """The answers, reports numbered from ``first``."""
    columns = [
        list(range(first, first + len(answers))),
        [answer.received for answer in answers],
        [answer.instant for answer in answers],
        [answer.scope and answer.scope[0] for answer in answers],
        [answer.scope and answer.scope[1] for answer in answers],
        [answer.kind for answer in answers],
        [answer.variables for answer in answers],
        [answer.made for answer in answers],
    ]
    return _table(ANSWERS, columns)


def rows_table(answers: Sequence[Answer], first: int) -> pa.Table:
    """The rows of answers, added ones (sign 1) before removed ones (sign -1), reports numbered from ``first``."""
    records = [
        (report, position, sign, row)
        for report, answer in enumerate(answers, first)
        for sign, rows in ((1, answer.added), (-1, answer.removed))
        for position, row in enumerate(rows)
    ]
    return _table(ROWS, list(zip(*records, strict=True)) if records else [[], [], [], []])


def fed(root: Path) -> tuple[Fed, ...]:
    """The fed elements of a run folder; TableError if the table is missing or invalid."""
    return read_records(root / "fed.parquet", Fed)


def samples(root: Path) -> tuple[Sample, ...]:
    """The resource samples of a run folder; TableError if the table is missing or invalid."""
    return read_records(root / "samples.parquet", Sample)


def static(root: Path) -> tuple[Triple, ...]:
    """The static triples of a run folder; TableError if the table is missing or invalid."""
    columns = read(root / "static.parquet", STATIC).columns
    return tuple(zip(*(column.to_pylist() for column in columns), strict=True))


def answers(root: Path, *, finished: bool) -> tuple[Answer, ...]:
    """The answers of a run folder with their rows, in order of report; TableError names file and column.

    In a recording that was cut off (not ``finished``), rows beyond the last answer are left out: their answer was lost.
    """
    rows = _heads(root)
    reports = [head["report"] for head in rows]
    last = None if finished else max(reports, default=-1)
    added, removed = _rows(root / "rows.parquet", reports, last)
    return tuple(_answer(head, added, removed, root) for head in rows)


def first_answers(root: Path, count: int) -> tuple[Answer, ...]:
    """The first ``count`` answers of a run folder with their rows, without reading further rows; TableError."""
    chosen = _heads(root)[:count]
    last = max((head["report"] for head in chosen), default=-1)
    added, removed = _rows(root / "rows.parquet", [head["report"] for head in chosen], last)
    return tuple(_answer(head, added, removed, root) for head in chosen)


def are_numbered(root: Path) -> bool:
    """Whether the reports of a run folder are numbered 0, 1, 2, ..., so that they can be read alone; TableError."""
    following = 0
    for _, batch in batches(root / "answers.parquet", pa.schema([ANSWERS.field("report")])):
        numbers = batch.column(0)
        if numbers != pa.array(range(following, following + len(numbers)), numbers.type):
            _heads(root)  # TableError if they do not even grow
            return False
        following += len(numbers)
    return True


def head_answers(root: Path, table: pa.Table) -> tuple[Answer, ...]:
    """Answers of a run folder without their rows, from rows of ``ANSWERS``; TableError."""
    return tuple(_answer(head, {}, {}, root) for head in table.to_pylist())


def _heads(root: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read(root / "answers.parquet", ANSWERS, LATER).to_pylist()
    if any(after["report"] <= before["report"] for before, after in pairwise(rows)):
        raise TableError(f"{root / 'answers.parquet'}: column report must grow from row to row")
    return rows


def lists(column: pa.ChunkedArray) -> list[Row]:
    """The lists of a column as tuples."""
    rows: list[Row] = []
    for chunk in column.chunks:
        values = chunk.flatten().to_pylist()
        # A worked example: the lists (a, b), () and (c) are stored as the values a, b, c with the lengths 2, 0, 1. The
        # borders are 0, 2, 2, 3, and each list lies between two of them.
        borders = accumulate(chunk.value_lengths().to_pylist(), initial=0)
        rows.extend(tuple(values[begin:end]) for begin, end in pairwise(borders))
    return rows


def _answer(head: dict[str, Any], added: dict[int, list[Row]], removed: dict[int, list[Row]], root: Path) -> Answer:
    report, kind = head["report"], head["kind"]
    where = f"{root / 'answers.parquet'}: report {report}: column"
    if kind not in get_args(AnswerKind):
        raise TableError(f"{where} kind is {kind!r}: expected one of {', '.join(get_args(AnswerKind))}")
    if (head["scope_start"] is None) != (head["scope_end"] is None):
        raise TableError(f"{where} scope_start and scope_end go together")
    variables = tuple(head["variables"])
    if None in variables:
        raise TableError(f"{where} variables holds a null")
    rows, gone = tuple(added.get(report, ())), tuple(removed.get(report, ()))
    if kind == "solutions" and any(len(row) != len(variables) for row in (*rows, *gone)):
        raise TableError(f"{root / 'rows.parquet'}: report {report}: column values: each row needs {len(variables)}")
    scope = None if head["scope_start"] is None else (head["scope_start"], head["scope_end"])
    return Answer(variables, rows, gone, kind, head["instant"], scope, head["received"], head["made"])


def _rows(file: Path, reports: list[int], last: int | None) -> tuple[dict[int, list[Row]], dict[int, list[Row]]]:
    known, signs = set(reports), {1: dict[int, list[Row]](), -1: dict[int, list[Row]]()}
    for report, sign, position, row in _row_records(file, last):
        # The recording was cut off between the two tables: these rows are there, and their answer is not.
        if last is not None and report > last:
            break
        if report not in known:
            raise TableError(f"{file}: column report: {report} is not in answers.parquet")
        if sign not in signs:
            raise TableError(f"{file}: report {report}: column sign is {sign}: expected 1 or -1")
        rows = signs[sign].setdefault(report, [])
        if position != len(rows):
            raise TableError(f"{file}: report {report}: column position is {position}: expected {len(rows)}")
        rows.append(row)
    return signs[1], signs[-1]


def _row_records(file: Path, last: int | None) -> Iterator[tuple[int, int, int, Row]]:
    """Report, sign, position and values of the rows; stops before a batch that begins after report ``last``."""
    for _, batch in batches(file, ROWS):
        if last is not None and len(batch) and batch.column("report")[0].as_py() > last:
            return
        names = ("report", "sign", "position")
        yield from zip(
            *(batch.column(name).to_pylist() for name in names), lists(pa.chunked_array([batch["values"]])), strict=True
        )


def read_records(file: Path, kind: Callable[..., Record]) -> tuple[Record, ...]:
    """The records of a table with the columns of their type; TableError if it is missing or invalid."""
    return records(read(file, schema_of(cast(type[Record], kind))), kind)


def records(table: pa.Table, kind: Callable[..., Record]) -> tuple[Record, ...]:
    """The records in a table with the columns of their type."""
    columns = [lists(column) if pa.types.is_list(column.type) else column.to_pylist() for column in table.columns]
    return tuple(map(kind, *columns))


def _table(schema: pa.Schema, columns: Sequence[Any]) -> pa.Table:
    arrays = [_array(column, field) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (OverflowError, pa.ArrowException) as error:
        raise TableError(f"column '{field.name}' cannot hold a value as {field.type}: {error}") from error


_BATCH = 65_536


def batches(path: Path, schema: pa.Schema, optional: Collection[str] = ()) -> Iterator[tuple[Path, pa.RecordBatch]]:
    """The rows of a table batch by batch, in the schema's columns, each batch with its file; TableError.

    ``optional`` columns that a file lacks are null. Columns that are dictionaries in the schema are read as such, which
    stores each distinct text of a row group once.
    """
    for file in files(path):
        for batch in file_batches(file, schema, optional):
            yield file, batch


def file_batches(
    file: Path,
    schema: pa.Schema,
    optional: Collection[str] = (),
    size: int = _BATCH,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """``batches`` of a file, of ``size`` rows each; ``groups`` are the row groups that are read, all by default."""
    encoded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    with opened(file, encoded) as parquet:
        names = [name for name in schema.names if name in parquet.schema_arrow.names]
        # Twice as many rows where texts are in dictionaries: these take memory once, and rows of numbers little.
        for batch in parquet.iter_batches(2 * size if encoded else size, row_groups=groups, columns=names):
            yield conform(batch, schema, str(file), optional)


@contextmanager
def opened(file: Path, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """A Parquet file whose seal, if it has one, and page checksums are right; TableError, also while it is read.

    ``dictionaries`` are the columns to read as dictionaries, if the file has them.
    """
    try:
        check_parquet(file)
        columns = _columns(file, dictionaries)
        with pq.ParquetFile(file, read_dictionary=columns, page_checksum_verification=True) as parquet:
            yield parquet
    except SealError as error:
        raise TableError(str(error)) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(file) from error


def _columns(file: Path, names: Sequence[str]) -> list[str]:
    """The names that are columns of the file: Parquet refuses to read rows with others."""
    if not names:
        return []
    with pq.ParquetFile(file) as parquet:
        paths = {parquet.schema.column(place).path for place in range(len(parquet.schema))}
    return [name for name in names if name in paths]


def check(path: Path) -> None:
    """Check the seals of a table before another program reads it; TableError names the damaged file."""
    for file in files(path):
        with opened(file):
            pass


def read(path: Path, schema: pa.Schema, optional: Collection[str] = ()) -> pa.Table:
    """The whole table in memory; TableError names file and column."""
    return pa.Table.from_batches([batch for _, batch in batches(path, schema, optional)], schema=schema)


def conform(batch: pa.RecordBatch, schema: pa.Schema, where: str, optional: Collection[str] = ()) -> pa.RecordBatch:
    """The batch cast to the schema's columns, widths and encodings; TableError names ``where`` and the column."""
    there = batch.schema.names
    columns = [
        pa.nulls(len(batch), field.type)
        if field.name in optional and field.name not in there
        else _column(batch, field, schema, where)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def write_part(folder: Path, number: int, table: pa.Table) -> Path:
    """Add part file ``number`` to a table's folder, atomically; TableError if the disk is full."""
    return write_groups(folder, number, table.schema, [table])


def write_groups(folder: Path, number: int, schema: pa.Schema, groups: Iterable[pa.Table]) -> Path:
    """``write_part`` for row groups that are written one by one; MistakeErrors of ``groups`` pass unchanged."""
    part = folder / f"part-{number:05}.parquet"
    unfinished = folder / f".{part.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Before the part appears: a manifest that does not list it would pass for complete.
        retract(folder)
        with writer(unfinished, schema) as parquet:
            for table in groups:
                parquet.write_table(table)
        unfinished.replace(part)
    # Before OSError, of which some mistakes are kinds (PlaceError).
    except MistakeError:
        raise
    except OSError as error:
        raise not_written(part, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return part


@contextmanager
def writer(file: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A writer of a Parquet file with page checksums, which is sealed at the end; OSError if the disk is full."""
    with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as parquet:
        yield parquet
    seal_parquet(file)


def seal_folder(folder: Path) -> None:
    """Seal the files of a table that Spark wrote, and delete its ``.crc`` files, which no longer match; TableError."""
    retract(folder)
    for file in files(folder):
        try:
            seal_parquet(file)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        except OSError as error:
            raise not_written(file, error) from error


def not_written(file: Path, error: OSError) -> TableError:
    """The error for a file that could not be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    reason = "the disk is full: free some space; everything written before is intact" if full else obstacle(error)
    return TableError(f"{file}: could not be written: {reason}")


def _column(batch: pa.RecordBatch, field: pa.Field, schema: pa.Schema, where: str) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        raise TableError(f"{where}: column {field.name} is missing: expected are {', '.join(schema.names)}")
    column: Any = batch.column(index)
    # A null in a dictionary is not counted in ``null_count``: encoded anew, it becomes a null of the column.
    if column.type != field.type or (pa.types.is_dictionary(column.type) and column.dictionary.null_count):
        column = _cast(column, field, where)
    try:
        # Even with right checksums: another program may have written offsets or text that crash Arrow later.
        column.validate(full=True)
    except pa.ArrowException as error:
        raise TableError(f"{where}: column {field.name} is corrupt: {error}") from error
    if column.null_count and not field.nullable:
        raise TableError(f"{where}: column {field.name} has {column.null_count} nulls: every row needs a value")
    return column


def _cast(column: pa.Array, field: pa.Field, where: str) -> pa.Array:
    encoded = pa.types.is_dictionary(field.type)
    wanted = field.type.value_type if encoded else field.type
    if not _kin(column.type, wanted):
        raise TableError(f"{where}: column {field.name} is {column.type} where {wanted} is expected")
    try:
        column_ = column.cast(wanted)
        return column_.dictionary_encode() if encoded else column_
    except pa.ArrowException as error:
        raise TableError(f"{where}: column {field.name} cannot be read as {field.type}: {error}") from error


def _kin(data_type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types differ only in width or in dictionary encoding."""
    if pa.types.is_list(wanted):
        return (pa.types.is_list(data_type) or pa.types.is_large_list(data_type)) and (
            data_type.value_type == wanted.value_type or _kin(data_type.value_type, wanted.value_type)
        )
    if wanted == pa.string():
        return data_type in (pa.string(), pa.large_string(), pa.string_view()) or pa.types.is_dictionary(data_type)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(data_type))
    return bool(pa.types.is_floating(wanted) and pa.types.is_floating(data_type))
