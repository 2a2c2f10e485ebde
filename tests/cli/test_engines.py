"""The commands engines, engines prepare and doctor."""

import json
import sys
import zipfile

import pytest

from streamgauge import engines
from streamgauge.cli import installation
from streamgauge.spark import requirements


def test_engines_are_listed(command):
    output = command("engines", "--json")
    assert (output.code, set(json.loads(output.out)["engines"])) == (0, set(engines.names()))
    assert "CSRBench, table 1" in command("engines", "--semantics").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("live", "--source", "."), "live needs no jars: choose cqels, csparql, yasper"),
        (
            ("cqels", "--source", "nowhere"),
            "nowhere: no such folder: give --source the folder of your clone of cqels of",
        ),
        (
            ("csparql", "--source", "."),
            "no jars of CSPARQL-engine of streamreasoning here: give the folder of a clone of it",
        ),
        (("yasper", "--source", "."), "the tag 1.1.8"),
        (("zork", "--source", "."), "unknown engine 'zork'"),
    ],
)
def test_what_cannot_be_prepared_is_said(tmp_path, monkeypatch, command, words, told):
    monkeypatch.chdir(tmp_path)
    output = command("engines", "prepare", *words)
    assert output.code == 2
    assert told in " ".join(output.err.split())


@pytest.mark.server
def test_jars_that_lack_classes_do_not_pass(tmp_path, monkeypatch, command):
    """All names are there, but nothing is in the jars: the engine's program does not compile with them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STREAMGAUGE_YASPER_HOME", raising=False)
    (kind,) = engines_clones("yasper")
    for name in kind.needs:
        folder = (
            name.split("-")[0] if name.split("-")[0] in {"api", "yasper", "io", "web"} else "yasper/target/dependency"
        )
        place = tmp_path / "clone" / (folder if "/" in folder else f"{folder}/target")
        place.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / f"{name}.jar", "w") as file:
            file.writestr("nothing", "")
    output = command("engines", "prepare", "yasper", "--source", tmp_path / "clone")
    assert output.code == 2
    assert "Yasper.java does not compile with the jars of" in output.err


def engines_clones(name):
    from streamgauge.formats.jvm.collection import clones

    return clones(engines.folder(engines.load(name)))


def test_doctor_lists_every_engine_extra_and_tool(command):
    output = command("doctor", "--json")
    results = {(load["kind"], load["name"]): load for load in json.loads(output.out)}
    assert {name for kind, name in results if kind == "engine"} == set(engines.names())
    assert {name for kind, name in results if kind == "extra"} == {
        "columns",
        "docs",
        "gtfs",
        "kafka",
        "mcp",
        "mqtt",
        "names",
        "plots",
        "spark",
    }
    assert {name for kind, name in results if kind == "tool"} == {"javac", "mvn", "git", "node", "nginx", "chromium"}
    assert all(entry["found"] or entry["advice"] for entry in results.values())
    assert results["engine", "live"]["found"] == "ready"
    assert "cannot be run" in results["engine", "sparqlstream"]["advice"]
    assert results["extra", "mqtt"]["found"].startswith("paho-mqtt ")


def test_doctor_says_what_adds_what_is_absent(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.setattr(installation.shutil, "which", lambda _name: None)
    lines = command("doctor").out.splitlines()
    assert "kafka: pip install 'streamgauge[kafka]'" in lines
    assert any(line.startswith("mvn: for `engines prepare`: Maven (Debian: apt-get install maven)") for line in lines)
    assert any(
        line.startswith("csparql: ") and "streamgauge engines prepare csparql --source CLONE" in line for line in lines
    )


def test_doctor_fails_where_java_is_too_old(command, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(requirements.shutil, "which", lambda _name: None)
    output = command("doctor")
    assert output.code == 2
    assert "Java: Spark needs Java 17 or newer and none was found" in output.out


def test_doctor_says_when_memory_will_not_do(command, monkeypatch):
    monkeypatch.setattr(requirements, "memory", lambda: requirements.Memory(2 << 30, 100 << 20))
    assert "memory: Spark takes about 512 MiB of memory and 100 MiB are free" in command("doctor").out
