"""SEP-BM's commands on a small configuration: run, analyse, judge, and what they say of bad input."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app
from streamgauge.suites.sepbm import ConfigurationError, UnusableSystemError, read, recordings
from tests.suites.sepbm.stored import SMALL, stored
from tests.suites.sepbm.test_recordings import facts

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def sepbm(*words):
    return CliRunner().invoke(app, ["sepbm", *map(str, words)], catch_exceptions=False)


@pytest.fixture
def conf(tmp_path):
    return stored(tmp_path / "conf").folder


@pytest.mark.slow
def test_a_run_is_kept_analysed_and_judged(conf, tmp_path):
    out, page = tmp_path / "run", tmp_path / "page.html"
    assert sepbm("run", conf, "--out", out).exit_code == 0
    recordings.write_facts(out, facts())
    verdict = sepbm("analyse", out, "--of", conf, "--judge", "--json", "--out", page)
    assert verdict.exit_code == 0
    (one,) = json.loads(verdict.stdout)["runs"]
    due = sum(len(report.added) + len(report.removed) for report in SMALL.due())
    assert (one["all"]["due"], one["all"]["delivered"], one["all"]["missed"]) == (due, due, 0)
    assert {report["judgement"] for report in one["verdicts"].values()} == {"right"}
    assert one["all"]["throughput"]["complete"] == len(SMALL.publications)
    assert "1 of 1 run sent all notifications that were due" in page.read_text(encoding="utf-8")
    assert "1 of 1 run sent all" in sepbm("analyse", out, "--of", conf).stdout


def test_recordings_of_one_name_all_count(conf, tmp_path):
    """Runs of one system with the same options, in folders of the same name; the second lacks its notifications."""
    folders = [tmp_path / one / "run" for one in "abc"]
    assert sepbm("run", conf, "--out", folders[0]).exit_code == 0
    whole = recordings.read(folders[0])
    for folder, heard in zip(folders[1:], ((), whole.heard), strict=True):
        recordings.write(folder, replace(whole, heard=heard), read(conf))
    analysed = sepbm("analyse", *folders, "--of", conf, "--json")
    runs = {run["name"]: run["all"]["missed"] > 0 for run in json.loads(analysed.stdout)["runs"]}
    name = "broker_inprocess"
    assert (analysed.exit_code, runs) == (1, {f"{name} ({folder})": folder == folders[1] for folder in folders})
    for words in (("analyse", folders[0], "--of", conf), ("characterise", conf, "--run", folders[0], "--run")):
        twice = sepbm(*words, tmp_path / "b" / ".." / "a" / "run")
        assert (twice.exit_code, "named twice" in twice.stderr) == (2, True)


def test_part_of_a_run_is_asked_for_by_options(conf, tmp_path):
    words = ("--channel", "named", "--first", 3, "--publishers", 2, "-o", "strategy=reevaluate")
    assert sepbm("run", conf, "--out", tmp_path / "run", *words).exit_code == 0
    result = recordings.read(tmp_path / "run")
    assert (result.channels, len(result.published), result.publishers) == (("named",), 3, 2)
    assert result.options == {"strategy": "reevaluate"}


def test_few_statements_are_made_in_this_process_also_where_a_master_is_named(tmp_path, monkeypatch):
    """Spark would take twenty times the CPU: a job for each query, over next to nothing."""
    monkeypatch.setattr("streamgauge.cli.sepbm.spark", None)
    (tmp_path / "data.nt").write_text("".join(f"<urn:{n}> {TYPE} <urn:Sub> .\n" for n in range(4)))
    (tmp_path / "ontology.nt").write_text(f"<urn:Sub> {SUBCLASS} <urn:Super> .\n")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "all.rq").write_text("SELECT ?x { ?x a <urn:Super> }")
    named = ("--data", "data.nt", "--queries", "queries", "--ontology", "ontology.nt")
    places = [tmp_path / word if number % 2 else word for number, word in enumerate(named)]
    out = sepbm("generate", tmp_path / "conf", *places, "--publications", 2, "--master", "local[2]")
    assert (out.exit_code, len(list(read(tmp_path / "conf").sequence()))) == (0, 2)


def test_bad_input_is_named(conf, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ConfigurationError, match=r"configuration\.json"):
        sepbm("run", tmp_path, "--out", out)
    with pytest.raises(UnusableSystemError, match="unknown system none"):
        sepbm("run", conf, "--out", out, "--system", "none")
    with pytest.raises(recordings.RecordingError, match=r"recording\.json"):
        sepbm("analyse", out, "--of", conf)
    for words in (("--option", "strategy"), ("--channel", "none"), ("--rate", 0)):
        assert sepbm("run", conf, "--out", out, *words).exit_code == 2
    assert sepbm("generate", out, "--data", "file.nt").exit_code == 2


def test_systems_are_listed_with_their_options():
    result = json.loads(sepbm("systems", "--json").stdout)
    assert "strategy" in result["broker_inprocess"]["options"]
    assert "broker_inprocess" in sepbm("systems").stdout
