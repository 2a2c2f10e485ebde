"""Several sources are one: the union of their facts, each valid at its own server's time."""

import asyncio
from random import Random

import pytest

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries.poll_loop import Failed
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import T
from tests.servers.fragments.live_queries.simulated import Hosts, Served, Wire, clock, run

QUERY = f"SELECT ?id ?head ?delay {{ ?id <{T}headSign> ?head; <{T}delay> ?delay }}"
AHEAD = 3_600_000


class Two:
    """A server of what is static, and one whose clock is an hour ahead, of what is not."""

    def __init__(self, plan):
        random = Random(5)
        self.one, self.two = Served(Style()), Served(Style(), ahead=AHEAD)
        self.one.add([Fact((f"<{T}{name}>", f"<{T}headSign>", '"Gent"')) for name in "abc"])
        self.lines = {"one": Wire(self.one.app, random), "two": Wire(self.two.app, random)}
        self.told = []
        self.answers = watch(
            QUERY, ["http://one.test/trains", "http://two.test/trains"], plan=plan, whole=True, random=random,
            web=simulated.web(Hosts(**self.lines)), tell=self.told.append,
        )  # fmt: skip

    def say(self, name, delay, lasts):
        now = clock() + AHEAD
        self.two.add([Fact((f"<{T}{name}>", f"<{T}delay>", f'"{delay}"'), now, now + lasts)])

    async def next(self):
        answer = await anext(self.answers)
        return {(row[0][-2], row[2]) for row in answer.added}, answer.instant


@pytest.mark.parametrize("plan", ["incremental", "streamer"])
def test_facts_of_one_server_join_with_those_of_another(plan):
    async def watched():
        on = Two(plan)
        on.say("a", 1, 10_000)
        first = await on.next()
        asyncio.get_running_loop().call_later(8, on.say, "b", 2, 20_000)
        second = await on.next()
        await on.answers.aclose()
        return first, second

    (first, instant), (second, later) = run(watched())
    assert first == {("a", '"1"')}
    assert second == {("b", '"2"')}
    assert instant >= simulated.START + AHEAD
    assert 10_000 <= later - instant <= 12_000


def test_what_one_server_does_not_say_is_no_answer():
    async def watched():
        on = Two("incremental")
        on.say("a", 1, 600_000)
        on.lines["one"].spoil = lambda _: simulated.told(500)
        asyncio.get_running_loop().call_later(100, setattr, on.lines["one"], "spoil", None)
        result, _ = await on.next()
        await on.answers.aclose()
        return result, [event.why for event in on.told if isinstance(event, Failed)]

    result, failures = run(watched())
    assert result == {("a", '"1"')}
    assert failures
    assert all("one.test" in failure for failure in failures)
