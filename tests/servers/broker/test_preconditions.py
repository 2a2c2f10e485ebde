"""If-Match and If-None-Match on each write of the broker: held against entity tags, refused where there are none."""

import pytest

from tests.servers.broker.served import GRAPH, TURTLE, Client
from tests.servers.broker.world import BASE, broker, select

STUDENTS = select("?x a :Student")
UPDATE = {"Content-Type": "application/sparql-update"}
ME = "/channels/c/subscribers/me"


@pytest.fixture
def ask():
    made = broker()
    made.load(BASE)
    made.create_channel("c", STUDENTS)
    with Client(made) as client:
        yield client


def state(made):
    return set(made.facts()), {channel.name: dict(channel.acknowledged) for channel in made.channels()}, made.number


@pytest.mark.parametrize("condition", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize("value", ["*", '"x"', 'W/"x"'])
@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/publish", {"content": GRAPH, "headers": TURTLE}),
        ("/delete", {"content": GRAPH, "headers": TURTLE}),
        ("/update", {"content": "DELETE WHERE { ?s ?p ?o }", "headers": UPDATE}),
    ],
)
def test_facts_have_no_entity_tag(ask, path, options, condition, value):
    before = state(ask.broker)
    refused = ask("POST", path, content=options["content"], headers={**options["headers"], condition: value})
    assert (refused.status_code, f"{path} has no entity tag" in refused.json()["error"]) == (412, True)
    assert state(ask.broker) == before


def test_a_channel_is_deleted_only_as_it_is_demanded(ask):
    tag = ask("GET", "/channels/c").headers["etag"]
    assert ask("GET", "/channels/c", headers={"If-None-Match": tag}).status_code == 304
    ask("POST", "/publish", content=GRAPH, headers=TURTLE)
    assert ask("GET", "/channels/c", headers={"If-Match": tag}).status_code == 412
    for condition in ({"If-Match": tag}, {"If-Match": f"W/{tag}"}, {"If-None-Match": "*"}):
        refused = ask("DELETE", "/channels/c", headers=condition)
        assert (refused.status_code, "the channel c" in refused.json()["error"]) == (412, True)
    assert ask("DELETE", "/channels/none", headers={"If-Match": "*"}).status_code == 404
    tag = ask("GET", "/channels/c").headers["etag"]
    assert ask("DELETE", "/channels/c", headers={"If-Match": f'"x",{tag}'}).status_code == 204


def test_a_channel_is_created_only_where_there_is_none(ask):
    fresh = {"If-None-Match": "*"}
    assert ask("PUT", "/channels/c", content=STUDENTS, headers=fresh).status_code == 412
    assert ask("PUT", "/channels/c", content=STUDENTS).status_code == 409
    assert ask("PUT", "/channels/d", content=STUDENTS, headers={"If-Match": "*"}).status_code == 412
    made = ask("PUT", "/channels/d", content=STUDENTS, headers=fresh)
    assert (made.status_code, made.headers["etag"]) == (201, ask("GET", "/channels/d").headers["etag"])


def test_a_subscriber_acknowledges_and_leaves_only_as_is_demanded(ask):
    assert ask("PUT", ME, headers={"If-Match": "*"}).status_code == 412
    first = ask("PUT", ME, headers={"If-None-Match": "*"})
    assert (first.status_code, first.headers["etag"]) == (204, ask("GET", ME).headers["etag"])
    assert ask("PUT", ME, headers={"If-None-Match": "*"}).status_code == 412
    ask("POST", "/publish", content=GRAPH, headers=TURTLE)
    second = ask("PUT", f"{ME}?acknowledged=1", headers={"If-Match": first.headers["etag"]})
    assert (second.status_code, ask("GET", ME).json()["acknowledged"]) == (204, 1)
    assert ask("DELETE", ME, headers={"If-Match": first.headers["etag"]}).status_code == 412
    assert ask("DELETE", ME, headers={"If-Match": second.headers["etag"]}).status_code == 204
    assert ask("DELETE", ME, headers={"If-Match": "*"}).status_code == 412


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/publish"), ("PUT", "/channels/d"), ("DELETE", "/channels/c"), ("PUT", ME)]
)
def test_what_is_no_condition_is_said(ask, method, path):
    before = state(ask.broker)
    refused = ask(method, path, content=GRAPH, headers={**TURTLE, "If-Match": "abc"})
    assert (refused.status_code, "expected * or a list" in refused.json()["error"]) == (400, True)
    assert state(ask.broker) == before
