"""Errors, restarts, lies: answers stay right or the failure is said, and the loop goes on."""

import asyncio
from random import Random

import httpx
import pytest

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.client.transport import ClientLimits
from streamgauge.servers.fragments.labels import Border, Label, Style
from streamgauge.servers.fragments.live_queries.poll_loop import Failed, Fresh
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import T
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, clock, run

QUERY = f"SELECT ?s ?o {{ ?s <{T}delay> ?o }}"


def fact(name, value, lasts=10_000):
    return Fact((f"<{T}{name}>", f"<{T}delay>", f'"{value}"'), clock(), clock() + lasts)


class Watched:
    """A watch on a served data set, what it told, and the line to the server."""

    def __init__(self, style=None, plan="incremental", limits=None, **more):
        self.random = Random(1)
        self.served = Served(style or Style())
        self.wire = Wire(self.served.app, self.random)
        self.told = []
        self.web = simulated.web(self.wire, limits=limits)
        self.answers = watch(
            QUERY, [f"{BASE}/trains"], whole=True, plan=plan, web=self.web, random=self.random,
            style=self.served.style, tell=self.told.append, **more,
        )  # fmt: skip

    async def next(self):
        answer = await asyncio.wait_for(anext(self.answers), 600)
        return {row[1] for row in answer.added}

    @property
    def failures(self):
        return [event for event in self.told if isinstance(event, Failed)]


@pytest.mark.parametrize("plan", ["incremental", "streamer"])
def test_a_server_that_is_away_is_said_and_waited_for(plan):
    async def watched():
        on = Watched(plan=plan)
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        on.wire.spoil = lambda _: simulated.told(503)
        asyncio.get_running_loop().call_later(200, lambda: setattr(on.wire, "spoil", None))
        asyncio.get_running_loop().call_later(190, lambda: on.served.add([fact("a", "2", 60_000)]))
        assert await on.next() == {'"2"'}
        await on.answers.aclose()
        return on.failures

    failures = run(watched())
    assert len(failures) > 1
    assert all("503" in failure.why for failure in failures)
    assert failures[-1].again > failures[0].again


def test_a_server_that_is_not_there_at_first_is_waited_for():
    async def watched():
        on = Watched()
        on.served.add([fact("a", "1", 600_000)])
        on.wire.spoil = lambda request: (_ for _ in ()).throw(httpx.ConnectError("refused", request=request))
        asyncio.get_running_loop().call_later(60, lambda: setattr(on.wire, "spoil", None))
        assert await on.next() == {'"1"'}
        await on.answers.aclose()
        return on.failures

    assert all("refused" in item.why for item in run(watched()))


def test_a_server_that_forgot_its_versions_is_read_anew():
    async def watched():
        on = Watched()
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        again = Served(Style())
        again.add([fact("b", "2", 60_000)])
        on.wire._inner = httpx.ASGITransport(again.app)
        assert await on.next() == {'"2"'}
        await on.answers.aclose()
        return on.failures, [status for _, status, *_ in on.wire.log]

    failures, statuses = run(watched())
    assert not failures
    assert 410 in statuses


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/trig", b"<broken"),
        ("text/html", b"<p>maintenance</p>"),
        ("application/trig", b""),
        ("application/rdf-patch", b"X y z ."),
    ],
)
def test_what_is_no_fragment_is_said(kind, body):
    async def watched():
        on = Watched()
        on.served.add([fact("a", "1")])
        assert await on.next() == {'"1"'}
        on.wire.spoil = lambda _: simulated.told(200, body, content_type=kind)
        asyncio.get_running_loop().call_later(90, lambda: setattr(on.wire, "spoil", None))
        asyncio.get_running_loop().call_later(85, lambda: on.served.add([fact("a", "2", 600_000)]))
        while (result := await on.next()) != {'"2"'}:
            assert result == set(), "what ended is not shown as if it held"
        await on.answers.aclose()
        return on.told

    run(watched())


def test_a_label_that_is_no_time_is_said():
    async def watched():
        on = Watched()
        on.served.add([fact("a", "1")])
        bad = (f"<{T}g>", on.served.style.vocabulary.expiration, '"tomorrow"', "")
        quad = (f"<{T}a>", f"<{T}delay>", '"9"', f"<{T}g>")
        on.served.dataset.change((), [(bad, None), (quad, None)])
        asyncio.get_running_loop().call_later(30, lambda: on.served.dataset.change([bad, quad], ()))
        asyncio.get_running_loop().call_later(29, lambda: on.served.add([fact("a", "2", 600_000)]))
        assert await on.next() == {'"2"'}
        await on.answers.aclose()
        return on.failures

    failures = run(watched())
    assert failures
    assert all("tomorrow" in failure.why for failure in failures)


def test_polls_no_more_often_than_wanted():
    async def watched():
        on = Watched(at_most_every=60_000)
        feeding = asyncio.create_task(renewed(on))
        begun = clock()
        for _ in range(5):
            await on.next()
        feeding.cancel()
        await on.answers.aclose()
        return clock() - begun

    assert run(watched()) >= 240_000


async def renewed(on):
    while True:
        on.served.add([fact("a", "1", 12_000)])
        await asyncio.sleep(10)


def test_a_plain_source_is_polled_by_its_lifetime_or_a_period():
    async def changes(**more):
        on = Watched(**more)
        on.served.dataset.period = None
        on.served.add([Fact((f"<{T}a>", f"<{T}delay>", '"1"'))])
        begun = clock()
        await on.next()
        on.served.add([Fact((f"<{T}b>", f"<{T}delay>", '"2"'))])
        while await on.next() != {'"1"', '"2"'}:
            pass
        await on.answers.aclose()
        return clock() - begun

    assert 10_000 <= run(changes()) <= 12_000
    assert 3_000 <= run(changes(period=3_000)) <= 4_000


def test_a_slow_server_is_said_by_its_limit():
    async def watched():
        on = Watched(limits=ClientLimits(seconds=1.0))
        on.served.add([fact("a", "1", 3_600_000)])
        on.wire.delay = (20.0, 20.0)
        asyncio.get_running_loop().call_later(300, lambda: setattr(on.wire, "delay", (0.0, 0.01)))
        assert await on.next() == {'"1"'}
        await on.answers.aclose()
        return on.failures

    assert run(watched())


@pytest.mark.parametrize("final", ["exclusive", "inclusive"])
def test_the_border_of_final_is_a_setting(final):
    async def watched():
        on = Watched(Style(label=Label.INTERVAL, border=Border(final)))
        on.served.add([fact("a", "1", 10_000)])
        assert await on.next() == {'"1"'}
        seen = await on.next()
        await on.answers.aclose()
        instants = [event.instant for event in on.told if isinstance(event, Fresh)]
        return seen, instants[-1] - instants[0]

    seen, later = run(watched())
    assert seen == set()
    assert later >= 10_000
