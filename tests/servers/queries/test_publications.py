"""Small bodies of lines that skip the application have the answers, effects, checks and records that it gives."""

import asyncio
import gzip
import logging
import re
from contextlib import contextmanager

import pytest
import uvicorn
from uvicorn.server import ServerState

from streamgauge.servers.http.access import read_origins
from streamgauge.servers.http.connections import PatientHttpProtocol
from streamgauge.servers.http.request_log import RequestLog
from streamgauge.servers.queries import publications
from streamgauge.servers.queries.http import application
from streamgauge.servers.queries.requests import QueryRegistration
from tests.servers.http.test_prompt_posts import Flowing
from tests.servers.queries.asks import IN, OUT, construct, select, service

LINE = b'{"t": 1000, "add": "<urn:a> <urn:p> <urn:b> ."}\n'
TOKEN = "a-token-of-the-test"
LINES, BEARER = "Content-Type: application/x-ndjson", f"Authorization: Bearer {TOKEN}"


def post(body=LINE, target=f"/streams/{IN}", fields=(LINES,), host="localhost"):
    """The bytes of a request."""
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def at(time):
    return LINE.replace(b"1000", b"%d" % time)


@contextmanager
def queries_of(**limits):
    queries = service(**limits)
    try:
        queries.register(QueryRegistration(construct()))
        queries.register(QueryRegistration(select()))
        yield queries
    finally:
        queries.close("over")


async def answers(app, requests):
    """The bytes written for each request of a connection, without new ids of requests."""
    settings = uvicorn.Config(app, lifespan="off", log_config=None, proxy_headers=False)
    settings.load()
    state = ServerState()
    state.default_headers = [(b"date", b"today")]
    protocol, transport = PatientHttpProtocol(settings, state, {}), Flowing()
    protocol.connection_made(transport)
    written = []
    for request in requests:
        before = len(transport.written)
        protocol.data_received(request)
        async with asyncio.timeout(30):
            while len(transport.written) == before or protocol.tasks:
                await asyncio.sleep(0.001)
        written.append(re.sub(rb"(x-request-id: )[0-9a-f]{16}", rb"\1new", transport.written[before:]))
    protocol.connection_lost(None)
    parts = [one.partition(b"\r\n\r\n") for one in written]
    return [[*sorted(head.split(b"\r\n")), body] for head, _, body in parts]


def asked(requests, direct=True, tokens=(), origins=(), **limits):
    """The answers to requests, the numbers of elements of streams afterwards, and how many were answered directly."""
    with queries_of(**limits) as queries, pytest.MonkeyPatch.context() as patched:
        patched.setattr(publications, "PATIENCE_S", 0.0)
        app = application(queries, tokens, origins=read_origins(origins, bool(tokens)))
        way, answered = app.prompt_post, []

        def counted(*request):
            if reply := way(*request):
                answered.append(reply)
            return reply

        app.prompt_post = counted
        if not direct:
            del app.prompt_post
        written = asyncio.run(answers(RequestLog(app), requests))
        assert queries.settle(30)
        return written, queries.streams(), len(answered)


