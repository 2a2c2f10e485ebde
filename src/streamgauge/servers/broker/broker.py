"""The broker without HTTP: six operations on facts and channels (as in SENS: Murth et al., SEP-BM, section 4.1).

Publications are queued. A step takes a batch, lets the strategy find the changes of answers, makes everything durable
with one sync, notifies subscribers, and acknowledges each publication.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Final

from streamgauge.formats.instants import date_time
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.algebra import QueryForm
from streamgauge.model.fact import is_named
from streamgauge.model.terms import Row, Triple
from streamgauge.query.updates import ALL, GraphNames, UpdateOperation, uses_graphs
from streamgauge.reasoning.rules import VIOLATES, Rules
from streamgauge.servers.broker.contract import (
    Accepted,
    AnswerChange,
    HeldSizes,
    Journal,
    Publication,
    Strategy,
)
from streamgauge.servers.broker.limits import (
    GraphError,
    LimitError,
    Limits,
    check_width,
    read_changes,
    read_query,
    too_deep,
)
from streamgauge.servers.broker.publications import FailedError, PublicationQueue, Receipt, WaitingPublication
from streamgauge.servers.broker.questions import answered, read_question
from streamgauge.servers.broker.registry import Registry, Require, anything
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.events import End
from streamgauge.servers.http.retries import KeyReuseError, RetryKey, RetryMemory, request_digest
from streamgauge.servers.sealed.soundness import NotWrittenError
from streamgauge.sparql.algebra import UndefinedError
from streamgauge.sparql.expression import UnsupportedFunctionError
from streamgauge.sparql.updates import together


def _without_graphs() -> LimitError:
    return LimitError("facts of named graphs: this strategy has none, the strategy incremental does")


class Broker(Registry):
    """Facts, channels and subscribers. Thread-safe; one thread at a time evaluates.

    ``clock`` is the wall clock in ms, ``steady`` a monotonic one in seconds. The state is restored from the journal.
    ``fault`` is why the broker has failed for good; ``trouble`` why the disk refused the last change, while reads go on
    and changes are accepted as soon as it has room. ValueError for a durable journal with a strategy that defers
    evaluations: it would acknowledge publications before their notifications are durable.
    """

    def __init__(
        self,
        strategy: Strategy,
        clock: Callable[[], int],
        steady: Callable[[], float],
        journal: Journal | None = None,
        limits: Limits | None = None,
    ) -> None:
        if journal is not None and not strategy.complete:
            raise ValueError("a strategy that puts evaluations off cannot be durable: use incremental or reevaluate")
        limits, kept = limits or Limits(), journal or Journal()
        strategy.limit(limits.effort, limits.derived, limits.change, limits.changes)
        strategy.load(kept.facts())
        # Facts first: restoring a channel evaluates its query over them.
        super().__init__(strategy, kept, limits, clock)
        self._steady, self._graphs, self._durable = steady, strategy.graphs, journal is not None
        self._queue, self._creating = PublicationQueue(limits), Lock()
        self._keys = RetryMemory[int](limits.keys, kept.keys())
        self._forgotten: list[int] = []
        self._number, _ = kept.numbers()
        self.wake: Callable[[], None] = lambda: None
        """Called when a publication has been queued, from any thread."""
        self.fault = ""
        self.trouble = ""
        self._astray = False

    def load(self, triples: Iterable[Triple]) -> None:
        """Load many facts before there are channels; ValueError if there are, LimitError as ``submit``."""
        with self._lock:
            if self._channels:
                raise ValueError("channels exist already, whose subscribers would not be notified: publish instead")
            facts = tuple(triples)
            if len(facts) > self.limits.facts - self._strategy.explicit:
                raise self._full()
            if not self._graphs and any(is_named(fact[0]) for fact in facts):
                raise _without_graphs()
            self._journal.load(facts)
            self._strategy.load(facts)

    def publish(self, graph: Iterable[Triple], key: RetryKey | str | None = None) -> Receipt:
        """Insert facts. With a ``key`` that was used before it is a repetition, which has no effect.

        KeyReuseError for a key that was used with another operation or graph.
        """
        return self._at_once(tuple(graph), (), key)

    def delete(self, graph: Iterable[Triple], key: RetryKey | str | None = None) -> Receipt:
        """Delete facts; ``key`` as for ``publish``."""
        return self._at_once((), tuple(graph), key)

    def update(self, added: Iterable[Triple], removed: Iterable[Triple], key: RetryKey | str | None = None) -> Receipt:
        """Delete and insert facts as one publication; ``key`` as for ``publish``."""
        return self._at_once(tuple(added), tuple(removed), key)

    def submit(
        self,
        added: tuple[Triple, ...],
        removed: tuple[Triple, ...],
        key: RetryKey | str | None = None,
        owner: str = OPEN,
    ) -> "Future[Receipt]":
        """Queue a publication of an identity; the future gets its receipt.

        LimitError, BusyError, FailedError; the future may get a KeyReuseError or LimitError.
        """
        retry_key = None if key is None else _key(key, added, removed)
        return self._submitted(added, removed, retry_key, owner)

    def modify(
        self, changes: Sequence[UpdateOperation], key: RetryKey | str | None = None, owner: str = OPEN
    ) -> "Future[Receipt]":
        """Queue a SPARQL Update, whose WHERE is evaluated over the closure when its turn comes.

        BusyError, FailedError; the future may get a TooManySolutionsError, or a LimitError.
        """
        retry_key = _key(key, changes)
        return self._submitted((), (), retry_key, owner, changes)

    def _submitted(
        self,
        added: tuple[Triple, ...],
        removed: tuple[Triple, ...],
        key: RetryKey | None,
        owner: str,
        changes: Sequence[UpdateOperation] = (),
    ) -> "Future[Receipt]":
        future: Future[Receipt] = Future()
        # A client that disconnects cancels its future; the publication takes effect all the same.
        # From this state on `Future.cancel` returns false, so that setting the result cannot fail.
        future.set_running_or_notify_cancel()

        def receive(outcome: Receipt | BaseException) -> None:
            if isinstance(outcome, Receipt):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        self._enqueue(WaitingPublication(added, removed, key, owner, receive, changes))
        self.wake()
        return future

    def _enqueue(self, waiting: WaitingPublication) -> None:
        added, removed = waiting.added, waiting.removed
        if not self._graphs and (uses_graphs(waiting.changes) or any(is_named(fact[0]) for fact in (*added, *removed))):
            raise _without_graphs()
        # The operations of an update are worked out before any of them is applied, and what rules would derive in
        # between is not known then.
        if any(operation.where is not None for operation in waiting.changes[1:]) and self._strategy.derives:
            raise GraphError(
                "WHERE after another operation, beside an ontology: it would not see what is derived from that; "
                "send each by itself"
            )
        if self.fault:
            raise self._failure()
        # A fault that comes after this test is told by `step`, which answers everything that waits.
        self._queue.add(waiting)

    def _failure(self) -> FailedError:
        return FailedError(f"{self.fault}: start the broker again")

    def _at_once(self, added: tuple[Triple, ...], removed: tuple[Triple, ...], key: RetryKey | str | None) -> Receipt:
        outcomes: list[Receipt | BaseException] = []
        retry_key = None if key is None else _key(key, added, removed)
        self._enqueue(WaitingPublication(added, removed, retry_key, OPEN, outcomes.append))
        # Another thread may take this publication in its batch; this one then finds the outcome once it gets the lock.
        while not outcomes:
            self.step()
        (outcome,) = outcomes
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    @property
    def number(self) -> int:
        """The number of the last publication."""
        return self._number

    @property
    def explicit(self) -> int:
        """The number of explicit facts, without those that an ontology states."""
        return self._strategy.explicit

    def held(self) -> HeldSizes:
        """The sizes of facts and answers, counted while these may change."""
        return self._strategy.held()

    @property
    def waiting(self) -> int:
        """The number of queued publications."""
        return len(self._queue)

    def step(self) -> int:
        """Process a batch of queued publications; returns its size."""
        with self._lock:
            batch = self._queue.batch()
            if not batch:
                return 0
            if self.fault:
                for publication in batch:
                    publication.receive(self._failure())
                return len(batch)
            try:
                outcomes = self._taken_in(batch)
            except NotWrittenError as error:
                outcomes = [(publication, error) for publication in batch]
            except BaseException as error:
                # Facts in memory may be ahead of the journal from here on; without a journal they are the only truth
                # there is.
                self.fault, self._astray = f"a publication could not be processed: {error}", self._durable
                for publication in batch:
                    publication.receive(error)
                raise
            for publication, outcome in outcomes:
                publication.receive(outcome)
            return len(batch)

    def _taken_in(self, batch: list[WaitingPublication]) -> list[tuple[WaitingPublication, Receipt | BaseException]]:
        """Process a batch; returns the outcomes once all its effects are durable and sent."""
        (first, *_) = batch
        # A repetition is not evaluated again: its WHERE would meet the facts that the first run has left.
        if not first.changes or self._keys.holds(first.key):
            return self._take_in(batch)
        try:
            added, removed = self._changed(first.changes)
            # Only now are the inserted triples known.
            check_width(added)
        except Exception as error:
            return [(first, error)]
        return self._take_in([first._replace(added=added, removed=removed)])

    def _changed(self, changes: Sequence[UpdateOperation]) -> tuple[tuple[Triple, ...], tuple[Triple, ...]]:
        """The facts that an update inserts and deletes; LimitError, TooManySolutionsError, GraphError."""
        limits = self.limits
        try:
            with DEADLINES.within(limits.where_seconds, limits.growth):
                # Under the lock, which is why its limits are far below those of a query: everybody waits for it.
                return together(changes, self._strategy.facts, limits.graph, min(limits.effort, limits.looks))
        except TooMuchError as error:
            raise LimitError(f"{error}: use more constants in WHERE") from error
        except (UndefinedError, UnsupportedFunctionError) as error:
            raise GraphError(str(error)) from error
        except RecursionError:
            raise too_deep() from None

    def _take_in(self, batch: list[WaitingPublication]) -> list[tuple[WaitingPublication, Receipt | BaseException]]:
        outcomes: list[tuple[WaitingPublication, Receipt | BaseException]] = []
        fresh: list[tuple[Publication, RetryKey | None]] = []
        capacity = self.limits.facts - self._strategy.explicit
        for publication in batch:
            try:
                known = None if publication.key is None else self._keys.known(publication.key)
            except KeyReuseError as error:
                outcomes.append((publication, error))
                continue
            if known is not None:
                outcomes.append((publication, Receipt(known, repeated=True)))
                continue
            if publication.added and len(publication.added) > capacity:
                outcomes.append((publication, self._full()))
                continue
            # An upper bound, since some of these facts may exist already: counting would need a look-up per triple.
            capacity -= len(publication.added)
            self._number += 1
            if publication.key is not None:
                # The journal forgets them in the same transaction, or keys of a restarted broker would differ from
                # those of this one.
                self._forgotten += self._keys.remember(publication.key, self._number)
            fresh.append((Publication(self._number, publication.added, publication.removed), publication.key))
            outcomes.append((publication, Receipt(self._number)))
        if fresh:
            changes = self._strategy.publish([publication for publication, _ in fresh], self._steady())
            try:
                refused = self._sent_or_stored(fresh, changes)
            except NotWrittenError as error:
                self._undo([publication for publication, _ in fresh], error)
                raise
            self.trouble = ""
            if refused:
                return [
                    (publication, self._refused(publication, outcome, refused)) for publication, outcome in outcomes
                ]
        return outcomes

    def _undo(self, publications: Sequence[Publication], error: NotWrittenError) -> None:
        """Reset facts, answers, keys and numbers to the journal's state after a failed write, without notifications."""
        self.trouble = str(error)
        touched = {triple for publication in publications for triple in (*publication.added, *publication.removed)}
        # By what the journal has, not by reverting: a batch may add and remove the same fact several times.
        there = self._journal.holding(touched)
        back = Publication(publications[0].number, tuple(there), tuple(touched - there))
        # The way back must not be refused by a limit that the way forth has nearly used up.
        self._strategy.limit(sys.maxsize, sys.maxsize)
        try:
            # `publish` is a generator, which does nothing until it is consumed; its changes are of no interest, since
            # nobody has seen those that they take back.
            deque(self._strategy.publish([back], self._steady()), maxlen=0)
        finally:
            self._strategy.limit(self.limits.effort, self.limits.derived, self.limits.change, self.limits.changes)
        self._mend()
        # A client that repeats its request must not be told that it took effect.
        self._keys, self._forgotten = RetryMemory[int](self.limits.keys, self._journal.keys()), []
        self._number = publications[0].number - 1

    def _refused(
        self, waiting: WaitingPublication, outcome: Receipt | BaseException, refused: Mapping[int, str]
    ) -> Receipt | BaseException:
        """The outcome of a publication, or the LimitError of a refused one, whose key may be used again."""
        if not isinstance(outcome, Receipt) or outcome.number not in refused:
            return outcome
        if waiting.key is not None:
            # In memory alone: `_keep` has stored no refused publication, and with it no key.
            self._keys.forget(waiting.key)
        return LimitError(refused[outcome.number])

    def _full(self) -> LimitError:
        return LimitError(f"the broker could then have more than {self.limits.facts} facts: delete some first")

    def _sent_or_stored(
        self, fresh: list[tuple[Publication, RetryKey | None]], changes: Iterable[AnswerChange]
    ) -> Mapping[int, str]:
        """Send each change when it is found or, with a durable journal, once it is stored.

        Returns refused publications.
        """
        forgotten, self._forgotten = self._forgotten, []
        failures = self._keep(fresh, changes, forgotten) if self._durable else self._tell(changes)
        return failures.refused

    def evaluate(self) -> None:
        """Do the strategy's deferred evaluations; after a failed write, first test whether the disk accepts one."""
        with self._lock:
            try:
                if self.trouble:
                    # An empty transaction writes the seal, which is enough to meet a full disk again.
                    self._journal.accept(Accepted())
                    self.trouble = ""
                self._sent_or_stored([], self._strategy.evaluate(self._steady()))
            except NotWrittenError as error:
                self.trouble = str(error)
            except Exception as error:
                self.fault = f"a deferred evaluation failed: {error}"
                raise

    def create_channel(
        self, name: str, query: str, *, owner: str = OPEN, require: Require = anything
    ) -> tuple[str, ...]:
        """Create a channel; its subscribers are notified of later changes. Returns the variables of its rows.

        ``owner`` is the identity that creates the channel; ``require`` is called with the existing channel of that name
        (or ``None``) and may raise. QueryError, LimitError, ExistingChannelError, or ValueError for queries that the
        strategy does not support.
        """
        form = read_query(query, self.limits)
        # One preparation at a time: each may take its seconds of CPU and hundreds of MB.
        with self._creating:
            prepared = self._prepared(name, form, owner, require)
            try:
                with self._lock:
                    # Again: the channel may have changed while the query was prepared without the lock.
                    require(self._channels.get(name))
                    return self._create(name, query, form, owner, prepared).variables
            except BaseException as error:
                with self._lock:
                    # Under the lock: the query is attached to facts that publications change.
                    self._strategy.abandon(prepared)
                if isinstance(error, RecursionError):
                    raise too_deep() from None
                raise

    def _prepared(self, name: str, form: QueryForm, owner: str, require: Require) -> object:
        """Evaluate a query that no channel has yet, while publications are processed."""
        with self._lock:
            require(self._channels.get(name))
            self._refuse(name, owner)
            # The log of the same query is shared, there is nothing to evaluate.
            if form in self._by_form:
                return None
        alone = partial(DEADLINES.within, self.limits.seconds, self.limits.growth)
        try:
            return self._strategy.prepare(form, self._lock.later, alone)
        except TooMuchError as error:
            raise LimitError(f"{error}: ask for less") from error
        except RecursionError:
            raise too_deep() from None

    def ask(self, query: str, graphs: GraphNames | None = None) -> tuple[QueryForm, tuple[Row, ...]]:
        """The answer of a query over the current facts, in ``graphs`` if the request names any.

        QueryError, LimitError, TooManySolutionsError, GraphError; FailedError as ``facts``.
        """
        question = read_question(query, graphs, self.limits, self._clock())
        if not self._graphs and question.graphs != ALL:
            raise _without_graphs()
        self._refuse_astray()
        return question.form, answered(question, self._strategy.facts, self.limits, self._lock.later)

    def read_update(self, text: str, graphs: GraphNames | None = None) -> list[UpdateOperation]:
        """The operations of an update, with NOW() as the current time; otherwise as ``read_changes``."""
        return read_changes(text, self.limits, graphs, date_time(self._clock()))

    def delete_channel(self, name: str, *, require: Require = anything) -> None:
        """Delete a channel and end its subscriptions. UnknownChannelError, or what ``require`` raises."""
        with self._lock:
            require(self.channel(name))
            self._drop(name)

    def facts(self) -> list[Triple]:
        """The closure: all explicit and derived facts. FailedError if they may differ from the durable ones."""
        with self._lock:
            self._refuse_astray()
            return list(self._strategy.facts())

    def rows(self, name: str) -> tuple[int, list[Row]]:
        """The answer of a channel, and the number of the last notification that it includes.

        FailedError as ``facts``.
        """
        with self._lock:
            self._refuse_astray()
            channel = self.channel(name)
            # Both under one lock: the number says which notifications a subscriber still needs on top of these rows.
            number, rows = channel.number, self._strategy.rows(channel.log.name)
        return number, list(rows)

    def _refuse_astray(self) -> None:
        """FailedError if a publication had changed facts when the broker failed: that change is not durable."""
        if self._astray:
            raise self._failure()

    def close(self) -> None:
        """Refuse further requests, end all subscriptions, and close the journal."""
        with self._lock:
            if not self.fault:
                with suppress(NotWrittenError):  # lost acknowledgements only repeat notifications
                    self._keep((), ())
            self.fault = self.fault or "the broker is ending"
            self._end(End("the broker is ending"))
            self._journal.close()


