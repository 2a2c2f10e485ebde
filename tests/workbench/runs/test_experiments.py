"""Experiment files of the folder: their plan and estimate, and those that are damaged, too large or lead elsewhere."""

import os
import shlex
from dataclasses import replace
from itertools import pairwise

import pytest

from streamgauge.suites.experiments import read
from streamgauge.suites.experiments.plan import plan_query, plan_runs
from streamgauge.workbench.rooms.runs.experiment_page import Experiments, experiment_text
from streamgauge.workbench.rooms.runs.run_list import RunLines
from tests.report import build
from tests.unsealed import unseal
from tests.workbench.runs.folders import EXPERIMENT, bench, keep

SCRIPT = "<script>alert(1)</script>"
WEATHER = 'name = "weather"\nstations = 2\ninterval = "1s"\nduration = "30s"'


def test_the_plan_shows_what_is_done_and_how_long_the_rest_takes(tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    keep(tmp_path / "runs" / "heat" / "live-csparql-seed1-1", build.right())
    with bench(tmp_path) as client:
        page = client.get("/runs/experiment/e.toml").text
        assert "1 of 4 runs done" in page
        assert page.count(">to do<") == 3
        assert "3 runs of 30 s each, fed in real time" in page
        assert "At least 1 min 34 s" in page
        assert ">Resume<" in page
        listed = client.get("/runs/").text
        assert '<a href="/runs/experiment/e.toml">heat</a>' in listed


def test_the_trials_are_those_that_the_command_makes(tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    experiment = read(tmp_path / "e.toml")
    names = [trial.name for trial in plan_runs(experiment, plan_query(experiment))]
    with bench(tmp_path) as client:
        page = client.get("/runs/experiment/e.toml").text
    assert [name for name in names if f'<th scope="row">{name}</th>' in page] == names
    assert len(names) == 4


WRONG = {
    "not toml": ("[workload\n[[engine]]\n[workload]", "not TOML"),
    "no such engine": (EXPERIMENT.replace('"live"', f'"{SCRIPT}"'), "&lt;script&gt;"),
    "a name that is a path": (f'name = "../../x"\n{EXPERIMENT.partition(chr(10))[2]}', "is the name of the folder"),
    "a hidden name": (f'name = ".ssh"\n{EXPERIMENT.partition(chr(10))[2]}', "is the name of the folder"),
    "a query elsewhere": (EXPERIMENT.replace('name = "select"', 'file = "../secret.rq"'), "lies outside"),
    "a query by a link": (EXPERIMENT.replace('name = "select"', 'file = "link.rq"'), "lies outside"),
    "a stream elsewhere": (EXPERIMENT.replace(WEATHER, 'file = "/etc/passwd"'), "outside"),
    "a query that is a pipe": (EXPERIMENT.replace('name = "select"', 'file = "pipe"'), "neither a file nor a folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_be_used_is_a_sentence_and_is_not_started(tmp_path, name):
    text, sentence = WRONG[name]
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.rq").write_text("SECRET of another folder")
    (home / "link.rq").symlink_to(tmp_path / "secret.rq")
    os.mkfifo(home / "pipe")
    (home / "e.toml").write_text(text)
    with bench(home) as client:
        assert client.get("/runs/").status_code == 200
        page = client.get("/runs/experiment/e.toml")
        assert page.status_code == 422
        assert sentence in page.text
        assert "SECRET" not in page.text
        assert SCRIPT not in page.text
        assert str(home) not in page.text
        if "outside" in sentence or "folder" in sentence:
            assert client.post("/runs/experiment/e.toml", do="start").status_code == 400


def test_a_plan_of_too_many_runs_is_left_out(tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT.replace("[1, 2]", "[1]\nrepetitions = 1000000000"))
    with bench(tmp_path) as client:
        page = client.get("/runs/experiment/e.toml")
    assert (page.status_code, "these are 2,000,000,000 runs" in page.text) == (200, True)


def test_an_experiment_by_a_link_or_elsewhere_is_none(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    (home / "link.toml").symlink_to(tmp_path / "e.toml")
    with bench(home) as client:
        for place in ("link.toml", "..%2fe.toml", "nowhere.toml"):
            assert client.get(f"/runs/experiment/{place}").status_code in (404, 422)
            assert client.post(f"/runs/experiment/{place}", do="start").status_code in (400, 404)
        assert "/runs/experiment/" not in client.get("/runs/").text


def test_a_form_that_asks_for_nothing_is_refused(tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    with bench(tmp_path) as client:
        assert client.post("/runs/experiment/e.toml").status_code == 400
        assert client.post("/runs/experiment/e.toml", do="x" * 10_000).status_code == 413
        assert client.post("/runs/experiment/e.toml", do="stop").status_code == 303
        assert client.get("/runs/watch/experiment/e.toml").status_code == 404


def test_a_run_without_its_stream_or_with_one_elsewhere_is_not_judged(tmp_path):
    run = keep(tmp_path / "home" / "run", build.right(), verdict=False)
    with bench(tmp_path / "home") as client:
        assert "the stream of the run belongs there" in client.post("/runs/run/run", do="start").text
        (tmp_path / "stream").mkdir()
        (run / "run.json").write_text(unseal(run / "run.json").replace('"stream": null', '"stream": "../../stream"'))
        assert "lies outside of the folder" in client.post("/runs/run/run", do="start").text


def recorded(experiment, **changes):
    """The header of a run that the first trial of an experiment would have."""
    [trial, *_] = plan_runs(experiment, plan_query(experiment))
    made = build.right()[0].header
    return replace(
        made, engine=trial.system, query=trial.query.query, query_text=trial.query.text, semantics=trial.semantics,
        workload={**trial.workload, "triples": 9}, factor=trial.pace, options=trial.options,
        experiment=experiment.name, parameters={"WSIZE": "2s", "WSLIDE": "1s", "TEMP": "1.0"}, **changes,
    )  # fmt: skip


@pytest.mark.slow
def test_the_command_that_does_a_run_again_makes_just_its_trial(tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    overrides = ["workload.stations=3", "feed.pace=7", "query.parameters.WSIZE=4s", "repetitions=2"]
    varied = read(tmp_path / "e.toml", overrides)
    header = replace(recorded(varied), parameters={"WSIZE": "4s", "WSLIDE": "1s", "TEMP": "1.0"})
    experiments = Experiments(tmp_path, RunLines(tmp_path))
    words = shlex.split(experiments.command(header, ["e.toml"]))
    assert (words[:3], words[-2:]) == (["streamgauge", "run", "e.toml"], ["--out", "again"])
    given = [word for before, word in pairwise(words) if before == "-D"]
    again = read(tmp_path / "e.toml", given)
    [trial] = plan_runs(again, plan_query(again))
    assert trial.differences(header) == ()
    assert experiments.command(replace(header, experiment="other"), ["e.toml"]) == ""
    (tmp_path / "other.toml").write_text(experiment_text(header))
    other = read(tmp_path / "other.toml")
    [trial] = plan_runs(other, plan_query(other))
    assert trial.differences(header) == ()
    assert experiment_text(replace(header, engine="none-such")) == ""
    assert experiment_text(replace(header, workload={"name": "recorded.ttl", "content": "x"})) == ""
    assert experiments.command(replace(header, query_text="ASK {}"), ["e.toml"]) == ""
