"""The broker: six operations on facts and channels (SENS's: Murth et al., SEP-BM, section 4.1), without any web.

Publications wait in order; a step takes those that wait, lets the strategy find what they cause, makes all of it
durable with one synchronisation, tells subscribers, and acknowledges each publication by itself.
"""

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from threading import Lock, RLock
from typing import NamedTuple

from streamgauge.formats.bounds import SERVED
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.algebra import QueryForm
from streamgauge.model.named_facts import is_named
from streamgauge.model.terms import Row, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.updates import TooManySolutionsError, UpdateOperation, together, uses_graphs
from streamgauge.servers.broker.channels import Channel, Subscribed
from streamgauge.servers.broker.contract import AnswerChange, HeldSizes, Publication, Strategy
from streamgauge.servers.broker.journal import Accepted, Forgetful, Journal, NotWrittenError
from streamgauge.servers.broker.limits import BusyError, LimitError, Limits
from streamgauge.servers.broker.registry import Registry, Require, anything
from streamgauge.servers.broker.texts import check_texts
from streamgauge.servers.broker.turns import Turns
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.events import End
from streamgauge.servers.http.limits import load_parsers
from streamgauge.servers.http.retries import KeyReuseError, RetryKey, RetryMemory, request_digest


class FailedError(RuntimeError):
    """The journal could not be written: nothing is taken any more until the broker is started again."""


class Receipt(NamedTuple):
    """A publication has taken effect: its number; ``repeated`` when its key was known and nothing was done."""

    number: int
    repeated: bool = False


class _Waiting(NamedTuple):
    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]
    key: RetryKey | None
    owner: str
    receive: Callable[["Receipt | BaseException"], None]
    changes: Sequence[UpdateOperation] = ()
    """Operations that depend on the facts at their turn: such a publication is taken by itself."""


def _too_deep() -> LimitError:
    return LimitError("the query is nested too deeply to be evaluated: write it flatter")


def _without_graphs() -> LimitError:
    return LimitError("facts of named graphs: this strategy has none, the strategy incremental does")


