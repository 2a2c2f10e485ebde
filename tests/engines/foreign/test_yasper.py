"""YASPER on the pipe: every window that a later element closes is right; what its parser does not know is refused."""

from collections import Counter

import pytest

from streamgauge.engines import load
from streamgauge.query import parse
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CSPARQL_097, YASPER
from tests.engines.foreign.given import AVERAGE, SELECT, asked, here, said, weather
from tests.notation import STREAM

pytestmark = pytest.mark.server


@pytest.mark.parametrize("slide", [5, 2])
def test_every_window_that_a_later_element_closes_is_right(slide):
    here("yasper")
    query, elements = asked(slide=slide), tuple(weather(20, 20))
    answers = said("yasper", query, YASPER, elements, 20_000)
    wanted = expected(elements, query, YASPER, elements[-1].time - 1, 0)
    assert [Counter(answer.added) for answer in answers] == [Counter(report.rows) for report in wanted]


WINDOW = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT5S STEP PT5S] WHERE {{ WINDOW <urn:w> {{ %s }} }}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ASK " + WINDOW % "?s <urn:p> ?o", "supports only SELECT of variables"),
        ("SELECT ?s " + WINDOW % "?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?z }", "no OPTIONAL"),
        ("SELECT ?s " + WINDOW % "?s <urn:p>/<urn:q>* ?o", "no property paths"),
        ("SELECT ?s " + WINDOW % "?s <urn:p> 5", "reads a literal in a pattern as an IRI"),
        ("SELECT ?s " + WINDOW % "?s <urn:p> ?o FILTER(?o + 1 > 5)", "can only compare a variable"),
        ("SELECT ?s " + WINDOW % "?s <urn:p> ?o FILTER(BOUND(?o))", "can only compare a variable"),
    ],
)
def test_what_its_parser_does_not_know_is_refused(text, sentence):
    assert sentence in load("yasper").refuse(parse(text), YASPER)


def test_it_has_no_other_semantics_and_no_aggregates():
    refuse = load("yasper").refuse
    assert "use yasper" in refuse(asked(SELECT), CSPARQL_097)
    assert "no BIND" in refuse(asked(AVERAGE), YASPER)
    assert "no static data" in refuse(asked().with_static((("<urn:a>", "<urn:p>", "<urn:b>"),)), YASPER)
    half = parse("SELECT ?s " + (WINDOW % "?s <urn:p> ?o").replace("PT5S", "PT0.5S"))
    assert "whole seconds" in refuse(half, YASPER)
    assert refuse(asked(), YASPER) is None
