"""The fast searches find the borders that trying every pair finds, on drawn runs."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.notation import term
from streamgauge.model.semantics import R2S, Borders, Counting, EmptyAggregate, Report, Tick
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging import border_fits, gracious
from streamgauge.oracle.judging.lifetimes import minimal, reached
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.profiles import RSPQL
from tests.examples import examples
from tests.notation import stream
from tests.oracle.runs import right_run

QUERIES = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?s { ?s <urn:p> ?o }",
    "SELECT DISTINCT ?s { ?s <urn:p> ?o }",
    "SELECT ?s ?t { ?s <urn:p> ?o . ?t <urn:q> ?o }",
    "SELECT ?o { ?s <urn:p> ?o . FILTER(?o != <urn:o1>) }",
    "SELECT ?s ?o { { ?s <urn:p> ?o } UNION { ?o <urn:q> ?s } } ORDER BY ?s",
    "SELECT ?s ?blank_0 { [] <urn:p> ?s . [] <urn:q> ?blank_0 }",
    "SELECT ?s ?t { [] <urn:p> ?s . VALUES ?s { <urn:o1> <urn:o2> } BIND(?s AS ?t) }",
)
NUMBERS = (
    "SELECT (AVG(?o) AS ?m) { ?s <urn:v> ?o }",
    "SELECT (SUM(?o) AS ?m) { ?s <urn:v> ?o . FILTER(?o > 1) }",
    "SELECT (COUNT(*) AS ?m) { ?s <urn:v> ?o }",
    "SELECT (COUNT(?s) AS ?m) { ?s <urn:v> ?o }",
)
OTHERS = (
    "SELECT ?s { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> ?o } }",
    "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT ?s { ?s <urn:p>* ?o }",
    "SELECT ?s { ?s <urn:p> ?o MINUS { ?s <urn:q> ?o } }",
    "SELECT ?s ?b { ?s <urn:p> ?o BIND(BNODE() AS ?b) }",
    "SELECT ?s { ?s <urn:p> ?o } LIMIT 1",
    "SELECT (SUM(DISTINCT ?o) AS ?n) { ?s <urn:p> ?o }",
    "SELECT (MIN(?o) AS ?n) { ?s <urn:p> ?o }",
    "SELECT (SUM(?o + 1) AS ?n) { ?s <urn:p> ?o }",
    "SELECT (COUNT(1 / ?o) AS ?n) { ?s <urn:p> ?o }",
    "SELECT (SUM(?o) + 1 AS ?n) { ?s <urn:p> ?o }",
    "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s <urn:p> ?o }",
    "SELECT (SUM(?o) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT (SUM(?o) AS ?n) { ?s <urn:p> ?o } HAVING(SUM(?o) > 1)",
    "SELECT (SUM(?o) AS ?n) (COUNT(?o) AS ?m) { ?s <urn:p> ?o }",
    "SELECT (?o + 1 AS ?n) { ?s <urn:p> ?o }",
    "SELECT ?g { GRAPH ?g { ?s <urn:p> ?o } }",
    "SELECT ?s { GRAPH <urn:g> { ?s <urn:p> ?o } }",
    "ASK { ?s <urn:p> ?o }",
)

triple = st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), st.sampled_from(("o1", "o2", "o3")))
R2S_CHOSEN = st.sampled_from([R2S.RSTREAM, R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM])


@st.composite
def texts(draw):
    """Streams of at most ten elements within two windows of 8."""
    times = sorted(draw(st.lists(st.integers(0, 15), min_size=2, max_size=10, unique=True)))
    return " | ".join(f"{time}: {' '.join(draw(triple))}." for time in times)


@st.composite
def numbers(draw):
    times = sorted(draw(st.lists(st.integers(0, 15), min_size=2, max_size=10, unique=True)))
    return " | ".join(f"{time}: s{time} v {draw(st.integers(0, 4))}." for time in times)


@st.composite
def semantics(draw):
    closes = draw(st.booleans())
    chosen = replace(
        RSPQL,
        name="drawn",
        borders=draw(st.sampled_from(Borders)),
        answers=draw(st.sampled_from([Counting.BAG, Counting.SET])),
        r2s=draw(R2S_CHOSEN),
    )
    if closes:
        return chosen
    tick = draw(st.sampled_from([Tick.ELEMENT, Tick.TUPLE, Tick.BATCH]))
    return replace(chosen, report=frozenset({Report.CONTENT_CHANGE}), tick=tick, partial_head=True)


def found(run, text, fast: bool, monkeypatch, narrow=gracious.NARROW):
    """The borders of all windows, by the fast search or by every pair."""
    held = stream(text)
    verdict = check(run, definition(held), 0, JudgingRules())
    with monkeypatch.context() as patched:
        patched.setattr(gracious, "NARROW", narrow)
        if not fast:
            patched.setattr(gracious, "fast_search", lambda *_: None)
        graced = gracious.gracious(run, held, verdict)
    assert graced.cautions == verdict.cautions
    return [(window.borders, window.fitted) for window in graced.windows]


def spoilt(draw, run):
    """A run whose answers are other answers', or lack rows, or have some twice."""
    rows = [row for answer in run.answers for row in answer.added]
    answers = []
    for answer in run.answers:
        kept = [row for row in answer.added if draw(st.integers(0, 4))]
        kept += [draw(st.sampled_from(rows)) for _ in range(draw(st.integers(0, 2)))] if rows else []
        answers.append(replace(answer, added=tuple(kept)) if draw(st.integers(0, 3)) else answer)
    return replace(run, answers=tuple(answers))


