"""Ids of requests: taken from the client or new, in the response and in each record."""

import asyncio
import logging
from itertools import count

import pytest

from streamgauge.model.logs import REQUEST
from streamgauge.servers.http.request_log import RequestLog

SEEN: list[str] = []


async def application(scope, _receive, send):
    SEEN.append(REQUEST.get())
    if scope["path"] == "/fails":
        raise ValueError("it fails")
    await send({"type": "http.response.start", "status": 204, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": b""})


async def asked(app, path="/queries", headers=(), kind="http"):
    """The messages that are sent for a request."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "method": "GET", "path": path, "query_string": b"access_token=hush", "headers": headers}
    await app(scope, None, send)
    return sent


def logged(app):
    numbers, times = count(1), count()
    return RequestLog(app, lambda: f"new{next(numbers)}", lambda: next(times) / 1000)


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        ([], "new1"),
        ([(b"x-request-id", b"from-a.proxy_7")], "from-a.proxy_7"),
        ([(b"x-request-id", b"two words")], "new1"),
        ([(b"x-request-id", b"x" * 65)], "new1"),
        ([(b"x-request-id", b"\x1b[2J")], "new1"),
        ([(b"x-request-id", b"")], "new1"),
    ],
)
def test_a_request_has_an_id(sent, known):
    SEEN.clear()
    start, _ = asyncio.run(asked(logged(application), headers=sent))
    assert start["headers"] == [(b"x-own", b"1"), (b"x-request-id", known.encode())]
    assert [known] == SEEN


def test_requests_are_logged_at_debug_without_their_query_string(caplog):
    with caplog.at_level(logging.DEBUG, "streamgauge"):
        asyncio.run(asked(logged(application)))
        with pytest.raises(ValueError, match="it fails"):
            asyncio.run(asked(logged(application), "/fails"))
    assert [record.getMessage() for record in caplog.records] == ["GET /queries", "GET /fails"]
    assert [record.fields for record in caplog.records] == [{"status": 204, "ms": 1.0}, {"ms": 1.0}]
    assert "hush" not in caplog.text


def test_nothing_is_logged_above(caplog):
    with caplog.at_level(logging.INFO, "streamgauge"):
        asyncio.run(asked(logged(application)))
    assert caplog.records == []


def test_a_prompt_answer_is_asked_for_where_no_id_was_sent_and_no_request_is_logged(caplog):
    async def app(*_):
        """Never called."""

    app.prompt = lambda *_: b"whole"
    logging_app = logged(app)
    assert logging_app.prompt("http", b"/x", {}) == b"whole"
    assert logging_app.prompt("http", b"/x", {b"x-request-id": b"r1"}) is None
    with caplog.at_level(logging.DEBUG, "streamgauge"):
        assert logging_app.prompt("http", b"/x", {}) is None
    assert getattr(logged(application), "prompt", None) is None
