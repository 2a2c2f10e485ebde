"""A query over contents by itself: what stands beside the windows, and what is refused."""

from collections import Counter
from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Changes, Counting, EmptyAggregate, Report, Tick
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival, latest
from streamgauge.semantics.arrivals import triples as held
from streamgauge.semantics.definition import expected
from streamgauge.semantics.evaluate import Loaded, Snapshot
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, rows, stream, triples

XSD = "http://www.w3.org/2001/XMLSchema#"
ONE = f'"01"^^<{XSD}integer>'


def asked(sparql: str, static=(), windows=1) -> ContinuousQuery:
    over = tuple(StreamWindow(STREAM, Window(5, 5), f"urn:w{n}" if n else None) for n in range(windows))
    return ContinuousQuery(parse_sparql(sparql), over, static=static)


def answered(sparql: str, text: str = "a p b.", static=(), **how):
    return Snapshot(asked(sparql, static), **how).rows(((Arrival(STREAM, 0, None, triples(text)),),))


@pytest.mark.parametrize("text", ["a p b.", "a p 2."])
def test_static_literals_keep_their_lexical_form(text):
    static = (("<urn:a>", "<urn:q>", ONE),)
    assert answered("SELECT ?v { ?s <urn:p> ?o ; <urn:q> ?v }", text, static) == ((ONE,),)


def test_a_static_literal_beside_another_form_of_its_value_is_a_term_of_its_own():
    static = (("<urn:a>", "<urn:q>", ONE),)
    result = answered("SELECT DISTINCT ?v { ?s ?p ?v FILTER(?p != <urn:x>) }", "a p 1.", static)
    assert Counter(result) == Counter([(ONE,), (f'"1"^^<{XSD}integer>',)])


def test_a_value_that_is_another_each_time_is_refused():
    with pytest.raises(RefusedError, match="RAND"):
        answered("SELECT (RAND() AS ?t) { ?s <urn:p> ?o }")
    with pytest.raises(RefusedError, match="RAND"):
        expected(stream("0: a p b."), asked("SELECT (RAND() AS ?t) { ?s <urn:p> ?o }"), RSPQL, 5, 0)


@pytest.mark.parametrize(
    ("empty", "result"),
    [
        (EmptyAggregate.SPARQL, rows("0 -")),
        (EmptyAggregate.UNBOUND, ((None, None),)),
        (EmptyAggregate.EMPTY_STRING, (('""', '""'),)),
        (EmptyAggregate.NO_ROW, ()),
    ],
)
@pytest.mark.parametrize("filtered", ["", "FILTER(?o > 5 && STR(?o) != '')"])
def test_an_aggregate_over_nothing_gives_what_the_semantics_says(empty, result, filtered):
    sparql = f"SELECT (COUNT(?o) AS ?n) (MAX(?o) AS ?m) {{ ?s <urn:none> ?o {filtered} }}"
    assert answered(sparql, empty_aggregate=empty) == result
    there = sparql.replace("none", "p")
    assert answered(there, "a p 7.", empty_aggregate=empty) == rows("1 7")


@pytest.mark.parametrize(
    ("sparql", "counting"),
    [
        ("SELECT ?s ?o { ?s <urn:p> ?o }", Counting.SET),
        ("SELECT ?s ?o { ?s <urn:p> ?o }", Counting.BAG),
        ("SELECT (SUM(?o) AS ?sum) { ?s <urn:p> ?o }", Counting.SET),
        ("SELECT ?s ?t { ?s <urn:p> ?o BIND(TIMESTAMP(?s, <urn:p>, ?o) AS ?t) }", Counting.SET),
    ],
)
def test_a_store_that_is_filled_up_answers_as_a_new_one(sparql, counting):
    """Contents that grow, lose their first arrival, stay, and hold two forms of one value, with static data beside."""
    arrived = [
        Arrival(STREAM, time, None, triples(text))
        for time, text in enumerate(["a p 1.", "b p 2. a p 1.", "c p 01.", "a p 1. d p 3."])
    ]
    snapshot = Snapshot(asked(sparql, (("<urn:z>", "<urn:p>", ONE),)), counting)
    before = None
    for first, last in ((0, 0), (0, 1), (0, 2), (0, 4), (1, 4), (1, 4), (3, 4)):
        contents = (tuple(arrived[first:last]),)
        before = Loaded(contents, before)
        assert Counter(snapshot.rows(contents, before)) == Counter(snapshot.rows(contents))


