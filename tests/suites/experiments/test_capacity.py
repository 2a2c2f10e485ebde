"""Capacity, whole: an engine that drops rows above a known number per window is found to carry just that load."""

import json

import pytest

import streamgauge.engines
from streamgauge.model.query import Window
from streamgauge.query import parse
from streamgauge.suites.experiments import ExperimentError
from streamgauge.suites.experiments.capacity import (
    Bound,
    CapacitySearch,
    Limit,
    at,
    axis,
    capacities,
    varied,
    with_engines,
)
from streamgauge.suites.experiments.load_search import SearchRange
from streamgauge.suites.experiments.runner import ExperimentContext
from tests.suites.experiments import dropping_engine

ROWS = 30
"""How many rows the engine keeps of a window of 500 ms."""

QUERY = """PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
REGISTER STREAM <urn:out> AS SELECT ?s ?v
FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE ${SIZE} STEP ${SLIDE}]
WHERE { WINDOW <urn:w> { ?s om-owl:floatValue ?v } }"""
TOML = f'''name = "drops"
[workload]
name = "weather"
stations = 2
interval = "100ms"
duration = "2s"
[query]
text = """{QUERY}"""
parameters = {{ SIZE = "500ms", SLIDE = "500ms" }}
[[engine]]
name = "drops"
semantics = "rspql"
[feed]
pace = 10
'''
LIMIT = Limit(delay=60_000, feeder=60_000, lasting=100)


@pytest.fixture
def engines(monkeypatch):
    known = {"drops": dropping_engine, "absent": dropping_engine.Absent, "live": streamgauge.engines.load("live")}
    known["coarse"] = dropping_engine.Coarse
    monkeypatch.setattr("streamgauge.suites.experiments.capacity.named", lambda name: name)
    monkeypatch.setattr("streamgauge.suites.experiments.capacity.load_engine", known.__getitem__)
    monkeypatch.setattr("streamgauge.suites.experiments.plan.load_engine", known.__getitem__)
    monkeypatch.setattr("streamgauge.suites.experiments.runner.load_engine", known.__getitem__)
    monkeypatch.setattr("streamgauge.harness.systems.pipe.load", known.__getitem__)


@pytest.fixture
def experiment(tmp_path):
    from streamgauge.suites.experiments import read

    (tmp_path / "drops.toml").write_text(TOML)
    return read(tmp_path / "drops.toml")


def no_spark():
    pytest.fail("small streams are made and judged in this process")


def asked(experiment, name="load", load="workload.stations", **reach):
    varies = axis(name, experiment, load)
    within = {"start": varies.start, "least": 1, "most": 64, **reach}
    return CapacitySearch(
        varies, SearchRange(**within, harder=varies.harder, whole=varies.whole, precision=1e-6), LIMIT
    )


