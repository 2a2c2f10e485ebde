"""Drawn queries: printed, parsed back, and answered."""

import pyoxigraph as ox
import pytest
from hypothesis import given

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as al
from streamgauge.model.terms import Triple
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from tests.examples import examples
from tests.sparql.draw import OPERATORS, aggregated, queries, triples


@pytest.mark.slow
@examples(20, prove=2000)
@given(queries(OPERATORS))
def test_a_printed_query_parses_back_to_itself(query: al.Select) -> None:
    assert parse_sparql(sparql(query)) == query


@pytest.mark.slow
@examples(20, prove=2000)
@given(queries(), triples())
def test_a_printed_query_is_answered_with_its_columns(query: al.Select, data: tuple[Triple, ...]) -> None:
    store = ox.Store()
    store.extend(ox.Quad(*map(parse_term, triple)) for triple in data)
    answer = store.query(sparql(query))
    assert isinstance(answer, ox.QuerySolutions)
    assert tuple(variable.value for variable in answer.variables) == query.variables
    list(answer)
    assert aggregated(query) <= set(query.variables)
