"""Our broker in the runner's process, which measures the broker without a network."""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Subscribed
from streamgauge.servers.broker.contract import Publication, Strategy
from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.broker.strategies import begin, strategies
from streamgauge.servers.sealed.soundness import JournalError
from streamgauge.suites.sepbm import (
    Configuration,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmSystem,
    UnusableSystemError,
)
from streamgauge.suites.sepbm.adapters import Clock, new_journal

ABOUT: Final = "our broker in the runner's process, with any of its strategies"
OPTIONS: Final = {
    "strategy": "incremental (default), reevaluate, stringrs or graphss",
    "journal": "a folder for a journal, which makes publications durable; without it nothing is",
}

_LIMITS: Final = Limits(lag=1_000_000, kept=1, waiting=100_000)


def start(options: Mapping[str, str], clock: Clock) -> SepbmSystem:
    """A broker without facts, which starts at loading; UnusableSystemError for an unknown strategy."""
    strategy = options.get("strategy", "incremental")
    if strategy not in strategies():
        raise UnusableSystemError(f"there is no strategy {strategy}: there are {', '.join(strategies())}")
    evaluator = "changes" if strategy == "incremental" else "definition"
    return InProcessBroker(partial(begin, strategy), evaluator, options.get("journal"), clock)


class InProcessBroker:
    """The broker with a strategy for an ontology's rules, and with a journal in a folder if given.

    Subscribers are notified in the publishing thread, before its publication is acknowledged.
    """

    def __init__(
        self, strategy: Callable[[Rules], Strategy], evaluator: str | None, journal: str | None, clock: Clock
    ) -> None:
        self.processes = (os.getpid(),)
        self.evaluator = evaluator
        self._strategy, self._folder, self._clock = strategy, journal, clock
        self._subscribed: dict[str, list[Subscribed]] = {}
        self._begun: Broker | None = None

    @property
    def _broker(self) -> Broker:
        if self._begun is None:
            raise UnusableSystemError("the broker has not been loaded yet: load a configuration first")
        return self._begun

    def start(self, configuration: Configuration) -> None:
        """Create the broker with the ontology's rules, and load the base load."""
        try:
            strategy = self._strategy(configuration.rules())
            self._begun = Broker(strategy, self._clock, time.monotonic, self._journal(), _LIMITS)
            self._begun.load(configuration.base())
        except ValueError as error:
            raise UnusableSystemError(str(error)) from error

    def _journal(self) -> SqliteJournal | None:
        if self._folder is None:
            return None
        try:
            return SqliteJournal(new_journal(self._folder))
        except (OSError, JournalError) as error:
            raise UnusableSystemError(str(error)) from error

    def subscribe(self, channel: SepbmChannel, hear: Receive) -> None:
        """Call ``hear`` in the publishing thread; UnusableSystemError for an invalid query."""
        if channel.name not in self._subscribed:
            try:
                self._broker.create_channel(channel.name, channel.query)
            except ValueError as error:
                raise UnusableSystemError(f"channel {channel.name}: {error}") from error
        name, clock = channel.name, self._clock

        def wake() -> None:
            received = clock()
            for _, _, causes, added, removed, evaluated_at, _ in subscribed.take():
                hear(ReceivedNotification(name, causes, added, removed, received, evaluated_at))

        subscribed = self._broker.listen(name, wake)
        self._subscribed.setdefault(name, []).append(subscribed)

    def unsubscribe(self, channel: SepbmChannel) -> None:
        """Delete the channel with its subscribers."""
        for subscription in self._subscribed.pop(channel.name, []):
            subscription.close()
        self._broker.delete_channel(channel.name)

    def feed(self, publication: Publication) -> int:
        """Publish or delete; returns when subscribers have been notified."""
        if publication.removed:
            return self._broker.delete(publication.removed).number
        return self._broker.publish(publication.added).number

    def advance(self, time: int) -> None:  # noqa: ARG002 (a broker has a clock of its own)
        """Evaluate what a heuristic deferred."""
        self._broker.evaluate()

    def settle(self) -> None:
        """Do nothing: subscribers are notified before a publication is acknowledged."""

    def close(self) -> None:
        """Close the broker, if it has begun."""
        if self._begun is not None:
            self._begun.close()
