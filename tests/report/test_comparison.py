"""Comparisons: what got worse beyond tolerance, in every form, from run folders, capacities and baselines."""

import json
from dataclasses import replace

import pytest

from streamgauge.formats.run import write_run, write_verdict
from streamgauge.model.run import Sample
from streamgauge.model.semantics import Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.report.capacity import write_json_of
from streamgauge.report.comparison.changes import Tolerances, Trend, compared
from streamgauge.report.comparison.formats import headline
from streamgauge.report.comparison.measurements import (
    CapacityMeasurement,
    Measurements,
    RunMeasurement,
    measured,
    write_baseline,
)
from streamgauge.suites.experiments.capacity import Bound
from streamgauge.suites.experiments.load_search import Harder
from tests.notation import stream
from tests.oracle.runs import TEXT, right_run
from tests.report.test_capacity import found as capacity_found

RUN = RunMeasurement("live-rspql", "live", "rspql", 3, Judgement.RIGHT, 0, 10, 0, 40.0, 90.0, 2.0, 2.0**28)
CARRIED = CapacityMeasurement("pace: live as rspql", "pace", "times real time", True, 40.0, 4000.0)
SMALLEST = replace(CARRIED, name="window: live as rspql", greater=False)


def trends(base, now, **more):
    comparison = compared(base, now, Tolerances(**more))
    return {change.measure: change.trend for change in comparison.changes if change.trend is not Trend.SAME}


def runs(**changed):
    return trends(Measurements((RUN,)), Measurements((replace(RUN, **changed),)))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {}),
        ({"judgement": Judgement.LATE}, {"verdict": Trend.WORSE}),
        ({"judgement": Judgement.UNKNOWN}, {"verdict": Trend.WORSE}),
        ({"judgement": Judgement.WRONG, "wrong": 1}, {"verdict": Trend.WORSE, "windows not as expected": Trend.WORSE}),
        ({"failed": 1}, {"verdict": Trend.WORSE}),
        ({"delay": 49.9}, {}),
        ({"delay": 50.0}, {}),
        ({"delay": 50.1}, {"delay, median": Trend.WORSE}),
        ({"delay": 29.0}, {"delay, median": Trend.BETTER}),
        ({"slow": 112.5}, {}),
        ({"slow": 112.6}, {"delay, 99th percentile": Trend.WORSE}),
        ({"cpu": 2.51}, {"CPU": Trend.WORSE}),
        ({"cpu": None}, {}),
        ({"memory": 1.26 * 2**28}, {"memory": Trend.WORSE}),
        ({"memory": 2.0**27}, {"memory": Trend.BETTER}),
    ],
)
def test_a_measure_gets_worse_beyond_its_tolerance(changed, expected):
    assert runs(**changed) == expected


def test_little_growth_of_a_little_value_counts_for_nothing():
    base, now = replace(RUN, delay=1.0, slow=1.0, cpu=0.01), replace(RUN, delay=10.9, slow=11.1, cpu=0.1)
    assert trends(Measurements((base,)), Measurements((now,))) == {"delay, 99th percentile": Trend.WORSE}


def test_more_wrong_windows_of_a_run_that_was_wrong_already_are_worse():
    base = replace(RUN, judgement=Judgement.WRONG, wrong=2)
    measure = "windows not as expected"
    assert trends(Measurements((base,)), Measurements((replace(base, wrong=3),))) == {measure: Trend.WORSE}
    assert trends(Measurements((base,)), Measurements((replace(base, wrong=3, windows=15),))) == {}


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        (CARRIED, 36.0, {}),
        (CARRIED, 35.9, {"capacity": Trend.WORSE}),
        (CARRIED, 45.0, {"capacity": Trend.BETTER}),
        (CARRIED, None, {"capacity": Trend.WORSE}),
        (replace(CARRIED, value=None), 1.0, {"capacity": Trend.BETTER}),
        (SMALLEST, 44.0, {}),
        (SMALLEST, 45.0, {"capacity": Trend.WORSE}),
        (SMALLEST, 35.0, {"capacity": Trend.BETTER}),
    ],
)
def test_a_capacity_falls(base, value, expected):
    assert trends(Measurements((), (base,)), Measurements((), (replace(base, value=value),))) == expected


def test_what_is_gone_fails_unless_a_subset_is_enough():
    other = replace(RUN, name="other")
    base, now = Measurements((RUN, other)), Measurements((replace(RUN, name="new"), other))
    comparison = compared(base, now, Tolerances())
    assert {(change.subject, change.trend) for change in comparison.changes if change.trend is not Trend.SAME} == {
        ("live-rspql", Trend.GONE),
        ("new", Trend.NEW),
    }
    assert headline(comparison) == "live-rspql is gone: 3 subjects compared."
    assert compared(base, now, Tolerances(), subset=True).worse == ()
    assert trends(Measurements((), (CARRIED,)), Measurements((), (replace(CARRIED, absent="no jar"),))) == {
        "capacity": Trend.GONE
    }


@pytest.fixture
def folder(tmp_path):
    """Write a run folder below the test's, judged; ``lost`` answers are left out at the end."""

    def write(name, lost=0, cpu=1.0):
        run = right_run(Semantics("rspql"))
        run = replace(run, answers=run.answers[: len(run.answers) - lost], header=replace(run.header, cpu=cpu))
        write_run(tmp_path / name, replace(run, samples=(Sample(1, 50_000_000, 1.0, 1.0, 1),)))
        write_verdict(tmp_path / name, check(run, definition(stream(TEXT)), 0, JudgingRules("definition")))
        return tmp_path / name

    return write


