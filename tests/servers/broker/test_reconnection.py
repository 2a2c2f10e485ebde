"""A subscription that cannot be made, or made again: mistakes end it at once, what may pass is tried for so long."""

import asyncio
import socket
import ssl
from random import Random

import httpx
import pytest

from streamgauge.broker import AsyncClient, AwayError, BrokerError, Client
from streamgauge.servers.broker.reconnection import PATIENCE_S, Reconnection
from streamgauge.sources.backoff import Backoff

URL = "http://broker.example"
UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate"


class Line:
    """A broker that always answers alike; time passes while somebody sleeps."""

    def __init__(self, answer):
        self.answer, self.now, self.calls, self.told = answer, 0.0, 0, []

    def __call__(self, request):
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise httpx.ConnectError("no connection", request=request) from self.answer
        return self.answer(request)

    def sleep(self, seconds):
        self.now += seconds

    def ended(self, monkeypatch, url=URL, **more):
        """The error that ends a subscription."""
        monkeypatch.setattr("streamgauge.servers.broker.client.Reconnection", self.reconnection)
        client = Client(url, http=httpx.Client(transport=httpx.MockTransport(self)))
        subscription = client.subscribe("c", "me", sleep=self.sleep, tell=lambda *why: self.told.append(why), **more)
        with pytest.raises(BrokerError) as error:
            next(subscription)
        return error.value

    def reconnection(self, url, backoff, patience, tell):
        return Reconnection(url, Backoff(Random(1)), patience, tell, lambda: self.now)


def answering(status, **headers):
    return Line(lambda _: httpx.Response(status, headers=headers, json={"error": f"it is {status}"}))


@pytest.mark.parametrize("status", [301, 302, 400, 401, 403, 404, 410, 412, 421, 422, 501])
def test_a_refusal_ends_a_subscription(monkeypatch, status):
    line = answering(status, Location="file:///etc/passwd")
    error = line.ended(monkeypatch)
    assert (error.status, str(error), line.calls, line.told) == (status, f"it is {status}", 1, [])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_and_told_each_time(monkeypatch, status):
    line = answering(status)
    error = line.ended(monkeypatch)
    assert isinstance(error, AwayError)
    assert f"answers {status}: given up after" in str(error)
    assert PATIENCE_S - 15 < line.now <= PATIENCE_S
    assert len(line.told) == line.calls - 1 > 50
    assert all(f"answers {status}" in why for why, _ in line.told)
    assert max(wait for _, wait in line.told) <= 10


def test_retry_after_is_kept_to(monkeypatch):
    line = answering(503, **{"Retry-After": "100"})
    assert "asks to come again in 100 s" in str(line.ended(monkeypatch))
    assert [wait for _, wait in line.told] == [100] * 6
    line = answering(503, **{"Retry-After": "86400"})
    line.ended(monkeypatch)
    assert (line.calls, line.now) == (1, 0)


@pytest.mark.parametrize("url", ["gopher://broker.example", "file:///etc/passwd", "broker.example", "http://[::1"])
def test_an_address_that_is_none_ends_a_subscription(monkeypatch, url):
    line = Line(None)
    with httpx.Client() as real:
        client = Client(url, http=real)
        with pytest.raises(BrokerError, match="not a web address"):
            next(client.subscribe("c", sleep=line.sleep, tell=lambda *why: line.told.append(why)))
        with pytest.raises(AwayError):
            client.publish("")
    assert line.told == []


def test_a_certificate_that_is_not_trusted_ends_a_subscription(monkeypatch):
    line = Line(UNTRUSTED)
    error = line.ended(monkeypatch)
    assert ("its certificate is not trusted: self-signed" in str(error), line.told) == (True, [])
    assert not isinstance(error, AwayError)


def test_a_host_that_is_nowhere_ends_a_subscription_that_never_began(monkeypatch):
    line = Line(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    assert isinstance(line.ended(monkeypatch), AwayError)
    assert (line.calls, line.told) == (1, [])
    line = Line(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"))
    line.ended(monkeypatch, patience=30)
    assert line.calls > 3


def test_a_connection_that_ends_at_once_is_not_made_for_ever(monkeypatch):
    line = Line(lambda _: httpx.Response(200, content=b""))
    assert "the connection ended: given up" in str(line.ended(monkeypatch))
    assert len(line.told) == line.calls - 1


def test_an_acknowledgement_that_is_refused_is_said():
    event = (
        b'data: {"channel":"c","number":1,"key":"k","publications":[1],"at":0,'
        b'"added":{"head":{"vars":["x"]},"results":{"bindings":[]}},"removed":{"head":{"vars":["x"]},"results":{"bindings":[]}}}\n\n'
    )

    def answer(request):
        if request.method == "PUT":
            return httpx.Response(403, json={"error": "the name me belongs to another token"})
        return httpx.Response(200, content=event)

    async def use():
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            subscription = AsyncClient(URL, http=http).subscribe("c", "me")
            assert (await anext(subscription)).number == 1
            with pytest.raises(BrokerError, match="belongs to another token"):
                await anext(subscription)

    asyncio.run(use())


def test_what_is_tried_again_is_logged(caplog):
    line = answering(503)
    again = Reconnection(URL, Backoff(Random(1)), 5.0, steady=lambda: line.now)
    line.sleep(again.busy(httpx.Response(503)))
    assert "answers 503: trying again in 0.1 s" in caplog.text


STRANGE = ["", "<html>", "[]", "{}", '{"head": 1}', '{"channels": 1}', '{"publication": "x"}', "null", '"x"']


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("doing", ["rows", "channel", "channels", "publish"])
def test_what_no_broker_says_is_a_sentence(text, doing):
    strange = httpx.MockTransport(lambda _: httpx.Response(200, text=text, headers={"Notification": "x"}))
    client = Client("http://a.example", http=httpx.Client(transport=strange))
    arguments = {"channels": (), "publish": ("<urn:a> <urn:b> <urn:c> .",)}.get(doing, ("c",))
    with pytest.raises(BrokerError, match=r"a\.example.* does not answer as a broker does: is the address right\?"):
        getattr(client, doing)(*arguments)


@pytest.mark.parametrize(
    "event", ["data: x\n\n", "event: missed\ndata: {}\n\n", "data: []\n\n", 'data: {"added": 1}\n\n']
)
def test_an_event_of_no_broker_is_a_sentence(event):
    headers = {"Content-Type": "text/event-stream"}
    strange = httpx.MockTransport(lambda _: httpx.Response(200, text=event, headers=headers))
    with pytest.raises(BrokerError, match="does not answer as a broker does"):
        next(Client("http://a.example", http=httpx.Client(transport=strange)).subscribe("c", sleep=lambda _: None))
