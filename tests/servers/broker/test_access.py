"""Every route with every kind of token: what may be done is done, what may not changes nothing and tells nothing."""

import asyncio
import json
from contextlib import contextmanager

import pytest
from starlette.routing import WebSocketRoute

from streamgauge.servers.broker.access import OPERATIONS, Access, Grant
from streamgauge.servers.broker.http import application
from streamgauge.servers.broker.sepa import name_of
from tests.servers.broker.served import GRAPH, OTHER, TURTLE, Client
from tests.servers.broker.world import BASE, broker, fact, select

STUDENTS = select("?x a :Student")
UPDATE = {"Content-Type": "application/sparql-update"}
INSERT = "INSERT DATA { <urn:t:s8> a <urn:t:Student> }"
WRONG = "a-token-that-is-none-of-them"
QUERY = {"Content-Type": "application/sparql-query"}
ANYONE, HOLDER = "anyone", "holder"
"""Who needs no token at all, and who needs any."""

ROUTES = {
    ("GET", "/"): (ANYONE, {}),
    ("GET", "/health"): (ANYONE, {}),
    ("GET", "/ready"): (ANYONE, {}),
    ("GET", "/openapi.json"): (ANYONE, {}),
    ("GET", "/metrics"): (HOLDER, {}),
    ("GET", "/channels"): (HOLDER, {}),
    ("POST", "/publish"): (("publish",), {"content": OTHER, "headers": TURTLE}),
    ("POST", "/delete"): (("delete",), {"content": GRAPH, "headers": TURTLE}),
    ("POST", "/update"): (("publish", "delete"), {"content": INSERT, "headers": UPDATE}),
    ("GET", "/query"): (("query",), {"params": {"query": select("?x a :Grad")}}),
    ("POST", "/query"): (("query",), {"content": select("?x a :Grad"), "headers": QUERY}),
    ("PUT", "/channels/{name}"): (("createChannel",), {"content": select("?x a :Grad")}),
    ("DELETE", "/channels/{name}"): (("deleteChannel",), {}),
    ("GET", "/channels/{name}"): (("subscribe",), {}),
    ("GET", "/channels/{name}/rows"): (("subscribe",), {}),
    ("GET", "/channels/{name}/notifications"): (("subscribe",), {"headers": {"Last-Event-ID": "no number"}}),
    ("GET", "/channels/{name}/subscribers"): (("subscribe",), {}),
    ("GET", "/channels/{name}/subscribers/{subscriber}"): (("subscribe",), {}),
    ("PUT", "/channels/{name}/subscribers/{subscriber}"): (("subscribe",), {}),
    ("DELETE", "/channels/{name}/subscribers/{subscriber}"): (("unsubscribe",), {}),
}
SOCKETS = {"/channels/{name}/notifications": ("subscribe",), "/subscribe": ("createChannel", "subscribe")}
READING = [(method, path) for method, path in ROUTES if method == "GET"]

GRANTS = {
    "all": Grant("all-operations-everywhere"),
    "elsewhere": Grant("all-operations-elsewhere", frozenset(OPERATIONS), ("other-*", "news")),
    **{each: Grant(f"only-{each}-of-news", frozenset((each,)), ("news-*", "sepa:*")) for each in OPERATIONS},
    **{f"all but {each}": Grant(f"all-but-{each}-of-news", frozenset(OPERATIONS) - {each}) for each in OPERATIONS},
}
WHO = {"nobody": None, "wrong": WRONG, "prefix": "all-operations-everywher", **{n: g.token for n, g in GRANTS.items()}}


def may(who, needs):
    """Whether who holds this token has what a route needs, on the channel news-1."""
    if needs == ANYONE:
        return True
    if who not in GRANTS:
        return False
    grant = GRANTS[who]
    return needs == HOLDER or all(
        need in grant.operations and (need in ("publish", "delete", "query") or grant.channels != ("other-*", "news"))
        for need in needs
    )


@contextmanager
def served():
    made = broker()
    made.load([*BASE, fact("s1", "a", "Student")])
    made.create_channel("news-1", STUDENTS)
    made.subscribe("news-1", "me", lambda: None).close()
    with Client(made, Access(list(GRANTS.values()))) as client:
        yield client, made


def state(made):
    channels = {channel.name: (channel.query, dict(channel.acknowledged)) for channel in made.channels()}
    return set(made.facts()), channels, made.number


