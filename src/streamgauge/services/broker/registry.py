"""Which channels there are and who is told of them, in step with a strategy and a journal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from streamgauge.compute.effort import TooMuchError
from streamgauge.model.algebra import QueryForm
from streamgauge.query import parse_sparql
from streamgauge.services.broker.channels import Channel, ExistingChannelError, Log, Subscribed, UnknownChannelError
from streamgauge.services.broker.contract import Entry, Failures, Found, Publication, Strategy
from streamgauge.services.broker.journal import Accepted, Journal, Kept, Opened, Subscriber
from streamgauge.services.broker.limits import LimitError, Limits
from streamgauge.services.web.answers import Answers, End

Lock: TypeAlias = AbstractContextManager[object]


class Registry:
    """Channels by name; those that ask the same share a log. What the ``journal`` holds is there again.

    ``clock`` is the wall clock in ms. One thread at a time, which has the ``lock``; subscribers acknowledge from any.
    """

    def __init__(
        self, strategy: Strategy, journal: Journal, limits: Limits, clock: Callable[[], int], lock: Lock
    ) -> None:
        self.channels: dict[str, Channel] = {}
        self._strategy, self._journal, self._limits = strategy, journal, limits
        self._clock, self._lock = clock, lock
        self._logs: dict[str, Log] = {}
        self._asked: dict[QueryForm, Log] = {}
        self._unsaid: dict[tuple[str, str], int] = {}
        self._restore()

    def _restore(self) -> None:
        _, lasts = self._journal.numbers()
        for each in self._journal.channels():
            try:
                log = self._logs.get(str(each.log)) or self._ask(each.log, parse_sparql(each.query), lasts[each.log])
            except TooMuchError:
                self._journal.drop(each.name, each.log)
            else:
                self._open(log, each)
        for kept in self._journal.entries():
            entries = self._logs[str(kept.log)].entries
            entries.number = kept.number - 1
            entries.add(kept.entry, kept.entry.size)
        for log in self._logs.values():
            log.entries.number = lasts[log.number]
        for subscriber in self._journal.subscribers():
            self._enrol(self.channels[subscriber.channel], subscriber.name, subscriber.acknowledged)

    def channel(self, name: str) -> Channel:
        """A channel by its name; UnknownChannelError."""
        found = self.channels.get(name)
        if found is None:
            raise UnknownChannelError(name)
        return found

    def create(self, name: str, query: str, form: QueryForm) -> Channel:
        """A channel begins; LimitError, ExistingChannelError, or the strategy's ValueError."""
        if name in self.channels:
            raise ExistingChannelError(f"there is a channel {name} already: take another name, or delete it")
        if len(self.channels) >= self._limits.channels:
            raise LimitError(f"{self._limits.channels} channels are there already: delete one first")
        try:
            log = self._asked.get(form) or self._ask(max(map(int, self._logs), default=0) + 1, form, 0)
        except TooMuchError as error:
            raise LimitError(f"{error}: ask for less") from error
        try:
            self._within(log)
            opened = Opened(name, query, log.number, log.entries.number)
            self._journal.create(opened)
            return self._open(log, opened)
        finally:
            self._forget(log)

    def _ask(self, number: int, form: QueryForm, last: int) -> Log:
        log = Log(number, form, self._strategy.create(str(number), form), Answers(self._limits, last))
        self._logs[log.name] = self._asked[form] = log
        return log

    def _within(self, log: Log) -> None:
        rows = 0 if log.channels else sum(1 for _ in self._strategy.rows(log.name))
        if rows > self._limits.rows:
            raise LimitError(f"the answer has more than {self._limits.rows} rows: ask for less")

    def _open(self, log: Log, opened: Opened) -> Channel:
        made = self.channels[opened.name] = log.channels[opened.name] = Channel(
            opened.name, opened.query, log, opened.start
        )
        return made

    def drop(self, name: str) -> None:
        """A channel ends; its subscribers are told. UnknownChannelError."""
        channel = self.channel(name)
        log = channel.log
        self._journal.drop(name, log.number if len(log.channels) == 1 else None)
        self._close(channel, End("the channel was deleted"))

    def _close(self, channel: Channel, end: End) -> None:
        name, log = channel.name, channel.log
        del self.channels[name], log.channels[name]
        log.named.pop(name, None)
        self._unsaid = {each: number for each, number in self._unsaid.items() if each[0] != name}
        self._forget(log)
        channel.end(end)

    def _forget(self, log: Log) -> None:
        """A query that no channel asks is asked no more."""
        if log.channels:
            return
        self._strategy.drop(log.name)
        del self._logs[log.name]
        if self._asked.get(log.form) is log:
            del self._asked[log.form]

    def subscribe(self, channel: str, name: str, wake: Callable[[], None], after: int | None) -> Subscribed:
        """Begin by a name. UnknownChannelError, LimitError."""
        found = self.channel(channel)
        if name not in found.acknowledged:
            if len(found.acknowledged) >= self._limits.subscribers:
                raise self._crowded()
            self._journal.subscribe(Subscriber(channel, name, found.number))
            self._enrol(found, name, found.number)
        return found.follow(name, found.acknowledged[name] if after is None else after, wake, self.acknowledge)

    def listen(self, channel: str, wake: Callable[[], None], after: int | None) -> Subscribed:
        """Begin as nobody. UnknownChannelError, LimitError."""
        found = self.channel(channel)
        if len(found.connected) >= self._limits.subscribers:
            raise self._crowded()
        return found.follow("", after, wake, self.acknowledge)

    def _crowded(self) -> LimitError:
        return LimitError(f"{self._limits.subscribers} subscribers are there already: come again later")

    def _enrol(self, channel: Channel, name: str, number: int) -> None:
        channel.acknowledged[name] = number
        channel.log.named[channel.name] = channel

    def unsubscribe(self, channel: str, name: str) -> None:
        """A subscriber is forgotten. UnknownChannelError."""
        found = self.channel(channel)
        self._journal.unsubscribe(channel, name)
        self._unsaid.pop((channel, name), None)
        if found.acknowledged.pop(name, None) is not None and not found.acknowledged:
            del found.log.named[channel]

    def acknowledge(self, name: str, subscriber: str, number: int) -> None:
        """Notifications up to a number need not come again; the journal hears of it with the next publication."""
        with self._lock:
            channel = self.channels.get(name)
            if channel is not None and channel.acknowledged.get(subscriber, number) < number:
                number = min(number, channel.number)
                channel.acknowledged[subscriber] = self._unsaid[name, subscriber] = number

    def tell(self, found: Iterable[Found]) -> Failures:
        """Changes are told as they are found; what was not done."""
        for each in found:
            entry = self._entry(each)
            self._logs[each.name].entries.add(entry, entry.size)
        failures = self._strategy.failures()
        self._end(failures.ended)
        return failures

    def keep(self, fresh: Sequence[tuple[Publication, str | None]], found: Iterable[Found]) -> Failures:
        """Publications and their changes become durable with what subscribers have acknowledged; then they are told.

        What was not done is neither; it is given.
        """
        made = [(self._logs[each.name], self._entry(each)) for each in found]
        failures = self._strategy.failures()
        fresh = [each for each in fresh if each[0].number not in failures.refused]
        if not (fresh or made or self._unsaid):
            return failures
        lasts: dict[int, int] = {}
        wanted: list[Kept] = []
        for log, entry in made:
            number = lasts[log.number] = lasts.get(log.number, log.entries.number) + 1
            if log.named:
                wanted.append(Kept(log.number, number, entry))
        said = [Subscriber(channel, name, number) for (channel, name), number in self._unsaid.items()]
        ended = {self._logs[name].number: list(self._logs[name].channels) for name in failures.ended}
        self._journal.accept(Accepted(fresh, wanted, lasts, said, self._settled(lasts), ended))
        self._unsaid.clear()
        for log, entry in made:
            log.entries.add(entry, entry.size)
        self._end(failures.ended)
        return failures

    def _end(self, ended: Mapping[str, str]) -> None:
        """Channels whose answers cost too much end; their subscribers are told why."""
        for name, why in ended.items():
            for channel in list(self._logs[name].channels.values()):
                self._close(channel, End(f"{why}: the channel was ended", "error"))

    def _settled(self, lasts: dict[int, int]) -> dict[int, int]:
        """By log, up to which number entries are wanted no more: all have acknowledged them, or they are too many."""
        acknowledged = {self.channels[channel].log for channel, _ in self._unsaid}
        settled = {each.number: each.settled for each in acknowledged}
        for number, last in lasts.items():
            settled[number] = max(settled.get(number, 0), last - self._limits.kept)
        return settled

    def _entry(self, found: Found) -> Entry:
        return Entry(found.causes, found.added, found.removed, self._clock(), found.size)

    def rest(self) -> None:
        """What subscribers have acknowledged becomes durable."""
        self.keep((), ())

    def end(self, end: End) -> None:
        """Subscribers are told that no more will come."""
        for log in self._logs.values():
            log.entries.end(end)
