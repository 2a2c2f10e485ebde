"""Experiments with several queries and swept fields: their variants, what is wrong in them, and the runs of each."""

from pathlib import Path

import pytest

from streamgauge.formats.run import read_header
from streamgauge.query import parse
from streamgauge.suites.experiments import ExperimentError, read, read_file, read_text
from streamgauge.suites.experiments.plan import plan_variants
from streamgauge.suites.experiments.runner import ExperimentContext, run_variants
from streamgauge.suites.experiments.stages import Pipeline

FILE = """name = "e"

[workload]
name = "weather"
stations = 2
interval = "1s"
duration = "4s"

[[query]]
name = "select"
parameters = { WSIZE = "2s", WSLIDE = "1s", TEMP = 1.0 }

[[query]]
file = "mine.rq"

[[engine]]
name = "live"
semantics = "csparql"

[sweep]
workload.stations = [2, 3]
"feed.pace" = [50, 100]
"""
MINE = (
    "SELECT ?s FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT2S STEP PT2S] "
    "WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "mine.rq").write_text(MINE)
    (tmp_path / "e.toml").write_text(FILE)
    return tmp_path / "e.toml"


def test_each_query_and_each_combination_of_values_is_a_variant(path):
    file = read_file(path)
    assert file.name == "e"
    assert [tuple(variant.point.values()) for variant in file.variants] == [
        (query, stations, pace)
        for query in ("select", "mine") for stations in ("2", "3") for pace in ("50", "100")
    ]  # fmt: skip
    assert [variant.experiment.feed.factor for variant in file.variants] == [50, 100] * 4
    names = [trial.name for variant in plan_variants(file.variants) for trial in variant.trials]
    assert names[0] == "live-csparql-query=select-stations=2-pace=50-seed0-1"
    assert len(set(names)) == 8


def test_its_overrides_make_a_variant_alone_and_the_same(path):
    for variant in read_file(path).variants:
        assert read(path, variant.overrides) == variant.experiment


def test_an_override_of_a_swept_field_keeps_the_one_value(path):
    file = read_file(path, ["workload.stations=7", "feed.pace=20"])
    assert [variant.point for variant in file.variants] == [{"query": "select"}, {"query": "mine"}]
    assert {variant.experiment.feed.factor for variant in file.variants} == {20}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("[2, 3]", "3", 21, "sweep.workload.stations: expected a list of values"),
        ("[2, 3]", "[]", 21, "expected a list of values"),
        ("[2, 3]", "[2, 2]", 21, "repeats a value"),
        ("workload.stations", "seeds", 21, "sweep.seeds: only fields of workload, query, engine and feed"),
        ("[50, 100]", '["slow"]', 22, "feed.pace: 'slow'"),
        ("[50, 100]", f"{list(range(1, 600))}", 20, "more than 1,000 variants"),
        ('file = "mine.rq"', 'fiel = "mine.rq"', 14, "query.1.fiel: unknown key"),
        ('"csparql"\n', '"csparql"\n[[engine]]\nname = 3\nsemantics = "cqels"\n', 20, "engine.1.name"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(path, old, new, line, words):
    with pytest.raises(ExperimentError) as error:
        read_text(FILE.replace(old, new, 1), path)
    assert f"e.toml:{line}: " in str(error.value)
    assert words in str(error.value)


def test_one_variant_is_wanted_where_only_one_can_be_used(path):
    with pytest.raises(ExperimentError, match=r"it has 8 variants, but one is needed: .*-D 'query=\{ name = "):
        read(path)


def test_the_pipeline_has_the_runs_of_every_variant(path):
    context = ExperimentContext(path.parent / "out", lambda: pytest.fail("no Spark here"))
    file = read_file(path)
    stages = [Pipeline(one.experiment, context, path.parent, point=one.point) for one in file.variants]
    names = [trial.name for pipeline in stages for trial in pipeline.trials]
    assert names == [trial.name for planned in plan_variants(file.variants) for trial in planned.trials]
    assert len(set(names)) == 8


@pytest.mark.slow
def test_every_variant_is_run_under_a_name_of_its_own_and_judged(path):
    context = ExperimentContext(path.parent / "out", lambda: pytest.fail("no Spark here"))
    file = read_file(path, ["sweep.workload.stations=[2]", 'feed.pace="fast"'])
    done = [(folder, verdict) for folder, _, verdict in run_variants(file.variants, context)]
    assert [folder.name for folder, _ in done] == [
        "live-csparql-query=select-stations=2-seed0-1", "live-csparql-query=mine-stations=2-seed0-1",
    ]  # fmt: skip
    assert {verdict.judgement.value for _, verdict in done} == {"right"}
    assert [read_header(folder, parse).query_name for folder, _ in done] == ["select", "mine"]
