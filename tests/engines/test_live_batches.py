"""`live` given elements in columns says what it says when they come one by one: joined by numbers, or as texts."""

import gc
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.formats.batches import ElementBatch, NumberedTerms
from streamgauge.incremental import SnapshotContents, column_joins, term_ids
from streamgauge.incremental.drivers import frames
from streamgauge.incremental.drivers.window import WindowDriver
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import operator
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import meaningless
from tests.engines.test_live import by_report, said, said_together
from tests.examples import examples
from tests.notation import STREAM
from tests.semantics.draw import asked, semantics, streams, windows

WINDOW = StreamWindow(STREAM, Window(500, 100))
BY_NUMBERS = partial(SnapshotContents, least=0)


def in_columns(numbers: NumberedTerms, elements: list[StreamElement]) -> ElementBatch:
    added = numbers.of([term for element in elements for triple in element.added for term in triple])
    return ElementBatch(
        numbers.terms,
        elements[0].stream,
        np.array([element.time for element in elements], np.int64),
        np.array([element.sequence for element in elements], np.int64),
        np.cumsum([0, *[len(element.added) for element in elements]]),
        added,
    )


class Batches:
    """A session that is pushed elements in columns as far as they go together, in pieces of sizes that come round."""

    def __init__(self, session, sizes, most=5):
        self._session, self._sizes, self._most = session, sizes, most

    def push_all(self, elements):
        numbers, number = NumberedTerms(), 0
        for alike, group in groupby(
            elements, lambda element: element.stream * (not element.removed and element.until is None)
        ):
            waiting = list(group)
            while waiting:
                size = self._sizes[number % len(self._sizes)]
                number += 1
                now, waiting = waiting[:size], waiting[size:]
                if not alike:
                    for element in now:
                        self._session.push(element)
                    continue
                numbers = numbers if len(numbers) < self._most else NumberedTerms()
                self._session.push_batch(in_columns(numbers, now))


def said_in_columns(asked_for, elements, advance, sizes, least=BY_NUMBERS, least_change=0):
    answers: list = [[] for _ in asked_for]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "SnapshotContents", least)
        patch.setattr(column_joins, "COLUMNAR_CHANGE", least_change)
        patch.setattr(term_ids, "SPARE_TERMS", 0)
        session = load("live").start_all(
            [(query, chosen, answer.append) for (query, chosen), answer in zip(asked_for, answers, strict=True)]
        )
        Batches(session, sizes).push_all(elements)
        session.advance(advance)
        session.close()
    return answers


def test_terms_of_batches_are_dropped_when_looks_are_too_small_for_columns(monkeypatch):
    """Batches bring terms by number even where each look joins the few triples of its window one by one."""
    monkeypatch.setattr(term_ids, "SPARE_TERMS", 100)
    query = parse_sparql("SELECT ?s ?o { ?s <urn:v> ?o }")
    over = ContinuousQuery(query, (StreamWindow(STREAM, Window(1000, 1000)),))
    session = load("live").start_all([(over, PROFILES["csparql"], [].append)])
    for begin in range(0, 40_000, 200):
        elements = [
            StreamElement(STREAM, at, at, ((f"<urn:e{at}>", "<urn:v>", f"<urn:o{at % 7}>"),))
            for at in range(begin, begin + 200, 10)
        ]
        session.push_batch(in_columns(NumberedTerms(), elements))
    gc.collect()
    held = [len(item) for item in gc.get_objects() if isinstance(item, term_ids.TermIds)]
    assert held
    assert max(held) < 1000
    session.close()


@pytest.mark.slow
@examples(15, prove=2000)
@given(
    st.data(),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.sampled_from([BY_NUMBERS, SnapshotContents]),
    st.sampled_from([0, 2, 12]),
)
def test_columns_are_answered_as_elements_are(data, sizes, contents, least_change):
    """Changes are joined in columns from the first batch on, or from a later one, and leave them."""
    over, chosen = data.draw(windows()), data.draw(semantics())
    asked_for = [(data.draw(asked(over)), chosen) for _ in range(data.draw(st.integers(1, 2)))]
    elements = data.draw(streams())
    heard = not elements or any(element.stream in {item.stream for item in over} for element in elements)
    if not heard or any(meaningless(query, chosen) or load("live").refuse(query, chosen) for query, _ in asked_for):
        return
    result = said_in_columns(asked_for, elements, 24, sizes, contents, least_change)
    for (query, _), one, other in zip(asked_for, result, said_together(asked_for, elements, 24), strict=True):
        sends = operator(query, chosen)
        assert by_report(one, chosen.grain, sends) == by_report(other, chosen.grain, sends)


