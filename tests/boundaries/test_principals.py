"""No principal gets past the guard of an application, whatever route it has, and each request has its account."""

import asyncio
from dataclasses import fields

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute

from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.http.access import Guard, guards
from streamgauge.servers.queries.limits import QueryLimits
from tests.boundaries.principals import (
    ACCOUNTS,
    APPLICATIONS,
    FACES,
    PASSED_ON,
    READS,
    Application,
    accounted,
    makes_application,
    routes,
    trespasses,
    unaccounted,
)
from tests.boundaries.sockets import SRC, TOKEN

USUAL = Application(lambda *_: None)


def test_every_application_is_known():
    results = {str(file.relative_to(SRC)) for file in SRC.rglob("*.py") if makes_application(file.read_text("utf-8"))}
    assert results == set(APPLICATIONS) | set(PASSED_ON)


@pytest.mark.server
@pytest.mark.parametrize("name", APPLICATIONS)
def test_nobody_gets_past_the_guard_at_any_route(name, tmp_path):
    known = APPLICATIONS[name]
    app, open_app = known.make(tmp_path, [TOKEN]), known.make(tmp_path, [])
    assert asyncio.run(trespasses(app, open_app, known)) == []


@pytest.mark.server
def test_all_routes_of_all_servers_are_tried(tmp_path):
    results = {name: list(routes(known.make(tmp_path, [TOKEN]))) for name, known in APPLICATIONS.items()}
    assert ("WS", "/subscribe") in results["servers/broker/http.py"]
    assert ("GET", "/live/static/x") in results["workbench/application.py"] or len(
        results["workbench/application.py"]
    ) > 30
    assert sum(map(len, results.values())) > 80


async def secret(_request):
    return PlainTextResponse("a secret")


async def talk(websocket):
    await websocket.accept()
    await websocket.close()


UNGUARDED = {
    "no guard": Starlette(routes=[Route("/new", secret)]),
    "a free path": Starlette(
        routes=[Route("/new", secret)], middleware=[Middleware(Guard, tokens=[TOKEN], free=["/new"])]
    ),
    "a mount": Starlette(routes=[Mount("/rooms", routes=[Route("/new", secret, methods=["POST"])])]),
    "a WebSocket": Starlette(routes=[WebSocketRoute("/new", talk)]),
    "no tokens": Starlette(routes=[Route("/new", secret)], middleware=guards((), None)),
}


@pytest.mark.parametrize("name", UNGUARDED)
def test_a_route_without_its_guard_fails(name):
    app = UNGUARDED[name]
    assert any("/new: nobody gets" in item for item in asyncio.run(trespasses(app, app, USUAL)))


def test_a_guarded_route_does_not():
    guarded, open_app = (
        Starlette(routes=[Route("/new", secret), WebSocketRoute("/talk", talk)], middleware=guards(tokens, None))
        for tokens in ([TOKEN], [])
    )
    assert asyncio.run(trespasses(guarded, open_app, USUAL)) == []
    assert {method for method, _ in routes(guarded)} >= READS - {"OPTIONS"} | {"WS"}


def test_a_new_application_is_found():
    assert makes_application("from starlette.applications import Starlette\napp = Starlette(routes=[])")
    assert makes_application("class NewApp:\n    async def __call__(self, scope, receive, send): ...")
    assert not makes_application("app = application()")


def test_every_request_goes_to_an_account():
    faces = [file for folder in ACCOUNTS for name in FACES for file in (SRC / folder).rglob(name)]
    functions = accounted()
    assert functions.keys() > {".create_channel", ".subscribe", ".submit", ".register", ".publish", "read_key"}
    results = {str(file): lines for file in faces if (lines := unaccounted(file.read_text("utf-8"), functions))}
    assert results == {}


@pytest.mark.parametrize(
    "text",
    [
        "self._broker.create_channel(name, query)",
        "run_in_threadpool(self._queries.register, registration)",
        "partial(self._broker.acknowledge, name, subscriber, number, require=demands)",
    ],
)
def test_a_request_without_an_account_is_found(text):
    assert unaccounted(text, accounted()) == [1]
    passed = text[:-1] + ", owner=owner)"
    assert unaccounted(passed, accounted()) == []


OWN = {
    Limits: {"channels", "kept_total", "keys", "subscribers", "waiting"},
    QueryLimits: {"queries", "subscribers", "elements_per_second"},
}
"""Limits of each principal; who reaches them leaves those of others: ``quotas`` of broker and query service."""

OF_ALL = {
    Limits: {
        "answer", "batch", "body", "change", "changes", "connections", "creations", "derived", "effort", "facts",
        "graph", "growth", "kept", "kept_bytes", "lag", "looks", "query_text", "question", "rows", "seconds", "term",
        "text", "where_seconds",
    },
    QueryLimits: {
        "body", "growth", "jump", "kept", "kept_bytes", "lag", "lifetime", "memory", "query_text", "registrations",
        "seconds", "shared_triples", "static_triples", "streams", "waiting",
    },
}  # fmt: skip
"""Limits of a request, a query, a channel, or of all together."""


@pytest.mark.parametrize("limits", OWN)
def test_every_limit_is_of_a_principal_or_of_all(limits):
    assert {field.name for field in fields(limits)} == OWN[limits] | OF_ALL[limits]
    assert not OWN[limits] & OF_ALL[limits]
