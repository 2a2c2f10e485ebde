"""Notifications by WebSocket: our messages with acknowledgements, SEPA's with the whole answer first."""

import json

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from streamgauge.broker import Client
from streamgauge.servers.broker.access import Access, read_grants
from tests.servers.broker.served import GRAPH, OTHER, serving
from tests.servers.broker.world import BASE, broker, select

pytestmark = pytest.mark.server

STUDENTS = select("?x a :Student")
GRANTS = ["a-token-for-everything\n", "a-token-for-news-only subscribe news-*"]


@pytest.fixture
def served():
    with serving(broker()) as (url, made), Client(url) as client:
        made.load(BASE)
        made.create_channel("students", STUDENTS)
        yield url.replace("http", "ws", 1), made, client


def hear(socket):
    return json.loads(socket.recv(20))


def test_notifications_are_messages_and_acknowledged(served):
    url, made, client = served
    with connect(f"{url}/channels/students/notifications?subscriber=me") as socket:
        client.publish(GRAPH)
        first = hear(socket)
        assert (first["number"], first["added"]["results"]["bindings"]) == (
            1,
            [{"x": {"type": "uri", "value": "urn:t:s1"}}],
        )
        client.publish(OTHER)
        assert hear(socket)["number"] == 2
        socket.send('{"acknowledge": 1}')
        socket.send("{}")
        with pytest.raises(ConnectionClosed, match="only"):
            socket.recv(20)
    assert made.channel("students").acknowledged == {"me": 1}
    with connect(f"{url}/channels/students/notifications?subscriber=me") as socket:
        assert hear(socket)["number"] == 2
        client.delete_channel("students")
        with pytest.raises(ConnectionClosed, match="the channel was deleted"):
            socket.recv(20)


def test_an_unknown_channel_is_refused(served):
    with pytest.raises(InvalidStatus), connect(f"{served[0]}/channels/none/notifications"):
        pass


def test_sepa_tells_the_answer_and_then_its_differences(served):
    url, made, client = served
    client.publish(GRAPH)
    with connect(f"{url}/subscribe") as one, connect(f"{url}/subscribe") as two:
        for socket in (one, two):
            socket.send(json.dumps({"subscribe": {"sparql": STUDENTS, "alias": "all"}}))
        first = hear(one)["notification"]
        assert (first["sequence"], first["alias"]) == (0, "all")
        assert first["addedResults"]["results"]["bindings"] == [{"x": {"type": "uri", "value": "urn:t:s1"}}]
        assert first["removedResults"] == {"head": {"vars": ["x"]}, "results": {"bindings": []}}
        assert hear(two)["notification"]["spuid"] != first["spuid"]
        assert len(made.channels()) == 2
        client.delete(GRAPH)
        second = hear(one)["notification"]
        assert (second["spuid"], second["sequence"], second["removedResults"]) == (
            first["spuid"],
            1,
            first["addedResults"],
        )
        assert hear(two)["notification"]["sequence"] == 1
        one.send(json.dumps({"unsubscribe": {"spuid": first["spuid"]}}))
        assert hear(one) == {"unsubscribed": {"spuid": first["spuid"]}}
        client.publish(OTHER)
        assert hear(two)["notification"]["sequence"] == 2
        one.send(json.dumps({"subscribe": {"sparql": "SELECT * { ?x a <urn:t:Course> }"}}))
        assert "alias" not in hear(one)["notification"]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("", "expected JSON"),
        ("[" * 20_000, "expected JSON"),
        ({"subscribe": {"sparql": 1}}, "SELECT"),
        ({"subscribe": {"sparql": "SELECT"}}, "line 1"),
        ({"subscribe": {"sparql": STUDENTS, "default-graph-uri": ["urn:g"]}}, "write GRAPH <...> { ... } in the query"),
        ({"subscribe": {"sparql": STUDENTS, "named-graph-uri": "urn:g"}}, "named-graph-uri is not supported"),
        ({"subscribe": {"sparql": STUDENTS, "using-graph-uri": "urn:g"}}, "using-graph-uri is not supported"),
        ({"unsubscribe": {"spuid": "none"}}, "no subscription of that spuid"),
    ],
)
def test_sepa_messages_that_are_refused(served, message, says):
    with connect(f"{served[0]}/subscribe") as socket:
        socket.send(message if isinstance(message, str) else json.dumps(message))
        said = hear(socket)
        assert (said["status_code"], says in said["error_description"]) == (400, True), said
        socket.send(json.dumps({"subscribe": {"sparql": STUDENTS}}))
        assert hear(socket)["notification"]["sequence"] == 0


def test_tokens_hold_for_websockets_too():
    made = broker()
    for name in ("news-1", "other"):
        made.create_channel(name, STUDENTS)
    with serving(made, Access(read_grants(GRANTS))) as (url, _):
        ws, token = url.replace("http", "ws", 1), "access_token=a-token-for-news-only"
        for path in ("/channels/news-1/notifications", f"/channels/other/notifications?{token}", "/subscribe"):
            with pytest.raises(InvalidStatus), connect(ws + path):
                pass
        with connect(f"{ws}/channels/news-1/notifications?{token}"), connect(f"{ws}/subscribe?{token}") as socket:
            socket.send(json.dumps({"subscribe": {"sparql": STUDENTS}}))
            assert "not for createChannel" in hear(socket)["error_description"]
    assert len(made.channels()) == 2


def test_what_was_asked_before_a_crash_is_forgotten():
    made = broker()
    made.create_channel("sepa:old", STUDENTS)
    made.create_channel("mine", STUDENTS)
    with serving(made):
        assert [channel.name for channel in made.channels()] == ["mine"]


def test_sepa_asks_named_graphs_truth_and_windows(served):
    url, _, client = served
    queries = {
        "graph": "SELECT ?g { GRAPH ?g { ?x a <urn:t:Student> } }",
        "ask": "ASK { GRAPH <urn:t:g> { ?x a <urn:t:Student> } }",
        "top": "SELECT ?x { GRAPH ?g { ?x a <urn:t:Student> } } ORDER BY DESC(?x) LIMIT 1",
    }
    with connect(f"{url}/subscribe") as socket:
        for alias, text in queries.items():
            socket.send(json.dumps({"subscribe": {"sparql": text, "alias": alias}}))
        first = {entry["alias"]: entry for entry in (hear(socket)["notification"] for _ in queries)}
        assert first["ask"]["addedResults"]["results"]["bindings"][0]["ask"]["value"] == "false"
        client.publish("<urn:t:g> { <urn:t:s1> a <urn:t:Student> . <urn:t:s2> a <urn:t:Student> }", "application/trig")
        told = {entry["alias"]: entry for entry in (hear(socket)["notification"] for _ in queries)}
        values = {
            alias: [next(iter(row.values()))["value"] for row in entry["addedResults"]["results"]["bindings"]]
            for alias, entry in told.items()
        }
        assert values == {"graph": ["urn:t:g"], "ask": ["true"], "top": ["urn:t:s2"]}
