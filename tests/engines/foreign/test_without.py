"""Foreign engines where they are not: a sentence says how to get each, and what can be said without it is said."""

import shutil
from dataclasses import replace

import pytest

from streamgauge.engines import EngineUnavailableError, command, dialect, load, profiles
from streamgauge.query import dialect_names, parse
from streamgauge.semantics.profiles import CSPARQL_097, PROFILES, RSPQL, makes_choices_of
from tests.engines.foreign.given import asked
from tests.notation import STREAM

JARS = {"csparql": "STREAMGAUGE_CSPARQL_HOME", "cqels": "STREAMGAUGE_CQELS_HOME", "yasper": "STREAMGAUGE_YASPER_HOME"}


@pytest.mark.parametrize("engine", [*JARS, "sparqlstream"])
def test_each_names_its_dialect_and_profiles(engine):
    module = load(engine)
    assert dialect(module) in dialect_names()
    assert set(profiles(module)) <= set(PROFILES)


@pytest.mark.parametrize(("engine", "variable"), JARS.items())
def test_a_folder_that_is_not_named_is_asked_for(engine, variable, monkeypatch, tmp_path):
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    how = f"(clone|take) .*`streamgauge engines prepare {engine} --source CLONE`"
    with pytest.raises(EngineUnavailableError, match=f"{variable} is not set: {how}"):
        command(load(engine))


@pytest.mark.parametrize(("engine", "variable"), JARS.items())
def test_a_folder_without_jars_is_named(engine, variable, monkeypatch, tmp_path):
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(EngineUnavailableError, match=f"{variable} is {tmp_path}, where there is no jar"):
        command(load(engine))


@pytest.mark.server
def test_jars_with_which_the_program_does_not_compile_are_named(monkeypatch, tmp_path):
    if shutil.which("javac") is None:
        pytest.skip("no JDK: install openjdk-17-jdk-headless")
    (tmp_path / "other.jar").write_bytes(b"PK\\5\\6" + bytes(18))
    monkeypatch.setenv("STREAMGAUGE_CSPARQL_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(EngineUnavailableError, match=r"CSparql\.java does not compile with the jars of"):
        command(load("csparql"))


def test_without_a_jdk_one_is_asked_for(monkeypatch, tmp_path):
    (tmp_path / "some.jar").touch()
    monkeypatch.setenv("STREAMGAUGE_CQELS_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EngineUnavailableError, match="javac is not found: install a JDK"):
        command(load("cqels"))


def test_sparqlstream_is_recorded_only():
    engine = load("sparqlstream")
    assert "streamgauge import" in engine.refuse(asked(), PROFILES["sparqlstream"])
    with pytest.raises(EngineUnavailableError, match="artefact servers"):
        command(engine)
    with pytest.raises(ValueError, match="artefact servers"):
        engine.start(asked(), PROFILES["sparqlstream"], print)


@pytest.mark.parametrize(
    ("query", "semantics", "sentence"),
    [
        (asked(), RSPQL, "use csparql-0.9.7"),
        (
            parse(f"SELECT * FROM STREAM <{STREAM}> [RANGE 500ms STEP 500ms] {{ ?s ?p ?o }}"),
            CSPARQL_097,
            "whole seconds",
        ),
        (
            parse(
                f"SELECT ISTREAM * FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE 5s] "
                "{ WINDOW <urn:w> { ?s ?p ?o } }"
            ),
            CSPARQL_097,
            "cannot express Istream",
        ),
    ],
)
def test_csparql_refuses_by_a_sentence(query, semantics, sentence):
    assert sentence in load("csparql").refuse(query, semantics)


def test_csparql_takes_its_semantics_by_any_name_and_lateness():
    own = replace(CSPARQL_097, name="own", lateness=1000)
    assert load("csparql").refuse(asked(), own) is None
    assert makes_choices_of(own, ["csparql-0.9.7"])
    assert not makes_choices_of(replace(own, t0=1), ["csparql-0.9.7"])
