"""The oracle judges updates: right ones, sums that were rounded otherwise, and one that is wrong."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import write
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import UPDATES
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, stream

DOUBLE = "^^<http://www.w3.org/2001/XMLSchema#double>"
FORMS = {
    "rows": "SELECT ?s ?w { ?s <urn:v> ?v BIND(?v * 0.1 AS ?w) FILTER(?v > 1) }",
    "mean": "SELECT ?s (AVG(?v) AS ?w) { ?s <urn:v> ?v } GROUP BY ?s",
    "having": "SELECT ?s (SUM(?v * 2) AS ?w) { ?s <urn:v> ?v } GROUP BY ?s HAVING(SUM(?v * 2) > 2)",
}


@pytest.fixture
def came():
    plain = stream("0: a v 1. | 1: b v 4. | 2: a v 2. | 2: a v 2. | 6: a v 1. c v 1. | 7: a w 1.")
    return [replace(item, added=tuple((s, p, f'"{o[1]}.1E0"{DOUBLE}') for s, p, o in item.added)) for item in plain]


def recorded(came, form: str, change) -> Run:
    query = ContinuousQuery(parse_sparql(form), (StreamWindow(STREAM, Window(5, 5), None),))
    due = expected(came, query, UPDATES, 7, 0)
    said = [
        Answer(
            report.variables,
            tuple(map(change, report.rows)),
            (),
            "solutions",
            report.due.instant,
            (report.due.start, 0),
        )
        for report in due
    ]
    header = RunHeader("spark", query, form, "rspql", UPDATES, 7, 0, evaluator="spark")
    return Run(header, tuple(said), tuple(Fed(report.sequence, report.time, 0, 0) for report in came))


def verdict(came, form: str, root, change=lambda row: row) -> Judgement:
    run = recorded(came, form, change)
    write(came, root / "stream.parquet")
    return judge_run(run, root / "stream.parquet", Means(lambda: pytest.fail("no Spark"), "definition")).judgement


@pytest.mark.parametrize("form", FORMS)
def test_right_updates_are_right_however_they_are_rounded(came, form, tmp_path):
    assert verdict(came, FORMS[form], tmp_path) is Judgement.RIGHT

    def rounded(row):
        number = float(row[1].split('"')[1])
        came_so = number in (1.1, 4.1)  # the mean of one number is that number
        return row if came_so else (row[0], f'"{number * (1 + 1e-15)!r}"{DOUBLE}')

    assert verdict(came, FORMS[form], tmp_path, rounded) is Judgement.RIGHT


@pytest.mark.parametrize("form", FORMS)
def test_a_number_that_no_implementation_gives_is_wrong(came, form, tmp_path):
    assert verdict(came, FORMS[form], tmp_path, lambda row: (row[0], f'"2.3"{DOUBLE}')) is Judgement.WRONG


def test_a_diagnosis_of_updates_is_refused_in_words(came):
    with pytest.raises(RefusedError, match="updates share no field"):
        diagnose(recorded(came, FORMS["mean"], lambda row: row), came)
