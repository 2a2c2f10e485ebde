"""Bodies of requests: packed ones unpacked within bounds, and all that arrive together within a budget."""

import asyncio
import gzip
import zlib

import pytest
from starlette.requests import Request

from streamgauge.servers.http import limits
from streamgauge.servers.http.headers import accepts
from streamgauge.servers.http.limits import (
    STATUS,
    ArrivingBodies,
    BodyError,
    CrowdedBodiesError,
    counted_body,
    read_body,
)

TEXT = b"<urn:a> <urn:b> <urn:c> .\n" * 100


def request(body, **headers):
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw, "method": "POST"}, receive)


def read(body, limit=10_000, **headers):
    return asyncio.run(read_body(request(body, **headers), limit))


def status(error):
    return next(code for kind, code in STATUS.items() if isinstance(error, kind))


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (TEXT, "identity"),
        (gzip.compress(TEXT), "gzip"),
        (gzip.compress(TEXT), "X-GZip"),
        (zlib.compress(TEXT), "deflate"),
        (gzip.compress(zlib.compress(TEXT)), "deflate, gzip"),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_a_packed_body_is_unpacked(body, coding):
    assert read(body, content_encoding=coding) == TEXT


@pytest.mark.parametrize(
    ("body", "coding", "code"),
    [
        (TEXT, "rot13", 415),
        (TEXT, "gzip, rot13", 415),
        (TEXT, "gzip", 400),
        (gzip.compress(TEXT)[:-9], "gzip", 400),
        (gzip.compress(b"x" * 10_001), "gzip", 413),
        (gzip.compress(b"x" * 10_000_000), "gzip", 413),
    ],
    ids=lambda value: len(value) if isinstance(value, bytes) else value,
)
def test_another_coding_damage_and_too_much_are_refused(body, coding, code):
    with pytest.raises(BodyError) as refused:
        read(body, content_encoding=coding)
    assert status(refused.value) == code


def test_bodies_that_arrive_together_have_a_budget():
    arriving = ArrivingBodies(100)
    with arriving.body() as first:
        first(150)  # alone, it may be larger
        with arriving.body() as second, pytest.raises(CrowdedBodiesError, match="again later"):
            second(1)
        first(50)
    with arriving.body() as third, arriving.body() as fourth:
        third(60)
        fourth(40)
        with pytest.raises(CrowdedBodiesError):
            fourth(1)
    with arriving.body() as last:
        last(100)


def test_a_body_counts_as_sent_and_unpacked_until_it_is_understood(monkeypatch):
    monkeypatch.setattr(limits, "BODIES", ArrivingBodies(300))
    sizes = []

    async def one(text, seconds):
        async with counted_body(request(text), 10_000) as body:
            sizes.append(len(body))
            await asyncio.sleep(seconds)

    async def all_of_them():
        understanding = asyncio.create_task(one(b"x" * 200, 60))
        await asyncio.sleep(0)
        with pytest.raises(CrowdedBodiesError):
            await one(b"y" * 200, 0)
        with pytest.raises(CrowdedBodiesError):
            async with counted_body(request(gzip.compress(b"z" * 2000), content_encoding="gzip"), 10_000):
                pass
        understanding.cancel()
        await asyncio.wait([understanding])
        await one(b"y" * 200, 0)

    asyncio.run(all_of_them())
    assert sizes == [200, 200]


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (b"text/event-stream", True),
        (b"text/turtle, Text/Event-Stream;q=0.1", True),
        (b"text/event-stream;q=0, text/turtle", False),
        (b"text/event-stream; q=0.000", False),
        (b"text/event-streams", False),
        (b"*/*", False),
        (b"", False),
    ],
)
def test_events_are_sent_to_those_who_accept_them(header, wanted):
    assert accepts(header, "text/event-stream") is wanted
