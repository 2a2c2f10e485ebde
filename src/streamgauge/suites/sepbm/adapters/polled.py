"""A SPARQL store that is polled: all queries are asked again, and the client tells by the answers before what is new.

The closure is kept up to date by the adapter, so that any store will do. Rows that come and go between two polls are
never seen, and nobody knows which publication caused what.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streamgauge.model.terms import Row, Triple
from streamgauge.suites.sepbm.contract import Channel, Configuration, Hear, Heard, UnusableSystemError
from streamgauge.suites.sepbm.polled import Endpoint, InProcess, Store

ABOUT: Final = "a SPARQL store that a client polls, pyoxigraph's or any endpoint"
OPTIONS: Final = {
    "period": "how often all queries are asked again (ms); after each publication unless given",
    "url": "a SPARQL 1.1 endpoint, empty and for this alone; pyoxigraph's store in the runner's process without it",
    "update": "where its updates are taken, when that is another URL",
    "token": "a bearer token for it",
}


def start(options: Mapping[str, str], clock: Callable[[], int]) -> "Polled":
    """A store without facts; UnusableSystemError for options that make no sense."""
    for name in ("update", "token"):
        if name in options and "url" not in options:
            raise UnusableSystemError(f"system polled: {name} is for an endpoint at a url: say which")
    period = options.get("period")
    if period is not None and not (period.isascii() and period.isdigit() and int(period)):
        raise UnusableSystemError(f"system polled: period is {period!r}: expected ms, a whole number from 1")
    url = options.get("url")
    store: Store = InProcess() if url is None else Endpoint(url, options.get("update", url), options.get("token"))
    own = (os.getpid(),) if url is None else ()
    return Polled(store, None if period is None else int(period) / 1000, own, clock)


class Polled:
    """One client that polls for all subscribers, in a thread of its own."""

    def __init__(self, store: Store, period: float | None, own: Sequence[int], clock: Callable[[], int]) -> None:
        self.processes = own
        self.evaluator = "definition" if own else None
        self._store, self._period, self._clock = store, period, clock
        self._asked: dict[str, tuple[Channel, set[Row]]] = {}
        self._ears: dict[str, list[Hear]] = {}
        self._lock, self._turn = threading.Lock(), threading.Condition()
        self._wanted = self._done = 0
        self._failure: Exception | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._poll, name="sepbm-polls", daemon=True)

    def load(self, configuration: Configuration) -> None:
        """The base load and what follows; polls begin."""
        self._store.load(configuration)
        self._thread.start()

    def create_channel(self, channel: Channel) -> None:
        """A query that is asked from now on, and its answer as it is."""
        answer = self._store.rows(channel)
        with self._lock:
            self._asked[channel.name] = (channel, answer)

    def delete_channel(self, name: str) -> None:
        """It is asked no more."""
        with self._lock:
            del self._asked[name]
        self.unsubscribe(name)

    def subscribe(self, name: str, hear: Hear) -> None:
        """Told by the client that polls."""
        self._ears.setdefault(name, []).append(hear)

    def unsubscribe(self, name: str) -> None:
        """All of the channel's leave."""
        self._ears.pop(name, None)

    def publish(self, graph: Sequence[Triple]) -> None:
        """Acknowledged when the store has it."""
        self._change(graph, ())

    def delete(self, graph: Sequence[Triple]) -> None:
        """Acknowledged likewise."""
        self._change((), graph)

    def _change(self, added: Sequence[Triple], removed: Sequence[Triple]) -> None:
        self._check()
        self._store.change(added, removed)
        with self._turn:
            self._wanted += 1
            self._turn.notify_all()

    def settle(self) -> None:
        """Wait for a poll that began after what is acknowledged, to its end."""
        with self._turn:
            wanted = self._wanted
            self._turn.wait_for(lambda: self._done >= wanted or self._failure is not None or self._ending)
        self._check()

    finish = settle

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
                for name in list(self._asked):
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
                now = time.monotonic()
                self._turn.wait_for(lambda: self._ending, self._period - now % self._period)
            return None if self._ending else self._wanted

    def _look(self, name: str) -> None:
        with self._lock:
            if name not in self._asked:
                return
            channel, before = self._asked[name]
            now = self._store.rows(channel)
            self._asked[name] = (channel, now)
        if now == before:
            return
        told = Heard(name, (), tuple(now - before), tuple(before - now), self._clock())
        for hear in list(self._ears.get(name, ())):
            hear(told)
