"""The core of the query service, without HTTP: the registered queries, their streams and static data."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, count
from logging import getLogger
from threading import RLock
from typing import Any

from streamgauge.formats.batches import Taken, count_of
from streamgauge.formats.lines import Advance
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Engine
from streamgauge.model.logs import fields
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.durable.needs import not_durable
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.events import AnswerSubscription, End
from streamgauge.servers.http.limits import Rate, load_parsers, refused_patterns
from streamgauge.servers.queries.catalogue import ConflictError, QueryCatalogue, workers_of
from streamgauge.servers.queries.durability import WALL, ServiceJournal
from streamgauge.servers.queries.groups import EmittedAnswer, Question
from streamgauge.servers.queries.limits import QueriesBusyError, QueryLimitError, QueryLimits
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.replay import ResumedWorker, replay, resumed_worker
from streamgauge.servers.queries.requests import (
    QueryRegistration,
    RequestError,
    elements_in,
    number_of,
    numbered,
    question_of,
    read_registration,
    understand,
)
from streamgauge.servers.queries.sessions import as_element
from streamgauge.servers.queries.worker import END_S, Durability, QueryWorker

_LOG = getLogger(__name__)
PATIENCE_S = 0.1
DURABLE_S = 5.0
"""How long a request waits for the disk."""


class Queries:
    """Running queries by name, and the streams that feed them. Thread-safe.

    ``load`` returns an engine by name, ``engines`` are the available ones, the first by default. ``clock`` returns the
    wall time in ms, ``steady`` monotonic seconds.
    """

    def __init__(
        self,
        load: Callable[[str], Engine],
        engines: Sequence[str],
        limits: QueryLimits | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        steady: Callable[[], float] = time.monotonic,
        journal: ServiceJournal | None = None,
    ) -> None:
        self.limits, self.engines = limits or QueryLimits(), tuple(engines)
        self._load, self._clock, self._steady = cache(load), clock, steady
        self._lock, self._understanding = RLock(), RLock()
        self._catalogue = QueryCatalogue()
        self._shared: dict[str, tuple[Triple, ...]] = {}
        self._counts: dict[str, int] = {}
        self._names, self._sequence = count(1), 0
        self._rates: dict[str, Rate] = {}
        self._per_second = self.limits.elements_per_second
        self._closed = False
        self.journal = journal
        if journal is not None:
            with self._lock:
                self._restore(journal)
            journal.start(self._progress)

    def register(self, request: QueryRegistration, owner: str = OPEN, name: str = "") -> RegisteredQuery:
        """Register a query of an identity; it sees everything published from now on.

        Its name is ``name``, or the next number. QueryError, RequestError, RefusedError, LimitError, TooMuchError or
        ConflictError say why not.
        """
        # One registration at a time: the number of queries and the name are checked before a worker is started.
        with self._understanding:
            self._admit(owner)
            if name in self._catalogue:
                raise ConflictError(f"there is a query {name} already: deregister it first")
            engine, query, semantics, shared = self._understood(request)
            name = name or f"q{next(self._names)}"
            question = question_of(name, request, query, semantics, engine)
            if self.journal is None:
                running = self._started(name, question)
                with self._lock:
                    self._catalogue.owners[name] = owner
                return running
            with self._lock:  # nothing is published between its beginning and the note of it
                running = self._started(name, question)
                self._catalogue.owners[name] = owner
                ticket = self.journal.keep_query(running, request, owner, shared)
            self.journal.wait(ticket, DURABLE_S)
            return running

    def check(self, request: QueryRegistration) -> None:
        """Understand a query without answering it; the errors of ``register``."""
        with self._understanding:
            self._understood(request)

    def _understood(self, request: QueryRegistration) -> tuple[str, ContinuousQuery, Semantics, list[Triple]]:
        """The engine, the query with its static data, its semantics, and the shared ones of these data."""
        if request.engine is not None and request.engine not in self.engines:
            raise RequestError(f"engine is {request.engine!r}: there is {', '.join(self.engines)}")
        engine = request.engine or self.engines[0]
        loaded = self._load(engine)
        load_parsers()
        with DEADLINES.within(self.limits.seconds, self.limits.growth):
            query, semantics = understand(request, loaded, self.limits)
            if reason := refused_patterns(query.form) or loaded.refuse(query, semantics):
                raise RefusedError(reason)
        shared = self._shared_with(query)
        query = query.with_static((*query.static, *shared))
        if self.journal is not None:
            self.journal.refuse()
            if reason := not_durable(query, semantics, engine):
                raise RefusedError(reason)
        return engine, query, semantics, shared

    def _started(self, name: str, question: Question) -> RegisteredQuery:
        try:
            return self._start(name, question)
        except (RecursionError, TooMuchError) as error:
            raise RequestError(f"the query is too large or too deep to be evaluated: {error}") from None

    def _start(self, name: str, question: Question) -> RegisteredQuery:
        with self._lock:
            self._catalogue.refuse_output(question)
        running = RegisteredQuery(name, question, self.limits, lambda answer: self._pass(name, answer))
        if self._join(running):
            return running
        worker = self._worker(name, question)
        running.begin(worker)
        worker.start()
        with self._lock:
            self._enter(running)
        return running

    def _worker(self, name: str, question: Question) -> QueryWorker:
        """A worker for a question, named after the first query that asks it."""
        durability, journal = None, self.journal
        if journal is not None:
            durability = Durability(self._answered, journal.begun, journal.ended, journal.stated)
        return QueryWorker(name, question, self._load(question.engine), self.limits, durability)

    def _answered(self, number: int, emitted: Sequence[EmittedAnswer], done: Callable[[], None]) -> None:
        """Record the answers to an item together with what other queries read of them."""
        assert self.journal is not None
        told = [
            (member, answer, line)
            for evaluation, answer, line in emitted
            for member in evaluation.members
            if isinstance(member, RegisteredQuery) and number > member.processed
        ]
        for member in {member.name: member for member, _, _ in told}.values():
            self._await_readers(member)
        with self._lock, self.journal.together():
            for member, answer, line in told:
                self.journal.answered(member, number, line)
                member.hand_on(answer)
            done()

    def _progress(self) -> dict[str, int]:
        """The number of the last item that each query has answered."""
        assert self.journal is not None
        last, running = self.journal.next - 1, self._catalogue.queries
        return {one.name: last if one.done else max(one.evaluation.group.answered, one.processed) for one in running}

    def _restore(self, journal: ServiceJournal) -> None:
        """Register and share again all that was, with its windows and answers."""
        self._shared = {name: tuple(map(tuple, triples)) for name, triples in journal.state.records("shared").items()}
        self._counts = dict(journal.state.records("stream"))
        workers: list[ResumedWorker] = []
        records = journal.state.records("query")
        kept = sorted(records.items(), key=lambda query: (query[1]["start"], number_of(query[0])))
        for name, record in kept:
            self._restore_query(journal, name, record, workers)
        numbers = [journal.state.records("names").get("last", 0), *(number_of(name) for name, _ in kept)]
        self._names = count(max(numbers) + 1)
        replay(journal.state.history(), workers)

    def _restore_query(self, journal: ServiceJournal, name: str, record: Any, workers: list[ResumedWorker]) -> None:
        """A query as it was registered, answered by a worker that may take it too."""
        request = read_registration(record["request"])
        engine = request.engine or self.engines[0]
        query, semantics = understand(request, self._load(engine), self.limits)
        query = query.with_static((*query.static, *journal.shared(name)))
        question = question_of(name, request, query, semantics, engine)
        running = RegisteredQuery(name, question, self.limits, lambda answer: self._pass(name, answer))
        resumption = journal.restore(running, record["start"])
        if resumption.over is not None:
            running.begin(self._worker(name, question))
            running.end(resumption.over)
        else:
            resumed = resumed_worker(workers, question, resumption.start, lambda: self._worker(name, question))
            resumed.add(running, resumption)
        self._catalogue.owners[name] = record["owner"]
        self._enter(running)

    def _join(self, running: RegisteredQuery) -> bool:
        """Whether it can be answered together with others."""
        with self._lock:
            joined = any(running.begin(worker) for worker in self._catalogue.workers)
            if joined:
                self._enter(running)
            return joined

    def _enter(self, running: RegisteredQuery) -> None:
        self._catalogue.enter(running, self._steady())
        _LOG.info("the query is registered", extra=fields(query=running.name))

    def _admit(self, owner: str) -> None:
        if self._closed:
            raise ConflictError("the service is ending: ask again when it is back")
        with self._lock:
            if self._catalogue.owned_by(owner) >= self.limits.queries:
                raise QueryLimitError(f"{self.limits.queries} queries are registered already: deregister one first")

    def _shared_with(self, query: ContinuousQuery) -> list[Triple]:
        """The shared data that a query names; RequestError if some is missing and the query has no data of its own."""
        with self._lock:
            unknown = [name for name in query.background if name not in self._shared]
            if unknown and not query.static:
                raise RequestError(f"the query reads <{unknown[0]}>: bring its triples as static, or share them first")
            return [triple for name in query.background for triple in self._shared.get(name, ())]

    def deregister(self, name: str, require: Callable[[RegisteredQuery], None] = lambda _: None) -> None:
        """End a query and notify its subscribers. UnknownQueryError, or an error of ``require`` about the query."""
        with self._lock:
            running = self.query(name)
            require(running)
            self._catalogue.remove(running)
            if running.question.output is not None:
                self._counts.pop(running.question.output, None)
        running.end(End("deregistered"))
        if self.journal is not None:
            self.journal.wait(self.journal.forget(name), DURABLE_S)

    def query(self, name: str) -> RegisteredQuery:
        """A query by its name; UnknownQueryError."""
        with self._lock:
            return self._catalogue.query(name)

    def queries(self) -> list[RegisteredQuery]:
        """All queries in the order in which they were registered."""
        with self._lock:
            return self._catalogue.queries

    def streams(self) -> dict[str, int]:
        """The streams that are read, written or were published on: the number of elements received by IRI."""
        with self._lock:
            return {name: self._counts.get(name, 0) for name in sorted(self._catalogue.streams | self._counts.keys())}

    def readers(self, stream: str) -> list[str]:
        """The names of the queries that read a stream."""
        with self._lock:
            return [running.name for running in self._catalogue.queries if stream in running.worker.streams]

    def writer(self, stream: str) -> str | None:
        """The name of the query whose answers are a stream, if they are."""
        with self._lock:
            return self._catalogue.writer(stream)

    def subscribe(
        self, running: RegisteredQuery, after: int | None, wake: Callable[[], None], owner: str = OPEN
    ) -> AnswerSubscription[bytes]:
        """A subscriber of a query; QueryLimitError if the identity ``owner`` has too many, over all queries."""
        if sum(query.answers.subscribers_of(owner) for query in self.queries()) >= self.limits.subscribers:
            raise QueryLimitError(f"{self.limits.subscribers} of your subscribers are there already: end one first")
        return running.answers.subscribe(after, wake, owner)

    def share(
        self,
        name: str,
        triples: tuple[Triple, ...],
        require: Callable[[tuple[Triple, ...] | None], None] = lambda _: None,
    ) -> None:
        """Set static data for queries that name it from now on; LimitError if it is too large.

        ``require`` checks the previous data of that name (``None`` if there is none), and may refuse.
        """
        with self._lock:
            require(self._shared.get(name))
            others = sum(len(shared) for known, shared in self._shared.items() if known != name)
            if others + len(triples) > self.limits.shared_triples:
                raise QueryLimitError(f"more than {self.limits.shared_triples} shared triples: bring fewer")
            self._shared[name] = triples
        if self.journal is not None:
            self.journal.wait(self.journal.note("shared", name, triples), DURABLE_S)

    def publish(
        self, stream: str, items: Sequence[Taken], owner: str = OPEN, noted: Callable[[int], None] = lambda _: None
    ) -> int:
        """Elements and advances of a stream, to every query that reads it, all or none; how many queries that are.

        The rate is that of the identity ``owner``. Where a journal is kept, they are durable when this returns, with
        what ``noted`` notes, which is called with the result: NotWrittenError where the disk refuses, NotDurableError
        where that is not known yet.
        BusyError when a query cannot keep up or more comes than may per second; ConflictError for an output's stream;
        TimeJumpError where time would jump past too many reports.
        """
        with self._lock:
            if writer := self._catalogue.writer(stream):
                raise ConflictError(f"<{stream}> is the output of {writer}: publish on another stream")
            if self._closed:
                raise ConflictError("the service is ending: publish again when it is back")
            workers, readers = self._catalogue.readers(stream)
            if stream not in self._counts and len(self._counts) >= self.limits.streams:
                raise QueryLimitError(f"{self.limits.streams} streams have been published on already")
            # All refusals come before the first worker gets an item, so that the request is taken as a whole or not.
            for worker in workers:
                worker.refuse_when_full()
            for worker in workers:
                worker.refuse(items)
            if self.journal is not None:
                self.journal.refuse()
            self._keep_to_rate(owner, count_of(items))
            if self.journal is None:
                self._hand_out(stream, items, workers)
                return readers
            with self.journal.together():
                self._hand_out(stream, items, workers)
                noted(readers)
                ticket = self.journal.ticket()
        self.journal.wait(ticket, DURABLE_S)
        return readers

    @contextmanager
    def at_once(self) -> Iterator[bool]:
        """A block in which ``publish`` does not wait for threads or disks, if so requested."""
        # With a journal ``publish`` waits for the disk, whoever has the lock.
        free = self.journal is None and self._lock.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._lock.release()

    def _keep_to_rate(self, owner: str, count: int) -> None:
        if self._per_second is None:
            return
        rate = self._rates.get(owner) or self._rates.setdefault(owner, Rate(self._per_second, self._steady))
        if wait := rate.take(count):
            raise QueriesBusyError(f"more than {self._per_second:g} elements a second", wait)

    def _hand_out(self, stream: str, items: Sequence[Taken], workers: Sequence[QueryWorker]) -> None:
        self._counts[stream] = self._counts.get(stream, 0) + sum(map(elements_in, items))
        if self.journal is None:
            own = [(-1, item) for item in numbered(stream, items, self._sequence)]
            self._sequence += count_of(items)
            for worker in workers:
                worker.hear(stream, own)
            return
        with self.journal.together():
            kept = [*numbered(stream, items, self.journal.next)]
            begin = self.journal.add(stream, kept)
            self.journal.note("stream", stream, self._counts[stream])
            ends = accumulate([count_of((item,)) for item in kept], initial=begin - 1)
            own = [*zip([*ends][1:], kept, strict=True)]
            for worker in workers:
                worker.hear(stream, own)

    def _pass(self, name: str, answer: Answer) -> None:
        """Publish an answer as an element of the query's output; the query waits for its readers."""
        with self._lock:
            if name not in self._catalogue:
                return
            running = self._catalogue.query(name)
            stream = running.question.output
            if stream is None:
                return
        if self.journal is None:
            self._await_readers(running)
        with self._lock:
            self._hand_out(stream, [as_element(answer, stream, 0)], self._catalogue.readers(stream)[0])

    def _await_readers(self, running: RegisteredQuery) -> None:
        """Wait until the readers of a query's answers have capacity; ended ones do not count."""
        output = running.question.output
        with self._lock:
            workers = self._catalogue.readers(output)[0] if output is not None else ()
        for worker in workers:
            while not worker.room(PATIENCE_S) and not running.fault:
                pass

    def now(self) -> int:
        """The wall clock, ms."""
        return self._clock()

    def tick(self) -> None:
        """To be called now and then: time passes for queries by the wall clock, and old ones end."""
        self._pass_wall_time()
        for running in self.queries():
            lifetime = self.limits.lifetime
            with self._lock:
                since = self._catalogue.since.get(running.name)
            if lifetime is not None and since is not None and self._steady() - since > lifetime and not running.fault:
                running.end(End(f"it has run for {lifetime:g} s, which is the limit"))
                if self.journal is not None:
                    self.journal.ended((running,), End(running.fault))

    def _pass_wall_time(self) -> None:
        """Time passes for the queries by the wall clock; for all at one place of the journal where one is kept."""
        walls = [work for work in workers_of(self.queries()) if work.question.wall]
        if self.journal is None:
            for work in walls:
                if not work.waiting:
                    work.pass_time(self._clock())
        elif walls:
            with self._lock, self.journal.together():
                now = self._clock()
                number = self.journal.add(WALL, [Advance(now)], quiet=True)
                for work in walls:
                    work.pass_time(now, number)

    def settle(self, timeout: float) -> bool:
        """Wait until all queries have processed everything published."""
        end, known = self._steady() + timeout, workers_of(self.queries())
        # As many rounds as workers: an answer may be the input of another query, and that one's of a third.
        return all(work.settle(max(0.0, end - self._steady())) for _ in known for work in known)

    def leave(self) -> None:
        """The service is stopping: refuse new items, and notify subscribers."""
        self._closed = True
        for running in self.queries():
            running.answers.end(End("the service is ending"))

    def close(self, why: str, patience: float = END_S) -> None:
        """End all queries within ``patience`` (s); new items are refused."""
        with self._lock:
            self._closed = True
        works = workers_of(self.queries())
        for work in works:
            work.end()
        end = self._steady() + patience
        for work in works:
            work.await_end(max(0.0, end - self._steady()))
        for running in self.queries():
            running.over(End(why))  # its worker was awaited as long as there was patience
        if self.journal is not None:
            self.journal.close(patience)
