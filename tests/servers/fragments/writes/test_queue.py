"""Writes that take long: beside the loop, within budgets, and right whatever others write meanwhile."""

import asyncio
import threading

import pytest

from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.query.updates import UpdateContext, read_update
from streamgauge.servers.fragments import writes
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet, TooManyError
from streamgauge.servers.fragments.pages.selections import select
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import add, addition, expiration, modification, queue
from streamgauge.servers.fragments.writes.queue import WriteBusyError, WriteQueue
from streamgauge.servers.http.deadlines import DeadlineError
from tests.servers.fragments.writes.test_http import NOW, TOKEN, UPDATE, client, served

FREE = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6))
SIX = f"INSERT {{ ?s0 <urn:x> ?o5 }} WHERE {{ {FREE} }}"


def triple(n, predicate="p"):
    return f"<urn:s{n}>", f"<urn:{predicate}>", f'"{n}"'


def held(count=14):
    data = DataSet("trains", MemoryStore(), Style(), lambda: NOW)
    add(data, [Fact(triple(n)) for n in range(count)])
    return data


def there(data):
    return {quad[:3] for quad in data.store.page((None,) * 4, 0, 10**6)}


def update(text):
    return [modification(item, NOW, (None, None)) for item in read_update(text, UpdateContext(str))]


def where(monkeypatch):
    """The threads in which operations are worked out."""
    result, change = [], writes.change
    monkeypatch.setattr(writes, "change", lambda *args: (result.append(threading.get_ident()), change(*args))[1])
    return result


def test_six_free_patterns_on_14_triples_are_refused_beside_the_loop(monkeypatch):
    """The reads of others are answered while it is worked out, and it looks at 50,000 facts, not at 7,529,536."""
    threads, data = where(monkeypatch), held()
    app = served(data)

    async def run():
        reads = 0
        async with client(app) as web:
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": UPDATE}
            writing = asyncio.create_task(web.patch("/trains", content=SIX, headers=headers))
            while not writing.done():
                reads += (await web.get(f"/trains?subject=urn:s{reads % 14}")).status_code == 200
                await asyncio.sleep(0)
            return await writing, reads

    answer, reads = asyncio.run(run())
    assert answer.status_code == 422
    assert answer.json()["error"] == "WHERE reads more than 50000 facts: use more constants in its patterns"
    assert reads > 1
    assert threads
    assert threading.get_ident() not in threads
    assert len(there(data)) == 14


@pytest.mark.parametrize(
    "text",
    [
        SIX,
        "DELETE { ?a <urn:p> ?b } WHERE { ?a <urn:p> ?b . ?c ?d ?e . ?f ?g ?h . ?i ?j ?k . ?l ?m ?n }",
        f"INSERT {{ {' '.join(f'?a <urn:m{n}> ?b .' for n in range(100))} }} WHERE {{ ?a ?p ?b . ?c ?q ?d . ?e ?r ?f}}",
    ],
)
def test_updates_end_by_their_looks(text):
    data = held()
    with pytest.raises(TooManyError, match="WHERE reads more than 50000 facts"):
        asyncio.run(WriteQueue().write(data, update(text)))
    assert len(there(data)) == 14


def test_few_facts_are_written_without_a_thread(monkeypatch):
    data = held(0)
    monkeypatch.setattr(asyncio, "to_thread", None)
    asyncio.run(WriteQueue().write(data, [addition([Fact(triple(n)) for n in range(50)])]))
    assert len(there(data)) == 50


def test_a_draft_that_computes_for_too_long_is_stopped():
    data = held(60)
    text = "INSERT { ?a <urn:q> ?b } WHERE { ?a ?p ?b . ?c ?q ?d }"
    with pytest.raises(DeadlineError):
        asyncio.run(WriteQueue(seconds=0.000001).write(data, [*update(text)] * 200))
    assert len(there(data)) == 60


def beside(monkeypatch, data, changes):
    """After each draft the next of the changes is made by another."""
    drafted, left = queue._drafted, list(changes)

    def make(*given):
        draft = drafted(*given)
        if left:
            add(data, [Fact(left.pop(0))])
        return draft

    monkeypatch.setattr(queue, "_drafted", make)
    return left


def test_facts_are_added_although_others_write_others(monkeypatch):
    data = held()
    left = beside(monkeypatch, data, [triple(1, "other")])
    asyncio.run(WriteQueue().write(data, [addition([Fact(triple(n)) for n in range(100, 200)])]))
    assert not left
    assert there(data) == {triple(n) for n in (*range(14), *range(100, 200))} | {triple(1, "other")}


