"""Clocks that differ: push notifies of each begin and end in time, and answers are dated in the server's time."""

import asyncio
from dataclasses import dataclass
from random import Random

import httpx
import pytest

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import TIME
from streamgauge.servers.fragments.client import ShownTime
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient, ServerClock
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.live_queries.watch import steady_clock, watch
from tests.servers.fragments.live_queries.boards import T
from tests.servers.fragments.live_queries.flowing import Line
from tests.servers.fragments.live_queries.simulated import BASE, START, Served, clock, run

QUERY = f"SELECT ?o {{ ?s <{T}delay> ?o }}"
HOUR = 3_600_000
SKEWS = (0, 300, -300, 10_000, -10_000, HOUR, -HOUR)
DRIFTS = (0, 100, -100)
"""Parts per million."""
WAYS = ((0.005, 0.06), (0.15, 0.17), (0.0, 0.001))
"""Seconds that a message takes, each way."""


@dataclass(frozen=True)
class OwnClock:
    """A client's clock, ahead by ``skew`` ms when simulations begin, faster by ``drift`` ppm."""

    skew: int
    drift: int

    @property
    def rate(self):
        return 1 + self.drift / 1e6

    def __call__(self):
        return START + self.skew + int(asyncio.get_running_loop().time() * 1000 * self.rate)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds / self.rate)


class Asymmetrical(Line):
    """Requests take their time, responses come at once."""

    async def handle_async_request(self, request):
        if request.headers["accept"] != "text/event-stream":
            await asyncio.sleep(0.2)
        return await super().handle_async_request(request)


