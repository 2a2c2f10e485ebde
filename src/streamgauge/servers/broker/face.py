"""The broker on the web: requests in, notifications out; everything that is decided is decided in the core."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from streamgauge.formats.results import MEDIA_TYPE as RESULTS
from streamgauge.model.terms import Triple
from streamgauge.query import QueryError
from streamgauge.query.updates import TooManySolutionsError, UpdateOperation
from streamgauge.servers.broker.access import Access, AccessError
from streamgauge.servers.broker.acknowledgements import acknowledged
from streamgauge.servers.broker.broker import Broker, FailedError, Receipt
from streamgauge.servers.broker.channels import (
    Channel,
    ExistingChannelError,
    ForeignNameError,
    Subscribed,
    UnknownChannelError,
)
from streamgauge.servers.broker.contract import Notification
from streamgauge.servers.broker.graphs import GraphError, Graphs, MediaTypeError, read_changes
from streamgauge.servers.broker.hooks import Hook, Hooks
from streamgauge.servers.broker.journal import JournalError
from streamgauge.servers.broker.limits import BusyError, LimitError
from streamgauge.servers.broker.notification_json import Telling, standing
from streamgauge.servers.broker.openapi import description
from streamgauge.servers.broker.preconditions import channel_demands, subscriber_demands
from streamgauge.servers.broker.publication_worker import Worker
from streamgauge.servers.broker.registry import OPERATOR
from streamgauge.servers.broker.sepa import PREFIX, Conversation, SharedChannels, refuse_graph_parameters
from streamgauge.servers.broker.status import metrics, status, subscriber_status
from streamgauge.servers.http import events
from streamgauge.servers.http.access import OPEN, CrossOrigin, Guard, Origins, given
from streamgauge.servers.http.fanout import CONNECTION, PUSH, Fanouts, Member, as_events, chunk, converse, frames
from streamgauge.servers.http.headers import (
    ConditionError,
    PreconditionError,
    read_conditions,
)
from streamgauge.servers.http.limits import STATUS, CrowdedError, Gate, load_parsers, read_body, text
from streamgauge.servers.http.metrics import MEDIA_TYPE, exposition
from streamgauge.servers.http.replies import json_tag, problem, tagged_json
from streamgauge.servers.http.retries import BadKeyError, KeyReuseError, RetryKey, read_key

FREE: Final = ("/", "/health", "/openapi.json")
"""Paths that need no token: they tell nothing of facts and channels."""

LONGEST_NAME: Final = 200
"""Characters of a channel's or subscriber's name."""


class UnknownSubscriberError(KeyError):
    """No subscriber of that name is on a channel."""

    def __str__(self) -> str:
        return f"there is no subscriber {self.args[0]} on this channel"


_STATUS: Final[dict[type[Exception], int]] = {
    **STATUS,
    LimitError: 422,
    TooManySolutionsError: 422,
    MediaTypeError: 415,
    ExistingChannelError: 409,
    UnknownChannelError: 404,
    UnknownSubscriberError: 404,
    AccessError: 403,
    ForeignNameError: 403,
    KeyReuseError: 422,
    BadKeyError: 400,
    PreconditionError: 412,
    ConditionError: 400,
    BusyError: 429,
    CrowdedError: 429,
    FailedError: 503,
    JournalError: 503,
    GraphError: 400,
    QueryError: 400,
    events.EventError: 400,
    ValueError: 400,
}
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
)


def application(
    broker: Broker, access: Access | None = None, hooks: Sequence[Hook] = (), origins: Origins | None = None
) -> Starlette:
    """The service for a core, which is closed when the service ends; pages of ``origins`` may use the service."""
    face = BrokerApp(broker, access or Access(), hooks)
    one, told = "/channels/{name}", "/channels/{name}/notifications"
    routes = [
        Route("/", face.page),
        Route("/publish", face.publish, methods=["POST"]),
        Route("/delete", face.delete, methods=["POST"]),
        Route("/update", face.update, methods=["POST"]),
        Route("/channels", face.channels),
        Route(one, face.create_channel, methods=["PUT"]),
        Route(one, face.delete_channel, methods=["DELETE"]),
        Route(one, face.channel),
        Route(f"{one}/rows", face.rows),
        Route(told, face.subscribe),
        WebSocketRoute(told, face.subscribe_by_websocket),
        WebSocketRoute("/subscribe", face.talk_as_sepa),
        Route(f"{one}/subscribers", face.subscribers),
        Route(f"{one}/subscribers/{{subscriber}}", face.subscriber),
        Route(f"{one}/subscribers/{{subscriber}}", face.acknowledge, methods=["PUT"]),
        Route(f"{one}/subscribers/{{subscriber}}", face.unsubscribe, methods=["DELETE"]),
        Route("/health", face.health),
        Route("/metrics", face.metrics),
        Route("/openapi.json", face.openapi),
    ]
    guards = [Middleware(Guard, tokens=face.access.tokens, free=FREE, origins=origins)]
    if origins:
        guards.insert(0, Middleware(CrossOrigin, origins=origins))
    handlers: dict[Any, Any] = dict.fromkeys(_STATUS, _told)
    return Starlette(routes=routes, middleware=guards, exception_handlers=handlers, lifespan=face.lifespan)


async def _told(_request: Request, error: Exception) -> Response:
    """An expected error as its sentence."""
    code = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    return problem(code, str(error), {"Retry-After": "1"} if code in (429, 503) else None)


class BrokerApp:
    """The handlers, one per route."""

    def __init__(self, broker: Broker, access: Access, hooks: Sequence[Hook] = ()) -> None:
        self.access = access
        self._broker, self._worker = broker, Worker(broker)
        self._graphs, self._telling = Graphs(broker.limits.graph, broker.limits.term), Telling()
        self._creation = Gate(broker.limits.creations, "begin a channel")
        self._understanding = Gate(broker.limits.creations, "have long updates read")
        self._fanouts = Fanouts[tuple[Channel, str], Notification]()
        self._asked, self._hooks = SharedChannels(broker), Hooks(broker, self._telling, hooks)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Publications are taken in while the service is up; in the end what waits is, and the broker closes.

        Parsers are imported before: beside requests that would hold all of them up.
        """
        await run_in_threadpool(load_parsers)
        await run_in_threadpool(self._asked.clear)
        if self.access.tokens:
            await run_in_threadpool(self._broker.release, {*self.access.identities, OPERATOR})
        self._worker.start()
        try:
            async with self._hooks.running():
                yield
        finally:
            await run_in_threadpool(self._worker.close)
            await run_in_threadpool(self._broker.close)

    async def publish(self, request: Request) -> Response:
        """The facts of a graph are there from now on."""
        self._require_unconditional(request, "publish")
        body, kind = await self._sent(request)
        return await self._changed(request, body, added=await _read(self._graphs.published, body, kind))

    async def delete(self, request: Request) -> Response:
        """The facts of a graph are there no more."""
        self._require_unconditional(request, "delete")
        body, kind = await self._sent(request)
        return await self._changed(request, body, removed=await _read(self._graphs.named, body, kind))

    async def update(self, request: Request) -> Response:
        """A SPARQL Update as one publication."""
        self._require_unconditional(request, "publish", "delete")
        refuse_graph_parameters(request.query_params)
        body, kind = await self._sent(request)
        kind = kind.partition(";")[0].strip().lower()
        if kind != "application/sparql-update":
            raise MediaTypeError(f"an update comes as application/sparql-update: {kind or 'no content type'} is none")
        changes = await self._understood(text(body))
        owner = self._owner(request)
        return await _acknowledged(self._worker.modify(changes, _key(request, owner, body), owner))

    async def _understood(self, update: str) -> list[UpdateOperation]:
        """The operations of an update; long ones are read one after the other."""
        if len(update) <= _SHORT:
            return await run_in_threadpool(read_changes, update, self._broker.limits)
        async with self._understanding.through():
            return await run_in_threadpool(read_changes, update, self._broker.limits)

    async def _sent(self, request: Request) -> tuple[bytes, str]:
        """The body of a request and its media type."""
        return await read_body(request, self._broker.limits.body), request.headers.get("content-type", "")

    async def _changed(
        self, request: Request, body: bytes, added: tuple[Triple, ...] = (), removed: tuple[Triple, ...] = ()
    ) -> Response:
        owner = self._owner(request)
        return await _acknowledged(self._worker.submit(added, removed, _key(request, owner, body), owner))

    async def create_channel(self, request: Request) -> Response:
        """A query under a name: SELECT, ASK or CONSTRUCT."""
        name = self._name(request, "createChannel")
        if name.startswith(PREFIX):
            raise ValueError(f"names that begin with {PREFIX} are given to queries asked in SEPA's way: take another")
        demands = channel_demands(read_conditions(request.headers.raw), name)
        refuse_graph_parameters(request.query_params)
        query = text(await read_body(request, 4 * self._broker.limits.query_text))
        create = partial(self._broker.create_channel, name, query, owner=self._owner(request), require=demands)
        async with self._creation.through():
            await run_in_threadpool(create)
        return tagged_json(status(self._broker.channel(name)), status=201, headers={"Location": f"/channels/{name}"})

    async def delete_channel(self, request: Request) -> Response:
        """A channel ends."""
        name = self._name(request, "deleteChannel")
        demands = channel_demands(read_conditions(request.headers.raw), name)
        await run_in_threadpool(partial(self._broker.delete_channel, name, require=demands))
        return Response(status_code=204)

    async def channels(self, request: Request) -> Response:
        """The channels that may be subscribed to, by name; ``?after=`` a name for those behind it."""
        token, after = given(request.headers, request.scope), request.query_params.get("after", "")
        names = sorted(each.name for each in self._broker.channels() if each.name > after)
        allowed = [name for name in names if self.access.allows(token, "subscribe", name)]
        return JSONResponse({"channels": allowed[:_PAGE], "more": len(allowed) > _PAGE})

    async def channel(self, request: Request) -> Response:
        """One channel."""
        data = status(self._broker.channel(self._name(request, "subscribe")))
        return tagged_json(data, read_conditions(request.headers.raw))

    async def rows(self, request: Request) -> Response:
        """The answer as it is; the header Notification is the number of the last one that is in it."""
        name = self._name(request, "subscribe")
        number, rows = await run_in_threadpool(self._broker.rows, name)
        said = await run_in_threadpool(standing, self._broker.channel(name), rows)
        return JSONResponse(said, headers={"Notification": str(number)}, media_type=RESULTS)

    async def subscribe(self, request: Request) -> Response:
        """Notifications as server-sent events."""
        name = self._name(request, "subscribe")
        after = events.last_event(request.headers.get("last-event-id") or request.query_params.get("after"))
        signal = events.Signal()
        subscribed = await run_in_threadpool(self._subscribe, request, name, signal, after)
        line = partial(self._telling.text, subscribed.channel)
        member = self._member(request, subscribed, signal) if request.method == "GET" else None
        return events.Events(as_events(subscribed, line, signal, member))

    def _member(
        self, connection: HTTPConnection, subscribed: Subscribed, signal: events.Signal
    ) -> Member[Notification] | None:
        """The subscriber as one of a fan-out, where the server lets messages be written to the connection."""
        written = (connection.scope.get("extensions") or {}).get(PUSH, {}).get(CONNECTION)
        if written is None:
            return None
        channel, kind = subscribed.channel, connection.scope["type"]
        encode = self._frames if kind == "websocket" else self._chunk
        within = partial(
            self._fanouts.within, (channel, kind), channel.share, partial(encode, channel), lambda each: each.size
        )
        return Member(subscribed, written, signal, within)

    def _chunk(self, channel: Channel, told: Sequence[Notification]) -> bytes:
        return chunk(b"".join(events.event(self._telling.text(channel, each), each.number) for each in told))

    def _frames(self, channel: Channel, told: Sequence[Notification]) -> bytes:
        return frames(self._telling.text(channel, each) for each in told)

    async def subscribe_by_websocket(self, websocket: WebSocket) -> None:
        """Notifications as messages."""
        try:
            name = self._name(websocket, "subscribe")
            after = events.last_event(websocket.query_params.get("after"))
            signal = events.Signal()
            subscribed = await run_in_threadpool(self._subscribe, websocket, name, signal, after)
        except tuple(_STATUS) as error:
            await websocket.close(1008, str(error)[:120])
            return
        await websocket.accept()
        line = partial(self._telling.text, subscribed.channel)
        hear = partial(acknowledged, websocket, subscribed)
        member = self._member(websocket, subscribed, signal)
        await converse(websocket, subscribed, lambda each: line(each).decode(), signal, hear, member)

    async def talk_as_sepa(self, websocket: WebSocket) -> None:
        """SEPA's messages; who asks a query here creates its channel and subscribes to it."""

        def require(channel: str) -> None:
            for operation in ("createChannel", "subscribe"):
                self._require(websocket, operation, channel)

        await websocket.accept()
        await Conversation(
            websocket, self._asked, require, tuple(_STATUS), self._creation, self._owner(websocket)
        ).run()

    def _subscribe(self, connection: HTTPConnection, name: str, signal: events.Signal, after: int | None) -> Subscribed:
        """By a name what comes is kept until it is acknowledged, which is also what coming back ``after`` it means."""
        subscriber, owner = connection.query_params.get("subscriber"), self._owner(connection)
        if subscriber is None:
            return self._broker.listen(name, signal.set, after, owner)
        _check_name(subscriber, "a subscriber")
        subscribed = self._broker.subscribe(name, subscriber, signal.set, after, owner)
        if after is not None:
            subscribed.acknowledge(after)
        return subscribed

    async def acknowledge(self, request: Request) -> Response:
        """Notifications up to ``?acknowledged=`` need not come again; a new subscriber begins to be one."""
        name, number = self._name(request, "subscribe"), events.last_event(request.query_params.get("acknowledged"))
        subscriber = _check_name(request.path_params["subscriber"], "a subscriber")
        demands = subscriber_demands(read_conditions(request.headers.raw), subscriber)
        owner = self._owner(request)
        acknowledge = partial(self._broker.acknowledge, name, subscriber, number, owner=owner, require=demands)
        channel = await run_in_threadpool(acknowledge)
        return Response(status_code=204, headers={"ETag": json_tag(subscriber_status(channel, subscriber))})

    async def subscribers(self, request: Request) -> Response:
        """The subscribers by name that are this token's."""
        name = self._name(request, "subscribe")
        own = await run_in_threadpool(self._broker.subscribers, name, self._owner(request))
        return JSONResponse({"subscribers": [{"subscriber": each, "acknowledged": n} for each, n in own.items()]})

    async def subscriber(self, request: Request) -> Response:
        """One of them."""
        name, subscriber = self._name(request, "subscribe"), request.path_params["subscriber"]
        own = await run_in_threadpool(self._broker.subscribers, name, self._owner(request))
        if subscriber not in own:
            raise UnknownSubscriberError(subscriber)
        data = {"channel": name, "subscriber": subscriber, "acknowledged": own[subscriber]}
        return tagged_json(data, read_conditions(request.headers.raw))

    async def unsubscribe(self, request: Request) -> Response:
        """A subscriber is forgotten."""
        name, subscriber = self._name(request, "unsubscribe"), request.path_params["subscriber"]
        demands = subscriber_demands(read_conditions(request.headers.raw), subscriber)
        owner = self._owner(request)
        await run_in_threadpool(partial(self._broker.unsubscribe, name, subscriber, owner=owner, require=demands))
        return Response(status_code=204)

    async def health(self, _request: Request) -> Response:
        """Whether it is up, ``failed`` until it is started again, or is ``refusing`` until there is room."""
        for state, fault in (("failed", self._broker.fault), ("refusing", self._broker.trouble)):
            if fault:
                return JSONResponse({"status": state, "fault": fault}, 503)
        return JSONResponse({"status": "up"})

    async def metrics(self, _request: Request) -> Response:
        """Counts for Prometheus; terms are counted in a thread."""
        text = await run_in_threadpool(lambda: exposition(metrics(self._broker, self._hooks)))
        return PlainTextResponse(text, media_type=MEDIA_TYPE)

    async def openapi(self, _request: Request) -> Response:
        """The routes."""
        return JSONResponse(description())

    async def page(self, _request: Request) -> Response:
        """The page for people."""
        page = (files("streamgauge.servers.broker") / "page.html").read_text(encoding="utf-8")
        return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})

    def _require(self, connection: HTTPConnection, operation: str, channel: str = "") -> None:
        self.access.require(given(connection.headers, connection.scope), operation, channel)

    def _require_unconditional(self, request: Request, *operations: str) -> None:
        """The token is for these operations on facts, which have no entity tag to hold a condition against."""
        for operation in operations:
            self._require(request, operation)
        read_conditions(request.headers.raw).refuse(request.scope["path"])

    def _owner(self, connection: HTTPConnection) -> str:
        """The identity of who asks."""
        return self.access.identity(given(connection.headers, connection.scope)) if self.access.closed else OPEN

    def _name(self, connection: HTTPConnection, operation: str) -> str:
        """The channel of a request that may do an operation on it."""
        name = _check_name(connection.path_params["name"], "a channel")
        self._require(connection, operation, name)
        return name


_PAGE: Final = 1000
_SHORT: Final = 4096
"""Bytes of a graph that is read sooner than a thread is asked to."""


async def _acknowledged(future: "Future[Receipt]") -> Response:
    """Answered when the change is durable and those who are connected are being told."""
    receipt = await asyncio.wrap_future(future)
    return JSONResponse({"publication": receipt.number, "repeated": receipt.repeated})


async def _read(read: Callable[[bytes, str], tuple[Triple, ...]], body: bytes, kind: str) -> tuple[Triple, ...]:
    """The triples of a body; one that takes long is read in a thread."""
    return read(body, kind) if len(body) <= _SHORT else await run_in_threadpool(read, body, kind)


def _key(request: Request, owner: str, body: bytes) -> RetryKey | None:
    """The key of a publication, with all that another use of the key would differ in."""
    given_key = request.headers.get("idempotency-key")
    if given_key is None:
        return None
    kind = request.headers.get("content-type", "").strip().lower()
    return read_key(given_key, owner, request.scope["path"].encode(), kind.encode(), body)


def _check_name(name: str, what: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(f"{what} has a name of 1 to {LONGEST_NAME} printable characters")
    return name