@pytest.mark.server
def test_the_load_that_an_engine_carries_is_found(experiment, engines, tmp_path):
    doing = ExperimentContext(tmp_path / "out", no_spark)
    sought = asked(experiment, start=4)
    (result,) = capacities(experiment, sought, doing)
    assert (result.passed, result.failed) == (ROWS // 5, ROWS // 5 + 1)
    assert result.beyond.bound is Bound.WRONG
    assert result.carried.rate == pytest.approx(6 * 7 * 100, rel=0.1)
    assert all(probe.folders[0].joinpath("verdict.json").exists() for probe in result.probes)

    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/*/run.json")}
    assert next(capacities(experiment, sought, doing)) == result
    assert {path: path.stat().st_mtime_ns for path in written} == written


@pytest.mark.server
def test_the_smallest_window_is_found(experiment, engines, tmp_path):
    """The engine's window is 500 ms whatever it is asked for: no smaller one is right."""
    (result,) = capacities(
        experiment, asked(experiment, "window", least=496, most=500), ExperimentContext(tmp_path, no_spark)
    )
    assert result.passed == 500
    assert result.failed == 499


@pytest.mark.server
def test_the_smallest_time_unit_is_found(experiment, engines, tmp_path):
    """The engine says nothing when it is asked for units of less than 50 ms."""
    coarse = with_engines(experiment, ("coarse",))
    sought = asked(coarse, "time-unit", start=51, least=49, most=51)
    (result,) = capacities(coarse, sought, ExperimentContext(tmp_path, no_spark))
    assert (result.passed, result.failed) == (50, 49)
    assert result.beyond.bound is Bound.WRONG


@pytest.mark.server
def test_an_engine_that_is_not_there_says_so(experiment, engines, tmp_path):
    both = with_engines(experiment, ("absent", "drops"))
    assert [part.semantics for part in both.engine] == [("rspql",), ("rspql",)]
    first, second = capacities(both, asked(both, most=2), ExperimentContext(tmp_path, no_spark))
    assert first.absent == "the engine needs a jar: put it somewhere"
    assert second.passed == 2


@pytest.mark.server
def test_an_engine_that_refuses_the_query_says_so(experiment, engines, tmp_path, monkeypatch):
    monkeypatch.setattr(dropping_engine.Absent, "refuse", staticmethod(lambda _query, _semantics: "it has no windows"))
    both = with_engines(experiment, ("absent", "drops"))
    first, second = capacities(both, asked(both, most=2), ExperimentContext(tmp_path, no_spark))
    assert first.absent.endswith("refuses this query under rspql: it has no windows")
    assert second.passed == 2


def test_a_probe_lasts_long_enough(experiment):
    one = asked(experiment)
    assert at(experiment, 5, one).workload.parameters["duration"] == "2s"
    longer = at(experiment, 5, CapacitySearch(one.axis, one.reach, Limit(1, 1, lasting=900)))
    assert longer.workload.parameters == {"stations": 5, "interval": "100ms", "duration": 10_000}
    assert longer.feed.time_limit < 70_000


@pytest.mark.parametrize(
    ("name", "value", "window"),
    [("window", 200, Window(200, 200)), ("slide", 100, Window(500, 100))],
)
def test_a_window_is_varied_in_the_querys_own_dialect(experiment, name, value, window):
    assert parse(axis(name, experiment).apply(experiment, value).query.text, "rspql").window == window


def test_a_sliding_window_keeps_its_slide(experiment):
    sliding = varied(experiment, {"query.parameters.SLIDE": "100ms"})
    assert parse(axis("window", sliding).apply(sliding, 250).query.text).window == Window(250, 100)


def test_the_time_unit_is_part_of_the_semantics(experiment):
    from streamgauge.suites.experiments.plan import plan_query, plan_runs

    live = with_engines(experiment, ("live",))
    finer = axis("time-unit", live).apply(live, 20)
    (run,) = plan_runs(finer, plan_query(finer))
    assert run.semantics.time_unit == 20


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ("stations", "name feed.pace"),
        ("workload.values", "a load is a whole number"),
        ("workload.nothing", "its value is None"),
    ],
)
def test_what_is_no_load_is_refused(experiment, load, words):
    with pytest.raises(ExperimentError, match=words):
        axis("load", experiment, load)


@pytest.mark.server
def test_the_command(engines, tmp_path, monkeypatch, command):
    monkeypatch.setattr("streamgauge.cli.experiments.spark", lambda _master: no_spark())
    (tmp_path / "drops.toml").write_text(TOML)
    drawn = {}

    def draw(runs, path, title):
        drawn[title] = len(runs)
        path.write_text(title)

    monkeypatch.setattr("streamgauge.report.capacity.write_page", draw)
    words = (tmp_path / "drops.toml", "--load", "workload.stations", "--from", "6", "--to", "7", "--out",
             tmp_path / "out", "--max-delay", "60s", "--max-lateness", "60s", "--lasting", "100ms")  # fmt: skip
    output = command("capacity", *words, "--json")
    result = json.loads(output.out)
    assert output.code == 0
    assert [(one["engine"], one["capacity"], one["bound"]) for one in result["engines"]] == [
        ("drops", 6, "wrong windows")
    ]
    page = (tmp_path / "out" / "stations.html").read_text()
    assert "stations at most 6" in page
    assert page.count('<svg class="plot') == 4
    assert page.count("bound 60 s<title>") == 2
    assert page.count("not carried at 7: wrong windows<title>") == 4
    assert [f'<a href="stations%3D{value}/report.html">{value}</a>' in page for value in (6, 7)] == [True, True]
    assert drawn == {"stations=6": 1, "stations=7": 1}
    output = command("capacity", *words)
    assert "drops as rspql: stations at most 6" in " ".join(output.out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [(["--axis", "colour"], "choose from load"), (["--from", "9", "--to", "3"], "must be positive and from")],
)
def test_the_command_says_what_is_wrong(engines, tmp_path, command, words, told):
    (tmp_path / "drops.toml").write_text(TOML)
    output = command("capacity", tmp_path / "drops.toml", *words)
    assert output.code == 2
    assert told in " ".join(output.err.split())
