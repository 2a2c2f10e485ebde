"""Content change over arrivals in columns: the same reports as element by element, whatever the batches."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.formats.batches import NumberedTerms
from streamgauge.incremental import column_joins, crossovers, span_joins, spans, term_ids
from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.drivers.window import WindowDriver
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders, Grain, Origin, Report, Scope, Semantics, Tick
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import meaningless
from tests.engines.test_live import by_report, said
from tests.engines.test_live_batches import Batches, in_columns
from tests.examples import examples
from tests.notation import STREAM

XSD = "http://www.w3.org/2001/XMLSchema#integer"
QUERIES = [
    "SELECT * { ?s <urn:p> ?o }",
    "SELECT ?s { ?s <urn:p> ?o }",
    "SELECT ?o ?v { ?s <urn:p> ?o ; <urn:q> ?v }",
    "SELECT ?s ?v { ?s <urn:p> ?o . ?o <urn:q> ?v }",
    "SELECT ?a ?b { ?a <urn:p> ?o . ?b <urn:p> ?o }",
    "SELECT ?v ?w { ?a <urn:q> ?v . ?a <urn:q> ?w FILTER(?v < ?w) }",
    "SELECT ?v { ?a <urn:q> ?v FILTER(?v > 1 && ?v < 4) }",
    "SELECT ?s ?p { ?s ?p ?o . ?o ?p ?s }",
    "SELECT ?s { ?s <urn:p> ?s ; ?p ?o }",
    "SELECT ?s ?v { ?s <urn:p> <urn:a> ; <urn:q> ?v . ?t <urn:p> ?s ; <urn:q> ?w FILTER(?v != ?w) }",
    "SELECT ?s ?o { <urn:a> <urn:p> ?s . ?s <urn:p> ?o . ?o <urn:p> <urn:a> }",
    "SELECT ?p { <urn:a> ?p ?o . ?o ?p ?v }",
    "SELECT DISTINCT ?s { ?s <urn:p> ?o }",
    "SELECT ?s ?n { ?s <urn:p> ?o BIND(STRLEN(STR(?o)) AS ?n) }",
    "SELECT ?s (COUNT(*) AS ?n) (AVG(?v) AS ?m) { ?s <urn:p> ?o ; <urn:q> ?v } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }",
    "SELECT * { ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?v } }",
    "SELECT ?s { ?s <urn:p> ?o FILTER NOT EXISTS { ?o <urn:q> ?v } }",
    "SELECT ?s { { ?s <urn:p> ?o } UNION { ?s <urn:q> ?v } }",
    "SELECT ?s ?v { ?s <urn:q> ?v } ORDER BY ?v ?s LIMIT 2",
    "ASK { ?s <urn:p> ?o . ?o <urn:q> ?v }",
]
CHANGE = Semantics(
    "change",
    report=frozenset({Report.CONTENT_CHANGE}),
    r2s=R2S.ISTREAM,
    notify_empty=False,
    scope=PROFILES["cqels-1.x"].scope,
    partial_head=True,
)

resources = st.sampled_from(["<urn:a>", "<urn:b>", "<urn:c>"])
numbers = st.integers(1, 4).map(lambda value: f'"{value}"^^<{XSD}>')
triples = st.one_of(
    st.tuples(resources, st.just("<urn:p>"), resources),
    st.tuples(resources, st.just("<urn:q>"), numbers),
)

LEFT = "SELECT * { ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?v } }"


@st.composite
def streams(draw):
    """Elements whose times stand still, go on and jump, and whose triples come again."""
    time, result = draw(st.integers(0, 3)), []
    for number in range(draw(st.integers(1, 25))):
        time += draw(st.sampled_from([0, 0, 1, 1, 2, 9]))
        added = draw(st.lists(triples, max_size=4, unique=True))
        until = time + draw(st.integers(0, 5)) if draw(st.integers(0, 40)) == 0 else None
        result.append(StreamElement(STREAM, time, number, tuple(added), until=until))
    return result


@st.composite
def changes(draw):
    """Ticks of triples, elements and times, scopes that range or move by slides, changes that come, go, or both."""
    return replace(
        CHANGE,
        tick=draw(st.sampled_from([Tick.TUPLE, Tick.ELEMENT, Tick.BATCH])),
        scope=draw(st.sampled_from(list(Scope))),
        r2s=draw(st.sampled_from([R2S.ISTREAM, R2S.ISTREAM, R2S.DSTREAM])),
        r2s_able=frozenset({R2S.ISTREAM, R2S.DSTREAM}),
        partial_head=draw(st.booleans()),
        report=CHANGE.report | frozenset(draw(st.sets(st.just(Report.NON_EMPTY)))),
        borders=draw(st.sampled_from(list(Borders))),
        grain=draw(st.sampled_from(list(Grain))),
        origin=draw(st.sampled_from([Origin.FIXED, Origin.FIRST])),
        t0=draw(st.integers(0, 4)),
        since=draw(st.sampled_from([None, 6])),
    )


def said_in_columns(
    query,
    semantics,
    elements,
    sizes,
    least=0,
    together=crossovers.ROWS_TOGETHER,
    rounds=crossovers.FEW_ROWS,
    many=crossovers.WASTED_ROWS,
):
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_joins, "COLUMNAR_CHANGE", least)
        patch.setattr(span_joins, "WASTED_ROWS", many)
        patch.setattr(span_joins, "COLUMNAR_CHANGE", 0)
        patch.setattr(span_joins, "ROWS_TOGETHER", together)
        patch.setattr(spans, "FEW_ROWS", rounds)
        patch.setattr(spans, "INITIAL_CAPACITY", 1)
        patch.setattr(term_ids, "SPARE_TERMS", 0)
        session = load("live").start(query, semantics, answers.append)
        Batches(session, sizes).push_all(elements)
        session.advance(99)
        session.close()
    return answers


@pytest.mark.slow
@examples(100, prove=10_000)
@given(
    st.sampled_from(QUERIES),
    st.tuples(st.integers(1, 8), st.integers(1, 8)).map(lambda sizes: Window(max(sizes), min(sizes))),
    changes(),
    streams(),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.sampled_from([0, 1, 4]),
    st.sampled_from([1, 4, 1000]),
    st.sampled_from([1, 2, 32]),
    st.sampled_from([1, 2, 100]),
)
def test_columns_are_answered_as_elements_are(text, window, semantics, elements, sizes, least, together, rounds, many):
    """Also where columns are left (small batches, many rows), and where rows are made in parts or found by sorting."""
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, window),))
    if meaningless(query, semantics) or load("live").refuse(query, semantics):
        return
    expected = said(query, semantics, elements, 99)
    result = said_in_columns(query, semantics, elements, sizes, least, together, rounds, many)
    assert by_report(result, semantics.grain, semantics.r2s) == by_report(expected, semantics.grain, semantics.r2s)


def test_a_tick_without_triples_sees_the_newest_of_the_batch_before():
    """The batch before brought triples of several times, of which the last is still in the window."""
    semantics = replace(CHANGE, report=CHANGE.report | {Report.NON_EMPTY}, tick=Tick.ELEMENT, r2s=R2S.ISTREAM)
    query = ContinuousQuery(parse_sparql(LEFT), (StreamWindow(STREAM, Window(2, 1)),))
    one, two = (("<urn:a>", "<urn:p>", "<urn:a>"),), (("<urn:a>", "<urn:q>", "<urn:b>"),)
    elements = [
        StreamElement(STREAM, time, number, triples)
        for number, (time, triples) in enumerate([(0, ()), (2, one), (2, two), (3, one), (4, ())])
    ]
    result, expected = said_in_columns(query, semantics, elements, [2]), said(query, semantics, elements, 99)
    assert by_report(result, semantics.grain, R2S.ISTREAM) == by_report(expected, semantics.grain, R2S.ISTREAM)
    assert len(expected) == 3


def test_the_first_batch_decides_nothing(monkeypatch):
    """Columns begin with a later batch too, once batches brought as much as is held, and come back."""
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 40)
    query, answers = ContinuousQuery(parse_sparql(QUERIES[0]), (StreamWindow(STREAM, Window(50, 50)),)), []
    driver, fed = WindowDriver([(query, answers.append)], CHANGE), pairs(400)
    columnar = []
    for begin, end, size in ((0, 5, 1), (5, 105, 20), (105, 205, 1), (205, 400, 30)):
        Batches(driver, [size]).push_all(fed[begin:end])
        columnar.append(driver._pool.columns is not None)
    driver.advance(999)
    assert columnar == [False, True, False, True]
    assert by_report(answers, CHANGE.grain, R2S.ISTREAM) == by_report(
        said(query, CHANGE, fed, 999), CHANGE.grain, R2S.ISTREAM
    )


def test_a_named_window_is_answered_in_columns(monkeypatch):
    """Patterns over the default graph beside it find nothing."""
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 4)
    window = StreamWindow(STREAM, Window(5, 5), "urn:w")
    for text, columnar in (("GRAPH <urn:w> { ?s <urn:p> ?o }", True), ("?s <urn:p> ?o", False)):
        query = ContinuousQuery(parse_sparql(f"SELECT ?s {{ {text} }}"), (window,))
        answers: list = []
        driver = WindowDriver([(query, answers.append)], CHANGE)
        Batches(driver, [20]).push_all(pairs(60))
        assert (driver._pool.columns is not None) is columnar
        assert [answer.added for answer in answers] == [((f"<urn:s{at}>",),) for at in range(60) if columnar]


def test_patterns_that_are_not_connected_are_followed(monkeypatch):
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 4)
    text = "SELECT ?s { ?s <urn:p> ?o . <urn:s0> <urn:p> <urn:o> }"
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(5, 5)),))
    driver = WindowDriver([(query, lambda _answer: None)], CHANGE)
    Batches(driver, [20]).push_all(pairs(60))
    assert driver._pool.columns is None
    result = said_in_columns(query, CHANGE, pairs(30), [4])
    expected = said(query, CHANGE, pairs(30), 99)
    assert by_report(result, Grain.REPORT, R2S.ISTREAM) == by_report(expected, Grain.REPORT, R2S.ISTREAM)


def pairs(count, first=0):
    """Elements of two triples each that share a subject of their own."""
    return [
        StreamElement(
            STREAM,
            first + at,
            first + at,
            (
                (f"<urn:s{first + at}>", "<urn:p>", "<urn:o>"),
                (f"<urn:s{first + at}>", "<urn:q>", f'"{at % 5}"^^<{XSD}>'),
            ),
        )
        for at in range(count)
    ]


def test_terms_that_no_window_holds_are_forgotten():
    """Also behind a triple that comes again and again, whose span goes on from the beginning."""
    always = (("<urn:k>", "<urn:p>", "<urn:o>"),)
    query = ContinuousQuery(
        parse_sparql("SELECT ?s ?v { ?s <urn:p> ?o ; <urn:q> ?v }"), (StreamWindow(STREAM, Window(50, 50)),)
    )
    answers, most = [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_joins, "COLUMNAR_CHANGE", 0)
        patch.setattr(term_ids, "SPARE_TERMS", 100)
        session = load("live").start(query, CHANGE, answers.append)
        for first in range(0, 12_000, 100):
            coming = pairs(100, first)
            coming[::9] = [replace(item, added=item.added + always) for item in coming[::9]]
            session.push_batch(in_columns(NumberedTerms(), coming))
            (spans_of, *_) = session._pool.columns._spans.values()
            most = max(most, len(session._pool._terms), len(spans_of._births))
        session.close()
    assert [answer.added[0][0] for answer in answers] == [f"<urn:s{at}>" for at in range(12_000)]
    assert most < 3000


def test_small_batches_leave_the_columns_when_they_cost_more():
    query = ContinuousQuery(
        parse_sparql("SELECT ?s ?v { ?s <urn:p> ?o ; <urn:q> ?v }"), (StreamWindow(STREAM, Window(90, 90)),)
    )
    answers = []
    session = load("live").start(query, CHANGE, answers.append)
    elements = pairs(400)
    session.push_batch(in_columns(NumberedTerms(), elements[:300]))
    assert session._pool.columns is not None
    for element in elements[300:]:
        session.push(element)
    assert session._pool.columns is None
    session.close()
    assert [(answer.instant, answer.added[0][0]) for answer in answers] == [(at, f"<urn:s{at}>") for at in range(400)]


def test_a_join_that_is_too_large_for_one_triple_is_refused(monkeypatch):
    monkeypatch.setattr(column_joins, "COLUMNAR_CHANGE", 0)
    monkeypatch.setattr(span_joins, "LARGEST", 20)
    monkeypatch.setattr(span_joins, "ROWS_TOGETHER", 20)
    query = ContinuousQuery(
        parse_sparql("SELECT ?a ?b ?c { ?a <urn:p> ?o . ?b <urn:p> ?o . ?c <urn:p> ?o }"),
        (StreamWindow(STREAM, Window(500, 500)),),
    )
    session = load("live").start(query, CHANGE, lambda _answer: None)
    with pytest.raises(TooMuchError, match="rows at once"):
        session.push_batch(in_columns(NumberedTerms(), pairs(60)))


def test_spans_of_one_key_are_found_by_sorting_when_they_are_many():
    """A hub: each pair of triples that share an object, once."""
    query = ContinuousQuery(
        parse_sparql("SELECT ?a ?b { ?a <urn:p> ?o . ?b <urn:p> ?o }"), (StreamWindow(STREAM, Window(500, 500)),)
    )
    result = said_in_columns(query, CHANGE, pairs(100), [30])
    rows = [row for item in result for row in item.added]
    assert len(rows) == len(set(rows)) == 100 * 100
    assert all(one.instant <= other.instant for one, other in pairwise(result))


def value(number):
    return f'"{number}"^^<{XSD}>'


def test_a_solution_that_ends_by_several_triples_at_once_ends_once():
    """Two rows begin where one ends, all of them alike: one is new."""
    query = ContinuousQuery(
        parse_sparql("SELECT ?v { ?s <urn:p> ?o ; <urn:q> ?v }"), (StreamWindow(STREAM, Window(5, 5)),)
    )
    elements = [
        StreamElement(STREAM, 0, 0, (("<urn:a>", "<urn:p>", "<urn:x>"), ("<urn:a>", "<urn:q>", value(1)))),
        StreamElement(STREAM, 4, 1, (("<urn:b>", "<urn:p>", "<urn:x>"), ("<urn:b>", "<urn:p>", "<urn:y>"))),
        StreamElement(STREAM, 9, 2, (("<urn:b>", "<urn:q>", value(1)),)),
    ]
    result = said_in_columns(query, replace(CHANGE, borders=Borders.CLOSED), elements, [3])
    assert [(answer.instant, answer.added) for answer in result] == [(0, ((value(1),),)), (9, ((value(1),),))]


def test_the_oldest_arrivals_leave_the_columns_too():
    query = ContinuousQuery(
        parse_sparql("SELECT ?v { ?s <urn:p> ?o ; <urn:q> ?v }"), (StreamWindow(STREAM, Window(5, 5)),)
    )
    elements = [
        StreamElement(STREAM, 0, 0, (("<urn:a>", "<urn:p>", "<urn:x>"),)),
        StreamElement(STREAM, 5, 1, (("<urn:b>", "<urn:p>", "<urn:x>"),)),
        StreamElement(STREAM, 5, 2, (("<urn:a>", "<urn:q>", value(1)),), until=9),
    ]
    result = said_in_columns(query, replace(CHANGE, borders=Borders.CLOSED), elements, [2])
    assert [(answer.instant, answer.added) for answer in result] == [(5, ((value(1),),))]


def test_a_join_whose_rows_conditions_leave_out_leaves_the_columns():
    """The batch comes one by one."""
    text = "SELECT ?a ?b { ?a <urn:p> ?o ; <urn:q> ?v . ?b <urn:p> ?o ; <urn:q> ?w FILTER(?v > ?w + 3) }"
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(500, 500)),))
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_joins, "COLUMNAR_CHANGE", 0)
        patch.setattr(span_joins, "WASTED_ROWS", 4)
        patch.setattr(span_joins, "COLUMNAR_CHANGE", 0)
        patch.setattr(span_joins, "ROWS_TOGETHER", 50)
        session = load("live").start(query, CHANGE, answers.append)
        session.push_batch(in_columns(NumberedTerms(), pairs(60)))
        assert session._pool.columns is None
        session.close()
    assert by_report(answers, Grain.REPORT, R2S.ISTREAM) == by_report(
        said(query, CHANGE, pairs(60), 99), Grain.REPORT, R2S.ISTREAM
    )


def test_rows_that_left_at_an_instant_are_not_new_where_columns_are_left_at_it():
    """An element that ends comes between two others of one time, of which the second has a row again."""
    query = ContinuousQuery(parse_sparql(QUERIES[0]), (StreamWindow(STREAM, Window(1, 1)),))
    a, b = ("<urn:a>", "<urn:p>", "<urn:a>"), ("<urn:b>", "<urn:p>", "<urn:a>")
    came = [(1, (a, b), None), (2, (a,), None), (2, (a,), 3), (2, (b,), None)]
    elements = [StreamElement(STREAM, time, at, added, (), until) for at, (time, added, until) in enumerate(came)]
    semantics = replace(CHANGE, tick=Tick.BATCH, grain=Grain.ROW, borders=Borders.OPEN_CLOSED, scope=Scope.SLIDES)
    result = said_in_columns(query, semantics, elements, [1])
    assert [(answer.instant, answer.added) for answer in result] == [
        (1, ((term, "<urn:a>"),)) for term in ("<urn:a>", "<urn:b>")
    ]


def test_a_row_that_left_once_and_came_twice_is_new_once_in_columns_too():
    """Three batches of one time: the first evicts the row, the second changes nothing, the third has it twice."""
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow(STREAM, Window(1, 1)),))
    a, b = ("<urn:a>", "<urn:p>", "<urn:a>"), ("<urn:b>", "<urn:p>", "<urn:a>")
    came = [(1, (a,)), (2, (b,)), (2, (("<urn:c>", "<urn:p>", "<urn:a>"),)), (2, (a, (*a[:2], "<urn:b>")))]
    elements = [StreamElement(STREAM, time, number, added) for number, (time, added) in enumerate(came)]
    semantics = replace(CHANGE, tick=Tick.BATCH, grain=Grain.ROW, borders=Borders.OPEN_CLOSED, scope=Scope.SLIDES)
    one_by_one = said(query, semantics, elements, 99)
    assert [answer.added for answer in one_by_one] == [((f"<urn:{name}>",),) for name in "abca"]
    result = said_in_columns(query, semantics, elements, [1])
    assert [(answer.instant, answer.added) for answer in result] == [
        (answer.instant, answer.added) for answer in one_by_one
    ]


def test_a_row_that_went_without_a_report_is_new_when_it_comes_again():
    """Nothing is held at the first element of 2 ms, which is therefore no report; then columns begin."""
    a, b = ("<urn:a>", "<urn:p>", "<urn:a>"), ("<urn:a>", "<urn:q>", value(1))
    came = enumerate([(1, (a,)), (2, ()), (2, (b,)), (2, (a,))])
    elements = [StreamElement(STREAM, time, number, added) for number, (time, added) in came]
    semantics = replace(CHANGE, tick=Tick.ELEMENT, report=CHANGE.report | {Report.NON_EMPTY}, scope=Scope.SLIDES)
    for text in (QUERIES[1], "SELECT DISTINCT ?s { ?s <urn:p> ?o }"):
        query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(1, 1)),))
        result = said_in_columns(query, semantics, elements, [1])
        assert [(answer.instant, answer.added) for answer in result] == [(1, (("<urn:a>",),)), (2, (("<urn:a>",),))]
