"""A process of its own for an engine written in Python: JSON lines in, JSON lines out (docs/pipe.md)."""

import gc
import io
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import BinaryIO

from streamgauge.engines import load
from streamgauge.formats.lines import (
    Advance,
    Input,
    LineError,
    decode_input,
    decode_inputs,
    encode_answers,
    encode_late,
)
from streamgauge.formats.pipe import CLOSE, CLOSED, GO, READY, Task, decode_task, encode_refused
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.query import parse
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError, StreamNameError

AT_ONCE = 1 << 16
"""Bytes of input that are taken together at most: their answers are written together."""

_HELD_AT_ONCE = 64
_parse = lru_cache(maxsize=64)(parse)
_close = re.compile(b"^" + re.escape(CLOSE), re.MULTILINE).search


def main() -> int:
    """Run the engine named on the command line until standard input ends; what it cannot take is said in a sentence."""
    try:
        with io.FileIO(sys.stdin.fileno(), closefd=False) as given:
            return serve(sys.argv[1], io.BufferedReader(given, AT_ONCE), sys.stdout.buffer)
    except (RefusedError, OutOfOrderError, StreamNameError, LineError) as error:
        print(error, file=sys.stderr)
        return 1


def serve(name: str, lines: io.BufferedReader, out: BinaryIO) -> int:
    """Answer tasks one after another: each a task line, elements and advances, then ``close`` or the end of input."""
    engine = load(name)
    gc.collect()
    gc.freeze()
    while line := lines.readline():
        task = decode_task(line)
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
    """Answers and the count of late elements, gathered until they are flushed."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._late = out, 0
        self.waiting: list[Answer] = []

    def emit(self, answer: Answer) -> None:
        self.waiting.append(answer)

    def flush(self, session: Session) -> None:
        text = encode_answers(self.waiting)
        self.waiting.clear()
        late = getattr(session, "late", 0)
        if late != self._late:
            self._late = late
            text += encode_late(late)
        if text:
            self._out.write(text)
            self._out.flush()

    def ready(self) -> None:
        self._out.write(READY)
        self._out.flush()


def _answer(engine: Engine, query: ContinuousQuery, task: Task, lines: io.BufferedReader, out: _AnswerWriter) -> bool:
    """Answer one task; whether another may follow. What was answered before an error is written."""
    session = engine.start(query, task.semantics, out.emit)
    out.ready()
    given = _TaskInput(lines)
    coming = given.preloaded(out) if task.preload else iter(given)
    gc.collect()
    gc.freeze()
    try:
        for together in coming:
            for item in together:
                if isinstance(item, Advance):
                    session.advance(item.time)
                else:
                    session.push(item)
            if out.waiting:
                out.flush(session)
        session.close()
    finally:
        out.flush(session)
    return given.closed


class _TaskInput:
    """The input of one task, what has come at once together; ``closed`` when it ended with ``close``."""

    def __init__(self, lines: io.BufferedReader) -> None:
        self._lines, self.closed = lines, False

    def __iter__(self) -> Iterator[Iterable[Input]]:
        while chunk := self._whole_lines():
            if chunk == CLOSE:
                self.closed = True
                return
            yield decode_inputs(chunk)

    def _whole_lines(self) -> bytes:
        """Whole lines, all that have been received; ``close`` by itself."""
        waiting = self._lines.peek()
        end = waiting.rfind(b"\n") + 1
        if CLOSE in waiting and (found := _close(waiting)):
            end = found.start() or found.end()
        return self._lines.read(end) if end else self._lines.readline()

    def preloaded(self, out: _AnswerWriter) -> Iterator[Iterable[Input]]:
        """Everything up to ``go`` taken in before evaluation begins at a second ``go``; then the rest."""
        held = [decode_input(line) for line in takewhile(GO.__ne__, self._lines)]
        gc.collect()
        gc.freeze()
        out.ready()
        self._lines.readline()
        for at in range(0, len(held), _HELD_AT_ONCE):
            yield held[at : at + _HELD_AT_ONCE]
        yield from self


if __name__ == "__main__":
    sys.exit(main())
