"""A channel that takes long to begin lets publications in between; its answer is right, its end is a sentence."""

import asyncio
import json
import time
from contextlib import contextmanager
from threading import Event, Thread

import httpx
import pytest

from streamgauge.incremental.facts import graphs
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.broker.publications import Turns
from tests.servers.broker.served import TURTLE, Client
from tests.servers.broker.world import broker, fact, select

MINUS = select("{ ?a :name ?b OPTIONAL { ?a :q ?c } } MINUS { ?d :name ?e OPTIONAL { ?d :q ?c } }")
JOIN = select("?a :name ?b . ?a :knows ?c")


def people(count):
    return [
        item
        for n in range(count)
        for item in (fact(f"s{n}", "name", f'"{n}"'), fact(f"s{n}", "knows", f"s{(n * 7) % count}"))
    ]


def test_publications_are_acknowledged_between_the_turns_of_a_channel_that_begins(monkeypatch):
    """Before each turn another publication is made, with another thread's right to the lock."""
    monkeypatch.setattr(graphs, "TURN", 50)
    made = broker()
    made.load(people(500))
    later, numbers = made._lock.later, []

    @contextmanager
    def beside():
        n = len(numbers)
        publishing = Thread(
            target=lambda: numbers.append(
                made.update(
                    [fact(f"t{n}", "name", '"t"'), fact(f"t{n}", "knows", "s1")], people(500)[2 * n : 2 * n + 1]
                )
            )
        )
        publishing.start()
        publishing.join(300)
        with later():
            yield

    monkeypatch.setattr(made._lock, "later", beside)
    made.create_channel("c", JOIN)
    assert len(numbers) > 10
    _, rows = made.rows("c")
    made.create_channel("again", select("?a :name ?b . ?a :knows ?c "))
    _, again = made.rows("again")
    assert set(rows) == set(again)
    assert len(rows) == 500
    subscription = made.subscribe("c", "me", lambda: None)
    made.publish([fact("u", "name", '"u"'), fact("u", "knows", "s1")])
    assert [len(notification.added) for notification in subscription.take()] == [1]


def test_a_turn_waits_for_those_who_want_the_lock_now():
    turns, seen = Turns(), []

    def now():
        with turns:
            seen.append("now")

    def late():
        with turns.later():
            seen.append("later")

    with turns:
        first, last = Thread(target=late), Thread(target=now)
        first.start()
        last.start()
        while turns._waiting < 1:
            time.sleep(0.001)
    first.join()
    last.join()
    assert seen == ["now", "later"]


def test_a_turn_comes_although_there_is_always_somebody_who_wants_the_lock():
    turns, stopped, count = Turns(), Event(), [0]

    def busy():
        while not stopped.is_set():
            with turns:
                count[0] += 1

    threads = [Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        with turns.later():
            pass
    stopped.set()
    for thread in threads:
        thread.join()
    assert count[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "why"),
    [
        (select("?a :name ?b . ?c :name ?d . ?e :name ?f"), "reads more than"),
        (select(" UNION ".join(f"{{ ?a :p{n} ?b }}" for n in range(70))), "groups of triple patterns"),
        (select("?a :name ?b FILTER REGEX(?b, '((a{9,99}){9,99}){9,99}')"), "counted repetitions"),
    ],
)
def test_what_costs_too_much_is_one_sentence_and_leaves_nothing(query, why):
    made = broker()
    made.load(people(300))
    readers = made._strategy._driver.closure.facts.property_of("<urn:t:name>").enter
    with pytest.raises(LimitError, match=why):
        made.create_channel("c", query)
    assert (made.channels(), readers) == ([], [])


@pytest.mark.slow
def test_an_evaluation_that_computes_for_too_long_is_stopped():
    made = broker(limits=Limits(seconds=0.1, effort=1 << 40))
    made.load(people(2000))
    with pytest.raises(LimitError, match="takes longer than it may: ask for less"):
        made.create_channel(
            "c", select("?a :name ?b FILTER NOT EXISTS { ?d :name ?e FILTER(STRLEN(?b) + STRLEN(?e) > 1000) }")
        )
    assert made.channels() == []
    made.create_channel("calm", JOIN)
    assert len(made.rows("calm")[1]) == 2000


def test_a_channel_ends_when_one_triple_makes_it_look_at_much():
    made = broker(limits=Limits(change=1000))
    made.create_channel("wide", select("?a :name ?b . ?c :knows ?d"))
    made.create_channel("calm", JOIN)
    subscription = made.subscribe("wide", "me", lambda: None)
    made.publish([fact(f"s{n}", "knows", f"s{n + 1}") for n in range(2000)])
    made.publish([fact("s1", "name", '"1"')])
    assert "more than 1100 facts and rows: the channel was ended" in subscription.over.why
    assert [channel.name for channel in made.channels()] == ["calm"]


def test_channels_begin_one_at_a_time_and_not_too_many_wait():
    made = broker(limits=Limits(creations=1))
    with Client(made) as client:
        begun, going = Event(), Event()
        create = made.create_channel

        def slow(*given, **named):
            begun.set()
            going.wait(300)
            return create(*given, **named)

        made.create_channel = slow

        async def run():
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(client.app), base_url="http://localhost"
            ) as http:
                first = asyncio.create_task(http.put("/channels/a", content=JOIN))
                while not begun.is_set():
                    assert not first.done(), first.result().text
                    await asyncio.sleep(0.01)
                second = asyncio.create_task(http.put("/channels/b", content=JOIN))
                await asyncio.sleep(0.05)
                third = await http.put("/channels/c", content=JOIN)
                published = await http.post("/publish", content="<urn:a> <urn:p> <urn:b> .", headers=TURTLE)
                going.set()
                return [(await first).status_code, (await second).status_code, third, published.status_code]

        first, second, third, published = client.wait(run())
        assert (first, second, third.status_code, published) == (201, 201, 429, 200)
        assert third.json()["error"] == "1 wait to begin a channel already: come again"


def test_rows_are_written_in_pieces_that_make_one_document():
    made = broker()
    made.load(people(1300))
    with Client(made) as client:
        assert client("PUT", "/channels/c", content=JOIN).status_code == 201
        said = client("GET", "/channels/c/rows")
        result = json.loads(said.content)
        assert len(result["results"]["bindings"]) == 1300
        assert result["head"] == {"vars": ["a", "b", "c"]}
        assert client("PUT", "/channels/none", content=select("?a :none ?b")).status_code == 201
        assert client("GET", "/channels/none/rows").json() == {
            "head": {"vars": ["a", "b"]},
            "results": {"bindings": []},
        }