class Broker:
    """Facts, channels and subscribers. Thread-safe; one thread at a time evaluates.

    ``clock`` is the wall clock in ms, ``steady`` one in seconds that never goes back. What the journal holds is there
    again. ``fault`` says why nothing is taken any more, ``trouble`` why the disk did not take the last change: reading
    goes on, and changes are taken again when there is room. ValueError for a strategy that puts evaluations off
    beside a journal that must not lose them.
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
        self.limits = limits or Limits()
        self._strategy, self._steady, self._graphs = strategy, steady, strategy.graphs
        self._journal: Journal = Forgetful() if journal is None else journal
        self._durable = journal is not None
        self._waiting: deque[_Waiting] = deque()
        self._waiting_of: dict[str, int] = {}
        self._queue, self._evaluating, self._creating = RLock(), Turns(), Lock()
        self._keys = RetryMemory[int](self.limits.keys, self._journal.keys())
        self._forgotten: list[int] = []
        self._number, _ = self._journal.numbers()
        self._strategy.limit(self.limits.effort, self.limits.derived, self.limits.change)
        self._strategy.load(self._journal.facts())
        self._registry = Registry(strategy, self._journal, self.limits, clock, self._evaluating)
        self.fault = ""
        self.trouble = ""
        self._astray = False

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there, before there are channels; ValueError when there are, LimitError as for ``submit``."""
        with self._evaluating:
            if self._registry.channels:
                raise ValueError("there are channels already, whose subscribers would not be told: publish instead")
            found = tuple(triples)
            if len(found) > self.limits.facts - self._strategy.explicit:
                raise self._full()
            if not self._graphs and any(is_named(fact[0]) for fact in found):
                raise _without_graphs()
            self._journal.load(found)
            self._strategy.load(found)

    def publish(self, graph: Iterable[Triple], key: RetryKey | str | None = None) -> Receipt:
        """Facts are there from now on. A ``key`` that was given before makes it a repetition, which does nothing.

        KeyReuseError for a key that was given with another operation or graph.
        """
        return self._at_once(tuple(graph), (), key)

    def delete(self, graph: Iterable[Triple], key: RetryKey | str | None = None) -> Receipt:
        """Facts are there no more."""
        return self._at_once((), tuple(graph), key)

    def update(self, added: Iterable[Triple], removed: Iterable[Triple], key: RetryKey | str | None = None) -> Receipt:
        """Facts go and others come, as one."""
        return self._at_once(tuple(added), tuple(removed), key)

    def submit(
        self,
        added: tuple[Triple, ...],
        removed: tuple[Triple, ...],
        key: RetryKey | str | None = None,
        owner: str = OPEN,
    ) -> "Future[Receipt]":
        """A publication of an identity waits for the next step; the future gives its receipt.

        LimitError, BusyError, FailedError; the future has a KeyReuseError for a key of another publication.
        """
        told = None if key is None else _key(key, added, removed)
        return self._submitted(lambda receive: _Waiting(added, removed, told, owner, receive))

    def modify(
        self, changes: Sequence[UpdateOperation], key: RetryKey | str | None = None, owner: str = OPEN
    ) -> "Future[Receipt]":
        """A SPARQL Update waits for the next step, where its WHERE is answered on the closure as it is then.

        BusyError, FailedError; the future has a TooManySolutionsError when it touches more than a publication may.
        """
        told = _key(key, changes)
        return self._submitted(lambda receive: _Waiting((), (), told, owner, receive, changes))

    def _submitted(self, make: Callable[[Callable[[Receipt | BaseException], None]], _Waiting]) -> "Future[Receipt]":
        future: Future[Receipt] = Future()
        future.set_running_or_notify_cancel()

        def receive(outcome: Receipt | BaseException) -> None:
            if isinstance(outcome, Receipt):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        self._enqueue(make(receive))
        return future

    def _enqueue(self, waiting: _Waiting) -> None:
        added, removed = waiting.added, waiting.removed
        if not self._graphs and (uses_graphs(waiting.changes) or any(is_named(fact[0]) for fact in (*added, *removed))):
            raise _without_graphs()
        if len(added) + len(removed) > self.limits.graph:
            raise LimitError(f"a publication of more than {self.limits.graph} triples: publish it in parts")
        with self._queue:
            if self.fault:
                raise FailedError(f"{self.fault}: start the broker again")
            own = len(self._waiting) if waiting.owner == OPEN else self._waiting_of.get(waiting.owner, 0)
            if own >= self.limits.waiting:
                raise BusyError(f"{own} publications wait already: come again")
            if waiting.owner != OPEN:
                self._waiting_of[waiting.owner] = own + 1
            self._waiting.append(waiting)

    def _at_once(self, added: tuple[Triple, ...], removed: tuple[Triple, ...], key: RetryKey | str | None) -> Receipt:
        outcomes: list[Receipt | BaseException] = []
        told = None if key is None else _key(key, added, removed)
        self._enqueue(_Waiting(added, removed, told, OPEN, outcomes.append))
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
        """How many facts were published and not deleted; what an ontology states is not among them."""
        return self._strategy.explicit

    def held(self) -> HeldSizes:
        """How much is kept of facts and answers; a table is gone through that changes meanwhile."""
        return self._strategy.held()

    @property
    def waiting(self) -> int:
        """How many publications wait."""
        return len(self._waiting)

    def step(self) -> int:
        """Take in publications that wait, together; how many they were."""
        with self._evaluating:
            batch = self._batch()
            if not batch:
                return 0
            if self.fault:
                for each in batch:
                    each.receive(FailedError(f"{self.fault}: start the broker again"))
                return len(batch)
            try:
                outcomes = self._taken_in(batch)
            except NotWrittenError as error:
                outcomes = [(each, error) for each in batch]
            except BaseException as error:
                self.fault, self._astray = f"a publication could not be taken in: {error}", self._durable
                for each in batch:
                    each.receive(error)
                raise
            for each, outcome in outcomes:
                each.receive(outcome)
            return len(batch)

    def _batch(self) -> list[_Waiting]:
        """Those that wait, up to one whose changes depend on them, which is a batch of its own."""
        batch: list[_Waiting] = []
        with self._queue:
            while self._waiting and len(batch) < self.limits.batch:
                if self._waiting[0].changes and batch:
                    break
                batch.append(self._waiting.popleft())
                if batch[0].changes:
                    break
            for each in batch:
                if each.owner != OPEN:
                    self._waiting_of[each.owner] -= 1
        return batch

    def _taken_in(self, batch: list[_Waiting]) -> list[tuple[_Waiting, Receipt | BaseException]]:
        """One outcome for each of the batch, when all that it causes is durable and told."""
        (first, *_) = batch
        if not first.changes or self._keys.holds(first.key):
            return self._take_in(batch)
        try:
            added, removed = together(
                first.changes, self._strategy.facts, self.limits.graph, min(self.limits.effort, self.limits.looks)
            )
        except TooManySolutionsError as error:
            return [(first, error)]
        return self._take_in([first._replace(added=added, removed=removed)])

    def _take_in(self, batch: list[_Waiting]) -> list[tuple[_Waiting, Receipt | BaseException]]:
        outcomes: list[tuple[_Waiting, Receipt | BaseException]] = []
        fresh: list[tuple[Publication, RetryKey | None]] = []
        room = self.limits.facts - self._strategy.explicit
        for each in batch:
            try:
                known = None if each.key is None else self._keys.known(each.key)
            except KeyReuseError as error:
                outcomes.append((each, error))
                continue
            if known is not None:
                outcomes.append((each, Receipt(known, repeated=True)))
                continue
            if each.added and len(each.added) > room:
                outcomes.append((each, self._full()))
                continue
            room -= len(each.added)
            self._number += 1
            if each.key is not None:
                self._forgotten += self._keys.remember(each.key, self._number)
            fresh.append((Publication(self._number, each.added, each.removed), each.key))
            outcomes.append((each, Receipt(self._number)))
        if fresh:
            found = self._strategy.publish([publication for publication, _ in fresh], self._steady())
            try:
                refused = self._tell(fresh, found)
            except NotWrittenError as error:
                self._undo([publication for publication, _ in fresh], error)
                raise
            self.trouble = ""
            if refused:
                return [(each, self._refused(each, outcome, refused)) for each, outcome in outcomes]
        return outcomes

    def _undo(self, publications: Sequence[Publication], error: NotWrittenError) -> None:
        """Facts, answers, keys and numbers are again those that the journal holds; nobody is told."""
        self.trouble = str(error)
        touched = {triple for each in publications for triple in (*each.added, *each.removed)}
        there = self._journal.holding(touched)
        back = Publication(publications[0].number, tuple(there), tuple(touched - there))
        self._strategy.limit(sys.maxsize, sys.maxsize)
        try:
            deque(self._strategy.publish([back], self._steady()), maxlen=0)
        finally:
            self._strategy.limit(self.limits.effort, self.limits.derived, self.limits.change)
        self._registry.mend()
        self._keys, self._forgotten = RetryMemory[int](self.limits.keys, self._journal.keys()), []
        self._number = publications[0].number - 1

    def _refused(
        self, waiting: _Waiting, outcome: Receipt | BaseException, refused: Mapping[int, str]
    ) -> Receipt | BaseException:
        """The outcome, or why there was none; a key of what had no effect may be used again."""
        if not isinstance(outcome, Receipt) or outcome.number not in refused:
            return outcome
        if waiting.key is not None:
            self._keys.forget(waiting.key)
        return LimitError(refused[outcome.number])

    def _full(self) -> LimitError:
        return LimitError(f"more than {self.limits.facts} facts may come of it: delete some first")

    def _tell(
        self, fresh: list[tuple[Publication, RetryKey | None]], found: Iterable[AnswerChange]
    ) -> Mapping[int, str]:
        """Changes are told as they are found; where they are to survive, when they will. What was refused, and why."""
        forgotten, self._forgotten = self._forgotten, []
        failures = self._registry.keep(fresh, found, forgotten) if self._durable else self._registry.tell(found)
        return failures.refused

    def evaluate(self) -> None:
        """Do the work that the strategy put off."""
        with self._evaluating:
            try:
                if self.trouble:
                    self._journal.accept(Accepted())
                    self.trouble = ""
                self._tell([], self._strategy.evaluate(self._steady()))
            except NotWrittenError as error:
                self.trouble = str(error)
            except Exception as error:
                self.fault = f"what was put off could not be done: {error}"
                raise

    def create_channel(
        self, name: str, query: str, *, owner: str = OPEN, require: Require = anything
    ) -> tuple[str, ...]:
        """A channel begins; its subscribers are told of changes from now on. The variables of its rows.

        ``owner`` is the identity that creates the channel, ``require`` is called with the channel that has the name
        (``None``: there is none) and may refuse. QueryError, LimitError, ExistingChannelError or ValueError say why
        there is none.
        """
        if len(query) > self.limits.query_text:
            raise LimitError(f"a query of more than {self.limits.query_text} characters: write a shorter one")
        form = self._understood(query)
        with self._creating:
            prepared = self._prepared(name, form, owner, require)
            try:
                with self._evaluating:
                    require(self._registry.channels.get(name))
                    return self._registry.create(name, query, form, owner, prepared).variables
            except BaseException as error:
                with self._evaluating:
                    self._strategy.abandon(prepared)
                if isinstance(error, RecursionError):
                    raise _too_deep() from None
                raise

    def _understood(self, query: str) -> QueryForm:
        load_parsers()
        try:
            with self._alone():
                form = parse_sparql(query, bounds=SERVED)
                check_texts(form, self.limits)
                return form
        except TooMuchError as error:
            raise LimitError(f"{error}: write a shorter query") from error
        except RecursionError:
            raise _too_deep() from None

    def _alone(self) -> AbstractContextManager[object]:
        """Stop the work within when it takes too long; the work touches nothing of others."""
        return DEADLINES.within(self.limits.seconds, self.limits.growth)

    def _prepared(self, name: str, form: QueryForm, owner: str, require: Require) -> object:
        """The answer of a query that no channel asks yet, found while publications go on."""
        with self._evaluating:
            require(self._registry.channels.get(name))
            if not self._registry.is_new(name, form, owner):
                return None
        try:
            return self._strategy.prepare(form, self._evaluating.later, self._alone)
        except TooMuchError as error:
            raise LimitError(f"{error}: ask for less") from error
        except RecursionError:
            raise _too_deep() from None

    def delete_channel(self, name: str, *, require: Require = anything) -> None:
        """A channel ends; its subscribers are told. UnknownChannelError, or what ``require`` raises of the channel."""
        with self._evaluating:
            require(self.channel(name))
            self._registry.drop(name)

    def channel(self, name: str) -> Channel:
        """A channel by its name; UnknownChannelError."""
        return self._registry.channel(name)

    def channels(self) -> list[Channel]:
        """All channels."""
        return list(self._registry.channels.values())

    def facts(self) -> list[Triple]:
        """The closure: all facts, explicit and derived. FailedError when they may not be those that are durable."""
        with self._evaluating:
            self._refuse_astray()
            return list(self._strategy.facts())

    def rows(self, name: str) -> tuple[int, list[Row]]:
        """The answer of a channel, and the number of the last notification in it. FailedError as for ``facts``."""
        with self._evaluating:
            self._refuse_astray()
            channel = self.channel(name)
            number, rows = channel.number, self._strategy.rows(channel.log.name)
        return number, list(rows)

    def _refuse_astray(self) -> None:
        """FailedError where a publication changed facts before the broker failed: the change is not durable."""
        if self._astray:
            raise FailedError(f"{self.fault}: start the broker again")

    def subscribe(
        self, channel: str, name: str, wake: Callable[[], None], after: int | None = None, owner: str = OPEN
    ) -> Subscribed:
        """Begin after a notification's number; without one after what ``name`` acknowledged, else with new ones only.

        ``wake`` is called, from any thread, when there is something to take. The name belongs to the ``owner`` from
        then on. UnknownChannelError, LimitError, ForeignNameError for a name that is another identity's.
        """
        with self._evaluating:
            return self._registry.subscribe(channel, name, wake, after, owner)

    def listen(self, channel: str, wake: Callable[[], None], after: int | None = None, owner: str = OPEN) -> Subscribed:
        """Begin after a notification's number, else with new ones, as nobody: nothing is kept for who comes back."""
        with self._evaluating:
            return self._registry.listen(channel, wake, after, owner)

    def acknowledge(
        self, channel: str, name: str, number: int | None, *, owner: str = OPEN, require: Require = anything
    ) -> Channel:
        """Notifications up to a number need not come again; without one the name begins to be a subscriber.

        UnknownChannelError, LimitError, ForeignNameError, or what ``require`` raises of the channel as it is before.
        """
        with self._evaluating:
            self._registry.admit(channel, name, owner)
            require(self.channel(channel))
            subscribed = self._registry.subscribe(channel, name, lambda: None, None, owner)
            subscribed.close()
            if number is not None:
                subscribed.acknowledge(number)
            return self.channel(channel)

    def subscribers(self, channel: str, owner: str = OPEN) -> dict[str, int]:
        """The names on a channel that belong to an identity, with what they acknowledged; all for ``OPEN``."""
        with self._evaluating:
            return self._registry.names(channel, owner)

    def unsubscribe(self, channel: str, name: str, *, owner: str = OPEN, require: Require = anything) -> None:
        """A subscriber is forgotten. UnknownChannelError, ForeignNameError, or what ``require`` raises."""
        with self._evaluating:
            self._registry.admit(channel, name, owner)
            require(self.channel(channel))
            self._registry.unsubscribe(channel, name)

    def release(self, owners: Collection[str]) -> None:
        """Names of any other identity than these belong to nobody any more: the next that comes by one has the name."""
        with self._evaluating:
            self._registry.release(owners)

    def close(self) -> None:
        """Nothing is taken any more; subscribers are told."""
        with self._evaluating:
            if not self.fault:
                with suppress(NotWrittenError):  # acknowledgements that are lost do no harm
                    self._registry.rest()
            self.fault = self.fault or "the broker is ending"
            self._registry.end(End("the broker is ending"))
            self._journal.close()


def _key(key: RetryKey | str | None, *parts: object) -> RetryKey | None:
    """A key as it is given, or the one of that name of everybody, for what the parts say."""
    return RetryKey(OPEN, key, request_digest(repr(parts).encode())) if isinstance(key, str) else key
