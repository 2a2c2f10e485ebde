"""A second plan woken by a key with many rows: answers as of the definition, whatever entered before and leaves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental import column_joins, skewed_joins
from streamgauge.incremental.plan import BgpRequest
from streamgauge.incremental.skewed_joins import SkewedJoins, band_parts
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model import algebra as al
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, Report
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CSPARQL
from tests.engines.test_live import agree
from tests.examples import examples
from tests.notation import STREAM

PATTERNS = (
    "?s <urn:in> ?r ; <urn:v> ?v . ?o <urn:in> ?r ; <urn:v> ?w FILTER(?v > ?w)",
    "?s <urn:in> ?r ; <urn:v> ?v . ?o <urn:in> ?r ; <urn:v> ?w FILTER(?v - ?w > 1 && ?v > 1)",
    "?s <urn:in> ?r ; <urn:v> ?v . ?o <urn:in> ?r ; <urn:v> ?w FILTER(?v >= ?w && ?s != ?o)",
    "?s <urn:in> ?r ; <urn:v> ?v . ?o <urn:to> ?r ; <urn:v> ?w ; <urn:in> <urn:1> FILTER(?v < ?w)",
    "?s <urn:in> ?r ; <urn:v> ?v . ?o <urn:in> ?r ; <urn:v> ?w ; <urn:to> ?o FILTER(ABS(?v - ?w) < 2)",
)
HEADS = ("SELECT *", "SELECT ?s ?o", "SELECT ?s", "SELECT ?r")
PLACES = st.sampled_from([f"<urn:{n}>" for n in range(3)])
VALUES = st.sampled_from(
    [*(f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in range(4)), '"2.5"', "<urn:1>"]
)
TRIPLES = st.one_of(
    st.tuples(PLACES, st.sampled_from(["<urn:in>", "<urn:to>"]), PLACES), st.tuples(PLACES, st.just("<urn:v>"), VALUES)
)


@st.composite
def elements(draw: st.DrawFn) -> list[StreamElement]:
    """Elements with copies of triples among them; a few end."""
    made, time = [], 0
    for number in range(draw(st.integers(1, 14))):
        time += draw(st.sampled_from([0, 1, 1, 2, 5]))
        until = time + draw(st.integers(1, 6)) if draw(st.integers(0, 20)) == 0 else None
        made.append(StreamElement(STREAM, time, number, tuple(draw(st.lists(TRIPLES, max_size=5))), (), until))
    return made


@examples(30, prove=4000)
@given(st.data())
def test_both_plans_say_what_the_definition_says(data):
    """Woken at any number of rows, in panes of any size, between any two triples that enter."""
    window = Window(data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12)))
    text = f"{data.draw(st.sampled_from(HEADS))} {{ {data.draw(st.sampled_from(PATTERNS))} }}"
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, window),))
    chosen = replace(
        CSPARQL,
        name="drawn",
        report=frozenset(data.draw(st.sampled_from([(Report.WINDOW_CLOSE,), (Report.CONTENT_CHANGE,)]))),
        r2s=data.draw(st.sampled_from(CQL)),
        r2s_able=frozenset(CQL),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skewed_joins, "FEW_ROWS", data.draw(st.integers(0, 4)))
        patch.setattr(skewed_joins, "SKEW_CHUNK", data.draw(st.integers(1, 4)))
        patch.setattr(column_joins, "COLUMNAR_CHANGE", data.draw(st.sampled_from([0, 3, 300])))
        agree(query, chosen, data.draw(elements()), 60)


def request(text: str) -> BgpRequest:
    """The request of a pattern under conditions, all its variables asked for."""
    form = parse_sparql(f"SELECT * {{ {text} }}").pattern
    while not isinstance(form, al.Filter):
        form = form.pattern
    names = tuple(sorted(v.name for v in al.pattern_variables(form)))
    return BgpRequest(None, form.pattern, (form.condition,), names)


@examples(80, prove=4000)
@given(st.data())
def test_changes_are_those_of_the_first_plan(data):
    """Triples enter, some twice, and leave; the second plan is woken in between, and says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skewed_joins, "FEW_ROWS", 1)
        two = WindowJoins()
        two_take, (enter, leave) = two.leaf(request(PATTERNS[0])), two.feeds(None)
        patch.setattr(skewed_joins, "FEW_ROWS", 10**9)
        one = WindowJoins()
        one_take, (one_enter, one_leave) = one.leaf(request(PATTERNS[0])), one.feeds(None)
        patch.setattr(skewed_joins, "FEW_ROWS", 1)
        contents = []
        for _ in range(data.draw(st.integers(1, 8))):
            coming = tuple(data.draw(st.lists(TRIPLES, max_size=6)))
            gone = tuple(contents.pop(data.draw(st.integers(0, len(contents) - 1))) for _ in range(len(contents) // 3))
            for come, go in ((enter, leave), (one_enter, one_leave)):
                go(gone)
                come(coming)
            contents += coming
            if data.draw(st.booleans()):
                assert two_take() == one_take()
        assert two_take() == one_take()
        assert not two.moved


def test_one_key_with_many_rows_wakes_the_second_plan():
    """As many subjects in rooms of two leave the first plan in use; then one room grows."""
    asked = request(PATTERNS[0])
    pool = WindowJoins()
    take, (enter, _) = pool.leaf(asked), pool.feeds(None)
    (joins,) = pool._joins[None]
    assert isinstance(joins, SkewedJoins)
    for room in (lambda n: f"<urn:r{n // 2}>", lambda _n: "<urn:hub>"):
        assert not joins.woken
        for n in range(400):
            value = f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            enter(((f"<urn:{room(n)[5:]}{n}>", "<urn:in>", room(n)), (f"<urn:{room(n)[5:]}{n}>", "<urn:v>", value)))
    assert joins.woken
    assert sum(take().values()) == 200 + 400 * 399 // 2


def test_only_parts_that_are_compared_and_share_objects_have_a_second_plan():
    """Subjects in common, equal values and patterns without a comparison are joined as before."""
    assert band_parts(request(PATTERNS[0])) is not None
    assert band_parts(request("?s <urn:in> ?r . ?r <urn:v> ?v FILTER(?v > 3)")) is None
    assert band_parts(request("?s <urn:v> ?v ; <urn:to> ?w FILTER(?v > ?w)")) is None
    assert band_parts(request("?s <urn:in> ?r ; <urn:v> ?v . ?o <urn:in> ?r ; <urn:v> ?w FILTER(?v = ?w)")) is None
