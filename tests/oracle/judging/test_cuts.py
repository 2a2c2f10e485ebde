"""LIMIT and OFFSET where legal answers cannot be described, and what a verdict says of datatypes."""

import json
from dataclasses import replace

import pytest

from streamgauge.formats.run import read_verdict, write_verdict
from streamgauge.model.semantics import R2S, Counting
from streamgauge.model.terms import XSD
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.cuts import Cut, InspectedCut, ties, with_cuts
from streamgauge.oracle.judging.judge import Means
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.notation import stream, term
from tests.oracle.runs import right_run
from tests.unsealed import unsealed

TIED = "0: a p 1. b p 1. c p 2. | 6: a p 1. c p 2."
LEAST = "SELECT ?x { ?x <urn:p> ?v } ORDER BY ?v LIMIT 1"


def judged(run, text, rules=JudgingRules()):  # noqa: B008
    return check(run, definition(stream(text)), 0, rules)


@pytest.mark.parametrize("sends", [R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES])
def test_a_difference_to_an_open_choice_is_unknown(sends):
    semantics = replace(RSPQL, r2s=sends, r2s_able=frozenset(R2S))
    run = right_run(semantics, text=TIED, sparql=LEAST, advance=10)
    with pytest.raises(RefusedError, match="depends on which was given before"):
        judged(run, TIED)
    ordered = LEAST.replace("ORDER BY ?v", "ORDER BY ?v ?x")
    assert judged(right_run(semantics, text=TIED, sparql=ordered, advance=10), TIED).judgement is Judgement.RIGHT


def test_sets_do_not_tell_how_many_rows_of_a_tie_were_kept():
    sets = replace(RSPQL, answers=Counting.SET)
    with pytest.raises(RefusedError, match="sets"):
        judged(right_run(sets, text=TIED, sparql=LEAST, advance=10), TIED)


def test_distinct_rows_with_several_keys_are_unknown():
    text = "0: a p 1. a p 3. b p 2."
    run = right_run(RSPQL, text=text, sparql=LEAST.replace("SELECT", "SELECT DISTINCT"), advance=5)
    with pytest.raises(RefusedError, match="DISTINCT"):
        judged(run, text)


def test_the_pool_is_part_of_what_is_expected():
    run = right_run(RSPQL, text=TIED, sparql=LEAST, advance=10)
    expect = with_cuts(definition(stream(TIED)))
    assert with_cuts(expect) is expect
    assert expect.together([(run.header.query, RSPQL)], 10, 0) == [expect(run.header.query, RSPQL, 10, 0)]
    tied, decided = expect(run.header.query, RSPQL, 10, 0)
    assert len(tied.rows) == 1
    assert [(set(pool.rows), pool.take) for pool in tied.pools] == [({("<urn:a>",), ("<urn:b>",)}, 1)]
    assert (decided.rows, decided.pools) == ((("<urn:a>",),), ())


def test_contents_are_looked_at_only_where_they_can_be():
    plain = with_cuts(lambda *asked: definition(stream(TIED))(*asked))
    assert isinstance(plain, Cut)
    assert not isinstance(plain, InspectedCut)
    run = right_run(RSPQL, text=TIED, sparql=LEAST, advance=10)
    assert check(run, plain, 0, JudgingRules()).judgement is Judgement.RIGHT


AVERAGE = "SELECT (AVG(?v) AS ?mean) (COUNT(*) AS ?n) { ?x <urn:p> ?v }"


def test_the_verdict_names_the_columns_whose_datatype_was_left_out(tmp_path):
    run = right_run(RSPQL, text="0: a p 1. b p 2.", sparql=AVERAGE, advance=5)
    double = replace(run.answers[0], added=((f'"1.5E0"^^<{XSD}double>', f'"2"^^<{XSD}integer>'),))
    sent = replace(run, answers=(double,))
    found = judged(sent, "0: a p 1. b p 2.")
    assert (found.judgement, found.retyped) == (Judgement.RIGHT, ("mean",))
    assert "the datatype of ?mean is another than expected and was left out" in found.tolerance
    exactly = judged(sent, "0: a p 1. b p 2.", JudgingRules(exact_datatypes=True))
    assert exactly.judgement is Judgement.WRONG
    assert exactly.tolerance.endswith("datatypes exactly")
    same = judged(run, "0: a p 1. b p 2.", JudgingRules(exact_datatypes=True))
    assert (same.judgement, same.retyped) == (Judgement.RIGHT, ())
    longer = replace(run.answers[0], added=((f'"1.50"^^<{XSD}decimal>', f'"2"^^<{XSD}integer>'),))
    form = judged(replace(run, answers=(longer,)), "0: a p 1. b p 2.", JudgingRules(exact_datatypes=True))
    assert (form.judgement, form.retyped) == (Judgement.RIGHT, ())
    write_verdict(tmp_path, found)
    assert read_verdict(tmp_path) == found


def test_a_verdict_written_before_has_no_columns_of_another_datatype(tmp_path):
    run = right_run(RSPQL, text="0: a p 1.", sparql=AVERAGE, advance=5)
    write_verdict(tmp_path, judged(run, "0: a p 1."))
    file = tmp_path / "verdict.json"
    data = unsealed(file)
    del data["verdict"]["retyped"]
    file.write_text(json.dumps(data))
    assert read_verdict(tmp_path).retyped == ()


