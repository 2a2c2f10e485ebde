"""Every command that takes -D: what a parameter must look like, and that one which nobody uses is named."""

import json

import pytest

from tests.cli.test_bad_input import EXPERIMENT, QUERY, here  # noqa: F401

COMMANDS = {
    "expect": ("expect", "query.rq", "--stream", "table", "--semantics", "rspql"),
    "query": ("query", "query.rq", "--stream", "stream.parquet"),
    "translate": ("translate", "query.rq", "--to", "csparql"),
    "import": ("import", "answers.json", "--query", "query.rq", "--stream", "stream.parquet", "--semantics", "rspql",
               "--out", "imported"),
    "check": ("check", "imported", "--query", "query.rq"),
    "stream": ("stream", "query.rq", "--from", "table", "--to", "-", "--checkpoint", "kept"),
    "watch": ("watch", "query.rq", "http://127.0.0.1:9/"),
}  # fmt: skip
ANSWERS = [{"timestamp": 5000, "head": {"vars": ["s"]}, "results": {"bindings": []}}]


@pytest.fixture
def there(here, command, monkeypatch):  # noqa: F811
    monkeypatch.chdir(here)
    (here / "answers.json").write_text(json.dumps(ANSWERS))
    code, _, err = command(*COMMANDS["import"])
    assert code == 0, err
    return here


def called(name):
    words = COMMANDS[name]
    return tuple("again" if name == "import" and word == "imported" else word for word in words)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unused_parameter_is_a_sentence(there, command, name):
    code, _, err = command(*called(name), "-D", "TEMP=50")
    assert code == 2
    assert "Traceback" not in err
    assert "the query has no parameter TEMP; its parameters: none" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_parameter_without_a_value_is_a_sentence(there, command, name):
    code, _, err = command(*called(name), "-D", "TEMP")
    assert code == 2
    assert "write NAME=VALUE" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_parameter_is_a_sentence(there, command, name):
    (there / "query.rq").write_text(QUERY.replace("PT5S STEP", "${SIZE} STEP"))
    code, _, err = command(*called(name))
    assert code == 2
    assert "the parameter SIZE has no value" in err


def test_an_experiment_names_unused_parameters(there, command):
    (there / "stream.nq").write_text("")
    (there / "experiment.toml").write_text(EXPERIMENT.replace('"query.rq"', '"query.rq"\nparameters = {TEMP = 50}'))
    code, _, err = command("run", "experiment.toml")
    assert code == 2
    assert "the query has no parameter TEMP" in err


@pytest.mark.parametrize("define", ["engine.5.name=x", "engine.name=x", "seeds.x=1", "engine.x.name=1", "name.x.y=1"])
def test_a_field_that_is_not_there_is_a_sentence(there, command, define):
    (there / "experiment.toml").write_text("seeds = [1]\nname = 'n'\n" + EXPERIMENT)
    code, _, err = command("run", "experiment.toml", "-D", define)
    assert code == 2
    assert f"-D {define}" in err


@pytest.mark.parametrize("option", [("--lateness", "soon"), ("--batch", "soon")])
def test_durations_of_the_command_stream_are_refused(there, command, option):
    code, _, err = command(*COMMANDS["stream"], *option)
    assert code == 2
    assert "expected a duration" in err


def test_relative_iris_are_noted_by_every_command(there, command):
    (there / "query.rq").write_text(QUERY.replace("<urn:w>", "<w1>"))
    for name in ("translate", "expect", "query", "check"):
        _, _, err = command(*called(name))
        assert "note: no BASE: <w1>" in err, name
