"""A polled SPARQL store: all queries are evaluated again, and answers are compared with the previous ones.

The adapter maintains the closure, so that any store will do. Rows that come and go between two polls are never seen,
and notifications name no causes.
"""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from time import monotonic
from typing import Final

import httpx

from streamgauge.formats.results import MEDIA_TYPE, ResultsError, rows
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Triple
from streamgauge.outgoing.clients import client, crowd_limits
from streamgauge.reasoning.closure import Closure
from streamgauge.servers.broker.client import bearing
from streamgauge.servers.broker.contract import Publication
from streamgauge.servers.broker.evaluation import IndexedClosure
from streamgauge.suites.sepbm import (
    Configuration,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmSystem,
    UnusableSystemError,
)
from streamgauge.suites.sepbm.adapters import Clock, data_update, in_parts, post

_PATIENCE_S: Final = 600.0


class InProcessStore:
    """Facts and their closure in memory; a lock serialises threads."""

    def __init__(self) -> None:
        self._lock = Lock()

    def load(self, configuration: Configuration) -> None:
        """Load the base load and its closure."""
        self._stored = IndexedClosure(configuration.rules())
        self._stored.load(configuration.base())

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> None:
        """Remove facts, then add facts."""
        with self._lock:
            self._stored.change(added, removed)

    def rows(self, channel: SepbmChannel) -> set[Row]:
        """The current answer of a channel."""
        with self._lock:
            return self._stored.rows(_form(channel))

    def close(self) -> None:
        """Do nothing: no connection is open."""


class SparqlEndpoint:
    """A SPARQL 1.1 endpoint with Update over HTTP; the closure is computed here, and its changes are sent."""

    def __init__(self, query: str, update: str, token: str | None) -> None:
        self._query, self._update, self._headers = query, update, bearing(token)
        self._http = client(crowd_limits(_PATIENCE_S))
        self._lock = Lock()

    def load(self, configuration: Configuration) -> None:
        """Insert the base load and all facts derived from it, in several updates."""
        self._closure = Closure(configuration.rules())
        self._closure.load(configuration.base())
        for part in in_parts(self._closure.facts.match(None, None, None)):
            self._send(data_update("INSERT", part))

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> None:
        """Remove facts, then add facts, as one update."""
        with self._lock:
            came, went = self._closure.change(added, removed)
            parts = [data_update(name, facts) for name, facts in (("DELETE", went), ("INSERT", came)) if facts]
            if parts:
                self._send(" ;\n".join(parts))

    def _send(self, update: str) -> None:
        self._post(self._update, update, "application/sparql-update")

    def rows(self, channel: SepbmChannel) -> set[Row]:
        """The current answer of a channel; UnusableSystemError for a response that is not a result."""
        response = self._post(self._query, channel.query, "application/sparql-query")
        try:
            names, listed = rows(response.json())
            places = [names.index(name) for name in _form(channel).variables]
        except (ValueError, ResultsError) as error:
            raise UnusableSystemError(f"{self._query}: channel {channel.name}: {error}") from error
        return {tuple([row[place] for place in places]) for row in listed}

    def _post(self, url: str, text: str, kind: str) -> httpx.Response:
        headers = {**self._headers, "Content-Type": kind, "Accept": MEDIA_TYPE}
        return post(self._http, url, text, headers, ": is a SPARQL endpoint there?")

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._http.close()


@lru_cache(maxsize=20_000)
def _form(channel: SepbmChannel) -> al.Select:
    """A channel's query, parsed once instead of at each poll."""
    return channel.form


ABOUT: Final = "a SPARQL store that a client polls, ours or any endpoint"
OPTIONS: Final = {
    "period": "the interval of polls (ms; default: after each publication)",
    "url": "an empty SPARQL 1.1 endpoint for exclusive use (default: facts in the runner's process)",
    "update": "the URL of its updates, if it differs",
    "token": "a bearer token for it",
}


