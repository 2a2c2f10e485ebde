"""An experiment stage by stage: the verdicts of `run`, wherever it stopped; large wrong runs are explained in part."""

from dataclasses import replace

import pytest

from streamgauge.cli.pipeline import stage_line
from streamgauge.formats.places import RemotePlace
from streamgauge.formats.run import read_run, write_run
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.prefix import NoPrefixError, prefix
from streamgauge.query import parse
from streamgauge.semantics.profiles import RSPQL
from streamgauge.suites.experiments import ExperimentError, read
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment
from streamgauge.suites.experiments.stages import Pipeline, Stage, StageResult
from tests.notation import stream
from tests.oracle.runs import right_run

TEXT = """
name = "small"
seeds = [1, 2]
[workload]
name = "weather"
stations = 3
duration = "5s"
[query]
name = "select"
parameters = {{ WSIZE = "2s", WSLIDE = "1s", TEMP = 50.0 }}
[[engine]]
name = "{engine}"
semantics = "{semantics}"
"""


class StoppedError(Exception):
    """In the place of a kill."""


def experiment(folder, engine="live", semantics="csparql"):
    file = folder / "small.toml"
    file.write_text(TEXT.format(engine=engine, semantics=semantics))
    return read(file)


def pipeline(folder, asked, stop=None, **options):
    """The stages, with what they said; ``stop`` ends after so many of them."""
    messages = []

    def done(result):
        messages.append(result)
        if len(messages) == stop:
            raise StoppedError

    context = ExperimentContext(folder / "out", options.pop("spark", lambda: None))
    return Pipeline(asked, context, folder / "out" / "streams", done=done, **options), messages


def told(judged):
    return [(run.header.engine, run.header.semantics, run.answers, verdict.judgement) for run, verdict in judged]


@pytest.mark.server
def test_the_stages_give_what_run_gives(tmp_path):
    asked = experiment(tmp_path)
    stages, said = pipeline(tmp_path, asked)
    judged = stages.run()
    plain = list(run_experiment(asked, ExperimentContext(tmp_path / "run", lambda: None)))
    assert [strip(verdict) for _, verdict in judged] == [strip(verdict) for _, _, verdict in plain]
    assert [(one.stage, one.kept) for one in said] == [
        (stage, False) for stage in (Stage.GENERATE, Stage.RUN, Stage.JUDGE) for _seed in (1, 2)
    ]
    again, said = pipeline(tmp_path, asked)
    assert told(again.run()) == told(judged)
    assert all(one.kept for one in said)


def strip(verdict):
    """A verdict without measured times."""
    windows = [(one.instant, one.expected, one.actual, one.true_positives) for one in verdict.windows]
    return verdict.judgement, verdict.t0, verdict.precision, verdict.recall, windows


@pytest.mark.server
@pytest.mark.parametrize("stop", range(1, 6))
def test_a_pipeline_that_was_stopped_goes_on(tmp_path, stop):
    asked = experiment(tmp_path)
    stages, _ = pipeline(tmp_path, asked, stop)
    with pytest.raises(StoppedError):
        stages.run()
    stages, said = pipeline(tmp_path, asked)
    judged = stages.run()
    assert [verdict.judgement for _, verdict in judged] == [Judgement.RIGHT] * 2
    assert sum(one.kept for one in said) == stop


@pytest.mark.server
def test_a_wrong_run_is_diagnosed_once(tmp_path):
    asked = experiment(tmp_path)
    stages, _ = pipeline(tmp_path, asked, 4)
    with pytest.raises(StoppedError):
        stages.run()
    folder = stages.folder(stages.trials[0])
    run = read_run(folder, parse)
    write_run(folder, replace(run, answers=run.answers[:-1]))
    stages, said = pipeline(tmp_path, asked)
    judged = stages.run()
    assert [verdict.judgement for _, verdict in judged] == [Judgement.WRONG, Judgement.RIGHT]
    assert [one.what for one in said if one.stage is Stage.DIAGNOSE] == [stages.trials[0].name]
    assert judged[0][1].diagnosis is not None
    _, said = again = pipeline(tmp_path, asked)
    again[0].run()
    assert [one.kept for one in said if one.stage is Stage.DIAGNOSE] == [True]


