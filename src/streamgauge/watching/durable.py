"""Watches that outlive their process: items, positions and answers become durable in one transaction.

An answer is returned once it is durable, with a number; it is settled when the next one is requested. A process that
resumes replays what windows may still need, returns unsettled answers again with the same numbers, and continues at
the positions of the sources.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from heapq import merge
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple, cast

import msgspec

from streamgauge.formats.batches import FEW, ElementBatch, Taken
from streamgauge.formats.lines import Advance, Input, decode_answer, encode_answer
from streamgauge.formats.streams import one_by_one
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.semantics import Semantics
from streamgauge.query.printer import sparql
from streamgauge.servers.durable.gaps import UNREAD, Gap, Gaps, stated
from streamgauge.servers.durable.journal import Change, NumberedLine, Record
from streamgauge.servers.durable.needs import not_durable
from streamgauge.servers.durable.segments import ItemColumns, OpenSegment
from streamgauge.servers.durable.state import SessionState
from streamgauge.servers.queries.item_log import first_time, latest_time
from streamgauge.servers.queries.sessions import EngineSession, restored
from streamgauge.sources.contract import Position
from streamgauge.sources.named import merge_key
from streamgauge.watching.arrivals import Placed
from streamgauge.watching.inputs import StreamFeed, Understood, WatchError
from streamgauge.watching.watches import Passing, Watch

BEAT_S: Final = 0.02
"""Maximum delay (s) of a transaction while answers, or senders that want acknowledgements, wait for it."""

TOGETHER_S: Final = 0.002
"""How long (s) an item waits for others to be processed with it."""

QUIET_S: Final = 0.2
"""Maximum delay (s) of a transaction of items for which nobody waits."""

LARGEST: Final = 4096
"""Maximum number of items in a transaction."""

IDLE_S: Final = 1.0
"""Maximum delay (s) of a transaction with no items, as time has passed."""

WAKING_S: Final = 0.001
"""How much later (s) than a transaction is due the watch wakes for it, so that it does not wake before."""

WHOLE: Final = ""
"""The name of the common numbering of all queries' answers."""


class WatchState:
    """The folder of a watch: an earlier process's state of queries and sources."""

    def __init__(self, folder: Path, queries: Sequence[Understood], engine: str, shards: int) -> None:
        if shards != 1:
            raise WatchError("a durable watch is answered by one process: leave out shards or state")
        for query in queries:
            if reason := not_durable(query.query, query.semantics, engine):
                raise WatchError(f"{query.name or 'the query'} cannot be durable: {reason}")
        self._queries = queries
        self.session = SessionState(folder)
        try:
            # The folder is locked by now, and must be released for the process to which it belongs.
            self._refuse_others(folder, queries)
        except BaseException:
            self.session.close()
            raise
        self.begun: dict[str, Any] = self.session.records("begun")
        self.sources: dict[str, Any] = self.session.records("source")
        self.counts: dict[str, int] = self.session.records("counts").get(WHOLE, {})

    def after(self, source: str) -> Position | None:
        """The position of a source; ``None`` if it starts anew."""
        position: Position | None = self.sources.get(source, {}).get("position")
        return position

    @property
    def settled(self) -> int | None:
        """The time (ms) before which all reports were made; ``None`` if there is none."""
        # The most patient query: reports before this time were made by all of them.
        late = max(query.semantics.lateness or 0 for query in self._queries)
        last, advanced = self.counts.get("last"), self.counts.get("told")
        times = (None if last is None else last - late, advanced)
        return max((time for time in times if time is not None), default=None)

    def restored(self, query: Understood) -> Understood:
        """A query with the first window of the earlier process."""
        begun = self.begun.get(query.name or WHOLE)
        if begun is None:
            return query
        return replace(query, semantics=restored(query.semantics, begun["t0"], begun["since"]))

    def _refuse_others(self, folder: Path, queries: Sequence[Understood]) -> None:
        """WatchError if the folder belongs to other queries."""
        current = {query.name or WHOLE: identity(query) for query in queries}
        kept = self.session.records("query")
        if not kept:
            query_records = Change({("query", name): text for name, text in current.items()})
            self.session.write(query_records, ItemColumns.of(()), {})
        elif kept != current:
            whose = "a service" if any(isinstance(record, dict) for record in kept.values()) else "another query"
            raise WatchError(f"{folder} is the state of {whose}: name another folder, or use the same query")


