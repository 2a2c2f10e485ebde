"""A model found on the beginning of a run, tried on all of it in tasks: as judging the run under the model says."""

from dataclasses import replace

import pytest

from streamgauge.formats.places import RemotePlace
from streamgauge.formats.run import read_heads, write_run
from streamgauge.formats.stream import write
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Borders, Semantics
from streamgauge.oracle.diagnosis import whole_run
from streamgauge.oracle.diagnosis.diagnose import explained
from streamgauge.oracle.diagnosis.prefix import prefix
from streamgauge.oracle.diagnosis.whole_run import WholeRunFit, declared_by, tried
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from tests.notation import STREAM, stream

FORM = parse_sparql("SELECT ?s ?o { ?s <urn:p> ?o }")
QUERY = ContinuousQuery(FORM, (StreamWindow(STREAM, Window(1000, 1000)),))
DECLARED, ACTUAL = Semantics("declared"), Semantics("declared", borders=Borders.OPEN_CLOSED)
ELEMENTS = list(stream(" | ".join(f"{500 * number}: s{number} p o{number}." for number in range(40))))


def recorded(until: int) -> Run:
    """Answers of an engine whose windows are closed at their end, up to a time (ms), and right from there on."""
    wrong, right = (expected(ELEMENTS, QUERY, semantics, 20_000, 0) for semantics in (ACTUAL, DECLARED))
    due = [one for one in wrong if one.due.instant <= until] + [one for one in right if one.due.instant > until]
    answers = [Answer(one.variables, one.rows, (), "solutions", one.due.instant, None, 0) for one in due]
    return Run(RunHeader("mine", QUERY, "", "rspql", DECLARED, 20_000, 0), tuple(answers), ())


@pytest.mark.parametrize(("until", "fitting"), [(12_000, 12), pytest.param(20_000, 20, marks=pytest.mark.prove)])
def test_a_model_of_the_beginning_is_tried_on_the_whole_run(spark, tmp_path, until, fitting):
    run = recorded(until)
    write_run(tmp_path, run)
    write(ELEMENTS, tmp_path / "stream.parquet")
    part, held = prefix(run, iter(ELEMENTS), lambda count: run.answers[:count], 15, 100)
    explanation = explained(part, held)
    assert declared_by(run.header, explanation.found[0].case).semantics.borders is Borders.OPEN_CLOSED
    heads = read_heads(tmp_path, lambda _text, _dialect: QUERY)
    assert tried(spark, heads, tmp_path / "stream.parquet", explanation) == WholeRunFit(fitting, 20)


def test_what_no_declaration_describes_is_not_tried():
    explanation = explained(recorded(20_000), ELEMENTS)
    case = explanation.found[0].case
    assert declared_by(recorded(0).header, case) is not None
    assert declared_by(recorded(0).header, replace(case, row_rules=(lambda rows: rows,))) is None
    assert declared_by(replace(recorded(0).header, evaluator="definition"), case) is None


def test_of_a_remote_stream_no_more_is_read_than_a_prefix_needs(spark, tmp_path, monkeypatch):
    from streamgauge.spark.hadoop_tables import commit

    came = stream("0: a p b. b p c. | 5: b p c. c p d. | 9: c p d.")
    for name, part in zip("bca", came, strict=True):
        write([part], tmp_path / f"{name}.parquet")
    place = RemotePlace(f"file://{tmp_path}")
    commit(spark, place)
    (tmp_path / "a.parquet").write_bytes(b"not read")
    monkeypatch.setattr(whole_run, "TRIPLES_LIMIT", 2)
    assert list(whole_run._elements(place, lambda: spark)) == [came[0], replace(came[1], added=came[1].added[:1])]
