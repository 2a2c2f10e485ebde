"""Names of engines, profiles, workloads, dialects, strategies, formats: in any case, with the one that was meant."""

import json

import pytest

from streamgauge import engines, workloads
from streamgauge.formats.streams import stream_format, stream_formats
from streamgauge.papers.rules import names as rules
from streamgauge.query import dialect_names, parse
from streamgauge.semantics.profiles import profile
from streamgauge.servers.broker.strategies import strategies
from streamgauge.servers.fragments import annotations
from streamgauge.suites.experiments import read
from streamgauge.suites.sepbm import UnusableSystemError
from streamgauge.suites.sepbm.adapters import options_of
from tests.cli.test_bad_input import EXPERIMENT, QUERY, here  # noqa: F401


def test_every_name_is_found_in_capitals(tmp_path):
    assert [engines.named(name.upper()) for name in engines.names()] == list(engines.names())
    assert [workloads.load(name.title()).NAME for name in workloads.names()] == list(workloads.names())
    assert profile("CSPARQL-0.9.7").name == "csparql-0.9.7"
    assert [annotations.named(name.upper()) for name in annotations.methods()] == list(annotations.methods())
    assert [stream_format(tmp_path, name.upper()).name for name in stream_formats()] == list(stream_formats())
    assert parse(QUERY, "RSPQL") == parse(QUERY, "rspql")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("generate", "wether", "--out", "x"), "weather"),
        (("generate", "weather", "--statoins", "1", "--out", "x"), "stations"),
        (("expect", "query.rq", "--stream", "table", "--semantics", "c-sparql"), "csparql"),
        (("query", "query.rq", "--stream", "table", "--engine", "livee"), "live"),
        (("certify", "yaspre"), "yasper"),
        (("engine", "serve", "liv"), "live"),
        (("broker", "serve", "--strategy", "incremantal"), "incremental"),
        (("translate", "query.rq", "--to", "cqel"), "cqels"),
        (("generate", "weather", "--format", "nquad", "--out", "x"), "nquads"),
        (("fragments", "serve", "x.nq", "--method", "singletons"), "singleton"),
        (("watch", "query.rq", "http://localhost:9/", "--plan", "incremetal"), "incremental"),
        (("capacity", "experiment.toml", "--axis", "windows"), "window"),
    ],
)
def test_a_name_that_is_none_is_answered_with_the_one_most_like_it(here, command, monkeypatch, words, meant):  # noqa: F811
    monkeypatch.chdir(here)
    code, _, err = command(*words)
    assert code == 2
    assert f"did you mean {meant}?" in " ".join(err.split())


def test_an_experiment_names_engines_and_semantics_in_any_case(here):  # noqa: F811
    text = EXPERIMENT.replace('"live"', '"LIVE"').replace('"csparql"', '["CSparql", "CQELS"]')
    (here / "experiment.toml").write_text(text)
    (part,) = read(here / "experiment.toml").engine
    assert (part.name, part.semantics) == ("live", ("csparql", "cqels"))


def test_a_command_takes_names_in_any_case(here, command, monkeypatch):  # noqa: F811
    monkeypatch.chdir(here)
    code, out, err = command("EXPECT", "query.rq", "--stream", "table", "--semantics", "RspQL", "--json")
    assert code == 0, err
    assert len(json.loads(out)) == 1
    code, out, err = command("translate", "query.rq", "--to", "CQELS")
    assert code == 0, err
    assert "RANGE" in out
    assert {"csrbench", "yabench"} == set(rules())
    assert set(dialect_names()) == {"cqels", "csparql", "rspql", "sparqlstream"}
    assert "incremental" in strategies()


def test_systems_of_sepbm_are_named_likewise():
    with pytest.raises(UnusableSystemError, match=r"did you mean broker_http\?"):
        options_of("broker-http")
    assert options_of("BROKER_http") == options_of("broker_http")
