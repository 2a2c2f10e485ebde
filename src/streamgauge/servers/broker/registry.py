"""Channels and their subscribers, kept consistent with a strategy and a journal."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model.algebra import QueryForm
from streamgauge.query import parse_sparql
from streamgauge.servers.broker.budgets import KeptBudget
from streamgauge.servers.broker.channels import (
    Channel,
    ExistingChannelError,
    ForeignNameError,
    Log,
    Subscribed,
    UnknownChannelError,
)
from streamgauge.servers.broker.contract import (
    Accepted,
    AnswerChange,
    AnswerEntry,
    Failures,
    Journal,
    Opened,
    Publication,
    Strategy,
    Subscriber,
    UnacknowledgedEntry,
)
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.broker.publications import Turns
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.events import Answers, End
from streamgauge.servers.http.retries import RetryKey
from streamgauge.servers.sealed.soundness import NotWrittenError

Require: TypeAlias = Callable[[Channel | None], None]
"""Called with a channel before it is changed (``None`` if it does not exist); raises to refuse the change."""

OPERATOR: Final = "operator"
"""The identity of the operator, who owns the names of webhooks. No token has this identity."""

HOOK_NAME: Final = "webhook:"
"""The prefix of the names of webhooks, which no token may use."""


def anything(_channel: Channel | None) -> None:
    """A ``Require`` that accepts every channel."""


class Registry:
    """Channels by name; channels with the same query share a log. The content of the ``journal`` is restored.

    ``clock`` is the wall clock in ms. Public methods are thread-safe, the others require the lock.
    """

    def __init__(self, strategy: Strategy, journal: Journal, limits: Limits, clock: Callable[[], int]) -> None:
        self.limits = limits
        self._channels: dict[str, Channel] = {}
        self._strategy, self._journal, self._clock, self._lock = strategy, journal, clock, Turns()
        self._logs: dict[str, Log] = {}
        self._by_form: dict[QueryForm, Log] = {}
        self._unwritten: dict[tuple[str, str], int] = {}
        self._failed: dict[str, str] = {}
        self._gone: dict[int, list[str]] = {}
        self._created: Counter[str] = Counter()
        self._newest = 0
        self._standing: dict[str, dict[str, str]] = {}
        self.budget, self._trimmed = KeptBudget(limits.kept_total), set[Log]()
        self._restore()

    def _restore(self) -> None:
        _, lasts = self._journal.numbers()
        # A query may have become too costly or unsupported since: its channel ends instead of the broker.
        for channel in self._journal.channels():
            try:
                log = self._logs.get(str(channel.log)) or self._ask(
                    channel.log, parse_sparql(channel.query), lasts[channel.log], channel.owner
                )
            except (TooMuchError, UnsupportedError):
                self._journal.drop(channel.name, channel.log)
            else:
                self._open(log, channel)
        # After all channels: an entry needs its log, and the budget has to know whose it is.
        for stored in self._journal.entries():
            log = self._logs[str(stored.log)]
            # Numbers may have gaps where settled entries were deleted, so each entry sets its own.
            log.entries.number = stored.number - 1
            self._add(log, stored.entry)
        for log in self._logs.values():
            log.entries.number = lasts[log.number]
        for subscriber in self._journal.subscribers():
            # The oldest journals have no owners of names.
            old_hook = subscriber.owner == OPEN and subscriber.name.startswith(HOOK_NAME)
            owner = OPERATOR if old_hook else subscriber.owner
            self._enrol(self._channels[subscriber.channel], subscriber.name, subscriber.acknowledged, owner)

    def channel(self, name: str) -> Channel:
        """The channel of that name; UnknownChannelError."""
        channel_ = self._channels.get(name)
        if channel_ is None:
            raise UnknownChannelError(name)
        return channel_

    def channels(self) -> list[Channel]:
        """All channels, in order of creation."""
        return list(self._channels.values())

    def _create(self, name: str, query: str, form: QueryForm, owner: str = OPEN, prepared: object = None) -> Channel:
        """Create a channel; LimitError, ExistingChannelError, or the strategy's ValueError.

        ``prepared`` is the strategy's preparation of the query.
        """
        self._refuse(name, owner)
        # The new channel may have the name of one that is still in the journal.
        self._settle_gone()
        try:
            log = self._by_form.get(form)
            if log is None:
                log = self._ask(self._newest + 1, form, 0, owner, prepared)
        except TooMuchError as error:
            raise LimitError(f"{error}: ask for less") from error
        try:
            if not log.channels and self._strategy.size(log.name) > self.limits.rows:
                raise LimitError(f"the answer has more than {self.limits.rows} rows: ask for less")
            opened = Opened(name, query, log.number, log.entries.number, owner)
            enrolled = [Subscriber(name, subscriber, 0, by) for subscriber, by in self._standing.get(name, {}).items()]
            # Before the channel is visible: if the disk refuses, it never existed.
            self._journal.create(opened, enrolled)
            channel = self._open(log, opened)
            for subscriber in enrolled:
                self._enrol(channel, subscriber.name, subscriber.acknowledged, subscriber.owner)
            return channel
        finally:
            self._forget(log)

    def _refuse(self, name: str, owner: str) -> None:
        """LimitError, ExistingChannelError for a channel that may not be created."""
        if name in self._channels:
            raise ExistingChannelError(f"the channel {name} exists already: take another name, or delete it")
        if self._created[owner] >= self.limits.channels:
            raise LimitError(f"{self.limits.channels} channels exist already{_of(owner)}: delete one first")

    def _ask(self, number: int, form: QueryForm, last: int, owner: str, prepared: object = None) -> Log:
        log = Log(number, form, self._strategy.create(str(number), form, prepared), Answers(self.limits, last), owner)
        self._logs[log.name] = self._by_form[form] = log
        self._newest = max(self._newest, number)
        return log

    def _open(self, log: Log, opened: Opened) -> Channel:
        channel = self._channels[opened.name] = log.channels[opened.name] = Channel(
            opened.name, opened.query, log, opened.start, opened.owner
        )
        self._created[opened.owner] += 1
        return channel

    def _drop(self, name: str) -> None:
        """Delete a channel and end its subscriptions; UnknownChannelError."""
        channel = self.channel(name)
        log = channel.log
        # First, because it may fail: the channel then still exists, in the journal and here.
        self._journal.drop(name, log.number if len(log.channels) == 1 else None)
        self._close(channel, End("the channel was deleted"))

    def _close(self, channel: Channel, end: End) -> None:
        name, log = channel.name, channel.log
        del self._channels[name], log.channels[name]
        self._created[channel.owner] -= 1
        log.named.pop(name, None)
        self._unwritten = {key: number for key, number in self._unwritten.items() if key[0] != name}
        self._forget(log)
        # Last: a woken subscriber that looks for its channel must not find it any more.
        channel.end(end)

    def _forget(self, log: Log) -> None:
        """Remove a log's query from the strategy if no channel has it any more."""
        if log.channels:
            return
        if log.name in self._logs:
            self._strategy.drop(log.name)
            del self._logs[log.name]
            self.budget.add(log.owner, -log.entries.bytes)
            self._trimmed.discard(log)
        # After a failure to create it, another log may have taken the form.
        if self._by_form.get(log.form) is log:
            del self._by_form[log.form]

    def enrol_always(self, channel: str, name: str, owner: str) -> None:
        """Subscribe a name to a channel, and to every later channel of that name from its first notification on."""
        with self._lock:
            self._standing.setdefault(channel, {})[name] = owner
            channel_ = self._channels.get(channel)
            if channel_ is not None and name not in channel_.acknowledged:
                self._journal.subscribe(Subscriber(channel, name, channel_.number, owner))
                self._enrol(channel_, name, channel_.number, owner)

    def subscribe(
        self, channel: str, name: str, wake: Callable[[], None], after: int | None = None, owner: str = OPEN
    ) -> Subscribed:
        """Subscribe by name, after a notification's number, else after what ``name`` acknowledged, else to new ones.

        ``wake`` is called, from any thread, when there are notifications. From then on the name belongs to ``owner``.
        UnknownChannelError, LimitError, ForeignNameError for a name of another identity.
        """
        with self._lock:
            channel_ = self._admit(channel, name, owner)
            known = channel_.acknowledged.get(name)
            if known is None and channel_.names(owner) >= self.limits.subscribers:
                raise self._crowded(owner)
            if known is None and (full := self.budget.refuses(channel_.log.owner)):
                raise LimitError(full)
            # A name that belonged to nobody is written again, now with its owner.
            if known is None or (owner != OPEN and channel_.owners[name] == OPEN):
                number = channel_.number if known is None else known
                self._journal.subscribe(Subscriber(channel, name, number, owner))
                self._enrol(channel_, name, number, owner)
            return channel_.follow(
                name, channel_.acknowledged[name] if after is None else after, wake, self._taken, owner
            )

    def listen(self, channel: str, wake: Callable[[], None], after: int | None = None, owner: str = OPEN) -> Subscribed:
        """Subscribe anonymously, after a notification's number, else to new ones; nothing is stored for a reconnection.

        UnknownChannelError, LimitError.
        """
        with self._lock:
            channel_ = self.channel(channel)
            if channel_.connections(owner) >= self.limits.subscribers:
                raise self._crowded(owner)
            return channel_.follow("", after, wake, self._taken, owner)

    def acknowledge(
        self, channel: str, name: str, number: int | None, *, owner: str = OPEN, require: Require = anything
    ) -> Channel:
        """Acknowledge notifications up to a number; without one only register the name as a subscriber.

        UnknownChannelError, LimitError, ForeignNameError, or what ``require`` raises.
        """
        with self._lock:
            require(self._admit(channel, name, owner))
            # The lock is reentrant; subscribing is what creates an unknown name, with all its limits.
            subscribed = self.subscribe(channel, name, lambda: None, None, owner)
            subscribed.close()
            if number is not None:
                subscribed.acknowledge(number)
            return self.channel(channel)

    def _admit(self, channel: str, name: str, owner: str) -> Channel:
        """The channel, if a name on it belongs to the owner or has none; UnknownChannelError, ForeignNameError.

        Without tokens every client has the identity ``OPEN``, which may use all names. If tokens are introduced later,
        such a name goes to the first client that uses it.
        """
        channel_ = self.channel(channel)
        if owner == OPEN or channel_.owners.get(name) == owner:
            return channel_
        if name.startswith(HOOK_NAME) and owner != OPERATOR:
            raise ForeignNameError(f"names that begin with {HOOK_NAME} are those of webhooks: take another name")
        if channel_.owners.get(name, OPEN) != OPEN:
            raise ForeignNameError(f"the name {name} on the channel {channel} belongs to another token: take another")
        return channel_

    def subscribers(self, channel: str, owner: str = OPEN) -> dict[str, int]:
        """The names on a channel that belong to an identity (all for ``OPEN``), with the numbers they acknowledged."""
        with self._lock:
            channel_ = self.channel(channel)
            named = sorted(channel_.acknowledged.items())
            return {name: number for name, number in named if owner in (OPEN, channel_.owners[name])}

    def kept_for(self, owner: str) -> dict[str, int | str]:
        """``bytes`` of notifications stored for an identity, their ``limit``, and why new names are ``refused``."""
        with self._lock:
            budget = self.budget
            return {"bytes": budget.bytes(owner), "limit": budget.limit, "refused": budget.refuses(owner)}

    def release(self, owners: Collection[str]) -> None:
        """Release the names of all identities but these, for example of revoked tokens; the next user owns them."""
        with self._lock:
            for channel in self._channels.values():
                for name, owner in channel.owners.items():
                    # In memory alone: the journal keeps the old owner, and the next start releases it again if its
                    # token is still gone.
                    if owner not in owners:
                        channel.owners[name] = OPEN

    def _crowded(self, owner: str) -> LimitError:
        return LimitError(f"{self.limits.subscribers} subscribers exist already{_of(owner)}: come again later")

    def _enrol(self, channel: Channel, name: str, number: int, owner: str) -> None:
        channel.acknowledged[name], channel.owners[name] = number, owner
        channel.log.named[channel.name] = channel

    def unsubscribe(self, channel: str, name: str, *, owner: str = OPEN, require: Require = anything) -> None:
        """Delete a named subscriber. UnknownChannelError, ForeignNameError, or the error of ``require``."""
        with self._lock:
            channel_ = self._admit(channel, name, owner)
            require(channel_)
            self._journal.unsubscribe(channel, name)
            self._unwritten.pop((channel, name), None)
            channel_.owners.pop(name, None)
            if channel_.acknowledged.pop(name, None) is not None and not channel_.acknowledged:
                del channel_.log.named[channel]

    def _taken(self, by: Subscribed, number: int) -> None:
        """Record an acknowledgement, which the journal stores with the next publication.

        Ignored if the channel has been replaced, or the name belongs to another identity by now.
        """
        with self._lock:
            channel, name = by.channel, by.name
            there = self._channels.get(channel.name) is channel and by.owner in (OPEN, channel.owners.get(name))
            # The default equals the number, so that an anonymous subscriber acknowledges nothing.
            if there and channel.acknowledged.get(name, number) < number:
                # A client may claim more than there is; the notifications to come would count as acknowledged.
                number = min(number, channel.number)
                channel.acknowledged[name] = self._unwritten[channel.name, name] = number

    def _tell(self, changes: Iterable[AnswerChange]) -> Failures:
        """Send each change when it is found; returns what was refused."""
        logs, entry_of = self._logs, self._entry
        for change in changes:
            self._add(logs[change.name], entry_of(change, self._clock()))
        failures = self._strategy.failures()
        self._close_failed(failures.ended)
        return failures

    def _keep(
        self,
        fresh: Sequence[tuple[Publication, RetryKey | None]],
        changes: Iterable[AnswerChange],
        forgotten: Sequence[int] = (),
    ) -> Failures:
        """Store publications, their changes and acknowledgements in one transaction, then send the changes.

        Refused publications are neither stored nor sent, but returned. Keys of ``forgotten`` publications are deleted.
        """
        at = self._clock()  # one for all, so that equal changes are equal entries and share a row (`entry_groups`)
        entries = [(self._logs[change.name], self._entry(change, at)) for change in changes]
        failures = self._strategy.failures()
        fresh = [publication for publication in fresh if publication[0].number not in failures.refused]
        if not (fresh or entries or self._unwritten or self._gone or failures.ended):
            return failures
        lasts: dict[int, int] = {}
        wanted: list[UnacknowledgedEntry] = []
        for log, entry in entries:
            number = lasts[log.number] = lasts.get(log.number, log.entries.number) + 1
            # Entries are stored for subscribers by name; for the others memory is enough, as they cannot resume after a
            # restart.
            if log.named:
                wanted.append(UnacknowledgedEntry(log.number, number, entry))
        acknowledgements = [Subscriber(channel, name, number) for (channel, name), number in self._unwritten.items()]
        ended = {self._logs[name].number: list(self._logs[name].channels) for name in failures.ended}
        try:
            ended = {**self._gone, **ended}
            self._journal.accept(
                Accepted(fresh, wanted, lasts, acknowledgements, self._settled(lasts), ended, forgotten)
            )
        except NotWrittenError:
            # They have not ended yet: the undo may make them affordable again (`_mend`).
            self._failed |= failures.ended
            raise
        # Sent only now: a subscriber must not see what a crash could take back.
        self._unwritten.clear()
        self._gone.clear()
        self._trimmed.clear()
        for log, entry in entries:
            self._add(log, entry)
        self._close_failed(failures.ended)
        return failures

    def _settle_gone(self) -> None:
        """Delete channels from the journal that ended while nothing could be written; NotWrittenError."""
        if self._gone:
            self._journal.accept(Accepted(ended=self._gone))
            self._gone.clear()

    def _mend(self) -> None:
        """After publications were undone, register queries that they had made too costly again, or end them."""
        failed, self._failed = {**self._failed, **self._strategy.failures().ended}, {}
        for name, why in failed.items():
            log = self._logs[name]
            self._strategy.drop(name)
            try:
                self._strategy.create(name, log.form)
            except TooMuchError:
                self._gone[log.number] = list(log.channels)
                del self._logs[name]
                self.budget.add(log.owner, -log.entries.bytes)
                self._trimmed.discard(log)
                for channel in list(log.channels.values()):
                    self._close(channel, End(f"{why}: the channel was ended", "failed"))

    def _close_failed(self, ended: Mapping[str, str]) -> None:
        """End channels whose answers became too costly; their subscribers get the reason."""
        for name, why in ended.items():
            for channel in list(self._logs[name].channels.values()):
                self._close(channel, End(f"{why}: the channel was ended", "failed"))

    def _settled(self, lasts: dict[int, int]) -> dict[int, int]:
        """By log, the number up to which entries may be deleted: acknowledged by all, or beyond the limits."""
        # Only logs with a new acknowledgement can have settled further.
        acknowledged = {self._channels[channel].log for channel, _ in self._unwritten}
        settled = {acknowledgement.number: acknowledgement.settled for acknowledgement in acknowledged}
        for number, last in lasts.items():
            # The same bound as in memory, or a restart would bring back what had been discarded.
            settled[number] = max(settled.get(number, 0), last - self.limits.kept)
        for log in self._trimmed:
            settled[log.number] = max(settled.get(log.number, 0), log.entries.oldest - 1)
        return settled

    def _add(self, log: Log, entry: AnswerEntry) -> None:
        """Append an entry within the budget of the log's owner; logs trimmed for it are trimmed in the journal next."""
        before, oldest = log.entries.bytes, log.entries.oldest
        log.entries.add(entry, entry.size)
        # Entries beyond the limits were discarded in memory, so the journal may drop them too.
        if log.entries.oldest > oldest:
            self._trimmed.add(log)
        if self.budget.add(log.owner, log.entries.bytes - before):
            self._trimmed.update(self.budget.trim(log.owner, self._logs.values()))

    def _entry(self, change: AnswerChange, at: int) -> AnswerEntry:
        return AnswerEntry(change.causes, change.added, change.removed, at, change.size)

    def _end(self, end: End) -> None:
        """End all subscriptions with a reason."""
        for log in self._logs.values():
            log.entries.end(end)


def _of(owner: str) -> str:
    """``" of this token"`` if there are tokens, to end a sentence's subject."""
    return "" if owner == OPEN else " of this token"
