"""From one's own data to a verdict: the files of examples/parking through every command."""

import json
import shutil
import time
from pathlib import Path

import psutil
import pytest

from streamgauge.formats.stream import elements
from streamgauge.suites.experiments import read
from streamgauge.suites.experiments.plan import plan_query
from streamgauge.suites.experiments.runner import ExperimentContext, made_stream

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "parking"
TIMES = {
    "parking.ttl": ["--time-property", "sosa:resultTime"],
    "parking.trig": ["--time-property", "prov:generatedAtTime"],
    "parking.csv": [],
}
QUERIES = ("parking.rq", "parking-csparql.rq", "parking-cqels.rq")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "parking")
    monkeypatch.chdir(tmp_path / "parking")
    return tmp_path / "parking"


@pytest.mark.parametrize("query", QUERIES)
def test_every_form_of_the_data_gives_the_same_answers_and_expectation(here, command, query):
    said, due = [], []
    for file, options in TIMES.items():
        code, out, err = command("query", query, "--stream", file, *options, "--json")
        assert code == 0, err
        assert err.startswith("36 elements; 12 answers"), err
        said.append([(answer["instant"], sorted(answer["add"])) for answer in map(json.loads, out.splitlines())])
        code, out, err = command("expect", query, "--stream", file, *options, "--rows")
        assert code == 0, err
        due.append([(load["instant"], sorted(load["rows"])) for load in json.loads(out) if load["rows"]])
    assert said == [said[0]] * 3
    assert due == [due[0]] * 3
    assert [entry for entry in said[0] if entry[1]] == due[0]
    assert due[0]


WRONG = {
    "no property": (["parking.ttl"], "its name has no number for its time, as in data_07.ttl"),
    "a prefix that is none": (["parking.ttl", "--time-property", "sossa:resultTime"], "did you mean sosa:?"),
    "another property": (["parking.ttl", "--time-property", "sosa:phenomenonTime"], "did you mean sosa:resultTime?"),
    "another column": (["parking.csv", "--time-property", "zeit"], "no column 'zeit'"),
    "a zone that is none": (["parking.csv", "--time-zone", "Vienna"], "'Vienna' is not a zone"),
    "a unit that is none": (["parking.csv", "--time-in", "h"], "expected ns, us, ms, s"),
    "no mapping": (["parking.csv", "--csv-mapping", "no.json"], "no.json: the mapping of columns cannot be read"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("name", ["query", "expect"])
def test_what_is_wrong_is_one_sentence(here, command, name, case):
    words, said = WRONG[case]
    code, out, err = command(name, "parking.rq", "--stream", *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_the_querys_own_prefixes_name_the_property(here, command):
    Path("own.rq").write_text(Path("parking.rq").read_text().replace("sosa:", "s:"))
    code, _, err = command("query", "own.rq", "--stream", "parking.ttl?time_property=s:resultTime", "--json")
    assert (code, err.split(";")[0]) == (0, "36 elements")


def test_what_is_passed_over_is_told_by_every_command(here, command):
    rows = Path("parking.csv").read_text().splitlines()
    Path("parking.csv").write_text("\n".join([*rows[:4], ",station,9", *rows[4:]]))
    for name in ("query", "expect"):
        code, _, err = command(name, "parking.rq", "--stream", "parking.csv?bad=skip", "--json")
        assert code == 0
        assert "skipped: parking.csv, line 5: no time: column time is empty" in err
        code, _, err = command(name, "parking.rq", "--stream", "parking.csv")
        assert (code, "parking.csv, line 5: no time" in err) == (2, True)


def test_an_option_of_a_source_is_for_it_alone(here, command):
    code, _, err = command(
        *("query", "parking.rq", "--stream", "parking.csv"),
        *("--stream", "parking.ttl?time_property=sosa:resultTime", "--json"),
    )
    assert (code, err.split(";")[0]) == (0, "72 elements")


@pytest.mark.parametrize("file", TIMES)
def test_an_experiment_reads_every_form(here, file):
    options = {"parking.ttl": "sosa:resultTime", "parking.trig": "prov:generatedAtTime", "parking.csv": "time"}
    asked = read(here / "parking.toml", [f"workload.file={here / file}", f"workload.time_property={options[file]}"])
    table, facts = made_stream(
        asked, plan_query(asked), 0, ExperimentContext(here / "out", lambda: pytest.fail("no Spark here"))
    )
    assert {element.stream for element in elements(table)} == {"http://park.example/stream"}
    assert len(list(elements(table))) == 36
    assert facts.first > 1.7e12


@pytest.mark.server
def test_own_stream_and_query_to_verdict_and_page(here, command):
    """The first hour of a user with data of one's own; goal: 60 s of machine time (measured: under 5 s of CPU)."""
    begun = _cpu()
    code, out, err = command("run", "parking.toml", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert [run["judgement"] for run in result["runs"]] == ["right", "right"]
    code, _, err = command("check", "runs/parking/live-csparql-seed0-1")
    assert code == 0, err
    assert "live as csparql" in Path(result["report"]).read_text()
    code, out, err = command("report", "runs/parking", "--out", "page.html")
    assert code == 0, err
    assert Path("page.html").stat().st_size > 10_000
    spent = _cpu() - begun
    print(f"own stream and query to verdict and page: {spent:.1f} s of CPU")
    assert spent < 60


def _cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = psutil.Process().cpu_times()
    return times.user + times.system + times.children_user + times.children_system


def test_the_engine_is_fed_from_near_the_first_element(here, command):
    """Times since 1970 are 55 years after the semantics' t0 = 0: nobody waits for those reports."""
    begun = time.process_time()
    code, out, _ = command("expect", "parking.rq", "--stream", "parking.csv", "--json")
    assert code == 0
    assert len(json.loads(out)) == 12  # those before the first element are nobody's (docs/semantics.md)
    assert time.process_time() - begun < 5
