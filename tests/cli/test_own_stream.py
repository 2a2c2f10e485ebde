"""A user's own stream under its own name, in every command: elements without a stream belong to the query's."""

import json
from pathlib import Path

import pytest

from streamgauge.formats.stream import elements
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sources import SourceError
from streamgauge.suites.experiments import Experiment, ExperimentError, read
from streamgauge.suites.experiments.plan import identity, plan_query, stream_facts
from streamgauge.suites.experiments.runner import ExperimentContext, made_stream, run_experiment

PARKING = "http://park.example/stream"
STREAM = """<urn:o1> <http://park.example/free> "12"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g:1000> .
<urn:o2> <http://park.example/free> "3"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g:3000> .
<urn:o3> <http://park.example/free> "0"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g:7000> .
"""
QUERIES = {
    "rspql": f"""PREFIX : <http://park.example/> REGISTER RSTREAM <urn:out> AS SELECT ?o ?free
        FROM NAMED WINDOW :w ON <{PARKING}> [RANGE PT5S STEP PT5S] WHERE {{ WINDOW :w {{ ?o :free ?free }} }}""",
    "csparql": f"""REGISTER QUERY free AS PREFIX : <http://park.example/> SELECT ?o ?free
        FROM STREAM <{PARKING}> [RANGE 5s STEP 5s] WHERE {{ ?o :free ?free }}""",
    "cqels": f"""PREFIX : <http://park.example/> SELECT ?o ?free
        WHERE {{ STREAM <{PARKING}> [RANGE 5s SLIDE 5s] {{ ?o :free ?free }} }}""",
}
TWO = """SELECT ?o ?p FROM NAMED WINDOW <urn:v> ON <urn:cars> [RANGE PT5S STEP PT5S]
    FROM NAMED WINDOW <urn:w> ON <urn:prices> [RANGE PT5S STEP PT5S]
    WHERE { WINDOW <urn:v> { ?o <http://park.example/free> ?f } WINDOW <urn:w> { ?p <http://park.example/free> ?g } }"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("parking.nq").write_text(STREAM)
    for name, text in QUERIES.items():
        Path(f"{name}.rq").write_text(text)
    Path("two.rq").write_text(TWO)
    return tmp_path


def experiment(workload: dict[str, object], query: str = QUERIES["rspql"]) -> Experiment:
    parts = {"query": {"text": query}, "engine": [{"name": "live", "semantics": ["rspql"]}]}
    return Experiment.model_validate({"workload": workload, **parts})


@pytest.mark.parametrize("dialect", QUERIES)
@pytest.mark.parametrize("stream", ["parking.nq", f"{PARKING}=parking.nq", f"<{PARKING}>=parking.nq"])
def test_query_and_expect_agree_on_a_file_that_names_no_stream(here, command, dialect, stream):
    code, out, _ = command("expect", f"{dialect}.rq", "--stream", stream, "--semantics", dialect, "--rows")
    assert code == 0
    due = [(load["instant"], sorted(map(tuple, load["rows"]))) for load in json.loads(out) if load["rows"]]
    code, out, _ = command("query", f"{dialect}.rq", "--stream", stream, "--json")
    assert code == 0
    said = [json.loads(line) for line in out.splitlines()]
    assert [(entry["instant"], sorted(map(tuple, entry["add"]))) for entry in said] == due
    assert sum(len(rows) for _, rows in due) == (3 if dialect == "cqels" else 2)


@pytest.mark.parametrize("words", [["query"], ["expect", "--semantics", "rspql"]])
def test_another_name_is_refused_with_both(here, command, words):
    name, *options = words
    code, _, err = command(name, "rspql.rq", "--stream", "http://park.example/steam=parking.nq", *options)
    assert code == 2
    assert "<http://park.example/steam>, but the query reads <http://park.example/stream>" in err


@pytest.mark.parametrize("words", [["query"], ["expect", "--semantics", "rspql"]])
def test_of_two_streams_a_file_must_be_told_which(here, command, words):
    name, *options = words
    code, _, err = command(name, "two.rq", "--stream", "parking.nq", *options)
    assert code == 2
    assert "reads <urn:cars> and <urn:prices>, and this source does not say which" in err
    assert "parking.nq" in err
    both = ["--stream", "urn:cars=parking.nq", "--stream", "urn:prices=parking.nq"]
    code, out, _ = command(name, "two.rq", *both, *options, "--json")
    assert code == 0
    assert out.strip()


def test_lines_that_name_no_stream_are_the_querys(here, command):
    lines = ['{"t": 1000, "add": "<urn:o1> <http://park.example/free> 12 ."}', '{"t": 6000}', '{"advance": 9000}']
    lines[0] = lines[0].replace("12", '\\"12\\"')
    Path("parking.jsonl").write_text("\n".join(lines))
    code, out, _ = command("query", "rspql.rq", "--stream", "parking.jsonl", "--json")
    assert (code, json.loads(out.splitlines()[0])["instant"]) == (0, 5000)


def test_lines_that_name_another_stream_are_refused_and_forced_by_a_name(here, command):
    line = '{"t": 1000, "n": 0, "stream": "urn:other", "add": "<urn:o1> <http://park.example/free> \\"12\\" ."}'
    Path("other.jsonl").write_text(line)
    code, _, err = command("expect", "rspql.rq", "--semantics", "rspql", "--stream", "other.jsonl")
    assert code == 2
    assert "recorded is <urn:other>: name the same stream in both (a file's is named by IRI=FILE)" in err
    code, out, _ = command(
        "expect",
        "rspql.rq",
        "--semantics",
        "rspql",
        "--stream",
        f"{PARKING}=other.jsonl",
        "--advance-to",
        "5s",
        "--json",
    )
    assert (code, json.loads(out)[0]["expected_result_size"]) == (0, 1)


WORKLOADS = {
    "a file": {"file": "parking.nq"},
    "a file under its name": {"file": f"{PARKING}=parking.nq"},
    "a file and a name": {"file": "parking.nq", "stream": PARKING},
    "a table": {"stream": {PARKING: "parking.nq"}},
    "files": {"file": ["parking.nq"]},
}


@pytest.mark.parametrize("how", WORKLOADS)
def test_the_stream_table_of_an_experiment_has_the_querys_name(here, how):
    doing = ExperimentContext(here / "out", lambda: pytest.fail("no Spark here"))
    asked = experiment(WORKLOADS[how])
    planned = plan_query(asked)
    table, facts = made_stream(asked, planned, 0, doing)
    assert {element.stream for element in elements(table)} == {PARKING}
    assert facts == stream_facts(table)
    assert facts.triples == 3


REFUSED = {
    "another name": ({"file": "urn:other=parking.nq"}, SourceError, "parking.nq is declared as <urn:other>"),
    "another stream": ({"file": "parking.nq", "stream": "urn:other"}, SourceError, "declared as <urn:other>"),
    "a workload's": ({"name": "weather", "stream": "urn:other"}, ExperimentError, "generates <urn:other>"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_fit_is_refused_before_anything_runs(here, case):
    workload, error, words = REFUSED[case]
    doing = ExperimentContext(here / "out", lambda: pytest.fail("no Spark here"))
    with pytest.raises(error, match=words):
        next(run_experiment(experiment(workload), doing))
    assert not (here / "out").exists()


def test_a_workload_with_its_own_name_is_refused_before_an_engine_starts(here):
    doing = ExperimentContext(here / "out", lambda: pytest.fail("no Spark here"))
    small = {"name": "weather", "stations": 1, "interval": "1s", "duration": "3s"}
    with pytest.raises(RefusedError, match=f"reads <{PARKING}>, but what was recorded is"):
        next(run_experiment(experiment(small), doing))
    assert [path.name for path in (here / "out").iterdir()] == ["streams"]


def test_a_file_that_changed_is_another_stream(here):
    part, query = experiment({"file": "parking.nq"}).workload, plan_query(experiment({"file": "parking.nq"})).query
    before = identity(part, query)
    assert identity(part, query) == before
    Path("parking.nq").write_text(STREAM + '<urn:o4> <urn:p> "1" <urn:g:9000> .\n')
    assert identity(part, query) != before
    assert identity(experiment({"name": "weather"}).workload, query) == {}


BAD = {
    'file = "a.nq"\nname = "weather"': "give either name",
    "file = 5": "expected a file name or a list of file names",
    'file = "a.nq"\nstream = 7': "expected the IRI of the stream, or a table",
    'file = "a.nq"\nstream = { "urn:a" = "b.nq" }': "give the files once",
    'file = "a.nq"\nstations = 5': "stations does not apply to a recorded stream",
    'name = "weather"\ntime_property = "sosa:resultTime"': "time_property is for a recorded stream",
}


@pytest.mark.parametrize("table", BAD)
def test_a_wrong_workload_is_named(tmp_path, table):
    file = tmp_path / "e.toml"
    file.write_text(
        f'[workload]\n{table}\n[query]\ntext = "ASK {{}}"\n[[engine]]\nname = "live"\nsemantics = "rspql"\n'
    )
    with pytest.raises(ExperimentError, match=BAD[table]) as result:
        read(file)
    assert str(result.value).count("\n") == 0


def test_paths_are_relative_to_the_experiment_file(tmp_path):
    file = tmp_path / "e.toml"
    tables = {
        'file = "a.nq"': ["a.nq"],
        'file = "urn:s=a.nq?interval=5"': ["a.nq?interval=5"],
        'file = ["a.nq", "urn:t=b.nq"]': ["a.nq", "b.nq"],
        'stream = { "urn:s" = "a.nq", "urn:t" = "b.nq" }': ["a.nq", "b.nq"],
    }
    for table, names in tables.items():
        file.write_text(f'[workload]\n{table}\n[query]\ntext = "A"\n[[engine]]\nname = "live"\nsemantics = "rspql"\n')
        assert [source.address for source in read(file).workload.sources] == [str(tmp_path / name) for name in names]
    file.write_text(file.read_text().replace(table, 'file = "kafka://host/topic?until=end"'))
    assert [source.address for source in read(file).workload.sources] == ["kafka://host/topic?until=end"]


def test_an_engine_says_a_sentence_where_its_input_cannot_be(here, monkeypatch, capsys):
    """A stream whose time goes back, under a semantics without lateness: no traceback for the verdict to show."""
    from streamgauge.harness import host
    from streamgauge.semantics.refusal import OutOfOrderError

    def serve(*_given: object, **_how: object) -> int:
        raise OutOfOrderError("element 1 goes back from 5 to 3 ms: sort the stream or declare a lateness bound")

    monkeypatch.setattr(host, "serve", serve)
    monkeypatch.setattr("sys.argv", ["host", "live"])
    with Path("parking.nq").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert host.main() == 1
    assert capsys.readouterr().err == (
        "element 1 goes back from 5 to 3 ms: sort the stream or declare a lateness bound\n"
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("in.nq", "in.nq?stream=http%3A%2F%2Fpark.example%2Fstream"),
        ("in.nq?follow=1", "in.nq?follow=1&stream=http%3A%2F%2Fpark.example%2Fstream"),
        ("kafka://host/topic?stream=urn:s", "kafka://host/topic?stream=urn:s"),
        ("<urn:s>=in.nq", "in.nq?stream=urn%3As"),
    ],
)
def test_a_job_on_spark_reads_the_querys_stream(given, wanted):
    """Elements that name no stream land as those of the query's only one."""
    from streamgauge.engines.spark.pipeline import Job, resolved_source

    job = Job.__new__(Job)
    object.__setattr__(job, "source", given)
    object.__setattr__(job, "query", plan_query(experiment({"file": "x.nq"})).query)
    assert resolved_source(job) == wanted
