"""The definition against cases that are data, and against laws that need no expected value."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import CQL, R2S, Changes, Counting, Origin, Report, Semantics
from streamgauge.oracle.worlds.restatement import computed_columns
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival, admit, origins, triples
from streamgauge.semantics.definition import CAME, WENT, expected, selected
from streamgauge.semantics.profiles import PROFILES, RSPQL
from streamgauge.semantics.refusal import OutOfOrderError
from streamgauge.suites.conformance.cases import load
from tests.examples import examples
from tests.notation import STREAM, stream

CASES = load()
FIRST = CASES[0]


def bags(reports, form=FIRST.query.form) -> list[tuple[int, Counter]]:
    """The rows at each instant; computed literals in one form, as they are compared by value."""
    computed, canonical = computed_columns(form), Canonical()

    def shown(row):
        return tuple(
            canonical.term(parse_term(term)) if at in computed and term is not None else term
            for at, term in enumerate(row)
        )

    return [(instant, Counter(map(shown, rows))) for instant, rows in reports]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case):
    """The answers that the case states, by hand, are those of the definition."""
    t0 = origins(case.semantics, case.query.windows, case.stream[0].time)[0]
    result = expected(case.stream, case.query, case.semantics, case.advance, t0)
    told, form = ((report.due.instant, report.rows) for report in result), case.query.form
    assert bags(told, form) == bags(case.expected, form), case.why


def test_windows_that_time_does_not_cut_have_one_origin():
    searched = replace(RSPQL, origin=Origin.SEARCH, t0=3)
    assert origins(searched, (StreamWindow(STREAM, Window(7, 2, "count")),), 5) == (3,)
    assert origins(searched, (StreamWindow(STREAM, Window(2, 2)),), 5) == (3, 4, 5)


def test_nothing_is_late_before_the_first_period_has_ended():
    """Reports at 30, 40, ...: with a bound of 2, time 25 makes nothing due, and time 33 the report at 30."""
    periodic = replace(RSPQL, report=frozenset({Report.PERIODIC}), period=10, lateness=2)
    elements = stream("25: a p b. | 18: a p c. | 33: a p d. | 29: a p e. | 30: a p f.")
    admitted, late = admit(elements, periodic, (StreamWindow(STREAM, Window(10, 10)),), 20)
    assert ([element.time for element in admitted], [element.time for element in late]) == ([18, 25, 30, 33], [29])


def test_beside_a_count_based_window_all_below_the_watermark_is_late():
    """With a bound of 3, time 9 makes 6 the watermark; the time-based window alone would close at 10."""
    elements = stream("1: a p b. | 9: a p c. | 5: a p d. | 6: a p e.")
    timed, counted = StreamWindow(STREAM, Window(10, 10)), StreamWindow(STREAM, Window(3, 1, "count"))
    for windows, times in (((timed,), []), ((counted,), [5]), ((timed, counted), [5])):
        _, late = admit(elements, replace(RSPQL, lateness=3), windows, 0)
        assert [element.time for element in late] == times


def test_time_that_goes_back_without_a_bound_is_bad_input():
    with pytest.raises(OutOfOrderError, match="goes back from 3 to 1 ms"):
        expected(stream("3: a p b. | 1: a p b."), FIRST.query, FIRST.semantics, 10, 0)


def test_an_operator_that_the_engine_lacks_is_refused():
    query = replace(FIRST.query, r2s=R2S.DSTREAM)
    with pytest.raises(ValueError, match="csparql has no Dstream"):
        expected((), query, PROFILES["csparql"], 10, 0)


STREAMED = sorted(
    name
    for name, each in PROFILES.items()
    if Report.EXPIRATION not in each.report and each.content is not Counting.UPDATES
)
"""Profiles of windows that have contents, which operators compare from instant to instant."""


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), st.integers(0, 2)), max_size=12),
    st.sampled_from(STREAMED),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_istream_and_dstream_add_up_to_rstream(drawn, name, size, slide):
    """Over the evaluated instants, the last Rstream is the sum of Istreams less the sum of Dstreams."""
    text = " | ".join(f"{t}: s{s} p o{o}." for t, s, o in sorted(drawn))
    semantics = replace(PROFILES[name], notify_empty=True, r2s_able=frozenset(R2S), since=None)
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow(STREAM, Window(size, slide)),))
    sent = {r2s: expected(stream(text), replace(query, r2s=r2s), semantics, 24, 0) for r2s in CQL}
    total: Counter = Counter()
    for now, came, left in zip(sent[R2S.RSTREAM], sent[R2S.ISTREAM], sent[R2S.DSTREAM], strict=True):
        total.update(came.rows)
        total.subtract(left.rows)
        assert +total == Counter(now.rows)


def test_table_1_of_csrbench():
    from streamgauge.semantics.profiles import classification

    paper = {
        "Report strategy": [
            "Window close and Non-empty content",
            "Content-change",
            "Window close and Non-empty content",
        ],
        "Tick": ["Tuple-driven"] * 3,
        "Output operator": ["Rstream", "Istream", "Rstream, Istream and Dstream"],
        "Empty relation notification": ["Yes", "No", "No"],
        "Time unit": ["seconds", "hundreds milliseconds", "hundreds milliseconds"],
    }
    results = {feature: cells for feature, _, *cells in classification()}
    assert results.keys() == paper.keys()
    for feature, cells in paper.items():
        assert all(ours.startswith(theirs) for ours, theirs in zip(results[feature], cells, strict=True)), feature


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_choice_of_a_profile_names_its_source(name):
    """A field that differs from the default says where its value comes from."""
    profile = PROFILES[name]
    default = Semantics("default")
    chosen = {f for f in default.__dataclass_fields__ if f not in {"name", "sources", "t0", "period", "since"}
              and getattr(profile, f) != getattr(default, f)}  # fmt: skip
    assert chosen <= set(profile.sources)


@pytest.mark.parametrize(("content", "size"), [(Counting.SET, 2), (Counting.BAG, 3)])
def test_the_size_of_a_content_is_that_of_its_set_or_bag(content, size):
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow(STREAM, Window(5, 5)),))
    (result,) = expected(stream("0: a p b. | 1: a p b. c p d."), query, Semantics("s", content=content), 5, 0)
    assert (result.content, len(result.rows)) == (size, size)


def test_the_column_of_signs_has_a_name_that_no_variable_has():
    semantics = replace(RSPQL, r2s=R2S.CHANGES, r2s_able=frozenset(R2S))
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow(STREAM, Window(5, 5)),))
    first, second = expected(stream("0: a p b. | 6: c p d."), query, semantics, 10, 0)
    assert first.variables == second.variables == ("s", "±")
    assert first.rows == (("<urn:a>", CAME),)
    assert set(second.rows) == {("<urn:a>", WENT), ("<urn:c>", CAME)}


STRATEGIES = [
    {Report.NON_EMPTY, Report.WINDOW_CLOSE},
    {Report.CONTENT_CHANGE},
    {Report.CONTENT_CHANGE, Report.NON_EMPTY},
    {Report.CONTENT_CHANGE, Report.WINDOW_CLOSE},
]


@examples(200, 5000)
@given(st.data())
def test_contents_are_compared_as_whole_sets_or_bags(data):
    """What is kept up to date by arrivals, beside whole contents that are compared with one another."""
    semantics = replace(
        RSPQL,
        report=frozenset(data.draw(st.sampled_from(STRATEGIES))),
        content=data.draw(st.sampled_from([Counting.SET, Counting.BAG])),
        changes=data.draw(st.sampled_from(Changes)),
    )
    triple = st.sampled_from([(f"<urn:{name}>", "<urn:p>", "<urn:o>") for name in "abc"])
    held = st.builds(Arrival, st.just(STREAM), st.integers(0, 9), st.none(), st.lists(triple, max_size=3).map(tuple))
    arrived = data.draw(st.lists(held, max_size=6))
    content = st.lists(st.sampled_from(range(len(arrived))), unique=True) if arrived else st.just([])
    windows = st.tuples(*[content.map(lambda places: tuple(arrived[place] for place in sorted(places)))] * 2)
    looked = [(DueReport(at, ()), contents) for at, contents in enumerate(data.draw(st.lists(windows, max_size=6)))]
    wanted, before = [], Counter()
    for due, contents in looked:
        now = triples(contents, semantics.content)
        differs = bool(now - before) or (semantics.changes is Changes.BOTH and now != before)
        empty = Report.NON_EMPTY in semantics.report and not now
        if not empty and (differs or Report.CONTENT_CHANGE not in semantics.report):
            wanted.append((due, contents))
        before = now
    assert list(selected(looked, semantics)) == wanted
