"""Pieces of windows: the answers of the definition, and what is held of elements that no pattern asks for."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.incremental import window_pieces
from streamgauge.incremental.drivers import content
from streamgauge.incremental.drivers.content import WindowContent
from streamgauge.incremental.plan import unheard
from streamgauge.incremental.window_pieces import PartedTriples, WindowBegins
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, Borders, Report
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CSPARQL
from tests.engines.test_live import agree
from tests.examples import examples
from tests.notation import STREAM

QUERIES = (
    "SELECT ?o ?r { ?o <urn:p> ?r }",
    "SELECT ?o ?s { ?o <urn:p> ?r . ?o <urn:q> ?s }",
    "SELECT ?s (COUNT(*) AS ?n) { ?o <urn:q> ?s } GROUP BY ?s",
    "SELECT ?o ?p { ?o ?p <urn:1> }",
    "ASK { ?o <urn:p> <urn:1> FILTER NOT EXISTS { ?o <urn:q> ?s } }",
)
TERMS = st.sampled_from([f"<urn:{n}>" for n in range(3)])
GRAPHS = st.lists(st.tuples(TERMS, st.sampled_from(["<urn:p>", "<urn:q>", "<urn:unasked>"]), TERMS), max_size=3)


@st.composite
def elements(draw: st.DrawFn) -> list[StreamElement]:
    """Elements of which some have only triples that nobody asks for; a few end, a few are late."""
    made, time = [], 0
    for number in range(draw(st.integers(1, 14))):
        time += draw(st.sampled_from([0, 0, 1, 1, 2, 3, 9]))
        until = time + draw(st.integers(1, 6)) if draw(st.integers(0, 20)) == 0 else None
        made.append(StreamElement(STREAM, time, number, tuple(draw(GRAPHS)), (), until))
    return made


@pytest.mark.slow
@examples(300, prove=4000)
@given(st.data())
def test_pieces_say_what_the_definition_says(data):
    """Windows that tumble, overlap twice, thrice or more, or leave gaps; non-empty content; a lateness bound."""
    window = Window(data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12)))
    query = ContinuousQuery(parse_sparql(data.draw(st.sampled_from(QUERIES))), (StreamWindow(STREAM, window),))
    more = data.draw(st.sampled_from([(), (Report.NON_EMPTY,), (Report.CONTENT_CHANGE,)]))
    chosen = replace(
        CSPARQL,
        name="drawn",
        report=frozenset({Report.WINDOW_CLOSE, *more}),
        r2s=data.draw(st.sampled_from(CQL)),
        r2s_able=frozenset(CQL),
        borders=data.draw(st.sampled_from(list(Borders))),
        partial_head=data.draw(st.booleans()),
        lateness=data.draw(st.sampled_from([None, None, 0, 3])),
        t0=data.draw(st.integers(0, 3)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_pieces, "PIECES", data.draw(st.sampled_from([1, 8])))
        agree(query, chosen, data.draw(elements()), 140)


@given(
    st.lists(st.tuples(st.integers(0, 4), GRAPHS, st.booleans()), max_size=20),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
)
def test_a_piece_leaves_when_its_arrivals_would(steps, size, right_closed, partial_head):
    """Beside a content that keeps arrivals as they came, which begins of windows of every slide have leave."""
    window = Window(size, 4)
    begins = WindowBegins(window, right_closed=right_closed, partial_head=partial_head)
    pieces, plain = (WindowContent(unheard, unheard) for _ in range(2))
    asked = ["<urn:p>", "<urn:q>"]
    time = 0
    for wait, triples, cut in steps:
        time += wait
        for item in (pieces, plain):
            item.enter(time, tuple(triples), None)
            item.drop(begins.last(time, 0) - size // 4 * 4)
        if cut:
            pieces.gather(asked, lambda at: begins.last(at, 0))
        assert pieces.held == plain.held
        held = [triple for arrival in pieces.graphs() for triple in arrival if triple[1] in asked]
        wanted = [triple for arrival in plain.graphs() for triple in arrival if triple[1] in asked]
        assert sorted(held) == sorted(wanted)


def test_a_content_holds_the_triples_that_are_asked_for(monkeypatch):
    """Of windows that tumble and of panes, two of three triples are let go while the window fills."""
    contents: list[int] = []
    kept = WindowContent.gather

    def gathered(self, *asked):
        kept(self, *asked)
        contents.append(sum(len(graph) for graph in self.graphs()))

    monkeypatch.setattr(content.WindowContent, "gather", gathered)
    names = [f"<urn:{n}>" for n in range(1000)]
    for size, text in ((1000, QUERIES[0]), (5000, "SELECT * { ?o <urn:p> ?r . ?r <urn:p> ?s }")):
        contents.clear()
        query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, 1000)),))
        session = load("live").start(query, CSPARQL, [].append)
        for number, (one, two) in enumerate(pairwise(names)):
            more = ((one, "<urn:unasked>", two), (two, "<urn:unasked>", one))
            session.push(StreamElement(STREAM, 8 * number, number, ((one, "<urn:p>", two), *more)))
        session.advance(8000)
        assert max(contents) <= size // 8 + 1
        assert max(contents) > size // 10


def test_parted_triples_are_a_sequence():
    piece = PartedTriples(["<p>", "<q>"], [(("<a>", "<q>", "<b>"), ("<a>", "<r>", "<b>")), (("<c>", "<p>", "<d>"),)])
    assert list(piece) == [("<c>", "<p>", "<d>"), ("<a>", "<q>", "<b>")] == [piece[0], piece[-1]]
    assert (len(piece), piece.came) == (2, 3)


def test_the_begins_of_windows():
    """The worked example of the module; a right-closed window begins after its border, a partial head before t0."""
    begins = WindowBegins(Window(10_000, 5000), right_closed=False, partial_head=False)
    assert [begins.last(time, 0) for time in (4000, 6000, 7000)] == [0, 5000, 5000]
    assert begins.following(4900, 0) == 5000
    assert begins.following(5000, 0) == 5625
    assert WindowBegins(Window(7, 5), right_closed=True, partial_head=False).last(5, 0) == 1
    assert WindowBegins(Window(7, 5), right_closed=False, partial_head=True).last(5, 0) == 3
