"""Our client with real servers: ours in this process, ours and @ldf/server behind sockets."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import httpx
import pyoxigraph as ox
import pytest
from hypothesis import given

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import ANYWHERE, ExpiringQuad, Quad, QuadPattern
from streamgauge.servers.fragments.client import BgpSolutions, Binding
from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source, solve
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from streamgauge.servers.fragments.client.transport import ClientLimits, guarded_client
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from tests.servers.fragments.client.answering import answer, rows
from tests.servers.fragments.client.fakes import Clock, trains
from tests.servers.fragments.client.test_fragments import DATA, PATTERNS, S, Y
from tests.servers.fragments.client.test_joins import PATTERN, QUADS, TRAIN, bag, oracle
from tests.servers.fragments.pages.clients.data import T, X
from tests.servers.fragments.pages.clients.data import quads as odd
from tests.servers.fragments.pages.clients.test_clients import QUERIES, ours, theirs  # noqa: F401

pytestmark = pytest.mark.server

HOST = "http://localhost"


class Served:
    """A data set served in this process, and clients of it in the same time."""

    def __init__(self, quads: Sequence[Quad], size: int = 100, ends: int | None = None) -> None:
        self.clock = Clock()
        self.dataset = DataSet("d", MemoryStore(), Style(), self.clock, size)
        self.change((), [(quad, ends) for quad in quads])
        self.app = application([self.dataset])

    def change(self, removed: Sequence[Quad], added: Sequence[ExpiringQuad]) -> None:
        self.dataset.change(removed, added)

    def web(self, **options: object) -> CachingHttpClient:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app))
        return CachingHttpClient(client, self.clock, self.clock.sleep, random=Random(1), **options)

    def solve(
        self, patterns: Sequence[QuadPattern], client: CachingHttpClient | None = None, seeds: Sequence[Binding] = ()
    ) -> BgpSolutions:
        async def run(client: CachingHttpClient) -> BgpSolutions:
            with client.round():
                return await solve(patterns, [await open_source(f"{HOST}/d", client)], client, seeds)

        return asyncio.run(run(client or self.web()))


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("size", [100, 2])
def test_a_pattern_has_the_quads_that_match(name: str, size: int) -> None:
    pattern, wanted = PATTERNS[name]

    async def run() -> set[Quad]:
        client = Served(DATA, size).web()
        source = await open_source(f"{HOST}/d", client)
        assert isinstance(source, FragmentsSource)
        assert source.addresses.binding is not None
        return set((await source.fetch(pattern)).quads)

    assert asyncio.run(run()) == {quad for quad in DATA if wanted(quad)}


@given(QUADS, PATTERN, PATTERN)
def test_solutions_are_those_of_the_same_quads(data: list[Quad], one: QuadPattern, two: QuadPattern) -> None:
    assert bag(Served(data, 3).solve([one, two]).rows) == oracle(list(dict.fromkeys((one, two))), data)


def test_the_train_query_takes_six_requests() -> None:
    served = Served(trains(75))
    client = served.web()
    result = served.solve(TRAIN, client)
    assert len(result.rows) == 75
    assert client.counters.requests <= 6
    assert result.versions[0] is not None


def test_one_station_of_many_takes_few_requests() -> None:
    station = [(f"<urn:d{number}>", "<urn:station>", "<urn:here>", "") for number in range(0, 6000, 80)]
    served = Served([*trains(6000), *station])
    client = served.web()
    assert len(served.solve([*TRAIN, QuadPattern(Var("id"), "<urn:station>", "<urn:here>")], client).rows) == 75
    assert client.counters.requests <= 1 + 6 + 5 * 3


def test_what_is_more_than_a_page_comes_on_large_ones() -> None:
    async def run() -> tuple[int, int]:
        client = Served(trains(450)).web()
        source = await open_source(f"{HOST}/d", client)
        with client.round():
            result = await source.fetch(QuadPattern(Var("id"), "<urn:delay>", Var("delay")))
        return len(result.quads), client.counters.requests

    assert asyncio.run(run()) == (450, 3), "the start, a first page, all of it on one page"


def test_a_cycle_asks_only_for_what_may_have_changed() -> None:
    """Of five fragments two end in ten seconds: the next cycle asks for these."""
    data = trains(75)
    passing = [quad for quad in data if quad[1] in ("<urn:delay>", "<urn:platform>")]
    served = Served([quad for quad in data if quad not in passing])
    served.dataset.period = 3_600_000

    def renew(quads: Sequence[Quad]) -> None:
        served.change(passing, [(quad, served.clock.now + 10_000) for quad in quads])

    async def run() -> None:
        client = served.web()
        source = await open_source(f"{HOST}/d", client)
        renew(passing)
        await solve(TRAIN, [source], client)
        began, received = client.counters.requests, client.counters.received
        served.clock.now += 9_000
        await solve(TRAIN, [source], client)
        assert client.counters.requests == began
        served.clock.now += 1_000
        renew([(*passing[0][:2], '"99"', ""), *passing[1:]])
        result = await solve(TRAIN, [source], client)
        assert '"99"' in {row[Var("delay")] for row in result.rows}
        assert client.counters.requests - began == 2
        assert client.counters.received - received < 5000

    asyncio.run(run())


def test_all_pages_are_of_one_version_though_they_change_all_the_time() -> None:
    """Every tenth request a change: whole readings are found between them."""
    served, count = Served([(f"<urn:s{n}>", "<urn:p>", '"0"', "") for n in range(500)], 10), [0]

    async def changing(scope, receive, send) -> None:
        count[0] += 1
        if count[0] % 10 == 9:
            version = f'"{count[0]}"'
            served.change(
                served.dataset.store.page((None,) * 4, 0, 500),
                [((f"<urn:s{n}>", "<urn:p>", version, ""), None) for n in range(500)],
            )
        await served.app(scope, receive, send)

    async def run() -> None:
        client = CachingHttpClient(
            httpx.AsyncClient(transport=httpx.ASGITransport(changing)), served.clock, served.clock.sleep
        )
        source = await open_source(f"{HOST}/d", client)
        for _ in range(5):
            with client.round(CacheUse.REVALIDATE):
                result = await source.fetch(QuadPattern(S, "<urn:p>", Y))
            assert len(result.quads) == 500
            assert len({quad[2] for quad in result.quads}) == 1
            assert result.version is not None

    asyncio.run(run())
    assert count[0] >= 30


def lasting() -> list[Quad]:
    """The data that clients of other makers are asked about, its times ahead, so that a server keeps it."""
    terms = Canonical()
    triples = ((str(q.subject), str(q.predicate), terms.term(q.object), q.graph_name) for q in odd())
    return [
        (s, p, o.replace('"2014-', '"2914-'), "" if isinstance(g, ox.DefaultGraph) else str(g))
        for s, p, o, g in triples
    ]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``ours`` and ``theirs`` serve."""
    path = tmp_path_factory.mktemp("served") / "data.nq"
    text = "".join(f"{' '.join(quad)} .\n" for quad in lasting())
    for name in ("data.nq", "triples.nq"):
        path.with_name(name).write_text(text, encoding="utf-8")
    return path


