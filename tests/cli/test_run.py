"""The main job through the command line: run, keep, check, report; exit codes say what happened."""

import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.cli import pipeline
from streamgauge.formats.stream import write
from streamgauge.spark import requirements
from tests.notation import stream

QUERY = """PREFIX ex: <urn:>
REGISTER STREAM <urn:out> AS
SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s ex:p ?o } }
"""
EXPERIMENT = """name = "small"
repetitions = 2
[workload]
file = "stream.parquet"
[query]
file = "query.rq"
[[engine]]
name = "live"
semantics = ["rspql", "cqels"]
[feed]
advance_to = "20s"
"""
TEXT = " | ".join(f"{t}: s{t % 3} p o{t}." for t in range(0, 20_000, 500))


def written(folder):
    """The experiment as files."""
    (folder / "query.rq").write_text(QUERY)
    (folder / "small.toml").write_text(EXPERIMENT)
    write(stream(TEXT), folder / "stream.parquet")
    return folder


@pytest.fixture
def here(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder where the experiment is kept with one repetition in ``out``, once a test has run it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def done(kept, command, undrawn):
    """The experiment with one repetition in ``out``, always at the same place: each test has a copy to change."""
    folder = kept / "here"
    if not (kept / "untouched").exists():
        folder.mkdir()
        assert command(*once(written(folder)))[0] == 0
        folder.rename(kept / "untouched")
    shutil.copytree(kept / "untouched", folder)
    yield folder
    shutil.rmtree(folder)


def once(folder):
    """The words that run one repetition of the experiment of a folder."""
    return "run", folder / "small.toml", "--out", folder / "out", "-D", "repetitions=1"


@pytest.mark.server
@pytest.mark.usefixtures("undrawn")
def test_the_main_job(here, command):
    code, out, _ = command("run", here / "small.toml", "--out", here / "out", "--json")
    assert code == 0
    result = json.loads(out)
    assert [run["judgement"] for run in result["runs"]] == ["right"] * 4
    page = Path(result["report"]).read_text()
    assert "live as cqels" in page

    kept = {path: path.stat().st_mtime_ns for path in (here / "out").glob("live-*/run.json")}
    assert len(kept) == 4
    assert command("run", here / "small.toml", "--out", here / "out")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept

    code, out, _ = command("check", here / "out" / "live-rspql-seed0-1", "--json")
    assert (code, json.loads(out)["judgement"]) == (0, "right")
    assert command("report", here / "out", "--out", here / "page.html")[0] == 0
    assert (here / "page.html").stat().st_size > 10_000


@pytest.mark.server
def test_a_kept_run_is_not_taken_for_another_experiments(done, command):
    words = once(done)
    assert command(*words)[0] == 0
    (done / "query.rq").write_text(QUERY.replace("PT5S STEP PT5S", "PT4S STEP PT4S"))
    assert command(*words)[0] == 2
    assert command(*words, "--again", "-D", "engine=[{name = 'live', semantics = 'rspql'}]")[0] == 0


@pytest.mark.server
def test_a_spoilt_run_is_wrong_and_a_late_one_late(done, command):
    run = done / "out" / "live-rspql-seed0-1"
    for part in (run / "answers.parquet").glob("*.parquet"):
        answers = pq.read_table(part)
        at = answers.schema.get_field_index("received")
        later = pa.array([moment + 10**10 for moment in answers.column(at).to_pylist()], answers.schema.field(at).type)
        pq.write_table(answers.set_column(at, answers.schema.field(at), later), part)
    code, out, _ = command("check", run, "--max-delay", "5s", "--json")
    assert (code, json.loads(out)["judgement"]) == (5, "right but late")
    part = sorted((run / "rows.parquet").glob("*.parquet"))[-1]
    rows = pq.read_table(part)
    values = rows.column("values").to_pylist()
    values[0] = ["<urn:never>", *values[0][1:]]
    at = rows.schema.get_field_index("values")
    pq.write_table(rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type)), part)
    code, out, _ = command("check", run, "--json")
    assert (code, json.loads(out)["judgement"]) == (1, "wrong")


@pytest.mark.server
def test_another_semantics_is_judged_without_touching_the_run(done, command):
    run = done / "out" / "live-rspql-seed0-1"
    before = (run / "verdict.json").read_text()
    code, out, _ = command("check", run, "--semantics", "yabench", "--json")
    assert (code, json.loads(out)["judgement"]) == (1, "wrong")
    assert (run / "verdict.json").read_text() == before


@pytest.mark.server
@pytest.mark.usefixtures("undrawn")
def test_an_engine_that_fails_has_its_own_exit_code(here, command):
    code, out, _ = command(
        "run", here / "small.toml", "--out", here / "out", "-D", "repetitions=1", "-D", "feed.pace=0.01",
        "-D", "feed.time_limit=500ms", "-D", "engine=[{name = 'live', semantics = 'rspql'}]", "--json",
    )  # fmt: skip
    assert code == 3
    assert "time limit" in json.dumps(json.loads(out)["runs"][0])


def test_engines_and_workloads_as_json(command):
    assert "live" in json.loads(command("engines", "--json")[1])["engines"]
    assert {"csrbench", "weather"} <= {load["name"] for load in json.loads(command("workloads", "--json")[1])}


@pytest.mark.parametrize("missing", ["", "PySpark", "Java"])
def test_the_demo_runs_in_one_process_where_spark_cannot_start(command, monkeypatch, tmp_path, missing):
    masters = []
    monkeypatch.setattr(pipeline, "_follow", lambda *words, **_: masters.append(words[3]))
    if missing == "PySpark":
        monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setattr(requirements, "java_lack", lambda: "Spark needs Java" if missing == "Java" else "")
    code, _, complaint = command("demo", "--out", tmp_path)
    assert (code, masters) == (0, [None if missing else "local[*]"])
    assert complaint.startswith("streamgauge: note: this process generates and judges the stream" if missing else "")
    assert f"Spark needs {missing}" in complaint if missing else complaint == ""
