"""How far the time of a run comes: as stated, or as the stream's file says, as `query` and `expect` take it."""

import pytest

from streamgauge.suites.experiments import Experiment, runner
from streamgauge.suites.experiments.plan import plan_query
from streamgauge.suites.experiments.runner import ExperimentContext

ELEMENT = '{"t": %d, "n": %d, "stream": "urn:stream", "add": "<urn:a> <urn:p> <urn:b> ."}\n'
QUERY = "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:stream> [RANGE PT5S STEP PT5S] { WINDOW <urn:w> { ?s ?p ?o } }"


@pytest.mark.parametrize(
    ("message", "feed", "until"),
    [
        ("", {}, 7),
        ('{"advance": 20}\n', {}, 20),
        ('{"advance": 6}\n', {}, 7),
        ('{"advance": 20}\n', {"advance_to": 12}, 12),
    ],
)
def test_time_comes_as_far_as_the_file_says(tmp_path, message, feed, until):
    file = tmp_path / "stream.jsonl"
    file.write_text(ELEMENT % (1, 0) + ELEMENT % (7, 1) + message)
    parts = {"workload": {"file": str(file)}, "query": {"text": QUERY}, "feed": feed}
    experiment = Experiment.model_validate({**parts, "engine": [{"name": "live", "semantics": ["rspql"]}]})
    doing = ExperimentContext(tmp_path / "out", lambda: pytest.fail("nothing is judged"))
    for _ in range(2):  # made, then found
        _, facts = runner.made_stream(experiment, plan_query(experiment), 1, doing)
        assert (facts.first, facts.last) == (1, 7)
        assert runner._duration(experiment, facts) == until
