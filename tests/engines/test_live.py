"""`live` says what the definition says: on drawn streams, queries and semantics, and on every window case."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import EngineError, load, names
from streamgauge.engines.live import refuse
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import (
    R2S,
    Clock,
    Counting,
    Due,
    Grain,
    Origin,
    Report,
    Semantics,
    Tick,
)
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.definition import CAME, WENT, expected, operator, signed
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import StreamNameError, meaningless
from tests.examples import examples
from tests.notation import STREAM, stream
from tests.semantics.draw import asked, semantics, streams, windows


def said(query: ContinuousQuery, semantics: Semantics, elements, advance: int):
    answers = []
    session = load("live").start(query, semantics, answers.append)
    for element in elements:
        session.push(element)
    session.advance(advance)
    session.close()
    return answers


def by_report(answers, grain: Grain, r2s: R2S):
    """(instant, scope, bag) per report; consecutive rows of one report are put together again."""
    reports: list = []
    for answer in answers:
        key = (answer.instant, answer.scope)
        both = r2s is R2S.CHANGES
        rows = (*signed(answer.added, CAME), *signed(answer.removed, WENT)) if both else answer.added
        together = grain is Grain.ROW and reports and reports[-1][0] == key and rows
        if together:
            reports[-1][1].update(rows)
        else:
            reports.append((key, Counter(rows)))
    return reports


def agree(query: ContinuousQuery, semantics: Semantics, elements, advance: int) -> None:
    own = [element.time for element in elements if element.stream in {window.stream for window in query.windows}]
    if semantics.origin is Origin.FIRST and not own:
        return
    t0 = origins(semantics, query.windows, own[0] if own else None)[0]
    wanted = [
        ((report.due.instant, (report.due.start, report.due.end)), Counter(report.rows))
        for report in expected(elements, query, semantics, advance, t0)
    ]
    result = by_report(said(query, semantics, elements, advance), semantics.grain, operator(query, semantics))
    several = any(window.window.kind == "count" for window in query.windows)
    if semantics.grain is Grain.ROW and (several or semantics.tick in {Tick.TUPLE, Tick.ELEMENT}):
        wanted, result = together(wanted), together(result)
    assert result == wanted


def together(reports):
    """Row-grained reports of one instant cannot be told apart: their bags are added."""
    bags: dict = {}
    for key, bag in reports:
        bags.setdefault(key, Counter()).update(bag)
    return bags


@pytest.mark.slow
@examples(20, prove=2000)
@given(st.data())
def test_live_agrees_with_the_definition(data):
    """Over every report strategy, tick, R2S operator and kind of window, one or several, with GRAPH and timestamp()."""
    over = data.draw(windows())
    query, chosen = data.draw(asked(over)), data.draw(semantics())
    elements = data.draw(streams())
    heard = not elements or any(element.stream in {item.stream for item in over} for element in elements)
    if heard and not meaningless(query, chosen):
        agree(query, chosen, elements, data.draw(st.integers(18, 24)))


@pytest.mark.slow
@examples(12, prove=2000)
@given(st.data())
def test_several_queries_say_what_each_would_say_alone(data):
    """Queries over the same windows and others, under the same semantics and others, in one session."""
    places = [(data.draw(windows(2)), data.draw(semantics())) for _ in range(2)]
    late = data.draw(st.none() | st.integers(0, 4))
    asked_for = []
    for over, chosen in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=5)):
        chosen = chosen if chosen.due is Due.LAST else replace(chosen, lateness=late)
        query = data.draw(asked(over))
        if refuse(query, chosen) is None:
            asked_for.append((query, chosen))
    elements = data.draw(streams())
    streams_heard = {element.stream for element in elements}
    if asked_for and all(streams_heard & {window.stream for window in query.windows} for query, _ in asked_for):
        alone = [said(query, chosen, elements, 24) for query, chosen in asked_for]
        together_ = said_together(asked_for, elements, 24)
        for (query, chosen), one, result in zip(asked_for, alone, together_, strict=True):
            sends = operator(query, chosen)
            assert by_report(result, chosen.grain, sends) == by_report(one, chosen.grain, sends)


COUNTS = [
    "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > {})",
    "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > {})",
    "SELECT (COUNT(*) AS ?n) (SUM({}) AS ?m) { ?s ?p ?o }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } HAVING(COUNT(*) < {})",
    "SELECT ?n { { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } FILTER(?n > {}) }",
]


@pytest.mark.slow
@examples(12, prove=1000)
@given(st.data())
def test_queries_that_have_an_aggregation_in_common_say_what_each_would_say_alone(data):
    """Queries with the same groups and other thresholds, where what each of them sends differs too."""
    over = (StreamWindow(STREAM, Window(*data.draw(st.sampled_from([(4, 1), (4, 4), (6, 2)])))),)
    chosen, elements = data.draw(semantics()), data.draw(streams())
    texts = data.draw(st.lists(st.tuples(st.sampled_from(COUNTS), st.integers(0, 3)), min_size=2, max_size=6))
    queries = [ContinuousQuery(parse_sparql(text.replace("{}", str(bound))), over) for text, bound in texts]
    asked_for = [(query, chosen) for query in queries if refuse(query, chosen) is None]
    if asked_for and STREAM in {element.stream for element in elements}:
        for (query, _), result in zip(asked_for, said_together(asked_for, elements, 24), strict=True):
            alone = said(query, chosen, elements, 24)
            assert by_report(result, chosen.grain, operator(query, chosen)) == by_report(
                alone, chosen.grain, operator(query, chosen)
            )


def said_together(asked_for, elements, advance: int):
    answers: list = [[] for _ in asked_for]
    session = load("live").start_all(
        [(query, chosen, answer.append) for (query, chosen), answer in zip(asked_for, answers, strict=True)]
    )
    for element in elements:
        session.push(element)
    session.advance(advance)
    session.close()
    return answers


def test_an_element_that_is_late_for_one_of_several_queries_is_counted_once():
    over = (StreamWindow(STREAM, Window(4, 4)),)
    query = ContinuousQuery(SIMPLE, over)
    bounds = [replace(PROFILES["rspql"], lateness=bound) for bound in (0, 0, 9)]
    session = load("live").start_all([(query, chosen, lambda _answer: None) for chosen in bounds])
    for element in stream("1: a p b. | 9: b p c. | 2: c p d."):
        session.push(element)
    assert session.late == 1


def test_one_refused_query_of_several_is_named():
    query = ContinuousQuery(SIMPLE, (StreamWindow(STREAM, Window(4, 2)),))
    asked_for = [(query, PROFILES["rspql"], lambda _answer: None)]
    bag = (query, replace(PROFILES["rspql"], content=Counting.BAG), lambda _answer: None)
    with pytest.raises(ValueError, match="query 2: a bag as window content"):
        load("live").start_all([*asked_for, bag])


SIMPLE = parse_sparql("SELECT ?s ?o { ?s <urn:p> ?o }")


@pytest.mark.slow
@examples(15, prove=2000)
@given(st.data())
def test_late_elements_are_excluded_and_counted_alike(data):
    from streamgauge.semantics.arrivals import admit

    drawn = data.draw(
        st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["test", "other"])), min_size=1, max_size=10)
    )
    elements = stream(" | ".join(f"[{on}] {time}: s{n} p o{n}." for n, (time, on) in enumerate(drawn)))
    chosen = replace(data.draw(semantics()), lateness=data.draw(st.integers(0, 6)), origin=Origin.FIXED, due=Due.ALL)
    over = data.draw(windows())
    if not {item.stream for item in over} & {element.stream for element in elements}:
        return
    query = ContinuousQuery(SIMPLE, over)
    session = load("live").start(query, chosen, lambda _answer: None)
    for element in elements:
        session.push(element)
    _, late = admit(elements, chosen, query.windows, chosen.t0)
    assert session.late == len(late)
    agree(query, chosen, elements, 24)


def test_a_query_over_a_stream_that_never_comes_names_both():
    query = ContinuousQuery(SIMPLE, (StreamWindow("http://ex.org/typo", Window(4, 2)),))
    session = load("live").start(query, PROFILES["rspql"], lambda _answer: None)
    for element in stream("1: a p b."):
        session.push(element)
    with pytest.raises(
        StreamNameError, match=r"over http://ex.org/typo, but the elements are of http://ex.org/streams"
    ):
        session.close()


@pytest.mark.parametrize("name", sorted(n for n, item in PROFILES.items() if Report.EXPIRATION not in item.report))
def test_every_profile(name):
    text = " | ".join(f"{t}: s{t % 3} p o{t}. s{t % 3} q o{t % 2}." for t in range(0, 40, 3))
    query = ContinuousQuery(SIMPLE, (StreamWindow(STREAM, Window(10, 5)),))
    if PROFILES[name].content is Counting.UPDATES:
        assert "live keeps windows" in (refuse(query, PROFILES[name]) or "")
        return
    agree(query, replace(PROFILES[name], time_unit=2, clock=Clock.APPLICATION), stream(text), 45)


def test_gaps_are_advanced_over_by_the_clock():
    """Advancing bit by bit says the same as advancing once."""
    query = ContinuousQuery(SIMPLE, (StreamWindow(STREAM, Window(4, 2)),))
    answers = []
    session = load("live").start(query, PROFILES["rspql"], answers.append)
    for element in stream("1: a p b. | 13: b p c."):
        for time in range(element.time):
            session.advance(time)
        session.push(element)
    session.advance(20)
    assert [a.added for a in answers] == [
        a.added for a in said(query, PROFILES["rspql"], stream("1: a p b. | 13: b p c."), 20)
    ]


def test_elements_of_one_time_and_number_are_taken_in_their_order():
    """As two streams that number their own elements have them, while they wait for later ones."""
    query = ContinuousQuery(SIMPLE, (StreamWindow(STREAM, Window(4, 2)),))
    semantics, answers = replace(PROFILES["rspql"], lateness=2), []
    session = load("live").start(query, semantics, answers.append)
    elements = [replace(element, sequence=0) for element in stream("1: a p b. | 1: b p c. | 1: c p d.")]
    for element in elements:
        session.push(element)
    session.advance(20)
    assert [a.added for a in answers] == [a.added for a in said(query, semantics, elements, 20)]


def test_what_live_cannot_do_it_refuses_by_name():
    query = ContinuousQuery(SIMPLE, (StreamWindow(STREAM, Window(4, 2)),))
    assert "bag as window content" in refuse(query, replace(PROFILES["rspql"], content=Counting.BAG))
    assert "no clock of its own" in refuse(query, PROFILES["cqels-1.x"])
    assert "csparql has no Istream" in refuse(replace(query, r2s=R2S.ISTREAM), PROFILES["csparql"])
    drawn = replace(query, form=parse_sparql("SELECT ?s { ?s <urn:p> ?o FILTER(RAND() < ?o) }"))
    assert "RAND" in refuse(drawn, PROFILES["rspql"])


def test_the_registry_lists_what_there_is():
    assert "live" in names()
    with pytest.raises(EngineError, match="live"):
        load("dead")