def beside(run, static):
    """The run with static data, which its answers do not know."""
    return replace(run, header=replace(run.header, query=replace(run.header.query, static=static)))


@pytest.mark.slow
@examples(120, prove=5000)
@given(data=st.data())
def test_rows_fit_as_every_pair_says(data):
    text, chosen = data.draw(texts()), data.draw(semantics())
    sparql = data.draw(st.sampled_from(QUERIES))
    slide = data.draw(st.sampled_from([4, 8]))
    run = right_run(chosen, text=text, window=(8, slide), advance=16, sparql=sparql, named=True)
    run, narrow = spoilt(data.draw, run), data.draw(st.sampled_from([(1,), (4, 1), (8, 2, 1)]))
    static = data.draw(st.lists(triple, max_size=2, unique=True))
    run = beside(run, tuple((f"<urn:{s}>", f"<urn:{p}>", f"<urn:{o}>") for s, p, o in static))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert found(run, text, True, monkeypatch, narrow) == found(run, text, False, monkeypatch)


@pytest.mark.slow
@examples(50, prove=2000)
@given(data=st.data())
def test_numbers_fit_as_every_pair_says(data):
    text, sparql = data.draw(numbers()), data.draw(st.sampled_from(NUMBERS))
    borders = data.draw(st.sampled_from(Borders))
    run = right_run(replace(RSPQL, borders=borders), text=text, window=(8, 8), advance=16, sparql=sparql, named=True)
    run, narrow = spoilt(data.draw, run), data.draw(st.sampled_from([(1,), (4, 1), (8, 2, 1)]))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert found(run, text, True, monkeypatch, narrow) == found(run, text, False, monkeypatch)


def fast(run, text):
    """The search that knows every pair of borders at once, if the query of a run has one."""
    query, semantics = run.header.query, run.header.semantics
    return border_fits.fast_search(query, semantics, border_fits.Contents(query, semantics, stream(text), 0), [])


@pytest.mark.parametrize("sparql", [*QUERIES, *NUMBERS])
def test_these_queries_are_searched_at_once(sparql):
    text = "1: a p o1. | 3: b v 2. | 5: c q o1."
    run = right_run(RSPQL, text=text, window=(8, 8), advance=16, sparql=sparql)
    assert fast(run, text) is not None


