"""Reports beside answers: what is right, what is out of order, and which of several legal answers is aligned."""

from types import SimpleNamespace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.oracle.judging.metrics import Unit
from streamgauge.oracle.judging.units import Alignment, in_order, is_right
from streamgauge.oracle.worlds.legality import Opinion
from streamgauge.oracle.worlds.membership import Overlap
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


def report(*names):
    rows = tuple((f"<urn:{name}>", f'"{name}"') for name in names)
    return ExpectedReport(DueReport(5, (View(0, 5, 0, 4, 9),)), ("s", "v"), rows, 1)


def unit(expected, received, missing=(), surplus=()):
    due = None if expected is None else report(*expected)
    answer = None if received is None else Answer(("s", "v"), report(*received).rows)
    common = len(received or ()) - len(surplus)
    return Unit(due, answer, 0, Overlap(common, report(*missing).rows, report(*surplus).rows, frozenset({1})))


@pytest.mark.parametrize(
    ("one", "right"),
    [
        (unit("ab", "ab"), True),
        (unit("", ""), True),
        (unit("ab", "a", missing="b"), False),
        (unit("a", "ab", surplus="b"), False),
        (unit(None, ""), False),
        (unit("", None), False),
    ],
)
def test_a_unit_is_right_where_report_and_answer_have_the_same_rows(one, right):
    assert is_right(one) is right


def test_rows_out_of_order_are_missing_and_surplus():
    keys = ((1, False),)
    assert in_order(unit("abc", "abc"), keys) == unit("abc", "abc")
    mixed = unit("abc", "acb")
    late = in_order(mixed, keys)
    (b,) = report("b").rows
    assert late.both == Overlap(2, (b,), (b,), frozenset({1}))
    assert (late.report, late.answer) == (mixed.report, mixed.answer)
    down = in_order(mixed, ((1, True),))
    assert (down.both.common, len(down.both.missing)) == (1, 2)
    # What is wrong anyway is not asked for its order.
    for other in (unit("abc", "ca", missing="b"), unit(None, "ba"), unit("ba", None)):
        assert in_order(other, keys) is other
