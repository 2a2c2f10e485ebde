"""Basic graph patterns: the same solutions as pyoxigraph over the same quads, and how many requests they take."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import parse_term
from streamgauge.model.algebra import Node, Var
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.client import BgpSolutions, Binding, LinkedDataError
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source, solve
from streamgauge.servers.fragments.client.transport import ClientLimits
from tests.servers.fragments.client.fakes import FakeServer, quads, reply, trains, web

NAMES = ("a", "b", "c", "d")
VARIABLES = tuple(map(Var, ("x", "y", "z", "_:0")))
TRAIN = tuple(
    QuadPattern(Var("id"), f"<urn:{name}>", Var(name))
    for name in ("delay", "headSign", "routeLabel", "platform", "departureTime")
)


def serving(*servers: FakeServer) -> tuple[CachingHttpClient, list[str]]:
    """A client of several servers, by their hosts."""
    hosts = {urlsplit(server.base).netloc: server for server in servers}
    return web(lambda request: hosts[request.url.netloc.decode()](request)), [f"{server.base}/d" for server in servers]


def solved(
    patterns: Sequence[QuadPattern],
    *servers: FakeServer,
    seeds: Sequence[Binding] = (),
    limits: ClientLimits | None = None,
) -> BgpSolutions:
    client, starts = serving(*servers)
    client.limits = limits or client.limits

    async def run() -> BgpSolutions:
        with client.round():
            return await solve(patterns, [await open_source(start, client) for start in starts], client, seeds)

    return asyncio.run(run())


def bag(rows: Sequence[Binding]) -> Counter:
    return Counter(frozenset((variable.name, term) for variable, term in row.items()) for row in rows)


def oracle(patterns: Sequence[QuadPattern], data: Sequence[Quad]) -> Counter:
    """What pyoxigraph says, which we did not write; ANYWHERE is the union of all graphs."""
    store = ox.Store()
    for s, p, o, g in data:
        graph = parse_term(g) if g else ox.DefaultGraph()
        store.add(ox.Quad(parse_term(s), parse_term(p), parse_term(o), graph))
        store.add(ox.Quad(parse_term(s), parse_term(p), parse_term(o), ox.NamedNode("urn:every")))
    variables = list(dict.fromkeys(variable for pattern in patterns for variable in pattern.variables))
    names = {variable: f"?v{number}" for number, variable in enumerate(variables)}
    wheres = []
    for pattern in patterns:
        s, p, o, g = (names.get(node, node) if isinstance(node, Var) else node for node in pattern.nodes)
        wheres.append(f"{s} {p} {o} ." if g == DEFAULT else f"GRAPH {graph_text(g)} {{ {s} {p} {o} }}")
    named = [name for pattern in patterns for node, name in names.items() if node == pattern.graph]
    filters = "".join(f"FILTER({name} != <urn:every>)" for name in dict.fromkeys(named))
    result = store.query(f"SELECT * WHERE {{ {' '.join(wheres)} {filters} }}")
    if not variables:
        return Counter([frozenset()] * len(list(result)))
    return Counter(
        frozenset((variable.name, str(row[names[variable][1:]])) for variable in variables) for row in result
    )


def graph_text(graph: Node) -> str:
    return "<urn:every>" if graph == ANYWHERE else str(graph)


TERMS = st.sampled_from([f"<urn:{name}>" for name in NAMES])
OBJECTS = st.one_of(TERMS, st.sampled_from(['"1"', '"x"@en']))
GRAPHS = st.sampled_from([DEFAULT, DEFAULT, "<urn:a>", "<urn:g>"])
QUADS = st.lists(st.tuples(TERMS, TERMS, OBJECTS, GRAPHS), max_size=25, unique=True)
NODES = st.one_of(st.sampled_from(VARIABLES), st.sampled_from(VARIABLES), TERMS)
PATTERN = st.builds(
    QuadPattern,
    NODES,
    NODES,
    st.one_of(NODES, OBJECTS),
    st.sampled_from([DEFAULT, DEFAULT, ANYWHERE, Var("g"), "<urn:a>"]),
)
SERVERS = st.builds(dict, size=st.sampled_from([100, 3]), bindings=st.booleans(), empty_last=st.booleans())


@given(QUADS, st.lists(PATTERN, min_size=1, max_size=3, unique=True), SERVERS)
def test_solutions_are_those_of_the_same_quads(data: list[Quad], patterns: list[QuadPattern], options: dict) -> None:
    assert bag(solved(patterns, FakeServer(data, **options)).rows) == oracle(patterns, data)


@given(QUADS, QUADS, st.lists(PATTERN, min_size=1, max_size=3, unique=True), SERVERS, SERVERS)
def test_several_sources_are_their_union(
    one: list[Quad], two: list[Quad], patterns: list[QuadPattern], first: dict, second: dict
) -> None:
    servers = FakeServer(one, **first), FakeServer(two, base="http://two.example", **second)
    assert bag(solved(patterns, *servers).rows) == oracle(patterns, [*one, *two])


@given(
    QUADS,
    st.lists(PATTERN, min_size=1, max_size=2, unique=True),
    st.lists(st.dictionaries(st.sampled_from(VARIABLES[:2]), TERMS), min_size=1, max_size=3, unique_by=str),
    SERVERS,
)
def test_seeds_are_joined_with_the_solutions(
    data: list[Quad], patterns: list[QuadPattern], seeds: list[Binding], options: dict
) -> None:
    whole = solved(patterns, FakeServer(data)).rows
    expected = [
        {**seed, **row} for seed in seeds for row in whole if all(row.get(v, term) == term for v, term in seed.items())
    ]
    assert bag(solved(patterns, FakeServer(data, **options), seeds=seeds).rows) == bag(expected)


@pytest.mark.parametrize("options", [{}, {"triples": True}, {"bindings": True}, {"empty_last": True}])
def test_the_train_query_takes_six_requests(options: dict) -> None:
    server = FakeServer(trains(75), **options)
    assert len(solved(TRAIN, server).rows) == 75
    assert len(server.asked) == 6


@pytest.mark.slow
@pytest.mark.parametrize(("options", "most"), [({}, 1 + 3 + 7 + 2 * 75), ({"bindings": True}, 1 + 3 + 7 + 2 * 3 * 3)])
def test_one_station_of_many_is_joined_by_its_departures(options: dict, most: int) -> None:
    """75 departures of 1,500 that take 150 pages: bound requests, 30 at once where the server takes bindings."""
    data = [*trains(1500), *(quad for n in range(0, 1500, 20) for quad in quads(f"d{n} station here"))]
    server = FakeServer(data, size=10, **options)
    here = QuadPattern(Var("id"), "<urn:station>", "<urn:here>")
    assert len(solved([*TRAIN[:2], here], server).rows) == 75
    assert len(server.asked) <= most


def test_what_is_nowhere_ends_the_query_at_once() -> None:
    server = FakeServer(trains(1000))
    assert solved([*TRAIN, QuadPattern(Var("id"), "<urn:nothing>", Var("x"))], server).rows == ()
    assert len(server.asked) == 7


def test_unconnected_patterns_come_last_and_rows_are_bounded() -> None:
    data = trains(50)
    patterns = [TRAIN[0], QuadPattern(Var("other"), "<urn:platform>", Var("there"))]
    assert len(solved(patterns, FakeServer(data)).rows) == 2500
    with pytest.raises(LinkedDataError, match="more than 1000 rows: connect its patterns"):
        solved(patterns, FakeServer(data), limits=ClientLimits(rows=1000))


def test_no_patterns_have_one_solution() -> None:
    assert solved([], FakeServer([])).rows == ({},)
    assert solved([], FakeServer([]), seeds=[{Var("x"): "<urn:a>"}]).rows == ({Var("x"): "<urn:a>"},)


def test_the_earliest_times_and_the_versions_are_told() -> None:
    one = FakeServer(trains(5), headers=lambda: {"Dataset-Version": "7", "Cache-Control": "max-age=20"})
    two = FakeServer(trains(5), base="http://two.example", headers=lambda: {"Cache-Control": "max-age=9"})
    two.clock.now += 5000
    result = solved(TRAIN, one, two)
    assert result.versions == ("7", None)
    assert (result.at, result.until) == (one.clock.now, two.clock.now + 9000)


def test_a_version_that_changed_between_patterns_is_none() -> None:
    server = FakeServer(trains(5))
    server.headers = lambda: {"Dataset-Version": str(len(server.asked) // 4)}
    assert solved(TRAIN, server).versions == (None,)


def test_a_source_that_fails_fails_the_query() -> None:
    good = FakeServer(trains(5))

    def handler(request: httpx.Request) -> httpx.Response:
        return good(request) if "headSign" not in str(request.url) else reply(403)

    client = web(handler)

    async def run() -> None:
        with pytest.raises(LinkedDataError, match=r"headSign.*: answers 403"):
            await solve(TRAIN, [await open_source(f"{good.base}/d", client)], client)

    asyncio.run(run())


def test_all_of_a_query_is_one_round() -> None:
    """A page that two patterns share is asked for once, and again by the next query."""
    server = FakeServer(trains(5))
    client, (start,) = serving(server)
    patterns = [QuadPattern(Var("x"), "<urn:delay>", Var(name)) for name in "abc"]

    async def run() -> None:
        source = await open_source(start, client)
        for item in (2, 3):
            await solve(patterns, [source], client)
            assert len(server.asked) == item

    asyncio.run(run())
