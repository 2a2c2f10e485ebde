"""The fragments server over HTTP, an ASGI application without a framework: a request costs little besides its page."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from streamgauge.servers.fragments import PATCH_TYPE, VERSION
from streamgauge.servers.fragments.labels import VOCABULARIES, Border, Label
from streamgauge.servers.fragments.pages import is_plain
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.formats import FORMATS
from streamgauge.servers.fragments.pages.history import EVENT_CONTENTS, ChangesHandler, EventsHandler, PastHandler
from streamgauge.servers.fragments.pages.representations import (
    REFUSALS,
    FragmentCounts,
    FragmentLimits,
    Representation,
    Representations,
    clock_headers,
    last_modified,
    page_response,
    refusal,
    timed_headers,
)
from streamgauge.servers.fragments.pages.selections import Selection
from streamgauge.servers.http import metrics, openapi
from streamgauge.servers.http.access import REQUEST_HEADERS
from streamgauge.servers.http.events import Events
from streamgauge.servers.http.headers import BaseAddress, of_host, unchanged
from streamgauge.servers.http.health import ServerState, StatusBody
from streamgauge.servers.http.limits import Gate
from streamgauge.servers.http.openapi import DescribedOperation, Json, body, parameter, path_parameter, refused
from streamgauge.servers.http.replies import BUFFERED, Reply, error_reply, send_reply, whole_response

_TEXT: Final[Json] = {"type": "string"}
_FACTS: Final = tuple(form.types[0] for form in FORMATS if form.syntax is not None)
_PLACES: Final = ("subject", "predicate", "object")
_TERM: Final = 'An IRI, a literal ("a", "a"@en, "1"^^IRI), a variable (?x), or nothing for any.'
_TIME: Final = "now, an xsd:dateTime with a time zone, or ms since 1970."


def description(datasets: Sequence[str]) -> Json:
    """The OpenAPI description of a server of these data sets."""
    operations = (
        DescribedOperation(method, path, operation)
        for path, methods in _operations().items()
        for method, operation in methods.items()
    )
    dataset = path_parameter("dataset", schema={"enum": list(datasets)})
    schemas = {"Written": _WRITTEN}
    return openapi.description("Streamgauge fragments", operations, {"dataset": dataset}, schemas, security=())


def _operations() -> Mapping[str, Mapping[str, Json]]:
    """The operations by path and method."""
    types = [name for form in FORMATS for name in form.types]
    json = {"application/json": {"schema": {"type": "object"}}}
    text = {"text/plain": {"schema": _TEXT}}
    return {
        "/": {"get": _read_path("The data sets.", {kind: {} for kind in types}, ("400", "406", "414"))},
        "/health": {"get": _read_path("Whether the server runs.", json, ())},
        "/ready": {"get": _read_path("Whether changes are accepted, and the state of feeds.", json, ())},
        "/metrics": {"get": _read_path("Metrics for Prometheus.", text, ())},
        "/openapi.json": {"get": _read_path("This description.", json, ())},
        "/{dataset}": {
            "get": _fragment_path([*types, PATCH_TYPE, "text/event-stream"]),
            "post": _write_path("Add facts.", [*_TIMES, *_STYLES], body(_FACTS, _TEXT)),
            "put": _write_path(
                "Replace the matching triples by facts from now on.",
                [*map(_place, _PLACES), *_TIMES, *_STYLES],
                body(_FACTS, _TEXT),
            ),
            "patch": _write_path("Apply several changes, or a SPARQL Update.", [*_TIMES, _AT], _PATCH),
            "delete": _write_path("Delete triples with their past, or end them.", [*map(_place, _PLACES), _AT]),
        },
    }


def _read_path(summary: str, content: Json, errors: Sequence[str]) -> Json:
    responses = {"200": {"description": "Done.", "content": content}} | {error: refused("Refused.") for error in errors}
    return {"summary": summary, "responses": responses}


def _fragment_path(types: Sequence[str]) -> Json:
    page = {"type": "integer", "minimum": 1, "maximum": 10**7}
    read = _read_path(
        "A page of a fragment; its changes since a version; its changes as events.",
        {kind: {} for kind in types},
        ("400", "404", "406", "410", "414", "422", "429"),
    )
    read["responses"]["304"] = {"description": "The client's copy is current."}
    read["responses"]["200"]["headers"] = {VERSION: {"schema": _TEXT, "description": "The version of the data set."}}
    read["parameters"] = [
        *map(_place, (*_PLACES, "graph")),
        parameter("values", "Bindings, in the syntax of SPARQL's VALUES."),
        parameter("limit", "Quads per page.", {"type": "integer", "minimum": 1}),
        parameter("page", "The number of the page, from 1.", page),
        parameter("since", f"A {VERSION}, for the changes since then."),
        parameter("what", "The content of events.", {"enum": list(EVENT_CONTENTS)}),
        parameter("at", f"A past time, for the fragment at that time: {_TIME}"),
    ]
    return read


def _write_path(summary: str, parameters: Sequence[Json], sent: Json | None = None) -> Json:
    done = {
        "description": "The effect of the change.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Written"}}},
    }
    whys = {
        "400": "The request is invalid.",
        "401": "A token is required.",
        "403": "The server has no tokens, so writes are disabled.",
        "404": "The data set does not exist.",
        "408": "The request did not arrive in time.",
        "412": "If-Match or If-None-Match does not hold.",
        "413": "The body is too long.",
        "414": "The address is too long.",
        "415": "The media type is not supported.",
        "422": "The change exceeds a limit, or its key was used for another one.",
        "507": "The disk is full.",
    }
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
    demands = [{"name": name, "in": "header", "schema": _TEXT} for name in ("If-Match", "If-None-Match")]
    return {
        "summary": summary,
        "parameters": [*parameters, key, *demands],
        "responses": {"200": done} | {status: refused(why) for status, why in whys.items()},
        "security": [{"token": []}],
        **({"requestBody": sent} if sent else {}),
    }


def _place(name: str) -> Json:
    return parameter(name, _TERM)


_TIMES: Final = (
    parameter("from", _TIME),
    parameter("until", _TIME),
    parameter("for", "A duration: 500ms, 10s, 5m, 1h, 1d."),
)
_AT: Final = parameter("at", _TIME)
_STYLES: Final = (
    parameter("method", "The method by which the body is annotated."),
    parameter("label", "The kind of time label in the body.", {"enum": list(Label)}),
    parameter("vocabulary", "The vocabulary of the labels.", {"enum": list(VOCABULARIES)}),
    parameter("border", "Whether a final time belongs to the fact.", {"enum": list(Border)}),
)
_PATTERN: Final[Json] = {
    "type": "object",
    "properties": dict.fromkeys(_PLACES, _TEXT),
    "additionalProperties": False,
    "minProperties": 1,
}
_WHEN: Final[Json] = {"type": ["string", "integer"]}


def _change(required: Sequence[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_OPERATIONS: Final[Json] = {
    "type": "array",
    "maxItems": 1000,
    "items": {
        "oneOf": [
            _change(["add"], add=_TEXT, until=_WHEN, **{"from": _WHEN, "for": _TEXT}),
            _change(["replace", "by"], replace=_PATTERN, by=_TEXT, until=_WHEN, **{"from": _WHEN, "for": _TEXT}),
            _change(["expire"], expire=_PATTERN, at=_WHEN),
            _change(["remove"], remove=_PATTERN),
        ]
    },
}
_PATCH: Final[Json] = {
    "required": True,
    "content": {"application/json": {"schema": _OPERATIONS}, "application/sparql-update": {"schema": _TEXT}},
}
_COUNTS: Final = _change(["added", "removed"], added={"type": "integer"}, removed={"type": "integer"})
_WRITTEN: Final = _change(["version", "facts", "quads"], version=_TEXT, facts=_COUNTS, quads=_COUNTS)


Headers: TypeAlias = Mapping[bytes, bytes]

Mounted: TypeAlias = Callable[[DataSet, Scope, Receive], Awaitable[Reply | Events]]
"""Answers a request that is not for a page, or that takes a while."""

READS: Final = ("GET", "HEAD", "OPTIONS")
WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")

MAX_WAITING_SCANS: Final = 64
"""Requests that may wait for a scan."""

_LOG = logging.getLogger(__name__)


class MountedHandler(Protocol):
    """Handler of requests to a data set that are not for a page: writes, events, changes."""

    def takes(self, method: str, query: bytes, headers: Headers) -> bool:
        """Whether it handles this request."""

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply | Events:
        """The reply to the request."""


class FragmentsApp:
    """Pages of data sets at ``/name``, their list at ``/``, health and metrics beside them; writes are mounted."""

    def __init__(
        self,
        datasets: Sequence[DataSet],
        limits: FragmentLimits,
        addressing: BaseAddress,
        mounts: Sequence[MountedHandler],
        feeds: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
    ) -> None:
        if not datasets:
            raise ValueError("no data set to serve: give at least one")
        self._datasets = {dataset.name: dataset for dataset in datasets}
        # Other names are percent-encoded in a target: `__call__` finds them by the decoded path.
        self._by_path = {f"/{name}".encode(): dataset for name, dataset in self._datasets.items() if name.isascii()}
        self._events = EventsHandler(addressing, limits.subscribers)
        self._limits, self._feeds = limits, feeds
        self._mounts: tuple[MountedHandler, ...] = (
            self._events,
            ChangesHandler(addressing),
            PastHandler(addressing),
            *mounts,
        )
        self._scans = Gate(MAX_WAITING_SCANS, "scan quads")
        self._clock, self.counts = datasets[0].clock, FragmentCounts()
        self._reading = Representations(datasets, limits, addressing, self.counts)
        self._allowed = ", ".join((*READS, *(method for method in WRITES if self._mount(method, b"", {})))).encode()

    def leave(self) -> None:
        """End all event streams, from any thread."""
        self._events.leave()

    def prompt(self, scheme: str, target: bytes, headers: Headers) -> bytes | None:
        """A ``PromptAnswer``: the whole response to a GET of a page that needs no scan, ``None`` for other requests."""
        path, _, query = target.partition(b"?")
        dataset = self._by_path.get(path)
        if dataset is None or len(target) > self._limits.address or not is_plain(target):
            return None
        try:
            key = self._reading.key(scheme, path, query, headers)
            shown = self._reading.kept(key)
            if shown is None:
                if self._mount("GET", query, headers) is not None or self._reading.lacks(dataset, key) is not None:
                    return None
                shown = self._reading.made(dataset, key, headers)
        except Exception:
            return None  # __call__ answers and logs it
        if len(shown.body) >= BUFFERED:
            return None
        now = self._clock()
        # Most requests are unconditional: their whole response is made of cached bytes.
        if b"if-none-match" not in headers and b"if-modified-since" not in headers:
            self._count(dataset.name, 200, len(shown.body))
            return page_response(shown, now)
        reply = self._page(shown, headers)
        self._count(dataset.name, reply.status, len(reply.body))
        return whole_response(reply, *clock_headers(now))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; unexpected errors are logged and answered with 500."""
        if scope["type"] != "http":
            await _other(scope, receive, send)
            return
        name, method = scope["path"][1:], scope["method"]
        reply: Reply | Mounted | Events
        try:
            reply = self._answer(scope, dict(scope["headers"]))
            if not isinstance(reply, Reply):
                reply = await reply(self._datasets[name], scope, receive)
        # Nobody is there to read a reply.
        except ClientDisconnect:
            return
        except tuple(REFUSALS) as error:
            reply = refusal(error)
        except Exception:
            _LOG.exception("%s %s", method, scope["path"])
            reply = error_reply(500, "the server failed on this request; its log has the reason")
        if isinstance(reply, Reply):
            self._count(name, reply.status, 0 if method == "HEAD" else len(reply.body))
            await send_reply(reply, method, send, *clock_headers(self._clock()))
        else:
            await reply(scope, receive, self._counted(name, send))

    def _answer(self, scope: Scope, headers: Headers) -> Reply | Mounted:
        """The reply, or the handler that makes it."""
        method, path = scope["method"], scope["path"]
        if len(scope["query_string"]) + len(path) > self._limits.address:
            return error_reply(414, f"the address is longer than {self._limits.address} bytes: ask for less at once")
        if method == "OPTIONS":
            return self._options()
        name = path[1:]
        if name in self._datasets:
            mounted = self._mount(method, scope["query_string"], headers)
            return mounted if mounted is not None else self._read(name, scope, headers)
        return self._elsewhere(method, path, scope, headers)

    def _read(self, name: str, scope: Scope, headers: Headers) -> Reply | Mounted:
        if scope["method"] not in READS:
            return self._refused(scope["method"])
        key = self._reading.key_of(scope, headers)
        kept = self._reading.kept(key)
        if kept is not None:
            return self._page(kept, headers)
        selection = self._reading.lacks(self._datasets[name], key)
        if selection is not None:
            return partial(self._scanned, selection)
        return self._page(self._reading.made(self._datasets[name], key, headers), headers)

    async def _scanned(self, selection: Selection, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:  # noqa: ARG002
        """A page of a selection that has to be scanned, in a thread, one scan at a time."""
        headers = dict(scope["headers"])
        async with self._scans.through():
            # A request that waited for its turn may find the scan done by the one before it.
            if dataset.lacks(selection):
                dataset.hold(selection, await asyncio.to_thread(dataset.scanned, selection))
        return self._page(self._reading.made(dataset, self._reading.key_of(scope, headers), headers), headers)

    def _elsewhere(self, method: str, path: str, scope: Scope, headers: Headers) -> Reply:
        if path not in ("/", "/health", "/ready", "/metrics", "/openapi.json"):
            return error_reply(
                404, f"there is no {path[:80]}: data sets are at {', '.join('/' + n for n in self._datasets)}"
            )
        if method not in READS:
            return self._refused(method)
        if path in ("/health", "/ready"):
            return _json_reply(self._state().health() if path == "/health" else self._state().ready(whole=True))
        if path == "/openapi.json":
            text = json.dumps(description(tuple(self._datasets)))
            return Reply(200, [(b"content-type", b"application/json")], text.encode())
        if path == "/metrics":
            own = self.counts.metrics(tuple(self._datasets.values()), self._reading.held)
            text = metrics.exposition((*own, *metrics.source_metrics(self._feeds(), "dataset")))
            return Reply(200, [(b"content-type", metrics.MEDIA_TYPE.encode())], text.encode())
        return self._reading.listing(scope, headers)

    def _state(self) -> ServerState:
        """In trouble while a store refuses changes until there is room, or when a feed has failed."""
        faults = [fault for dataset in self._datasets.values() if (fault := dataset.store.trouble())]
        feeds = self._feeds()
        faults += [f"the feed of /{name}: {feed['fault']}" for name, feed in feeds.items() if "fault" in feed]
        return ServerState("", "; ".join(faults), {"sources": feeds})

    def _page(self, shown: Representation, headers: Headers) -> Reply:
        now = shown.dataset.clock()
        modified, timed = last_modified(shown.page, now), timed_headers(shown.dataset, shown.page, now)
        match, since = headers.get(b"if-none-match"), headers.get(b"if-modified-since")
        if (match or since) and unchanged(shown.tag, modified, match, since):
            return Reply(304, [*shown.kept_headers, *timed])
        return Reply(200, [*shown.headers, *timed], shown.body)

    def _options(self) -> Reply:
        headers = [
            (b"allow", self._allowed),
            (b"access-control-allow-methods", self._allowed),
            (b"access-control-allow-headers", REQUEST_HEADERS.encode()),
            (b"access-control-max-age", b"86400"),
        ]
        return Reply(204, headers)

    def _refused(self, method: str) -> Reply:
        return error_reply(
            405, f"{method[:20]} is not served here, but {self._allowed.decode()}", (b"allow", self._allowed)
        )

    def _mount(self, method: str, query: bytes, headers: Headers) -> Mounted | None:
        for mount in self._mounts:
            if mount.takes(method, query, headers):
                return mount
        return None

    def _count(self, name: str, status: int, size: int) -> None:
        self.counts.requests[name if name in self._datasets else "", status] += 1
        self.counts.bytes += size

    def _counted(self, name: str, send: Send) -> Send:
        """A ``send`` that counts an event stream."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(name, message["status"], 0)
            else:
                self.counts.bytes += len(message.get("body", b""))
            await send(message)

        return sent


def application(
    datasets: Sequence[DataSet],
    mounts: Sequence[MountedHandler] = (),
    limits: FragmentLimits | None = None,
    addressing: BaseAddress = of_host,
    feeds: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
) -> FragmentsApp:
    """The ASGI application of data sets: pages, history, events, and the ``mounts`` for writes.

    ``feeds`` returns the status of each feed, by the data set that it feeds.
    """
    return FragmentsApp(datasets, limits or FragmentLimits(), addressing, mounts, feeds)


def _json_reply(status_body: StatusBody) -> Reply:
    """A reply in JSON that no cache keeps."""
    status, body = status_body
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    return Reply(status, headers, json.dumps(body, separators=(",", ":")).encode())


async def _other(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer the lifespan messages, and refuse WebSockets."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "not served here"})
        return
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})
