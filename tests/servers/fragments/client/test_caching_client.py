"""Requests: lifetimes, rounds, coalescing, retries, limits, what is counted."""

import asyncio
import gzip
from collections.abc import Callable
from email.utils import formatdate

import httpx
import pytest

from streamgauge.servers.fragments.client import (
    LinkedDataError,
    ShownTime,
    StatusError,
    UnavailableError,
    cache_control,
    lifetime,
    shown_time,
)
from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient, ResponseCache, ServerClock
from streamgauge.servers.fragments.client.transport import ClientLimits
from streamgauge.servers.http.headers import retry_after
from tests.servers.fragments.client.fakes import HOST, Chunks, Clock, reply, web

AT = f"{HOST}/a"
NOW = 1_700_000_000_000


def date(ms: int) -> str:
    return formatdate(ms // 1000, usegmt=True)


class Pages:
    """Answers with a number that grows, under headers that a test gives."""

    def __init__(self, clock: Clock, **headers: str) -> None:
        self.clock, self.headers, self.asked = clock, headers, []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        headers = {"Date": date(self.clock()), **self.headers}
        if "ETag" in headers and request.headers.get("if-none-match") == headers["ETag"]:
            return reply(304, **headers)
        return reply(200, b"<urn:a> <urn:b> %d ." % len(self.asked), **headers)


def getting(client: CachingHttpClient, *waits: float, use: CacheUse = CacheUse.CACHED) -> list[bytes]:
    """The bodies of an address, asked for again after each wait (s)."""

    async def run() -> list[bytes]:
        results = [(await client.get(AT, client.reach(AT), use=use)).body]
        for wait in waits:
            await client.sleep(wait)
            results.append((await client.get(AT, client.reach(AT), use=use)).body)
        return results

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({}, 3),
        ({"Cache-Control": "max-age=5"}, 2),
        ({"Cache-Control": "max-age=100"}, 1),
        ({"Cache-Control": "max-age=100", "Age": "97"}, 2),
        ({"Cache-Control": "max-age=100", "Expires": date(NOW + 5000)}, 2),
        ({"Expires": date(NOW + 100_000)}, 1),
        ({"Expires": "0"}, 3),
        ({"Cache-Control": "max-age=100, no-cache"}, 3),
        ({"Cache-Control": "no-store, max-age=100"}, 3),
        ({"Cache-Control": "max-age=soon"}, 3),
        ({"Cache-Control": "MAX-AGE=100"}, 1),
        ({"Cache-Control": "max-age=100", "Vary": "*"}, 3),
        ({"Cache-Control": 'private, max-age="100"'}, 1),
        ({"Cache-Control": "s-maxage=100"}, 3),
    ],
)
def test_responses_are_used_as_long_as_they_say(headers: dict[str, str], asked: int) -> None:
    clock = Clock(NOW)
    pages = Pages(clock, **headers)
    client = web(pages, clock)
    getting(client, 2, 4)  # at 0, 2 and 6 s
    assert len(pages.asked) == asked
    assert client.counters.requests == asked
    assert client.counters.hits == 3 - asked


def test_validators_are_sent_and_304_is_counted() -> None:
    clock = Clock()
    pages = Pages(clock, ETag='"one"', **{"Cache-Control": "max-age=1"})
    client = web(pages, clock)
    assert len(set(getting(client, 2, 2))) == 1
    assert client.counters.not_modified == 2
    assert client.counters.received < 700
    pages.headers["ETag"] = '"two"'
    assert getting(client, 2)[1].endswith(b"4 .")


def test_last_modified_validates_where_there_is_no_etag() -> None:
    clock = Clock()
    pages = Pages(clock, **{"Last-Modified": date(clock.now - 60_000)})
    getting(web(pages, clock), 1)
    assert pages.asked[1].headers["if-modified-since"] == date(clock.now - 61_000)


def test_a_304_gives_new_times() -> None:
    clock = Clock(NOW)
    client = web(Pages(clock, ETag='"one"', **{"Cache-Control": "max-age=1"}), clock)

    async def run() -> None:
        first = await client.get(AT, client.reach(AT))
        await client.sleep(3)
        second = await client.get(AT, client.reach(AT))
        assert (first.at, first.until, second.at, second.until) == (NOW, NOW + 1000, NOW + 3000, NOW + 4000)

    asyncio.run(run())


