"""Which contents leave nothing open: only then is the evaluator's own answer known to be the one legal answer."""

import pytest

from streamgauge.formats.notation import term
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.oracle.worlds.closed import ClosedTerms, one_of_each
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
    assert ClosedTerms(query).hold(terms) is closed
    assert ClosedTerms(query).hold(one_of_each(terms * 2)) is closed


def test_a_literal_of_each_kind_stands_for_all_and_one_of_a_language_beside_it():
    literals = [term(text) for text in ("1", "2", "'x'", "'y'", "'z'@en", "'u'@de", "1.5", "2.5")]
    assert one_of_each([*literals, "<urn:a>", "_:b"]) == [literals[at] for at in (1, 3, 5, 7)]
