"""Sinks that post messages over HTTP in order, each until the server accepts it.

Transient errors (5xx, 429, 408, server unavailable) are retried; a permanent refusal makes a dead letter.
"""

import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Final

import httpx

from streamgauge.model.mistake import obstacle
from streamgauge.outgoing.clients import ExchangeLimits, client
from streamgauge.outgoing.failures import permanent_failure, permanent_status
from streamgauge.outgoing.guarded import PORTS
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.contract import Address, Delivery, SourceError
from streamgauge.sources.decoders import DeadLetters, Letter, Pending, PendingSink, shorter

EXCHANGE: Final = ExchangeLimits(seconds=30.0, received=2**20)
STOP_S: Final = 0.5
"""Seconds that a running exchange may still take when the patience is used up."""

MAX_DELAY_S: Final = 60.0
"""Maximum delay between two attempts, s."""


@dataclass(frozen=True, slots=True)
class PostOptions:
    """Options of all sinks that post: ``buffer`` messages may wait, each is retried for ``patience`` ms.

    ``wait`` (ms) is the time for capacity, and for the last messages on closing. ``token`` is a bearer token, ``query``
    the query string for the server, ``dead`` a file for undelivered messages.
    """

    buffer: int = 10_000
    wait: int = 30_000
    patience: int = 600_000
    token: str | None = None
    query: str = ""
    ca: str | None = None
    dead: str | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """A request: body, headers, and query parameters."""

    body: bytes
    headers: Mapping[str, str]
    parameters: Mapping[str, str] | None = None


class PostSink(PendingSink):
    """Posts ``request(message)`` for each message to an address, in order, in its own thread.

    ``request`` raises ValueError for a message that cannot be sent.
    """

    def __init__(
        self, address: Address, options: PostOptions, request: Callable[[Letter], Post], random: Random
    ) -> None:
        scheme = address.scheme.rpartition("+")[2]
        if not address.host:
            raise SourceError(f"{address.text}: the host is missing: write {address.scheme}://HOST/PATH")
        self._address, self._options, self._request, self._random = address, options, request, random
        # ``urlsplit`` removes the brackets of an IPv6 address.
        host = f"[{address.host}]" if ":" in address.host else address.host
        port = "" if address.port is None else f":{address.port}"
        self._url = httpx.URL(f"{scheme}://{host}{port}{address.path or '/'}").copy_with(query=options.query.encode())
        dead = DeadLetters(options.dead, address.text)
        self._pending = Pending(options.buffer, options.wait / 1000, dead, lambda: self._trouble)
        self._waiting: deque[Letter] = deque()
        self._changed, self._lock = Condition(), Lock()
        self._trouble, self._ending = "not accepted yet", False
        self._result: Delivery | None = None
        trusted = True if options.ca is None else ssl.create_default_context(cafile=options.ca)
        login = None if address.user is None else (address.user, address.password or "")
        # The user's own choice of address may be on the private network, which other outgoing requests may not reach.
        place = {(address.host, address.port or PORTS[scheme])}
        self._client = client(EXCHANGE, verify=trusted, auth=login, private=place)
        self._thread = Thread(target=self._run, name=f"post {address.host}", daemon=True)
        self._thread.start()

    def send(self, message: bytes, key: str | None = None) -> None:
        """Hand over a message; by the key the server recognises duplicates."""
        if self._result is not None:
            raise SourceError(f"{self._address.text}: the sink is closed")
        letter = Letter(message, key)
        if self._pending.enter(letter):
            with self._changed:
                self._waiting.append(letter)
                self._changed.notify_all()

    def close(self, patience: float | None = None) -> Delivery:
        """``settle``, at most for ``patience`` (s), then stop; the remaining messages become dead letters."""
        with self._lock:
            if self._result is None:
                self._result = self._pending.end(patience)
                with self._changed:
                    self._ending = True
                    self._changed.notify_all()
                self._thread.join(shorter(EXCHANGE.seconds, None if patience is None else STOP_S))
                # The thread may still be in an exchange: then that message is a dead letter although it may have
                # arrived.
                self._pending.bury(self._waiting, self._trouble)
                self._client.close()
            return self._result

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if self._ending:
                    return
                # Removed only after the attempt, so that ``close`` finds it if the sink stops meanwhile.
                letter = self._waiting[0]
            refused = self._delivered(letter)
            if refused is None:
                return  # the sink is closing, and ``close`` stores the remaining messages
            with self._changed:
                self._waiting.popleft()
            if refused:
                self._pending.lost(refused, letter)
            else:
                self._pending.delivered()

    def _delivered(self, letter: Letter) -> str | None:
        """The reason for a permanent refusal, empty on success; ``None`` if the sink closed meanwhile."""
        backoff, until = Backoff(self._random, most=MAX_DELAY_S), monotonic() + self._options.patience / 1000
        while True:
            refused, passing = self._tried(letter)
            if not refused or not passing:
                return refused
            self._trouble = refused
            if monotonic() > until:
                return f"refused for {self._options.patience} ms: {refused}"
            with self._changed:
                if self._changed.wait_for(lambda: self._ending, backoff.next()):
                    return None

    def _tried(self, letter: Letter) -> tuple[str, bool]:
        """(reason for a refusal, empty on success; whether a later attempt may succeed)."""
        try:
            post = self._request(letter)
        except ValueError as error:
            return str(error), False
        bearer = {"Authorization": f"Bearer {self._options.token}"} if self._options.token else {}
        headers = {"User-Agent": "streamgauge", **bearer, **post.headers}
        url = self._url.copy_merge_params(post.parameters) if post.parameters else self._url
        try:
            with self._client.stream("POST", url, content=post.body, headers=headers) as response:
                if response.is_success:
                    return "", False
                text = response.read()[:200].decode("utf-8", "replace").strip()
                return f"status {response.status_code}: {text}", not permanent_status(response.status_code)
        except (httpx.HTTPError, OSError) as error:
            permanent = permanent_failure(error)
            return permanent or obstacle(error) or type(error).__name__, not permanent
