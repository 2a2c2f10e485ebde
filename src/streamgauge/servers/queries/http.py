"""The HTTP side of the query service: routes, their description in OpenAPI, status and metrics."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from streamgauge.formats.bounds import read_json
from streamgauge.formats.fields import FieldError
from streamgauge.formats.streams import FormatError
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Triple
from streamgauge.query import QueryError
from streamgauge.semantics.jumps import TimeJumpError
from streamgauge.semantics.profiles import PROFILES, UnknownProfileError
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.http import events
from streamgauge.servers.http.access import Origins, Tokens, guards, request_token
from streamgauge.servers.http.events import Numbered
from streamgauge.servers.http.fanout import as_events, close_reason, converse, nothing
from streamgauge.servers.http.headers import (
    ConditionError,
    Conditions,
    PreconditionError,
    entity_tag,
    read_conditions,
)
from streamgauge.servers.http.heads import PromptPost
from streamgauge.servers.http.health import HealthRoutes, ServerState
from streamgauge.servers.http.limits import (
    STATUS,
    CrowdedError,
    Gate,
    counted_body,
    document_turn,
    load_parsers,
    read_body,
    text,
)
from streamgauge.servers.http.metrics import MEDIA_TYPE, exposition, source_metrics
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
from streamgauge.servers.http.replies import json_tag, page, problem, tagged_json
from streamgauge.servers.http.retries import BadKeyError, KeyBusyError, KeyReuseError, Once, RetryKey, read_key
from streamgauge.servers.queries.attached import AttachedSources, AttachError
from streamgauge.servers.queries.catalogue import ConflictError, UnknownQueryError
from streamgauge.servers.queries.deliveries import AnswerDelivery
from streamgauge.servers.queries.durability import KEYS, NotDurableError
from streamgauge.servers.queries.folder import LOOK_S, QueryFolder
from streamgauge.servers.queries.limits import QueriesBusyError, QueryLimitError
from streamgauge.servers.queries.measures import folder_metrics, metrics
from streamgauge.servers.queries.publications import Publications, published
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import (
    QueryRegistration,
    RequestError,
    query_schema,
    read_registration,
    read_static,
)
from streamgauge.servers.sealed.soundness import JournalError
from streamgauge.sources import SourceError


def status(running: RegisteredQuery) -> dict[str, object]:
    """One query: its registration, its state, sizes in bytes and counts since its registration."""
    question = running.question
    return {
        "id": running.name,
        "state": running.state,
        "fault": running.fault,
        "query": question.text,
        "engine": question.engine,
        "semantics": question.semantics.name,
        "streams": list(running.worker.streams),
        "output": question.output,
        "elements": running.elements,
        "late": running.late,
        "waiting": running.worker.waiting,
        "answers": running.answers.number,
        "subscribers": running.answers.subscribers,
        "memory": running.memory,
    }


TICK_S = 0.1
CLOSE_S = 1.0
"""Seconds for queries to finish when the service stops, which takes at most 5 s."""

REFUSALS: Final[dict[type[Exception], int]] = {
    **STATUS,
    QueryLimitError: 429,
    CrowdedError: 429,
    TooMuchError: 422,
    ConflictError: 409,
    UnknownQueryError: 404,
    AttachError: 403,
    PreconditionError: 412,
    KeyReuseError: 422,
    KeyBusyError: 409,
    QueriesBusyError: 429,
    NotDurableError: 503,
    JournalError: 503,
    QueryError: 400,
    RequestError: 400,
    TimeJumpError: 422,
    RefusedError: 400,
    UnknownProfileError: 400,
    FieldError: 400,
    FormatError: 400,
    SourceError: 400,
    events.EventError: 400,
    ConditionError: 400,
    BadKeyError: 400,
}
"""The statuses of requests that are refused, by what refuses them."""

MISTAKES: Final = (*REFUSALS, MistakeError, OSError)
"""The errors of a file of a query."""


def application(
    queries: Queries,
    tokens: Tokens | Sequence[str] = (),
    allowed: Sequence[str] = (),
    origins: Origins | None = None,
    sources: Sequence[tuple[str, str]] = (),
    folder: QueryFolder | None = None,
    run: str = "",
) -> "QueryApplication":
    """The service for a core; ``allowed`` are the URLs below which sources may be attached.

    Pages of ``origins`` may use the service. The operator feeds streams from ``sources``, (stream, URL), and registers
    the queries of ``folder``, which see all of them. ``run`` distinguishes the numbers of answers of different runs.
    """
    if folder is not None:
        folder.look(at_once=True)
    attached = AttachedSources(queries, allowed)
    attached.restore()
    attached.keep(sources)
    tokens = Tokens.of(tokens)
    service = QueryService(queries, attached, tokens, origins, folder, run)
    handlers: dict[Any, Any] = dict.fromkeys(REFUSALS, _refusal)
    return QueryApplication(
        service.publications.posted,
        routes=_routes(service),
        middleware=guards(tokens, origins),
        exception_handlers=handlers,
        lifespan=service.lifespan,
    )


_TEXT: Final[Json] = {"type": "string"}
_KEY: Final = retry_key(
    "A request that was done with this key by the same token is answered as it was, and not done again."
)
_PATH_PARAMETERS: Final = {"id": path_parameter("id"), "name": path_parameter("name", "The IRI, percent-encoded.")}
_SOURCE: Final[Json] = {
    "type": "object",
    "required": ["stream", "source"],
    "properties": {"stream": _TEXT, "source": _TEXT},
}


def _routes(service: "QueryService") -> list[BaseRoute]:
    """The routes with their descriptions."""
    query = body("application/json", {"$ref": "#/components/schemas/Query"})
    source, elements = body("application/json", _SOURCE), body("application/x-ndjson", _TEXT)
    after = parameter("after", "The id of the last answer received.")
    publishing = (_KEY, parameter("t", "Time of the elements: ms, or now."), parameter("form", "A format."))
    pushed = operation("Answers as server-sent events, or by WebSocket.", parameters=[after])
    registered = operation("Register a query.", "201", query, [_KEY])
    publication = operation("Publish elements.", "202", elements, publishing)
    shared = operation("Share static data.", "201", body("text/turtle", _TEXT))
    healthy = HealthRoutes(service.state)
    return [
        # First, as most requests are it.
        DescribedRoute("POST", "/streams/{name:path}", service.publications.publish, publication),
        Route("/", service.page),
        DescribedRoute("POST", "/queries", service.register, registered),
        DescribedRoute("GET", "/queries", service.queries, operation("All queries.")),
        DescribedRoute("GET", "/queries/{id}", service.query, operation("One query.")),
        DescribedRoute("DELETE", "/queries/{id}", service.deregister, operation("End it.", "204")),
        DescribedRoute("GET", "/queries/{id}/answers", service.answers, pushed),
        WebSocketRoute("/queries/{id}/answers", service.answers_by_websocket),
        DescribedRoute("GET", "/streams", service.streams, operation("All streams.")),
        DescribedRoute("POST", "/streams", service.attach, operation("Attach a source.", "201", source, [_KEY])),
        DescribedRoute("DELETE", "/streams/{name:path}", service.detach, operation("Detach its source.", "204")),
        DescribedRoute("PUT", "/static/{name:path}", service.share, shared),
        DescribedRoute("GET", "/health", healthy.health, operation("Whether it is up.")),
        DescribedRoute("GET", "/ready", healthy.ready, operation("Whether it takes elements.")),
        DescribedRoute("GET", "/metrics", service.metrics, operation("Counts for Prometheus.")),
        Route("/openapi.json", service.openapi),
    ]


async def _refusal(_request: Request, error: Exception) -> Response:
    """An expected error as its sentence, and when to come again."""
    after = error.after if isinstance(error, QueriesBusyError) else 1.0 if isinstance(error, KeyBusyError) else None
    headers = None if after is None else {"Retry-After": str(max(1, round(after)))}
    return problem(next(status for kind, status in REFUSALS.items() if isinstance(error, kind)), str(error), headers)


class QueryApplication(Starlette):
    """An application that has small POSTs answered directly (``PromptPost``)."""

    def __init__(self, prompt_post: PromptPost, **options: Any) -> None:
        super().__init__(**options)
        self.prompt_post = prompt_post


class QueryService:
    """The handlers, one per route."""

    def __init__(
        self,
        queries: Queries,
        attached: AttachedSources,
        tokens: Tokens,
        origins: Origins | None,
        folder: QueryFolder | None,
        run: str,
    ) -> None:
        self._queries, self._attached, self._tokens, self._folder, self._run = queries, attached, tokens, folder, run
        known = () if queries.journal is None else queries.journal.known_keys()
        self._once = Once[Response](KEYS, [(key, published(items, readers)) for key, items, readers in known])
        self.publications = Publications(queries, tokens, origins, self._key, self._once)
        self._registration = Gate(queries.limits.registrations, "register a query")

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Time passes while the service runs; at the end, sources are closed and queries end.

        Parsers are imported first, because importing them during requests would block all of these.
        """
        await run_in_threadpool(load_parsers)
        tasks = [asyncio.create_task(self._tick()), asyncio.create_task(self._look())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            # First what feeds the queries and what they feed, side by side; then the queries.
            sinks = () if self._folder is None else (run_in_threadpool(self._folder.deliveries.close),)
            await asyncio.gather(run_in_threadpool(self._attached.close), *sinks)
            await run_in_threadpool(self._queries.close, "the service has ended", CLOSE_S)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            await run_in_threadpool(self._queries.tick)

    async def _look(self) -> None:
        """Failed sources, and the folder of queries, are checked periodically."""
        while True:
            await asyncio.sleep(LOOK_S)
            await run_in_threadpool(self._attached.look)
            if self._folder is not None:
                await run_in_threadpool(self._folder.look)

    async def register(self, request: Request) -> Response:
        """A query: its text, or JSON."""
        read_conditions(request.headers.raw).refuse("a new query")
        async with counted_body(request, self._queries.limits.body) as sent:
            return await self._once(self._key(request, sent), partial(self._register, request, text(sent)))

    async def _register(self, request: Request, body: str) -> Response:
        is_json = request.headers.get("content-type", "").partition(";")[0] == "application/json"
        registration = read_registration(_json(body)) if is_json else QueryRegistration(body, **_options(request))
        async with self._registration.through():
            running = await run_in_threadpool(self._queries.register, registration, self._owner(request))
        return tagged_json(status(running), status=201, headers={"Location": f"/queries/{running.name}"})

    async def queries(self, _request: Request) -> Response:
        """List the queries with their status."""
        return JSONResponse({"queries": [status(running) for running in self._queries.queries()]})

    async def query(self, request: Request) -> Response:
        """The status of one query."""
        return tagged_json(status(self._running(request)), read_conditions(request.headers.raw))

    async def deregister(self, request: Request) -> Response:
        """End a query; ConflictError if a file of the folder owns it."""
        name, conditions = request.path_params["id"], read_conditions(request.headers.raw)

        def require(running: RegisteredQuery) -> None:
            if self._folder is not None and self._folder.owns(name):
                raise ConflictError(f"{name} is the query of a file: remove {name}.rq from the folder of queries")
            conditions.require((json_tag(status(running)),), f"the query {name}")

        await run_in_threadpool(self._queries.deregister, name, require)
        return Response(status_code=204)

    async def answers(self, request: Request) -> Response:
        """Answers as server-sent events."""
        running = self._running(request)
        # A browser that reconnects sends the header by itself; the parameter is for its first connection, whose
        # headers it does not let a page set.
        last = request.headers.get("last-event-id") or request.query_params.get("after")
        after = events.last_event(last, self._run)
        signal = events.Signal()
        subscription = self._queries.subscribe(running, after, signal.set, self._owner(request))
        pushed = as_events(subscription, _line, signal, run=self._run, anew=after == events.ANEW)
        return events.Events(pushed, subscription.close)

    async def answers_by_websocket(self, websocket: WebSocket) -> None:
        """Answers as messages ``{"id": number, "answer": {...}}``."""
        try:
            running = self._queries.query(websocket.path_params["id"])
            after = events.last_event(websocket.query_params.get("after"), self._run)
            signal = events.Signal()
            subscription = self._queries.subscribe(running, after, signal.set, self._owner(websocket))
        except (UnknownQueryError, QueryLimitError, events.EventError) as error:
            await websocket.close(1008, close_reason(str(error)))
            return
        await websocket.accept()
        message, hear = partial(_message, self._run), partial(nothing, websocket)
        await converse(websocket, subscription, message, signal, hear, anew=after == events.ANEW)

    async def streams(self, _request: Request) -> Response:
        """All streams: numbers of elements, the queries that read or write them, and attached sources."""
        attached = self._attached.status()
        listing = [
            {
                "stream": name,
                "elements": count,
                "read_by": self._queries.readers(name),
                "written_by": self._queries.writer(name),
                **attached.get(name, {}),
            }
            for name, count in self._queries.streams().items()
        ]
        return JSONResponse({"streams": listing})

    async def attach(self, request: Request) -> Response:
        """A source by its URL, where that is allowed."""
        read_conditions(request.headers.raw).refuse("an attached source")
        sent = await read_body(request, self._queries.limits.query_text)
        return await self._once(self._key(request, sent), partial(self._attach, text(sent)))

    async def _attach(self, body: str) -> Response:
        data = _json(body)
        stream, url = (data.get("stream"), data.get("source")) if isinstance(data, dict) else (None, None)
        if not isinstance(stream, str) or not isinstance(url, str):
            raise RequestError('a source is attached by {"stream": IRI, "source": URL}')
        await run_in_threadpool(self._attached.attach, stream, url)
        return JSONResponse({"stream": stream, "source": url}, 201)

    async def detach(self, request: Request) -> Response:
        """Let a source go."""
        read_conditions(request.headers.raw).refuse("an attached source")
        await run_in_threadpool(self._attached.detach, request.path_params["name"])
        return Response(status_code=204)

    async def share(self, request: Request) -> Response:
        """Static data for all queries that name it, as Turtle or N-Triples."""
        name, conditions = request.path_params["name"], read_conditions(request.headers.raw)
        async with counted_body(request, self._queries.limits.body) as sent:
            triples = await run_in_threadpool(self._static, sent)

        def require(known: tuple[Triple, ...] | None) -> None:
            # Without a condition no tag is computed, which costs a pass over all triples.
            if conditions != Conditions():
                conditions.require(() if known is None else (_static_tag(known),), f"the static data {name}")

        await run_in_threadpool(self._queries.share, name, triples, require)
        tag = await run_in_threadpool(_static_tag, triples)
        return JSONResponse({"static": name, "triples": len(triples)}, 201, {"ETag": tag})

    def _static(self, sent: bytes) -> tuple[Triple, ...]:
        with document_turn(sent):
            return read_static(text(sent), self._queries.limits.shared_triples)

    def state(self) -> ServerState:
        """Whether elements are taken now, with the sources: in trouble where the disk refuses, or one has failed."""
        journal, sources = self._queries.journal, self._attached.status()
        failed = [stream for stream, source in sources.items() if source.get("fault")]
        trouble = "; ".join(f"<{stream}>: {sources[stream]['fault']}" for stream in failed)
        about: dict[str, object] = {"sources": sources}
        if self._folder is not None:
            about |= {"refused": dict(self._folder.refused), "sinks": [*map(_sink, self._folder.deliveries.status())]}
        return (
            ServerState("", trouble, about)
            if journal is None
            else ServerState(journal.fault, journal.trouble or trouble, about)
        )

    async def metrics(self, _request: Request) -> Response:
        """The metrics in the format of Prometheus."""
        measured = [*metrics(self._queries), *source_metrics(self._attached.status(), "stream")]
        if self._folder is not None:
            measured += folder_metrics(self._folder)
        return PlainTextResponse(exposition(measured), media_type=MEDIA_TYPE)

    async def openapi(self, request: Request) -> Response:
        """The routes as an OpenAPI description."""
        schemas = {"Query": query_schema(self._queries.engines, PROFILES)}
        operations_ = operations(request.app.routes)
        return JSONResponse(description("Streamgauge continuous queries", operations_, _PATH_PARAMETERS, schemas))

    async def page(self, _request: Request) -> Response:
        """The page for people."""
        return page("streamgauge.servers.queries")

    def _running(self, request: Request) -> RegisteredQuery:
        return self._queries.query(request.path_params["id"])

    def _owner(self, request: HTTPConnection) -> str:
        """The identity of who asks."""
        return self._tokens.identity(request_token(request.headers, request.scope))

    def _key(self, request: Request, body: bytes) -> RetryKey | None:
        """The key of a request, with all that another use of the key would differ in."""
        if (key := request.headers.get("idempotency-key")) is None:
            return None
        kind = request.headers.get("content-type", "").strip().lower()
        # Where one of these differs, the request is another one under the same key, and is refused.
        address = request.scope["query_string"], request.scope["path"].encode()
        return read_key(key, self._owner(request), *address, kind.encode(), body)


def _sink(delivery: AnswerDelivery) -> dict[str, object]:
    """A delivery: how many answers it is behind, and why its sink is away, if it is."""
    status: dict[str, object] = {"query": delivery.query, "sink": delivery.sink, "behind": delivery.behind}
    status |= {"undelivered": delivery.undelivered} if delivery.undelivered else {}
    return status | ({"fault": delivery.fault} if delivery.fault else {})


def _static_tag(triples: tuple[Triple, ...]) -> str:
    """The entity tag of shared data, which is as long as its triples are the same."""
    return entity_tag("".join(f"{' '.join(triple)} .\n" for triple in triples).encode())


def _line(answer: Numbered[bytes]) -> bytes:
    return answer.line


def _message(run: str, answer: Numbered[bytes]) -> str:
    numbered = f'"id":{answer.number},"run":"{run}"' if run else f'"id":{answer.number}'
    return f'{{{numbered},"answer":{answer.line.decode()}}}'


def _json(body: str) -> Any:
    try:
        return read_json(body)
    except ValueError as error:
        raise RequestError(f"not JSON: {error}"[:300]) from error


def _options(request: Request) -> dict[str, Any]:
    """Parameters besides a query's text, such as ``?semantics=``."""
    known = ("dialect", "semantics", "engine", "advance")
    if unknown := set(request.query_params) - {*known, "access_token"}:
        raise RequestError(f"unknown: {', '.join(sorted(unknown))}: beside a query's text there are {', '.join(known)}")
    registration = read_registration(
        {"query": "", **{name: request.query_params[name] for name in known if name in request.query_params}}
    )
    return {name: getattr(registration, name) for name in known}
