"""How far time came is one number for every command, and named in the output."""

import json

import pytest

from streamgauge import verify
from streamgauge.formats.run import read_verdict
from streamgauge.formats.stream import write
from tests.notation import stream

QUERY = """PREFIX ex: <urn:>
REGISTER STREAM <urn:out> AS
SELECT ?s FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT10S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s ex:p ?o } }
"""
EXPERIMENT = """
[workload]
file = "stream.parquet"
[query]
file = "query.rq"
[[engine]]
name = "live"
semantics = "rspql"
"""
INSTANTS = [10_000, 15_000, 20_000, 25_000, 30_000]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "query.rq").write_text(QUERY)
    (tmp_path / "one.toml").write_text(EXPERIMENT)
    write(stream(" | ".join(f"{t * 1000}: s{t} p o." for t in range(33))), tmp_path / "stream.parquet")
    return tmp_path


def expect(command, *more):
    return command("expect", "query.rq", "--stream", "stream.parquet", "--semantics", "rspql", "--rows", *more)


def imported(here, command, reports, *more):
    documents = [
        {
            "timestamp": report["instant"],
            "head": {"vars": ["s"]},
            "results": {"bindings": [{"s": {"type": "uri", "value": row[0][1:-1]}} for row in report["rows"]]},
        }
        for report in reports
    ]
    (here / "answers.json").write_text(json.dumps(documents))
    return command("import", "answers.json", "--query", "query.rq", "--stream", "stream.parquet", "--semantics",
                   "rspql", "--out", "imported", *more)  # fmt: skip


@pytest.mark.server
@pytest.mark.usefixtures("undrawn")
def test_every_command_has_the_same_horizon(here, command):
    _, out, err = expect(command)
    reports = json.loads(out)
    assert [report["instant"] for report in reports] == INSTANTS
    assert "time reached 32,000 ms" in err
    _, out, err = command("query", "query.rq", "--stream", "stream.parquet", "--semantics", "rspql", "--json")
    assert [json.loads(line)["instant"] for line in out.splitlines()] == INSTANTS
    assert "time reached 32,000 ms" in err
    _, _, err = imported(here, command, reports)
    assert "time is assumed to end at 32,000 ms" in err
    code, out, _ = command("check", "imported", "--json")
    result = json.loads(out)
    assert (code, result["horizon"], [window["instant"] for window in result["windows"]]) == (0, 32_000, INSTANTS)
    code, out, err = command("run", "one.toml", "--out", "runs", "--json")
    assert code == 0
    (run,) = (here / "runs").glob("live-*")
    assert read_verdict(run).horizon == 32_000
    assert [window.instant for window in read_verdict(run).windows] == INSTANTS
    assert "32 s: no report was due after it" in err


def test_check_and_explain_agree_on_reports_after_the_last_answer(here, command):
    reports = json.loads(expect(command)[1])
    imported(here, command, reports, "--advance-to", "40s")
    code, out, _ = command("check", "imported")
    assert code == 1
    assert "2 missed" in out
    assert "40 s: no report was due after it" in out
    _, out, _ = command("explain", "imported")
    assert "nothing to explain" not in out
    assert "The recording ends at 40,000 ms" in out
    kept = read_verdict(here / "imported")
    assert kept.diagnosis is not None
    assert kept.diagnosis.differs == kept.missed == 2


def test_check_and_explain_agree_on_answers_after_the_horizon(here, command):
    reports = json.loads(expect(command)[1])
    imported(here, command, reports, "--advance-to", "20s")
    assert json.loads(command("check", "imported", "--json")[1])["surplus"] == 2
    command("explain", "imported")
    diagnosis = read_verdict(here / "imported").diagnosis
    assert diagnosis is not None
    assert diagnosis.differs == 2


def test_query_goes_on_only_when_asked(here, command):
    _, out, err = command(
        "query", "query.rq", "--stream", "stream.parquet", "--semantics", "rspql", "--json", "--advance-to", "windows"
    )
    assert [json.loads(line)["instant"] for line in out.splitlines()] == [*INSTANTS, 35_000, 40_000]
    assert "time reached 42,000 ms" in err


