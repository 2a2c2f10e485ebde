"""A SPARQL store that is polled: all queries are asked again, and the client tells by the answers before what is new.

The closure is kept up to date by the adapter, so that any store will do. Rows that come and go between two polls are
never seen, and nobody knows which publication caused what.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final

from streamgauge.model.terms import Row
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm.contract import Channel, Configuration, Hear, Heard, SepbmSystem, UnusableSystemError
from streamgauge.suites.sepbm.polled import Endpoint, InProcessStore, PolledStore

ABOUT: Final = "a SPARQL store that a client polls, pyoxigraph's or any endpoint"
OPTIONS: Final = {
    "period": "how often all queries are asked again (ms); after each publication unless given",
    "url": "a SPARQL 1.1 endpoint, empty and for this alone; pyoxigraph's store in the runner's process without it",
    "update": "where its updates are taken, when that is another URL",
    "token": "a bearer token for it",
}


def start(options: Mapping[str, str], clock: Callable[[], int]) -> SepbmSystem:
    """A store without facts; UnusableSystemError for options that make no sense."""
    for name in ("update", "token"):
        if name in options and "url" not in options:
            raise UnusableSystemError(f"system polled: {name} is for an endpoint at a url: say which")
    period = options.get("period")
    if period is not None and not (period.isascii() and period.isdigit() and int(period)):
        raise UnusableSystemError(f"system polled: period is {period!r}: expected ms, a whole number from 1")
    url = options.get("url")
    store: PolledStore = (
        InProcessStore() if url is None else Endpoint(url, options.get("update", url), options.get("token"))
    )
    own = (os.getpid(),) if url is None else ()
    return Polled(store, None if period is None else int(period) / 1000, own, clock)


class Polled:
    """One client that polls for all subscribers, in a thread of its own."""

    def __init__(self, store: PolledStore, period: float | None, own: Sequence[int], clock: Callable[[], int]) -> None:
        self.processes = own
        self.evaluator = "definition" if own else None
        self._store, self._period, self._clock = store, period, clock
        self._polled: dict[str, tuple[Channel, set[Row]]] = {}
        self._subscribers: dict[str, list[Hear]] = {}
        self._lock, self._turn = threading.Lock(), threading.Condition()
        self._wanted = self._done = 0
        self._failure: Exception | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._poll, name="sepbm-polls", daemon=True)

    def start(self, configuration: Configuration) -> None:
        """The base load and what follows; polls begin."""
        self._store.load(configuration)
        self._thread.start()

    def subscribe(self, channel: Channel, hear: Hear) -> None:
        """Poll the channel's query from its first subscriber on."""
        if channel.name not in self._polled:
            answer = self._store.rows(channel)
            with self._lock:
                self._polled[channel.name] = (channel, answer)
        self._subscribers.setdefault(channel.name, []).append(hear)

    def unsubscribe(self, channel: Channel) -> None:
        """Poll the channel's query no more."""
        with self._lock:
            del self._polled[channel.name]
        self._subscribers.pop(channel.name, None)

    def feed(self, publication: Publication) -> None:
        """Publish or delete; acknowledged when the store has it."""
        self._check()
        self._store.change(publication.added, publication.removed)
        with self._turn:
            self._wanted += 1
            self._turn.notify_all()

    def settle(self) -> None:
        """Wait for a poll that began after what is acknowledged, to its end."""
        with self._turn:
            wanted = self._wanted
            self._turn.wait_for(lambda: self._done >= wanted or self._failure is not None or self._ending)
        self._check()

    def advance(self, time: int) -> None:
        """Nothing is put off."""

    def close(self) -> None:
        """Polls end."""
        with self._turn:
            self._ending = True
            self._turn.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        self._store.close()

    def _check(self) -> None:
        if self._failure is not None:
            raise UnusableSystemError(f"polling failed: {self._failure}") from self._failure

    def _poll(self) -> None:
        try:
            for seen in iter(self._next, None):
                for name in list(self._polled):
                    self._look(name)
                with self._turn:
                    self._done = seen
                    self._turn.notify_all()
        except Exception as error:
            with self._turn:
                self._failure = error
                self._turn.notify_all()

    def _next(self) -> int | None:
        """Wait for the next poll: how many publications are acknowledged then, ``None`` at the end."""
        with self._turn:
            if self._period is None:
                self._turn.wait_for(lambda: self._ending or self._wanted > self._done)
            else:
                now = monotonic()
                self._turn.wait_for(lambda: self._ending, self._period - now % self._period)
            return None if self._ending else self._wanted

    def _look(self, name: str) -> None:
        with self._lock:
            if name not in self._polled:
                return
            channel, before = self._polled[name]
            now = self._store.rows(channel)
            self._polled[name] = (channel, now)
        if now == before:
            return
        told = Heard(name, (), tuple(now - before), tuple(before - now), self._clock())
        for hear in list(self._subscribers.get(name, ())):
            hear(told)
