"""Messages between a session and its shards: a fixed-size header, then bytes.

To a shard: its ``task``, batches of elements (Arrow), each a tick, and ``close``. From a shard: ``ready``, the answers
of a tick, the end of the tick, its failure, ``closed``. Rows are sent as the JSON text in which they are written.
"""

import json
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import IO, TypeAlias

import msgspec
import pyarrow as pa

from streamgauge.formats.batches import SCHEMA, Columns
from streamgauge.incremental.shards.plan import ShardingPlan
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Row

Pieces: TypeAlias = Sequence[bytes | pa.Buffer]
"""The buffers of a message, in order."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """The queries of a shard; ``turns``: the plan by which it selects its own windows."""

    number: int
    asked: tuple[tuple[ContinuousQuery, Semantics], ...]
    turns: ShardingPlan | None = None


class Word(IntEnum):
    """The kind of a message."""

    TASK = 0
    BATCH = 1
    FIRST_BATCH = 2  # of a numbering of terms
    CLOSE = 3
    READY = 4
    ANSWER = 5
    TICKED = 6
    FAILED = 7
    CLOSED = 8


_HEAD = struct.Struct("<BI")
_ANSWER = struct.Struct("<HBqqqII")
_TICKED = struct.Struct("<Q")
_KINDS: tuple[AnswerKind, ...] = ("solutions", "triples", "boolean")


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The answer of one shard: its instant and scope (ms), its rows as JSON without the outer brackets."""

    query: int
    kind: AnswerKind
    instant: int
    scope: tuple[int, int]
    added: bytes
    removed: bytes


def message(word: Word, *parts: bytes | pa.Buffer) -> Pieces:
    """The buffers of a message, in order."""
    return [_HEAD.pack(word, sum(map(len, parts))), *parts]


def read(file: IO[bytes]) -> tuple[Word, bytes] | None:
    """The next message; ``None`` at the end of input, also within a message."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    word, size = _HEAD.unpack(head)
    body = file.read(size)
    return None if len(body) < size else (Word(word), body)


def batch_message(columns: Columns) -> Pieces:
    """A batch as a message."""
    return message(Word.FIRST_BATCH if columns.begins else Word.BATCH, columns.batch.serialize())


def batch_of(body: bytes) -> pa.RecordBatch:
    """The batch of a message."""
    return pa.ipc.read_record_batch(pa.py_buffer(body), SCHEMA)


def answer_message(query: int, answer: Answer) -> Pieces:
    """An answer to a query as a message."""
    added, removed = rows_text(answer.added), rows_text(answer.removed)
    assert answer.instant is not None
    assert answer.scope is not None
    kind = _KINDS.index(answer.kind)
    head = _ANSWER.pack(query, kind, answer.instant, *answer.scope, len(added), len(removed))
    return message(Word.ANSWER, head, added, removed)


def answer_of(body: bytes) -> PartAnswer:
    """The answer of a message."""
    query, kind, instant, begin, end, added, _ = _ANSWER.unpack_from(body)
    at = _ANSWER.size
    return PartAnswer(query, _KINDS[kind], instant, (begin, end), body[at : at + added], body[at + added :])


def ticked_message(late: int) -> Pieces:
    """The end of a tick, with the number of late elements so far."""
    return message(Word.TICKED, _TICKED.pack(late))


def late_of(body: bytes) -> int:
    """The number of late elements in the end of a tick."""
    late: int = _TICKED.unpack(body)[0]
    return late


def failed_message(error: BaseException) -> Pieces:
    """The class and message of an error."""
    return message(Word.FAILED, f"{type(error).__name__}\n{error}".encode())


def task_message(task: ShardTask) -> Pieces:
    """A task; pickled, because both processes run this program."""
    return message(Word.TASK, pickle.dumps(task, pickle.HIGHEST_PROTOCOL))


def task_of(body: bytes) -> ShardTask:
    """The task of a message; only a session of this program writes any."""
    task: ShardTask = pickle.loads(body)
    return task


_encode = msgspec.json.Encoder().encode


def rows_text(rows: Sequence[Row]) -> bytes:
    """Rows as JSON, without the brackets around all; half of a surrogate pair is written as an escape."""
    try:
        # Without brackets, the session can concatenate the rows of all shards without parsing them.
        return _encode(rows)[1:-1]
    # msgspec refuses surrogates, which a term read from JSON may contain.
    except UnicodeEncodeError:
        return json.dumps(rows).encode()[1:-1]


_decode = msgspec.json.Decoder(list[tuple[str | None, ...]]).decode


def rows_of(text: bytes) -> tuple[Row, ...]:
    """The rows of a text."""
    whole = b"[%b]" % text
    try:
        return tuple(_decode(whole))
    except (msgspec.MsgspecError, UnicodeError):
        return tuple(tuple(row) for row in json.loads(whole))
