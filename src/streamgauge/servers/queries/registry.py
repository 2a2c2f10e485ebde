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


class UnknownQueryError(KeyError):
    """No query of that name is known."""

    def __str__(self) -> str:
        return f"there is no query {self.args[0]}"


class ConflictError(ValueError):
    """A request that conflicts with the current state; the message names both."""


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
        self._running: dict[str, RegisteredQuery] = {}
        self._since: dict[str, float] = {}
        self._reading: dict[str, tuple[Sequence[QueryWorker], int]] = {}
        self._outputs: dict[str, str] = {}
        self._shared: dict[str, tuple[Triple, ...]] = {}
        self._counts: dict[str, int] = {}
        self._names, self._sequence = count(1), 0
        self._rates: dict[str, Rate] = {}
        self._per_second = self.limits.elements_per_second
        self._owners: dict[str, str] = {}
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
        with self._understanding:
            self._admit(owner)
            if name in self._running:
                raise ConflictError(f"there is a query {name} already: deregister it first")
            engine, query, semantics, shared = self._understood(request)
            name = name or f"q{next(self._names)}"
            question = question_of(name, request, query, semantics, engine)
            if self.journal is None:
                running = self._started(name, question)
                with self._lock:
                    self._owners[name] = owner
                return running
            with self._lock:  # nothing is published between its beginning and the note of it
                running = self._started(name, question)
                self._owners[name] = owner
                ticket = self.journal.keep_query(running, request, owner, shared)
            self.journal.wait(ticket, DURABLE_S)
            return running

    def check(self, request: QueryRegistration) -> None:
        """Understand a query without answering it; the errors of ``register``."""
        with self._understanding:
            self._understood(request)

    def _understood(self, request: QueryRegistration) -> tuple[str, ContinuousQuery, Semantics, list[Triple]]:
        """The engine, the query beside its static data, its semantics, and the shared data among the former."""
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
            self._refuse_output(question)
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
        last, running = self.journal.next - 1, list(self._running.items())
        return {name: last if one.done else max(one.evaluation.group.answered, one.processed) for name, one in running}

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
        self._owners[name] = record["owner"]
        self._enter(running)

    def _join(self, running: RegisteredQuery) -> bool:
        """Whether it can be answered together with others."""
        with self._lock:
            joined = any(running.begin(worker) for worker in _workers(list(self._running.values())))
            if joined:
                self._enter(running)
            return joined

    def _enter(self, running: RegisteredQuery) -> None:
        self._running[running.name], self._since[running.name] = running, self._steady()
        self._reading.clear()
        _LOG.info("the query is registered", extra=fields(query=running.name))
        if running.question.output is not None:
            self._outputs[running.question.output] = running.name

    def _admit(self, owner: str) -> None:
        if self._closed:
            raise ConflictError("the service is ending: ask again when it is back")
        with self._lock:
            if sum(self._owners.get(name, OPEN) == owner for name in self._running) >= self.limits.queries:
                raise QueryLimitError(f"{self.limits.queries} queries are registered already: deregister one first")

    def _shared_with(self, query: ContinuousQuery) -> list[Triple]:
        """The shared data that a query names; RequestError if some is missing and the query has no data of its own."""
        with self._lock:
            unknown = [name for name in query.background if name not in self._shared]
            if unknown and not query.static:
                raise RequestError(f"the query reads <{unknown[0]}>: bring its triples as static, or share them first")
            return [triple for name in query.background for triple in self._shared.get(name, ())]

    def _refuse_output(self, question: Question) -> None:
        """ConflictError when its output is another's stream already, or would come back to itself."""
        output = question.output
        if output is None:
            return
        if output in self._outputs:
            raise ConflictError(f"<{output}> is the output of {self._outputs[output]}: register under another name")
        seen, open_streams = set[str](), [window.stream for window in question.query.windows]
        while open_streams:
            stream = open_streams.pop()
            if stream == output:
                raise ConflictError(f"its output <{output}> would be its own input: register under another name")
            if stream not in seen and stream in self._outputs:
                open_streams += self._running[self._outputs[stream]].worker.streams
            seen.add(stream)

    def deregister(self, name: str, require: Callable[[RegisteredQuery], None] = lambda _: None) -> None:
        """End a query and notify its subscribers. UnknownQueryError, or an error of ``require`` about the query."""
        with self._lock:
            running = self.query(name)
            require(running)
            del self._running[name], self._since[name]
            self._reading.clear()
            self._owners.pop(name, None)
            if running.question.output is not None:
                self._counts.pop(running.question.output, None)
            self._outputs = {stream: by for stream, by in self._outputs.items() if by != name}
        running.end(End("deregistered"))
        if self.journal is not None:
            self.journal.wait(self.journal.forget(name), DURABLE_S)

    def query(self, name: str) -> RegisteredQuery:
        """A query by its name; UnknownQueryError."""
        with self._lock:
            if name not in self._running:
                raise UnknownQueryError(name)
            return self._running[name]

    def queries(self) -> list[RegisteredQuery]:
        """All queries in the order in which they were registered."""
        with self._lock:
            return list(self._running.values())

    def streams(self) -> dict[str, int]:
        """Every stream that is read, written or was published on: its IRI and how many elements came."""
        with self._lock:
            read = {stream for running in self._running.values() for stream in running.worker.streams}
            return {name: self._counts.get(name, 0) for name in sorted(read | set(self._counts) | set(self._outputs))}

    def readers(self, stream: str) -> list[str]:
        """The names of the queries that read a stream."""
        with self._lock:
            return [running.name for running in self._running.values() if stream in running.worker.streams]

    def writer(self, stream: str) -> str | None:
        """The name of the query whose answers are a stream, if they are."""
        with self._lock:
            return self._outputs.get(stream)

    def subscribe(
        self, running: RegisteredQuery, after: int | None, wake: Callable[[], None], owner: str = OPEN
    ) -> AnswerSubscription[bytes]:
        """A subscriber of a query; QueryLimitError where the identity ``owner`` has too many, of whatever queries."""
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
            if stream in self._outputs:
                raise ConflictError(f"<{stream}> is the output of {self._outputs[stream]}: publish on another stream")
            if self._closed:
                raise ConflictError("the service is ending: publish again when it is back")
            workers, readers = self._readers(stream)
            if stream not in self._counts and len(self._counts) >= self.limits.streams:
                raise QueryLimitError(f"{self.limits.streams} streams have been published on already")
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

    def _readers(self, stream: str) -> tuple[Sequence[QueryWorker], int]:
        """The workers that read a stream, and for how many queries."""
        if stream not in self._reading:
            running = [running for running in self._running.values() if stream in running.worker.streams]
            self._reading[stream] = _workers(running), len(running)
        return self._reading[stream]

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
            running = self._running.get(name)
            if running is None or running.question.output is None:
                return
            stream = running.question.output
        if self.journal is None:
            self._await_readers(running)
        with self._lock:
            self._hand_out(stream, [as_element(answer, stream, 0)], self._readers(stream)[0])

    def _await_readers(self, running: RegisteredQuery) -> None:
        """Wait until the readers of a query's answers have capacity; ended ones do not count."""
        output = running.question.output
        with self._lock:
            workers = self._readers(output)[0] if output is not None else ()
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
                since = self._since.get(running.name)
            if lifetime is not None and since is not None and self._steady() - since > lifetime and not running.fault:
                running.end(End(f"it has run for {lifetime:g} s, which is the limit"))
                if self.journal is not None:
                    self.journal.ended((running,), End(running.fault))

    def _pass_wall_time(self) -> None:
        """Time passes for the queries by the wall clock; for all at one place of the journal where one is kept."""
        walls = [work for work in _workers(self.queries()) if work.question.wall]
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
        end, known = self._steady() + timeout, _workers(self.queries())
        return all(work.settle(max(0.0, end - self._steady())) for work in known for _ in known)

    def leave(self) -> None:
        """The service is stopping: refuse new items, and notify subscribers."""
        self._closed = True
        for running in self.queries():
            running.answers.end(End("the service is ending"))

    def close(self, why: str, patience: float = END_S) -> None:
        """End all queries within ``patience`` (s); new items are refused."""
        with self._lock:
            self._closed = True
        works = _workers(self.queries())
        for work in works:
            work.end()
        end = self._steady() + patience
        for work in works:
            work.await_end(max(0.0, end - self._steady()))
        for running in self.queries():
            running.over(End(why))  # its worker was awaited as long as there was patience
        if self.journal is not None:
            self.journal.close(patience)


def _workers(queries: Sequence[RegisteredQuery]) -> list[QueryWorker]:
    """The workers of the queries, each once."""
    return list(dict.fromkeys(running.worker for running in queries))