def test_a_stream_that_ends_before_its_first_window_says_when_that_closes(here, command):
    """The finding: 0 answers and time reached 19,992 ms, without a word on the window that closes at 25,000."""
    element = {"t": 19_992, "add": "<urn:s> <urn:p> <urn:o> .\n"}
    (here / "short.jsonl").write_text(json.dumps(element))
    asked = ("query.rq", "--stream", "short.jsonl", "--semantics", "rspql")
    code, out, err = command("query", *asked, "--json")
    closes = "time reached 19,992 ms: the first window closes at 20,000 ms, and --advance-to windows closes it"
    assert (code, out, err) == (0, "", f"1 element; 0 answers; {closes}\n")
    code, out, err = command("expect", *asked, "--rows")
    assert (code, json.loads(out), err.splitlines()[-1]) == (0, [], closes)
    for name in ("query", "expect"):
        _, out, err = command(name, *asked, "--advance-to", "windows", "--json")
        assert ("closes it" in err, "20000" in out, "25000" in out) == (False, True, True)


def test_elements_before_a_stated_t0_are_counted(here, command):
    more = ("--semantics", "rspql", "--t0", "20s", "--json")
    _, _, err = command("query", "query.rq", "--stream", "stream.parquet", *more)
    assert err == "33 elements, 20 of them before t0 and not counted; 1 answer; time reached 32,000 ms\n"


def test_times_before_1970_are_answered_and_expected(here, command):
    elements = [{"t": t * 1000, "add": f"<urn:s{t}> <urn:p> <urn:o> .\n"} for t in range(-42, -20, 4)]
    (here / "early.jsonl").write_text("\n".join(map(json.dumps, elements)))
    asked = ("query.rq", "--stream", "early.jsonl", "--semantics", "rspql", "--json", "--advance-to", "-20s")
    code, out, _ = command("query", *asked)
    assert (code, [json.loads(line)["instant"] for line in out.splitlines()]) == (
        0,
        [-35_000, -30_000, -25_000, -20_000],
    )
    _, out, _ = command("expect", *asked)
    assert [report["instant"] for report in json.loads(out)] == [-35_000, -30_000, -25_000, -20_000]


def test_a_verdict_says_when_the_first_window_closes():
    verdict = verify(QUERY, [(3_000, "<urn:s> <urn:p> <urn:o> .")], answers=[])
    assert "time reached 3,000 ms, but the first window closes at 10,000 ms" in verdict.reason
    assert verify(QUERY, [(3_000, "<urn:s> <urn:p> <urn:o> .")], answers=[], advance_to="windows").missed == 1


def test_a_file_that_says_how_far_time_came_is_heeded_by_all(here, command):
    element = {"stream": "http://ex.org/streams/test", "t": 0, "n": 0, "add": "<urn:s> <urn:p> <urn:o> .\n"}
    (here / "told.jsonl").write_text(f"{json.dumps(element)}\n{json.dumps({'advance': 21_000})}\n")
    _, out, _ = command("expect", "query.rq", "--stream", "told.jsonl", "--semantics", "rspql", "--rows")
    reports = json.loads(out)
    assert [report["instant"] for report in reports] == [10_000, 15_000, 20_000]
    _, out, _ = command("query", "query.rq", "--stream", "told.jsonl", "--semantics", "rspql", "--json")
    assert [json.loads(line)["instant"] for line in out.splitlines()] == [10_000, 15_000, 20_000]
    (here / "answers.json").write_text(
        json.dumps([{"timestamp": 10_000, "head": {"vars": ["s"]}, "results": {"bindings": []}}])
    )
    _, _, err = command("import", "answers.json", "--query", "query.rq", "--stream", "told.jsonl", "--semantics",
                        "rspql", "--out", "told")  # fmt: skip
    assert "time is assumed to end at 21,000 ms" in err
