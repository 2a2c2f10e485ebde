"""Push over sockets, in real time: a client whose clock is wrong by seconds misses nothing."""

import asyncio
import contextlib
import threading
import time

import httpx
import pytest

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import writes
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries.watch import steady_clock, watch
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.http.server import Serving

QUERY = "SELECT ?o { ?s <urn:p> ?o }"
LASTS = 500


def wall():
    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def served():
    """A data set on a server of its own thread, and its address."""
    dataset, said = DataSet("set", MemoryStore(), Style(), wall), []
    app = application([dataset])
    settings = {"date_header": False, "server_header": False}
    server = Serving(app, "127.0.0.1", 0, app.leave, said.append, settings=settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not said:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield dataset, f"{said[0].rstrip('/')}/set"
    finally:
        server.stop()
        thread.join(300)


async def watched(dataset, address, skew):
    """When each value was shown first, when no more, and how far the answers' instants were from the true time."""
    own, begun, apart = steady_clock(), {}, []
    web = CachingHttpClient(httpx.AsyncClient(), lambda: own() + skew, asyncio.sleep, allowed=("127.0.0.1",))
    answers, shown, ended, truth = watch(QUERY, [address], whole=True, push=True, web=web), {}, {}, {}

    async def noted():
        async for answer in answers:
            now, values = wall(), {row[0] for row in answer.added}
            apart.append(abs(answer.instant - now))
            for value in values - set(shown):
                shown[value] = now
            for value in set(shown) - values - set(ended):
                ended[value] = now

    writes.add(dataset, [Fact(("<urn:s>", "<urn:p>", '"always"'), None, wall() + 60_000)])
    task = asyncio.create_task(noted())
    await asyncio.sleep(1)
    for number in range(3):
        begun[f'"{number}"'] = wall()
        truth[f'"{number}"'] = wall() + LASTS
        writes.add(dataset, [Fact((f"<urn:s{number}>", "<urn:p>", f'"{number}"'), None, truth[f'"{number}"'])])
        await asyncio.sleep(LASTS / 1000 + 0.4)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await answers.aclose()
    await web.aclose()
    return begun, truth, shown, ended, apart


@pytest.mark.server
@pytest.mark.realtime
@pytest.mark.parametrize("skew", [10_000, -300])
def test_what_lasts_half_a_second_is_seen_whatever_the_clients_clock_shows(skew):
    with served() as (dataset, address):
        begun, truth, shown, ended, apart = asyncio.run(watched(dataset, address, skew))
    assert set(begun) <= set(shown)
    assert set(begun) == set(ended)
    assert max(shown[value] - begun[value] for value in begun) < 1_000
    assert max(abs(ended[value] - truth[value]) for value in begun) < 1_000
    assert max(apart) < 1_000
