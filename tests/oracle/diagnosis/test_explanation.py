"""Which reports explain which answers: edit distances and fits by hand, on reports ``a``, ``b``, ... 10 ms apart."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Grain
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.explanation import FittingTask, Recorded, distance, fit
from streamgauge.oracle.diagnosis.models import ModelReport, Slip
from tests.oracle.diagnosis.faults.recordings import recording


def rows(name):
    return ((f"<urn:{name}>",),)


def reports(names):
    return tuple(ModelReport(10 * at, rows(name), DueReport(10 * at, ())) for at, name in enumerate(names, 1))


def recorded(names):
    run = replace(recording("1: s p 1.", "SELECT ?s { ?s <urn:p> ?v }"), answers=())
    return Recorded(replace(run, answers=tuple(Answer(("s",), rows(name)) for name in names)), ("s",), Grain.REPORT)


@pytest.mark.parametrize(
    ("model", "answers", "open_end", "far"),
    [
        ("abc", "abc", None, 0),
        ("abc", "ac", None, 1),
        ("abc", "axbc", None, 1),
        ("abc", "axc", None, 1),
        ("abc", "", None, 3),
        ("", "ab", None, 2),
        ("abc", "bcd", None, 2),
        ("abcd", "ab", 20, 0),  # c and d are due at 30 and 40
        ("abcd", "ab", 30, 1),  # c at 30
        ("abcd", "ab", 29, 0),
        ("abcd", "x", 0, 1),
        ("a" * 120, "a" * 120, 0, 0),  # all may be missing, and none is
        ("a" * 120, "a" * 119, 0, 0),
        ("a" * 120, "a" * 121, 0, 1),
        ("a" * 3, "a" * 120, 0, 117),
        ("ab" * 70, "a" * 70, None, 70),
    ],
)
def test_the_distance_is_the_fewest_reports_to_change_omit_or_add(model, answers, open_end, far):
    assert distance(reports(model), recorded(answers), ("s",), open_end) == far


def slip(*moves, half=True):
    return Slip(lambda _place: moves, lambda _places: Part("", ""), half)


LOST, MORE, ALL_LOST = slip((1, 0)), slip((0, 1)), slip((1, 0), half=False)


def told(result):
    """Of a fit: where it slipped (report, answer), in the order of the slips, and how often it swayed."""
    if result is None:
        return None
    return [[(place.i, place.j, place.move) for place in places] for places in result.slipped.values()], result.swayed


@pytest.mark.parametrize(
    ("model", "answers", "slips", "expected"),
    [
        ("abc", "abc", (), ([], 0)),
        ("abc", "ac", (), None),
        ("abc", "ac", (LOST,), ([[(1, 1, (1, 0))]], 0)),
        ("abc", "axc", (LOST,), None),
        ("abc", "abxc", (MORE,), ([[(2, 2, (0, 1))]], 0)),
        ("abc", "abcx", (MORE,), ([[(3, 3, (0, 1))]], 0)),
        ("abcde", "abcdexy", (MORE,), ([[(5, 5, (0, 1)), (5, 6, (0, 1))]], 0)),
        ("abc", "abcx", (LOST,), None),
        ("abcd", "acd", (LOST,), ([[(1, 1, (1, 0))]], 0)),
        ("abcd", "ad", (LOST,), None),  # half of the reports: a rule
        ("abcde", "ade", (LOST,), ([[(1, 1, (1, 0)), (2, 1, (1, 0))]], 0)),
        ("abcd", "d", (ALL_LOST,), ([[(0, 0, (1, 0)), (1, 0, (1, 0)), (2, 0, (1, 0))]], 0)),
        ("abcde", "acdex", (LOST, MORE), ([[(1, 1, (1, 0))], [(5, 4, (0, 1))]], 0)),
        ("", "", (LOST,), ([], 0)),
        ("", "x", (MORE,), None),
    ],
)
def test_a_fit_has_the_fewest_slips_and_in_fewer_than_half_of_the_reports(model, answers, slips, expected):
    assert told(fit(FittingTask(reports(model), recorded(answers), slips, None))) == expected


@pytest.mark.parametrize(
    ("open_end", "answers", "used"),
    [
        (None, "ab", None),
        (20, "ab", 2),
        (30, "ab", None),
        (39, "abc", 3),
        (40, "abc", None),
        (20, "abcd", 4),
        (0, "", 0),
    ],
)
def test_reports_after_the_end_of_the_recording_may_be_missing(open_end, answers, used):
    result = fit(FittingTask(reports("abcd"), recorded(answers), (), open_end))
    assert (None if result is None else result.path[-1][0]) == used


def test_slips_are_asked_for_up_to_the_last_answer():
    asked = []
    more = Slip(lambda place: asked.append(place.j) or [(0, 1)], lambda _places: Part("", ""), half=False)
    assert told(fit(FittingTask(reports("abc"), recorded("abxc"), (more,), None))) == ([[(2, 2, (0, 1))]], 0)
    assert max(asked) == 4


def swaying(model, answers, slips=()):
    """The fit of an engine that may report ``x`` instead, or nothing, at a cost of 1, if it knows how many there were.

    What is carried is the number of reports so far: one that is not used must not count.
    """
    declared, other = reports(model), reports("x" * len(model))

    def emissions(i, carry):
        if carry != i:
            return []
        return [(1, i + 1, None), (0, i + 1, declared[i]), (1, i + 1, other[i])]

    return told(fit(FittingTask(declared, recorded(answers), slips, None, emissions, 0, 2 * len(model))))


@pytest.mark.parametrize(
    ("model", "answers", "slips", "expected"),
    [
        ("abcde", "abcde", (), ([], 0)),
        ("abcde", "axcde", (), ([], 1)),
        ("abcde", "acde", (), ([], 1)),
        ("abcde", "axde", (), ([], 2)),
        ("abcd", "axd", (), None),  # it sways at half of the reports
        ("abcdef", "xaxxdef", (MORE,), ([[(0, 0, (0, 1))]], 2)),
        ("abcde", "yabcde", (MORE,), ([[(0, 0, (0, 1))]], 0)),
        ("abcde", "abycxe", (MORE,), ([[(2, 2, (0, 1))]], 1)),
        ("abcde", "abcdey", (MORE,), ([[(5, 5, (0, 1))]], 0)),
        ("abcde", "abcdx", (), ([], 1)),
    ],
)
def test_a_sway_costs_as_much_as_a_slip_and_is_carried_past_it(model, answers, slips, expected):
    assert swaying(model, answers, slips) == expected


def test_a_slip_that_uses_a_report_costs_beside_the_sway_there():
    """The second report is never the declared one, and its answer is neither."""
    declared = reports("abcdef")

    def emissions(i, carry):
        return [(int(i == 1), carry, replace(declared[i], rows=rows("x")) if i == 1 else declared[i])]

    wrong = Slip(lambda place: [(1, 1)] if place.i == 1 else [], lambda _places: Part("", ""))
    result = fit(FittingTask(declared, recorded("aycdef"), (wrong,), None, emissions, None, 1))
    assert told(result) == ([[(1, 1, (1, 1))]], 1)
    assert (result.path[-1], result.choices) == ((6, 6, None), 1)


def taking(answers, grain, sparql="SELECT ?s { ?s <urn:p> ?v }"):
    """Recorded answers, each an instant (or none) and the names of its rows."""
    run = recording("1: s p 1.", sparql)
    said = [Answer(("s",), tuple(row for name in names for row in rows(name)), instant=at) for at, names in answers]
    return Recorded(replace(run, answers=tuple(said)), ("s",), grain)


def report(names, at=10):
    return ModelReport(at, tuple(row for name in names for row in rows(name)), DueReport(at, ()))


@pytest.mark.parametrize(
    ("answers", "at", "names", "by_report", "by_row"),
    [
        ([(None, "ab"), (None, "c")], 0, "ab", 1, 1),
        ([(None, "ab"), (None, "c")], 0, "ba", 1, 1),
        ([(None, "ab"), (None, "c")], 1, "c", 2, 2),
        ([(None, "ab"), (None, "c")], 1, "a", None, None),
        ([(None, "ab")], 1, "ab", None, None),
        ([(None, "a")], 0, "aa", None, None),
        ([(10, "a")], 0, "a", 1, 1),
        ([(11, "a")], 0, "a", None, None),
        # Of several rows, one answer each.
        ([(None, "a"), (None, "b"), (None, "c")], 0, "ab", None, 2),
        ([(None, "a"), (None, "b"), (None, "c")], 0, "ba", None, 2),
        ([(None, "a"), (None, "b"), (None, "c")], 1, "bc", None, 3),
        ([(None, "a"), (None, "b")], 0, "abc", None, None),
        ([(None, "a"), (None, "bc")], 0, "ab", None, None),
        ([(None, "a"), (None, "bc")], 0, "abc", None, 2),
        ([(None, "a"), (None, ""), (None, "b")], 0, "ab", None, None),
        ([(10, "a"), (11, "b")], 0, "ab", None, None),
        ([(10, "a"), (10, "b")], 0, "ab", None, 2),
        # A report without rows is one answer without any.
        ([(None, ""), (None, "a")], 0, "", 1, 1),
        ([(None, "a")], 0, "", None, None),
        ([(11, "")], 0, "", None, 1),
        ([], 0, "", None, None),
    ],
)
def test_the_answers_that_give_a_report(answers, at, names, by_report, by_row):
    whole = taking(answers, Grain.REPORT)
    assert whole.take(report(names), at) == by_report
    single = whole.under(Grain.ROW)
    assert single.take(report(names), at) == by_row
    assert (whole.by_row, single.by_row, single.under(Grain.REPORT).by_row) == (False, True, False)
    assert whole.under(Grain.REPORT) is whole
    assert (single.count, single.bag, single.answers) == (whole.count, whole.bag, whole.answers)


def test_answers_are_in_the_order_of_their_instants_where_all_have_one():
    assert [taking([(20, "a"), (10, "b"), (30, "c")], Grain.REPORT).instant(at) for at in range(3)] == [10, 20, 30]
    assert [taking([(1, "a"), (0, "b")], Grain.REPORT).instant(at) for at in range(2)] == [0, 1]
    mixed = taking([(20, "a"), (None, "b"), (10, "c")], Grain.REPORT)
    assert [mixed.rows(at) for at in range(3)] == [rows("a"), rows("b"), rows("c")]
    assert mixed.bag == {rows(name)[0]: 1 for name in "abc"}


def literal(value, kind="decimal"):
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'


@pytest.mark.parametrize(
    ("sparql", "expected", "actual", "same"),
    [
        ("SELECT ?s { ?s <urn:p> ?v }", [literal(2)], [literal("2.0")], False),
        ("SELECT (SUM(?v) AS ?s) { ?s <urn:p> ?v }", [literal(2)], [literal("2.0")], True),
        ("SELECT (SUM(?v) AS ?s) { ?s <urn:p> ?v }", [literal(2)], [literal(3)], False),
        ("SELECT (SUM(?v) AS ?s) { ?s <urn:p> ?v }", [literal(2)], [literal("2.0", "double"), literal(2)], False),
        ("SELECT ?s { ?s <urn:p> ?v }", ["_:a", "_:b"], ["_:b", "_:c"], True),
        ("SELECT ?s { ?s <urn:p> ?v }", ["_:a", "_:b"], ["_:c", "<urn:a>"], False),
        ("SELECT ?s { ?s <urn:p> ?v }", ["<urn:a>", "<urn:b>"], ["<urn:b>", "<urn:a>"], True),
        ("SELECT ?s { ?s <urn:p> ?v }", ["<urn:a>", "<urn:a>"], ["<urn:b>", "<urn:a>"], False),
    ],
)
def test_bags_are_the_same_by_value_and_whatever_their_blank_nodes_are_named(sparql, expected, actual, same):
    held = taking([], Grain.REPORT, sparql)
    one, other = (tuple((cell,) for cell in cells) for cells in (expected, actual))
    assert held.same(one, other) is same
    assert held.same(one, other) is same  # remembered
    if same:
        assert held.fingerprint(one) == held.fingerprint(other)


def test_prints_tell_bags_apart_but_for_numbers_and_blank_nodes():
    held = taking([(None, "ab"), (None, "ba"), (None, "a")], Grain.REPORT)
    assert held.fingerprints == {held.fingerprint((*rows("a"), *rows("b"))): 2, held.fingerprint(rows("a")): 1}
    assert held.fingerprint(rows("a") * 2) != held.fingerprint(rows("a"))
    assert held.fingerprint((("_:x",),)) == held.fingerprint((("_:y",),)) != held.fingerprint(rows("a"))
    summed = taking([], Grain.REPORT, "SELECT (SUM(?v) AS ?s) { ?s <urn:p> ?v }")
    assert summed.fingerprint(((literal(1),),)) == summed.fingerprint(((literal(7),),))
    assert held.fingerprint(((literal(1),),)) != held.fingerprint(((literal(7),),))
