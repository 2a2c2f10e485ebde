"""Fragments: forms, pages, bindings, and servers that lie or change."""

import asyncio
import gzip
from collections.abc import Callable
from email.utils import formatdate

import httpx
import pytest

from streamgauge.model.algebra import Var
from streamgauge.model.terms import XSD
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, QuadPattern
from streamgauge.servers.fragments.client import (
    Binding,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    UnavailableError,
)
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from streamgauge.servers.fragments.client.transport import ClientLimits
from tests.servers.fragments.client.fakes import HOST, HYDRA, VOID, Clock, FakeServer, quads, reply, trains, web

START = f"{HOST}/d"
S, P, Y, G = map(Var, "spyg")
EVERY = QuadPattern(S, P, Y, ANYWHERE)
INTEGER = f"{XSD}integer"

DATA = [
    *quads('a p b. a p c. b q b. a p b g. c p "x" g. c q 7 h'),
    ("<urn:d>", "<urn:p>", '"say @@ hi"', "<urn:h>"),
    ("<urn:a>", "<urn:t>", '"multi\\nline \\"quoted\\""@en', DEFAULT),
    ("<urn:a>", "<urn:t>", '"é & ?=#%"', DEFAULT),
    ("<http://x.example/a?b=c&d#e>", "<urn:t>", f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>', "<urn:g>"),
]


def ask(
    handler: Callable[[httpx.Request], httpx.Response],
    pattern: QuadPattern,
    seeds: tuple[Binding, ...] = (),
    start: str = START,
    **options,
) -> FetchedQuads:
    """What a source has of a pattern."""

    async def run() -> FetchedQuads:
        client = web(handler, **options)
        with client.round():
            source = await open_source(start, client)
            assert isinstance(source, FragmentsSource)
            return await source.fetch(pattern, seeds)

    return asyncio.run(run())


def counted(server: FakeServer, pattern: QuadPattern) -> int:
    async def run() -> int:
        return await (await open_source(START, web(server))).count(pattern)

    return asyncio.run(run())


PATTERNS = {
    "all": (EVERY, lambda q: True),
    "default graph": (QuadPattern(S, P, Y), lambda q: q[3] == DEFAULT),
    "named graphs": (QuadPattern(S, P, Y, G), lambda q: q[3] != DEFAULT),
    "one graph": (QuadPattern(S, P, Y, "<urn:g>"), lambda q: q[3] == "<urn:g>"),
    "subject": (QuadPattern("<urn:a>", P, Y, ANYWHERE), lambda q: q[0] == "<urn:a>"),
    "awkward subject": (QuadPattern(DATA[-1][0], P, Y, G), lambda q: q[0] == DATA[-1][0]),
    "predicate": (QuadPattern(S, "<urn:p>", Y, G), lambda q: q[1] == "<urn:p>" and q[3]),
    "object": (QuadPattern(S, P, '"x"', G), lambda q: q[2] == '"x"'),
    "typed object": (QuadPattern(S, P, f'"7"^^<{INTEGER}>', G), lambda q: q[2].startswith('"7"')),
    "language": (QuadPattern(S, P, DATA[-3][2]), lambda q: q == DATA[-3]),
    "reserved characters": (QuadPattern(S, P, DATA[-2][2]), lambda q: q == DATA[-2]),
    "date": (QuadPattern(S, P, DATA[-1][2], ANYWHERE), lambda q: q == DATA[-1]),
    "repeated": (QuadPattern(S, P, S), lambda q: q[0] == q[2] and not q[3]),
    "repeated anywhere": (QuadPattern(S, S, Y, S), lambda q: False),
    "nothing": (QuadPattern("<urn:nobody>", P, Y, ANYWHERE), lambda q: False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("size", [100, 2])
@pytest.mark.parametrize("bindings", [False, True])
def test_a_pattern_has_the_quads_that_match(name: str, size: int, bindings: bool) -> None:
    pattern, wanted = PATTERNS[name]
    expected = {quad for quad in DATA if wanted(quad)}
    server = FakeServer(DATA, size=size, bindings=bindings)
    assert set(ask(server, pattern).quads) == expected
    count = counted(server, pattern)
    assert (count == 0) <= (not expected)
    assert count >= len(expected) or size == 2


@pytest.mark.parametrize(
    "options", [{"triples": True}, {"triples": True, "kind": "text/turtle"}, {"triples": True, "bare": True}]
)
def test_fragments_of_triples_have_one_graph(options: dict) -> None:
    server = FakeServer([quad for quad in DATA if not quad[3]], **options)
    for pattern in (QuadPattern(S, P, Y), EVERY, QuadPattern(S, P, DATA[-3][2])) if "bare" not in options else (EVERY,):
        expected = {q for q in server.quads if pattern.object in (Y, q[2])}
        assert set(ask(server, pattern).quads) == expected
    asked = len(server.asked)
    assert ask(server, QuadPattern(S, P, Y, G)).quads == ask(server, QuadPattern(S, P, Y, "<urn:g>")).quads == ()
    assert len(server.asked) == asked + 2


def test_bare_terms_are_sent_bare_and_what_does_not_match_is_left_out() -> None:
    requests = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.params.get("object"))
        return FakeServer(DATA, bare=True)(httpx.Request("GET", START, headers=request.headers))

    assert ask(handler, QuadPattern(S, P, f'"7"^^<{INTEGER}>', ANYWHERE)).quads == (DATA[5],)
    assert requests[1] == "7"


def test_an_empty_last_page_is_no_fault() -> None:
    server = FakeServer(trains(20), size=50, empty_last=True)
    assert len(ask(server, EVERY).quads) == 100
    assert len(server.asked) == 3


def changed(old: str, new: str) -> Callable[[str, list[str]], list[str]]:
    return lambda _address, lines: [line.replace(old, new) for line in lines]


def without(text: str) -> Callable[[str, list[str]], list[str]]:
    return lambda _address, lines: [line for line in lines if text not in line]


TOLERATED = {
    "count too low": lambda address, lines: [line.replace("triples> 250", "triples> 3") for line in lines],
    "count too high": changed("triples> 250", "triples> 90000"),
    "count 0": changed("triples> 250", "triples> 0"),
    "no count": without(f"{VOID}triples"),
    "count is text": changed("triples> 250", 'triples> "many"'),
    "count is negative": changed("triples> 250", "triples> -5"),
    "no size of pages": without("itemsPerPage"),
    "page size 0": changed("itemsPerPage> 100", "itemsPerPage> 0"),
    "no default graph": without("defaultGraph"),
    "metadata in another order": lambda address, lines: sorted(lines),
    "old name of next": changed(f"{HYDRA}next", f"{HYDRA}nextPage"),
}


@pytest.mark.parametrize("lie", TOLERATED)
@pytest.mark.parametrize("seeds", [(), tuple({S: f"<urn:d{n}>"} for n in range(0, 50, 25))])
def test_lies_that_cost_no_quads(lie: str, seeds: tuple[Binding, ...]) -> None:
    server = FakeServer(trains(50), alter=TOLERATED[lie])
    result = ask(server, QuadPattern(S, P, Y), seeds)
    subjects = {seed[S] for seed in seeds} or {quad[0] for quad in server.quads}
    assert set(result.quads) >= {quad for quad in server.quads if quad[0] in subjects}
    assert set(result.quads) <= set(server.quads)


def test_a_count_of_0_is_not_believed_beside_quads() -> None:
    assert counted(FakeServer(trains(50), alter=TOLERATED["count 0"]), QuadPattern(S, "<urn:delay>", Y)) == 50


def next_to(target: str) -> Callable[[str, list[str]], list[str]]:
    def alter(address: str, lines: list[str]) -> list[str]:
        return [*without(f"{HYDRA}next")(address, lines), f"<{address}> <{HYDRA}next> <{target}> ."]

    return alter


REFUSED = {
    "next is the page itself": (lambda a, lines: next_to(a)(a, lines), "which was read before"),
    "next goes back": (next_to(f"{START}?predicate=urn%3Adelay"), "which was read before"),
    "next is elsewhere": (next_to("http://other.example/d"), "another origin, http://other"),
    "next is this machine": (next_to("http://127.0.0.1:6379/"), r"127\.0\.0\.1 is not a public host"),
    "next is the cloud's metadata": (next_to("http://169.254.169.254/latest"), "not a public host"),
    "next is a file": (next_to("file:///etc/passwd"), "not a web address"),
    "next has credentials": (next_to("http://u:p@data.example/d"), "credentials"),
}


@pytest.mark.parametrize("lie", REFUSED)
def test_next_pages_that_are_refused(lie: str) -> None:
    alter, why = REFUSED[lie]
    server = FakeServer(trains(50), alter=alter)
    with pytest.raises(LinkedDataError, match=why):
        ask(server, QuadPattern(S, "<urn:delay>", Y))
    assert all(text.startswith(HOST) for text in server.asked)
    assert len(server.asked) < 5


def endless(address: str, lines: list[str]) -> list[str]:
    number = int(address.rpartition("page=")[2]) if "page=" in address else 1
    base = address.partition("&page=")[0].partition("?page=")[0]
    return next_to(f"{base}{'&' if '?' in base else '?'}page={number + 1}")(address, lines)


def test_pages_without_end_that_bring_nothing_new() -> None:
    server = FakeServer(trains(50), alter=endless)
    with pytest.raises(LinkedDataError, match=r"4 pages in a row, up to number 5, without new quads"):
        ask(server, QuadPattern(S, "<urn:delay>", Y))


def test_pages_without_end_that_bring_something_new() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params.get("page", "1"))
        return FakeServer([*trains(1), *quads(f"n{number} delay 1") * number], size=1, alter=endless)(request)

    with pytest.raises(LinkedDataError, match="more than 7 pages: raise the limit `pages`"):
        ask(handler, QuadPattern(S, "<urn:delay>", Y), limits=ClientLimits(pages=7))


def test_a_page_with_more_quads_than_the_limit() -> None:
    with pytest.raises(LinkedDataError, match="more than 120 quads: raise the limit `quads`"):
        ask(FakeServer(trains(50)), EVERY, limits=ClientLimits(quads=120))


def spoiled(spoil: Callable[[bytes], bytes], times: int, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    """A server whose bodies, but for the start page, are spoiled some times."""
    server, left = FakeServer(trains(50)), [times]

    def handler(request: httpx.Request) -> httpx.Response:
        good = server(httpx.Request("GET", request.url))
        if str(request.url) == START or left[0] <= 0:
            return good
        left[0] -= 1
        return reply(200, spoil(b"".join(good.stream._parts)), **headers)

    return handler


SPOILED = {
    "cut": (lambda body: body[: len(body) // 2 - 7], {}, "is not TriG, line"),
    "not UTF-8": (lambda body: body.replace(b"delay", b"\xff\xfe"), {}, "is not TriG"),
    "HTML": (lambda body: b"<html>busy</html>", {"kind": "text/html"}, "is 'text/html', which is not RDF"),
    "no type": (lambda body: body, {"kind": ""}, "of no stated media type"),
    "HTML called TriG": (lambda body: b"<html>busy</html>", {}, "is not TriG, line 1"),
    "JSON called JSON-LD": (
        lambda body: b'{"@context": "http://169.254.169.254/"}',
        {"kind": "application/ld+json"},
        "JSON",
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_bodies_that_stay_wrong(how: str) -> None:
    spoil, headers, why = SPOILED[how]
    with pytest.raises(LinkedDataError, match=rf"^http://data\.example/d\?predicate=urn%3Adelay.*: .*{why}"):
        ask(spoiled(spoil, 99, **headers), QuadPattern(S, "<urn:delay>", Y))


@pytest.mark.parametrize("how", SPOILED)
def test_a_body_that_was_wrong_once_is_read_again(how: str) -> None:
    spoil, headers, _ = SPOILED[how]
    assert len(ask(spoiled(spoil, 1, **headers), QuadPattern(S, "<urn:delay>", Y)).quads) == 50


@pytest.mark.parametrize("kind", ["application/n-quads", "text/plain; charset=utf-8", "application/n-triples"])
def test_a_start_of_another_type_is_read_by_that(kind: str) -> None:
    body = b'<urn:a> <urn:b> "c" .\n'
    client = web(lambda request: reply(200, body, kind=kind))
    source = asyncio.run(open_source(f"{HOST}/d.nt", client))
    assert asyncio.run(source.count(QuadPattern(S, P, Y))) == 1


def test_metadata_in_the_data_graph() -> None:
    """A page without a metadata graph: what is said of controls in their terms is not data."""
    server = FakeServer(DATA, triples=True)

    def handler(request: httpx.Request) -> httpx.Response:
        body = b"".join(server(httpx.Request("GET", request.url)).stream._parts).decode()
        graph = body[body.index(f"<{HOST}") : body.index(" {\n")] if " {\n" in body else ""
        flat = body.replace(f"{graph} {{\n", "").rstrip().rstrip("}")
        return reply(200, flat.encode())

    server.quads = [quad for quad in DATA if not quad[3]]
    assert set(ask(handler, EVERY).quads) == set(server.quads)


def test_a_topic_in_the_data_is_no_metadata() -> None:
    topic = "<http://xmlns.com/foaf/0.1/primaryTopic>"
    data = [("<urn:e>", topic, "<urn:f>", "<urn:e>"), ("<urn:e>", f"<{VOID}triples>", '"2"', "<urn:e>"), *DATA]
    data = [*data, ("<urn:g>", topic, "<urn:me>", "<urn:g>"), ("<urn:g>", f"<{VOID}triples>", '"1"', "<urn:g>")]
    for size in (100, 3):
        assert set(ask(FakeServer(data, size=size), EVERY).quads) == set(data)


def test_blank_nodes_of_two_pages_are_two() -> None:
    data = [("_:x", "<urn:p>", '"1"', DEFAULT), ("_:x", "<urn:p>", '"2"', DEFAULT)]
    result = ask(FakeServer(data, size=1), QuadPattern(S, P, Y)).quads
    assert len({quad[0] for quad in result}) == 2
    again = ask(FakeServer(data, size=1), QuadPattern(S, P, Y)).quads
    assert result == again


def test_seeds_with_blank_nodes_and_numbers_are_not_asked_for() -> None:
    server = FakeServer(trains(300), size=10)
    for term in ("_:b0", f'"1"^^<{INTEGER}>'):
        ask(server, QuadPattern(S, "<urn:delay>", Y), ({Y: term},))
    assert not [item for item in server.asked if "object=" in item]


@pytest.mark.parametrize(("bindings", "requests"), [(False, 40), (True, 2)])
def test_seeds_take_the_fewest_requests(bindings: bool, requests: int) -> None:
    server = FakeServer(trains(2000), size=40, bindings=bindings)
    seeds = tuple({S: f"<urn:d{number}>"} for number in range(0, 400, 10))
    result = ask(server, QuadPattern(S, "<urn:routeLabel>", Y), seeds)
    assert {quad[0] for quad in result.quads} == {seed[S] for seed in seeds}
    assert len(server.asked) == 2 + requests


def test_the_form_with_bindings_is_found_from_a_page_that_does_not_have_it() -> None:
    """Our own server has that form on the pages of the data set, not on those of a pattern."""

    def entry_only(address: str, lines: list[str]) -> list[str]:
        return lines if "?" not in address else [line for line in lines if "values" not in line]

    server = FakeServer(trains(2000), size=40, bindings=True, alter=entry_only)
    seeds = tuple({S: f"<urn:d{number}>"} for number in range(0, 400, 10))
    result = ask(server, QuadPattern(S, "<urn:routeLabel>", Y), seeds, start=f"{START}?predicate=urn:delay")
    assert {quad[0] for quad in result.quads} == {seed[S] for seed in seeds}
    assert server.asked[1] == START
    assert len(server.asked) == 1 + 2 + 2


def test_many_seeds_read_the_whole_fragment() -> None:
    server = FakeServer(trains(100), size=40)
    seeds = tuple({S: f"<urn:d{number}>"} for number in range(50))
    assert len(ask(server, QuadPattern(S, "<urn:delay>", Y), seeds).quads) == 100
    assert len(server.asked) == 1 + 3


def test_an_old_first_page_does_to_plan_by() -> None:
    """A poll that is restricted asks for the narrow fragments only."""
    server = FakeServer(trains(200), size=10)

    async def run() -> None:
        client = web(server)
        source = await open_source(START, client)
        for requests in (4, 3):
            before = len(server.asked)
            with client.round():
                await source.fetch(QuadPattern(S, "<urn:delay>", Y), [{S: f"<urn:d{n}>"} for n in range(3)])
            assert len(server.asked) - before == requests

    asyncio.run(run())


def test_addresses_with_bindings_are_bounded() -> None:
    server = FakeServer(trains(2000), size=20, bindings=True)
    seeds = tuple({S: f"<urn:d{number}>", Y: f'"{"x" * 300}{number}"'} for number in range(30))
    ask(server, QuadPattern(S, "<urn:routeLabel>", Y), seeds, limits=ClientLimits(address=2000))
    assert max(map(len, server.asked)) <= 2000


class Changing:
    """A server whose data changes when it has answered some requests."""

    def __init__(self, every: int, stop: int = 10**9, **headers: Callable[["Changing"], str]) -> None:
        self.clock, self.version, self.count, self.every, self.stop = Clock(), 1, 0, every, stop
        self.server = FakeServer(self.data(), size=100, clock=self.clock, headers=self._headers)
        self.named = headers

    def data(self) -> list:
        """The version in each object; one quad more with each version."""
        return quads(". ".join(f'd{n} p "{self.version}"' for n in range(250)))

    def _headers(self) -> dict[str, str]:
        return {name.replace("_", "-"): make(self) for name, make in self.named.items()}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if str(request.url) != START:
            self.count += 1
            if self.count % self.every == 0 and self.version < self.stop:
                self.version += 1
                self.server.quads = self.data()
        self.clock.now += 1000
        return self.server(request)


def tag(server: Changing) -> str:
    return f'"{server.version}"'


@pytest.mark.parametrize("headers", [{"ETag": tag}, {"Dataset_Version": tag, "ETag": tag}, {"Dataset_Version": tag}])
def test_pages_that_straddle_a_change_are_read_again(headers: dict) -> None:
    server = Changing(2, 2, **headers)
    result = ask(server, QuadPattern(S, P, Y), clock=server.clock)
    assert {quad[2] for quad in result.quads} == {'"2"'}
    assert len(result.quads) == 250


def test_a_last_modified_before_the_first_page_settles_it() -> None:
    old = Changing(10**9, Last_Modified=lambda server: formatdate(1_600_000_000, usegmt=True))
    ask(old, QuadPattern(S, P, Y), clock=old.clock)
    assert old.count == 3


def test_what_changes_faster_than_it_can_be_read_is_said() -> None:
    server = Changing(2, ETag=tag)
    with pytest.raises(UnavailableError, match="changes faster than its 3 pages can be read"):
        ask(server, QuadPattern(S, P, Y), clock=server.clock)


def test_counts_that_differ_between_pages_show_a_change() -> None:
    server = FakeServer(trains(50))
    requests = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if len(requests) == 3:
            server.quads = trains(51)
        return server(request)

    assert set(ask(handler, EVERY).quads) == set(trains(51))


def test_versions_and_times_are_of_the_pages() -> None:
    server = Changing(10**9, Dataset_Version=tag, Cache_Control=lambda server: f"max-age={10 - server.count}")
    result = ask(server, QuadPattern(S, P, Y), clock=server.clock)
    assert result.version == '"1"'
    assert result.until == result.at + 9000
    assert result.validator is not None


def test_a_restart_in_the_middle_is_survived() -> None:
    server, seen = FakeServer(trains(200), size=50), []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if 4 <= len(seen) <= 6:
            raise httpx.ConnectError("refused")
        return server(request)

    assert len(ask(handler, QuadPattern(S, "<urn:delay>", Y)).quads) == 200


@pytest.mark.parametrize("place", ["{?subject,predicate,object,graph}", "{?subject,predicate,object,graph,values}"])
def test_a_form_that_is_not_understood(place: str) -> None:
    server = FakeServer(DATA, bindings=True, alter=changed(place, place.replace("subject", "subject*")))
    with pytest.raises(LinkedDataError, match=r"a form that is not understood: .*subject\*"):
        ask(server, EVERY)


def test_a_form_that_leads_elsewhere() -> None:
    server = FakeServer(DATA, alter=changed(f'"{HOST}/d', '"http://10.0.0.8/d'))
    with pytest.raises(LinkedDataError, match=r"10\.0\.0\.8 is not a public host"):
        ask(server, EVERY)


def test_a_form_elsewhere_is_followed_where_that_is_allowed() -> None:
    server = FakeServer(DATA, base="http://pages.example")
    assert len(ask(server, EVERY, allowed=["pages.example"]).quads) == len(DATA)


def test_huge_pages_are_read_or_refused() -> None:
    server = FakeServer(trains(4000), size=10**6)
    assert len(ask(server, QuadPattern(S, "<urn:delay>", Y)).quads) == 4000
    with pytest.raises(LinkedDataError, match="raise the limit `unpacked`"):
        ask(server, QuadPattern(S, "<urn:delay>", Y), limits=ClientLimits(unpacked=100_000))


def test_a_page_that_is_a_bomb() -> None:
    start = FakeServer(DATA)

    def handler(request: httpx.Request) -> httpx.Response:
        if str(request.url) == START:
            return start(request)
        return reply(200, gzip.compress(b"\n" * 30_000_000), content_encoding="gzip")

    with pytest.raises(LinkedDataError, match="unpacks to more than"):
        ask(handler, QuadPattern(S, "<urn:p>", Y), limits=ClientLimits(unpacked=5_000_000))


def test_the_first_failure_ends_the_rest() -> None:
    """Of many narrow fragments, none is asked for after one was refused."""
    server = FakeServer(trains(5000), size=10)

    async def handler(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        if "subject" in str(request.url.params):
            return reply(403, b"enough", kind="text/plain")
        return server(request)

    async def run() -> CachingHttpClient:
        client = web(handler, limits=ClientLimits(at_once=2))
        source: LinkedDataSource = await open_source(START, client)
        with pytest.raises(LinkedDataError, match="answers 403: enough"):
            await source.fetch(QuadPattern(S, "<urn:delay>", Y), [{S: f"<urn:d{n}>"} for n in range(100)])
        return client

    assert asyncio.run(run()).counters.requests < 20
