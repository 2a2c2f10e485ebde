"""Jumps in time: what sends nothing is left out by arithmetic, what sends is as the definition has it or refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.drivers.groups import drive_all
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders
from streamgauge.query import parse_sparql
from streamgauge.semantics import jumps
from streamgauge.semantics.jumps import TimeJumpError, refuse_jump, refuse_jumps
from streamgauge.semantics.profiles import RSPQL
from tests.engines.test_live import agree
from tests.examples import examples
from tests.notation import STREAM, stream

PLAIN = "SELECT ?s { ?s <urn:p> ?o }"
COUNT = "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }"
SILENT = replace(RSPQL, notify_empty=False)
FAR = 10**12


def asked(text, window=(5, 5)):
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(*window)),))


def answered(query, semantics, text, advance):
    answers = []
    driver = drive_all([(query, semantics, answers.append)])
    for element in stream(text):
        driver.push(element)
    driver.advance(advance)
    return [(answer.instant, sorted(answer.added), sorted(answer.removed)) for answer in answers]


TIMES = st.lists(st.integers(0, 60), min_size=1, max_size=6).map(sorted)
MEANINGS = st.builds(
    replace,
    st.just(SILENT),
    r2s_able=st.just(frozenset(R2S)),
    r2s=st.sampled_from(R2S),
    borders=st.sampled_from(Borders),
    notify_empty=st.booleans(),
)


@examples(60, prove=5000)
@given(TIMES, MEANINGS, st.sampled_from([PLAIN, COUNT]), st.sampled_from([(5, 5), (6, 2), (2, 7), (9, 1)]))
def test_answers_over_jumps_are_the_definitions(times, semantics, text, window):
    query = asked(text, window)
    elements = " | ".join(f"{time}: s{time % 3} p o." for time in times)
    agree(query, semantics, tuple(stream(elements)), 90)


@pytest.mark.parametrize("r2s", list(R2S))
def test_what_sends_nothing_takes_no_time(r2s):
    text = f"0: a p o. | {FAR}: b p o."
    result = answered(asked(PLAIN), replace(SILENT, r2s=r2s), text, FAR + 5)
    near = answered(asked(PLAIN), replace(SILENT, r2s=r2s), "0: a p o. | 1000: b p o.", 1005)
    assert [rows for _, *rows in result] == [rows for _, *rows in near]


@pytest.mark.parametrize(("text", "semantics"), [(COUNT, SILENT), (PLAIN, RSPQL)])
def test_what_would_be_sent_too_often_is_refused(text, semantics):
    answers = []
    driver = drive_all([(asked(text), semantics, answers.append)])
    first, second = stream(f"0: a p o. | {FAR}: b p o.")
    driver.push(first)
    with pytest.raises(TimeJumpError, match=r"199,999,999,999 reports.*the units look mixed"):
        driver.push(second)
    assert len(answers) <= 3


def test_up_to_the_bound_all_is_told(monkeypatch):
    monkeypatch.setattr("streamgauge.incremental.drivers.window.MAX_INSTANTS", 20)
    assert len(answered(asked(COUNT), SILENT, "0: a p o. | 100: b p o.", 100)) == 20


def test_the_farthest_jump_of_several_counts_and_a_late_element_begins_none():
    windows, times = asked(PLAIN).windows, [10, 20, 5, 90, 95]
    refuse_jumps(windows, RSPQL, None, times, 14)
    with pytest.raises(TimeJumpError, match="time jumps from 20 to 90 ms: 14 reports"):
        refuse_jumps(windows, RSPQL, None, times, 13)
    with pytest.raises(TimeJumpError, match="time jumps from -90 to 10 ms: 20 reports"):
        refuse_jumps(windows, RSPQL, -90, times, 13)
    with pytest.raises(TimeJumpError, match="time jumps from 0 to 100 ms"):
        refuse_jumps(windows, RSPQL, None, [0, 100, 200, 250], 13)  # the first of the farthest ones


def test_the_definition_refuses_as_many(monkeypatch):
    windows = asked(PLAIN).windows
    refuse_jump(windows, RSPQL, 0, 5 * jumps.MAX_INSTANTS, jumps.MAX_INSTANTS)
    with pytest.raises(TimeJumpError, match=r"time jumps from 0 to 25,000,005 ms: 5,000,001 reports"):
        refuse_jump(windows, RSPQL, 0, 5 * jumps.MAX_INSTANTS + 5, jumps.MAX_INSTANTS)
    # From 10^11 on both are milliseconds since 1970.
    for before, advice in ((10**11 - 1, "the units look mixed"), (10**11, "check the time of this element")):
        with pytest.raises(TimeJumpError, match=advice):
            refuse_jump(windows, RSPQL, before, before + 10**9, jumps.MAX_INSTANTS)