D, V, W, G = (Var(name) for name in "dvwg")
PLAN = {
    "star": [QuadPattern(D, f"<{T}{name}>", Var(name), ANYWHERE) for name in ("delay", "platform", "headSign", "note")],
    "graphs": [QuadPattern(D, f"<{T}delay>", V, G), QuadPattern(G, "<http://example.org/temporal#expiration>", W)],
    "path": [QuadPattern(D, f"<{T}connects>", V), QuadPattern(V, f"<{T}connects>", W)],
    "itself": [QuadPattern(D, f"<{T}connects>", D)],
    "number": [
        QuadPattern(D, f"<{T}stops>", '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        QuadPattern(D, f"<{T}routeLabel>", V),
    ],
    "language": [QuadPattern(D, f"<{T}headSign>", '"H1"@en')],
    "by numbers": [QuadPattern(D, f"<{T}stops>", V), QuadPattern(W, f"<{T}delay>", V, G)],
    "all of one": [QuadPattern(f"<{X}d1>", V, W, ANYWHERE)],
    "odd": [QuadPattern(D, "<http://www.w3.org/2000/01/rdf-schema#comment>", V)],
    "named": [QuadPattern(D, V, W, G)],
    "nothing": [QuadPattern(D, f"<{T}nothing>", V), QuadPattern(D, V, W)],
}


def over_sockets(address: str, patterns: list[QuadPattern]) -> BgpSolutions:
    async def run() -> BgpSolutions:
        clock = Clock()
        client = CachingHttpClient(guarded_client(), clock, asyncio.sleep, ClientLimits(seconds=60))
        try:
            return await solve(patterns, [await open_source(address, client)], client)
        finally:
            await client.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("name", PLAN)
def test_rows_from_our_server_are_those_of_pyoxigraph(name: str, ours: str) -> None:  # noqa: F811
    assert urlsplit(ours).hostname == "127.0.0.1"
    assert bag(over_sockets(f"{ours}/data", PLAN[name]).rows) == oracle(PLAN[name], lasting())


@pytest.mark.parametrize("name", PLAN)
def test_rows_from_ldf_server_are_those_of_pyoxigraph(name: str, theirs: str) -> None:  # noqa: F811
    assert bag(over_sockets(f"{theirs}/data", PLAN[name]).rows) == oracle(PLAN[name], lasting())


@pytest.mark.parametrize("name", ["path", "itself", "number", "language", "odd"])
def test_rows_from_fragments_of_triples_are_the_same(name: str, ours: str, theirs: str) -> None:  # noqa: F811
    here, there = (over_sockets(f"{server}/triples", PLAN[name]).rows for server in (ours, theirs))
    assert bag(here) == bag(there)
    assert here


def answers(address: str) -> dict[str, object]:
    """What our client gets for each query that clients of other makers are asked."""

    async def run() -> dict[str, object]:
        client = CachingHttpClient(guarded_client(), Clock(), asyncio.sleep, ClientLimits(seconds=60))
        try:
            with client.round():
                source = await open_source(address, client)
                return {name: rows(await answer(text, [source], client)) for name, text in QUERIES}
        finally:
            await client.aclose()

    return asyncio.run(run())


def expected(text: str) -> object:
    """What pyoxigraph answers."""
    store = ox.Store()
    for *triple, graph in lasting():
        store.add(ox.Quad(*map(parse_term, triple), parse_term(graph) if graph else ox.DefaultGraph()))
    return rows(store.query(text))


def wrong(result: dict[str, object]) -> list[str]:
    """The queries with another answer; where any rows of several will do, with another number of them."""
    return [name for name, text in QUERIES if compared(text, result[name]) != compared(text, expected(text))]


def compared(text: str, result: object) -> object:
    return len(result) if "LIMIT" in text and "ORDER" not in text and isinstance(result, list) else result


def test_queries_through_our_server_are_answered_as_by_pyoxigraph(ours: str) -> None:  # noqa: F811
    assert wrong(answers(f"{ours}/data")) == []


def test_queries_through_ldf_server_are_answered_as_by_pyoxigraph(theirs: str) -> None:  # noqa: F811
    assert wrong(answers(f"{theirs}/data")) == []
