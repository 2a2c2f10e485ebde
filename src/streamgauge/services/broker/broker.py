"""The broker: six operations on facts and channels (SENS's: Murth et al., SEP-BM, section 4.1), without any web.

Publications wait in order; a step takes those that wait, lets the strategy find what they cause, makes all of it
durable with one synchronisation, tells subscribers, and acknowledges each publication by itself.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from threading import RLock
from typing import NamedTuple

from streamgauge.model.terms import Row, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.updates import Change, TooManySolutionsError, together
from streamgauge.services.broker.channels import Channel, ExistingChannelError, Subscribed, UnknownChannelError, opened
from streamgauge.services.broker.contract import Found, Notification, Publication, Strategy
from streamgauge.services.broker.journal import Accepted, Forgetful, Journal, Subscriber
from streamgauge.services.broker.limits import BusyError, LimitError, Limits
from streamgauge.services.web.answers import End


class FailedError(RuntimeError):
    """The journal could not be written: nothing is taken any more until the broker is started again."""


class Receipt(NamedTuple):
    """A publication has taken effect: its number; ``repeated`` when its key was known and nothing was done."""

    number: int
    repeated: bool = False


class _Waiting(NamedTuple):
    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]
    key: str | None
    receive: Callable[["Receipt | BaseException"], None]
    changes: Sequence[Change] = ()
    """What depends on the facts as they are then: taken by itself."""


class Broker:
    """Facts, channels and subscribers. Thread-safe; one thread at a time evaluates.

    ``clock`` is the wall clock in ms, ``steady`` one in seconds that never goes back. What the journal holds is there
    again. ValueError for a strategy that puts evaluations off beside a journal that must not lose them.
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
        self._strategy, self._clock, self._steady = strategy, clock, steady
        self._journal: Journal = Forgetful() if journal is None else journal
        self._durable = journal is not None
        self._waiting: deque[_Waiting] = deque()
        self._queue, self._evaluating = RLock(), RLock()
        self._channels: dict[str, Channel] = {}
        self._keys: OrderedDict[str, int] = OrderedDict(self._journal.keys())
        self._number, _ = self._journal.numbers()
        self._unsaid: dict[tuple[str, str], int] = {}
        self.fault = ""
        self._restore()

    def _restore(self) -> None:
        self._strategy.load(self._journal.facts())
        _, numbers = self._journal.numbers()
        for name, query in self._journal.channels():
            variables = self._strategy.create(name, parse_sparql(query))
            self._channels[name] = opened(name, query, variables, self.limits, numbers[name])
        kept: dict[str, list[Notification]] = {}
        for each in self._journal.notifications():
            kept.setdefault(each.channel, []).append(each)
        for name, notifications in kept.items():
            channel = self._channels[name]
            for each in notifications:
                channel.notifications.number = each.number - 1
                channel.tell(each)
            channel.notifications.number = numbers[name]
        for subscriber in self._journal.subscribers():
            self._channels[subscriber.channel].acknowledged[subscriber.name] = subscriber.acknowledged

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there, before there are channels; ValueError when there are."""
        with self._evaluating:
            if self._channels:
                raise ValueError("there are channels already, whose subscribers would not be told: publish instead")
            found = tuple(triples)
            if len(found) > self.limits.facts - self._strategy.explicit:
                raise self._full()
            self._journal.load(found)
            self._strategy.load(found)

    def publish(self, graph: Iterable[Triple], key: str | None = None) -> Receipt:
        """Facts are there from now on. A ``key`` that was given before makes it a repetition, which does nothing."""
        return self._at_once(tuple(graph), (), key)

    def delete(self, graph: Iterable[Triple], key: str | None = None) -> Receipt:
        """Facts are there no more."""
        return self._at_once((), tuple(graph), key)

    def update(self, added: Iterable[Triple], removed: Iterable[Triple], key: str | None = None) -> Receipt:
        """Facts go and others come, as one."""
        return self._at_once(tuple(added), tuple(removed), key)

    def submit(
        self, added: tuple[Triple, ...], removed: tuple[Triple, ...], key: str | None = None
    ) -> "Future[Receipt]":
        """A publication waits for the next step; the future gives its receipt. LimitError, BusyError, FailedError."""
        return self._submitted(lambda receive: _Waiting(added, removed, key, receive))

    def modify(self, changes: Sequence[Change], key: str | None = None) -> "Future[Receipt]":
        """A SPARQL Update waits for the next step, where its WHERE is answered on the closure as it is then.

        BusyError, FailedError; the future has a TooManySolutionsError when it touches more than a publication may.
        """
        return self._submitted(lambda receive: _Waiting((), (), key, receive, changes))

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
        if len(added) + len(removed) > self.limits.graph:
            raise LimitError(f"a publication of more than {self.limits.graph} triples: publish it in parts")
        with self._queue:
            if self.fault:
                raise FailedError(f"{self.fault}: start the broker again")
            if len(self._waiting) >= self.limits.waiting:
                raise BusyError(f"{len(self._waiting)} publications wait already: come again")
            self._waiting.append(waiting)

    def _at_once(self, added: tuple[Triple, ...], removed: tuple[Triple, ...], key: str | None) -> Receipt:
        outcomes: list[Receipt | BaseException] = []
        self._enqueue(_Waiting(added, removed, key, outcomes.append))
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
            except BaseException as error:
                self.fault = f"a publication could not be taken in: {error}"
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
        return batch

    def _taken_in(self, batch: list[_Waiting]) -> list[tuple[_Waiting, Receipt | BaseException]]:
        """One outcome for each of the batch, when all that it causes is durable and told."""
        (first, *_) = batch
        if not first.changes or first.key in self._keys:
            return self._take_in(batch)
        try:
            added, removed = together(first.changes, self._strategy.facts, self.limits.graph)
        except TooManySolutionsError as error:
            return [(first, error)]
        return self._take_in([first._replace(added=added, removed=removed)])

    def _take_in(self, batch: list[_Waiting]) -> list[tuple[_Waiting, Receipt | BaseException]]:
        outcomes: list[tuple[_Waiting, Receipt | BaseException]] = []
        fresh: list[tuple[Publication, str | None]] = []
        room = self.limits.facts - self._strategy.explicit
        for each in batch:
            known = None if each.key is None else self._keys.get(each.key)
            if known is not None:
                outcomes.append((each, Receipt(known, repeated=True)))
                continue
            if each.added and len(each.added) > room:
                outcomes.append((each, self._full()))
                continue
            room -= len(each.added)
            self._number += 1
            if each.key is not None:
                self._remember(each.key, self._number)
            fresh.append((Publication(self._number, each.added, each.removed), each.key))
            outcomes.append((each, Receipt(self._number)))
        if fresh:
            found = self._strategy.publish([publication for publication, _ in fresh], self._steady())
            self._tell(fresh, found)
        return outcomes

    def _full(self) -> LimitError:
        return LimitError(f"more than {self.limits.facts} facts may come of it: delete some first")

    def _remember(self, key: str, number: int) -> None:
        self._keys[key] = number
        if len(self._keys) > self.limits.keys:
            self._keys.popitem(last=False)

    def _tell(self, fresh: list[tuple[Publication, str | None]], found: Iterable[Found]) -> None:
        """Notifications are told as they are found; where they are to survive, when they will."""
        if not self._durable:
            for each in found:
                size, at = each.size, self._clock()
                for name in each.channels:
                    answers = self._channels[name].notifications
                    answers.add(Notification(name, answers.number + 1, *each[1:], at, size), size)
            return
        numbers: dict[str, int] = {}
        made = []
        for each in found:
            size, at = each.size, self._clock()
            for name in each.channels:
                number = numbers.get(name, self._channels[name].notifications.number) + 1
                numbers[name] = number
                made.append(Notification(name, number, *each[1:], at, size))
        heard = [each for each in made if self._channels[each.channel].acknowledged]
        self._journal.accept(self._with_acknowledged(Accepted(fresh, heard, numbers)))
        for notification in made:
            self._channels[notification.channel].tell(notification)

    def _with_acknowledged(self, accepted: Accepted) -> Accepted:
        """What is to become durable, with what subscribers have acknowledged meanwhile."""
        said = [Subscriber(channel, name, number) for (channel, name), number in self._unsaid.items()]
        channels = {each.channel for each in said} | {each.channel for each in accepted.notifications}
        settled = {name: self._settled(self._channels[name], accepted.lasts.get(name, 0)) for name in channels}
        self._unsaid.clear()
        return replace(accepted, acknowledged=said, settled=settled)

    def evaluate(self) -> None:
        """What the strategy put off is done now."""
        with self._evaluating:
            try:
                self._tell([], self._strategy.evaluate(self._steady()))
            except Exception as error:
                self.fault = f"what was put off could not be done: {error}"
                raise

    def create_channel(self, name: str, query: str) -> tuple[str, ...]:
        """A channel begins; its subscribers are told of changes from now on. The variables of its rows.

        QueryError, LimitError, ExistingChannelError or ValueError say why not.
        """
        if len(query) > self.limits.query_text:
            raise LimitError(f"a query of more than {self.limits.query_text} characters: write a shorter one")
        form = parse_sparql(query)
        with self._evaluating:
            if name in self._channels:
                raise ExistingChannelError(f"there is a channel {name} already: take another name, or delete it")
            if len(self._channels) >= self.limits.channels:
                raise LimitError(f"{self.limits.channels} channels are there already: delete one first")
            variables = self._strategy.create(name, form)
            if sum(1 for _ in self._strategy.rows(name)) > self.limits.rows:
                self._strategy.drop(name)
                raise LimitError(f"the answer has more than {self.limits.rows} rows: ask for less")
            self._journal.create(name, query)
            self._channels[name] = opened(name, query, variables, self.limits)
            return variables

    def delete_channel(self, name: str) -> None:
        """A channel ends; its subscribers are told. UnknownChannelError."""
        with self._evaluating:
            channel = self.channel(name)
            self._journal.drop(name)
            self._strategy.drop(name)
            del self._channels[name]
            self._unsaid = {each: number for each, number in self._unsaid.items() if each[0] != name}
        channel.notifications.end(End("the channel was deleted"))

    def channel(self, name: str) -> Channel:
        """A channel by its name; UnknownChannelError."""
        found = self._channels.get(name)
        if found is None:
            raise UnknownChannelError(name)
        return found

    def channels(self) -> list[Channel]:
        """All channels."""
        return list(self._channels.values())

    def facts(self) -> list[Triple]:
        """The closure: all facts, explicit and derived."""
        with self._evaluating:
            return list(self._strategy.facts())

    def rows(self, name: str) -> tuple[int, list[Row]]:
        """The answer of a channel, and the number of the last notification that is in it."""
        with self._evaluating:
            channel = self.channel(name)
            return channel.notifications.number, list(self._strategy.rows(name))

    def subscribe(self, channel: str, name: str, wake: Callable[[], None], after: int | None = None) -> Subscribed:
        """Begin after a notification's number; without one after what ``name`` acknowledged, else with new ones only.

        ``wake`` is called, from any thread, when there is something to take. UnknownChannelError, LimitError.
        """
        with self._evaluating:
            found = self.channel(channel)
            if name not in found.acknowledged and len(found.acknowledged) >= self.limits.subscribers:
                raise LimitError(f"{self.limits.subscribers} subscribers are there already: come again later")
            last = found.acknowledged.get(name, found.notifications.number)
            if name not in found.acknowledged:
                self._journal.subscribe(Subscriber(channel, name, last))
                found.acknowledged[name] = last
            inner = found.notifications.subscribe(last if after is None else after, wake)
        return Subscribed(name, found, inner, self._acknowledge)

    def listen(self, channel: str, wake: Callable[[], None], after: int | None = None) -> Subscribed:
        """Begin after a notification's number, else with new ones, as nobody: nothing is kept for who comes back."""
        with self._evaluating:
            found = self.channel(channel)
            if found.notifications.subscribers >= self.limits.subscribers:
                raise LimitError(f"{self.limits.subscribers} subscribers are there already: come again later")
            return Subscribed("", found, found.notifications.subscribe(after, wake), self._acknowledge)

    def unsubscribe(self, channel: str, name: str) -> None:
        """A subscriber is forgotten. UnknownChannelError."""
        with self._evaluating:
            found = self.channel(channel)
            self._journal.unsubscribe(channel, name)
            found.acknowledged.pop(name, None)
            self._unsaid.pop((channel, name), None)

    def _acknowledge(self, name: str, subscriber: str, number: int) -> None:
        with self._evaluating:
            channel = self._channels.get(name)
            if channel is None or not channel.acknowledged.get(subscriber, number) < number:
                return
            number = min(number, channel.notifications.number)
            channel.acknowledged[subscriber] = self._unsaid[name, subscriber] = number

    def _settled(self, channel: Channel, last: int) -> int:
        """Up to which number all have acknowledged, or nothing is kept when ``last`` is the last one."""
        return max(channel.settled, last - self.limits.kept)

    def close(self) -> None:
        """Nothing is taken any more; subscribers are told."""
        with self._evaluating:
            if self._unsaid and not self.fault:
                self._journal.accept(self._with_acknowledged(Accepted()))
            self.fault = self.fault or "the broker is ending"
            for channel in self._channels.values():
                channel.notifications.end(End("the broker is ending"))
            self._journal.close()
