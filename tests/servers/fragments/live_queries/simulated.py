"""Simulated time: an event loop whose clock moves on when all sleep; servers and clients in it, without sockets."""

import asyncio
import selectors
from dataclasses import dataclass, field
from functools import partial
from random import Random

import httpx

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import VERSION, writes
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient, ResponseCache
from streamgauge.servers.fragments.client.transport import ClientLimits
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from tests.servers.fragments import changes

START = 1_700_000_000_000
"""When simulations begin, ms since 1970."""

BASE = "http://data.test"


class _Passing(selectors.SelectSelector):
    """Instead of waiting, time passes."""

    def __init__(self):
        super().__init__()
        self.passed = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("everybody waits for something that will not come")
        self.passed += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.passing = _Passing()
        super().__init__(self.passing)

    def time(self):
        return self.passing.passed


def run(main):
    """Run a coroutine in simulated time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def clock():
    """The true time, ms."""
    return START + int(asyncio.get_running_loop().time() * 1000)


def _later(ms):
    return clock() + ms


@dataclass
class Served:
    """A data set on a server, and what it held at each version: model facts, told to it by writes."""

    style: Style
    page_size: int = 100
    name: str = "trains"
    period: int | None = None
    ahead: int = 0
    held: dict = field(default_factory=dict)
    history: dict = field(default_factory=dict)
    changed: list = field(default_factory=list)

    def __post_init__(self):
        now = partial(_later, self.ahead)
        self.dataset = DataSet(self.name, MemoryStore(), self.style, now, self.page_size, period=self.period)
        self.app = application([self.dataset])
        self._note()

    def add(self, facts):
        """Facts hold from now on; of an expiration the last that was said counts."""
        facts = list(facts)
        writes.add(self.dataset, facts)
        for fact in facts:
            times = self.held.setdefault(fact.triple, [])
            if self.style.label is Label.EXPIRATION or fact.static:
                times.clear()
            times.append((None if self.style.label is Label.EXPIRATION else fact.initial, fact.final))
        self._note()

    def remove(self, triples):
        """Triples never held."""
        triples = list(triples)
        changes.remove(self.dataset, triples)
        for triple in triples:
            self.held.pop(triple, None)
        self._note()

    def sweep(self, before):
        """What had ended by then is forgotten."""
        writes.sweep(self.dataset, before)
        for triple, times in list(self.held.items()):
            self.held[triple] = [time_ for time_ in times if time_[1] is None or time_[1] > before]
            if not self.held[triple]:
                del self.held[triple]
        self._note()

    def _note(self):
        facts = tuple(Fact(triple, *time_) for triple, times in self.held.items() for time_ in times)
        self.history[self.dataset.version.decode()] = facts
        self.changed.append(clock())


class Body(httpx.AsyncByteStream):
    def __init__(self, content):
        self._content = content

    async def __aiter__(self):
        yield self._content


def told(status, content=b"", **headers):
    """A response that is not the server's."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, stream=Body(content))


@dataclass
class Wire(httpx.AsyncBaseTransport):
    """A server behind a line with delays; ``log`` has each response: when (true time), status, version, bytes."""

    app: object
    random: Random
    delay: tuple[float, float] = (0.005, 0.06)
    log: list = field(default_factory=list)
    spoil: object = None
    foreign: bool = False
    """Whether it is a server that says nothing of versions, lifetimes and changes."""

    def __post_init__(self):
        self._inner = httpx.ASGITransport(self.app)

    async def handle_async_request(self, request):
        await asyncio.sleep(self.random.uniform(*self.delay))
        at = clock()
        response = self.spoil(request) if self.spoil is not None else None
        if response is None:
            if self.foreign:
                request.headers.pop("accept-encoding", None)
            response = await self._inner.handle_async_request(request)
            if self.foreign:
                response = await _bare(response)
        length = int(response.headers.get("content-length", 0))
        self.log.append((at, response.status_code, response.headers.get(VERSION), length, str(request.url)))
        await asyncio.sleep(self.random.uniform(*self.delay))
        return response


async def _bare(response):
    """What a server that is not ours would say of the same."""
    kept = {name: response.headers[name] for name in ("content-type", "date")}
    body = (await response.aread()).replace(b"urn:streamgauge:changes", b"urn:other")
    return httpx.Response(response.status_code, headers=kept, stream=Body(body))


class Hosts(httpx.AsyncBaseTransport):
    """Several lines, by host."""

    def __init__(self, **wires):
        self._wires = wires
        self.random = next(iter(wires.values())).random

    async def handle_async_request(self, request):
        return await self._wires[request.url.host.partition(".")[0]].handle_async_request(request)


def web(wire, skew=0, cache=None, limits=None):
    """A client's web, its clock ahead by ``skew`` ms."""
    client = httpx.AsyncClient(transport=wire)
    return CachingHttpClient(
        client,
        lambda: clock() + skew,
        asyncio.sleep,
        limits=limits or ClientLimits(),
        cache=ResponseCache() if cache is None else cache,
        allowed=("data.test", "one.test", "two.test"),
        random=wire.random,
    )