@pytest.mark.parametrize("sparql", NUMBERS)
def test_numbers_of_a_variable_are_searched_at_once(sparql):
    text = "1: a v 1. | 3: b v 2. | 9: c v 4. | 12: d v 8."
    run = right_run(RSPQL, text=text, window=(8, 8), advance=16, sparql=sparql)
    query, semantics = run.header.query, run.header.semantics
    contents = border_fits.Contents(query, semantics, stream(text), 0)
    search = border_fits.fast_search(query, semantics, contents, [])
    due = definition(stream(text))(query, semantics, 16, 0)[0].due
    fit = search.fit(due.views[0], run.answers[0].added, None)
    assert (fit.first, fit.last, fit.precision, fit.recall) == (0, 7, 1.0, 1.0)


@pytest.mark.parametrize("sparql", OTHERS)
def test_these_are_asked_between_each_pair(sparql):
    text = "1: a p o1. | 3: b p o2. | 5: c q o1."
    run = right_run(RSPQL, text=text, window=(8, 8), advance=16, sparql=sparql)
    assert fast(run, text) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(RSPQL, content=Counting.BAG),
        replace(RSPQL, empty_aggregate=EmptyAggregate.NO_ROW),
        replace(RSPQL, r2s=R2S.ISTREAM),
    ],
)
def test_a_number_that_the_semantics_defines_otherwise_is_asked_between_each_pair(other):
    text = "1: a p 1. | 3: b p 2. | 5: c q 1."
    run = right_run(RSPQL, text=text, window=(8, 8), advance=16, sparql="SELECT (SUM(?o) AS ?n) { ?s <urn:p> ?o }")
    assert fast(run, text) is not None
    assert fast(replace(run, header=replace(run.header, semantics=other)), text) is None


SUM = "SELECT (SUM(?o) AS ?n) { ?s <urn:p> ?o }"
JOINED = "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o . ?s <urn:q> ?t }"
CROSSED = "SELECT ?s ?t { ?s <urn:p> ?o . ?t <urn:q> ?o }"


