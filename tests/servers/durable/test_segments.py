"""Segments of a state: items come back as they were, in batches where they can; their extent is that of each item."""

import random
from pathlib import Path

import numpy as np
import pytest

from streamgauge.formats.batches import ElementBatch
from streamgauge.formats.lines import Advance
from streamgauge.model.element import StreamElement
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile
from streamgauge.servers.durable.journal import Change
from streamgauge.servers.durable.segments import ItemColumns, JournalItem, OpenSegment, SegmentExtent, extent_of
from streamgauge.servers.durable.state import SessionState

STREAMS = ("urn:a", "urn:b")
QUERY = "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:a> [RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"


def kept_by_a_query(folder: Path) -> SessionState:
    """A state whose query answers nothing unless it is told, so that all is kept."""
    state = SessionState(folder)
    state.follow("q", parse(QUERY), profile("rspql"))
    return state


def one_by_one(items):
    """The items as a state gives them, none of them in batches."""
    for number, item in items:
        batch = isinstance(item, ElementBatch)
        yield from enumerate(((item.stream, one) for one in item.elements()), number) if batch else [(number, item)]


def drawn(draw: random.Random, begin: int, count: int, *, plain: bool) -> list[JournalItem]:
    """Items of two streams, numbered on; ``plain`` ones are elements of one stream."""
    items: list[JournalItem] = []
    for number in range(begin, begin + count):
        stream = STREAMS[0] if plain else draw.choice(STREAMS)
        time = draw.choice((0, -(2**40), 1_772_352_000_000)) + draw.randrange(1000)
        triples = [("<urn:s>", f"<urn:p{draw.randrange(3)}>", f'"ü{draw.randrange(500)}"') for _ in range(3)]
        added, removed = tuple(triples[: draw.randrange(3)]), ()
        until = None if plain or draw.random() < 0.8 else time + 1
        if not plain and draw.random() < 0.1:
            removed = tuple(triples[2:])
        element = StreamElement(stream, time, number, added, removed, until)
        items.append((stream, Advance(time) if not plain and draw.random() < 0.2 else element))
    return items


@pytest.mark.parametrize("seed", range(8))
def test_items_come_back_as_they_were_written(tmp_path, seed):
    draw, items = random.Random(seed), list[JournalItem]()
    state = kept_by_a_query(tmp_path)
    for _ in range(draw.randrange(1, 12)):
        together = drawn(draw, len(items), draw.choice((1, 3, 100, 5000)), plain=draw.random() < 0.5)
        state.write(Change(), ItemColumns.of(together), {})
        items += together
    state.close()
    state = SessionState(tmp_path)
    assert list(one_by_one(state.history())) == list(enumerate(items))
    assert (state.next, state.kept_items) == (len(items), len(items))
    state.close()


def test_elements_of_one_stream_that_follow_each_other_come_in_one_batch(tmp_path):
    state = kept_by_a_query(tmp_path)
    for begin in (0, 100, 200):
        state.write(Change(), ItemColumns.of(drawn(random.Random(begin), begin, 100, plain=True)), {})
    ((number, batch),) = state.history()
    assert isinstance(batch, ElementBatch)
    assert (number, len(batch), batch.sequences.tolist()) == (0, 300, [*range(300)])
    assert len(set(batch.terms)) == len(batch.terms)
    state.close()


class GrowingTerms(list):
    """Terms to which the thread of a reader adds while another one writes."""

    def __len__(self):
        self.append(f"<urn:later{super().__len__()}>")
        return super().__len__()


@pytest.mark.parametrize("lists", [1, 2])
def test_terms_may_be_added_while_a_segment_is_put_together(lists):
    terms = [GrowingTerms(["<urn:s>", "<urn:unused>", "<urn:p>"]) for _ in range(lists)]
    segment = OpenSegment(7)
    for number in range(4):
        own, ids = terms[number % lists], np.array([0, 2, 0], np.int32)
        times, borders = np.array([number]), np.array([0, 1])
        segment.extend_batch(ElementBatch(own, "urn:a", times, times, borders, ids))
        segment.append("urn:a", Advance(number))
    columns = segment.columns
    assert (columns.streams, columns.terms) == (["urn:a"], ["<urn:s>", "<urn:p>"])
    assert columns.ids.tolist() == [0, 1, 0] * 4
    assert columns.counts.tolist() == [1, -1] * 4


@pytest.mark.parametrize("seed", range(20))
def test_the_extent_of_columns_is_that_of_their_items(seed):
    draw = random.Random(seed)
    items = drawn(draw, 7, draw.choice((1, 30)), plain=False)
    greatest = draw.choice((None, 0, 500))
    assert extent_of(7, ItemColumns.of(items), greatest) == by_the_letter(7, items, greatest)


def by_the_letter(number: int, items: list[JournalItem], greatest: int | None) -> SegmentExtent:
    """The extent, item by item."""
    extent = SegmentExtent(number, number + len(items))
    for stream, item in items:
        timely = greatest is None or item.time >= greatest
        greatest = item.time if greatest is None else max(greatest, item.time)
        if isinstance(item, Advance):
            extent.advances[stream] = max(item.time, extent.advances.get(stream, item.time))
            greatest = max(greatest, item.time + 1)
            continue
        extent.times[stream] = max(item.time, extent.times.get(stream, item.time))
        if item.added:
            extent.latest = item.time if extent.latest is None else max(extent.latest, item.time)
            extent.timely = item.time if timely else extent.timely
            extent.triples[stream] = extent.triples.get(stream, 0) + timely * len(item.added)
    extent.greatest = greatest
    return extent


def test_what_no_window_can_hold_is_dropped_but_for_its_times(tmp_path):
    state = kept_by_a_query(tmp_path)
    triple = ("<urn:s>", "<urn:p>", "<urn:o>")
    for number in range(200):
        item = ("urn:a", StreamElement("urn:a", 100 * number, number, (triple,)))
        state.write(Change(), ItemColumns.of([item]), {"q": number})
    state.close()
    kept = list(one_by_one(SessionState(tmp_path).history()))
    (_, (_, first)), *rest = kept
    assert isinstance(first, StreamElement)
    assert first.added == ()
    assert all(item.added for _, (_, item) in rest)
    assert 20 <= len(rest) <= 60
    assert first.time == rest[0][1][1].time - 100