def _key(key: RetryKey | str | None, *parts: object) -> RetryKey | None:
    """The key of a publication; a name becomes a key that belongs to everybody."""
    return RetryKey(OPEN, key, request_digest(repr(parts).encode())) if isinstance(key, str) else key


VIOLATIONS: Final = "violations"
VIOLATIONS_QUERY: Final = f"SELECT ?subject ?violation WHERE {{ ?subject {VIOLATES} ?violation }}"


def open_violations(broker: Broker, rules: Rules) -> int:
    """Create the channel of violations if the ontology can be violated; returns the current number of violations.

    A violation is a resource that contradicts an axiom of the ontology (OWL 2 RL rules that conclude false), as a
    derived fact. The data are not changed, and a violation disappears with the facts that it depends on.

    ValueError if a channel of that name has another query; LimitError as for any channel.
    """
    if not rules.constrains:
        return 0
    there = {channel.name: channel.query for channel in broker.channels()}
    if there.get(VIOLATIONS, VIOLATIONS_QUERY) != VIOLATIONS_QUERY:
        raise ValueError(
            f"the journal has a channel {VIOLATIONS} with another query, and the ontology needs that name for what "
            "contradicts it: delete the channel (start without the ontology), or take another journal"
        )
    if VIOLATIONS not in there:
        broker.create_channel(VIOLATIONS, VIOLATIONS_QUERY)
    _, rows = broker.rows(VIOLATIONS)
    return len(rows)