@pytest.mark.parametrize(
    ("sparql", "text", "answer", "borders", "fitted"),
    [
        (SUM, "1: a p 1. | 3: a p 1. | 5: b p 2. | 9: c p 4.", "7", (0, 10), (1.0, 1.0)),  # a triple comes again
        (SUM, "1: a p 'x'. | 3: b p 2. | 9: c p 4.", "6", (3, 10), (1.0, 1.0)),  # not a number
        (
            JOINED,
            "1: a p x. | 2: b p x. | 5: b q y. | 7: a q y. | 9: c p x.",
            "1",
            (0, 6),
            (1.0, 1.0),
        ),  # one in another
        (
            "SELECT ?s { ?s <urn:p> ?o }",
            "1..20: a p x. | 3: b p x. | 9: c p x.",
            "a ; b ; c",
            (0, 10),
            (1.0, 1.0),
        ),  # one ends
        (CROSSED, "1: a p x. | 3: b q x. | 9: b q y. | 10: c p y.", "_:b b", (0, 8), (0.0, 0.0)),  # a blank node
        (
            *(CROSSED, " | ".join(f"{t}: {'a p x' if t % 2 else 'b q x'}." for t in range(36)) + " | 40: c p x."),
            *("a b ; c b", (0, 41), (1.0, 1.0)),  # 18 times 18 ways
        ),
    ],
)
def test_contents_that_are_asked_between_each_pair_fit_as_others(monkeypatch, sparql, text, answer, borders, fitted):
    until = 16 if sparql != CROSSED or "40:" not in text else 80
    run = right_run(RSPQL, text=text, window=(until // 2, until // 2), advance=until, sparql=sparql)
    added = tuple(tuple(map(term, row.split())) for row in answer.split(" ; "))
    run = replace(run, answers=(replace(run.answers[0], added=added), *run.answers[1:]))
    assert found(run, text, True, monkeypatch)[0] == (borders, fitted)
    assert found(run, text, True, monkeypatch) == found(run, text, False, monkeypatch)


@pytest.mark.parametrize(
    "pattern", ["GRAPH <urn:w> { ?s <urn:p> ?o } ?o <urn:q> ?t", "?o <urn:q> ?t GRAPH <urn:w> { ?s <urn:p> ?o }"]
)
def test_a_named_window_beside_static_data_is_searched_at_once(monkeypatch, pattern):
    text = "1: a p x. | 3: b p y. | 9: c p x."
    run = right_run(RSPQL, text=text, window=(8, 8), advance=16, sparql=f"SELECT ?s ?t {{ {pattern} }}")
    (window,) = run.header.query.windows
    static = (("<urn:x>", "<urn:q>", "<urn:t>"), ("<urn:y>", "<urn:q>", "<urn:u>"))
    query = replace(run.header.query, windows=(replace(window, name="urn:w"),), static=static)
    said = replace(run.answers[0], added=(("<urn:a>", "<urn:t>"), ("<urn:b>", "<urn:u>"), ("<urn:c>", "<urn:t>")))
    run = replace(run, header=replace(run.header, query=query), answers=(said, *run.answers[1:]))
    assert found(run, text, True, monkeypatch)[0] == ((0, 10), (1.0, 1.0))
    search = fast(run, text)
    assert search.fit(border_fits.View(0, 8, 0, 7, 3), said.added, None) == border_fits.BorderFit(0, 9, 1.0, 1.0)


@pytest.mark.parametrize("r2s", [R2S.RSTREAM, R2S.ISTREAM])
def test_a_row_of_static_data_alone_is_in_every_content(monkeypatch, r2s):
    """The first content is that of [0, 10), where c has come, and d is in each."""
    text = "1: a p x. | 3: b p x. | 9: c p x."
    run = right_run(RSPQL, text=text, window=(8, 8), advance=16, sparql="SELECT ?s { ?s <urn:p> ?o }")
    first = replace(run.answers[0], added=tuple((f"<urn:{name}>",) for name in "abcd"))
    run = beside(replace(run, answers=(first, *run.answers[1:])), (("<urn:d>", "<urn:p>", "<urn:x>"),))
    run = replace(run, header=replace(run.header, query=replace(run.header.query, r2s=r2s)))
    assert found(run, text, True, monkeypatch)[0] == ((0, 10), (1.0, 1.0))
    assert found(run, text, True, monkeypatch) == found(run, text, False, monkeypatch)


def test_a_solution_that_ends_after_those_that_begin_later_hides_none(monkeypatch):
    """Two wrong windows are searched over one stretch, in which ``c`` begins after ``a``, ends before it, and fits."""
    text = "0: b p x. | 1: b q x. | 2: a p x. | 3: c p x. | 4: c q x. | 9: a q x."
    run = right_run(RSPQL, text=text, window=(4, 4), advance=12, sparql="SELECT ?s { ?s <urn:p> ?o ; <urn:q> ?o }")
    wrong = [
        replace(answer, added=(row,)) for answer, row in zip(run.answers[:2], (("<urn:c>",), ("<urn:z>",)), strict=True)
    ]
    run = replace(run, answers=(*wrong, *run.answers[2:]))
    assert found(run, text, True, monkeypatch, (1,)) == found(run, text, False, monkeypatch)
    assert found(run, text, True, monkeypatch, (1,))[0] == ((1, 5), (1.0, 1.0))


@pytest.mark.parametrize(("reach", "settled"), [(5, True), (4, False)])
def test_an_exact_fit_is_settled_within_the_sum_of_its_shifts(reach, settled):
    declared = border_fits.View(10, 20, 10, 19, 9)
    assert border_fits.BorderFit(8, 22, 1.0, 1.0).is_settled(declared, reach) is settled
    assert not border_fits.BorderFit(8, 22, 1.0, 0.5).is_settled(declared, reach)


span = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: (min(pair), max(pair)))


@examples(150, prove=5000)
@given(
    st.lists(st.lists(span, min_size=1, max_size=3), max_size=5),
    st.integers(1, 5),
    st.integers(0, 7),
    st.integers(0, 7),
)
def test_weights_say_how_many_numbers_are_reached(members, number, low, high):
    members = [minimal(iter(spans)) for spans in members]
    inside = sum(any(first >= low and last < high for first, last in spans) for spans in members)
    weights = Counter[tuple[int, int]]()
    for pair, weight in reached(members, range(1, number + 1)):
        weights[pair] += weight
    total = sum(weight for (first, last), weight in weights.items() if first >= low and last < high)
    assert total == min(number, inside)
