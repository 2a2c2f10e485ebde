"""What SPARQL leaves open is no reason to call an answer wrong."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging import histories
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.oracle.worlds.conditions import CutOffError, OpenChoice, chosen, limit
from streamgauge.oracle.worlds.texts import joins
from streamgauge.query import parse_sparql
from streamgauge.sparql.values import typed
from tests.notation import STREAM, stream

ELEMENTS = stream("0: a p 'x'. | 1: b p 'y'. c p 'x'.")


def run_of(text: str, *rows: tuple[str, ...]) -> Run:
    form = parse_sparql(text)
    query = ContinuousQuery(form, (StreamWindow(STREAM, Window(2, 2)),))
    header = RunHeader("e", query, text, "rspql", Semantics("s"), advanced_to=2, started=0)
    return Run(header, (Answer(form.variables, rows),), ())


JOINED = "SELECT (GROUP_CONCAT(?o; separator='; ') AS ?all) { ?s <urn:p> ?o }"


@pytest.mark.parametrize(
    ("message", "judged"),
    [
        ("x; x; y", Judgement.RIGHT),
        ("y; x; x", Judgement.RIGHT),
        ("x; y", Judgement.WRONG),
        ("y; y; x", Judgement.WRONG),
    ],
)
def test_the_order_of_a_concatenation_is_open(message: str, judged: Judgement) -> None:
    run = run_of(JOINED, (f'"{message}"',))
    assert check(run, definition(ELEMENTS), 0, JudgingRules()).judgement is judged


@pytest.mark.parametrize(
    ("message", "judged"), [('"x"', Judgement.RIGHT), ('"y"', Judgement.RIGHT), ('"z"', Judgement.WRONG)]
)
def test_sample_may_give_any_value_of_its_group(message: str, judged: Judgement) -> None:
    run = run_of("SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }", (message,))
    assert check(run, definition(ELEMENTS), 0, JudgingRules()).judgement is judged


def test_a_comparison_with_a_sample_is_undecided_where_its_values_differ() -> None:
    text = "SELECT ?p (SAMPLE(?o) AS ?any) { ?s ?p ?o } GROUP BY ?p HAVING(SAMPLE(?o) = 'x')"
    for rows in ((), (("<urn:p>", '"x"'),)):
        verdict = check(run_of(text, *rows), definition(ELEMENTS), 0, JudgingRules())
        assert (verdict.judgement, verdict.undecided) == (Judgement.RIGHT, int(not rows))
    assert check(run_of(text, ("<urn:q>", '"x"')), definition(ELEMENTS), 0, JudgingRules()).judgement is Judgement.WRONG


def test_a_sample_whose_term_is_read_is_any_value_read() -> None:
    text = "SELECT (CONCAT(SAMPLE(?o), '!') AS ?any) { ?s <urn:p> ?o }"
    for said, judged in (("x!", Judgement.RIGHT), ("y!", Judgement.RIGHT), ("z!", Judgement.WRONG)):
        assert check(run_of(text, (f'"{said}"',)), definition(ELEMENTS), 0, JudgingRules()).judgement is judged


@pytest.mark.parametrize(
    ("text", "strings", "separator", "joined"),
    [
        ("a b c", ["a", "b c"], " ", True),
        ("b c a", ["a", "b c"], " ", True),
        ("a c b", ["a", "b c"], " ", False),
        ("ab", ["b", "c"], "", False),
        ("ba", ["b", "a"], "", True),
        ("aaa", ["a", "aa"], "", True),
        ("aaaab", ["a", "a", "aa", "b"], "", True),
        ("aaaac", ["a", "a", "aa", "b"], "", False),
        ("a a aa", ["a", "a", "aa"], " ", True),
        ("a aa aa", ["a", "a", "aa"], " ", False),
        ("", [""], ",", True),
        (",", ["", ""], ",", True),
        ("a", ["a", ""], ",", False),
        (",a", ["a", ""], ",", True),
    ],
)
def test_a_concatenation_is_its_pieces_in_some_order(
    text: str, strings: list[str], separator: str, joined: bool
) -> None:
    assert joins(text, strings, separator) is joined


@pytest.mark.parametrize(
    ("sends", "form", "legal"),
    [
        (R2S.ISTREAM, "SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }", ["z", "w"]),
        (R2S.ISTREAM, "SELECT (GROUP_CONCAT(?o) AS ?all) { ?s <urn:p> ?o }", ["z w", "w z"]),
        (R2S.RSTREAM, "CONSTRUCT { <urn:r> <urn:a> ?v } { SELECT (SAMPLE(?o) AS ?v) { ?s <urn:p> ?o } }", ["z", "w"]),
    ],
)
def test_an_open_term_is_any_legal_one_also_in_triples_and_differences(sends, form, legal):
    elements = stream("0: a p 'x'. b p 'y'. | 2: a p 'z'. a p 'w'. | 5: a q b.")
    semantics = Semantics("s", r2s=sends, r2s_able=frozenset(R2S))
    query = ContinuousQuery(parse_sparql(form), (StreamWindow(STREAM, Window(2, 2)),))
    own = definition(elements)(query, semantics, 4, 0)
    answers = tuple(Answer(report.variables, report.rows, instant=report.due.instant) for report in own)
    run = Run(RunHeader("e", query, form, "rspql", semantics, advanced_to=4, started=0), answers, ())
    for text in [*legal, "other"]:
        other = replace(answers[1], added=tuple((*row[:-1], f'"{text}"') for row in answers[1].added))
        verdict = check(replace(run, answers=(answers[0], other)), definition(elements), 0, JudgingRules())
        assert (verdict.judgement is Judgement.RIGHT) is (text in legal), text


@pytest.mark.parametrize(
    ("notify_empty", "judged"), [(True, Judgement.WRONG), (False, Judgement.UNKNOWN)], ids=["notified", "silent"]
)
def test_a_missed_report_is_wrong_where_empty_answers_are_sent_whatever_its_rows_are(notify_empty, judged) -> None:
    """Nobody can tell its rows; that it was to come is certain only where an empty one would come too."""
    run = run_of("SELECT (STR(AVG(?o)) AS ?t) { ?s <urn:p> ?o }")
    semantics = Semantics("s", notify_empty=notify_empty)
    run = replace(run, header=replace(run.header, semantics=semantics), answers=())
    elements = stream("0: a p 0.1. | 1: b p 0.2. c p 1e0.")
    verdict = check(run, definition(elements), 0, JudgingRules())
    assert (verdict.judgement, verdict.missed) == (judged, 1)


def test_the_nearest_legal_answer_is_that_of_one_choice() -> None:
    """All four rows have the same SAMPLE: where the first two have 'x', the others' 'y' are wrong, both of them."""
    text = "SELECT ?t ?any { { SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o } } ?t <urn:q> ?u }"
    elements = stream("0: a p 'x'. a p 'y'. | 1: b q u. c q u. d q u. e q u.")
    run = run_of(text, *((f"<urn:{t}>", f'"{o}"') for t, o in zip("bcde", "xxyy", strict=True)))
    (window,) = check(run, definition(elements), 0, JudgingRules()).windows
    assert (window.true_positives, window.expected, window.actual) == (2, 4, 4)