def test_every_copy_counts_in_a_bag():
    sparql = "SELECT ?s { ?s <urn:p> ?o }"
    contents = ((Arrival(STREAM, 0, None, triples("a p b.")), Arrival(STREAM, 1, None, triples("a p b. c p d."))),)
    bag = Snapshot(asked(sparql), Counting.BAG).rows(contents)
    assert Counter(bag) == Counter(rows("a ; a ; c"))
    assert Counter(Snapshot(asked(sparql)).rows(contents)) == Counter(rows("a ; c"))
    assert held(contents, Counting.BAG) == Counter({(0, triples("a p b.")[0]): 2, (0, triples("c p d.")[0]): 1})
    assert held(contents).total() == 2


def test_a_copy_that_comes_changes_a_bag_and_not_a_set():
    change = replace(RSPQL, report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
    query = asked("SELECT ?s { ?s <urn:p> ?o }")
    elements = stream("0: a p b. | 1: a p b. | 2: c p d.")

    def instants(semantics):
        return [report.due.instant for report in expected(elements, query, semantics, 4, 0)]

    assert instants(change) == [0, 2]
    assert instants(replace(change, content=Counting.BAG)) == [0, 1, 2]
    assert instants(replace(change, content=Counting.BAG, changes=Changes.ARRIVALS)) == [0, 1, 2]


def test_a_triple_is_as_late_as_its_last_copy():
    arrivals = [
        Arrival(STREAM, time, None, triples(text))
        for time, text in ((3, "a p b."), (5, "a p b. c p d."), (4, "c p d."))
    ]
    assert latest(arrivals) == {triples("a p b.")[0]: 5, triples("c p d.")[0]: 5}


def test_what_ends_is_held_until_then():
    closed = replace(RSPQL, borders=Borders.CLOSED)
    query = asked("SELECT ?s { ?s <urn:p> ?o }")
    for semantics, end, result in ((RSPQL, 4, 0), (RSPQL, 5, 1), (closed, 5, 0), (closed, 6, 1)):
        (report,) = expected(stream(f"1..{end}: a p b."), query, semantics, 5, 0)
        assert (len(report.rows), report.content) == (result, result), (semantics.borders, end)


def test_the_columns_of_an_answer():
    assert Snapshot(asked("ASK { ?s <urn:p> ?o }")).variables == ("ask",)
    assert Snapshot(asked("SELECT ?o ?s { ?s <urn:p> ?o }")).variables == ("o", "s")
    assert Snapshot(asked("CONSTRUCT { ?s <urn:q> ?o } { ?s <urn:p> ?o }")).variables == (
        "subject",
        "predicate",
        "object",
    )


@pytest.mark.parametrize("other", ["c p 7.", "c p 01."])
def test_a_time_is_that_of_the_last_copy(other):
    contents = ((Arrival(STREAM, 3, None, triples(f"a p 1. {other}")), Arrival(STREAM, 5, None, triples("a p 1."))),)
    sparql = "SELECT ?s (timestamp(?s, <urn:p>, ?v) AS ?t) { ?s <urn:p> ?v FILTER(?v >= 1) }"
    assert Counter(Snapshot(asked(sparql)).rows(contents)) == Counter(rows("a 5 ; c 3"))


def test_each_window_has_its_own_times_of_the_same_triple():
    contents = tuple((Arrival(STREAM, time, None, triples("a p 1.")),) for time in (3, 5))
    own = "timestamp(?s, <urn:p>, ?v)"
    sparql = f"SELECT ({own} AS ?t) ?u {{ ?s <urn:p> ?v GRAPH <urn:w1> {{ ?s <urn:p> ?v BIND({own} AS ?u) }} }}"
    assert Snapshot(asked(sparql, windows=2)).rows(contents) == rows("3 5")