def start(options: Mapping[str, str], clock: Clock) -> SepbmSystem:
    """A store without facts; UnusableSystemError for conflicting options."""
    for name in ("update", "token"):
        if name in options and "url" not in options:
            raise UnusableSystemError(f"system polled: {name} needs url, the address of an endpoint")
    period = options.get("period")
    if period is not None and not (period.isascii() and period.isdigit() and int(period)):
        raise UnusableSystemError(f"system polled: period is {period!r}: expected milliseconds, an integer from 1")
    url = options.get("url")
    store: InProcessStore | SparqlEndpoint = (
        InProcessStore() if url is None else SparqlEndpoint(url, options.get("update", url), options.get("token"))
    )
    own = (os.getpid(),) if url is None else ()
    return PolledSystem(store, None if period is None else int(period) / 1000, own, clock)


class PolledSystem:
    """One client that polls for all subscribers, in its own thread."""

    def __init__(
        self,
        store: InProcessStore | SparqlEndpoint,
        period: float | None,
        own: Sequence[int],
        clock: Clock,
    ) -> None:
        self.processes = own
        self.evaluator = "definition" if own else None
        self._store, self._period, self._clock = store, period, clock
        self._polled: dict[str, tuple[SepbmChannel, set[Row]]] = {}
        self._subscribers: dict[str, list[Receive]] = {}
        self._lock, self._turn = threading.Lock(), threading.Condition()
        self._wanted = self._done = 0
        self._failure: Exception | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._poll, name="sepbm-polls", daemon=True)

    def start(self, configuration: Configuration) -> None:
        """Load the base load and its closure, then begin to poll."""
        self._store.load(configuration)
        self._thread.start()

    def subscribe(self, channel: SepbmChannel, hear: Receive) -> None:
        """Poll the channel's query from its first subscriber on."""
        if channel.name not in self._polled:
            answer = self._store.rows(channel)
            with self._lock:
                self._polled[channel.name] = (channel, answer)
        self._subscribers.setdefault(channel.name, []).append(hear)

    def unsubscribe(self, channel: SepbmChannel) -> None:
        """Stop polling the channel's query."""
        with self._lock:
            del self._polled[channel.name]
        self._subscribers.pop(channel.name, None)

    def feed(self, publication: Publication) -> None:
        """Publish or delete; acknowledged once the store has it."""
        self._check()
        self._store.change(publication.added, publication.removed)
        with self._turn:
            self._wanted += 1
            self._turn.notify_all()

    def settle(self) -> None:
        """Wait for the end of a poll that began after the last acknowledgement."""
        with self._turn:
            wanted = self._wanted
            self._turn.wait_for(lambda: self._done >= wanted or self._failure is not None or self._ending)
        self._check()

    def advance(self, time: int) -> None:
        """Do nothing: no evaluation is deferred."""

    def close(self) -> None:
        """Stop polling and close the store."""
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
                    # Only what was acknowledged before the poll began is certain to be in its answers.
                    self._done = seen
                    self._turn.notify_all()
        except Exception as error:
            with self._turn:
                self._failure = error
                self._turn.notify_all()

    def _next(self) -> int | None:
        """Wait for the next poll; the number of publications acknowledged by then, ``None`` at the end."""
        with self._turn:
            if self._period is None:
                self._turn.wait_for(lambda: self._ending or self._wanted > self._done)
            else:
                now = monotonic()
                # Polls begin at multiples of the period on the clock, however long the one before took.
                self._turn.wait_for(lambda: self._ending, self._period - now % self._period)
            return None if self._ending else self._wanted

    def _look(self, name: str) -> None:
        with self._lock:
            if name not in self._polled:
                return
            # Evaluated under the lock, so that nothing is sent for a channel after ``unsubscribe`` has returned.
            channel, before = self._polled[name]
            now = self._store.rows(channel)
            self._polled[name] = (channel, now)
        if now == before:
            return
        notification = ReceivedNotification(name, (), tuple(now - before), tuple(before - now), self._clock())
        for hear in list(self._subscribers.get(name, ())):
            hear(notification)