CASES = {
    "a line": ([post(), post(at(2000)), post(at(9000))], 3, {}),
    "many lines": ([post(LINE * 40), post(LINE * 2)], 2, {}),
    "no line": ([post(b"")], 1, {}),
    "an advance": ([post(b'{"advance": 7000}\n')], 1, {}),
    "a stream of nobody": ([post(target="/streams/urn:x"), post(target="/streams/urn%3Aa%20b")], 2, {}),
    "no stream": ([post(target="/streams/")], 1, {}),
    "a stream with a line break": ([post(target="/streams/a%0Ab")], 0, {}),
    "another path": ([post(target="/queries"), post(target="/stream/x")], 0, {}),
    "parameters": (
        [
            post(b'{"add": "<urn:a> <urn:p> <urn:b> ."}', f"/streams/{IN}?t=now"),
            post(LINE, f"/streams/{IN}?t=x"),
            post(LINE, f"/streams/{IN}?form=jsonl", ()),
            post(LINE, f"/streams/{IN}?form=x"),
        ],
        2,
        {},
    ),
    "other formats": ([post(b"<urn:a> <urn:p> 1 .", fields=("Content-Type: text/turtle",)), post(fields=())], 0, {}),
    "mistakes": (
        [post(b"{"), post(at(1000).replace(b"add", b"ad")), post(b'{"t": 1, "remove": "<urn:a> <urn:p> 1 ."}')],
        0,
        {},
    ),
    "a stream of answers": ([post(target=f"/streams/{OUT}")], 0, {}),
    "a jump of time": ([post(), post(at(10**12)), post(at(2000))], 2, {"jump": 100}),
    "a rate": ([post(LINE * 3), post(LINE)], 1, {"elements_per_second": 3.0}),
    "too many streams": ([post(target="/streams/urn:1"), post(target="/streams/urn:2")], 1, {"streams": 1}),
    "a long body": ([post(LINE * 3), post()], 1, {"body": 100}),
    "a key": ([post(fields=(LINES, "Idempotency-Key: k"))] * 2, 0, {}),
    "conditions": ([post(fields=(LINES, "If-Match: *"))], 0, {}),
    "a packed body": ([post(gzip.compress(LINE), fields=(LINES, "Content-Encoding: gzip"))], 0, {}),
    "another host": ([post(host="example.org"), post(host="127.0.0.1:80")], 1, {}),
    "a form of a page": ([post(fields=(LINES, "Sec-Fetch-Site: cross-site"))], 0, {}),
    "pages": (
        [post(fields=(LINES, "Origin: https://a.example")), post(fields=(LINES, "Origin: https://b.example")), post()],
        1,
        {"origins": ("https://a.example",)},
    ),
    "tokens": ([post(), post(fields=(LINES, BEARER)), post(fields=(LINES, f"{BEARER}s"))], 1, {"tokens": (TOKEN,)}),
    "a token in the address": ([post(target=f"/streams/{IN}?access_token={TOKEN}")], 0, {"tokens": (TOKEN,)}),
    "an id": ([post(fields=(LINES, "X-Request-Id: mine"))], 1, {}),
}


@pytest.mark.parametrize(("requests", "count", "options"), CASES.values(), ids=CASES)
def test_the_direct_way_answers_as_the_application(requests, count, options):
    written, streams, direct = asked(requests, **options)
    assert (written, streams) == asked(requests, direct=False, **options)[:2]
    assert direct == count


def test_queries_answer_in_the_order_of_requests():
    """Whatever way they take."""
    times = range(1000, 9000, 500)
    keys = [(f"Idempotency-Key: {time}",) if time % 1000 else () for time in times]
    requests = [post(at(time), fields=(LINES, *key)) for time, key in zip(times, keys, strict=True)]
    with queries_of() as queries:
        running = queries.query("q2")
        asyncio.run(answers(RequestLog(application(queries)), requests))
        assert queries.settle(30)
        assert (running.elements, running.late, running.time) == (len(times), 0, times[-1])


def test_requests_are_logged_at_debug_with_their_ids(caplog):
    with caplog.at_level(logging.DEBUG, "streamgauge.servers.http.request_log"):
        asked([post(target=f"/streams/{IN}?t=1", fields=(LINES, "X-Request-Id: mine"))])
    record = next(record for record in caplog.records if record.getMessage().startswith("POST"))
    assert record.getMessage() == f"POST /streams/{IN}"
    assert record.fields["status"] == 202


def test_an_internal_error_is_a_500_without_text_and_is_logged(caplog, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret")

    monkeypatch.setattr("streamgauge.servers.queries.registry.Queries.publish", fail)
    (lines,), _, direct = asked([post()])
    assert direct == 1
    assert b"HTTP/1.1 500 Internal Server Error" in lines
    assert b"secret" not in b"".join(lines)
    assert "a secret" in caplog.text
