"""Several processes that do the same experiment into the same folder: each ends well, every run is there once."""

import pytest

from streamgauge.formats.stream import write
from streamgauge.suites.experiments import Experiment, runner
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment
from tests.notation import stream
from tests.prove.killed import QUERY, TEXT, Killed


@pytest.mark.server
@pytest.mark.prove
def test_two_processes_share_a_runs_folder(tmp_path):
    job = Killed(tmp_path, repetitions=1, semantics=("rspql",))
    job.prepare()
    processes = [job.start() for _ in range(2)]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert len(job.whole()) == 1
    assert not list(job.out.rglob(".*")), "something half-written is left"


@pytest.mark.server
@pytest.mark.parametrize("at", ["write_recorded", "_verdict"])
def test_who_is_second_takes_what_the_first_has_made(at, tmp_path, monkeypatch):
    """While one makes its stream (or judges its run) another begins and finishes the same."""
    write(stream(TEXT), tmp_path / "stream.parquet")
    parts = {"workload": {"file": str(tmp_path / "stream.parquet")}, "query": {"text": QUERY}}
    experiment = Experiment.model_validate({**parts, "engine": [{"name": "live", "semantics": ["rspql"]}]})
    doing = ExperimentContext(tmp_path / "out", lambda: pytest.fail("the definition judges"))
    plain, first = getattr(runner, at), []

    def meanwhile(*given, **named):
        monkeypatch.setattr(runner, at, plain)
        first.extend(run_experiment(experiment, doing))
        return plain(*given, **named)

    monkeypatch.setattr(runner, at, meanwhile)
    assert list(run_experiment(experiment, doing)) == first
    assert len(first) == 1
    assert len(list((doing.out / "streams").iterdir())) == 1
    assert not list(doing.out.rglob(".*")), "something half-written is left"