def test_spark_does_the_stages(tmp_path, spark):
    asked = experiment(tmp_path, "spark", "rspql")
    stages, said = pipeline(tmp_path, asked, spark=lambda: spark, master="local[2]")
    judged = stages.run()
    assert [verdict.judgement for _, verdict in judged] == [Judgement.RIGHT] * 2
    assert {one.where for one in said} == {"on Spark, local[2]"}
    assert {verdict.evaluator for _, verdict in judged} == {"definition"}
    assert all(one.expected for _, verdict in judged for one in verdict.windows[:1])
    plain = run_experiment(experiment(tmp_path, semantics="rspql"), ExperimentContext(tmp_path / "run", lambda: None))
    assert [strip(verdict) for _, verdict in judged] == [strip(verdict) for _, _, verdict in plain]
    header = read_run(stages.folder(stages.trials[0]), parse).header
    assert (header.experiment, header.workload["name"], header.evaluator) == ("small", "weather", "spark")


@pytest.mark.parametrize("until", [3500, 8000])
def test_spark_answers_until_the_horizon(tmp_path, spark, until):
    """Before the last element, or long after it: as `run` takes it."""
    (tmp_path / "small.toml").write_text(
        TEXT.format(engine="spark", semantics="rspql") + f"[feed]\nadvance_to = {until}\n"
    )
    asked = read(tmp_path / "small.toml")
    asked = asked.model_copy(update={"seeds": asked.seeds[:1]})
    stages, _ = pipeline(tmp_path, asked, spark=lambda: spark, master="local[2]")
    ((run, verdict),) = stages.run()
    assert (run.header.advanced_to, verdict.judgement) == (until, Judgement.RIGHT)
    assert [one.instant for one in verdict.windows] == list(range(2000, until + 1, 1000))


def test_an_engine_that_is_fed_from_here_does_not_read_elsewhere(tmp_path):
    stages, _ = pipeline(tmp_path, experiment(tmp_path))
    far = replace(stages, streams=RemotePlace("hdfs://h/x"))
    with pytest.raises(ExperimentError, match="hdfs://h/x: engine live needs local files"):
        far.run()


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (
            StageResult(Stage.JUDGE, "a", "in this process", 1000, 2.0, note="right"),
            "judge: a, in this process: 1,000 triples in 2.0 s, 500 a second (right)",
        ),
        (StageResult(Stage.RUN, "a", "in this process", 1000, 2.0, kept=True), "run: a exists"),
        (StageResult(Stage.REPORT, "r.html", "in this process"), "report: r.html, in this process"),
    ],
)
def test_a_stage_is_a_line(result, line):
    assert stage_line(result) == line


ELEMENTS = " | ".join(f"{time}: s p {time}." for time in range(10))


def test_a_prefix_has_the_answers_that_its_elements_can_cause():
    run = right_run(RSPQL, text=ELEMENTS, window=(2, 2), advance=10)
    part, held = prefix(run, stream(ELEMENTS), lambda count: run.answers[:count], 5, 100)
    assert [element.time for element in held] == [0, 1, 2, 3, 4]
    assert part.header.advanced_to == 4
    assert [answer.instant for answer in part.answers] == [2, 4]


def test_a_run_that_fits_is_whole():
    run = right_run(RSPQL, text=ELEMENTS, window=(2, 2), advance=10)
    part, held = prefix(run, stream(ELEMENTS), lambda count: run.answers[:count], 100, 100)
    assert part == run
    assert list(held) == list(stream(ELEMENTS))


def test_answers_bound_a_prefix_too():
    run = right_run(RSPQL, text=ELEMENTS, window=(2, 2), advance=10)
    part, held = prefix(run, stream(ELEMENTS), lambda count: run.answers[:count], 100, 2)
    assert [answer.instant for answer in part.answers] == [2, 4]
    assert part.header.advanced_to == 5
    assert max(element.time for element in held) == 5


def test_answers_without_instants_have_no_prefix():
    run = right_run(RSPQL, text=ELEMENTS, window=(2, 2), advance=10)
    unnamed = replace(run, answers=tuple(replace(one, instant=None) for one in run.answers))
    with pytest.raises(NoPrefixError, match="no instants"):
        prefix(unnamed, stream(ELEMENTS), lambda count: unnamed.answers[:count], 5, 100)
