"""What the train query costs: requests and bytes of the first answer and of a cycle; a crowd does not come at once."""

import asyncio
from collections import Counter
from random import Random

import pytest
from benchmarks.streamer import QUERY, measured

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.client.caching_client import ResponseCache
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries import Caching, live_query
from streamgauge.servers.fragments.live_queries.incremental import IncrementalPlan
from streamgauge.servers.fragments.live_queries.streamer import StreamerPlan
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import Boards, T
from tests.servers.fragments.live_queries.fakes import FakeSource, FakeWeb
from tests.servers.fragments.live_queries.simulated import BASE, START, Served, Wire, clock, run


@pytest.mark.slow
@pytest.mark.parametrize("name", methods())
def test_first_in_six_requests_then_one_that_is_small(name):
    first, *later = run(measured(name, "incremental", "on", 3))
    assert first.requests <= 6
    assert max(cycle.requests for cycle in later) <= 3
    assert max(cycle.received for cycle in later) < 5000


@pytest.mark.slow
def test_a_cache_saves_most_of_what_the_published_plan_asks():
    costs = {cache: run(measured("graphs", "streamer", cache, 3, 20)) for cache in ("on", "off", "prototype")}
    later = {cache: max(cycle.requests for cycle in cost[1:]) for cache, cost in costs.items()}
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
        web = simulated.web(wire, cache=ResponseCache(2**20))
        answers = watch(query, [f"{BASE}/trains"], web=web, random=random)
        await anext(answers)
        await anext(answers)
        await answers.aclose()

    tasks = [asyncio.create_task(client()) for _ in range(clients)]
    await asyncio.sleep(ends / 1000 - 1)
    seen = len(wire.log)
    await asyncio.gather(*tasks)
    return [at - START - ends for at, *_ in wire.log[seen:]]


@pytest.mark.slow
@pytest.mark.parametrize("clients", [200, pytest.param(1000, marks=pytest.mark.prove)])
def test_a_crowd_that_waits_for_one_expiration_is_spread(clients):
    polled = run(crowd(clients, 20_000))
    assert len(polled) == clients
    assert min(polled) >= 0
    assert max(polled) < 2_500
    assert max(Counter(item // 100 for item in polled).values()) < clients / 10


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


async def other_changes(many, cycles):
    """What each cycle asks of a data set in which many facts change that no query needs; all answers are checked."""
    random = Random(2)
    served = Served(Style())
    wire = Wire(served.app, random)
    query = f"SELECT ?o {{ <{T}a> <{T}delay> ?o }}"

    async def feed():
        number = 0
        while True:
            number += 1
            end = clock() + 12_000
            others = [Fact((f"<{T}x{at}>", f"<{T}other>", f'"{number}"'), clock(), end) for at in range(many)]
            served.add([Fact((f"<{T}a>", f"<{T}delay>", f'"{number}"'), clock(), end), *others])
            await asyncio.sleep(10)

    feeding = asyncio.create_task(feed())
    await asyncio.sleep(0.001)
    answers = watch(query, [f"{BASE}/trains"], web=simulated.web(wire), random=random, whole=True)
    asked = []
    for _ in range(cycles):
        seen = len(wire.log)
        answer = await anext(answers)
        asked.append(["since=" in address for *_, address in wire.log[seen:]])
        held = served.history[wire.log[-1][2]]
        assert set(answer.added) == {
            (fact.triple[2],) for fact in held if fact.triple[0] == f"<{T}a>" and fact.holds(answer.instant)
        }
    await answers.aclose()
    feeding.cancel()
    return asked


@pytest.mark.slow
def test_what_changes_is_asked_for_unless_it_is_mostly_of_others():
    first, *later = run(other_changes(10, 5))
    assert not any(first)
    assert all(entry[0] and len(entry) <= 2 for entry in later), "what changed, and the label of a new graph"
    _, second, *later = run(other_changes(1200, 5))
    assert second[0]
    assert not any(any(entry) for entry in later)
    assert max(map(len, later)) <= 3


def test_queries_that_share_a_web_ask_less():
    async def requests(several):
        random = Random(4)
        served, boards = Served(Style()), Boards(random, 30)
        boards.begin(served)
        wire = Wire(served.app, random)
        shared = simulated.web(wire)

        async def one(head):
            text = f"SELECT * {{ ?id <{T}headSign> '{head}'; <{T}delay> ?delay }}"
            answers = watch(text, [f"{BASE}/trains"], web=shared if several else simulated.web(wire), random=random)
            await anext(answers)
            await answers.aclose()

        await asyncio.gather(*map(one, ("Gent", "Brugge", "Lille")))
        return len(wire.log)

    assert run(requests(True)) * 2 < run(requests(False))


def chain(size, begin, name, end):
    return [Fact((f"<urn:{begin}{at}>", f"<urn:{name}>", f"<urn:{end}{at}>")) for at in range(size)]


@pytest.mark.parametrize("caching", list(Caching))
def test_what_was_read_restricts_what_is_read_next(caching):
    facts = [*chain(3, "a", "p", "b"), *chain(2_000, "b", "q", "c"), *chain(1_500, "c", "r", "d")]
    web = FakeWeb()
    source = FakeSource(web, Style(), facts)
    query = live_query("SELECT ?d { ?b <urn:q> ?c . ?c <urn:r> ?d . ?a <urn:p> ?b }")
    for plan in (
        IncrementalPlan(query, [source], Style(), web, 0),
        StreamerPlan(query, [source], Style(), web, 0, caching),
    ):
        source.requests.clear()
        assert len(asyncio.run(plan.poll()).bag) == 3
        sought = {pattern.predicate: seeds for pattern, seeds in source.requests}
        assert sought["<urn:q>"] == sought["<urn:r>"] == 3
