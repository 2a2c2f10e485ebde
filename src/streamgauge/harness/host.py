"""A process that hosts an engine written in Python: elements in, JSON lines out (docs/pipe.md).

An engine whose session accepts batches (``push_batch``, or ``push_columns`` for Arrow's columns) gets Arrow if the task
offers it, all others get JSON lines, as with the option ``--lines`` after the engine's name. A session with
``give_lines`` writes its answers itself.
"""

import gc
import io
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from streamgauge.engines import load, option_names
from streamgauge.formats.lines import (
    Advance,
    Input,
    LineError,
    decode_input,
    encode_answers,
    encode_late,
)
from streamgauge.formats.pipe import (
    CLOSE,
    CLOSED,
    GO,
    READY,
    READY_FOR_ARROW,
    PipeError,
    Task,
    decode_task,
    encode_refused,
)
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.query import parse
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError, StreamNameError

if TYPE_CHECKING:
    from streamgauge.formats.batches import Columns, ElementBatch
    from streamgauge.formats.line_columns import LineColumns

BUFFER_BYTES = 1 << 16
"""Size of the input buffer; the answers to its content are written together."""

LINES_ONLY = "--lines"

_PRELOADED_CHUNK = 64
_parse = lru_cache(maxsize=64)(parse)
_close = re.compile(b"^" + re.escape(CLOSE), re.MULTILINE).search


def main() -> int:
    """Run the engine named on the command line until standard input ends; invalid input ends it with an error."""
    try:
        with io.FileIO(sys.stdin.fileno(), closefd=False) as stdin:
            lines = LINES_ONLY in sys.argv[2:]
            return serve(sys.argv[1], io.BufferedReader(stdin, BUFFER_BYTES), sys.stdout.buffer, arrow=not lines)
    except (RefusedError, OutOfOrderError, StreamNameError, LineError, PipeError) as error:
        print(error, file=sys.stderr)
        return 1


def serve(name: str, lines: io.BufferedReader, out: BinaryIO, arrow: bool = True) -> int:
    """Process tasks one after another: a task line, elements and advances, then ``close`` or the end of input.

    Without ``arrow`` elements are accepted as lines only.
    """
    engine = load(name)
    # Collections of garbage during a run would be measured as delays of answers.
    gc.collect()
    gc.freeze()
    while line := lines.readline():
        task = decode_task(line)
        task = task if arrow else replace(task, forms=("lines",))
        query = _parse(task.query, task.dialect)
        query = query.with_static(task.static) if task.static else query
        if reason := engine.refuse(query, task.semantics):
            out.write(encode_refused(reason))
        elif _answer(engine, query, task, lines, _AnswerWriter(out)):
            out.write(CLOSED)
        else:
            break
        out.flush()
    return 0


class _AnswerWriter:
    """Collects answers, and the count of late elements, until they are flushed."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._late = out, 0
        self._writing = Lock()
        self.waiting: list[Answer] = []

    def write(self, lines: bytes) -> None:
        """Write lines and flush the output; from any thread."""
        with self._writing:
            self._out.write(lines)
            self._out.flush()

    def emit(self, answer: Answer) -> None:
        self.waiting.append(answer)

    def flush(self, session: Session) -> None:
        text = encode_answers(self.waiting)
        self.waiting.clear()
        late = getattr(session, "late", 0)
        # The count is cumulative, so it is sent only when it has grown.
        if late != self._late:
            self._late = late
            text += encode_late(late)
        if text:
            self.write(text)


def _answer(engine: Engine, query: ContinuousQuery, task: Task, lines: io.BufferedReader, out: _AnswerWriter) -> bool:
    """Process one task; returns whether another may follow. Answers before an error are written."""
    session = engine.start(query, task.semantics, out.emit, **_own(engine, task))
    if (give_lines := getattr(session, "give_lines", None)) is not None:
        give_lines(out.write)
    by_column = hasattr(session, "push_columns")
    arrow = "arrow" in task.forms and (by_column or hasattr(session, "push_batch"))
    if arrow:
        # Imported before the ready message, so that it does not count as processing time.
        import_module("streamgauge.formats.batches")
    out.write(READY_FOR_ARROW if arrow else READY)
    reader = _BatchInput(lines, by_column) if arrow else _TaskInput(lines, hasattr(session, "push_batch"))
    coming = reader.preloaded(out) if task.preload else iter(reader)
    gc.collect()
    gc.freeze()
    try:
        for together in coming:
            for item in together:
                if isinstance(item, Advance):
                    session.advance(item.time)
                elif isinstance(item, StreamElement):
                    session.push(item)
                elif by_column and arrow:
                    session.push_columns(item)  # type: ignore[attr-defined]
                else:
                    session.push_batch(item)  # type: ignore[attr-defined]
            if out.waiting:
                out.flush(session)
        session.close()
    finally:
        out.flush(session)
    return reader.closed


def _own(engine: Engine, task: Task) -> dict[str, Any]:
    """The task's options that the engine supports."""
    names = option_names(engine)
    return {name: value for name, value in task.options.items() if name in names}


