"""A process of its own for an engine written in Python: JSON lines in, JSON lines out (docs/pipe.md)."""

import gc
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import BinaryIO

from streamgauge.engines import load
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.query import parse
from streamgauge.wire.lines import Advance, Input, decode_input, encode_answer, encode_late
from streamgauge.wire.task import CLOSE, CLOSED, GO, READY, Task, decode_task, encode_refused

_parse = lru_cache(maxsize=64)(parse)


def main() -> int:
    """Run the engine named on the command line until standard input ends."""
    return serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)


def serve(name: str, lines: BinaryIO, out: BinaryIO) -> int:
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
        elif _answer(engine, query, task, lines, _Out(out)):
            out.write(CLOSED)
        else:
            break
        out.flush()
    return 0


class _Out:
    """Answers and the count of late elements, gathered until they are flushed."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._late = out, 0
        self.waiting: list[bytes] = []

    def emit(self, answer: Answer) -> None:
        self.waiting.append(encode_answer(answer))

    def flush(self, session: Session) -> None:
        late = getattr(session, "late", 0)
        if late != self._late:
            self._late = late
            self.waiting.append(encode_late(late))
        if self.waiting:
            self._out.write(b"".join(self.waiting))
            self._out.flush()
            self.waiting.clear()

    def ready(self) -> None:
        self._out.write(READY)
        self._out.flush()


def _answer(engine: Engine, query: ContinuousQuery, task: Task, lines: BinaryIO, out: _Out) -> bool:
    """Answer one task; whether another may follow."""
    session = engine.start(query, task.semantics, out.emit)
    out.ready()
    given: Iterable[bytes | Input] = lines
    closed = _Closed()
    if task.preload:
        given = _preloaded(lines, out)
    gc.collect()
    gc.freeze()
    for each in closed.until(given):
        item = decode_input(each) if isinstance(each, bytes) else each
        if isinstance(item, Advance):
            session.advance(item.time)
        else:
            session.push(item)
        if out.waiting:
            out.flush(session)
    session.close()
    out.flush(session)
    return closed.seen


class _Closed:
    """Whether input ended with ``close``, after which another task may come."""

    seen = False

    def until(self, given: Iterable[bytes | Input]) -> Iterator[bytes | Input]:
        for each in given:
            if each == CLOSE:
                self.seen = True
                return
            yield each


def _preloaded(lines: BinaryIO, out: _Out) -> Iterator[bytes | Input]:
    """Everything up to ``go`` taken in before evaluation begins at a second ``go``; then the rest."""
    held = [decode_input(line) for line in takewhile(GO.__ne__, lines)]
    gc.collect()
    gc.freeze()
    out.ready()
    lines.readline()
    yield from held
    yield from lines


if __name__ == "__main__":
    sys.exit(main())
