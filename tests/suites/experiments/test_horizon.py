"""How far the time of a run comes, as `query` and `expect` take it; and streams that are kept or read again."""

import pytest

from streamgauge.suites.experiments import Experiment, runner
from streamgauge.suites.experiments.plan import plan_query
from streamgauge.suites.experiments.runner import ExperimentContext
from tests.notation import stream

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


class Topic:
    """A source of these elements on another machine."""

    reasons, refused = (), 0

    def __init__(self, *times):
        self._times = times

    def items(self):
        yield from stream(" | ".join(f"{time}: a p b." for time in self._times))


@pytest.mark.server
def test_a_source_elsewhere_is_read_again_where_that_is_asked_for(tmp_path, monkeypatch):
    """Its address does not say whether it has changed, so a stream that is kept says so, once for all its runs."""
    parts = {
        "workload": {"file": "urn:stream=kafka://broker/topic?until=end"},
        "query": {"text": QUERY},
        "seeds": [1, 2],
    }
    experiment = Experiment.model_validate({**parts, "engine": [{"name": "live", "semantics": ["rspql"]}]})
    notes = []

    def last(again=False):
        doing = ExperimentContext(tmp_path, lambda: None, again=again, note=notes.append)
        return {run.header.advanced_to for _, run, _ in runner.run_experiment(experiment, doing)}

    monkeypatch.setattr("streamgauge.sources.named.open_source", lambda *_: Topic(1, 7))
    assert (last(), notes) == ({7}, [])
    monkeypatch.setattr("streamgauge.sources.named.open_source", lambda *_: Topic(1, 9))
    assert last() == {7}
    (note,) = notes
    assert note.startswith("kafka://broker/topic?until=end: as it was read in an earlier run")
    assert (last(again=True), notes) == ({9}, [note])
