"""Answers without instants, where several are legal: a legal one is preferred to the most similar illegal one."""

from types import SimpleNamespace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.oracle.judging.units import Alignment
from streamgauge.oracle.worlds.legality import Opinion
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM

INTEGER, DECIMAL = (f'"2"^^<http://www.w3.org/2001/XMLSchema#{name}>' for name in ("integer", "decimal"))


def aligned(answers, legal, *, closed=False, sparql="SELECT (SUM(?v) AS ?n) { ?s <urn:v> ?v }"):
    """Pairs of two reports of the integer 2 and these answers, of which some are legal, where datatypes are exact."""
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, Window(5, 5)),))
    reports = [
        ExpectedReport(DueReport(5 * at, (View(5 * at - 5, 5 * at, 5 * at - 5, 5 * at - 1, 9),)), ("n",), rows, 1)
        for at, rows in enumerate([((INTEGER,),), ((INTEGER,), ("<urn:a>",), ("<urn:b>",))], 1)
    ]
    said = [Answer(("n",), tuple((term,) for term in terms)) for terms in answers]
    asked = []

    def of(due, received):
        asked.append((due.instant, received))
        return Opinion([term for (term,) in received] in legal)

    legality = SimpleNamespace(is_closed=lambda _due: closed, of=of)
    alignment = Alignment(reports, said, query, RSPQL, exact_datatypes=True)
    units = alignment.aligned(legality)
    return [(unit.report and unit.report.due.instant, unit.position) for unit in units], asked


@pytest.mark.parametrize(
    ("answers", "legal", "closed", "pairs"),
    [
        # Equal by value, of another datatype: not legal, so the second answer is the first report's.
        ([[DECIMAL], [INTEGER], [INTEGER, "<urn:a>", "<urn:b>"]], [], False, [(None, 0), (5, 1), (10, 2)]),
        ([[DECIMAL], ["<urn:c>"], [INTEGER, "<urn:a>", "<urn:b>"]], [["<urn:c>"]], False, [(None, 0), (5, 1), (10, 2)]),
        ([[DECIMAL], ["<urn:c>"], [INTEGER, "<urn:a>", "<urn:b>"]], [], False, [(5, 0), (None, 1), (10, 2)]),
        # Nothing is open: what may be legal is not asked.
        ([[DECIMAL], ["<urn:c>"], [INTEGER, "<urn:a>", "<urn:b>"]], [["<urn:c>"]], True, [(5, 0), (None, 1), (10, 2)]),
    ],
)
def test_a_legal_answer_is_preferred_to_the_most_similar_illegal_one(answers, legal, closed, pairs):
    found, asked = aligned(answers, legal, closed=closed)
    assert found == pairs
    assert bool(asked) is not closed
