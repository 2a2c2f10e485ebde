"""A durable log of a source's elements, as files that a streaming job reads."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, Queue

from streamgauge.formats import tables
from streamgauge.formats.lines import Advance
from streamgauge.formats.stream import write
from streamgauge.formats.streams import one_by_one
from streamgauge.model.element import StreamElement
from streamgauge.sources import Source

MAX_FILE_ELEMENTS = 50_000
"""Maximum number of elements in one file of the log."""


@dataclass
class Landing:
    """Writes a source's elements to files of ``folder``, which appear atomically and only after an fsync.

    Elements are numbered in order of arrival; ``advanced_to`` is the latest advance (ms) of the source. ``skip``: the
    source starts from its beginning after a restart, so that elements already in the log are skipped.
    """

    folder: Path
    source: Source
    skip: bool
    every_s: float = 1.0
    clock: Callable[[], float] = time.monotonic
    error: Exception | None = None
    advanced_to: int | None = None
    _waiting: list[StreamElement] = field(default_factory=list)

    def start(self) -> threading.Thread:
        """Run in a new thread until the source ends; an exception is stored in ``error``."""
        thread = threading.Thread(target=self._kept, args=(self.run,), name="landing", daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        """Write a file every ``every_s`` seconds, or when it is full, until the source ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files, number = self._known()
        # Bounded, so that a source that is faster than the disk waits.
        queue: Queue[StreamElement | None] = Queue(MAX_FILE_ELEMENTS)
        reading = threading.Thread(target=self._kept, args=(partial(self._read, queue, number),), daemon=True)
        reading.start()
        # The reader is a thread of its own, so that files are written in time even while the source is silent.
        ended = self.clock()
        while (element := self._next(queue)) is not None:
            if isinstance(element, StreamElement):
                # Numbered anew: several sources, or one after a restart, may have numbers of their own.
                self._waiting.append(replace(element, sequence=number))
                number += 1
            if len(self._waiting) >= MAX_FILE_ELEMENTS or self.clock() - ended >= self.every_s:
                files, ended = self._land(files), self.clock()
        self._land(files)

    def _read(self, queue: "Queue[StreamElement | None]", known: int) -> None:
        try:
            for element in islice(self._elements(), known if self.skip else 0, None):
                queue.put(element)
        finally:
            # After an error too, or ``run`` would wait for ever.
            queue.put(None)

    def _elements(self) -> Iterator[StreamElement]:
        """The elements that add triples."""
        # Advances are not logged: until the source ends, the streaming job's time is that of the elements.
        for item in one_by_one(self.source.items()):
            if isinstance(item, Advance):
                self.advanced_to = item.time if self.advanced_to is None else max(item.time, self.advanced_to)
            elif item.added:
                yield item

    def _next(self, queue: "Queue[StreamElement | None]") -> StreamElement | Empty | None:
        """The next element, ``None`` at the end of the source, Empty after ``every_s`` seconds without one."""
        try:
            return queue.get(timeout=self.every_s)
        except Empty as nothing:
            return nothing

    def _kept(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.error = error

    def _known(self) -> tuple[int, int]:
        """The number of files in the log and of elements in them."""
        files = sorted(self.folder.glob("*.parquet"))
        if not files:
            return 0, 0
        with tables.opened(files[-1]) as parquet:
            last = parquet.read(["sequence"]).column(0)
        return len(files), last[-1].as_py() + 1

    def _land(self, number: int) -> int:
        if not self._waiting:
            return number
        # Spark ignores names that begin with a dot, so it never sees an incomplete file.
        unfinished = self.folder / f".{number:09}"
        write(self._waiting, unfinished)
        with unfinished.open("rb") as file:
            # Before the name is visible: after a power failure a file with a final name must have its content.
            os.fsync(file.fileno())
        unfinished.rename(self.folder / f"{number:09}.parquet")
        self._waiting = []
        return number + 1
