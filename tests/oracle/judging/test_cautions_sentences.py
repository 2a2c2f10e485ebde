"""The sentences about a whole verdict, from the run and the stream table."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import write
from streamgauge.model.query import StreamWindow, Window
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.cautions import cautions
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CSPARQL, RSPQL
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = "1: s1 p o1. | 6: s2 p o2."
QUIET = replace(CSPARQL, name="quiet", origin=RSPQL.origin, time_unit=1)


def found(tmp_path, sparql, answers=None, semantics=RSPQL, static=()):
    run = right_run(semantics, text=TEXT, sparql=sparql, advance=10)
    run = replace(run, header=replace(run.header, query=run.header.query.with_static(static)))
    if answers is not None:
        run = replace(run, answers=tuple(answers(run.answers)))
    write(stream(TEXT), tmp_path / "stream.parquet")
    return cautions(run, check(run, definition(stream(TEXT)), 0, JudgingRules()), tmp_path / "stream.parquet")


def nothing(_answers):
    return ()


def something(answers):
    return [replace(answer, added=(("<urn:x>",),)) for answer in answers]


def gone(answers):
    """Rows that are removed though they never came."""
    return [replace(answer, removed=(("<urn:x>",),)) for answer in answers]


OTHER = "SELECT ?s { ?s <urn:P> ?o }"


@pytest.mark.parametrize(
    ("answers", "head"),
    [
        (None, "Every one of 2 due reports expected nothing, and every answer was empty: "),
        (nothing, "Every one of 2 due reports expected nothing, and nothing was answered: "),
        (something, "Every one of 2 due reports expected nothing: "),
        (gone, "Every one of 2 due reports expected nothing: "),
    ],
)
def test_what_was_answered_is_said_beside_what_was_expected(tmp_path, answers, head):
    first, second = found(tmp_path, OTHER, answers)
    assert first == f"{head}this verdict says little about the engine."
    assert second == (
        "Likely cause: <urn:P> of the query is in no triple of the stream, and there is no static data; "
        "the nearest that is there is <urn:p>."
    )


def test_static_data_that_is_there_is_not_told_to_be_missing(tmp_path):
    _, second = found(tmp_path, OTHER, static=(("<urn:s1>", "<urn:room>", "<urn:r>"),))
    assert second == (
        "Likely cause: <urn:P> of the query is in no triple of the stream; the nearest that is there is <urn:p>."
    )


def test_an_iri_of_the_static_data_is_there(tmp_path):
    sparql = "SELECT ?s { ?s <urn:p> ?o ; <urn:room> ?r }"
    static = (("<urn:s9>", "<urn:room>", "<urn:r>"),)
    first, second = found(tmp_path, sparql, static=static)
    assert first.startswith("Every one of 2 due reports expected nothing")
    assert second == "No pattern of the query matched: look at its constants and filters."


def test_no_report_was_due(tmp_path):
    silent = "SELECT ?s { ?s <urn:p> ?o }"
    run = right_run(QUIET, text="", sparql=silent, advance=10)
    write(stream(""), tmp_path / "stream.parquet")
    verdict = check(run, definition(()), 0, JudgingRules())
    assert cautions(run, verdict, tmp_path / "stream.parquet") == ()
    surplus = replace(right_run(RSPQL, text=TEXT, advance=10), header=run.header)
    verdict = check(surplus, definition(()), 0, JudgingRules())
    (first, *_) = cautions(surplus, verdict, tmp_path / "stream.parquet")
    assert first == "No report was due: this verdict says little about the engine."


def test_at_most_three_iris_are_named(tmp_path):
    sparql = "SELECT ?s { ?s <urn:q1> ?a ; <urn:q2> ?b ; <urn:q3> ?c ; <urn:q4> ?d }"
    causes = found(tmp_path, sparql)[1:]
    assert [cause.split(" of the query")[0] for cause in causes] == [f"Likely cause: <urn:q{n}>" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("pattern", "missing"),
    [
        ("?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?x } FILTER(?s = 1)", False),
        ("?s <urn:p> ?o MINUS { ?o <urn:q> ?x } FILTER(?s = 1)", False),
        ("{ ?s <urn:q> ?o } UNION { ?s <urn:p> ?o FILTER(?s = 1) }", False),
        ("?s <urn:p> ?o FILTER(?o = <urn:q>)", False),
        ("{ ?s <urn:p> ?o } { ?s <urn:q> ?o }", True),
        ("{ SELECT ?s { ?s <urn:q> ?o } }", True),
        ("?s <urn:q> ?o OPTIONAL { ?o <urn:p> ?x }", True),
        ("?s <urn:p> <urn:q>", True),
        ("<urn:q> <urn:p> ?s", True),
    ],
)
def test_an_iri_that_every_solution_needs(tmp_path, pattern, missing):
    causes = found(tmp_path, f"SELECT ?s {{ {pattern} }}")[1:]
    assert any("<urn:q>" in cause for cause in causes) is missing


def test_the_engine_is_doubted_where_rows_were_expected(tmp_path):
    (sentence,) = found(tmp_path, "SELECT ?s { ?s <urn:p> ?o }", nothing)
    assert sentence == (
        f"Nothing was answered although rows were expected: was the engine given the stream <{STREAM}> and this "
        "query's IRIs?"
    )
    static = (("<urn:s1>", "<urn:room>", "<urn:r>"),) * 2
    (sentence,) = found(tmp_path, "SELECT ?s { ?s <urn:p> ?o }", lambda _: [], static=static)
    assert "the 2 triples of static data and this query's IRIs?" in sentence


def test_every_stream_that_is_read_is_named_once(tmp_path):
    run = right_run(RSPQL, text=TEXT, advance=10)
    windows = tuple(StreamWindow(name, Window(5, 5), f"urn:w{n}") for n, name in enumerate(("urn:a", STREAM, "urn:a")))
    form = parse_sparql("SELECT ?s { GRAPH <urn:w1> { ?s <urn:p> ?o } }")
    run = replace(
        run, header=replace(run.header, query=replace(run.header.query, windows=windows, form=form)), answers=()
    )
    write(stream(TEXT), tmp_path / "stream.parquet")
    verdict = check(run, definition(stream(TEXT)), 0, JudgingRules())
    first, second = cautions(run, verdict, tmp_path / "stream.parquet")
    assert f"was the engine given the stream <urn:a> and <{STREAM}> and" in first
    assert second == f"Likely cause: the query reads the stream <urn:a>, and what was recorded is <{STREAM}>."


def test_rows_on_both_sides_need_no_caution(tmp_path):
    assert found(tmp_path, "SELECT ?s { ?s <urn:p> ?o }") == ()


@pytest.mark.parametrize(("others", "near"), [(19_999, "<urn:near#Q>"), (20_000, None)])
def test_the_nearest_is_sought_among_20_000_iris(tmp_path, others, near):
    """Static data of one subject and predicate each, the nearest last; the stream's own five IRIs come first."""
    static = [("<urn:x>", "<urn:x>", f"<urn:{n}>") for n in range(others - 6)]
    sparql = "SELECT ?s { ?s <http://example.org/of/some/length/and/more#Q> ?o }"
    causes = found(tmp_path, sparql, static=(*static, ("<urn:x>", "<urn:x>", "<urn:near#Q>")))[1:]
    assert [cause.partition("the nearest that is there is ")[2] for cause in causes] == [f"{near}." if near else ""]


def test_nothing_is_named_where_nothing_is_near(tmp_path):
    iri = "<http://example.org/of/some/length/and/more#Q>"
    _, second = found(tmp_path, f"SELECT ?s {{ ?s {iri} ?o }}")
    assert second == f"Likely cause: {iri} of the query is in no triple of the stream, and there is no static data."
