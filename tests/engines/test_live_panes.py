"""Windows in panes (`incremental/pane_joins`) say what the definition says, also where panes meet."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.incremental import pane_joins, snapshot
from streamgauge.incremental.drivers import frames
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, R2S, Borders, Counting, Semantics
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
)
XSD = "http://www.w3.org/2001/XMLSchema#integer"


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[pane_joins.PanedGraph]:
    """The graphs that are joined in panes, whatever their size."""
    made: list[pane_joins.PanedGraph] = []
    ask = pane_joins.PanedGraph.ask
    monkeypatch.setattr(pane_joins.PanedGraph, "ask", lambda self, *asked: (made.append(self), ask(self, *asked))[1])
    monkeypatch.setattr(pane_joins, "LEAST", 0)
    return made


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
def test_panes_say_what_the_definition_says(data):
    """Windows over four looks and more, of sizes that the slide divides or not, all borders and R2S operators.

    A pattern that joins a property with itself is looked at whole up to five looks, by terms or by their numbers.
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
        patch.setattr(pane_joins, "LEAST", 0)
        patch.setattr(frames, "SELF_JOIN_OVERLAP", data.draw(st.sampled_from([0, 5])))
        patch.setattr(
            snapshot.SnapshotContents.__init__, "__defaults__", (False, data.draw(st.sampled_from([0, 2000])), None)
        )
        agree(query, chosen, data.draw(elements()), 45)


def test_a_self_join_whose_rows_are_all_sent_is_looked_at_whole():
    def whole(text: str, size: int, semantics: Semantics = CSPARQL) -> bool:
        window = (StreamWindow(STREAM, Window(size, 1000)),)
        return frames.looks_rarely(ContinuousQuery(parse_sparql(text), window), semantics)

    one, other = QUERIES[-1], "SELECT * { ?a <urn:q> ?s . ?b <urn:p> ?s }"
    assert [whole(one, 5000), whole(one, 6000), whole(other, 4000), whole(other, 3000)] == [True, False, False, True]
    assert not whole(one, 5000, replace(CSPARQL, name="new", r2s=R2S.ISTREAM, r2s_able=frozenset(CQL)))
    assert not whole("SELECT * { ?a <urn:q> ?s OPTIONAL { ?b <urn:q> ?s } }", 5000)


def at(*times: int) -> list[StreamElement]:
    return [StreamElement(STREAM, time, n, observed(n, n, n, 5)) for n, time in enumerate(times)]


@pytest.mark.parametrize("borders", [Borders.CLOSED_OPEN, Borders.OPEN_CLOSED])
@pytest.mark.parametrize("size", [5000, 5500])
def test_panes_go_as_they_came(graphs, borders, size):
    """Nothing is followed while panes have no term in common, before the first look and after, whatever the borders."""
    chosen = replace(CSPARQL, name="drawn", borders=borders)
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(size, 1000)),))
    fed = at(*range(0, 20_000, 250))
    agree(query, chosen, fed, 20_000)
    assert graphs
    assert not any(each.followed for each in graphs)
    assert all(each.number >= 15 for each in graphs)


def test_panes_that_meet_are_followed(graphs):
    """A value that comes for a result of a pane before makes a solution with it, and the joins change."""
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(5000, 1000)),))
    fed = at(*range(0, 8000, 250))
    late = StreamElement(STREAM, 8000, len(fed), (("<urn:r20>", "<urn:v>", '"9"'),))
    more = [replace(each, time=each.time + 9000, sequence=each.sequence + 100) for each in at(*range(0, 4000, 500))]
    agree(query, CSPARQL, [*fed, late, *more], 14_000)
    assert all(each.followed for each in graphs)


def test_small_panes_are_followed(graphs, monkeypatch):
    """Where few triples come between looks each is followed, which is cheaper then."""
    monkeypatch.setattr(pane_joins, "LEAST", 200)
    query = ContinuousQuery(parse_sparql(QUERIES[0]), (StreamWindow(STREAM, Window(5000, 1000)),))
    agree(query, CSPARQL, at(*range(0, 8000, 250)), 10_000)
    assert all(each.followed for each in graphs)


def test_several_queries_share_panes(graphs):
    """Two queries over one window; a third kind of pattern, one alone, has each triple followed."""
    window = (StreamWindow(STREAM, Window(5000, 1000)),)
    for texts, followed in ((QUERIES[:2], False), ((QUERIES[0], "SELECT * { ?o <urn:q> ?s }"), True)):
        graphs.clear()
        answers: list[list] = [[] for _ in texts]
        asked = [ContinuousQuery(parse_sparql(text), window) for text in texts]
        session = load("live").start_all(
            [(query, CSPARQL, found.append) for query, found in zip(asked, answers, strict=True)]
        )
        for each in at(*range(0, 12_000, 250)):
            session.push(each)
        session.advance(12_000)
        assert all(each.followed is followed for each in graphs)
        assert [sum(len(each.added) for each in found) for found in answers] == [8 * 20, 8 * 20]
