"""Behind a cache that many share, as nginx is: it dates what it keeps anew, and says no Age."""

import asyncio
from email.utils import formatdate
from random import Random

import httpx
import pytest

from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.servers.fragments.client import cache_control
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import Boards
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, clock, run
from tests.servers.fragments.live_queries.test_replay import PREFIX, QUERIES, apart
from tests.sparql.pyoxigraph.restated import restated

CLIENTS = 12
APART_S = 7
"""Between the starts of clients."""


class Shared(httpx.AsyncBaseTransport):
    """Keeps what is fresh; answers conditions itself, and dates everything by its own clock."""

    def __init__(self, wire):
        self.wire, self._kept, self.random = wire, {}, wire.random
        self.asked = 0

    async def handle_async_request(self, request):
        self.asked += 1
        key = str(request.url), request.headers.get("accept")
        if self._kept.get(key, (0, None))[0] <= clock():
            self._kept[key] = await self._fetched(request)
        _, response = self._kept[key]
        headers = httpx.Headers({**response.headers, "date": formatdate(clock() // 1000, usegmt=True)})
        if request.headers.get("if-none-match", "-") == headers.get("etag"):
            return httpx.Response(304, headers=headers)
        return httpx.Response(response.status_code, headers=headers, stream=simulated.Body(response.content))

    async def _fetched(self, request):
        """What the server says, and until when that may be said again."""
        bare = {name: value for name, value in request.headers.items() if name in ("accept", "host")}
        response = await self.wire.handle_async_request(httpx.Request("GET", request.url, headers=bare))
        await response.aread()
        life = cache_control(response.headers.get("cache-control", "")).get("max-age", "0")
        return clock() + (1000 * int(life) if response.status_code == 200 else 0), response


async def watched(text, served, shared, seed, until):
    """A client's answers, and of each how far it is from all that was held within the second that it says."""
    wrong, count, plain = [], 0, sparql(restated(parse_sparql(text)))
    answers = watch(
        text, [f"{BASE}/trains"], whole=True, style=served.style, random=Random(seed), web=simulated.web(shared)
    )
    async for answer in answers:
        count += 1
        troubles = [apart(plain, held, answer) for held in at(served, answer.instant)]
        if all(troubles):
            wrong.append((answer.instant - simulated.START, troubles[-1]))
        if clock() >= until:
            break
    await answers.aclose()
    return count, wrong


def at(served, instant):
    """What the server held in the second from an instant on."""
    begins, ends = served.changed, [*served.changed[1:], clock() + 1]
    states = zip(served.history.values(), begins, ends, strict=True)
    return [held for held, begun, ended in states if begun < instant + 1000 and ended > instant]


async def crowd(seed):
    random = Random(seed)
    served = Served(Style(), page_size=random.choice((5, 100)))
    shared = Shared(Wire(served.app, random))
    until = clock() + 120_000
    feeding = asyncio.create_task(Boards(random, 6).run(served, until))

    async def client(number):
        await asyncio.sleep(APART_S * number + random.uniform(0, 1))
        return await watched(PREFIX + QUERIES[(seed + number) % len(QUERIES)], served, shared, number, until)

    found = await asyncio.gather(*map(client, range(CLIENTS)))
    feeding.cancel()
    return found, len(shared.wire.log), shared.asked


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(4, 60))])
def test_answers_are_of_the_instant_that_they_say(seed):
    found, served, asked = run(crowd(seed))
    assert min(count for count, _ in found) > 1
    assert [wrong for _, wrong in found if wrong] == []
    assert served < asked
