"""The spark engine behind the contract of engines: a real streaming query, closes told and closes seen."""

from dataclasses import replace

import pytest

from streamgauge.engines import load
from streamgauge.model.semantics import R2S, Clock, Due, Report, Semantics
from streamgauge.query import parse
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import OutOfOrderError, StreamNameError
from tests.notation import stream

QUERY = (
    "SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT{size}S STEP PT{slide}S] "
    "WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }"
)


def asked(size: int = 2, slide: int = 1):
    return parse(QUERY.replace("{size}", str(size)).replace("{slide}", str(slide)))


def answered(query, semantics, elements, advance):
    results = []
    session = load("spark").start(query, semantics, results.append)
    for element in elements:
        session.push(element)
    session.advance(advance)
    session.close()
    return [(answer.instant, answer.scope, answer.added) for answer in results], session.late


@pytest.mark.usefixtures("spark")
def test_late_elements_are_counted_and_left_out():
    came = stream("0: a p b. | 3500: b p c. | 900: c p d. | 2900: d p e. | 4100: e p f.")
    result, late = answered(asked(), Semantics("bounded", lateness=1000), came, 4000)
    assert late == 1
    assert result == [
        (2000, (0, 2000), (("<urn:a>", "<urn:b>"),)),
        (3000, (1000, 3000), (("<urn:d>", "<urn:e>"),)),
        (4000, (2000, 4000), (("<urn:b>", "<urn:c>"), ("<urn:d>", "<urn:e>"))),
    ]


@pytest.mark.usefixtures("spark")
def test_nothing_is_said_of_another_stream():
    session = load("spark").start(asked(), PROFILES["rspql"], lambda _answer: None)
    session.push(stream("[other] 0: a p b.")[0])
    with pytest.raises(StreamNameError, match=r"streams/test, but the elements are of .*streams/other"):
        session.close()


@pytest.mark.usefixtures("spark")
def test_disorder_without_a_bound_is_named():
    session = load("spark").start(asked(), PROFILES["rspql"], lambda _answer: None)
    first, second = stream("7: a p b. | 3: b p c.")
    session.push(first)
    with pytest.raises(OutOfOrderError, match="element 1 goes back from 7 to 3 ms"):
        session.push(second)
    session.close()


REFUSED = {
    "content changes": {"report": frozenset({Report.CONTENT_CHANGE})},
    "due = last": {"due": Due.LAST},
    "arrival": {"clock": Clock.ARRIVAL},
    "has no Istream": {"r2s": R2S.ISTREAM, "r2s_able": frozenset({R2S.RSTREAM})},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_it_cannot_do_is_named(words):
    assert words in load("spark").refuse(asked(), replace(PROFILES["rspql"], **REFUSED[words]))


def test_count_based_windows_are_named():
    query = asked()
    counted = replace(query.windows[0], window=replace(query.windows[0].window, kind="count"))
    assert "count-based" in load("spark").refuse(replace(query, windows=(counted,)), PROFILES["rspql"])
