"""The tables of a run folder: their columns, and records to and from them. Times as in model.run and model.answer."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from streamgauge.formats.tables import TableError, read
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.run import Fed, Sample
from streamgauge.model.terms import Row, Triple


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
_LATER = ("made",)
"""Columns of answers that folders written before them do not have."""

ROWS = pa.schema(
    [
        _needed("report", pa.int64()),
        _needed("position", pa.int32()),
        _needed("sign", pa.int8()),
        _needed("values", pa.list_(pa.string())),
    ]
)
FED = pa.schema([_needed(name, pa.int64()) for name in ("sequence", "time", "planned", "handed", "size")])
SAMPLES = pa.schema(
    [
        _needed("at", pa.int64()),
        _needed("rss", pa.int64()),
        _needed("memory_percent", pa.float64()),
        _needed("cpu_percent", pa.float64()),
        _needed("threads", pa.int64()),
    ]
)
STATIC = pa.schema([_needed(name, pa.string()) for name in ("subject", "predicate", "object")])

TABLES = ("answers", "fed", "samples")
"""The observations of a run while it goes on; ``rows`` goes with ``answers``."""


def table(name: str, records: Sequence[Any]) -> pa.Table:
    """The table of hand-overs, samples or static triples."""
    if name == "static":
        return _table(STATIC, list(zip(*records, strict=True)) if records else [[], [], []])
    schema = {"fed": FED, "samples": SAMPLES}[name]
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
    """The hand-overs of a run folder; TableError when they are not there or wrong."""
    return _records(root / "fed.parquet", FED, Fed)


def samples(root: Path) -> tuple[Sample, ...]:
    """The resource samples of a run folder; TableError when they are not there or wrong."""
    return _records(root / "samples.parquet", SAMPLES, Sample)


def static(root: Path) -> tuple[Triple, ...]:
    """The background triples of a run folder; TableError when they are wrong."""
    columns = read(root / "static.parquet", STATIC).columns
    return tuple(zip(*(column.to_pylist() for column in columns), strict=True))


def answers(root: Path, *, finished: bool) -> tuple[Answer, ...]:
    """The answers of a run folder with their rows, in order of report; TableError names file and column.

    In a recording that was cut off, rows after the last answer are those whose answer was not written any more.
    """
    heads = read(root / "answers.parquet", ANSWERS, _LATER).to_pylist()
    reports = [head["report"] for head in heads]
    if any(after <= before for before, after in pairwise(reports)):
        raise TableError(f"{root / 'answers.parquet'}: column report must grow from row to row")
    last = None if finished else max(reports, default=-1)
    added, removed = _rows(root / "rows.parquet", reports, last)
    return tuple(_answer(head, added, removed, root) for head in heads)


def lists(column: pa.ChunkedArray) -> list[Row]:
    """The lists of a column as tuples."""
    found: list[Row] = []
    for chunk in column.chunks:
        values = chunk.flatten().to_pylist()
        borders = accumulate(chunk.value_lengths().to_pylist(), initial=0)
        found.extend(tuple(values[begin:end]) for begin, end in pairwise(borders))
    return found


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
    found = read(file, ROWS)
    known, signs = set(reports), {1: dict[int, list[Row]](), -1: dict[int, list[Row]]()}
    columns = (found["report"].to_pylist(), found["sign"].to_pylist(), found["position"].to_pylist())
    for report, sign, position, row in zip(*columns, lists(found["values"]), strict=True):
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


def _records(file: Path, schema: pa.Schema, kind: type[Any]) -> tuple[Any, ...]:
    found = read(file, schema)
    columns = [found[field.name].to_pylist() for field in fields(kind)]
    return tuple(map(kind, *columns))


def _table(schema: pa.Schema, columns: Sequence[Any]) -> pa.Table:
    arrays = [_array(column, field) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (OverflowError, pa.ArrowException) as error:
        raise TableError(f"column '{field.name}' cannot hold a value as {field.type}: {error}") from error
