"""Bad input is refused with its place named, in one sentence, with exit code 2; nothing is lost."""

import json
import shutil
from dataclasses import replace
from typing import NamedTuple

import pytest

from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

QUERY = """PREFIX ex: <urn:>
REGISTER STREAM <urn:out> AS
SELECT ?s FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s ex:p ?o } }
"""
EXPERIMENT = """
[workload]
file = "stream.nq"
[query]
file = "query.rq"
[[engine]]
name = "live"
semantics = "csparql"
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "query.rq").write_text(QUERY)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    write(stream("0: a p b. | 3000: b p c. | 9000: c p d."), tmp_path / "stream.parquet")
    (tmp_path / "table").mkdir()
    write(stream("0: a p b. | 3000: b p c. | 9000: c p d."), tmp_path / "table" / "part-0.parquet")
    return tmp_path


def expect(here, *more):
    return ("expect", here / "query.rq", "--stream", here / "table", "--semantics", "rspql", *more)


def test_good_input_first(here, command):
    """So that the cases below fail for their own reason."""
    code, out, _ = command(*expect(here, "--advance-to", "10s", "--json"))
    assert code == 0
    assert [(window["instant"], window["expected_result_size"]) for window in json.loads(out)] == [
        (5000, 2),
        (10000, 1),
    ]


def test_not_n_triples(here, command):
    bad = here / "bad.n3t"
    bad.write_text('<urn:a> <urn:p> <urn:b> "0" .\nthis is not a triple\n')
    code, _, err = command("expect", here / "query.rq", "--stream", bad, "--semantics", "rspql")
    assert code == 2
    assert "bad.n3t" in err
    assert "line 2" in err or ":2" in err


def test_time_that_goes_back(here, command):
    bad = here / "back.n3t"
    bad.write_text('<urn:a> <urn:p> <urn:b> "5" .\n<urn:a> <urn:p> <urn:c> "3" .\n')
    code, _, err = command("expect", here / "query.rq", "--stream", bad, "--semantics", "rspql")
    assert code == 2
    assert "back.n3t" in err
    assert "lateness" in err


def test_an_unknown_prefix(here, command):
    (here / "query.rq").write_text(QUERY.replace("PREFIX ex: <urn:>\n", ""))
    code, _, err = command(*expect(here))
    assert code == 2
    assert "ex:" in err


def test_a_query_that_the_parser_rejects_shows_line_and_column(here, command):
    (here / "query.rq").write_text(QUERY.replace("?s ex:p ?o", "?s ex:p"))
    code, _, err = command(*expect(here))
    assert code == 2
    assert "line 4" in err
    assert "column" in err


def test_a_static_graph_without_its_file(here, command):
    asked = QUERY.replace("?s ex:p ?o } }", "?s ex:p ?o } ?o ex:in ?h }").replace(
        "SELECT ?s", "SELECT ?s ?h FROM <urn:g>"
    )
    (here / "query.rq").write_text(asked)
    code, _, err = command(*expect(here, "--advance-to", "10s", "--json"))
    assert code == 2
    assert "the query reads <urn:g>: name the file" in err
    (here / "rooms.ttl").write_text("<urn:c> <urn:in> <urn:house> .")
    code, out, _ = command(*expect(here, "--advance-to", "10s", "--rows", "--static", here / "rooms.ttl"))
    assert code == 0
    assert [window["rows"] for window in json.loads(out)] == [[["<urn:b>", "<urn:house>"]], []]


def test_slide_0(here, command):
    (here / "query.rq").write_text(QUERY.replace("STEP PT5S", "STEP PT0S"))
    code, _, err = command(*expect(here))
    assert code == 2
    assert "line 3" in err


@pytest.mark.slow
def test_a_window_beyond_the_memory_limit_names_the_limit(here, command):
    elements = stream(" | ".join(f"{t}: a{t} p b." for t in range(3000)))
    write(elements, here / "table" / "part-0.parquet")
    code, _, err = command(*expect(here, "--memory-limit-mb", "1"))
    assert code == 2
    assert "memory_limit_mb = 1" in err


def test_a_misspelled_key(here, command):
    (here / "experiment.toml").write_text(EXPERIMENT.replace("semantics", "semantic"))
    code, _, err = command("run", here / "experiment.toml", "--out", here / "out")
    assert code == 2
    assert "experiment.toml:8: " in err
    assert "allowed here: name, options, semantics, time_unit" in err


def test_an_unknown_semantics_lists_the_known_ones(here, command):
    code, _, err = command("expect", here / "query.rq", "--stream", here / "table", "--semantics", "csparkle")
    assert code == 2
    assert "csparql, csparql-0.9.7" in err


def test_a_run_folder_without_its_answers(here, command):
    run = right_run(RSPQL)
    text = QUERY.replace("PT5S", "PT0.005S")
    write_run(here / "run", replace(run, header=replace(run.header, query_text=text)))
    write(stream("0: a p b."), here / "run" / "stream.parquet")
    shutil.rmtree(here / "run" / "answers.parquet")
    code, _, err = command("check", here / "run")
    assert code == 2
    assert "answers" in err


def test_a_folder_that_is_no_run(here, command):
    code, _, err = command("check", here)
    assert code == 2
    assert "run.json" in err


def test_a_wrong_option(command):
    code, _, err = command("expect", "--nonsense")
    assert code == 2
    assert "nonsense" in err or "Missing" in err


def test_nothing_is_overwritten(here, command):
    code, _, err = command("generate", "weather", "--out", here / "table")
    assert code == 2
    assert "already exists" in err
    assert (here / "table" / "part-0.parquet").exists()


def test_a_parameter_that_the_workload_lacks(here, command):
    code, _, err = command("generate", "weather", "--station", "5", "--out", here / "new")
    assert code == 2
    assert "stations, interval" in err


def test_no_java_is_a_sentence(here, command, monkeypatch):
    from streamgauge.cli.spark import spark

    spark.cache_clear()
    monkeypatch.setattr("streamgauge.spark.requirements.java", lambda: None)
    monkeypatch.setattr("streamgauge.spark.session.running_context", lambda: None)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    code, _, err = command("generate", "weather", "--master", "local[1]", "--out", here / "out")
    assert code == 2
    assert "Spark needs Java 17" in err


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("Job aborted: java.lang.OutOfMemoryError: Java heap space", "SPARK_DRIVER_MEMORY"),
        (
            "An error occurred while calling o102.getResult.\n: org.apache.spark.SparkException: Total size of "
            "serialized results of 2 tasks (1.9 GiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)\n\tat",
            "spark.driver.maxResultSize=4g",
        ),
    ],
)
def test_too_little_memory_is_a_sentence(here, command, monkeypatch, error, remedy):
    def fail(*_given, **_named):
        raise RuntimeError(error)

    monkeypatch.setattr("streamgauge.cli.data.spark", fail)
    code, _, err = command("generate", "weather", "--master", "local[1]", "--out", here / "out")
    assert code == 2
    assert remedy in err


class Thrown(NamedTuple):
    """An exception of the JVM, as far as it is looked at."""

    message: str
    cause: "Thrown | None" = None

    def getMessage(self) -> str:  # noqa: N802 - as the JVM has it
        return self.message

    def getCause(self) -> "Thrown | None":  # noqa: N802 - as the JVM has it
        return self.cause


def test_a_failed_job_is_a_sentence(here, command, monkeypatch):
    from pyspark.errors import PySparkRuntimeError

    error = PySparkRuntimeError("no")
    lost = Thrown("Job aborted due to stage failure: the disk is full\nDriver stacktrace:")
    error.java_exception = Thrown("Exception thrown in awaitResult: ", lost)

    def fail(*_given, **_named):
        raise error

    monkeypatch.setattr("streamgauge.cli.data.spark", fail)
    code, _, err = command("generate", "weather", "--master", "local[1]", "--out", here / "out")
    assert code == 2
    assert "a job of Spark failed: Job aborted due to stage failure: the disk is full: STREAMGAUGE_SPARK_LOG" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "nowhere", "--to", "out"), "nowhere: there is no such file or folder"),
        (("--from", "mqtt:///readings", "--to", "out"), "the host is missing: write mqtt://HOST"),
        (
            ("--from", "table", "--to", "mqttt://localhost/out"),
            "send answers to 'mqttt': there are file, kafka, mqtt, -; did you",
        ),
        (("--from", "table", "--to", "sse+http://localhost/out"), "a job cannot send answers to 'sse+http'"),
        (("--from", "table", "--to", "kafka:///out"), "the host is missing: write kafka://HOST"),
        (("--from", "table", "--to", "query.rq"), "query.rq is a file, but answers go to a run folder"),
        (("--from", "table", "--to", "out", "--semantics", "cqels"), "spark does not answer"),
    ],
)
def test_a_job_that_cannot_be_is_refused_before_spark_starts(here, command, monkeypatch, words, says):
    def fail(*_given):
        raise AssertionError

    monkeypatch.setattr("streamgauge.cli.stream.spark", fail)
    monkeypatch.chdir(here)
    code, _, err = command("stream", "query.rq", "--checkpoint", "kept", *words)
    assert code == 2
    assert says in err
    assert not (here / "kept").exists()


def test_generate_does_not_wait_for_a_session_that_cannot_make_tables(command, here):
    code, _, err = command("generate", "weather", "--master", "sc://127.0.0.1:1", "--out", here / "out")
    assert (code, (here / "out").exists()) == (2, False)
    assert "`generate` needs classic Spark, and sc://127.0.0.1:1 is Spark Connect" in err
