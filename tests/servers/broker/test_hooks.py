"""Webhooks: in order, until they are taken, each once to who looks at the keys, across restarts."""

import asyncio
import json

import httpx
import pytest

from streamgauge.outgoing.guarded import Guarded
from streamgauge.servers.broker import delivery
from streamgauge.servers.broker.delivery import NotificationTexts, Webhook, WebhookError, Webhooks, read_hook, refused
from streamgauge.servers.broker.sqlite import SqliteJournal
from tests.servers.broker.world import broker, fact, select

HOOK = Webhook("c", "http://taker.example/in")


class Taker:
    """A webhook that fails at some of its calls."""

    def __init__(self, failing=()):
        self.failing, self.calls, self.got = set(failing), 0, []

    def __call__(self, request):
        self.calls += 1
        if self.calls in self.failing:
            if self.calls % 2:
                raise httpx.ConnectError("nobody there")
            return httpx.Response(503)
        self.got.append((request.headers["idempotency-key"], json.loads(request.content)["number"]))
        return httpx.Response(204)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.169.254", "[::ffff:10.0.0.1]", "192.168.1.1:80"]
)
def test_a_private_address_is_allowed_by_name_only(host):
    with pytest.raises(WebhookError, match="is not a public host: --webhook-host"):
        read_hook(f"c=http://{host}/in")
    name = httpx.URL(f"http://{host}").host
    assert read_hook(f"c=http://{host}/in", [name]) == Webhook("c", f"http://{host}/in", private=True)
    assert not read_hook("c=http://taker.example/in", [name]).private


@pytest.mark.parametrize("private", [False, True])
def test_a_name_that_leads_to_a_private_address_is_not_connected_to(private):
    made, taker, went = broker(), Taker(), []
    made.create_channel("c", select("?x a :Student"))

    async def resolving(host, _port):
        went.append(host)
        return ["127.0.0.1"]

    async def run():
        async def sleep(_seconds):
            await asyncio.sleep(0)

        def client():
            return httpx.AsyncClient(
                transport=Guarded(refused, resolving, transport=lambda: httpx.MockTransport(taker))
            )

        hook = Webhook("c", "http://taker.example/in", private)
        hooks = Webhooks(made, NotificationTexts(), [hook], client, sleep)
        made.subscribe("c", hook.subscriber, lambda: None).close()
        publishing(made, 0, 1)
        async with asyncio.timeout(20), hooks.running():
            while not (taker.got or hooks.failures):
                await asyncio.sleep(0.01)
        return hooks.failures

    failures = asyncio.run(run())
    assert (bool(taker.got), bool(failures)) == (private, not private)
    assert set(went) == {"taker.example"}


def deliver(made, taker, count):
    """Run the webhooks until so many are taken."""

    async def run():
        waited = []

        async def sleep(seconds):
            waited.append(seconds)
            await asyncio.sleep(0)

        hooks = Webhooks(
            made, NotificationTexts(), [HOOK], lambda: httpx.AsyncClient(transport=httpx.MockTransport(taker)), sleep
        )
        async with asyncio.timeout(20), hooks.running():
            while len(taker.got) < count or made.channel("c").acknowledged[HOOK.subscriber] < taker.got[-1][1]:
                await asyncio.sleep(0.01)
        return hooks.failures, waited

    return asyncio.run(run())


def publishing(made, first, last):
    for n in range(first, last):
        made.publish([fact(f"s{n}", "a", "Student")])


def test_what_is_not_taken_is_tried_again_and_survives_a_restart(tmp_path):
    made = broker(journal=SqliteJournal(tmp_path / "j"))
    made.create_channel("c", select("?x a :Student"))
    made.subscribe("c", HOOK.subscriber, lambda: None).close()
    publishing(made, 0, 3)
    taker = Taker(failing={1, 2, 4})
    failures, waited = deliver(made, taker, 3)
    assert [number for _, number in taker.got] == [1, 2, 3]
    assert (failures, len(waited)) == (3, 3)
    publishing(made, 3, 5)
    made.close()
    again, taker = broker(journal=SqliteJournal(tmp_path / "j")), Taker()
    deliver(again, taker, 2)
    assert [number for _, number in taker.got] == [4, 5]
    assert len({key for key, _ in taker.got}) == 2
    again.close()


@pytest.mark.parametrize("durable", [False, True])
def test_a_channel_has_its_webhooks_from_its_first_notification_on(tmp_path, durable):
    made, taker = broker(journal=SqliteJournal(tmp_path / "j") if durable else None), Taker()
    made.create_channel("other", select("?x a :Student"))

    async def run():
        async def sleep(_seconds):
            await asyncio.sleep(0)

        hooks = Webhooks(
            made, NotificationTexts(), [HOOK], lambda: httpx.AsyncClient(transport=httpx.MockTransport(taker)), sleep
        )
        made.create_channel("c", select("?x a :Student"))
        publishing(made, 0, 3)
        if durable:
            made.close()
            return
        async with asyncio.timeout(20), hooks.running():
            while len(taker.got) < 3:
                await asyncio.sleep(0.01)

    asyncio.run(run())
    if durable:
        again = broker(journal=SqliteJournal(tmp_path / "j"))
        deliver(again, taker, 3)
        again.close()
    assert [number for _, number in taker.got] == [1, 2, 3]


def test_a_restart_subscribes_webhooks_before_anything_is_published():
    made, taker = broker(), Taker()
    made.create_channel("c", select("?x a :Student"))
    publishing(made, 0, 2)
    Webhooks(made, NotificationTexts(), [HOOK])
    publishing(made, 2, 4)
    deliver(made, taker, 2)
    assert [number for _, number in taker.got] == [3, 4]


class Endless(httpx.AsyncByteStream):
    """An answer that does not end: at once, or a byte now and then."""

    def __init__(self, pause):
        self.pause, self.sent = pause, 0

    async def __aiter__(self):
        while True:
            await asyncio.sleep(self.pause)
            self.sent += 1
            yield b"x" * (1 if self.pause else 16_384)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("pause", [0, 0.01])
def test_an_answer_without_an_end_is_cut(monkeypatch, status, pause):
    monkeypatch.setattr(delivery, "DRAIN_S", 0.1)
    made, answers = broker(), []
    made.create_channel("c", select("?x a :Student"))

    def answer(_request):
        answers.append(Endless(pause))
        return httpx.Response(status if len(answers) == 1 else 204, stream=answers[-1] if len(answers) == 1 else None)

    async def run():
        async def sleep(_seconds):
            await asyncio.sleep(0)

        hooks = Webhooks(
            made, NotificationTexts(), [HOOK], lambda: httpx.AsyncClient(transport=httpx.MockTransport(answer)), sleep
        )
        publishing(made, 0, 2)
        async with asyncio.timeout(20), hooks.running():
            while made.channel("c").acknowledged[HOOK.subscriber] < 2:
                await asyncio.sleep(0.01)
        return hooks.failures

    assert asyncio.run(run()) == (0 if status == 200 else 1)
    assert answers[0].sent <= 12


@pytest.mark.parametrize("host", ["2130706433", "0", "0x7f.1", "127.1", "[fec0::1]", "[64:ff9b:1::1]"])
def test_a_private_address_in_any_notation_is_refused_at_the_start(host):
    with pytest.raises(WebhookError, match="is not a public host"):
        read_hook(f"c=http://{host}/in")


@pytest.mark.parametrize("text", ["", "c", "c=", "=http://x", "c=file:///x"])
def test_what_is_no_webhook(text):
    with pytest.raises(WebhookError, match="CHANNEL=URL"):
        read_hook(text)