@pytest.mark.parametrize(("number", "judged"), [("61", Judgement.RIGHT), ("61.0e0", Judgement.WRONG)])
def test_datatypes_stay_exact_beside_a_report_that_only_another_legal_answer_sends(number, judged) -> None:
    """The average of 49.7f and 50.3f is above 50 or not: its answer is legal, where the evaluator sends none."""
    text = "SELECT ?s (AVG(?o) AS ?m) { ?s <urn:p> ?o } GROUP BY ?s HAVING(AVG(?o) > 50.0)"
    elements = stream("0: b p 61. | 2: a p 49.7f. a p 50.3f.")
    kinds = {"61": "decimal", "61.0e0": "double"}
    rows = [("<urn:b>", typed(number, kinds[number])), ("<urn:a>", typed("50.00001", "float"))]
    answers = tuple(Answer(("s", "m"), (row,), instant=at) for at, row in zip((2, 4), rows, strict=True))
    run = run_of(text)
    semantics = Semantics("s", notify_empty=False)
    run = replace(run, answers=answers, header=replace(run.header, advanced_to=4, semantics=semantics))
    verdict = check(run, definition(elements), 0, JudgingRules(exact_datatypes=True))
    assert (verdict.judgement, len(verdict.windows)) == (judged, 2)


@pytest.mark.parametrize("sends", [R2S.RSTREAM, R2S.ISTREAM])
def test_a_wrong_answer_is_scored_beside_the_nearest_legal_one(sends) -> None:
    """One of two samples is not a value of its group: a row of two is right, and the report was answered."""
    elements = stream("0: a p 'x'. b p 'y'. | 1: a q 'z'. b q 'w'.")
    text = "SELECT ?p (SAMPLE(?o) AS ?any) { ?s ?p ?o } GROUP BY ?p"
    run = run_of(text, ("<urn:p>", '"y"'), ("<urn:q>", '"y"'))
    semantics = Semantics("s", r2s=sends, r2s_able=frozenset(R2S))
    run = replace(run, header=replace(run.header, semantics=semantics))
    (window,) = check(run, definition(elements), 0, JudgingRules()).windows
    assert (window.due, window.expected, window.actual, window.true_positives) == (True, 2, 2, 1)
    assert (window.precision, window.recall, window.surplus) == (0.5, 0.5, (("<urn:q>", '"y"'),))