def test_repetitions_are_one_measurement(folder, tmp_path):
    for number in (1, 2, 3):
        folder(f"a/live-rspql-seed0-{number}", lost=int(number == 2), cpu=float(number))
    folder("a/live-rspql-seed0-1/../other")
    results = {run.name: run for run in measured(tmp_path / "a").runs}
    assert set(results) == {"live-rspql", "other"}
    one = results["live-rspql"]
    assert (one.runs, one.judgement, one.windows, one.wrong) == (3, Judgement.WRONG, 12, 1)
    assert (one.delay, one.cpu, one.memory) == (pytest.approx(1.0), 2.0, 50_000_000)


def test_the_command_fails_when_a_verdict_got_worse(command, folder, tmp_path):
    folder("base/test-rspql-seed0-1")
    folder("now/test-rspql-seed0-1", lost=2)
    base, now = tmp_path / "base", tmp_path / "now"
    assert command("compare", base, base).code == 0
    code, out, _ = command("compare", base, now)
    assert code == 1
    assert "verdict of test-rspql got worse, and 1 other change: 1 subject compared." in out
    assert " ".join(out.split()).startswith("run measure base now change test-rspql verdict right wrong worse")
    assert command("compare", now, base).code == 0

    code, out, err = command("compare", "--save", tmp_path / "baseline.json", base)
    assert (code, out) == (0, "")
    assert "is a baseline of 1 subjects" in err
    assert measured(tmp_path / "baseline.json") == measured(base)
    code, out, _ = command("compare", tmp_path / "baseline.json", now, "--json")
    assert code == 1
    assert json.loads(out)["worse"] is True

    code, out, _ = command("compare", tmp_path / "baseline.json", now, "--format", "markdown")
    lines = out.splitlines()
    assert code == 1
    assert lines[0].startswith("### Streamgauge: verdict of test-rspql got worse")
    assert "| test-rspql | verdict | right | wrong |  | **worse** |" in lines
    assert "<details><summary>4 unchanged</summary>" in lines
    single = command("compare", base / "test-rspql-seed0-1", now / "test-rspql-seed0-1")
    assert single.code == 1


def test_points_for_dashboards(command, folder, tmp_path):
    folder("now/test-rspql-seed0-1", lost=1)
    code, out, _ = command("compare", tmp_path / "now", "--format", "benchmark")
    points = {point["name"]: point for point in json.loads(out)}
    assert code == 0
    assert points["test-rspql/windows not as expected"] == {
        "name": "test-rspql/windows not as expected",
        "unit": "windows",
        "value": 1,
        "extra": "wrong; 4 windows of 1 run",
    }
    assert {point["unit"] for point in points.values()} == {"windows", "ms", "s", "bytes"}


def test_a_capacity_is_read_beside_its_page(command, tmp_path):
    carried, _ = capacity_found(Harder.GREATER, Bound.WRONG)
    write_json_of(carried, tmp_path / "pace.json")
    (result,) = measured(tmp_path).capacities
    assert (result.name, result.greater, result.value, result.rate) == ("pace: live as rspql", True, 40, 4000)
    code, out, _ = command("compare", tmp_path, "--format", "benchmark-capacity")
    assert code == 0
    assert json.loads(out) == [
        {"name": "pace: live as rspql", "unit": "triples/s", "value": 4000, "extra": "carries 40 times real time"}
    ]
    write_baseline(tmp_path / "kept.json", Measurements((), (replace(result, value=60.0),)))
    assert command("compare", tmp_path / "kept.json", tmp_path / "pace.json").code == 1
    assert command("compare", tmp_path / "kept.json", tmp_path / "pace.json", "--capacity", "40%").code == 0


def test_a_baseline_holds_runs_and_capacities_together(command, folder, tmp_path):
    folder("all/runs/test-rspql-seed0-1")
    folder("all/capacity/select/pace=80/live-rspql-seed0-1", lost=3)
    carried, _ = capacity_found(Harder.GREATER, Bound.WRONG)
    write_json_of(carried, tmp_path / "all" / "capacity" / "select" / "pace.json")
    assert command("compare", "--save", tmp_path / "kept.json", tmp_path / "all").code == 0
    kept = measured(tmp_path / "kept.json")
    assert [run.name for run in kept.runs] == ["runs/test-rspql"]
    assert [capacity.name for capacity in kept.capacities] == ["capacity/select/pace: live as rspql"]
    assert command("compare", tmp_path / "kept.json", tmp_path / "all").code == 0
    assert command("compare", tmp_path / "kept.json", tmp_path / "all" / "runs").code == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing", "nothing"], "nothing: there is no such file or folder"),
        (["."], "or store one by --save"),
        ([".", ".", "."], "at most two paths"),
        ([".", "."], "it has no run"),
        (["odd.json", "."], "neither a baseline (compare --save) nor a capacity"),
        (["text.json", "."], "not JSON: write a baseline by compare --save"),
        (["bad.json", "."], "field measurements.runs is"),
        (["unjudged", "unjudged"], "it is not judged yet: run streamgauge check unjudged"),
        ([".", ".", "--delay", "much"], "'much' is not a percentage"),
    ],
)
def test_what_cannot_be_compared_is_said(command, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.json").write_text("[]")
    (tmp_path / "text.json").write_text("{")
    bad = {"format": "streamgauge baseline", "version": 1, "measurements": {"runs": 7, "capacities": []}}
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    if words[0] == "unjudged":
        write_run(tmp_path / "unjudged", right_run(Semantics("rspql")))
    code, _, err = command("compare", *words)
    assert code == 2
    assert sentence in " ".join(err.replace("│", " ").split())
