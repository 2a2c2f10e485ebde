"""The HTTP interface of the broker; all decisions are in the core (``broker``, ``registry``)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from streamgauge.formats.syntaxes import SENT
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model.terms import Triple
from streamgauge.query import QueryError
from streamgauge.servers.broker.access import Access, AccessError
from streamgauge.servers.broker.answers import StandingAnswers
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import (
    ExistingChannelError,
    ForeignNameError,
    UnknownChannelError,
    UnknownSubscriberError,
)
from streamgauge.servers.broker.delivery import Connections, NotificationTexts, Webhook, Webhooks
from streamgauge.servers.broker.limits import (
    MAX_NAME,
    BadNameError,
    BusyError,
    GraphError,
    LimitError,
    Limits,
    MediaTypeError,
    ReservedNameError,
    check_name,
    read_graph,
    read_named_graph,
)
from streamgauge.servers.broker.protocol import SparqlProtocol
from streamgauge.servers.broker.publications import FailedError, PublicationWorker, Receipt
from streamgauge.servers.broker.registry import OPERATOR
from streamgauge.servers.broker.representations import (
    broker_metrics,
    channel_demands,
    channel_status,
    subscriber_demands,
    subscriber_status,
)
from streamgauge.servers.broker.sepa import PREFIX, Conversation, MessageError, SharedChannels, refuse_graph_parameters
from streamgauge.servers.http import events
from streamgauge.servers.http.access import OPEN, Origins, guards, request_token
from streamgauge.servers.http.fanout import close_reason
from streamgauge.servers.http.headers import ConditionError, PreconditionError, read_conditions
from streamgauge.servers.http.health import HealthRoutes, ServerState
from streamgauge.servers.http.limits import STATUS, CrowdedError, Gate, counted_body, load_parsers, read_body, text
from streamgauge.servers.http.metrics import MEDIA_TYPE, exposition
from streamgauge.servers.http.openapi import (
    DescribedRoute,
    Json,
    body,
    description,
    operation,
    operations,
    parameter,
    path_parameter,
    retry_key,
)
from streamgauge.servers.http.protocol import ProtocolError, ProtocolTypeError, media_types
from streamgauge.servers.http.replies import json_tag, page, problem, tagged_json
from streamgauge.servers.http.retries import BadKeyError, KeyReuseError, RetryKey, read_key
from streamgauge.servers.sealed.soundness import JournalError
from streamgauge.sparql.needs import TooManySolutionsError

_STATUS: Final[dict[type[Exception], int]] = {
    **STATUS,
    LimitError: 422,
    TooManySolutionsError: 422,
    MediaTypeError: 415,
    ProtocolTypeError: 415,
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
    UnsupportedError: 400,
    ProtocolError: 400,
    BadNameError: 400,
    MessageError: 400,
}
"""The statuses of requests that are refused, by what refuses them; any other error is the server's own, a 500."""


def application(
    broker: Broker, access: Access | None = None, hooks: Sequence[Webhook] = (), origins: Origins | None = None
) -> Starlette:
    """The HTTP service of a broker, which is closed when the service ends; pages of ``origins`` may use it."""
    app = BrokerApp(broker, access or Access(), hooks)
    handlers: dict[Any, Any] = dict.fromkeys(_STATUS, _refusal)
    return Starlette(
        routes=_routes(app),
        middleware=guards(app.access.every, origins),
        exception_handlers=handlers,
        lifespan=app.lifespan,
    )


async def _refusal(_request: Request, error: Exception) -> Response:
    """The response to an expected error: its sentence, with the status of the first class that matches."""
    code = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    return problem(code, str(error), {"Retry-After": "1"} if code in (429, 503) else None)


