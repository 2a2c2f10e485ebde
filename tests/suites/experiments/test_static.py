"""Static data of a workload: made once for a seed, given to the engine in a file, judged by, kept with the run."""

from pathlib import Path

import pytest

from streamgauge.formats.lines import LineError
from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.run import read_run
from streamgauge.query import parse
from streamgauge.suites.experiments import Experiment, ExperimentError, plan
from streamgauge.suites.experiments.plan import plan_query
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment

QUERY = """PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX gn: <http://www.geonames.org/ontology#>
REGISTER <urn:out> AS SELECT ?name ?value
FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE 2s STEP 2s]
WHERE { WINDOW <urn:w> { ?obs om-owl:procedure ?sensor ; om-owl:result ?r . ?r om-owl:floatValue ?value }
  ?sensor gn:parentFeature ?city . ?city gn:name ?name }
"""
FILE = '<urn:a> <urn:p> "a b"@en .\n<urn:a> <urn:p> <urn:b> .\n'
TRIPLES = (("<urn:a>", "<urn:p>", '"a b"@en'), ("<urn:a>", "<urn:p>", "<urn:b>"))


def no_spark():
    pytest.fail("small streams are made and judged in this process")


def experiment(**more) -> Experiment:
    workload = {"name": "weather", "stations": 9, "duration": "6s", "static_triples": 500}
    parts = {"workload": workload, "query": {"text": QUERY}, "engine": [{"name": "live", "semantics": ["rspql"]}]}
    return Experiment.model_validate({**parts, **more})


@pytest.mark.server
def test_a_run_with_static_data_is_right_and_kept(tmp_path: Path):
    doing = ExperimentContext(tmp_path, no_spark)
    ((folder, run, verdict),) = run_experiment(experiment(), doing)
    assert verdict.judgement == "right"
    assert sum(window.actual for window in verdict.windows) > 40
    assert len(run.header.query.static) == 500
    assert read_run(folder, parse).header.query.static == run.header.query.static
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nt")}
    assert len(kept) == 1
    ((_, again, _),) = run_experiment(experiment(), doing)
    assert again.answers == run.answers
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.server
def test_other_static_data_is_another_run(tmp_path: Path):
    doing = ExperimentContext(tmp_path, no_spark)
    assert len(list(run_experiment(experiment(), doing))) == 1
    other = experiment(workload={"name": "weather", "stations": 9, "duration": "6s", "static_triples": 600})
    with pytest.raises(ExperimentError, match="this is a run with another workload"):
        list(run_experiment(other, doing))


@pytest.mark.server
def test_several_streams_are_joined_through_static_data(tmp_path: Path):
    workload = {"name": "weather", "stations": 6, "duration": "6s", "streams": 2, "static_triples": 200}
    query = {"name": "streams-2", "parameters": {"WSIZE": "3s", "WSLIDE": "3s", "TEMP": 30.0}}
    ((_, run, verdict),) = run_experiment(
        experiment(workload=workload, query=query), ExperimentContext(tmp_path, no_spark)
    )
    assert verdict.judgement == "right"
    assert {window.stream[-2:] for window in run.header.query.windows} == {"-1", "-2"}
    assert sum(window.actual for window in verdict.windows) > 3


def test_static_data_comes_from_one_place(tmp_path: Path):
    with pytest.raises(ExperimentError, match="workload weather has its own static data: give one of them"):
        plan_query(experiment(query={"text": QUERY, "static": tmp_path / "more.nt"}))


def test_a_program_that_reads_no_files_gets_triples_or_is_told_how_many(tmp_path: Path, monkeypatch):
    file = tmp_path / "static.nt"
    file.write_text(FILE)
    static_file = StaticFile(file)
    assert plan.as_taken("live", static_file) is static_file
    program = type("Program", (), {"command": staticmethod(list)})()
    monkeypatch.setattr(plan, "load_engine", lambda _name: program)
    assert plan.as_taken("other", static_file) == TRIPLES
    monkeypatch.setattr(plan, "LINE_LIMIT", 1)
    with pytest.raises(
        ExperimentError, match=r"other does not read static data from a file: .* is 2, give it at most 1"
    ):
        plan.as_taken("other", static_file)
    program.STATIC_FILE = True
    assert plan.as_taken("other", static_file) is static_file


def test_a_file_of_triples_is_a_collection(tmp_path: Path):
    file = tmp_path / "static.nt"
    file.write_text(FILE)
    static_file = StaticFile(file)
    assert (len(static_file), list(static_file)) == (2, list(TRIPLES))
    assert static_file == TRIPLES
    assert ("<urn:a>", "<urn:p>", "<urn:b>") in static_file
    assert static_file != (("<urn:a>", "<urn:p>", "<urn:b>"),)
    file.write_text(FILE + "<urn:a> <urn:p>\n")
    with pytest.raises(LineError, match=r"static\.nt:3: expected a canonical N-Triples line"):
        list(StaticFile(file))
