"""The answers that real engines gave wrong (CSRBench, 2013): each is diagnosed, and comes out exactly."""

import json
from pathlib import Path

import pyoxigraph as ox
import pytest

from streamgauge.formats.canonical import Canonical
from streamgauge.harness.importing.csrbench import horizon
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run, RunHeader
from streamgauge.oracle.diagnosis.diagnose import explained, worked
from streamgauge.query import parse
from streamgauge.semantics.profiles import PROFILES
from streamgauge.workloads.csrbench import QUERIES

STREAM = "http://ex.org/streams/test"
CANONICAL = Canonical()


@pytest.fixture(scope="module")
def elements(shared_data):
    return tuple(
        StreamElement(STREAM, n * 1000, n, tuple(CANONICAL.triples(ox.parse(
            (shared_data / f"csrbench/stream/data_{n:02}.ttl").read_bytes(), format=ox.RdfFormat.TURTLE))))
        for n in range(34)
    )  # fmt: skip


def term(value):
    if value["type"] == "uri":
        return f"<{value['value']}>"
    kind = value.get("datatype")
    return CANONICAL.term(
        ox.Literal(value["value"], datatype=ox.NamedNode(kind)) if kind else ox.Literal(value["value"])
    )


def recorded(data: Path, engine: str, query: int) -> Run:
    text = (QUERIES / f"q{query}.rq").read_text()
    answers = []
    file = data / f"csrbench/answers/2013-head/{engine}-answer-{query}.json"
    for one in json.loads(file.read_text())["relations"]:
        names = tuple(one["head"]["vars"])
        rows = (entry["binding"] for entry in one["results"]["bindings"])
        answers.append(Answer(names, tuple(tuple(term(row[name]) for name in names) for row in rows)))
    continuous_query = parse(text)
    header = RunHeader(
        engine, continuous_query, text, "rspql", PROFILES[engine], horizon(file)(continuous_query, 33_000), 0
    )
    return Run(header, tuple(answers), ())


FAILING = {
    ("csparql", 5): {"partial_head = True", "border jitter at 4 borders"},
    ("csparql", 3): {"numbers as xsd:integer", "border jitter at 1 border"},
    ("sparqlstream", 4): {'"null" for an aggregate over nothing', "reports start at the first match"},
    ("cqels", 4): {"evaluated on new matches only", "SLIDE ignored: [t - 4,000 ms, t]"},
    ("cqels", 6): {"join side ?ob1 never purged", "SLIDE ignored: (t - 5,000 ms, t]"},
    ("cqels", 7): {"join side ?ob does not constrain"},
}


@pytest.mark.prove
@pytest.mark.parametrize(("engine", "query"), FAILING, ids=lambda value: str(value))
def test_a_failing_cell_comes_out_exactly(shared_data, elements, engine, query):
    explanation = explained(recorded(shared_data, engine, query), elements)
    assert explanation.diagnosis.exact
    assert explanation.diagnosis.differs > 0
    assert FAILING[engine, query] in [{part.name for part in model} for model in explanation.diagnosis.models]
    assert worked(explanation) is not None


@pytest.mark.prove
def test_cqels_does_not_look_at_one_side_of_query_7(shared_data, elements):
    explanation = explained(recorded(shared_data, "cqels", 7), elements)
    (model,) = explanation.diagnosis.models
    assert [part.name for part in model] == ["join side ?ob does not constrain"]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "query"), [("csparql", 1), ("cqels", 2), ("sparqlstream", 7)])
def test_a_right_cell_is_not_explained(shared_data, elements, engine, query):
    diagnosis = explained(recorded(shared_data, engine, query), elements).diagnosis
    assert (diagnosis.models, diagnosis.differs, diagnosis.distance) == ((), 0, 0)
