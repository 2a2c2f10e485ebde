"""The journal of a service: publications, registrations and answers become durable together before they are confirmed.

Events are recorded in order, and a thread writes all events recorded so far as one transaction. A publication is
acknowledged, and an answer sent, once its transaction is durable. If the disk fails, new events are refused, and
recorded ones are written as soon as there is space.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from math import inf
from pathlib import Path
from threading import Condition, RLock, Thread
from typing import Any, Final

import msgspec

from streamgauge.formats.batches import Taken, count_of
from streamgauge.model.answer import Answer
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.servers.durable.gaps import Gap, Gaps, stated
from streamgauge.servers.durable.journal import Change, NumberedLine
from streamgauge.servers.durable.segments import ItemColumns
from streamgauge.servers.durable.state import SessionState
from streamgauge.servers.http.events import End
from streamgauge.servers.http.retries import RetryKey
from streamgauge.servers.queries.groups import AnsweredQuery, EvaluationGroup, Resumption
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.requests import QueryRegistration, number_of
from streamgauge.servers.sealed.soundness import JournalError, NotWrittenError

AGAIN_S: Final = 0.5
"""How long a disk that refused is left alone."""

KEYS: Final = 10_000
"""Idempotency keys that are remembered, the last ones: of a token, and on the disk of all."""


GATHER_S: Final = 0.04
"""The time (s) from a write for which several publishers waited to the next: each write costs 0.6 ms of CPU, which are
1.5% of a core at this distance. They wait so long for their acknowledgement at most, and the write itself."""

PROGRESS_S: Final = 1.0
"""Seconds that answers may wait to be written on their own; a restarted service would answer them again."""


QUIET_ITEMS: Final = 1000
"""Number of items that are written even if nobody waits for them."""

WALL: Final = ""
"""The stream of the advances of the wall clock."""


class NotDurableError(RuntimeError):
    """Something was taken and is not on the disk yet; the sentence says why."""


def _digest(triples: Sequence[Triple]) -> str:
    """The name of triples on the disk, shared by the queries that use the same ones."""
    return sha256("\n".join(map(" ".join, triples)).encode()).hexdigest()


@dataclass(slots=True)
class _Noted:
    """A change that waits to be written, with the calls before and after."""

    change: Change = field(default_factory=Change)
    items: list[tuple[str, Taken]] = field(default_factory=list)
    first: list[Callable[[], object]] = field(default_factory=list)
    then: list[Callable[[], object]] = field(default_factory=list)


class ServiceJournal:
    """Records events and writes them in a separate thread; thread-safe.

    ``trouble`` says why nothing can be written at the moment, ``fault`` why nothing ever will.
    """

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.state = SessionState(folder)
        if any(isinstance(record, list) for record in self.state.records("query").values()):
            self.state.close()
            raise JournalError(f"{folder} is the state of a `query` or `watch`: name another folder for the service")
        self.trouble = self.fault = ""
        self._clock, self._written_at, self._wrote_at = clock, clock(), -inf
        # Apart, or each publication would wake all who wait for the disk.
        lock = RLock()
        self._changed, self._durable, self._leaving = Condition(lock), Condition(lock), Condition(lock)
        self._noted, self._writing = _Noted(), False
        self._next = self.state.next
        self._tickets = self._written = self._waiting = 0
        self._numbers: dict[str, int] = {}
        self._gaps = {stream: Gaps(record) for stream, record in self.state.records("gap").items()}
        # Names are item numbers with leading zeros, so their order as text is that of their age.
        self._keys = deque(sorted(self.state.records("key")))
        self._beside = {name: record["beside"] for name, record in self.state.records("query").items()}
        self._ending = self._crowded = False
        self._progress: Callable[[], dict[str, int]] = dict
        self._answered: dict[str, Any] = self.state.records("session").get("answered", {"item": -1, "further": {}})
        self._thread = Thread(target=self._run, name="streamgauge-journal", daemon=True)

    def start(self, progress: Callable[[], dict[str, int]]) -> None:
        """Write from now on; ``progress`` gives the number of the last item that each query has answered."""
        self._progress = progress
        self._thread.start()

    def follow(self, running: RegisteredQuery, start: int) -> None:
        """Keep what a query needs that saw the items from a number on."""
        name, question = running.name, running.question
        with self._changed:
            # Done by the writing thread, to which the state belongs.
            self._noted.first.append(lambda: self.state.follow(name, question.query, question.semantics, start))

    @property
    def age(self) -> float:
        """Seconds for which the oldest recorded event has waited, 0 if none waits."""
        with self._changed:
            return self._clock() - self._written_at if self._tickets > self._written else 0.0

    @contextmanager
    def together(self) -> Iterator[None]:
        """All notes within become durable as one."""
        with self._changed:
            yield

    def note(self, kind: str, name: str, value: Any) -> int:
        """A record, ``None`` to drop it; the ticket to wait for."""
        with self._changed:
            self._noted.change.records[kind, name] = value
            return self._noticed()

    def note_gap(self, stream: str, gap: Gap) -> None:
        """Elements of a stream may be missing: the answers that this touches state it from now on."""
        with self._changed:
            self.note("gap", stream, self._gaps.setdefault(stream, Gaps()).note(gap))

    def stated(self, streams: Iterable[str], line: bytes, answer: Answer) -> bytes:
        """The line of an answer, with the gaps of streams that touch it."""
        return stated((gap for stream in streams for gap in self._gaps.get(stream, ())), line, answer)

    def last_gap(self, stream: str) -> Gap | None:
        """The last gap of a stream, if there was one."""
        return next(iter([*self._gaps.get(stream, ())][-1:]), None)

    def add(self, stream: str, items: Sequence[Taken], *, quiet: bool = False) -> int:
        """Items of a stream; the number of the first. ``quiet`` ones are written with whatever is noted next."""
        with self._changed:
            self._noted.items += [(stream, item) for item in items]
            begin, self._next = self._next, self._next + count_of(items)
            if not quiet or len(self._noted.items) > QUIET_ITEMS:
                self._noticed()
            return begin

    @property
    def next(self) -> int:
        """The number of the next item."""
        return self._next

    def answered(self, running: RegisteredQuery, item: int, line: bytes) -> None:
        """Record a query's answer to an item; subscribers receive it once it is durable."""
        with self._changed:
            change = self._noted.change
            self._numbers[running.name] = number = self._numbers.get(running.name, 0) + 1
            change.answers.append(NumberedLine(running.name, number, line))
            change.records["progress", running.name] = {"item": item, "number": number}
            # What a client can no longer resume from need not be on the disk.
            change.settled[running.name] = running.answers.oldest - 1
            # Subscribers get it after the commit: an answer that was sent, but is unknown after a crash, would get its
            # number again.
            self._noted.then.append(lambda: running.answers.add(line, len(line)))
            self._noticed()

    def begun(self, group: EvaluationGroup) -> None:
        """A session has begun."""
        assert group.begun is not None
        t0, since = group.begun
        with self._changed:
            for member in group.members:
                if isinstance(member, RegisteredQuery):
                    self._noted.change.records["begun", member.name] = {"t0": t0, "since": since}

    def ended(self, members: Sequence[AnsweredQuery], end: End) -> None:
        """Record queries that ended by themselves: they need no more items, and a restart reports the reason."""
        with self._changed:
            for name in (member.name for member in members if isinstance(member, RegisteredQuery)):
                self._noted.first.append(partial(self.state.forget, name))
                self._noted.change.records["over", name] = asdict(end)
            self._noticed()

    def keep_query(
        self, running: RegisteredQuery, request: QueryRegistration, owner: str, shared: Sequence[Triple]
    ) -> int:
        """Record a query and the shared data of that moment, which it keeps; returns the ticket to wait for."""
        with self._changed:
            registration = {name: value for name, value in asdict(request).items() if value is not None}
            if isinstance(request.semantics, Semantics):
                fields = msgspec.to_builtins(request.semantics)
                registration["semantics"] = {name: value for name, value in fields.items() if value is not None}
                # Citations have no effect on answers, and their texts would be most of the record.
                del registration["semantics"]["sources"]
            beside = _digest(shared)
            if shared and beside not in self._beside.values():
                self._noted.change.records["beside", beside] = list(shared)
            self._beside[running.name] = beside
            record = {"request": registration, "owner": owner, "start": self._next, "beside": beside}
            self._noted.change.records["query", running.name] = record
            # A query of this name may have ended by itself before.
            self._noted.change.records["over", running.name] = None
            if number := number_of(running.name):
                self._noted.change.records["names", "last"] = number
            self.follow(running, self._next)
            return self._noticed()

    def shared(self, query: str) -> list[Triple]:
        """The shared data with which a query was registered."""
        return [(s, p, o) for s, p, o in self.state.records("beside").get(self._beside[query], ())]

    def restore(self, running: RegisteredQuery, start: int) -> Resumption:
        """Give a query that saw the items from a number on the answers that were kept; how far it came."""
        progress = self.state.records("progress").get(running.name, {"item": -1, "number": 0})
        kept = self.state.answers(running.name)
        running.answers.number = kept[0].number - 1 if kept else progress["number"]
        for answer in kept:
            running.answers.add(answer.line, len(answer.line))
        self._numbers[running.name] = running.answers.number
        item = self._answered["further"].get(running.name, self._answered["item"])
        # Progress is written with each answer, "answered" from time to time also for queries that had none: the later
        # one counts.
        running.processed = max(item, progress["item"], start - 1)
        if (over := self.state.records("over").get(running.name)) is not None:
            return Resumption(start, None, None, End(**over))
        self.follow(running, start)
        begun = self.state.records("begun").get(running.name)
        latest = self.state.latest(running.question.query.streams, start, running.processed)
        return Resumption(start, None if begun is None else (begun["t0"], begun["since"]), latest)

    def forget(self, query: str) -> int:
        """A query has ended."""
        with self._changed:
            self._noted.first.append(lambda: self.state.forget(query))
            for kind in ("query", "begun", "progress", "over"):
                self._noted.change.records[kind, query] = None
            beside = self._beside.pop(query)
            if beside not in self._beside.values():
                self._noted.change.records["beside", beside] = None
            # All of its answers go.
            self._noted.change.settled[query] = 2**62
            return self._noticed()

    def keep_key(self, key: RetryKey, items: int, readers: int) -> None:
        """Record the key of a publication, with its result."""
        with self._changed:
            name = f"{self._next:020}"
            self._keys.append(name)
            self.note("key", name, [*key, items, readers])
            if len(self._keys) > KEYS:
                self.note("key", self._keys.popleft(), None)

    def known_keys(self) -> list[tuple[RetryKey, int, int]]:
        """The keys of publications, with their results; before anything is written."""
        kept = sorted(self.state.records("key").items())
        return [(RetryKey(owner, name, digest), items, readers) for _, (owner, name, digest, items, readers) in kept]

    def ticket(self) -> int:
        """The ticket of all that was noted."""
        with self._changed:
            return self._tickets

    def wait(self, ticket: int, patience: float) -> None:
        """Wait until everything recorded is durable; NotDurableError after ``patience`` (s)."""
        with self._changed:
            # Counted for ``_crowded``: with a single publisher that waits, gathering would only delay it.
            self._waiting += 1
            met = self._durable.wait_for(lambda: self._written >= ticket or bool(self.fault), patience)
            self._waiting -= 1
            if not met or self.fault:
                why = self.fault or self.trouble or "the disk is slow"
                raise NotDurableError(f"it is not on the disk yet, and counts as soon as it is: {why}")

    def refuse(self) -> None:
        """NotWrittenError where nothing can be written now."""
        if why := self.fault or self.trouble:
            raise NotWrittenError(why)

    def close(self, patience: float) -> None:
        """Write everything recorded, within ``patience`` (s), and close the files."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            self._leaving.notify_all()
        if self._thread.ident is not None:
            self._thread.join(patience)
        if not self._thread.is_alive():
            self.state.close()

    def _noticed(self) -> int:
        self._tickets += 1
        # The first event that waits starts the clock of ``age``.
        if self._tickets == self._written + 1:
            self._written_at = self._clock()
        self._changed.notify_all()
        return self._tickets

    def _run(self) -> None:
        while (batch := self._taken()) is not None:
            noted, ticket, processed = batch
            if not self._write(noted, processed):
                return
            for tell in noted.then:
                tell()
            with self._changed:
                self._written, self._written_at = ticket, self._clock()
                self._durable.notify_all()

    def _taken(self) -> tuple[_Noted, int, dict[str, int]] | None:
        """The next change to write, waited for; ``None`` at the end."""
        with self._changed:
            progress = self._waited()
            before, self._answered = self._answered, _answered(progress)
            if self._tickets == self._written and self._answered == before:
                return None
            noted, self._noted = self._noted, _Noted()
            # Under the lock, so that no event is noted between these calls and the change that they belong to.
            for call in noted.first:
                call()
            self._wrote_at, self._crowded = self._clock(), self._waiting > 1
            noted.change.records["session", "answered"] = self._answered
            return noted, self._tickets, progress

    def _waited(self) -> dict[str, int]:
        """The queries' progress, if something was noted or they have progressed, and at the end."""
        while True:
            # Only if answers lag behind items is there progress to look for without an event.
            behind = self._answered["item"] < self.state.next - 1
            if self._changed.wait_for(
                lambda: self._tickets > self._written or self._ending, PROGRESS_S if behind else None
            ):
                if self._crowded:
                    self._leaving.wait_for(lambda: self._ending, self._wrote_at + GATHER_S - self._clock())
                return self._progress()
            if _answered(progress := self._progress()) != self._answered:
                return progress

    def _write(self, noted: _Noted, processed: dict[str, int]) -> bool:
        """Write, retrying while the disk fails; ``False`` at the end and for a damaged file."""
        while True:
            try:
                self.state.write(noted.change, ItemColumns.of_taken(noted.items), processed)
            except NotWrittenError as error:
                self.trouble = str(error)
            # A damaged file does not heal: publishers get the reason, and nothing is written any more.
            except JournalError as error:
                self.fault = str(error)
                return False
            else:
                self.trouble = ""
                return True
            with self._changed:
                if self._leaving.wait_for(lambda: self._ending, AGAIN_S):
                    return False


def _answered(progress: Mapping[str, int]) -> dict[str, Any]:
    """The record of the queries' progress: the last item that all have answered, and the last ones of those ahead."""
    # A worked example: three queries have answered up to the items 90, 90 and 95. The record is 90, and 95 for the
    # third: one number for nearly all queries instead of one each.
    item = min(progress.values(), default=-1)
    return {"item": item, "further": {query: last for query, last in progress.items() if last > item}}