_TEXT: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "integer", "minimum": 0}
_NAME: Final[Json] = {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": r"^[^/\x00-\x1f]+$"}
_PATH_PARAMETERS: Final = {name: path_parameter(name, schema=_NAME) for name in ("name", "subscriber")}
_KEY: Final = retry_key(
    "Repeating a key with the same publication has no effect; 422 with another publication. Keys belong to a token."
)


def _routes(app: "BrokerApp") -> list[BaseRoute]:
    """All routes, with the descriptions of their operations."""
    one, notifications, who = (
        "/channels/{name}",
        "/channels/{name}/notifications",
        "/channels/{name}/subscribers/{subscriber}",
    )
    graph, update = body(tuple(SENT), _TEXT), body(media_types("update"), _TEXT)
    question = parameter("query", "SELECT, ASK or CONSTRUCT.")
    query_operation = operation("Answer a SPARQL query over the current facts.", parameters=[question])
    posted = operation("Answer a query sent in a form or as text.", "200", body(media_types("query"), _TEXT))
    published = operation("Insert facts, also of named graphs.", "200", graph, [_KEY])
    updated = operation("Apply a SPARQL Update as one publication.", "200", update, [_KEY])
    page = parameter("after", "The last name of the previous page.")
    query = body("application/sparql-query", _TEXT)
    kept = parameter("subscriber", "A name for which notifications are stored until they are acknowledged.")
    after = parameter("after", "The number of the last notification received.", _NUMBER)
    pushed = operation("Notifications as server-sent events, or by WebSocket.", parameters=[kept, after])
    rows = operation("The current answer as SPARQL JSON; for a CONSTRUCT, a row per triple.")
    number = parameter("acknowledged", "The number up to which notifications are acknowledged.", _NUMBER)
    healthy = HealthRoutes(app.state)
    return [
        Route("/", app.page),
        DescribedRoute("POST", "/publish", app.publish, published),
        DescribedRoute("POST", "/delete", app.delete, operation("Delete facts.", "200", graph, [_KEY])),
        DescribedRoute("POST", "/update", app.update, updated),
        DescribedRoute("GET", "/query", app.query, query_operation),
        DescribedRoute("POST", "/query", app.query, posted),
        DescribedRoute("GET", "/channels", app.channels, operation("List channels.", parameters=[page])),
        DescribedRoute(
            "PUT", one, app.create_channel, operation("Create a channel for a SELECT, ASK or CONSTRUCT.", "201", query)
        ),
        DescribedRoute("DELETE", one, app.delete_channel, operation("Delete a channel.", "204")),
        DescribedRoute("GET", one, app.channel, operation("A channel's query and counts.")),
        DescribedRoute("GET", f"{one}/rows", app.rows, rows),
        DescribedRoute("GET", notifications, app.subscribe, pushed),
        WebSocketRoute(notifications, app.subscribe_by_websocket),
        WebSocketRoute("/subscribe", app.talk_as_sepa),
        DescribedRoute("GET", f"{one}/subscribers", app.subscribers, operation("List this token's subscribers.")),
        DescribedRoute("GET", who, app.subscriber, operation("A subscriber's last acknowledged number.")),
        DescribedRoute("PUT", who, app.acknowledge, operation("Acknowledge.", "204", parameters=[number])),
        DescribedRoute("DELETE", who, app.unsubscribe, operation("Delete a subscriber.", "204")),
        DescribedRoute("GET", "/health", healthy.health, operation("Whether the broker runs.")),
        DescribedRoute("GET", "/ready", healthy.ready, operation("Whether the broker accepts publications.")),
        DescribedRoute("GET", "/metrics", app.metrics, operation("Metrics for Prometheus.")),
        Route("/openapi.json", app.openapi),
    ]


class BrokerApp:
    """The handlers, one per route."""

    def __init__(self, broker: Broker, access: Access, hooks: Sequence[Webhook] = ()) -> None:
        self.access = access
        self._broker, self._worker = broker, PublicationWorker(broker)
        texts = NotificationTexts()
        self._creation = Gate(broker.limits.creations, "begin a channel")
        self._protocol = SparqlProtocol(broker)
        self._connections, self._hooks = Connections(broker, texts), Webhooks(broker, texts, hooks)
        self._asked, self._answers = SharedChannels(broker), StandingAnswers(broker)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Process publications while the service is up; at the end process the waiting ones, and close the broker.

        Parsers are imported first, since importing them later would delay all requests.
        """
        await run_in_threadpool(load_parsers)
        # SEPA's channels end with their connections; after a crash those of the last process are still there.
        await run_in_threadpool(self._asked.clear)
        # Names of revoked tokens would otherwise belong to nobody who could use them.
        if self.access.tokens:
            await run_in_threadpool(self._broker.release, {*self.access.identities, OPERATOR})
        self._worker.start()
        try:
            async with self._hooks.running():
                yield
        finally:
            # The worker first: what waits is still processed by a broker that is open.
            await run_in_threadpool(self._worker.close)
            await run_in_threadpool(self._broker.close)

    async def publish(self, request: Request) -> Response:
        """Insert the facts of a graph."""
        self._require_unconditional(request, "publish")
        async with self._sent(request) as (body, kind):
            return await self._changed(request, body, added=await self._read(read_graph, body, kind))

    async def delete(self, request: Request) -> Response:
        """Delete the facts of a graph."""
        self._require_unconditional(request, "delete")
        async with self._sent(request) as (body, kind):
            return await self._changed(request, body, removed=await self._read(read_named_graph, body, kind))

    async def update(self, request: Request) -> Response:
        """Apply a SPARQL Update as one publication."""
        self._require_unconditional(request, "publish", "delete")
        async with self._protocol.request("update", request) as (sent, body):
            changes = await self._protocol.update(sent)
            owner = self._owner(request)
            return await _acknowledged(self._broker.modify(changes, _key(request, owner, body), owner))

    async def query(self, request: Request) -> Response:
        """Answer a SPARQL query over the current facts."""
        self._require(request, "query")
        async with self._protocol.request("query", request) as (sent, _):
            return await self._protocol.query(sent, request.headers.get("accept", ""))

    @asynccontextmanager
    async def _sent(self, request: Request) -> AsyncIterator[tuple[bytes, str]]:
        """The body of a request and its media type."""
        async with counted_body(request, self._broker.limits.body) as body:
            yield body, request.headers.get("content-type", "")

    async def _read(
        self, read: Callable[[bytes, str, Limits], tuple[Triple, ...]], body: bytes, kind: str
    ) -> tuple[Triple, ...]:
        """The triples of a body; a large one is parsed in a thread."""
        limits = self._broker.limits
        return read(body, kind, limits) if len(body) <= _SHORT else await run_in_threadpool(read, body, kind, limits)

    async def _changed(
        self, request: Request, body: bytes, added: tuple[Triple, ...] = (), removed: tuple[Triple, ...] = ()
    ) -> Response:
        owner = self._owner(request)
        return await _acknowledged(self._broker.submit(added, removed, _key(request, owner, body), owner))

    async def create_channel(self, request: Request) -> Response:
        """Create a channel for a query: SELECT, ASK or CONSTRUCT."""
        name = self._name(request, "createChannel")
        if name.startswith(PREFIX):
            raise ReservedNameError(
                f"names that begin with {PREFIX} are reserved for SEPA's subscriptions: take another"
            )
        demands = channel_demands(request, name)
        refuse_graph_parameters(request.query_params)
        # The limit counts characters, and UTF-8 has up to four bytes for one.
        query = text(await read_body(request, 4 * self._broker.limits.query_text))
        create = partial(self._broker.create_channel, name, query, owner=self._owner(request), require=demands)
        async with self._creation.through():
            await run_in_threadpool(create)
        status = channel_status(self._broker.channel(name))
        return tagged_json(status, status=201, headers={"Location": f"/channels/{name}"})

    async def delete_channel(self, request: Request) -> Response:
        """Delete a channel; its subscriptions end."""
        name = self._name(request, "deleteChannel")
        demands = channel_demands(request, name)
        await run_in_threadpool(partial(self._broker.delete_channel, name, require=demands))
        return Response(status_code=204)

    async def channels(self, request: Request) -> Response:
        """A page of the channels that the token may subscribe to, sorted by name, after ``?after=``.

        ``kept`` has the bytes stored for absent subscribers of this token's channels, and their limit.
        """
        token, after = request_token(request.headers, request.scope), request.query_params.get("after", "")
        names = sorted(channel.name for channel in self._broker.channels() if channel.name > after)
        allowed = [name for name in names if self.access.allows(token, "subscribe", name)]
        kept = self._broker.kept_for(self._owner(request))
        return JSONResponse({"channels": allowed[:_PAGE], "more": len(allowed) > _PAGE, "kept": kept})

    async def channel(self, request: Request) -> Response:
        """Answer with a channel's query and counts."""
        data = channel_status(self._broker.channel(self._name(request, "subscribe")))
        return tagged_json(data, read_conditions(request.headers.raw))

    async def rows(self, request: Request) -> Response:
        """The current answer; the header Notification has the number of the last notification that it includes."""
        name = self._name(request, "subscribe")
        return await self._answers.response(name)

    async def subscribe(self, request: Request) -> Response:
        """Notifications as server-sent events."""
        name, after = self._name(request, "subscribe"), request.headers.get("last-event-id")
        after = after or request.query_params.get("after")
        begun = await self._connections.begin(request, name, self._owner(request), after)
        return self._connections.event_stream(request, begun)

    async def subscribe_by_websocket(self, websocket: WebSocket) -> None:
        """Send notifications as WebSocket messages."""
        try:
            name, after = self._name(websocket, "subscribe"), websocket.query_params.get("after")
            begun = await self._connections.begin(websocket, name, self._owner(websocket), after)
        except tuple(_STATUS) as error:
            await websocket.close(1008, close_reason(str(error)))
            return
        await self._connections.messages(websocket, begun)

    async def talk_as_sepa(self, websocket: WebSocket) -> None:
        """Speak SEPA's protocol.

        Its subscribe message creates a channel and subscribes to it, which needs both permissions.
        """

        def require(channel: str) -> None:
            for operation_ in ("createChannel", "subscribe"):
                self._require(websocket, operation_, channel)

        await websocket.accept()
        await Conversation(
            websocket, self._asked, require, tuple(_STATUS), self._creation, self._owner(websocket)
        ).run()

    async def subscribers(self, request: Request) -> Response:
        """Answer with the named subscribers that belong to the token."""
        name = self._name(request, "subscribe")
        own = await run_in_threadpool(self._broker.subscribers, name, self._owner(request))
        return JSONResponse(
            {"subscribers": [{"subscriber": subscriber, "acknowledged": n} for subscriber, n in own.items()]}
        )

    async def subscriber(self, request: Request) -> Response:
        """Answer with a named subscriber and what it acknowledged."""
        name, subscriber = self._name(request, "subscribe"), request.path_params["subscriber"]
        own = await run_in_threadpool(self._broker.subscribers, name, self._owner(request))
        if subscriber not in own:
            raise UnknownSubscriberError(subscriber)
        data = {"channel": name, "subscriber": subscriber, "acknowledged": own[subscriber]}
        return tagged_json(data, read_conditions(request.headers.raw))

    async def acknowledge(self, request: Request) -> Response:
        """Acknowledge notifications up to ``?acknowledged=``; creates the subscriber if it does not exist."""
        name, number = self._name(request, "subscribe"), events.last_event(request.query_params.get("acknowledged"))
        subscriber = check_name(request.path_params["subscriber"], "a subscriber")
        demands = subscriber_demands(request, subscriber)
        owner = self._owner(request)
        acknowledge = partial(self._broker.acknowledge, name, subscriber, number, owner=owner, require=demands)
        channel = await run_in_threadpool(acknowledge)
        return Response(status_code=204, headers={"ETag": json_tag(subscriber_status(channel, subscriber))})

    async def unsubscribe(self, request: Request) -> Response:
        """Delete a named subscriber."""
        name, subscriber = self._name(request, "unsubscribe"), request.path_params["subscriber"]
        demands = subscriber_demands(request, subscriber)
        owner = self._owner(request)
        await run_in_threadpool(partial(self._broker.unsubscribe, name, subscriber, owner=owner, require=demands))
        return Response(status_code=204)

    def state(self) -> ServerState:
        """The state for ``/health`` and ``/ready``, with the webhooks."""
        return ServerState(self._broker.fault, self._broker.trouble, {"webhooks": self._hooks.status()})

    async def metrics(self, _request: Request) -> Response:
        """Metrics for Prometheus; counting terms takes a thread."""
        text = await run_in_threadpool(lambda: exposition(broker_metrics(self._broker, self._hooks)))
        return PlainTextResponse(text, media_type=MEDIA_TYPE)

    async def openapi(self, request: Request) -> Response:
        """The OpenAPI description of the routes."""
        return JSONResponse(description("Streamgauge broker", operations(request.app.routes), _PATH_PARAMETERS))

    async def page(self, _request: Request) -> Response:
        """The HTML page of the broker."""
        return page("streamgauge.servers.broker")

    def _require(self, connection: HTTPConnection, operation: str, channel: str = "") -> None:
        self.access.require(request_token(connection.headers, connection.scope), operation, channel)

    def _require_unconditional(self, request: Request, *operations: str) -> None:
        """Require permissions for operations on facts, and refuse conditions: facts have no entity tag."""
        for name in operations:
            self._require(request, name)
        read_conditions(request.headers.raw).refuse(request.scope["path"])

    def _owner(self, connection: HTTPConnection) -> str:
        """The identity of a request."""
        return self.access.identity(request_token(connection.headers, connection.scope)) if self.access.closed else OPEN

    def _name(self, connection: HTTPConnection, operation: str) -> str:
        """The name of a request's channel, if the token permits the operation on it."""
        name = check_name(connection.path_params["name"], "a channel")
        self._require(connection, operation, name)
        return name


_PAGE: Final = 1000
_SHORT: Final = 4096
"""Bytes of a graph up to which it is parsed in the event loop: handing it to a thread costs more."""


async def _acknowledged(future: "Future[Receipt]") -> Response:
    """Answer once the change is durable and notifications are on their way."""
    receipt = await asyncio.wrap_future(future)
    return JSONResponse({"publication": receipt.number, "repeated": receipt.repeated})


def _key(request: Request, owner: str, body: bytes) -> RetryKey | None:
    """The idempotency key of a publication, with a digest of everything that has to be equal in a retry."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return None
    # The media type is part of the digest: the same bytes may be another graph in another syntax.
    kind = request.headers.get("content-type", "").strip().lower()
    return read_key(header, owner, request.scope["path"].encode(), kind.encode(), body)
