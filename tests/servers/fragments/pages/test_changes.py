"""What changed in a fragment since a version, asked for and as events."""

import asyncio
from urllib.parse import urlencode

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.servers.fragments import CHANGES
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages import history
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.pages.representations import FragmentLimits
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.http import events
from tests.servers.fragments.pages.reached import client, streamed

EVENTS = "text/event-stream"
TERMS = [f"<urn:{letter}>" for letter in "abc"]
QUADS = [(s, p, o, g) for s in TERMS for p in TERMS[:2] for o in (*TERMS[:1], '"x y"@en') for g in ("", "<urn:g>")]


def held(now: int = 1_000_000) -> DataSet:
    return DataSet("data", MemoryStore(), Style(), lambda: now)


def change(data: DataSet, removed: list, added: list) -> None:
    data.change(removed, [(quad, None) for quad in added])


async def get(data: DataSet, query: dict[str, str], **headers: str):
    async with client(application([data])) as web:
        return await web.get(f"/data?{urlencode(query)}", headers=headers)


def patched(quads: set, patch: str) -> set:
    """What the lines of a patch make of quads."""
    made = set(quads)
    for line in patch.splitlines():
        letter, rest = line[0], line[2:]
        if letter == "H":
            continue
        (quad,) = ox.parse(rest.encode(), format=ox.RdfFormat.N_QUADS)
        graph = "" if isinstance(quad.graph_name, ox.DefaultGraph) else str(quad.graph_name)
        read = str(quad.subject), str(quad.predicate), str(quad.object), graph
        assert (read in made) is (letter == "D")
        (made.remove if letter == "D" else made.add)(read)
    return made


CHANGE = st.tuples(st.lists(st.sampled_from(QUADS), max_size=4), st.lists(st.sampled_from(QUADS), max_size=4))
PLACE = st.sampled_from(["", "urn:a", "urn:b", "?x"])


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGE, min_size=1, max_size=6), st.tuples(PLACE, PLACE, PLACE), st.integers(0, 5))
def test_a_patch_makes_the_fragment_of_then_that_of_now(changes: list, places: tuple, when: int) -> None:
    data, query = held(), dict(zip(("subject", "predicate", "object"), places, strict=True))
    before, since = fragment(data, query), data.version.decode()
    for number, (removed, added) in enumerate(changes):
        change(data, removed, added)
        if number == min(when, len(changes) - 1) - 1:
            before, since = fragment(data, query), data.version.decode()
    reply = asyncio.run(get(data, {**query, "since": since}))
    assert reply.status_code == 200
    assert reply.text.startswith(f'H prev "{since}" .\nH id "{data.version.decode()}" .\n')
    assert patched(before, reply.text) == fragment(data, query)


def fragment(data: DataSet, query: dict[str, str]) -> set:
    taken = set()
    for quad in data.store.page((None,) * 4, 0, 1000):
        names = [(name, quad[n]) for n, name in enumerate(("subject", "predicate", "object"))]
        plain = all(query[name] in ("", "?x") or f"<{query[name]}>" == term for name, term in names)
        same = {term for name, term in names if query[name] == "?x"}
        if plain and len(same) <= 1:
            taken.add(quad)
    return taken


def test_a_patch_is_small_and_can_be_kept() -> None:
    """Five changed delays among 200, on the wire: under 1 kB; again while it is fresh: nothing but a 304."""
    data = DataSet("data", MemoryStore(), Style(), lambda: 1_000_000)
    train = "<http://example.org/train#%s>"
    delays = [(train % f"departure-{n}", train % "delay", '"0S"', "<http://example.org/graphs#1>") for n in range(200)]
    data.change([], [(quad, 1_060_000) for quad in delays])
    since = data.version.decode()
    late = [(s, p, '"PT60S"', g) for s, p, _, g in delays[:5]]
    data.change(delays[:5], [(quad, 1_060_000) for quad in late])
    query = {"predicate": train[1:-1] % "delay", "since": since}

    async def wire() -> int:
        async with (
            client(application([data]), accept_encoding="br") as web,
            web.stream("GET", "/data", params=query, headers={"Accept-Encoding": "br"}) as reply,
        ):
            assert reply.headers["content-encoding"] == "br"
            return sum([len(part) async for part in reply.aiter_raw()])

    assert asyncio.run(wire()) < 1000
    reply = asyncio.run(get(data, query))
    assert reply.headers["cache-control"] == "max-age=60"
    assert reply.headers["content-type"] == "application/rdf-patch"
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["dataset-version"] == data.version.decode()
    again = asyncio.run(get(data, query, **{"If-None-Match": reply.headers["etag"]}))
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "since", ["", "7", "x", "999.0", "1000000.9", "1000000.-1", "1000000.٣", "1000000." + "9" * 40]
)
def test_versions_that_are_not_known_are_gone(since: str) -> None:
    reply = asyncio.run(get(held(), {"since": since}))
    assert reply.status_code == 410
    assert "fetch the fragment again" in reply.json()["error"]


