"""SPARQL stores that a client polls: asked again and again, told of changes by updates of the closure's facts."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Final, Protocol

import httpx

from streamgauge.formats.results import MEDIA_TYPE, ResultsError, rows
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Triple
from streamgauge.query import parse_sparql
from streamgauge.reasoning.closure import Closure
from streamgauge.semantics.stored_query import StoredQuery
from streamgauge.servers.broker.calls import bearing
from streamgauge.servers.broker.evaluating import StoredClosure
from streamgauge.suites.sepbm.contract import Channel, Configuration, UnusableSystemError

_PATIENCE_S: Final = 600.0
_PART: Final = 5000
"""Triples of one update of the base load."""


class Store(Protocol):
    """Facts with what follows from them, and their answers; from any thread."""

    def load(self, configuration: Configuration) -> None:
        """The base load and what follows."""
        ...

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> None:
        """Facts go, then come."""
        ...

    def rows(self, channel: Channel) -> set[Row]:
        """A channel's answer."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


class InProcess:
    """pyoxigraph's store in memory, one thread at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queries: dict[str, StoredQuery] = {}

    def load(self, configuration: Configuration) -> None:
        """The base load and what follows."""
        self._stored = StoredClosure(configuration.rules())
        self._stored.load(configuration.base())

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> None:
        """Facts go, then come."""
        with self._lock:
            self._stored.change(added, removed)

    def rows(self, channel: Channel) -> set[Row]:
        """A channel's answer."""
        with self._lock:
            query = self._queries.get(channel.query)
            if query is None:
                query = self._queries[channel.query] = _stored_query(channel)
            return self._stored.rows(query)

    def close(self) -> None:
        """Nothing is open."""


class Endpoint:
    """A SPARQL 1.1 endpoint over HTTP, with Update; its closure is kept here, its differences are sent."""

    def __init__(self, query: str, update: str, token: str | None) -> None:
        self._query, self._update, self._headers = query, update, bearing(token)
        self._http = httpx.Client(timeout=_PATIENCE_S, limits=httpx.Limits(max_connections=None), trust_env=False)
        self._lock = Lock()

    def load(self, configuration: Configuration) -> None:
        """The base load and what follows, in parts."""
        self._closure = Closure(configuration.rules())
        self._closure.load(configuration.base())
        facts = self._closure.facts.match(None, None, None)
        while part := list(islice(facts, _PART)):
            self._send(_data("INSERT", part))

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> None:
        """Facts go, then come, as one update."""
        with self._lock:
            came, went = self._closure.change(added, removed)
            parts = [_data(name, facts) for name, facts in (("DELETE", went), ("INSERT", came)) if facts]
            if parts:
                self._send(" ;\n".join(parts))

    def _send(self, update: str) -> None:
        self._post(self._update, update, "application/sparql-update")

    def rows(self, channel: Channel) -> set[Row]:
        """A channel's answer; UnusableSystemError for what is no result."""
        found = self._post(self._query, channel.query, "application/sparql-query")
        try:
            names, listed = rows(found.json())
            places = [names.index(name) for name in _variables(channel)]
        except (ValueError, ResultsError) as error:
            raise UnusableSystemError(f"{self._query}: channel {channel.name}: {error}") from error
        return {tuple([row[place] for place in places]) for row in listed}

    def _post(self, url: str, text: str, kind: str) -> httpx.Response:
        headers = {**self._headers, "Content-Type": kind, "Accept": MEDIA_TYPE}
        try:
            found = self._http.post(url, content=text.encode(), headers=headers)
        except httpx.TransportError as error:
            raise UnusableSystemError(f"{url}: {error or type(error).__name__}: is a SPARQL endpoint there?") from error
        if not found.is_success:
            raise UnusableSystemError(f"{url} answers {found.status_code}: {found.text:.300}")
        return found

    def close(self) -> None:
        """Leave."""
        self._http.close()


def _data(operation: str, facts: Iterable[Triple]) -> str:
    lines = "".join([f"{subject} {predicate} {end} .\n" for subject, predicate, end in facts])
    return f"{operation} DATA {{\n{lines}}}"


@lru_cache(maxsize=20_000)
def _variables(channel: Channel) -> tuple[str, ...]:
    return channel.variables


def _stored_query(channel: Channel) -> StoredQuery:
    form = parse_sparql(channel.query)
    if not isinstance(form, al.Select):
        raise ValueError(f"channel {channel.name}: only a SELECT can be polled")
    return StoredQuery(form)