def test_a_round_sees_one_response_and_the_next_another() -> None:
    clock = Clock()
    client = web(Pages(clock), clock)

    async def bodies(use: CacheUse = CacheUse.CACHED) -> set[bytes]:
        with client.round(use):
            return {(await client.get(AT, client.reach(AT))).body for _ in range(3)}

    async def run() -> None:
        first, second = await bodies(), await bodies()
        assert len(first) == len(second) == 1
        assert first != second

    asyncio.run(run())


def test_a_round_may_ask_for_what_is_fresh() -> None:
    clock = Clock()
    pages = Pages(clock, ETag='"one"', **{"Cache-Control": "max-age=100"})
    client = web(pages, clock)

    async def run() -> None:
        for use, asked in ((CacheUse.CACHED, 1), (CacheUse.CACHED, 1), (CacheUse.REVALIDATE, 2), (CacheUse.CACHED, 2)):
            with client.round(use):
                await client.get(AT, client.reach(AT))
                await client.get(AT, client.reach(AT))
            assert len(pages.asked) == asked

    asyncio.run(run())


def test_concurrent_misses_are_one_request() -> None:
    clock = Clock()
    pages = Pages(clock)

    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return pages(request)

    client = web(slow, clock)

    async def run() -> None:
        result = await asyncio.gather(*(client.get(AT, client.reach(AT)) for _ in range(20)))
        assert len({item.body for item in result}) == 1

    asyncio.run(run())
    assert len(pages.asked) == 1
    assert client.counters.coalesced == 19


def test_who_leaves_does_not_take_the_request_with_it() -> None:
    gate = asyncio.Event()

    async def waiting(request: httpx.Request) -> httpx.Response:
        await gate.wait()
        return reply(200, b"")

    client = web(waiting)

    async def run() -> None:
        one, two = (asyncio.create_task(client.get(AT, client.reach(AT))) for _ in range(2))
        await asyncio.sleep(0.01)
        one.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert (await two).body == b""
        assert one.cancelled()

    asyncio.run(run())


def test_a_request_that_nobody_waits_for_ends_and_is_asked_again() -> None:
    ended = []

    async def endless(request: httpx.Request) -> httpx.Response:
        if ended:
            return reply(200, b"")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        raise AssertionError

    client = web(endless)

    async def run() -> None:
        one = asyncio.create_task(client.get(AT, client.reach(AT)))
        await asyncio.sleep(0.01)
        one.cancel()
        two = asyncio.create_task(client.get(AT, client.reach(AT)))
        await asyncio.gather(one, return_exceptions=True)
        assert (await two).body == b""

    asyncio.run(run())
    assert ended == [True]


def failing(times: int, then: Callable[[], httpx.Response]) -> Callable[[httpx.Request], httpx.Response]:
    """A handler that is good after it was bad some times."""
    left = [times]

    def handler(request: httpx.Request) -> httpx.Response:
        left[0] -= 1
        return then() if left[0] >= 0 else reply(200, b"good")

    return handler


def broken() -> httpx.Response:
    raise httpx.ConnectError("refused")


