"""Datasets of contents that only grow are extended, whatever else asks for them; others are built anew."""

import gc
from weakref import ref

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting, EmptyAggregate
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.evaluate import Loaded, Snapshot
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from tests.notation import STREAM, rows, triples

SET, BAG = (Counting.SET, False, None), (Counting.BAG, False, None)


def arrivals(*texts: str) -> tuple[Arrival, ...]:
    return tuple(Arrival(STREAM, at, None, tuple(triples(text))) for at, text in enumerate(texts))


class Making:
    """Counts what is made anew, and what earlier datasets are extended by."""

    def __init__(self) -> None:
        self.made: list[object] = []
        self.grown: list[object] = []

    def make(self, contents: object) -> Dataset:
        self.made.append(contents)
        return Dataset(IndexedGraph(()), {})

    def grow(self, _dataset: Dataset, come: object) -> None:
        self.grown.append(come)


def test_a_content_that_only_grows_extends_the_dataset_of_the_one_before():
    a, b, c = arrivals("a p 1", "b p 1", "c p 1")
    first, second, third = ((a,), ()), ((a, b), (c,)), ((b,), (c,))
    making = Making()
    one = Loaded(first)
    dataset = one.dataset(SET, making.make, making.grow)
    assert one.dataset(SET, making.make, making.grow) is dataset
    two = Loaded(second, one)
    assert two.dataset(SET, making.make, making.grow) is dataset
    assert (making.made, making.grown) == ([first], [((b,), (c,))])
    # Of another kind none was made; and one that cannot be extended is made.
    assert two.dataset(BAG, making.make, making.grow) is not dataset
    assert (making.made, len(making.grown)) == ([first, second], 1)
    assert Loaded(second, two).dataset(SET, making.make, None) is not dataset
    assert making.made == [first, second, second]
    # The earlier content, whose dataset was taken over, is asked again.
    assert one.dataset(SET, making.make, making.grow) is not dataset
    assert making.made[3:] == [first]
    # Without a, which was evicted.
    Loaded(third, two).dataset(SET, making.make, making.grow)
    assert (making.made[4:], len(making.grown)) == ([third], 1)


def test_earlier_contents_are_not_kept():
    a, b = arrivals("a p 1", "b p 1")
    one = Loaded(((a,),))
    kept = ref(one)
    two = Loaded(((a, b),), one)
    three = Loaded(((a, b),), two)
    del one
    gc.collect()
    assert kept() is None
    assert three.dataset(SET, Making().make, None) is not None


def snapshot(text: str, counting: Counting = Counting.SET, empty: EmptyAggregate = EmptyAggregate.SPARQL, **more):
    form = parse_sparql(f"PREFIX : <urn:> {text}")
    windows = tuple(StreamWindow(STREAM, Window(5, 5), name) for name in more.get("names", (None,)))
    return Snapshot(ContinuousQuery(form, windows, None, tuple(triples(more.get("static", "")))), counting, empty)


@pytest.mark.parametrize(
    ("empty", "over_nothing"),
    [
        (EmptyAggregate.SPARQL, [("0",)]),
        (EmptyAggregate.UNBOUND, [(None,)]),
        (EmptyAggregate.EMPTY_STRING, [("",)]),
        (EmptyAggregate.NO_ROW, []),
    ],
)
def test_an_aggregate_over_nothing(empty, over_nothing):
    counted = snapshot("SELECT (COUNT(*) AS ?n) { ?s :p ?v }", empty=empty)

    def said(found):
        return [tuple(cell and cell.split('"')[1] for cell in row) for row in found]

    assert said(counted.rows((arrivals("a q 1"),))) == over_nothing
    assert said(counted.rows((arrivals("a p 1. b p 2"),))) == [("2",)]
    assert counted.over_nothing is None or said(counted.over_nothing) == over_nothing
    assert (counted.over_nothing is None) is (empty is EmptyAggregate.SPARQL)
    grouped = snapshot("SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s", empty=empty)
    assert grouped.rows((arrivals("a q 1"),)) == ()
    plain = snapshot("SELECT ?s { ?s :p ?v }", empty=empty)
    assert (plain.over_nothing, plain.rows((arrivals("a q 1"),))) == (None, ())


def test_contents_are_sets_or_bags_beside_static_data():
    contents = (arrivals("a p 1. a p 1", "a p 1", "b p 2"),)
    assert sorted(snapshot("SELECT ?s { ?s :p ?v }").rows(contents)) == list(rows("a ; b"))
    as_bag = snapshot("SELECT ?s { ?s :p ?v }", Counting.BAG, static="c p 3")
    assert sorted(as_bag.rows(contents)) == list(rows("a ; a ; a ; b ; c"))
    assert snapshot("SELECT ?s { ?s :q ?v }", static="c q 3").rows(contents) == rows("c")
    with pytest.raises(RefusedError, match="property paths over a window whose content is a bag"):
        snapshot("SELECT ?s { ?s :p+ ?v }", Counting.BAG)
    assert snapshot("SELECT ?s { ?s :p+ ?v }").rows((arrivals("a p b"),)) == rows("a")


def test_windows_of_one_name_share_a_graph():
    named = snapshot("SELECT ?s { GRAPH :w { ?s :p ?v ; :q ?w } }", names=("urn:w", "urn:w", "urn:v"))
    assert named.rows((arrivals("a p 1"), arrivals("a q 2"), ())) == rows("a")
    assert named.rows((arrivals("a p 1"), (), arrivals("a q 2"))) == ()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT ?s ?v { ?s :p ?v }", ("s", "v")),
        ("ASK { ?s :p ?v }", ("ask",)),
        ("CONSTRUCT { ?s :q ?v } WHERE { ?s :p ?v }", ("subject", "predicate", "object")),
    ],
)
def test_columns_of_answers(text, columns):
    assert snapshot(text).variables == columns


def test_the_time_now_is_that_of_the_report():
    at = snapshot(
        "SELECT ?s { ?s :p ?v FILTER(NOW() > '1970-01-01T00:00:01Z'^^<http://www.w3.org/2001/XMLSchema#dateTime>) }"
    )
    contents = (arrivals("a p 1"),)
    assert at.at(1_000).rows(contents) == ()
    assert at.at(1_001).rows(contents) == rows("a")
    with pytest.raises(ValueError, match="say at which instant the query is answered"):
        at.rows(contents)
    with pytest.raises(ValueError, match="say at which instant the query is answered"):
        at.dataset(contents)
    plain = snapshot("SELECT ?s { ?s :p ?v }")
    assert plain.at(7) is plain
