"""Push: answers as by polling, without requests; what breaks is said, polled meanwhile and listened to again."""

import asyncio
from random import Random

import pytest

from streamgauge.model.fact import Fact
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.servers.fragments.client.transport import ClientLimits
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries.poll_loop import Failed, Listening, Polling
from streamgauge.servers.fragments.live_queries.watch import HeardChanges, UnpushedPlanError, watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import Boards, T
from tests.servers.fragments.live_queries.flowing import Line
from tests.servers.fragments.live_queries.simulated import BASE, Served, clock, run
from tests.servers.fragments.live_queries.test_replay import PREFIX, QUERIES, apart
from tests.sparql.pyoxigraph.restated import restated

QUERY = f"SELECT ?s ?o {{ ?s <{T}delay> ?o }}"


def fact(name, value, lasts=3_600_000):
    return Fact((f"<{T}{name}>", f"<{T}delay>", f'"{value}"'), None, clock() + lasts)


class Listener:
    """A watch that listens to a served data set, what it told, and the line to the server."""

    def __init__(self, query=QUERY, served=None, limits=None, foreign=False, **more):
        self.served = served or Served(Style())
        self.line = Line(self.served.app, Random(1), foreign=foreign)
        self.told = []
        self.web = simulated.web(self.line, limits=limits)
        self.answers = watch(
            query, [f"{BASE}/trains"], whole=True, push=True, web=self.web, random=self.line.random,
            style=self.served.style, tell=self.told.append, **more,
        )  # fmt: skip

    async def next(self, within=3_600):
        answer = await asyncio.wait_for(anext(self.answers), within)
        return {row[1] for row in answer.added}

    async def until(self, rows, within=3_600):
        """Seconds until the answer is this."""
        begun = clock()
        while await self.next(within) != rows:
            assert clock() < begun + within * 1000
        return (clock() - begun) / 1000

    @property
    def ways(self):
        """How it heard, one after the other."""
        return [type(event) for event in self.told if isinstance(event, Listening | Polling)]

    @property
    def reasons(self):
        return [event.why for event in self.told if isinstance(event, Polling)]


async def replayed(seed, minutes):
    random = Random(seed)
    served = Served(Style(("graphs", "singleton", "reification")[seed % 3]), page_size=20)
    text = PREFIX + QUERIES[seed % len(QUERIES)]
    plain, until = sparql(restated(parse_sparql(text))), clock() + minutes * 60_000
    on = Listener(text, served)
    feeding = asyncio.create_task(Boards(random, 6).run(served, until))
    wrong, count, before = [], 0, 0
    async for answer in on.answers:
        count += 1
        before = before or len(on.line.log)
        troubles = [apart(plain, held, answer) for held in recent(served)]
        if all(troubles):
            wrong.append((answer.instant - simulated.START, troubles[-1]))
        if clock() >= until:
            break
    await on.answers.aclose()
    feeding.cancel()
    return count, wrong, len(on.line.log) - before, [event for event in on.told if isinstance(event, Failed)]


def recent(served):
    """What the server held within the last half second, the last first."""
    states = list(zip(served.history.values(), [*served.changed[1:], clock()], strict=True))
    return [held for held, until in reversed(states) if until >= clock() - 500]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(5, 30))])
def test_each_answer_is_the_query_over_what_was_just_held_and_costs_no_request(seed):
    count, wrong, requests, failed = run(replayed(seed, 8))
    assert count > 20
    assert not wrong
    assert not failed
    assert requests <= 3


def test_a_change_is_seen_as_it_happens():
    async def watched():
        on = Listener()
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        await asyncio.sleep(5)
        on.served.add([fact("b", "2")])
        took = await on.until({'"1"', '"2"'})
        await on.answers.aclose()
        return took, on.ways, len(on.line.flows)

    took, ways, flows = run(watched())
    assert took < 1
    assert ways == [Listening]
    assert flows == 0


def test_a_line_that_is_cut_is_said_polled_and_listened_to_again():
    async def watched():
        on = Listener(period=20_000)
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        await asyncio.sleep(1)
        on.line.spoil = lambda request: simulated.told(503) if "event" in request.headers["accept"] else None
        on.line.cut()
        on.served.add([fact("b", "2")])
        polled = await on.until({'"1"', '"2"'})
        asyncio.get_running_loop().call_later(100, lambda: setattr(on.line, "spoil", None))
        asyncio.get_running_loop().call_later(190, lambda: on.served.add([fact("c", "3")]))
        asyncio.get_running_loop().call_later(200, lambda: on.served.remove([fact("a", "1").triple]))
        await on.until({'"2"', '"3"'})
        done = clock()
        await on.answers.aclose()
        return polled, done - simulated.START, on

    polled, done, on = run(watched())
    assert polled < 1
    assert done < 203_000
    assert on.ways[0] is on.ways[-1] is Listening
    assert any("cut" in why for why in on.reasons)
    assert any("503" in why for why in on.reasons)
    waits = [event.again for event in on.told if isinstance(event, Polling)]
    assert max(waits) > 4 * min(waits)
    assert on.line.asked[-1][1] is not None