def test_more_changes_than_there_is_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LARGE", 3)
    data = held()
    since = data.version.decode()
    change(data, [], QUADS[:6])
    assert asyncio.run(get(data, {"since": since})).status_code == 200
    kept = data.version.decode()
    change(data, QUADS[:5], QUADS[6:8])
    assert asyncio.run(get(data, {"since": kept})).status_code == 410


@pytest.mark.parametrize(
    ("query", "message"),
    [("since=x&colour=red", "not a parameter"), ("since=x&subject=a", "not an absolute IRI"), ("what=all", "what")],
)
def test_what_is_not_understood_is_said(query: str, message: str) -> None:
    async def ask():
        async with client(application([held()])) as web:
            return await web.get(f"/data?{query}", headers={"Accept": EVENTS if "what" in query else "*/*"})

    reply = asyncio.run(ask())
    assert reply.status_code == 400
    assert message in reply.json()["error"]


def test_the_metadata_names_the_changes() -> None:
    async def ask():
        async with client(application([held()])) as web:
            return await web.get("/data", headers={"Accept": "application/n-quads"})

    said = f'{CHANGES} "http://localhost/data{{?subject,predicate,object,graph,since}}"'
    assert said in asyncio.run(ask()).text


def test_events_bring_what_changes_in_the_fragment() -> None:
    async def listen() -> None:
        data = held()
        app = application([data])
        async with streamed(app, "/data", "predicate=urn:a", accept=EVENTS) as response:
            first = await response.next()
            assert (first["event"], first["data"]) == ("version", data.version.decode())
            assert response.headers["content-type"].startswith(EVENTS)
            assert response.headers["access-control-allow-origin"] == "*"
            change(data, [], [("<urn:a>", "<urn:b>", "<urn:c>", "")])  # not in the fragment
            change(data, [], [("<urn:a>", "<urn:a>", "<urn:c>", "")])
            come = await response.next()
            assert (come["event"], come["id"]) == ("change", data.version.decode())
            assert come["data"] == "A <urn:a> <urn:a> <urn:c> ."
            change(data, [("<urn:a>", "<urn:a>", "<urn:c>", "")], [("<urn:a>", "<urn:a>", "_:b", "<urn:g>")])
            gone = (await response.next())["data"]
            named = "<http://localhost/.well-known/genid/b>"
            assert gone == f"D <urn:a> <urn:a> <urn:c> .\nA <urn:a> <urn:a> {named} <urn:g> ."

    asyncio.run(listen())


def test_a_client_that_comes_back_gets_what_it_missed() -> None:
    async def listen() -> None:
        data = held()
        app = application([data])
        last = data.version.decode()
        change(data, [], QUADS[:1])
        change(data, QUADS[:1], QUADS[1:2])
        async with streamed(app, "/data", accept=EVENTS, last_event_id=last) as response:
            assert (await response.next())["data"] == f"A {' '.join(QUADS[1])} ."
        async with streamed(app, "/data", "what=version&since=" + last, accept=EVENTS) as response:
            assert (await response.next())["data"] == data.version.decode()
        async with streamed(app, "/data", accept=EVENTS, last_event_id="1.1") as response:
            assert (await response.next())["event"] == "reset"

    asyncio.run(listen())


def test_changes_that_a_slow_client_did_not_take_become_one() -> None:
    async def listen() -> None:
        data = held()
        async with streamed(application([data]), "/data", accept=EVENTS) as response:
            await response.next()
            response.taking.clear()
            for quad in QUADS:
                change(data, [], [quad])
                await asyncio.sleep(0)
            response.taking.set()
            seen = [await response.next()]
            while seen[-1]["id"] != data.version.decode():
                seen.append(await response.next())
            assert len(seen) < len(QUADS) / 2
            assert sum(event["data"].count("A ") for event in seen) == len(QUADS)

    asyncio.run(listen())


def test_a_client_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SEND_S", 0.05)

    async def listen() -> None:
        data = held()
        app = application([data])
        async with streamed(app, "/data", accept=EVENTS) as response:
            await response.next()
            response.taking.clear()
            change(data, [], QUADS[:1])
            async with asyncio.timeout(10):
                await response.ended.wait()

    asyncio.run(listen())


def test_only_so_many_may_listen() -> None:
    async def listen() -> None:
        app = application([held()], limits=FragmentLimits(subscribers=2))
        async with streamed(app, "/data", accept=EVENTS) as one, streamed(app, "/data", accept=EVENTS) as two:
            await one.next()
            await two.next()
            async with streamed(app, "/data", accept=EVENTS) as three:
                assert "2 subscribers are connected already" in (await three.parts.get()).decode()
                assert three.status == 429
        async with streamed(app, "/data", accept=EVENTS) as four:
            assert (await four.next())["event"] == "version"

    asyncio.run(listen())


def test_a_server_that_leaves_ends_its_responses() -> None:
    async def listen() -> None:
        app = application([held()])
        async with streamed(app, "/data", accept=EVENTS) as response:
            await response.next()
            app.leave()
            async with asyncio.timeout(10):
                await response.ended.wait()

    asyncio.run(listen())
