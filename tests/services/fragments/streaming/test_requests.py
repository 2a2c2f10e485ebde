"""What the train query costs: requests and bytes of the first answer and of a cycle; a crowd does not come at once."""

import asyncio
from collections import Counter
from random import Random

import pytest
from benchmarks.streamer import QUERY, measured

from streamgauge.model.fact import Fact
from streamgauge.services.fragments.annotations import methods
from streamgauge.services.fragments.fetching.cache import Cache
from streamgauge.services.fragments.streaming.watching import watch
from streamgauge.services.fragments.style import Style
from tests.services.fragments.streaming import simulated
from tests.services.fragments.streaming.boards import Boards, T
from tests.services.fragments.streaming.simulated import BASE, START, Served, Wire, clock, run


@pytest.mark.parametrize("name", methods())
def test_first_in_six_requests_then_one_that_is_small(name):
    first, *later = run(measured(name, "incremental", "on", 3))
    assert first.requests <= (6 if name == "graphs" else 12)
    assert max(cycle.requests for cycle in later) <= 3
    assert max(cycle.received for cycle in later) < (5000 if name in ("graphs", "singleton") else 25_000)


def test_a_cache_saves_most_of_what_the_published_plan_asks():
    costs = {cache: run(measured("graphs", "streamer", cache, 3, 20)) for cache in ("on", "off", "prototype")}
    later = {cache: max(cycle.requests for cycle in found[1:]) for cache, found in costs.items()}
    assert later["on"] * 5 < later["off"]
    assert later["prototype"] < later["off"]


async def crowd(clients, ends):
    """When each of a crowd polls again that waits for one expiration, ms after it."""
    random = Random(0)
    served = Served(Style())
    served.add([Fact((f"<{T}a>", f"<{T}delay>", '"1"'), START, START + ends)])
    wire = Wire(served.app, random)
    query = f"SELECT * {{ ?s <{T}delay> ?o }}"

    async def client():
        web = simulated.web(wire, cache=Cache(2**20))
        answers = watch(query, [f"{BASE}/trains"], web=web, random=random)
        await anext(answers)
        await anext(answers)
        await answers.aclose()

    tasks = [asyncio.create_task(client()) for _ in range(clients)]
    await asyncio.sleep(ends / 1000 - 1)
    seen = len(wire.log)
    await asyncio.gather(*tasks)
    return [at - START - ends for at, *_ in wire.log[seen:]]


@pytest.mark.parametrize("clients", [200, pytest.param(1000, marks=pytest.mark.prove)])
def test_a_crowd_that_waits_for_one_expiration_is_spread(clients):
    polled = run(crowd(clients, 20_000))
    assert len(polled) == clients
    assert min(polled) >= 0
    assert max(polled) < 2_500
    assert max(Counter(each // 100 for each in polled).values()) < clients / 10


def test_a_new_departure_is_seen_at_the_next_poll():
    async def watched():
        random = Random(3)
        served, boards = Served(Style()), Boards(random, 5)
        boards.begin(served)
        wire = Wire(served.app, random)
        answers = watch(QUERY, [f"{BASE}/trains"], web=simulated.web(wire), random=random)
        first = await anext(answers)
        await asyncio.sleep(20)
        name = boards._arrive()
        served.add(boards.static(name) + boards.dynamic(clock()))
        second = await anext(answers)
        await answers.aclose()
        return first, second

    first, second = run(watched())
    assert len(first.added) == 5
    assert (len(second.added), second.removed) == (1, ())
