"""Options of servers and long commands from a file, the environment and the command line, and their origins."""

import json
import logging
import re
import tomllib

import pytest

from streamgauge.cli import catalogue
from streamgauge.cli.configuration import FILE, key_of
from tests.cli.test_help import LEAVES

FILES = {
    FILE: """
log-level = "debug"

[engine.serve]
engine = ["live"]
port = 0
allow-origin = ["https://a.example", "https://b.example"]
max-seconds = 2
max-time = "12h"

[query]
dates = true
stream = ["a.nq"]
"""
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to run commands in, with the file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STREAMGAUGE_TOKEN", raising=False)
    (tmp_path / FILE).write_text(FILES[FILE])
    return tmp_path


def options(command, *words):
    """What `config` prints of a command: the values, and where each was written."""
    code, out, err = command("config", *words)
    assert (code, err) == (0, "")
    origins = dict(re.findall(r"^([\w-]+) = .*  # (.+)$", out, re.M))
    values = tomllib.loads(out)
    for word in re.match(r"\[([\w.]+)\]", out)[1].split("."):
        values = values[word]
    return values, origins


def test_every_configured_command_is_listed():
    configured = {words for words, leaf in LEAVES.items() if any(param.name == "log_format" for param in leaf.params)}
    assert configured == set(catalogue.CONFIGURED)


def test_keys_of_a_command_are_different():
    for words in catalogue.CONFIGURED:
        keys = [key_of(param) for param in LEAVES[words].params]
        assert len(keys) == len(set(keys)), words


def test_flags_go_over_the_environment_over_the_file(here, command, monkeypatch):
    monkeypatch.setenv("STREAMGAUGE_ENGINE_SERVE_PORT", "7001")
    monkeypatch.setenv("STREAMGAUGE_ENGINE_SERVE_MAX_SECONDS", "3")
    monkeypatch.setenv("STREAMGAUGE_LOG_FORMAT", "json")
    values, origins = options(command, "engine", "serve", "--max-seconds", "4")
    assert values["engine"] == ["live"]
    assert values["allow-origin"] == ["https://a.example", "https://b.example"]
    assert (values["port"], values["max-seconds"], values["max-time"]) == (7001, 4.0, "12h")
    assert (values["log-level"], values["log-format"], values["max-queries"]) == ("debug", "json", 100)
    wanted = {
        "port": "STREAMGAUGE_ENGINE_SERVE_PORT",
        "max-seconds": "command line",
        "max-time": f"{FILE}:9",
        "log-level": f"{FILE}:2",
        "log-format": "STREAMGAUGE_LOG_FORMAT",
        "max-queries": "default",
    }
    assert wanted.items() <= origins.items()


def test_what_is_printed_has_the_same_effect(here, command):
    code, out, _ = command("config", "engine", "serve", "--port", "9000", "--static", "urn:s=x.ttl")
    assert code == 0
    (here / "again.toml").write_text(out)
    values, _ = options(command, "engine", "serve", "--config", "again.toml")
    assert values == options(command, "engine", "serve", "--port", "9000", "--static", "urn:s=x.ttl")[0]


def test_no_secret_is_printed(here, command):
    out = command(
        "config", "query", "q.rq", "--stream", "mqtt://me:hush@host/t?x=1", "--to", "sse+http://h/?token=hush"
    )
    assert "hush" not in out.out
    assert "mqtt://me:...@host/t?x=1" in out.out


def test_a_file_is_checked_for_all_commands(here, command):
    code, out, _ = command("config")
    assert (code, out) == (0, f"{FILE}: query: 2 options\n{FILE}: engine serve: 5 options\n")
    (here / "other.toml").write_text("[broker.serve]\nporrt = 1\n")
    code, _, err = command("config", "--config", "other.toml")
    assert (code, err.partition(": no such option")[0]) == (2, "streamgauge: other.toml:2: porrt")


WRONG = {
    "an unknown key": ("[engine.serve]\nporrt = 1\n", f"{FILE}:2: porrt: no such option: there are engine, "),
    "an option of another command": ("[engine.serve]\nwall = true\n", f"{FILE}:2: wall: no such option"),
    "an unknown command": ("[engin.serve]\nport = 1\n", f"{FILE}:1: engin: it is not a command: there are query, "),
    "a command that has none": ("[check]\nx = 1\n", f"{FILE}:1: check: it is not a server or long command"),
    "an option above the tables": ("port = 1\n", f"{FILE}:1: port: it is not a command"),
    "no table": ("engine = 1\n", f"{FILE}:1: engine is a command: write [engine.serve]"),
    "no TOML": ("[engine.serve]\nport 1\n", f"{FILE}:2: not TOML: 'port 1'"),
    "text for a number": ('[engine.serve]\nport = "x"\n', f"{FILE}:2: port is 'x': write a whole number"),
    "a truth for a number": ("[engine.serve]\nport = true\n", f"{FILE}:2: port is True: write a whole number"),
    "a number for text": ("[engine.serve]\nmax-time = 12\n", f"{FILE}:2: max-time is 12: write text in quotes"),
    "text for a list": (
        '[engine.serve]\nattach = "x"\n',
        f"{FILE}:2: attach is 'x': write a list, each text in quotes",
    ),
    "text in a list of numbers": ("[engine.serve]\nattach = [1]\n", f"{FILE}:2: attach is [1]: write a list"),
    "a number out of range": ("[engine.serve]\n\nport = 70000\n", f"{FILE}:3: port: "),
    "a duration that is none": ('[engine.serve]\nmax-time = "long"\n', f"{FILE}:2: max-time: 'long'"),
    "a name that is none": ('log-format = "xml"\n', f"{FILE}:1: log-format: 'xml': choose from text, json"),
    "a file in a file": ('[engine.serve]\nconfig = "x"\n', f"{FILE}:2: config: no such option"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(here, command, name):
    text, says = WRONG[name]
    (here / FILE).write_text(text)
    code, _, err = command("engine", "serve", "live")
    assert (code, err[: len("streamgauge: ") + len(says)]) == (2, f"streamgauge: {says}")
    assert ("did you mean port?" in err) == ("porrt" in text)


def test_a_missing_file_is_refused(here, command):
    code, _, err = command("engine", "serve", "live", "--config", "nowhere.toml")
    assert code == 2
    assert "nowhere.toml: cannot be read: there is no such file" in err


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("STREAMGAUGE_ENGINE_SERVE_PORRT", "1", "there is no such option: there are STREAMGAUGE_ENGINE_SERVE_ENGINE"),
        ("STREAMGAUGE_ENGINE_SERVE_PORT", "x", "port: 'x': expected a whole number"),
        ("STREAMGAUGE_ENGINE_SERVE_MAX_TIME", "long", "max-time: 'long'"),
        ("STREAMGAUGE_LOG_LEVEL", "loud", "log-level: 'loud': choose from debug, info, warning, error"),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused(here, command, monkeypatch, variable, value, says):
    (here / FILE).unlink()
    monkeypatch.setenv(variable, value)
    code, _, err = command("engine", "serve", "live")
    assert code == 2
    assert err.startswith(f"streamgauge: {variable}: {says}")


def test_config_refuses_what_has_no_configuration(command):
    code, _, err = command("config", "check", "runs")
    assert code == 2
    assert "check has no configuration" in err


QUERY = "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"


def test_a_command_runs_by_its_file_alone(here, command):
    (here / "q.rq").write_text(QUERY)
    (here / "s.jsonl").write_text('{"t": 1000, "add": "<urn:a> <urn:b> <urn:c> ."}\n')
    (here / FILE).write_text(
        'log-format = "json"\n[query]\nquery = "q.rq"\nstream = ["s.jsonl"]\nadvance-to = "windows"\nformat = "csv"\n'
    )
    code, out, err = command("query")
    assert (code, out.splitlines()[1:]) == (0, ["5000,0,5000,+,urn:a"])
    (line,) = (line for line in map(json.loads, err.splitlines()) if "rdkafka" not in line["message"])
    assert line["message"].startswith("1 element; 1 answer")
    assert logging.getLogger("streamgauge").level == logging.NOTSET
