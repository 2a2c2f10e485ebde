"""NOW() is the report's instant: printed, judged and diagnosed as that; refused where a report has none."""

from dataclasses import replace

import pytest

from streamgauge.engines import load
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Report, Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.gracious import refuse
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse, parse_sparql, print_query
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.profiles import PROFILES, RSPQL
from streamgauge.semantics.refusal import meaningless
from streamgauge.servers.fragments.live_queries import RefusedQueryError, live_query
from tests.notation import STREAM, stream
from tests.oracle.runs import TEXT, right_run

SPARQL = "SELECT ?s (NOW() AS ?n) { ?s <urn:p> ?o }"
QUERY = ContinuousQuery(parse_sparql(SPARQL), (StreamWindow(STREAM, Window(5, 5)),), sparql=SPARQL)


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "sparqlstream"])
def test_it_is_printed_and_read_in_every_dialect_with_expressions(dialect):
    sized = replace(QUERY, windows=(StreamWindow(STREAM, Window(5000, 5000)),))
    text = print_query(sized, dialect)
    assert "NOW()" in text
    assert parse(text, dialect).form == QUERY.form


def test_a_run_is_judged_by_the_instants_of_its_reports():
    run = right_run(RSPQL, sparql=SPARQL)
    expect = definition(stream(TEXT))
    assert {row[1] for row in run.answers[1].added} == {
        '"1970-01-01T00:00:00.010Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    }
    assert check(run, expect, 0, JudgingRules()).judgement is Judgement.RIGHT
    late = replace(run.answers[1], added=tuple((row[0], run.answers[2].added[0][1]) for row in run.answers[1].added))
    verdict = check(replace(run, answers=(run.answers[0], late, *run.answers[2:])), expect, 0, JudgingRules())
    assert [window.right for window in verdict.windows] == [True, False, True, True]


def test_a_run_of_smaller_windows_is_explained():
    """The same contents at two instants are two answers."""
    smaller = right_run(RSPQL, sparql=SPARQL, window=(4, 5))
    wrong = replace(smaller, header=replace(smaller.header, query=right_run(RSPQL, sparql=SPARQL).header.query))
    diagnosis = diagnose(wrong, stream(TEXT))
    assert diagnosis.exact
    assert "4" in str(diagnosis.models[0])


@pytest.mark.parametrize("engine", ["csparql", "cqels", "yasper", "rspjs"])
def test_engines_whose_now_is_the_clock_on_the_wall_are_named(engine):
    subject = load(engine)
    seconds = replace(QUERY, windows=(StreamWindow(STREAM, Window(5000, 5000)),))
    assert "machine's clock" in str(subject.refuse(seconds, PROFILES[subject.PROFILES[0]]))


def test_without_one_instant_it_is_refused_by_name():
    expiring = Semantics("e", report=frozenset({Report.EXPIRATION}), borders=Borders.CLOSED_OPEN, period=5)
    landmark = replace(QUERY, windows=(StreamWindow(STREAM, Window(5, 5, "landmark")),))
    assert "NOW() with reports at expirations" in str(meaningless(landmark, expiring))
    assert "NOW() has another answer" in str(refuse(QUERY, None))
    with pytest.raises(RefusedQueryError, match=r"NOW\(\)"):
        live_query(SPARQL)
    with pytest.raises(ValueError, match="say at which instant"):
        Snapshot(QUERY).rows(((),))