QUERY = "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o . ?o <urn:q> ?v FILTER(?v > 3) } GROUP BY ?s"
XSD = "http://www.w3.org/2001/XMLSchema#integer"


@pytest.mark.parametrize("slide", [500, 1000, 2000])
def test_windows_over_many_batches_of_ever_new_terms(slide):
    """Batches that span windows, terms that are forgotten, copies of triples, contents on both sides of the limit."""
    elements = [
        StreamElement(
            STREAM,
            5 * at,
            at,
            (
                (f"<urn:{at % 7}>", "<urn:p>", f"<urn:o{at - at % 2}>"),
                (f"<urn:o{at - at % 2}>", "<urn:q>", f'"{at % 9}"^^<{XSD}>'),
            ),
        )
        for at in range(1200)
    ]
    query = ContinuousQuery(parse_sparql(QUERY), (StreamWindow(STREAM, Window(2000, slide)),))
    chosen = PROFILES["csparql"]
    expected = said(query, chosen, elements, 6000)
    assert len(expected) == 4000 // slide + 1
    for least in (0, 500, 700):
        result = said_in_columns([(query, chosen)], elements, 6000, [150, 37], partial(SnapshotContents, least=least))
        assert by_report(result[0], chosen.grain, None) == by_report(expected, chosen.grain, None)


SAME_PATTERN = (
    "SELECT ?s ?v { ?s <urn:p> ?o . ?o <urn:q> ?v }",
    "SELECT ?v ?s ?w { ?s <urn:p> ?o . ?o <urn:q> ?v BIND(?v + 1 AS ?w) }",
    "SELECT ?s ?v { { ?s <urn:p> ?o . ?o <urn:q> ?v } UNION { ?s <urn:p> ?o . ?o <urn:q> ?v FILTER(?v > 2) } }",
)


@pytest.mark.parametrize("name", ["csparql", "cqels"])
@pytest.mark.parametrize("r2s", CQL)
def test_a_pattern_that_several_queries_have_is_joined_for_each(name, r2s):
    chosen = replace(PROFILES[name], name="drawn", r2s=r2s, r2s_able=frozenset(CQL))
    triples = [
        ((f"<urn:{at % 7}>", "<urn:p>", f"<urn:o{at}>"), (f"<urn:o{at}>", "<urn:q>", f'"{at % 9}"^^<{XSD}>'))
        for at in range(120)
    ]
    elements = [StreamElement(STREAM, 10 * at, at, both) for at, both in enumerate(triples)]
    asked_for = [(ContinuousQuery(parse_sparql(text), (WINDOW,)), chosen) for text in SAME_PATTERN]
    result = said_in_columns(asked_for, elements, 2000, [30, 7])
    for one, (query, _) in zip(result, asked_for, strict=True):
        assert by_report(one, chosen.grain, r2s) == by_report(said(query, chosen, elements, 2000), chosen.grain, r2s)
        assert sum(len(answer.added) + len(answer.removed) for answer in one) > 60


@pytest.mark.parametrize("r2s", CQL)
@pytest.mark.parametrize("first", [1, 7, 60])
def test_the_first_batch_decides_nothing(monkeypatch, r2s, first):
    """Changes are joined in columns once batches brought as much as is held; answers go on from those of before."""
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 40)
    query = ContinuousQuery(parse_sparql("SELECT ?s ?v { ?s <urn:p> ?o ; <urn:q> ?v }"), (WINDOW,))
    chosen = replace(PROFILES["csparql"], name="drawn", r2s=r2s, r2s_able=frozenset(CQL))
    times = [*range(0, 2000, 20), *range(2000, 4000, 4)]
    fed = [
        StreamElement(STREAM, time, at, ((f"<urn:{at}>", "<urn:p>", "<urn:o>"), (f"<urn:{at}>", "<urn:q>", '"1"')))
        for at, time in enumerate(times)
    ]
    answers: list = []
    driver = WindowDriver([(query, answers.append)], chosen)
    Batches(driver, [first, 10, 15]).push_all([element for element in fed if element.time < 2000])
    assert driver._pool.columns is None
    Batches(driver, [50]).push_all([element for element in fed if element.time >= 2000])
    assert driver._pool.columns is not None
    driver.advance(4000)
    assert by_report(answers, chosen.grain, r2s) == by_report(said(query, chosen, fed, 4000), chosen.grain, r2s)
