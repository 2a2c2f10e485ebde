"""What SPARQL leaves open is no reason to call an answer wrong."""

import pytest

from streamgauge.bench.expected.reports import definition
from streamgauge.bench.judging.left_open import concatenations, settled
from streamgauge.bench.judging.oracle import Rules, check
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.query import parse_sparql
from tests.notation import STREAM, stream

ELEMENTS = stream("0: a p 'x'. | 1: b p 'y'. c p 'x'.")


def run_of(text: str, *rows: tuple[str, ...]) -> Run:
    form = parse_sparql(text)
    query = ContinuousQuery(form, (StreamWindow(STREAM, Window(2, 2)),))
    header = RunHeader("e", query, text, "rspql", Semantics("s"), advanced_to=2, started=0)
    return Run(header, (Answer(form.variables, rows),), ())


JOINED = "SELECT (GROUP_CONCAT(?o; separator='; ') AS ?all) { ?s <urn:p> ?o }"


@pytest.mark.parametrize(
    ("said", "judged"),
    [
        ("x; x; y", Judgement.RIGHT),
        ("y; x; x", Judgement.RIGHT),
        ("x; y", Judgement.WRONG),
        ("y; y; x", Judgement.WRONG),
    ],
)
def test_the_order_of_a_concatenation_is_open(said: str, judged: Judgement) -> None:
    run = run_of(JOINED, (f'"{said}"',))
    assert check(run, definition(ELEMENTS), 0, Rules()).judgement is judged


def test_sample_is_unknown() -> None:
    run = run_of("SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }", ('"x"',))
    verdict = check(run, definition(ELEMENTS), 0, Rules())
    assert verdict.judgement is Judgement.UNKNOWN
    assert "SAMPLE may give any value" in verdict.reason


def test_only_concatenations_are_touched() -> None:
    form = parse_sparql("SELECT ?s (GROUP_CONCAT(?o; separator='\\n') AS ?all) { ?s ?p ?o } GROUP BY ?s")
    assert concatenations(form) == {1: "\n"}
    assert settled(form)([('"b a"', '"d\\nc"'), ('"b a"', None)]) == (('"b a"', '"c\\nd"'), ('"b a"', None))
    plain = parse_sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
    assert concatenations(plain) == {}