def test_what_rests_on_what_others_change_is_worked_out_again(monkeypatch):
    """The fact that comes between is gone too, as if it had come before."""
    data = held(60)
    beside(monkeypatch, data, [triple(77)])
    asyncio.run(WriteQueue().write(data, [expiration((None, "<urn:p>", None), NOW)]))
    assert there(data) == set()


def test_what_others_change_all_the_time_is_refused_when_it_is_long(monkeypatch):
    monkeypatch.setattr(queue, "SHORT_S", -1.0)
    data = held(60)
    beside(monkeypatch, data, [triple(n) for n in range(70, 80)])
    with pytest.raises(WriteBusyError, match="the data changed 3 times"):
        asyncio.run(WriteQueue().write(data, [expiration((None, "<urn:p>", None), NOW)]))
    assert len(there(data)) == 63


def test_what_others_change_all_the_time_is_made_while_they_wait_when_it_is_short(monkeypatch):
    data = held(60)
    beside(monkeypatch, data, [triple(n) for n in range(70, 73)])
    asyncio.run(WriteQueue().write(data, [expiration((None, "<urn:p>", None), NOW)]))
    assert there(data) == set()


def test_the_same_key_twice_at_once_is_done_once():
    data = held(0)
    app = served(data, body=10**6)
    body = "".join(f"{' '.join(triple(n))} .\n" for n in range(300))

    async def run():
        async with client(app) as web:
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/turtle", "Idempotency-Key": "k"}
            return await asyncio.gather(*(web.post("/trains", content=body, headers=headers) for _ in range(4)))

    answers = asyncio.run(run())
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].json()["facts"] == {"added": 300, "removed": 0}


def test_quads_are_compared_beside_the_loop_and_once_for_a_version(monkeypatch):
    data, app = held(0), None
    add(data, [Fact((f"<urn:s{n}>", "<urn:p>", f"<urn:s{n % 50}>")) for n in range(3000)])
    app, threads, scanned = served(data), [], data._scanned

    def scan(asked):
        threads.append(threading.get_ident())
        return scanned(asked)

    monkeypatch.setattr(data, "_scanned", scan)

    async def run():
        async with client(app) as web:
            answers = [await web.get("/trains?subject=?x&object=?x") for _ in range(2)]
            return [*answers, await web.get("/trains?subject=?x&object=?x&page=1")]

    assert {item.status_code for item in asyncio.run(run())} == {200}
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    assert not data.lacks(select((Var("x"), None, Var("x"), None)))


def test_others_may_write_while_a_long_write_is_worked_out(monkeypatch):
    """Of 300 facts the store is told beside the loop, and a small write that comes meanwhile is made first."""
    data = held(0)
    prepare, order = data.store.prepare, []

    def working(*given):
        order.append(("may write", not data.writers.locked()))
        asyncio.run_coroutine_threadsafe(WriteQueue().write(data, [addition([Fact(triple(999))])]), loop).result(300)
        order.append(("small write made", len(there(data))))
        return prepare(*given)

    async def run():
        nonlocal loop
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(data.store, "prepare", working)
        await WriteQueue().write(data, [addition([Fact(triple(n), None, NOW + 9) for n in range(300)])])

    loop = None
    asyncio.run(run())
    assert order == [("may write", True), ("small write made", 1)]
    assert there(data) >= {triple(999), *(triple(n) for n in range(300))}


def test_what_ended_is_swept_while_others_may_write(monkeypatch):
    data = held(0)
    add(data, [Fact(triple(n), None, NOW + 5) for n in range(300)])
    prepare, locked = data.store.prepare, []
    monkeypatch.setattr(
        data.store, "prepare", lambda *given: (locked.append(data.writers.locked()), prepare(*given))[1]
    )
    asyncio.run(queue.sweep_beside(data, NOW + 6))
    assert locked == [False]
    assert there(data) == set()


def test_names_that_are_given_at_once_are_different():
    """Two long writes of different facts that are planned before either is made have labels of their own."""
    data = held(0)
    drafts = []
    for name in "ab":
        draft = queue._drafted(data, [addition([Fact(triple(n, name), None, NOW + 5) for n in range(3)])])
        drafts.append(draft.planned(f"w{name}"))
    names = [{quad[3] for quad, _ in draft.added if quad[3]} for draft in drafts]
    assert len(names[0] | names[1]) == len(names[0]) + len(names[1])
