"""Runs that are right by construction, to be made wrong by the tests."""

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Grain, Semantics
from streamgauge.model.terms import Row
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import CAME, SIGN, WENT, expected
from tests.notation import STREAM, stream

TEXT = " | ".join(f"{t}: s{t % 3} p o{t}." for t in range(20))


def right_run(semantics: Semantics, text: str = TEXT, sparql: str = "SELECT ?s { ?s <urn:p> ?o }", window=(5, 5),
              advance: int = 20, named: bool = True) -> Run:  # fmt: skip
    """A run whose answers are the definition's, received 1 ms after the element of that time was fed."""
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, Window(*window)),))
    elements = stream(text)
    t0 = semantics.t0
    answers = []
    for report in expected(elements, query, semantics, advance, t0):
        due = report.due
        bags = [report.rows] if semantics.grain is Grain.REPORT else [(row,) for row in report.rows]
        for rows in bags:
            answer = replace(_said(report.variables, rows), received=due.instant * 1_000_000 + 1_000_000)
            answers.append(replace(answer, instant=due.instant, scope=(due.start, due.end)) if named else answer)
    fed = [Fed(e.sequence, e.time, e.time * 1_000_000, e.time * 1_000_000, len(e.added)) for e in elements]
    fed.append(Fed(-1, advance, advance * 1_000_000, advance * 1_000_000))
    header = RunHeader("test", query, sparql, "rspql", semantics, advance, 0)
    return Run(header, tuple(answers), tuple(fed))


def _said(columns: tuple[str, ...], rows: Sequence[Row]) -> Answer:
    """An answer; where rows have a sign, those that came and those that went."""
    if SIGN not in columns:
        return Answer(columns, tuple(rows))
    came, went = (tuple(row[:-1] for row in rows if row[-1] == sign) for sign in (CAME, WENT))
    return Answer(columns[:-1], came, went)