def test_a_stream_that_is_silent_counts_as_cut():
    async def watched():
        on = Listener()
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        await asyncio.sleep(1)
        for flow in on.line.flows:
            flow.silent = True
        on.served.add([fact("b", "2")])
        took = await on.until({'"1"', '"2"'})
        await on.answers.aclose()
        return took, on.reasons

    took, reasons = run(watched())
    assert took <= ClientLimits().silence + 1
    assert "was silent for 45 s" in reasons[0]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"event: change\nid: 1.1\ndata: nonsense\n\n", "a line that no patch has"),
        (b'event: change\nid: 1.1\ndata: A <urn:a> "b" <urn:c> .\n\n', "is not a patch"),
        (b"event: change\ndata: A <urn:a> <urn:b> <urn:c> .\n\n", "without a new version"),
    ],
)
def test_what_is_no_event_is_not_taken(message, why):
    async def watched():
        on = Listener()
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        await asyncio.sleep(1)
        on.line.say(message)
        await asyncio.sleep(10)
        on.served.add([fact("b", "2")])
        await on.until({'"1"', '"2"'})
        await on.answers.aclose()
        return on.reasons, on.ways

    reasons, ways = run(watched())
    assert len(reasons) == 1
    assert why in reasons[0]
    assert ways == [Listening, Polling, Listening]


def test_an_event_that_is_too_long_is_asked_for():
    async def watched():
        on = Listener(limits=ClientLimits(event=1_000))
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        await asyncio.sleep(1)
        before = len(on.line.log)
        on.served.add([fact(f"more{at}", at) for at in range(50)])
        await on.until({'"1"', *(f'"{at}"' for at in range(50))}, 5)
        await on.answers.aclose()
        return len(on.line.log) - before, on.ways

    requests, ways = run(watched())
    assert requests == 1
    assert ways == [Listening]


def test_a_server_that_has_no_events_is_polled():
    async def watched():
        on = Listener(foreign=True, period=5_000)
        on.served.add([fact("a", "1", 60_000)])
        assert await on.next() == {'"1"'}
        on.served.add([fact("b", "2")])
        await on.until({'"1"', '"2"'}, 120)
        await on.answers.aclose()
        return on.told, on.line.asked

    told, asked = run(watched())
    assert [event.again for event in told if isinstance(event, Polling)] == [None]
    assert not asked


def test_a_server_that_was_restarted_is_read_anew():
    async def watched():
        on = Listener()
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        await asyncio.sleep(1)
        again = Served(Style())
        again.add([fact("b", "2")])
        on.line.app, on.line._inner = again.app, simulated.httpx.ASGITransport(again.app)
        on.line.cut()
        await on.until({'"2"'}, 10)
        again.add([fact("c", "3")])
        await on.until({'"2"', '"3"'}, 10)
        await on.answers.aclose()
        return on.ways

    assert run(watched()) == [Listening, Polling, Listening]


def test_not_more_often_than_asked():
    async def watched():
        on = Listener(at_most_every=30_000)
        on.served.add([fact("a", "0")])
        await on.next()
        begun = clock()
        for at in range(1, 6):
            asyncio.get_running_loop().call_later(at, on.served.add, [fact(f"more{at}", at)])
        assert await on.next() == {f'"{at}"' for at in range(6)}
        await on.answers.aclose()
        return clock() - begun

    assert 29_000 <= run(watched()) <= 31_000


@pytest.mark.parametrize("settings", [{"plan": "streamer"}, {"cache": "off"}])
def test_a_plan_that_polls_is_refused(settings):
    with pytest.raises(UnpushedPlanError, match="leave one option out"):
        watch(QUERY, [BASE], push=True, **settings)


def test_steps_add_up_and_are_forgotten():
    one, two, three = (("a", "p", name, "") for name in "123")
    heard = HeardChanges("v0")
    heard.add("v1", (one, two), ())
    heard.add("v2", (three,), (one,))
    heard.add("v3", (one,), (two,))
    assert heard.since("v1") == ({three, one}, {one, two}, "v3")
    assert heard.since("v0") is None
    assert heard.since("v3") == (frozenset(), frozenset(), "v3")
