"""The fragments server on the web: a plain ASGI application, as a request costs little more than what is called."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias

from starlette.types import Message, Receive, Scope, Send

from streamgauge.servers.fragments.quads import VERSION
from streamgauge.servers.fragments.serving.addresses import Addressing, HostError, of_host
from streamgauge.servers.fragments.serving.asked import AskedError
from streamgauge.servers.fragments.serving.bodies import Representation
from streamgauge.servers.fragments.serving.changing import Changing
from streamgauge.servers.fragments.serving.counting import Counts
from streamgauge.servers.fragments.serving.dataset import DataSet, TooManyError
from streamgauge.servers.fragments.serving.events import FragmentEvents
from streamgauge.servers.fragments.serving.freshness import clock_headers, last_modified, lifetime, unchanged
from streamgauge.servers.fragments.serving.limits import Limits
from streamgauge.servers.fragments.serving.openapi import description
from streamgauge.servers.fragments.serving.past import Past
from streamgauge.servers.fragments.serving.reading import Reading, UnacceptableError
from streamgauge.servers.fragments.serving.replying import Header, Reply, reply_with, told
from streamgauge.servers.fragments.serving.selection import Selection
from streamgauge.servers.fragments.storing.shelf import DamagedStoreError
from streamgauge.servers.http import metrics
from streamgauge.servers.http.gates import CrowdedError, Gate
from streamgauge.servers.http.origins import ASKED

Headers: TypeAlias = Mapping[bytes, bytes]

Mounted: TypeAlias = Callable[[DataSet, Scope, Receive, Send], Awaitable[None]]
"""What answers a request that is not for a page."""

READS: Final = ("GET", "HEAD", "OPTIONS")
WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")

SCANS: Final = 64
"""Requests that wait for quads to be looked at one by one."""

_LOG = logging.getLogger(__name__)
_STATUS: Final = {HostError: 400, AskedError: 400, TooManyError: 422, UnacceptableError: 406, DamagedStoreError: 503}
_VERSION: Final = VERSION.lower().encode()


class Mount(Protocol):
    """Requests of a data set that are not for a page: writing, events, changes."""

    def takes(self, method: str, query: bytes, headers: Headers) -> bool:
        """Whether such a request is for it."""
        ...

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""
        ...

    def leave(self) -> None:
        """End what is under way, from any thread."""
        ...


class Face:
    """Pages of data sets at ``/name``, their list at ``/``, ``/health`` and ``/metrics``; the rest is mounted."""

    def __init__(
        self, datasets: Sequence[DataSet], limits: Limits, addressing: Addressing, mounts: Sequence[Mount]
    ) -> None:
        if not datasets:
            raise ValueError("there is no data set to serve: give one")
        self._datasets = {dataset.name: dataset for dataset in datasets}
        self._limits, self._mounts = limits, mounts
        self._scans = Gate(SCANS, "have quads compared one by one")
        self._clock, self.counts = datasets[0].clock, Counts()
        self._reading = Reading(datasets, limits, addressing, self.counts)
        self._allowed = ", ".join((*READS, *(each for each in WRITES if self._mount(each, b"", {})))).encode()

    def leave(self) -> None:
        """End long responses, from any thread."""
        for mount in self._mounts:
            mount.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await _other(scope, receive, send)
            return
        name, headers = "", dict(scope["headers"])
        try:
            reply: Reply | Mounted
            if scope["method"] in ("GET", "HEAD") and (kept := self._reading.kept(scope, headers)) is not None:
                name, reply = kept.dataset.name, self._page(kept, headers)
            else:
                name, reply = self._answer(scope, headers)
        except tuple(_STATUS) as error:
            reply = told(_STATUS[type(error)], str(error))
        except Exception:
            _LOG.exception("%s %s", scope["method"], scope["path"])
            reply = told(500, "the server failed at this request; its log says how")
        if isinstance(reply, Reply):
            self._count(name or scope["path"][1:], reply.status, 0 if scope["method"] == "HEAD" else len(reply.body))
            await reply_with(reply, scope["method"], send, *clock_headers(self._clock()))
        else:
            await reply(self._datasets[name], scope, receive, self._counted(name, send))

    def _answer(self, scope: Scope, headers: Headers) -> tuple[str, Reply | Mounted]:
        """The reply, and the name of the data set that it is about."""
        method, path = scope["method"], scope["path"]
        if len(scope["query_string"]) + len(path) > self._limits.address:
            return "", told(414, f"the address is longer than {self._limits.address} bytes: ask for less at once")
        if method == "OPTIONS":
            return "", self._options()
        name = path[1:]
        if name in self._datasets:
            mounted = self._mount(method, scope["query_string"], headers)
            return name, mounted if mounted is not None else self._read(name, scope, headers)
        return "", self._elsewhere(method, path, scope, headers)

    def _read(self, name: str, scope: Scope, headers: Headers) -> Reply | Mounted:
        if scope["method"] not in READS:
            return self._refused(scope["method"])
        selection = self._reading.lacks(self._datasets[name], scope)
        if selection is not None:
            return partial(self._scanned, selection)
        return self._page(self._reading.made(self._datasets[name], scope, headers), headers)

    async def _scanned(
        self,
        selection: Selection,
        dataset: DataSet,
        scope: Scope,
        receive: Receive,  # noqa: ARG002
        send: Send,
    ) -> None:
        """A page of what has to be looked at quad by quad: in a thread, for one request after the other."""
        headers = dict(scope["headers"])
        try:
            async with self._scans.through():
                if dataset.lacks(selection):
                    dataset.hold(selection, await asyncio.to_thread(dataset.scanned, selection))
            reply = self._page(self._reading.made(dataset, scope, headers), headers)
        except CrowdedError as error:
            reply = told(503, str(error), (b"retry-after", b"1"))
        except tuple(_STATUS) as error:
            reply = told(_STATUS[type(error)], str(error))
        await reply_with(reply, scope["method"], send, *clock_headers(self._clock()))

    def _elsewhere(self, method: str, path: str, scope: Scope, headers: Headers) -> Reply:
        if path not in ("/", "/health", "/metrics", "/openapi.json"):
            return told(
                404, f"nothing is at {path[:80]}: data sets are at {', '.join('/' + n for n in self._datasets)}"
            )
        if method not in READS:
            return self._refused(method)
        if path == "/health":
            return Reply(
                200, [(b"content-type", b"application/json"), (b"cache-control", b"no-store")], b'{"status":"up"}'
            )
        if path == "/openapi.json":
            text = json.dumps(description(tuple(self._datasets)))
            return Reply(200, [(b"content-type", b"application/json")], text.encode())
        if path == "/metrics":
            text = metrics.exposition(self.counts.metrics(tuple(self._datasets.values()), self._reading.held))
            return Reply(200, [(b"content-type", metrics.MEDIA_TYPE.encode())], text.encode())
        return self._reading.listing(scope, headers)

    def _page(self, shown: Representation, headers: Headers) -> Reply:
        dataset, now = shown.dataset, shown.dataset.clock()
        modified = last_modified(shown.page, now)
        timed: list[Header] = [
            *lifetime(dataset, shown.page, now),
            (_VERSION, dataset.version),
            *([] if modified is None else [(b"last-modified", modified)]),
        ]
        match, since = headers.get(b"if-none-match"), headers.get(b"if-modified-since")
        if (match or since) and unchanged(shown.tag, modified, match, since):
            return Reply(304, [*shown.kept_headers, *timed])
        return Reply(200, [*shown.headers, *timed], shown.body)

    def _options(self) -> Reply:
        headers = [
            (b"allow", self._allowed),
            (b"access-control-allow-methods", self._allowed),
            (b"access-control-allow-headers", ASKED.encode()),
            (b"access-control-max-age", b"86400"),
        ]
        return Reply(204, headers)

    def _refused(self, method: str) -> Reply:
        return told(405, f"{method[:20]} is not served here, but {self._allowed.decode()}", (b"allow", self._allowed))

    def _mount(self, method: str, query: bytes, headers: Headers) -> Mounted | None:
        return next((mount for mount in self._mounts if mount.takes(method, query, headers)), None)

    def _count(self, name: str, status: int, size: int) -> None:
        self.counts.requests[name if name in self._datasets else "", status] += 1
        self.counts.bytes += size

    def _counted(self, name: str, send: Send) -> Send:
        """What is mounted sends by itself: events for as long as they are listened to."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(name, message["status"], 0)
            else:
                self.counts.bytes += len(message.get("body", b""))
            await send(message)

        return sent


def application(
    datasets: Sequence[DataSet],
    mounts: Sequence[Mount] = (),
    limits: Limits | None = None,
    addressing: Addressing = of_host,
) -> Face:
    """The server of data sets: their pages of now and then, what changed, events, and what is mounted beside."""
    limits = limits or Limits()
    reads = FragmentEvents(addressing, limits.subscribers), Changing(addressing), Past(addressing)
    return Face(datasets, limits, addressing, (*reads, *mounts))


async def _other(scope: Scope, receive: Receive, send: Send) -> None:
    """Begin and end of the process; nothing else is spoken here than HTTP."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "not served here"})
        return
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})
