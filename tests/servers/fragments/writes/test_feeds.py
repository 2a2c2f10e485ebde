"""Feeds: elements become facts, whatever cannot is counted and said, and nothing ends silently."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event

import pytest

from streamgauge.formats.lines import Advance, Input
from streamgauge.formats.streams import Reading
from streamgauge.model.element import StreamElement
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.store import FullError
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import add
from streamgauge.servers.fragments.writes.feeds import DataSetFeed, FeedPace, FeedRunner, background_tasks
from streamgauge.sources import SourceError, open_source

A, B, C = (("<urn:s>", "<urn:p>", f'"{letter}"') for letter in "abc")
BAD = ("<urn:s>", "<http://example.org/temporal#expiration>", '"x"')


class Given:
    """A source of what it is given."""

    refused, reasons = 0, ()

    def __init__(self, items: Iterable[Input | Exception], ends: bool = True) -> None:
        self._items, self._ends, self._closed = items, ends, Event()

    def items(self) -> Iterator[Input]:
        for item in self._items:
            if isinstance(item, Exception):
                raise item
            yield item
        if not self._ends:
            self._closed.wait(10)

    def close(self) -> None:
        self._closed.set()


class Time:
    """A clock that sleeping moves on."""

    def __init__(self, now: int) -> None:
        self.now, self.slept = now, list[float]()

    def __call__(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += max(1, round(seconds * 1000))
        await asyncio.sleep(0.001)


def element(time: int, added: tuple = (), removed: tuple = (), until: int | None = None) -> StreamElement:
    return StreamElement("urn:stream", time, time, tuple(added), tuple(removed), until)


def held(label: Label, time: Time) -> DataSet:
    return DataSet("data", MemoryStore(), Style(label=label), time)


def facts(data: DataSet) -> set[Fact]:
    return set(method(data.style.method).facts(data.store.page((None,) * 4, 0, 1000), data.style))


def fed(data: DataSet, items: Iterable[Input | Exception], time: Time, **given: object) -> tuple[FeedRunner, list[str]]:
    messages: list[str] = []
    feeding = FeedRunner(DataSetFeed(data, Given(items), **given), messages.append, time.sleep)
    asyncio.run(feeding.run())
    return feeding, messages


def test_elements_become_intervals() -> None:
    time = Time(0)
    data = held(Label.INTERVAL, time)
    items = [element(10, [A, B]), element(20, [C], [A], until=50), Advance(30), element(40, [A], [B])]
    feeding, said = fed(data, items, time)
    assert facts(data) == {Fact(A, 10, 20), Fact(B, 10, 40), Fact(C, 20, 50), Fact(A, 40, None)}
    assert (feeding.fed.elements, feeding.fed.facts) == (3, 4)
    assert said == ["the feed of /data has ended: 3 elements, 4 facts, 0 already ended, 0 refused"]


def test_what_comes_late_does_not_end_what_came_after() -> None:
    time = Time(0)
    data = held(Label.INTERVAL, time)
    fed(data, [element(10, [A]), element(30, [], [A]), element(40, [A]), element(20, [B], [A])], time)
    assert facts(data) == {Fact(A, 10, 20), Fact(A, 40, None), Fact(B, 20, None)}


def test_elements_become_expirations() -> None:
    time = Time(100)
    data = held(Label.EXPIRATION, time)
    feeding, _ = fed(data, [element(10, [A, B], until=500), element(20, [C]), element(30, [], [B])], time, lasting=1000)
    assert facts(data) == {Fact(A, None, 500), Fact(C, None, 1020)}
    feeding, said = fed(data, [element(10, [A], until=90)], time)
    assert facts(data) == {Fact(C, None, 1020)}
    assert feeding.fed.over == 1
    assert "1 already ended" in said[0]


def test_elements_become_instants() -> None:
    time = Time(100)
    data = held(Label.INSTANT, time)
    fed(data, [element(10, [A]), element(20, [A], [A])], time)
    assert facts(data) == {Fact(A, 10, 11), Fact(A, 20, 21)}


def test_what_cannot_be_applied_is_counted_and_said() -> None:
    time = Time(0)
    data = held(Label.INTERVAL, time)
    feeding, said = fed(data, [element(10, [A]), element(20, [BAD, B]), element(30, [C])], time)
    assert facts(data) == {Fact(A, 10, None), Fact(C, 30, None)}
    assert feeding.fed.refused == 1
    assert (
        "1 refused\n  element 20 of 20 ms: <http://example.org/temporal#expiration> is a predicate of time" in said[0]
    )


@pytest.mark.parametrize(
    "error", [SourceError("line 7: no stream"), OSError("no route to host"), ZeroDivisionError("unforeseen")]
)
def test_a_source_that_fails_is_said(error: Exception) -> None:
    time = Time(0)
    data = held(Label.INTERVAL, time)
    _, said = fed(data, [element(10, [A]), error], time)
    assert said[0].startswith(f"the feed of /data stopped: {error}: 1 element")
    assert facts(data) == {Fact(A, 10, None)}


def test_a_store_that_is_full_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    time, said = Time(0), []
    data = held(Label.INTERVAL, time)

    def full(*_: object) -> None:
        raise FullError("no room: make some")

    monkeypatch.setattr(data.store, "change", full)
    feeding = FeedRunner(DataSetFeed(data, Given([element(10, [A])])), said.append, time.sleep)
    with pytest.raises(FullError):
        asyncio.run(feeding.run())
    assert "stopped: no room: make some" in said[0]


def test_a_pace_replays_from_now_on() -> None:
    """Twice as fast: what was said to hold for 20 s holds for 10 s of the clock."""
    time = Time(1_000_000)
    data = held(Label.INTERVAL, time)
    fed(data, [element(5_000, [A], until=25_000), element(9_000, [B], [A])], time, pace=FeedPace(2.0))
    assert facts(data) == {Fact(A, 1_000_000, 1_002_000), Fact(B, 1_002_000, None)}
    assert time.now >= 1_002_000


def test_blank_nodes_of_a_feed_are_its_own() -> None:
    time = Time(0)
    data = held(Label.INTERVAL, time)
    blank = ("_:b0", "<urn:p>", "_:b1")
    add(data, [Fact(blank)])
    fed(data, [element(10, [blank]), element(20, [("_:b1", "<urn:q>", '"x"')])], time)
    triples = {fact.triple for fact in facts(data)}
    assert blank in triples
    (link,) = {triple for triple in triples if triple[1] == "<urn:p>"} - {blank}
    assert {triple[0] for triple in triples if triple[1] == "<urn:q>"} == {link[2]}


def test_a_feed_that_goes_on_is_ended_by_the_server() -> None:
    time, said = Time(0), []
    data = held(Label.EXPIRATION, time)

    async def up() -> None:
        feeding = FeedRunner(DataSetFeed(data, Given([element(10, [A])], ends=False)), said.append)
        async with background_tasks([data], [feeding]):
            async with asyncio.timeout(10):
                while not facts(data):
                    await asyncio.sleep(0.01)
        assert said == ["the feed of /data has ended: 1 element, 1 fact, 0 already ended, 0 refused"]

    asyncio.run(up())


@pytest.mark.parametrize(
    ("label", "history", "left"),
    [(Label.EXPIRATION, None, {C}), (Label.INTERVAL, None, {A, B, C}), (Label.INTERVAL, 500, {B, C})],
)
def test_what_ended_is_forgotten_with_time(label: Label, history: int | None, left: set) -> None:
    time = Time(0)
    data = held(label, time)
    add(data, [Fact(A, 0, 1000), Fact(B, 0, 1600), Fact(C, 0, 9000)])
    time.now = 2000

    async def up() -> None:
        async with background_tasks([data], history=history):
            async with asyncio.timeout(10):
                while {fact.triple for fact in facts(data)} != left:
                    await asyncio.sleep(0.01)

    asyncio.run(up())
    assert {fact.triple for fact in facts(data)} == left


def test_what_cannot_be_forgotten_is_said_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    time, tried = Time(2000), []
    data = held(Label.EXPIRATION, time)
    change = data.store.change
    data.store.change([], [((*A, ""), 1000)], 0)

    def full(*given: object):
        tried.append(given)
        if len(tried) == 1:
            raise FullError("no room: make some")
        return change(*given)

    monkeypatch.setattr(data.store, "change", full)

    async def up() -> None:
        async with background_tasks([data]):
            async with asyncio.timeout(10):
                while facts(data):
                    await asyncio.sleep(0.01)

    asyncio.run(up())
    assert "/data: ended facts cannot be removed: no room: make some" in caplog.text


def test_files_feed(tmp_path: Path) -> None:
    file = tmp_path / "elements.jsonl"
    file.write_text(
        '{"t":1000,"n":1,"stream":"urn:s","add":"<urn:s> <urn:p> \\"a\\" .","until":60000}\n'
        '{"t":3000,"n":2,"stream":"urn:s","add":"<urn:s> <urn:p> \\"b\\" ."}\n'
    )
    time, said = Time(0), []
    data = held(Label.INTERVAL, time)
    feeding = FeedRunner(DataSetFeed(data, open_source(str(file), Reading(lateness=0))), said.append, time.sleep)
    asyncio.run(feeding.run())
    assert facts(data) == {Fact(A, 1000, 60_000), Fact(B, 3000, None)}, said
