"""Which contents leave nothing open: only then is the evaluator's own answer known to be the one legal answer."""

import pytest

from streamgauge.formats.notation import term
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.oracle.worlds.closed import ClosedTerms, literal_class
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, triples

XSD = "http://www.w3.org/2001/XMLSchema#"
DAY = f'"2026-03-01"^^<{XSD}date>'


@pytest.mark.parametrize(
    ("comparison", "objects", "closed"),
    [
        ("?v = 1", ["1", "2"], True),
        ("?v = 1", ["1", "'x'"], False),  # equal or not, or an error: SPARQL 1.1, 17.4.1.7
        ("?v < 2", ["1", "'x'"], True),  # an error in any reading
        (f"?v < {DAY}", ["1"], False),  # 17.3 does not order dates
    ],
)
def test_a_content_is_closed_unless_a_comparison_of_its_kinds_is_open(comparison, objects, closed):
    query = ContinuousQuery(
        parse_sparql(f"SELECT ?s {{ ?s <urn:p> ?v FILTER({comparison}) }}"), (StreamWindow(STREAM, Window(5, 5)),)
    )
    content = (Arrival(STREAM, 0, None, triples(" ".join(f"a p {item}." for item in objects))),)
    legality = ReportLegality(lambda _: (content,), query, RSPQL)
    assert legality.is_closed(DueReport(0, ())) is closed
    terms = [triple[2] for triple in content[0].triples]
    assert ClosedTerms(query).hold(lambda: terms) is closed
    assert ClosedTerms(query).hold({literal_class(literal): literal for literal in terms}.values) is closed


def test_literals_are_of_a_class_by_kind_and_by_whether_they_leave_something_open():
    alike = [["1", "2"], ["'x'", "'y'"], ["'z'@en", "'u'@de"], ["1.5", "2.5"], ["1" * 20, "2" * 20]]
    classes = [{literal_class(term(text)) for text in texts} for texts in alike]
    assert [len(one) for one in classes] == [1] * 5
    assert len(set().union(*classes)) == 5
