"""The experiment file: a wrong field is named with its line and what is allowed."""

import pytest

from streamgauge.suites.experiments import ExperimentError, read

GOOD = """name = "e"
seeds = [1, 2]

[workload]
name = "weather"
stations = 5

[query]
name = "select"
parameters = { TEMP = 50.0 }

[[engine]]
name = "live"
semantics = "csparql"

[feed]
pace = "real time"
time_limit = "90s"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(GOOD)
    return path


def test_a_good_file_is_read(file):
    experiment = read(file)
    assert experiment.engine[0].semantics == ("csparql",)
    assert experiment.workload.parameters == {"stations": 5}
    assert (experiment.feed.factor, experiment.feed.time_limit) == (1.0, 90_000)


def test_overrides_win(file):
    experiment = read(file, ["workload.stations=7", "feed.pace=2.5", "repetitions=3", "engine.0.name=other"])
    assert experiment.workload.parameters == {"stations": 7}
    assert (experiment.feed.factor, experiment.repetitions, experiment.engine[0].name) == (2.5, 3, "other")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("pace =", "pase =", 17, "feed.pase: unknown key; allowed here: advance_to"),
        ("pace =", "interval =", 17, "feed.interval: unknown key; allowed here: advance_to"),
        ('name = "e"', 'name = "e"\nstr = 1', 2, "str: unknown key; allowed here: engine, feed"),
        ('time_limit = "90s"', 'time_limit = "soon"', 18, "expected a duration in whole ms such as 500ms"),
        ('name = "weather"', "", 4, "workload: give either name"),
        ('pace = "real time"', 'pace = "slow"', 17, "fast"),
        ("seeds = [1, 2]", "seeds = []", 2, "at least 1"),
        ('name = "e"', 'nane = "e"', 1, "allowed here: engine, feed"),
        ('name = "select"', 'name = "select"\ntext = "ASK {}"', 8, "exactly one of name, file and text"),
    ],
)
def test_a_wrong_field_is_named(file, old, new, line, words):
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ExperimentError) as error:
        read(file)
    assert f"experiment.toml:{line}: " in str(error.value)
    assert words in str(error.value)


def test_not_toml_is_named_with_its_place(file):
    file.write_text("name = \n")
    with pytest.raises(ExperimentError, match=r"experiment\.toml:1: not TOML: 'name ='"):
        read(file)


def test_no_file():
    with pytest.raises(ExperimentError, match=r"nowhere\.toml: there is no such file"):
        read(__import__("pathlib").Path("nowhere.toml"))