def test_the_command_asks_for_datatypes_through_the_means():
    assert Means(lambda: None, exact_datatypes=True).exact_datatypes  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x ?v { ?x <urn:p> ?v { SELECT ?v { ?y <urn:p> ?v } ORDER BY DESC(?v) LIMIT 2 } }",
        "SELECT ?n { { SELECT ?v { ?y <urn:p> ?v } ORDER BY ?v LIMIT 1 } UNION { ?x <urn:p> ?n } }",
    ],
)
def test_a_limit_in_a_subquery_that_cuts_no_tie_is_judged(text):
    content = "0: a p 1. b p 2. c p 3."
    run = right_run(RSPQL, text=content, sparql=text, advance=5)
    assert judged(run, content).judgement is Judgement.RIGHT
    lost = replace(run, answers=(replace(run.answers[0], added=run.answers[0].added[1:]),))
    assert judged(lost, content).judgement is Judgement.WRONG


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { { SELECT ?x { ?x <urn:p> ?v } ORDER BY ?v LIMIT 1 } ?x <urn:p> ?w }",
        "CONSTRUCT { ?x <urn:q> ?v } WHERE { ?x <urn:p> ?v } ORDER BY ?v LIMIT 1",
    ],
)
def test_a_limit_within_a_query_that_cuts_a_tie_is_unknown(text):
    run = right_run(RSPQL, text=TIED, sparql=text, advance=10)
    with pytest.raises(RefusedError, match="depends on which it is"):
        judged(run, TIED)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ("9e0 10e0 9.0000000001e0 10.0000000001e0", "0 1 0 1"),
        ("-10e0 -9e0 -10.0000000001e0", "0 1 0"),
        ("1e0 1.0000000009e0 1.0000000018e0", "0 0 0"),
        ("1e0 1.00000001e0", "0 1"),
        ("1f 1.000009f 1.0001f", "0 0 1"),
        ("5 5.0000000001", "0 1"),
    ],
)
def test_computed_keys_that_rounding_may_exchange_are_one(values, names):
    """Neighbours by value, whatever the order of their texts."""
    terms = [term(each) for each in values.split()]
    found = ties(terms)
    groups = dict[object, str]()
    for each in found:
        groups.setdefault(each, str(len(groups)))
    assert " ".join(groups[each] for each in found) == names


@pytest.mark.parametrize("sends", [R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { ?x <urn:p> ?v } ORDER BY ?v LIMIT 2",
        "SELECT ?x { ?x <urn:p> ?v } ORDER BY ?v LIMIT 9",
        "SELECT ?v { ?x <urn:p> ?v } ORDER BY ?v LIMIT 1",
        "SELECT ?x { ?x <urn:p> ?v } ORDER BY ?v OFFSET 2",
    ],
)
def test_a_tie_that_is_kept_whole_or_whose_rows_are_equal_leaves_nothing_open(sends, text):
    run = right_run(replace(RSPQL, r2s=sends), text=TIED, sparql=text, advance=10)
    assert judged(run, TIED).judgement is Judgement.RIGHT
    expect = with_cuts(definition(stream(TIED)))
    assert not any(report.pools for report in expect(run.header.query, run.header.semantics, 10, 0))


def test_whether_an_inner_limit_cuts_a_tie_is_seen_in_the_bag_whatever_answers_are_compared_as():
    """Twice a, then b and c tied: LIMIT 2 keeps both of a, and never decides between b and c."""
    text = "0: a p 1. a q 1. b p 2. c p 2."
    inner = "SELECT ?x {{ {{ SELECT ?x {{ ?x ?q ?v }} ORDER BY ?v LIMIT {} }} }}"
    for counting in (Counting.SET, Counting.BAG):
        semantics = replace(RSPQL, answers=counting)
        run = right_run(semantics, text=text, sparql=inner.format(2), advance=5)
        assert judged(run, text).judgement is Judgement.RIGHT
        with pytest.raises(RefusedError, match="depends on which it is"):
            judged(right_run(semantics, text=text, sparql=inner.format(3), advance=5), text)


def test_an_evaluator_that_answers_one_query_at_a_time_is_asked_for_each():
    """Of a bound on a computed number three versions are asked for."""
    text = "0: a p 0.3e0. b p 0.30000001e0. c p 0.9e0."
    query = "SELECT ?x { ?x <urn:p> ?v FILTER(?v * 1.1e0 > 0.33e0) }"
    for semantics in (RSPQL, replace(RSPQL, r2s=R2S.ISTREAM), replace(RSPQL, notify_empty=False)):
        run = right_run(semantics, text=text, sparql=query, advance=10)
        asked = []

        def expect(query, *how, asked=asked):
            asked.append(query)
            return definition(stream(text))(query, *how)

        assert check(run, expect, 0, JudgingRules()).judgement is Judgement.RIGHT
        assert len(asked) >= 3
        lost = replace(run, answers=(replace(run.answers[0], added=()), *run.answers[1:]))
        assert check(lost, expect, 0, JudgingRules()).judgement is Judgement.WRONG


def test_a_limit_without_projection_keeps_the_columns():
    run = right_run(RSPQL, text=TIED, sparql="SELECT * { ?x <urn:p> ?v } LIMIT 2", advance=5)
    (report,) = with_cuts(definition(stream(TIED)))(run.header.query, RSPQL, 5, 0)
    assert (len(report.rows), len(report.rows[0]), report.variables) == (2, 2, run.header.query.form.variables)
    assert judged(run, TIED).judgement is Judgement.RIGHT


def test_distinct_rows_by_a_key_that_is_not_sent():
    run = right_run(RSPQL, text=TIED, sparql=LEAST.replace("SELECT", "SELECT DISTINCT"), advance=5)
    for sent, judgement in (("a", Judgement.RIGHT), ("b", Judgement.RIGHT), ("c", Judgement.WRONG)):
        answer = replace(run.answers[0], added=((f"<urn:{sent}>",),))
        assert judged(replace(run, answers=(answer,)), TIED).judgement is judgement