FAULTS: dict[str, Callable[[], httpx.Response]] = {
    "500": lambda: reply(500, b"no"),
    "502": lambda: reply(502, b""),
    "429": lambda: reply(429, b"", Retry_After="7"),
    "no connection": broken,
    "truncated": lambda: reply(200, b"half", content_length="8"),
    "truncated gzip": lambda: reply(200, gzip.compress(b"a" * 5000)[:-9], content_encoding="gzip"),
    "no gzip": lambda: reply(200, b"plain", content_encoding="gzip"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_passes_is_tried_again(fault: str) -> None:
    clock = Clock()
    client = web(failing(3, FAULTS[fault]), clock)
    assert getting(client) == [b"good"]
    assert client.counters.retries == 3
    assert all(0 < second <= 8 for second in clock.slept)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_stays_is_said(fault: str) -> None:
    client = web(failing(9, FAULTS[fault]))
    with pytest.raises(UnavailableError, match=rf"^{AT}: .*after 4 attempts"):
        getting(client)
    assert client.counters.requests == 4


def test_waits_grow_and_have_jitter() -> None:
    clock = Clock()
    client = web(failing(5, FAULTS["500"]), clock, ClientLimits(attempts=6))
    getting(client)
    assert all(0.25 * 2**number <= wait <= 0.75 * 2**number for number, wait in enumerate(clock.slept))
    assert len(set(clock.slept)) == 5


def test_retry_after_is_kept_to_and_bounded() -> None:
    for asked, low, high in (("7", 7, 7.5), ("999999", 60, 60.5), (date(NOW + 5000), 5, 5.5), ("soon", 0.25, 0.75)):
        clock = Clock(NOW)
        getting(web(failing(1, lambda asked=asked: reply(503, b"", Retry_After=asked)), clock))
        assert low <= clock.slept[0] <= high


def test_other_statuses_are_not_tried_again() -> None:
    client = web(lambda request: reply(404, b"there is no such data set", kind="text/plain"))
    with pytest.raises(StatusError, match="answers 404: there is no such data set") as raised:
        getting(client)
    assert raised.value.status == 404
    assert client.counters.requests == 1


def test_a_server_that_does_not_answer_in_time() -> None:
    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(UnavailableError, match=r"no answer within 0\.02 s"):
        getting(web(silent, limits=ClientLimits(seconds=0.02, attempts=2)))


def test_a_body_that_comes_too_slowly() -> None:
    class Slow(httpx.AsyncByteStream):
        async def __aiter__(self):
            while True:
                yield b"."
                await asyncio.sleep(0.005)

    with pytest.raises(UnavailableError, match=r"no answer within 0\.05 s"):
        getting(web(lambda request: httpx.Response(200, stream=Slow()), limits=ClientLimits(seconds=0.05, attempts=1)))


def test_a_body_that_is_too_long() -> None:
    endless = (b"x" * 1000 for _ in iter(int, 1))
    client = web(lambda request: httpx.Response(200, stream=Chunks(endless)), limits=ClientLimits(received=50_000))
    with pytest.raises(LinkedDataError, match="more than 50000 bytes: raise the limit `received`"):
        getting(client)
    assert client.counters.received < 60_000


def test_a_gzip_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    client = web(lambda request: reply(200, bomb, content_encoding="gzip"), limits=ClientLimits(unpacked=1_000_000))
    with pytest.raises(LinkedDataError, match="unpacks to more than 1000000 bytes"):
        getting(client)


def test_the_limit_of_unpacked_bytes_holds_for_bodies_without_a_coding() -> None:
    client = web(lambda request: reply(200, bytes(2_000)), limits=ClientLimits(unpacked=1_000))
    with pytest.raises(LinkedDataError, match="unpacks to more than 1000 bytes"):
        getting(client)


def test_an_encoding_that_was_not_asked_for() -> None:
    with pytest.raises(LinkedDataError, match="encoded as 'br', which was not asked for"):
        getting(web(lambda request: reply(200, b"x", content_encoding="br")))


def test_bytes_on_the_wire_are_the_compressed_ones() -> None:
    body = b"<urn:a> <urn:b> <urn:c> .\n" * 1000
    client = web(lambda request: reply(200, gzip.compress(body), content_encoding="gzip"))
    assert getting(client) == [body]
    assert client.counters.unpacked == len(body)
    assert client.counters.received < 500


def test_requests_to_one_host_are_bounded() -> None:
    now, most = [0], [0]

    async def counting(request: httpx.Request) -> httpx.Response:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.001)
        now[0] -= 1
        return reply(200, b"")

    client = web(counting, limits=ClientLimits(at_once=3))

    async def run() -> None:
        await asyncio.gather(*(client.get(f"{HOST}/{n}", client.reach(HOST)) for n in range(20)))

    asyncio.run(run())
    assert most == [3]


def test_the_cache_is_bounded_and_lets_the_least_used_go() -> None:
    clock = Clock()
    requests = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.path)
        return reply(200, bytes(1000), Cache_Control="max-age=100", Date=date(clock()))

    client = web(handler, clock, cache=ResponseCache(60_000))

    async def run() -> None:
        for number in (*range(10), 0, *range(10, 15), 0, 1):
            await client.get(f"{HOST}/{number}", client.reach(HOST))
        assert client.cache.size <= 60_000

    asyncio.run(run())
    assert requests.count("/0") == 1
    assert requests.count("/1") == 2


