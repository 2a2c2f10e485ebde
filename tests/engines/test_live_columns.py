"""Windows that slide are joined pane by pane, or triple by triple (`incremental/column_joins`)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.incremental import column_joins, snapshot, span_joins, spans, term_ids
from streamgauge.incremental.drivers import frames
from streamgauge.incremental.drivers.window import WindowDriver
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, Borders, Counting
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CSPARQL
from tests.engines.test_live import agree
from tests.examples import examples
from tests.notation import STREAM

QUERIES = (
    "SELECT ?o ?v { ?o <urn:p> ?r . ?r <urn:v> ?v FILTER(?v > 3) }",
    "SELECT ?v { ?o <urn:p> ?r . ?o <urn:q> ?s . ?r <urn:v> ?v }",
    "SELECT ?s (COUNT(*) AS ?n) { ?o <urn:q> ?s . ?o <urn:p> ?r } GROUP BY ?s",
    "SELECT * { ?o <urn:p> ?r . ?o <urn:q> ?s OPTIONAL { ?r <urn:v> ?v . ?r <urn:w> ?w } }",
    "SELECT * { ?a <urn:q> ?s . ?b <urn:q> ?s }",
    "SELECT * { { ?o <urn:p> ?r . ?r <urn:v> ?v } UNION { ?o <urn:p> ?r . ?r <urn:v> ?v } }",
)
XSD = "http://www.w3.org/2001/XMLSchema#integer"


def observed(number: int, result: int, place: int, value: int) -> tuple[tuple[str, str, str], ...]:
    """An observation: where, its result, which has a value."""
    me, res = f"<urn:o{number}>", f"<urn:r{result}>"
    where, number_of = f"<urn:s{place}>", f'"{value}"^^<{XSD}>'
    return (me, "<urn:q>", where), (me, "<urn:p>", res), (res, "<urn:v>", number_of), (res, "<urn:w>", where)


@st.composite
def elements(draw: st.DrawFn) -> list[StreamElement]:
    """Observations, some of them of a result (or by a name) that another has too, parts of some in a later element."""
    made, time, late = [], 0, ()
    for number in range(draw(st.integers(1, 14))):
        time += draw(st.integers(0, 3))
        old = draw(st.integers(0, 9)) == 0
        me, result = (draw(st.integers(0, number)) if old else number for _ in range(2))
        triples = observed(me, result, draw(st.integers(0, 2)), draw(st.integers(0, 6)))
        cut = draw(st.sampled_from([4, 4, 4, 4, 2]))
        until = time + draw(st.integers(1, 6)) if draw(st.integers(0, 15)) == 0 else None
        made.append(StreamElement(STREAM, time, number, (*late, *triples[:cut]), (), until))
        late = triples[cut:]
    return made


@pytest.mark.slow
@examples(60, prove=3000)
@given(st.data())
def test_columns_say_what_the_definition_says(data):
    """Windows over four looks and more, of sizes that the slide divides or not, all borders and R2S operators.

    Contents are looked at whole too, by terms or by their numbers. Changes of few triples leave columns, joins are made
    in parts, spans of a key found by sorting, terms forgotten.
    """
    window = Window(data.draw(st.integers(8, 12)), data.draw(st.integers(1, 2)))
    query = ContinuousQuery(parse_sparql(data.draw(st.sampled_from(QUERIES))), (StreamWindow(STREAM, window),))
    chosen = replace(
        CSPARQL,
        name="drawn",
        r2s=data.draw(st.sampled_from(CQL)),
        r2s_able=frozenset(CQL),
        borders=data.draw(st.sampled_from(list(Borders))),
        partial_head=data.draw(st.booleans()),
        answers=data.draw(st.sampled_from([Counting.SET, Counting.BAG])),
        t0=data.draw(st.integers(0, 3)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_joins, "COLUMNAR_CHANGE", data.draw(st.sampled_from([0, 0, 1, 2, 6])))
        patch.setattr(span_joins, "ROWS_TOGETHER", data.draw(st.sampled_from([1, 4, 1000])))
        patch.setattr(spans, "FEW_ROWS", data.draw(st.sampled_from([1, 2, 32])))
        patch.setattr(spans, "INITIAL_CAPACITY", 1)
        patch.setattr(term_ids, "SPARE_TERMS", 0)
        patch.setattr(frames, "WHOLE_LOOKS", data.draw(st.sampled_from([3, 3, 12])))
        patch.setattr(
            snapshot.SnapshotContents.__init__, "__defaults__", (False, data.draw(st.sampled_from([0, 2000])), None)
        )
        agree(query, chosen, data.draw(elements()), 45)


def at(*times: int) -> list[StreamElement]:
    return [StreamElement(STREAM, time, n, observed(n, n, n, 5)) for n, time in enumerate(times)]


def driven(text: str, elements: list[StreamElement], size: int = 5000) -> tuple[WindowDriver, list]:
    """A driver that was pushed elements, and its answers."""
    query, answers = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, 1000)),)), []
    driver = WindowDriver([(query, answers.append)], CSPARQL)
    for element in elements:
        driver.push(element)
    return driver, answers


def test_small_changes_leave_the_columns(monkeypatch):
    """As soon as small changes have cost as much more as is held; rows that were given already are no change."""
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 16)
    dense = at(*range(0, 6000, 250))
    driver, _ = driven(QUERIES[1], dense)
    assert driver._pool._trace is not None
    sparse = [replace(item, time=6000 + 500 * n, sequence=100 + n) for n, item in enumerate(at(*range(40)))]
    driver, answers = driven(QUERIES[1], dense + sparse)
    assert driver._pool._trace is None
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(5000, 1000)),))
    agree(query, CSPARQL, dense + sparse, 40_000)
    assert answers


def test_triples_that_end_leave_the_columns(monkeypatch):
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 4)
    ends = StreamElement(STREAM, 6100, 99, observed(99, 99, 1, 1), (), 6500)
    driver, _ = driven(QUERIES[1], [*at(*range(0, 6000, 250)), ends])
    assert driver._pool._trace is not None
    driver.advance(7000)
    assert driver._pool._trace is None


def test_one_pattern_alone_is_followed_from_the_start():
    driver, _ = driven("SELECT * { ?o <urn:q> ?s }", at(*range(0, 6000, 2)))
    assert driver._pool._trace is None


def test_several_queries_share_columns(monkeypatch):
    """Two queries over one window, of which one at least has joins; patterns that are all alone are followed."""
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 8)
    window = (StreamWindow(STREAM, Window(5000, 1000)),)
    alone = "SELECT * { ?o <urn:q> ?s }"
    for texts in (QUERIES[:2], (QUERIES[0], alone), (alone, alone)):
        answers: list[list] = [[] for _ in texts]
        asked = [ContinuousQuery(parse_sparql(text), window) for text in texts]
        session = load("live").start_all(
            [(query, CSPARQL, answer.append) for query, answer in zip(asked, answers, strict=True)]
        )
        for item in at(*range(0, 12_000, 250)):
            session.push(item)
        session.advance(12_000)
        assert (session._pool._trace is not None) is (QUERIES[0] in texts)
        assert [sum(len(item.added) for item in answer) for answer in answers] == [8 * 20, 8 * 20]
