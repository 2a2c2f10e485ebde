"""Fragments as they were: each page of ?at= is what was there at that instant, and caches may keep it."""

import asyncio

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import add, sweep
from tests.servers.fragments.changes import remove, replace
from tests.servers.fragments.pages.reached import client

NQ = "application/n-quads"
TRIPLES = [(f"<urn:s{n % 3}>", f"<urn:p{n % 2}>", f'"{n}"') for n in range(6)]


class Time:
    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


def held(time: Time, keep: Keep | None) -> DataSet:
    return DataSet("data", MemoryStore(keep), Style(), time, 4)


def get(data: DataSet, query: str, **headers: str):
    async def ask():
        async with client(application([data])) as web:
            return await web.get(f"/data?{query}", headers={"Accept": NQ, **headers})

    return asyncio.run(ask())


def quads(text: str) -> set[tuple[str, ...]]:
    """The data of a page, without its metadata."""
    read = ox.parse(text.encode(), format=ox.RdfFormat.N_QUADS)
    return {
        (
            str(q.subject),
            str(q.predicate),
            str(q.object),
            "" if isinstance(q.graph_name, ox.DefaultGraph) else str(q.graph_name),
        )
        for q in read
        if "#metadata" not in str(q.graph_name)
    }


def pages(data: DataSet, query: str) -> set[tuple[str, ...]]:
    """All pages of a fragment, by their next links."""
    result, address = set(), query
    while address:
        text = get(data, address).text
        result |= quads(text)
        following = [line for line in text.splitlines() if "hydra/core#next>" in line]
        address = following[0].split(" ")[2].strip("<>").partition("?")[2] if following else ""
    return result


STEP = st.tuples(st.sampled_from(["add", "remove", "replace", "sweep"]), st.lists(st.sampled_from(TRIPLES), max_size=3))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=6), st.integers(0, 6))
def test_what_was_there_is_what_is_said_of_then(steps: list, when: int) -> None:
    time = Time()
    data = held(time, Keep())
    add(data, [Fact(("<urn:x>", "<urn:y>", '"z"'))])
    seen = []
    for what, triples in steps:
        facts = [Fact(triple, None, time.now + 2_500) for triple in triples]
        match what:
            case "add":
                add(data, facts)
            case "remove":
                remove(data, triples)
            case "replace":
                replace(data, (None, "<urn:p0>", None), facts)
        sweep(data, time.now)
        seen.append((time.now, pages(data, "predicate=urn:p0"), pages(data, "graph=@default")))
        time.now += 1_000
    at, of_predicate, of_default = seen[min(when, len(seen) - 1)]
    assert pages(data, f"predicate=urn:p0&at={at}") == of_predicate
    assert pages(data, f"at={at}&graph=@default") == of_default


def test_what_was_is_kept_by_caches() -> None:
    time = Time()
    data = held(time, Keep())
    add(data, [Fact(TRIPLES[0])])
    time.now += 5_000
    remove(data, [TRIPLES[0]])
    time.now += 5_000
    reply = get(data, "predicate=urn:p0&at=1970-01-01T00:16:41Z")
    assert quads(reply.text) == {(*TRIPLES[0], "")}
    assert reply.headers["cache-control"] == "max-age=31536000, immutable"
    assert reply.headers["memento-datetime"] == "Thu, 01 Jan 1970 00:16:41 GMT"
    assert reply.headers["link"] == '<http://localhost/data?predicate=urn:p0>; rel="original"'
    again = get(data, "predicate=urn:p0&at=1970-01-01T00:16:41Z", **{"If-None-Match": reply.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert get(data, "predicate=urn:p0&at=now").headers["cache-control"] == "no-cache"
    assert quads(get(data, "predicate=urn:p0&at=now").text) == set()


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("at=tomorrow", 400, "'tomorrow' is not a time"),
        ("at=now&colour=red", 400, "not a parameter"),
        ("at=5", 410, "does not reach back"),
        ("at=999999999999999", 400, "years 1 to 9999"),
        ("at=now&subject=x", 400, "not an absolute IRI"),
    ],
)
def test_what_is_not_known_is_said(query: str, status: int, message: str) -> None:
    time = Time()
    data = held(time, Keep())
    add(data, [Fact(TRIPLES[0])])
    reply = get(data, query)
    assert reply.status_code == status
    assert message in reply.json()["error"]


def test_a_store_that_keeps_nothing_knows_nothing_of_then() -> None:
    time = Time()
    data = held(time, None)
    add(data, [Fact(TRIPLES[0])])
    time.now += 1
    add(data, [Fact(TRIPLES[1])])
    assert get(data, "at=1000000").status_code == 410


def test_what_cannot_be_said_in_a_format_is_refused() -> None:
    data = held(Time(), Keep())
    add(data, [Fact(TRIPLES[0])])
    assert get(data, "at=now", Accept="image/png").status_code == 406
