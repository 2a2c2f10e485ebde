"""The process of a shard: `python -m streamgauge.incremental.shards.worker`; messages on standard streams.

It ends with its input, also if the session that started it was killed.
"""

import gc
import io
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import IO

from streamgauge.formats.batches import Columns, ElementBatch, Taken, taken
from streamgauge.formats.lines import Advance
from streamgauge.incremental.drivers.groups import DriverGroup, drive_all
from streamgauge.incremental.drivers.window import WindowDriver
from streamgauge.incremental.shards.messages import (
    Pieces,
    ShardTask,
    Word,
    answer_message,
    batch_of,
    failed_message,
    message,
    read,
    task_of,
    ticked_message,
)
from streamgauge.incremental.shards.routes import ShardRouter
from streamgauge.model.answer import Answer
from streamgauge.model.terms import Term


class Shard:
    """The queries of one shard; ``write`` takes the pieces of its messages."""

    def __init__(self, write: Callable[[Pieces], None]) -> None:
        self._write = write
        self._terms: list[Term] = []
        self._session: WindowDriver | DriverGroup | None = None
        self._router: ShardRouter | None = None
        self._number = 0

    def take(self, word: Word, body: bytes) -> bool:
        """Take one message; whether it was the last one."""
        if word is Word.TASK:
            self._begin(task_of(body))
            self._write(message(Word.READY))
            return False
        session = self._session
        assert session is not None
        if word is Word.CLOSE:
            session.close()
            if self._router is not None:
                self._router.admission.close()
            self._write(message(Word.CLOSED))
            return True
        for item in self._items(Columns(batch_of(body), word is Word.FIRST_BATCH)):
            if isinstance(item, Advance):
                session.advance(item.time)
            elif isinstance(item, ElementBatch):
                session.push_batch(item)
            else:
                session.push(item)
        self._write(ticked_message(session.late))
        if self._router is not None and self._router.error is not None:
            raise self._router.error
        return False

    def _begin(self, task: ShardTask) -> None:
        self._session = drive_all([(*query, partial(self._emit, at)) for at, query in enumerate(task.asked)])
        if task.turns is not None:
            query, semantics = task.asked[0]
            self._number = task.number
            self._router = ShardRouter(task.turns, query.streams, semantics, [task.number])

    def _items(self, columns: Columns) -> list[Taken]:
        """The elements and advances of a batch that are this shard's."""
        if self._router is not None:
            routed = self._router.route(columns)
            if routed is None:
                return []
            (columns,) = routed
        if columns.begins:
            self._terms = []
        return taken(columns.batch, self._terms)

    def _emit(self, query: int, answer: Answer) -> None:
        assert answer.instant is not None
        if self._router is None or self._router.place(answer.instant) == self._number:
            self._write(answer_message(query, answer))


def main() -> int:
    """Process messages until the last one or the end of input; an error is sent, and ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, out = io.BufferedReader(io.FileIO(0, closefd=False), 1 << 20), sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        return 0 if serve(source, out) else 1
    except BrokenPipeError:
        return 1
    except Exception as error:
        out.writelines(failed_message(error))
        out.flush()
        return 1


def serve(source: IO[bytes], out: IO[bytes]) -> bool:
    """Serve until the session closes; ``False`` if the input ends before, as when the session was killed."""
    shard, first = Shard(out.writelines), True
    while (message := read(source)) is not None:
        last = shard.take(*message)
        out.flush()
        if last:
            return True
        if first:
            first = False
            gc.collect()
            gc.freeze()
    return False


if __name__ == "__main__":
    sys.exit(main())
