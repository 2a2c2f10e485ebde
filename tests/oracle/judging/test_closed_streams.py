"""Over a stream that leaves nothing open wrong answers are not compared with other legal ones: there are none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Origin, Semantics
from streamgauge.model.verdict import Verdict
from streamgauge.oracle.expected.reports import Definition, definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL, YABENCH_CHANGE
from tests.examples import examples
from tests.notation import STREAM, stream

QUERIES = (
    "SELECT ?s ?v { ?s <urn:p> ?v FILTER(?v > 2) }",
    "SELECT ?s { ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w } FILTER(!BOUND(?w) || ?w = 3) }",
    "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?v FILTER(?v < 4) } GROUP BY ?s",
    "ASK { ?s <urn:p> ?v FILTER(?v = 3) }",
)
SEMANTICS = (
    *(replace(RSPQL, r2s=one, r2s_able=frozenset(R2S)) for one in (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM)),
    replace(YABENCH_CHANGE, name="change"),
)


class OpenDefinition(Definition):
    """The definition over a stream of which nothing is known, so that every content is looked at."""

    def objects(self, _query, _class_of):
        return ['"a"@en']


class BlindDefinition(Definition):
    """The definition over a stream of which no content may be looked at."""

    def look(self, *_asked):
        raise AssertionError("a content was looked at")


def run_of(query: ContinuousQuery, semantics: Semantics, text: str, shift: int, answers: list[Answer]) -> Run:
    header = RunHeader("e", query, text, "rspql", semantics, 30, started=0)
    moved = [replace(one, instant=None if one.instant is None else one.instant + shift) for one in answers]
    return Run(header, tuple(moved), ())


triples = st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), st.integers(1, 5)).map(
    "{0[0]} {0[1]} {0[2]}.".format
)
streams = st.lists(st.tuples(st.integers(0, 29), triples), min_size=1, max_size=12)


@examples(40, prove=3000)
@given(
    streams, streams, st.sampled_from(QUERIES), st.sampled_from(SEMANTICS), st.sampled_from([0, 0, 5]), st.booleans()
)
def test_verdicts_are_as_if_every_content_was_looked_at(recorded, other, text, semantics, shift, named):
    """The answers are those over another stream: right, wrong, missed and surplus ones."""
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(10, 5)),))
    elements, others = (
        stream(" | ".join(f"{time}: {graph}" for time, graph in sorted(one))) for one in (recorded, other)
    )
    answers = [
        Answer(report.variables, report.rows, instant=report.due.instant if named else None, kind=kind_of(text))
        for report in definition(others)(query, semantics, 30, 0)
    ]
    run = run_of(query, semantics, text, shift, answers)
    closed, opened = (check(run, one(elements), 0, JudgingRules()) for one in (BlindDefinition, OpenDefinition))
    assert in_any_order(closed) == in_any_order(opened)


def in_any_order(verdict: Verdict) -> Verdict:
    windows = (replace(one, missing=sorted(one.missing), surplus=sorted(one.surplus)) for one in verdict.windows)
    return replace(verdict, windows=tuple(windows))


def kind_of(text: str) -> str:
    return "boolean" if text.startswith("ASK") else "solutions"


class CountingDefinition(Definition):
    """The definition over a stream, which counts how often its terms are read."""

    count = 0

    def objects(self, query, class_of):
        self.count += 1
        return super().objects(query, class_of)


@pytest.mark.parametrize(("text", "count"), [(QUERIES[0], 1), ("SELECT (SUM(?v) AS ?n) { ?s <urn:p> ?v }", 0)])
def test_terms_are_read_once_for_every_t0_and_never_for_a_query_that_computes(text, count):
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(10, 5)),))
    semantics = replace(RSPQL, origin=Origin.SEARCH, time_unit=1)
    answer = Answer(query.form.variables, (('"9"^^<http://www.w3.org/2001/XMLSchema#integer>',) * 2,)[: len(text) < 50])
    expect = CountingDefinition(stream("0: a p 3. | 12: b p 4."))
    check(run_of(query, semantics, text, 0, [answer, answer]), expect, 0, JudgingRules())
    assert expect.count == count


@pytest.mark.parametrize("value", ["'x'@en", "12345678901234567890"])
def test_one_open_term_anywhere_in_the_stream_has_contents_looked_at(value):
    text = QUERIES[0]
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(10, 5)),))
    elements = stream(f"0: a p 3. | 20: b p {value}.")
    run = run_of(query, RSPQL, text, 0, [Answer(("s", "v"), (), instant=5)])
    with pytest.raises(AssertionError, match="looked at"):
        check(run, BlindDefinition(elements), 0, JudgingRules())
