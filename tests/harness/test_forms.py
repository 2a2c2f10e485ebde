"""Both forms of the pipe: the same run is recorded, at a pace, as fast as possible, preloaded, and task by task."""

import io
from dataclasses import replace

import pytest

from streamgauge.formats.pipe import CLOSE, FORMS, GO, READY, READY_FOR_ARROW, Form, encode_task, word
from streamgauge.formats.stream import StoredStream, to_table
from streamgauge.harness.forms import ARROW_FROM, BatchForm, LineForm, offered
from streamgauge.harness.host import serve
from streamgauge.harness.systems import RunLimits
from streamgauge.harness.systems.pipe import PipeProgram, program, task_of
from streamgauge.model.element import StreamElement
from streamgauge.model.run import RunHeader
from streamgauge.query import parse
from streamgauge.semantics.profiles import CSPARQL

QUERY = """SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 1s STEP 500ms]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o FILTER(?o > 2) } }
"""
XSD = "http://www.w3.org/2001/XMLSchema#integer"
STREAM = [
    StreamElement(
        "urn:s", 10 * n, n, ((f"<urn:{n}>", "<urn:p>", f'"{n % 5}"^^<{XSD}>'), ("<urn:a>", "<urn:q>", '"b c"'))
    )
    for n in range(200)
]
HEADER = RunHeader("live", parse(QUERY), QUERY, "rspql", CSPARQL, 2500, 0)


def test_a_program_says_in_which_form_it_takes_elements():
    assert word(READY).form == "lines"
    assert word(READY_FOR_ARROW).form == "arrow"
    assert word(b'{"ready":true,"elements":"parquet"}\n') is None


def test_a_stream_that_is_known_to_be_short_goes_as_lines():
    assert offered(FORMS, STREAM[:1] * (ARROW_FROM - 1)) == ("lines",)
    assert offered(FORMS, STREAM[:1] * ARROW_FROM) == FORMS
    assert offered(FORMS, iter(STREAM)) == offered(FORMS, StoredStream(to_table(STREAM[:1]))) == FORMS


def said(run):
    """All that a record holds but when it was."""
    assert run.header.failure is None
    answers = [replace(answer, received=0) for answer in run.answers]
    return answers, [(element.sequence, element.time, element.size) for element in run.fed if element.sequence >= 0]


def served(forms: tuple[Form, ...], form: LineForm | BatchForm, **options: object) -> list[bytes]:
    """What a program says to two tasks, one behind the other."""
    task = encode_task(replace(task_of(HEADER), forms=forms, options=options))
    stream = b"".join([portion.data for portion in form.portions(STREAM)])
    whole = stream + form.encoded([form.advance(2500)]) + form.end() + (GO + GO if options else b"") + CLOSE
    out = io.BytesIO()
    serve("live", io.BufferedReader(io.BytesIO(task + whole + task + whole), 1000), out)
    return [line for line in out.getvalue().splitlines(keepends=True) if b"ready" not in line]


@pytest.mark.slow
def test_the_answers_are_the_same_in_both_forms():
    expected = served(("lines",), LineForm())
    assert len(expected) == 10
    assert served(FORMS, BatchForm()) == served(FORMS, BatchForm(), preload=True) == expected


@pytest.mark.server
def test_a_run_is_recorded_alike_in_both_forms(monkeypatch):
    monkeypatch.setattr("streamgauge.harness.forms.ARROW_FROM", len(STREAM))
    stored = StoredStream(to_table(STREAM))
    with PipeProgram(program("live"), RunLimits()) as system:
        results = []
        for header, stream, forms in (
            (HEADER, STREAM, ("lines",)),
            (HEADER, stored, FORMS),
            (replace(HEADER, factor=5.0), stored, FORMS),
            (HEADER, STREAM, FORMS),
        ):
            system._forms = forms
            results.append(said(system.record(header, stream, task_of(header))))
    assert len(results[0][1]) == 200
    assert all(item == results[0] for item in results)
