"""Numbers that are sent as another datatype: with their digits, or cut off where they are integers."""

import pytest

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import XSD
from streamgauge.oracle.diagnosis.faults.number_type import _retype
from streamgauge.oracle.diagnosis.models import Case, Stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import term

CASE = Case(ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), ()), RSPQL, Stream(()), 10, 0)


@pytest.mark.parametrize(
    ("given", "kind", "sent"),
    [
        ("2.75", "integer", f'"2"^^<{XSD}integer>'),
        ("-2.75", "integer", f'"-2"^^<{XSD}integer>'),
        ("2.75", "double", f'"2.75"^^<{XSD}double>'),
        ("2.5e3", "decimal", f'"2.5e3"^^<{XSD}decimal>'),
        ("7", "float", f'"7"^^<{XSD}float>'),
        ("7", "string", '"7"'),
        ("2.75", "string", '"2.75"'),
        ("a", "integer", "<urn:a>"),
        ("'x'", "integer", '"x"'),
    ],
)
def test_a_number_as_one_of_another_datatype(given, kind, sent):
    (rule,) = _retype(CASE, XSD + kind).row_rules
    assert rule(((term(given), None), (term(given), term("a")))) == ((sent, None), (sent, "<urn:a>"))
