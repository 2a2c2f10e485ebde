"""The folder of progress: what a watcher knows of a run that goes on, and its verdict so far."""

import json
from dataclasses import replace

import pytest

from streamgauge.harness.resources import ResourceSampler
from streamgauge.harness.systems.pipe import Observation
from streamgauge.model.run import Sample
from streamgauge.model.verdict import Judgement
from streamgauge.suites.experiments import read
from streamgauge.suites.experiments.progress import LINES, ProgressFolder, ProgressReader
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment
from tests.report import build

EXPERIMENT = """
[workload]
name = "weather"
stations = 2
interval = "1s"
duration = "20s"
[query]
name = "select"
parameters = { WSIZE = "2s", WSLIDE = "1s", TEMP = 1.0 }
[[engine]]
name = "live"
semantics = "csparql"
[feed]
pace = 8
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """An experiment that was run with its progress, and the run."""
    folder = tmp_path_factory.mktemp("experiment")
    (folder / "e.toml").write_text(EXPERIMENT)
    progress = ProgressFolder(folder / "progress")
    context = ExperimentContext(folder / "out", lambda: None, progress.step, progress=progress)
    [(place, run, verdict)] = run_experiment(read(folder / "e.toml"), context)
    progress.judged(place.name, verdict)
    return folder / "progress", run, verdict


def until(folder, tmp_path, last):
    """A reader of the same folder as it was when the last line of that kind was written."""
    lines = (folder / LINES).read_text().splitlines(keepends=True)
    end = max(place for place, line in enumerate(lines) if last(json.loads(line))) + 1
    for run in folder.glob("run*"):
        (tmp_path / run.name).symlink_to(run)
    (tmp_path / LINES).write_text("".join(lines[:end]) + '{"come": 17')
    reader = ProgressReader(tmp_path)
    reader.read()
    return reader


@pytest.mark.server
def test_the_verdict_so_far_is_of_the_windows_until_the_newest_answer(done, tmp_path):
    folder, run, verdict = done
    reader = until(folder, tmp_path, lambda line: line.get("answers") and line["come"] < 20_000)
    result = reader.verdict()
    assert (result.judgement, result.precision, result.recall) == (Judgement.RIGHT, 1.0, 1.0)
    assert 1 <= len(result.windows) <= len(verdict.windows)
    for so_far, whole in zip(result.windows, verdict.windows, strict=False):
        assert (so_far.start, so_far.expected, so_far.actual) == (whole.start, whole.expected, whole.actual)
        assert so_far.delay == pytest.approx(whole.delay)
    assert reader.samples[0] == (run.samples[0].at, run.samples[0].rss, run.samples[0].cpu_percent)
    assert 0 < reader.share < 1
    assert "fed to" in reader.step
    assert reader.so_far is result
    with (tmp_path / LINES).open("a") as lines:  # the next run is prepared: nothing of this one is told of it
        lines.write(', "started": 0, "answers": [], "samples": []}\n')
        lines.write(json.dumps({"judged": "first", "judgement": "right", "precision": 1.0, "recall": 1.0}) + "\n")
        lines.write(json.dumps({"trial": "second", "run": "run2", "stream": "nowhere"}) + "\n")
    reader.read()
    assert (reader.trial, reader.so_far, reader.samples) == ("second", None, [])


@pytest.mark.server
def test_a_run_that_is_over_is_an_outcome(done):
    folder, _, verdict = done
    reader = ProgressReader(folder)
    reader.read()
    [outcome] = reader.outcomes
    assert (outcome.trial, outcome.judgement, outcome.recall) == ("live-csparql-seed0-1", "right", verdict.recall)
    assert reader.verdict() is None
    assert reader.share == 1.0


def test_what_is_no_answer_is_said_and_read_once(tmp_path):
    run, _ = build.right()
    writer, reader = ProgressFolder(tmp_path / "p"), ProgressReader(tmp_path / "p")
    reader.read()
    assert (reader.step, reader.verdict()) == ("", None)
    writer.begin("trial", replace(run.header, failure=None), tmp_path)
    sampler, seen = ResourceSampler({"system": ()}), Observation()
    writer.watch(seen, sampler)
    seen.lines.append((5, b'{"vars":["a"],"add":[["<http://a>"]],"instant":7}\n'))
    sampler.samples["system"].append(Sample(3, 100, 0.1, 50.0, 2))
    writer.add(9)
    writer.add(10)
    reader.read()
    assert (reader.come, reader.samples, reader.wrong) == (10, [(3, 100, 50.0)], "")
    seen.lines.append((6, b"no answer\n"))
    writer.add(11)
    reader.read()
    assert reader.verdict() is None
    assert "is not an answer" in reader.wrong
