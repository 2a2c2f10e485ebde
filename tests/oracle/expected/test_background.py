"""The static data beside a query."""

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.oracle.expected.reports import BackgroundError, beside
from streamgauge.query import parse_sparql
from tests.notation import STREAM

QUERY = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), (StreamWindow(STREAM, Window(5, 5)),))
NEEDY = ContinuousQuery(QUERY.form, QUERY.windows, background=("http://ex.org/a", "http://ex.org/b"))


def test_a_files_triples_stand_beside_the_query(tmp_path):
    file = tmp_path / "static.nt"
    file.write_text("<urn:a> <urn:p> <urn:b> .\n", "utf-8")
    for query in (QUERY, NEEDY):
        assert beside(query, file) == query.with_static((("<urn:a>", "<urn:p>", "<urn:b>"),))


def test_a_query_that_names_no_graph_needs_none():
    assert beside(QUERY, None) is QUERY


def test_the_graphs_that_a_query_reads_are_named():
    with pytest.raises(BackgroundError, match=r"reads <http://ex.org/a> and <http://ex.org/b>: name the file"):
        beside(NEEDY, None)
