"""Replay of a journal to the workers of a restarted service; each item is read once for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from streamgauge.formats.batches import ElementBatch, Taken
from streamgauge.formats.lines import Advance
from streamgauge.servers.durable.segments import KeptItem
from streamgauge.servers.queries.durability import WALL
from streamgauge.servers.queries.groups import Question, Resumption
from streamgauge.servers.queries.item_log import NumberedItem
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.worker import QueryWorker


class ResumedWorker:
    """A worker that resumes queries of an earlier process; each saw items from its own number on."""

    def __init__(self, worker: QueryWorker) -> None:
        self._worker = worker
        self._queries = list[tuple[RegisteredQuery, Resumption]]()
        self._answered, self._due = list[NumberedItem](), list[tuple[int, str, Taken]]()
        self._last, self._starts = -1, set[int]()

    def takes(self, question: Question, start: int) -> bool:
        """Whether it takes a query that saw the items from a number on."""
        return self._worker.takes(question, fresh=self._starts == {start})

    def add(self, running: RegisteredQuery, resumption: Resumption) -> None:
        """Add a query that resumes where its answers ended."""
        self._last = min(self._last, running.processed) if self._queries else running.processed
        self._queries.append((running, resumption))
        self._starts.add(resumption.start)
        running.worker = self._worker

    def take(self, number: int, kept: KeptItem) -> None:
        """An item of a number, or several in columns from a number on."""
        worker = self._worker
        if isinstance(kept, ElementBatch):
            for last, part in self._parts(number, kept) if kept.stream in worker.streams else ():
                if last <= self._last:
                    self._answered.append((last, part))
                else:
                    # Due elements are answered one by one like any published ones: their answers have numbers of their
                    # own.
                    elements = enumerate(part.elements(), last + 1 - len(part))
                    self._due += [(number, part.stream, element) for number, element in elements]
            return
        stream, item = kept
        if number < min(self._starts) or not (worker.question.wall if stream == WALL else stream in worker.streams):
            return
        known = worker.wall_advance(item.time) if stream == WALL else worker.known(stream, item)
        if known is not None and number > self._last:
            self._due.append((number, stream, known))
        elif known is not None:
            self._answered.append((number, known))

    def _parts(self, number: int, batch: ElementBatch) -> Iterator[tuple[int, ElementBatch]]:
        """The parts of a batch that all queries saw which saw the first element, each with the number of its last."""
        begin, end = max(number, min(self._starts)), number + len(batch)
        # A batch may span the registration of a query, which saw only the elements behind it.
        borders = [cut for cut in {*self._starts, self._last + 1} if begin < cut < end]
        for first, last in pairwise(sorted({begin, *borders, end}) if begin < end else ()):
            yield last - 1, batch.part(first - number, last - number)

    def resume(self) -> None:
        """Resume without answers to due items."""
        worker = self._worker
        evaluations = worker.resume(self._queries, self._answered, [number for number, *_ in self._due], self._last)
        for (running, _), evaluation in zip(self._queries, evaluations, strict=True):
            running.evaluation = evaluation
        for number, stream, item in self._due:
            if stream == WALL:
                assert isinstance(item, Advance)
                worker.advance(item, number)
            else:
                worker.put([(number, item)])
        worker.start()


def resumed_worker(
    workers: list[ResumedWorker], question: Question, start: int, worker: Callable[[], QueryWorker]
) -> ResumedWorker:
    """The one of the workers that takes a query, else one more."""
    resumed = next((one for one in workers if one.takes(question, start)), None)
    if resumed is None:
        resumed = ResumedWorker(worker())
        workers.append(resumed)
    return resumed


def replay(history: Iterable[tuple[int, KeptItem]], workers: Sequence[ResumedWorker]) -> None:
    """Give workers everything that was stored, and let them continue."""
    for number, kept in history:
        for worker in workers:
            worker.take(number, kept)
    for worker in workers:
        worker.resume()