def test_what_is_as_large_as_the_cache_is_not_kept() -> None:
    client = web(lambda request: reply(200, bytes(1000), Cache_Control="max-age=100"), cache=ResponseCache(10_000))
    getting(client, 0)
    assert client.counters.requests == 2
    assert len(client.cache) == client.cache.size == 0


def test_two_clients_share_a_cache() -> None:
    clock, cache = Clock(), ResponseCache()
    pages = Pages(clock, **{"Cache-Control": "max-age=100"})
    one, two = web(pages, clock, cache=cache), web(pages, clock, cache=cache)
    assert getting(one) == getting(two)
    assert len(pages.asked) == 1


def test_the_servers_clock_is_found() -> None:
    clock, server = Clock(NOW + 400), Clock(NOW + 2700)
    client = web(Pages(server, **{"Cache-Control": "max-age=5"}), clock)

    async def run() -> None:
        response = await client.get(AT, client.reach(AT))
        assert (response.at, response.until) == (NOW + 2000, NOW + 7000)
        assert 1300 <= client.server_clock(AT).ahead <= 2300 <= client.server_clock(AT).ahead + 999
        assert client.server_clock("http://other.example/").ahead == 0

    asyncio.run(run())


def test_the_offset_narrows_and_follows_a_clock_that_was_set() -> None:
    clock = ServerClock()
    for own in range(0, 5000, 130):
        clock.seen(ShownTime((own + 2300) // 1000 * 1000), own, own + 5)
    assert abs(clock.ahead - 2300) <= 150
    clock.seen(ShownTime(50_000), 1000, 1005)
    assert 48_995 <= clock.ahead <= 49_999


def test_cache_control_is_read_as_written() -> None:
    assert cache_control('public, Max-Age=5 , x="y",,max-age=7') == {"public": "", "max-age": "5", "x": "y", "": ""}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"expires": date(NOW + 6000)}, (NOW - 4000, NOW, NOW + 6000)),
        ({"expires": date(NOW + 10_000)}, (NOW, NOW, NOW + 10_000)),
        ({"expires": date(NOW + 20_000)}, (NOW, NOW, NOW + 10_000)),
        ({"expires": date(NOW - 1000)}, (NOW - 11_000, NOW, NOW - 1000)),
        ({"expires": "0"}, (NOW, NOW, NOW)),
        ({}, (NOW, NOW, NOW + 10_000)),
    ],
)
def test_what_a_cache_dated_anew_is_of_the_time_that_expires_tells(
    more: dict[str, str], expected: tuple[int, int, int]
) -> None:
    """Facts are valid at the origin's instant: without versions Date alone tells it."""
    headers = httpx.Headers({"date": date(NOW), "cache-control": "max-age=10", "dataset-version": "7.1", **more})
    lived = lifetime(headers, 7000)
    assert (lived.at, lived.now, lived.until) == expected
    del headers["dataset-version"]
    assert lifetime(headers, 7000).at == NOW


def test_without_a_date_the_own_clock_is_taken() -> None:
    lived = lifetime({"cache-control": "max-age=3"}, 7000)
    assert (lived.at, lived.until, lived.now) == (7000, 10_000, 7000)
    assert lifetime({"date": "yesterday"}, 7000).at == 7000
    assert retry_after({}, 0) is None


@pytest.mark.parametrize("skew", [0, 300, -10_000, 3_600_000])
def test_a_date_to_come_back_at_counts_from_the_servers_date(skew: int) -> None:
    said = {"retry-after": date(NOW + 20_000), "date": date(NOW)}
    assert retry_after(said, NOW + skew) == 20


@pytest.mark.parametrize(
    ("exact", "time"), [(f"{NOW + 345}", NOW + 345), (f"{NOW - 1}", NOW), ("soon", NOW), ("9" * 30, NOW), ("", NOW)]
)
def test_the_servers_time_in_ms_counts_where_date_agrees(exact: str, time: int) -> None:
    assert shown_time({"date": date(NOW), "server-time": exact}) == ShownTime(time, 1 if time != NOW else 1000)
    assert shown_time({"server-time": exact}) is None


def test_a_gzip_body_may_have_several_members() -> None:
    body = gzip.compress(b"one ") + gzip.compress(b"two")
    assert getting(web(lambda request: reply(200, body, content_encoding="gzip"))) == [b"one two"]
