"""What a query answers over the facts that hold at an instant: [initial, final)."""

from dataclasses import replace

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting, Tick
from streamgauge.oracle.expected.reports import Valid
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import FRAGMENTS, RSPQL
from tests.notation import STREAM, rows, stream

TEXT = "1..4: a p b. | 2: c p d. | [other] 2..9: x p y. | 6..7: a p e."


def valid(sparql="SELECT ?s ?o { ?s <urn:p> ?o }", text=TEXT, semantics=RSPQL, names=("test",)):
    windows = tuple(StreamWindow(STREAM.replace("test", name), Window(1, 1, "landmark")) for name in names)
    return Valid(ContinuousQuery(parse_sparql(sparql), windows), semantics, stream(text))


def sets(result):
    return [set(item) for item in result]


def test_a_fact_holds_from_its_time_until_it_ends():
    result = valid()
    expected = {
        0: "",
        1: "a b",
        2: "a b ; c d",
        3: "a b ; c d",
        4: "c d",
        5: "c d",
        6: "c d ; a e",
        7: "c d",
        99: "c d",
    }
    for instant, text in (*expected.items(), *reversed(expected.items())):
        assert set(result.at(instant)) == set(rows(text)), instant


def test_all_that_it_was_between_two_instants_both_included():
    result = valid()
    assert sets(result.within(0, 1)) == sets([(), rows("a b")])
    assert sets(result.within(1, 3)) == sets([rows("a b"), rows("a b ; c d")])
    assert sets(result.within(3, 4)) == sets([rows("a b ; c d"), rows("c d")])
    assert sets(result.within(4, 4)) == sets([rows("c d")])
    assert sets(result.within(5, 7)) == sets([rows("c d"), rows("c d ; a e"), rows("c d")])


def test_every_window_of_the_query_holds_its_own_stream():
    assert set(valid(names=("test", "other")).at(3)) == set(rows("a b ; c d ; x y"))
    assert set(valid(names=("other",)).at(8)) == set(rows("x y"))
    assert valid(names=("other",)).at(9) == ()


def test_a_content_may_be_a_bag():
    text = "0: a p b. | 1: a p b."
    assert len(valid(text=text).at(1)) == 1
    assert len(valid(text=text, semantics=replace(RSPQL, content=Counting.BAG)).at(1)) == 2


def test_facts_hold_whenever_reports_are_due():
    for semantics in (FRAGMENTS, replace(RSPQL, tick=Tick.BATCH), replace(RSPQL, tick=Tick.TUPLE)):
        assert set(valid(semantics=semantics).at(3)) == set(rows("a b ; c d"))