def bearing(token, headers=None):
    return {**(headers or {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}


def test_every_route_is_in_the_table():
    routes = application(broker()).routes
    results = {(method, route.path) for route in routes for method in getattr(route, "methods", ()) if method != "HEAD"}
    assert results == set(ROUTES)
    assert {route.path for route in routes if isinstance(route, WebSocketRoute)} == set(SOCKETS)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_route_does_what_a_token_is_for_and_nothing_else(method, path):
    needs, options = ROUTES[method, path]
    where = path.format(name="news-2" if (method, path) == ("PUT", "/channels/{name}") else "news-1", subscriber="me")
    with served() as (client, made):
        before = state(made)
        for who, token in WHO.items():
            if not may(who, needs):
                said = client(method, where, **{**options, "headers": bearing(token, options.get("headers"))})
                assert said.status_code == (403 if who in GRANTS else 401), (who, said.text)
                assert "s1" not in said.text
                assert state(made) == before, who
    for who in [who for who in WHO if may(who, needs)]:
        with served() as (client, _):
            said = client(method, where, **{**options, "headers": bearing(WHO[who], options.get("headers"))})
            assert said.status_code not in (401, 403), (who, said.text)


@pytest.mark.parametrize(("method", "path"), READING)
def test_a_head_request_is_no_way_around(method, path):
    needs, _ = ROUTES[method, path]
    with served() as (client, _):
        for who, token in WHO.items():
            where = path.format(name="news-1", subscriber="me")
            said = client("HEAD", where, headers=bearing(token, {"Last-Event-ID": "no number"}))
            assert (said.status_code in (401, 403)) is not may(who, needs), who


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_token_in_the_address_is_for_what_can_send_no_header(method, path):
    needs, options = ROUTES[method, path]
    with served() as (client, made):
        where, before = path.format(name="news-1", subscriber="me"), state(made)
        given = {**options, "params": {"access_token": GRANTS["all"].token, **options.get("params", {})}}
        said = client(method, where, **given)
        allowed = needs == ANYONE or method == "GET"
        assert (said.status_code != 401) is allowed
        assert allowed or state(made) == before


def test_only_the_channels_of_a_token_are_listed():
    with served() as (client, made):
        made.create_channel("other-1", STUDENTS)
        listed = {
            who: client("GET", "/channels", headers=bearing(token)).json().get("channels") for who, token in WHO.items()
        }
    assert listed["nobody"] is listed["wrong"] is None
    assert (listed["all"], listed["subscribe"], listed["elsewhere"]) == (["news-1", "other-1"], ["news-1"], ["other-1"])
    assert listed["all but subscribe"] == listed["publish"] == []


def converse(client, path, headers, *texts, query=""):
    """What a WebSocket gets that says these texts and leaves when nothing more comes."""
    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (name.lower().encode(), value.encode()) for name, value in {"Host": "localhost", **headers}.items()
        ],
        "subprotocols": [],
        "state": {},
    }
    said, heard = iter([{"type": "websocket.connect"}, *({"type": "websocket.receive", "text": t} for t in texts)]), []

    async def receive():
        for message in said:
            return message
        await asyncio.sleep(0.05)
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message):
        heard.append(message)

    client.wait(client.app(scope, receive, send))
    return heard


@pytest.mark.parametrize("way", ["header", "address"])
def test_a_websocket_tells_only_who_may_subscribe(way):
    with served() as (client, made):
        for who, token in WHO.items():
            name = f"subscriber=new-{len(state(made)[1]['news-1'][1])}"  # a name is for one token only
            before, query = state(made), f"{name}&after=0&access_token={token or ''}"
            if way == "header":
                heard = converse(client, "/channels/news-1/notifications", bearing(token), query=name)
            else:
                heard = converse(client, "/channels/news-1/notifications", {}, query=query)
            assert (heard[0]["type"] == "websocket.accept") is may(who, ("subscribe",)), (who, heard)
            if not may(who, ("subscribe",)):
                assert (heard[0]["type"], state(made)) == ("websocket.close", before)


@pytest.mark.parametrize("path", ["/channels/news-1/rows", "/channels/news-1"])
@pytest.mark.parametrize("header", ["Basic {}", "bearer", "Bearer", "Bearer {}x", "{}", "Bearer {} {}"])
def test_no_other_header_lets_in(path, header):
    with served() as (client, _):
        token = GRANTS["all"].token
        assert client("GET", path, headers={"Authorization": header.format(token, token)}).status_code == 401


def told(heard):
    """What came as text."""
    return [json.loads(each["text"]) for each in heard if each["type"] == "websocket.send"]


def test_sepa_asks_only_for_who_may_create_and_subscribe():
    asking = json.dumps({"subscribe": {"sparql": STUDENTS}})
    with served() as (client, made):
        for who, token in WHO.items():
            before = state(made)
            heard = converse(client, "/subscribe", bearing(token), asking)
            if who not in GRANTS:
                assert [each["type"] for each in heard] == ["websocket.close"]
            elif may(who, SOCKETS["/subscribe"]):
                assert "notification" in told(heard)[0]
            else:
                assert ([each["error"] for each in told(heard)], "s1" in str(heard)) == (["AccessError"], False)
            assert state(made) == before, who


def test_a_channel_asked_in_sepa_s_way_is_not_read_by_its_name_without_a_token_for_it():
    name = name_of(STUDENTS)
    with served() as (client, made):
        made.create_channel(name, STUDENTS)
        for who, token in WHO.items():
            said = client("GET", f"/channels/{name}/rows", headers=bearing(token))
            assert said.is_success is may(who, ("subscribe",)), who