@contextmanager
def closed_unless_done(state: WatchState, leave: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Close the state if the block fails."""
    try:
        yield
    except BaseException:
        leave()
        state.session.close()
        raise


def identity(query: Understood) -> list[Any]:
    """The identity of a query: form, windows, semantics, and a digest of its static data.

    Only fields of the semantics that differ from the default count, so that later versions with more fields can read
    it.
    """
    parsed = query.query
    # Sorted: static data is a set, and a file that was written again may have another order.
    facts = "\n".join(sorted(map(" ".join, parsed.static)))
    declared, default = (
        msgspec.to_builtins(replace(semantics, sources={}), order="sorted")
        for semantics in (query.semantics, Semantics(query.semantics.name))
    )
    fields = {name: value for name, value in declared.items() if value != default[name]}
    windows = [str(window) for window in parsed.windows]
    return [sparql(parsed.form), windows, str(parsed.r2s), fields, sha256(facts.encode()).hexdigest()]


class DurableAnswer(NamedTuple):
    """An answer with its number and the name of its query."""

    number: int
    name: str
    answer: Answer

    def line(self) -> bytes:
        """The answer as a line of the log."""
        return self.name.encode() + b"\n" + encode_answer(self.answer)

    @classmethod
    def read(cls, kept: NumberedLine) -> "DurableAnswer":
        """Parse a line of the log."""
        name, _, line = kept.line.partition(b"\n")
        return cls(kept.number, name.decode(), decode_answer(line))


class DurableWatch(Watch[Any]):
    """A watch with a ``state``; ``number`` is that of the last returned answer, ``gaps`` what may be missing.

    ``numbers`` are those of the answers that ``gather`` returned together; ``note`` receives gaps.
    """

    durable = True

    def __init__(
        self,
        state: WatchState,
        emitted: deque[tuple[str, Answer]],
        queries: Sequence[Understood],
        asking: EngineSession,
        items: Iterable[Placed | None],
        passing: Passing,
        feeds: Sequence[StreamFeed],
        leave: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        # `Watch.__del__` closes, and must not commit a watch whose constructor failed half-way.
        self._shut = True  # until there is something to keep
        self._halfway = False
        super().__init__(queries, asking, deque(), (), passing, feeds, leave)
        self.gaps: list[Gap] = []
        self._gaps = Gaps(state.session.records("gap").get(WHOLE, ()))
        self._gap_record: Sequence[Any] | None = None
        self.number = self._settled = 0
        self.numbers = deque[int]()
        self._mark: Callable[[], Any] = lambda: None
        self._state, self._session, self._emitted, self._placed = state, state.session, emitted, iter(items)
        self._note = note
        self._named = any(query.name is not None for query in queries)
        self._places: dict[int, tuple[Any, int | None]] = {}
        self._hurried = any(feed.waits for feed in feeds)
        # Sources that an earlier process has read: the first item of each shows whether something is missing in
        # between.
        self._unseen = {at for at, feed in enumerate(feeds) if feed.key in state.sources}
        self._tell_new_sources()
        self._settling: Change | None = None
        self._committed, self._together = monotonic(), FEW
        self._restore()
        self._came = OpenSegment(self._session.next)
        self._shut = False

    def marks(self, mark: Callable[[], Any]) -> Any:
        """Store a sink's position, from ``mark``, with the number up to which answers are settled.

        Returns the position at the last settled answer, or at the start; ``None`` in a new state.
        """
        self._mark, kept = mark, self._session.records("settled").get(WHOLE)
        if kept is None:
            self._settling = self._settled_now()
            self._commit()
            return None
        return kept["mark"]

    def __next__(self) -> Any:
        """Wait for the next answer; the previous one is settled."""
        self.settle()
        try:
            answer = super().__next__()
        except StopIteration:
            self.close()
            raise
        return self._handed([answer])[0]

    def gather(self, limit: int | None = None) -> list[Any]:
        """All available answers, at least one; the previous ones are settled."""
        self.settle()
        return self._handed(super().gather(limit))

    def settle(self) -> None:
        """Record that the returned answers arrived and need not be returned again."""
        if self.number > self._settled:
            self._settled = self.number
            self._settling = self._settled_now()

    def line(self, number: int, answer: Answer, encoded: bytes) -> bytes:
        """An answer as a JSON line, with its number and the gaps that concern it."""
        return b'{"number":%d,' % number + stated(self._gaps, encoded.rstrip(b"\n"), answer, number)[1:] + b"\n"

    def _settled_now(self) -> Change:
        record = {"number": self._settled, "mark": self._mark()}
        return Change({("settled", WHOLE): record}, settled={WHOLE: self._settled})

    def close(self) -> None:
        """Stop; items and answers so far are made durable, and unsettled answers are returned again later.

        If an item was interrupted (Ctrl-C, SIGTERM), all items since the last transaction are dropped: they come again.
        """
        if self._shut:
            return
        self._shut = True
        try:
            if not self._halfway:
                self._commit()
        finally:
            super().close()
            self._session.close()

    def _handed(self, answers: Sequence[DurableAnswer]) -> list[Any]:
        if answers:
            self.number = answers[-1].number
            self.numbers = deque(answer.number for answer in answers)
        return [(answer.name, answer.answer) if self._named else answer.answer for answer in answers]

    def _restore(self) -> None:
        """Replay what windows may need; the answers to it have numbers already."""
        counts = self._state.counts
        self._last_number: int = counts.get("number", 0)
        self._settled = self._session.records("settled").get(WHOLE, {}).get("number", 0)
        for _, item in self._session.history():
            # Not `_enter`: replayed items are counted already.
            self._asking.take(item if isinstance(item, ElementBatch) else item[1])
            self._emitted.clear()
        # The replay counts its late elements once more.
        self._late_before = counts.get("late", 0) - self._asking.late
        self.elements, self.uncounted = counts.get("elements", 0), counts.get("uncounted", 0)
        self._last, self._latest_advance = counts.get("last"), counts.get("told")
        self._ready.extend(map(DurableAnswer.read, self._session.answers(WHOLE)))
        for query in self.asked:
            self._session.follow(query.name or WHOLE, query.query, query.semantics)

    @property
    def late(self) -> int:
        """The number of elements dropped as late."""
        return super().late + self._late_before

    def _take(self) -> bool:
        """Process the waiting items, at most as many as take ``BEAT_S``."""
        # Adapted to the speed of the engine: so many items as are processed within half of `BEAT_S`, or answers would
        # wait longer than that to become durable.
        limit = min(self._together, LARGEST - len(self._came))
        arrived, size, more = list[Placed](), 0, False
        try:
            for placed in self._placed:
                more = True
                if placed is not None:
                    arrived.append(placed)
                    size += len(placed.item) if isinstance(placed.item, ElementBatch) else 1
                if placed is None or size >= limit:
                    break
        except Exception:  # a source failed: its items so far count; after an interrupt they would come again
            self._process(arrived)
            raise
        begun = monotonic()
        self._process(arrived, quiet=size < limit and more)
        if size >= self._together:
            self._together = min(2 * limit, LARGEST) if monotonic() - begun < BEAT_S / 2 else max(limit // 2, 1)
        return more

    def _process(self, arrived: Sequence[Placed], *, quiet: bool = False) -> None:
        """Process items; ``quiet`` if no more are waiting, so that time may pass."""
        self._halfway = True
        items = list[Taken]()
        for placed in arrived:
            source, item = placed.source, placed.item
            if item is None:
                # An advance that is held back moves the position, but no time.
                self._places[source] = placed.place, self._places.get(source, (None, None))[1]
                continue
            if self._unseen:
                self._tell_gap(source, first_time(item))
            self._places[source] = placed.place, latest_time(item)
            items.append(item)
        self._enter_all(items)
        if quiet and self._passing.wall is not None:
            self._pass_time(self._passing.wall)
        # By size or by age: a transaction costs a sync of the disk, whatever it contains.
        if len(self._came) >= LARGEST or monotonic() - self._committed > self._patience:
            self._commit()
        self._halfway = False

    @property
    def _patience(self) -> float:
        """How long (s) items may wait to become durable."""
        if self._emitted or self._settling or (self._hurried and self._places):
            return BEAT_S
        return QUIET_S if self._places else IDLE_S

    def until_due(self) -> float | None:
        """How long (s) to wait for items until a transaction or the clock is due; ``None`` if neither will be."""
        waits = list[float]()
        if self._passing.wall is not None:
            waits.append(BEAT_S)
        if self._emitted or self._settling or self._places or self._came:
            waits.append(max(0.0, self._committed + self._patience - monotonic()) + WAKING_S)
        return min(waits, default=None)

    def _enter_all(self, items: Sequence[Taken]) -> None:
        """Process items and add them to the segment."""
        for in_columns, run in groupby(items, lambda item: isinstance(item, ElementBatch)):
            if in_columns:
                for batch in cast(Iterator[ElementBatch], run):
                    self._enter_batch(self._came.extend_batch(batch))
            else:
                self._enter_each(cast(list[Input], [*run]))

    def _enter_each(self, items: Sequence[Input]) -> None:
        """Items one by one; many become columns once, for both engine and disk."""
        if len(items) < FEW:
            for item in items:
                self._keep(item)
            return
        with_streams = [(WHOLE if isinstance(item, Advance) else item.stream, item) for item in items]
        for _, kept in self._came.extend(with_streams):
            if isinstance(kept, ElementBatch):
                self._enter_batch(kept)
            elif isinstance(kept[1], Advance):
                super()._advance(kept[1].time)
            else:
                self._enter(kept[1])

    def _keep(self, item: Input) -> None:
        if isinstance(item, StreamElement):
            # Its number in the watch's own history, by which a resumed process goes on counting.
            item = replace(item, sequence=self._came.end)
            self._came.append(item.stream, item)
        self._enter(item)

    def _advance(self, time: int) -> None:
        # Successive advances without answers in between are one: the later one says all.
        if not self._emitted:
            self._came.pop_advance()
        self._came.append(WHOLE, Advance(time))
        super()._advance(time)

    def _end(self) -> None:
        self._halfway = True
        super()._end()
        self._commit()
        self._halfway = False

    def _tell_new_sources(self) -> None:
        """Note which sources are read from their beginning although others were read before, as under another name."""
        new = [feed.key for feed in self._feeds if feed.key not in self._state.sources]
        if new and self._state.sources:
            others = ", ".join(sorted(self._state.sources))
            self._note(f"{', '.join(new)}: read from the beginning, as what this state has read is {others}")

    def _tell_gap(self, source: int, time: int) -> None:
        """Note what may be missing before the first item of a source that an earlier process read."""
        if source not in self._unseen:
            return
        self._unseen.discard(source)
        feed = self._feeds[source]
        goes_on = feed.resumable is not None and self._state.after(feed.key) is not None
        why = feed.resumable.lost if goes_on and feed.resumable is not None else UNREAD
        before = self._state.sources[feed.key]["time"]
        late = max(query.semantics.lateness or 0 for query in self.asked)
        # A source whose time goes back further than elements may be late has begun again, as a list of elements does.
        if why and (goes_on or before is None or time >= before - late):
            gap = Gap(feed.key, before if before is None else min(before, time), time, why, self._last_number)
            self.gaps.append(gap)
            self._gap_record = self._gaps.note(gap)
            self._note(str(gap))

    def _commit(self) -> None:
        """Make items, positions and answers durable together, then return the answers."""
        answers = [
            DurableAnswer(number, name, answer)
            for number, (name, answer) in enumerate(self._emitted, self._last_number + 1)
        ]
        change = self._settling or Change()
        # An idle watch writes nothing.
        if not (answers or self._came or self._places or change.records):
            return
        change.answers += [NumberedLine(WHOLE, answer.number, answer.line()) for answer in answers]
        change.records |= self._records(self._last_number + len(answers))
        processed = {query.name or WHOLE: self._came.end - 1 for query in self.asked}
        self._session.write(change, self._came.columns, processed)
        self._committed, self._settling = monotonic(), None
        self._last_number += len(answers)
        self._emitted.clear()
        self._came = OpenSegment(self._session.next)
        # Only what is durable is returned: the number of an answer must mean the same after a crash.
        self._ready.extend(answers)
        for at, (place, _) in self._places.items():
            if (source := self._feeds[at].resumable) is not None:
                # Only now: a sender may drop what it knows to be settled.
                source.settle(place)
        self._places = {}

    def _records(self, number: int) -> dict[Record, Any]:
        """The positions of the watch and its sources."""
        counts = {"number": number, "elements": self.elements, "late": self.late}
        times = {"uncounted": self.uncounted, "last": self._last, "told": self._latest_advance}
        records: dict[Record, Any] = {("counts", WHOLE): {**counts, **times}}
        if self._gap_record is not None:
            records["gap", WHOLE] = self._gap_record
        if not self._state.begun:
            for query, (semantics, t0) in zip(self.asked, self._asking.begun, strict=False):
                self._state.begun[query.name or WHOLE] = begun = {"t0": t0, "since": semantics.since}
                records["begun", query.name or WHOLE] = begun
        for at, (place, time) in self._places.items():
            source = self._feeds[at].resumable
            position = source.position(place) if source is not None and place is not None else None
            # In the transaction of its items, or a crash would repeat or skip some.
            records["source", self._feeds[at].key] = {"position": position, "time": time}
        return records


def placed_items(feeds: Sequence[StreamFeed]) -> list[Iterator[Placed]]:
    """The items of each source with the position after each; those that are merged with others' one by one."""
    items = [cast(Iterable[Taken], feed.items) for feed in feeds]
    apart = len(feeds) > 1
    return [_placed(at, feed, one_by_one(items[at]) if apart else items[at]) for at, feed in enumerate(feeds)]


def _placed(at: int, feed: StreamFeed, items: Iterable[Taken]) -> Iterator[Placed]:
    source = feed.resumable
    for item in items:
        yield Placed(at, item, None if source is None else source.place())


def placed_by_time(feeds: Sequence[Iterator[Placed]]) -> Iterator[Placed]:
    """Sorted sources merged by application time."""
    if len(feeds) == 1:
        return feeds[0]
    return merge(*feeds, key=lambda placed: merge_key(cast(Input, placed.item)))
