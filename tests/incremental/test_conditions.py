"""Conditions against pyoxigraph, term by term."""

import pytest

from streamgauge.incremental import conditions
from streamgauge.model.algebra import Call, Var
from tests.sparql import pyoxigraph_rows

PATTERNS = ("^(A|B|C|D)", "A", "^A$", "", "(|x)", "a b", "^(A", "A)", "(A|B)-|@$", ".", "A+", "^")
CELLS = (
    *('"A"', '"Adams"', '"aA"', '"x-B-@"', '""', '"a b"', '"A\\n"', '"A\\"B"', '"A"@en', '"A"^^<urn:t>', '"1"'),
    *("<urn:A>", "_:A", None),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_regular_expression_keeps_what_pyoxigraph_keeps(pattern):
    condition = Call("REGEX", (Var("x"), f'"{pattern}"'))
    keeps = conditions.test(condition, ("x",))
    assert [keeps(cell) for cell in CELLS] == pyoxigraph_rows.holds(condition, ("x",), [(cell,) for cell in CELLS])