@dataclass
class Watched:
    """A watch by push whose answers are noted: true time (ms), instant, values."""

    own: OwnClock
    style: Style
    delay: tuple[float, float] = WAYS[0]
    kind: type = Line
    spoil: object = None
    push: bool = True
    served: Served = None

    def __post_init__(self):
        self.answers, self.told = [], []
        self.served = Served(self.style)
        self.line = self.kind(self.served.app, Random(1), delay=self.delay)
        if self.spoil is not None:
            self.line.handle_async_request = spoilt(self.line.handle_async_request, self.spoil)
        client = httpx.AsyncClient(transport=self.line)
        self.web = CachingHttpClient(client, self.own, self.own.sleep, allowed=("data.test",), random=Random(2))

    async def run(self, until):
        """Note all answers up to a true time."""
        result = watch(
            QUERY, [f"{BASE}/trains"], whole=True, push=self.push, web=self.web, style=self.style,
            random=Random(3), tell=self.told.append,
        )  # fmt: skip

        async def noted():
            async for answer in result:
                self.answers.append((clock(), answer.instant, {row[0] for row in answer.added}))

        task = asyncio.create_task(noted())
        await asyncio.sleep((until - clock()) / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await result.aclose()
        await self.web.aclose()

    def seen(self, value, begin, end):
        """How long after its begin a value was shown, and after its end no more (ms); ``None`` for never."""
        first = next((at for at, _, values in self.answers if at >= begin - 300 and value in values), None)
        last = next((at for at, _, values in self.answers if first and at > first and value not in values), None)
        return None if first is None else first - begin, None if last is None else last - end


def spoilt(handle, spoil):
    async def handled(request):
        return spoil(await handle(request))

    return handled


def dates_only(response):
    """As of a server that says nothing in ms."""
    if TIME in response.headers:
        del response.headers[TIME]
    return response


def fact(number, begin, end):
    return Fact((f"<{T}a{number}>", f"<{T}delay>", f'"{number}"'), begin, end)


async def lived(on, label, lasts=500, count=8, start=20_000):
    """Facts that last so many ms: some known before, some written as they begin, some taken out when they end."""
    times = [(START + start + 2_137 * number, START + start + 2_137 * number + lasts) for number in range(count)]
    facts = [fact(number, *time_) for number, time_ in enumerate(times)]
    loop = asyncio.get_running_loop()
    on.served.add([fact(99, START, START + 10 * HOUR)])
    if label is Label.INTERVAL:
        on.served.add(facts[::2])
    for number, each in enumerate(facts):
        if label is Label.INTERVAL and not number % 2:
            continue
        at = (each.initial - START) / 1000
        if number % 3 == 2:
            loop.call_at(at, on.served.add, [fact(number, None, START + HOUR)])
            loop.call_at((each.final - START) / 1000, on.served.remove, [each.triple])
        else:
            loop.call_at(at, on.served.add, [each])
    await on.run(START + start + 2_137 * count + 2_000)
    return [(*on.seen(f'"{number}"', *time_), number) for number, time_ in enumerate(times)]


def judged(on, result, within=300):
    wrong = [each for each in result if None in each[:2] or not all(-within <= late <= within for late in each[:2])]
    assert not wrong, (wrong, on.web.server_clock(BASE))
    instants = [instant for _, instant, _ in on.answers]
    assert instants == sorted(instants)
    return max(abs(instant - at) for at, instant, _ in on.answers[1:])


@pytest.mark.parametrize("label", [Label.EXPIRATION, Label.INTERVAL])
@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("skew", SKEWS)
def test_each_begin_and_end_is_notified_whatever_the_clocks(skew, drift, label):
    async def watched():
        on = Watched(OwnClock(skew, drift), Style(label=label))
        return on, await lived(on, label)

    on, result = run(watched())
    assert judged(on, result) <= 200
    assert not [event for event in on.told if "Polling" in type(event).__name__]


@pytest.mark.parametrize("delay", WAYS)
@pytest.mark.parametrize("skew", [-10_000, 300])
def test_slow_and_fast_lines(delay, skew):
    async def watched():
        on = Watched(OwnClock(skew, 100), Style(label=Label.INTERVAL), delay=delay)
        return on, await lived(on, Label.INTERVAL)

    judged(*run(watched()))


@pytest.mark.parametrize("skew", [0, 300, -300, HOUR])
def test_a_line_that_is_slow_one_way(skew):
    async def watched():
        on = Watched(OwnClock(skew, -100), Style(label=Label.INTERVAL), kind=Asymmetrical)
        return on, await lived(on, Label.INTERVAL)

    on, result = run(watched())
    judged(on, result)
    known = on.web.server_clock(BASE)
    assert abs(known.ahead + skew) <= known.uncertainty(on.own.skew + clock_at(on)) <= 145


def clock_at(on):
    return on.answers[-1][0]


@pytest.mark.parametrize("drift", [100, -100])
@pytest.mark.parametrize("hours", [2])
def test_drift_is_followed_for_hours_with_few_requests(hours, drift):
    async def watched():
        on = Watched(OwnClock(10_000, drift), Style(label=Label.INTERVAL))
        result = await lived(on, Label.INTERVAL, count=4, start=hours * HOUR)
        return on, result

    on, result = run(watched())
    judged(on, result)
    assert len(on.line.log) <= 6 * hours + 12


@pytest.mark.parametrize("skew", [0, 300, -300, 10_000, -10_000, HOUR, -HOUR])
def test_a_server_that_says_only_dates_is_known_within_a_second(skew):
    async def watched():
        on = Watched(OwnClock(skew, 100), Style(label=Label.INTERVAL), spoil=dates_only)
        return on, await lived(on, Label.INTERVAL, lasts=2_500)

    on, result = run(watched())
    judged(on, result, 1_000)


@pytest.mark.parametrize("skew", SKEWS)
def test_polls_come_when_the_server_shows_the_end_whatever_the_clocks(skew):
    async def watched():
        on = Watched(OwnClock(skew, 100), Style(label=Label.INTERVAL), push=False)
        on.served.add([fact(0, START, START + 30_250), fact(1, START, START + 60_000), fact(2, START, START + HOUR)])
        await on.run(START + 80_000)
        return on

    on = run(watched())
    first = next(at for at, _, values in on.answers if values == {'"1"', '"2"'})
    second = next(at for at, _, values in on.answers if values == {'"2"'})
    assert 30_250 <= first - START <= 30_250 + 1_000 + 3_200
    assert 60_000 <= second - START <= 60_000 + 3_200
    assert len(on.line.log) <= 8
    assert [instant for _, instant, _ in on.answers] == sorted(instant for _, instant, _ in on.answers)
    assert all(at - 150 <= instant <= at for at, instant, _ in on.answers)


def test_the_offset_is_always_within_its_uncertainty():
    random = Random(5)
    for _ in range(300):
        offset, drift, known = random.uniform(-HOUR, HOUR), random.uniform(-100, 100) / 1e6, ServerClock()
        own = 1_700_000_000_000.0
        for _ in range(20):
            own += random.choice((1, 100, 10_000, 600_000, HOUR)) * random.random()
            there, back = random.uniform(0, 400), random.uniform(0, 400)
            served = (own + there) * (1 + drift) + offset
            resolution = random.choice((1, 1000))
            known.seen(ShownTime(int(served // resolution) * resolution, resolution), int(own), int(own + there + back))
            own += there + back
            true = own * drift + offset
            assert abs(known.ahead - true) <= known.uncertainty(int(own)) + 1
        assert known.sets == 0


def test_time_goes_on_when_the_estimate_goes_back_but_not_when_the_server_was_set_back():
    known = ServerClock()
    known.seen(ShownTime(5_500, 1), 1_000, 2_000)
    before = known.time(2_000)
    known.seen(ShownTime(5_900, 1), 2_000, 2_001)
    assert known.ahead < before - 2_000
    assert known.time(2_001) == before
    known.seen(ShownTime(1_000, 1), 3_000, 3_001)
    assert known.sets == 1
    assert known.time(3_001) <= 1_002


def test_a_steady_clock_goes_on():
    own = steady_clock()
    assert own() <= own()