Together: TypeAlias = "Iterable[Input | ElementBatch | Columns]"
"""Input that was received together."""


class _TaskInput:
    """The input of one task as lines; ``closed`` if it ended with ``close``."""

    def __init__(self, lines: io.BufferedReader, batches: bool) -> None:
        self._lines, self.closed = lines, False
        self._columns: LineColumns | None = None
        if batches:
            self._columns = import_module("streamgauge.formats.line_columns").LineColumns()

    def __iter__(self) -> Iterator[Together]:
        while chunk := self._whole_lines():
            if chunk == CLOSE:
                self.closed = True
                return
            taken = None if self._columns is None else self._columns.read(chunk)
            yield map(decode_input, io.BytesIO(chunk)) if taken is None else taken

    def _whole_lines(self) -> bytes:
        """All whole lines received so far; ``close`` is returned alone."""
        # What has arrived by now, without waiting for more: batching must not delay an answer.
        waiting = self._lines.peek()
        end = waiting.rfind(b"\n") + 1
        if CLOSE in waiting and (match := _close(waiting)):
            # Lines before ``close`` are returned first, and ``close`` by the next call.
            end = match.start() or match.end()
        return self._lines.read(end) if end else self._lines.readline()

    def preloaded(self, out: _AnswerWriter) -> Iterator[Together]:
        """The input up to ``go``, decoded before evaluation begins at a second ``go``; then the rest."""
        elements = [decode_input(line) for line in takewhile(GO.__ne__, self._lines)]
        gc.collect()
        gc.freeze()
        out.write(READY)
        self._lines.readline()
        for at in range(0, len(elements), _PRELOADED_CHUNK):
            yield elements[at : at + _PRELOADED_CHUNK]
        yield from self


class _BatchInput:
    """The input of one task as Arrow streams, between which the pipe's messages are lines."""

    def __init__(self, lines: io.BufferedReader, by_column: bool) -> None:
        self._lines, self.closed, self._by_column = lines, False, by_column

    def __iter__(self) -> Iterator[Together]:
        yield from self._up_to(CLOSE)

    def _up_to(self, word: bytes) -> Iterator[Together]:
        """The batches up to a message ``word``, or to the end of input; LineError for another message."""
        from streamgauge.formats.batches import read_batches, read_columns

        # Messages are JSON objects; an Arrow stream begins with a continuation marker (0xFFFFFFFF).
        while first := self._lines.peek(1)[:1]:
            if first != b"{":
                if self._by_column:
                    yield from ([column] for column in read_columns(self._lines))
                else:
                    yield from read_batches(self._lines)
            elif (line := self._lines.readline()) == word:
                self.closed = word == CLOSE
                return
            else:
                raise LineError(f"expected an Arrow stream or {word.decode().strip()}, but received {line[:80]!r}")

    def preloaded(self, out: _AnswerWriter) -> Iterator[Together]:
        """The same as ``_TaskInput.preloaded``, for batches."""
        elements = list(self._up_to(GO))
        gc.collect()
        gc.freeze()
        out.write(READY)
        self._lines.readline()
        yield from elements
        yield from self


if __name__ == "__main__":
    sys.exit(main())