@pytest.mark.parametrize(
    ("pairs", "first", "reason"),
    [
        (2, "x", ""),
        (2, "y", ""),
        (1, "x", "the answer before cannot be told"),
        (1, "y", "more than 1 histories are legal"),
    ],
)
def test_more_histories_than_are_compared_are_unknown(monkeypatch, pairs, first, reason) -> None:
    """One answer before and two legal ones now are two pairs; the evaluator's own sample is x."""
    monkeypatch.setattr(histories, "MAX_PAIRS", pairs)
    elements = stream("0: a p 'x'. b p 'y'. | 2: a p 'x'. b p 'y'.")
    text = "SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }"
    semantics = Semantics("s", r2s=R2S.ISTREAM, r2s_able=frozenset(R2S))
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(2, 2)),))
    second = "y" if first == "x" else "x"
    answers = tuple(Answer(("any",), ((f'"{term}"',),), instant=at) for at, term in ((2, first), (4, second)))
    run = Run(RunHeader("e", query, text, "rspql", semantics, advanced_to=4, started=0), answers, ())
    verdict = check(run, definition(elements), 0, JudgingRules())
    assert (verdict.judgement, verdict.reason) == (Judgement.UNKNOWN if reason else Judgement.RIGHT, reason)


def test_a_place_has_at_most_2000_cases_and_the_message_counts_the_choices() -> None:
    conditions = [chosen(OpenChoice(("a", "b"), reason), "a") for reason in ("a sample", "an order", "a sample")]
    limit(2_000, conditions)
    with pytest.raises(CutOffError, match=r"more than 2,000 .* open are: a sample \(2 times\); an order$"):
        limit(2_001, conditions)


@pytest.mark.parametrize("sends", [R2S.RSTREAM, R2S.ISTREAM])
def test_the_nearest_answer_is_the_one_that_differs_in_the_fewest_rows(sends) -> None:
    """The members of one group of two: a alone, or b, c and d, of which b and c were sent."""
    elements = stream("0: g k 1. h k 2. a in 1. b in 2. c in 2. | 1: d in 2.")
    text = "SELECT ?s { { SELECT (SAMPLE(?k) AS ?g) { ?x <urn:k> ?k } } ?s <urn:in> ?g }"
    run = run_of(text, ("<urn:b>",), ("<urn:c>",))
    semantics = Semantics("s", r2s=sends, r2s_able=frozenset(R2S))
    (window,) = check(
        replace(run, header=replace(run.header, semantics=semantics)), definition(elements), 0, JudgingRules()
    ).windows
    assert (window.true_positives, window.missing, window.surplus) == (2, (("<urn:d>",),), ())
