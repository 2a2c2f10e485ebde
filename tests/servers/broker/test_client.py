"""The client, awaited and not: each operation, a server that goes and comes back, refusals as sentences."""

import asyncio
import socket

import pytest

from streamgauge.broker import Acknowledged, AsyncClient, AwayError, BrokerError, Client
from streamgauge.servers.broker.sqlite import SqliteJournal
from tests.outgoing.test_clients import EVENTS, OK, answering, piecewise
from tests.servers.broker.served import GRAPH, OTHER, serving
from tests.servers.broker.world import broker, select

pytestmark = pytest.mark.server

STUDENTS = select("?x a :Student")


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def test_all_operations_can_be_awaited():
    async def use(url):
        async with AsyncClient(url) as client:
            await client.create_channel("a channel of mine", STUDENTS)
            assert (await client.channels()) == ("a channel of mine",)
            assert await client.channels("b") == ()
            made = await client.channel("a channel of mine")
            assert (made.form, made.columns, made.notification, made.connections) == ("SELECT", ("x",), 0, 0)
            subscription = client.subscribe("a channel of mine", "me", after=0)
            assert await client.publish(GRAPH, key="k") == Acknowledged(1, repeated=False)
            assert await client.publish(GRAPH, key="k") == Acknowledged(1, repeated=True)
            first = await anext(subscription)
            assert (first.added, first.removed, first.publications) == ((("<urn:t:s1>",),), (), (1,))
            await client.update("DELETE WHERE { ?x a <urn:t:Student> }")
            assert (await anext(subscription)).removed == (("<urn:t:s1>",),)
            await client.delete(OTHER)
            assert (await client.rows("a channel of mine")).rows == ()
            await client.unsubscribe("a channel of mine", "me")
            await client.delete_channel("a channel of mine")
            assert [item async for item in subscription] == []
            with pytest.raises(BrokerError, match="there is no channel"):
                await client.rows("a channel of mine")

    with serving(broker()) as (url, _):
        asyncio.run(use(url))


LONG = b'{"head":{"vars":["s"]},"results":{"bindings":[' + b'{"s":{"type":"uri","value":"urn:a"}},' * 100
OVERSIZED = {
    "an answer": [OK + b"Content-Length: 9000\r\n\r\n" + LONG],
    "an endless answer": [OK + b"\r\n", *[LONG] * 10],
    "an endless notification": [EVENTS, *[b"data: " + LONG] * 10],
    "a notification in lines": [EVENTS + (b"data: " + LONG[:500] + b"\n") * 10 + b"\n"],
}


@pytest.mark.parametrize("kind", OVERSIZED)
def test_what_is_larger_than_a_client_takes_ends_with_the_remedy_and_is_not_asked_for_again(kind):
    requests = []

    def answer(connection):
        requests.append(connection)
        piecewise(OVERSIZED[kind], 0)(connection)

    async def awaited(url):
        async with AsyncClient(url, largest=3000) as client:
            if "notification" in kind:
                await anext(client.subscribe("c"))
            await client.rows("c")

    with answering(answer) as port, Client(f"http://127.0.0.1:{port}", largest=3000) as client:
        for use in (
            lambda: next(client.subscribe("c")) if "notification" in kind else client.rows("c"),
            lambda: asyncio.run(awaited(f"http://127.0.0.1:{port}")),
        ):
            with pytest.raises(BrokerError, match="more than 3000 bytes: raise `largest` of the client") as error:
                use()
            assert not isinstance(error.value, AwayError)
    assert len(requests) == 2


def test_a_subscription_outlives_the_server(tmp_path):
    port, slept = free_port(), []
    with Client(f"http://127.0.0.1:{port}") as client:
        with serving(broker(journal=SqliteJournal(tmp_path / "j")), port=port):
            client.create_channel("c", STUDENTS)
            subscription = client.subscribe("c", "me", after=0, sleep=slept.append)
            client.publish(GRAPH)
            first = next(subscription)
        with serving(broker(journal=SqliteJournal(tmp_path / "j")), port=port):
            client.publish(OTHER)
            second = next(subscription)
            subscription.close()
    assert [(item.number, item.added) for item in (first, second)] == [
        (1, (("<urn:t:s1>",),)),
        (2, (("<urn:t:s2>",),)),
    ]
    assert len(slept) >= 1


def test_a_channel_that_is_not_there_is_refused_at_once():
    with (
        serving(broker()) as (url, _),
        Client(url) as client,
        pytest.raises(BrokerError, match="no channel c") as refused,
    ):
        next(client.subscribe("c"))
    assert refused.value.status == 404
