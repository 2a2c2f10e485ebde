"""Java and memory that will not do are said before a JVM is started."""

import socket
import sys
from pathlib import Path

import pytest

from streamgauge.engines.spark.micro_batches import configured
from streamgauge.spark import requirements
from streamgauge.spark.jvm_options import driver_settings
from streamgauge.spark.requirements import Memory, SparkStartError, heap, java_lack, java_version, memory
from streamgauge.spark.session import reach
from streamgauge.spark.settings import JAVA_OPTIONS
from streamgauge.workloads.distributed import frame

GIB = 1 << 30


def java_home(folder: Path, release: str | None = None, says: str = "") -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write({says!r})\n")
    program.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return program


@pytest.mark.parametrize(
    ("release", "major"),
    [("17.0.15", 17), ("1.8.0_412", 8), ("21", 21), ("24-ea", 24), ("11.0.2", 11)],
)
def test_the_release_file_says_the_version(tmp_path, release, major):
    assert java_version(str(java_home(tmp_path, release))) == major


@pytest.mark.server
@pytest.mark.parametrize(("says", "major"), [('openjdk version "11.0.2" 2019-01-15', 11), ("no version", None)])
def test_a_java_without_release_file_is_asked(tmp_path, says, major):
    assert java_version(str(java_home(tmp_path, says=says))) == major


def test_a_java_that_is_too_old_is_named(tmp_path, monkeypatch):
    java_home(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_lack().startswith(f"Spark needs Java 17 or newer and {tmp_path}/bin/java is Java 11: install a JRE")
    (tmp_path / "release").write_text('JAVA_VERSION="17"\n')
    assert java_lack() == ""


def test_no_java_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_lack() == requirements.NO_JAVA


@pytest.mark.parametrize(
    ("asked", "has", "expected"),
    [
        (None, Memory(16 * GIB, 8 * GIB), "4g"),
        (None, Memory(3 * GIB, 2 * GIB), "1536m"),
        (None, Memory(GIB // 2, GIB // 2), "512m"),
        ("8g", Memory(16 * GIB, 8 * GIB), "8g"),
        ("2048", Memory(2 * GIB, 2 * GIB), "2048"),
        ("2048M", Memory(2 * GIB, 2 * GIB), "2048M"),
    ],
)
def test_the_heap_is_what_was_asked_or_what_there_is(asked, has, expected):
    assert heap(asked, "4g", has) == expected


@pytest.mark.parametrize(
    ("asked", "has", "words"),
    [
        ("80g", Memory(16 * GIB, 8 * GIB), "SPARK_DRIVER_MEMORY=80g is more than this machine's 16.0 GiB of memory"),
        ("much", Memory(16 * GIB, 8 * GIB), "SPARK_DRIVER_MEMORY=much is not a size of memory: write 4g or 512m"),
        (None, Memory(16 * GIB, 300 << 20), "Spark takes about 512 MiB of memory and 300 MiB are free: end other"),
    ],
)
def test_memory_that_will_not_do_is_said(asked, has, words):
    with pytest.raises(SparkStartError) as error:
        heap(asked, "4g", has)
    assert str(error.value).startswith(words)


def test_a_containers_limit_counts(tmp_path):
    whole = memory(tmp_path)
    (tmp_path / "memory.max").write_text(f"{GIB}\n")
    (tmp_path / "memory.current").write_text(f"{GIB - 100}\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 40\nactive_file 9\n")
    assert memory(tmp_path) == Memory(GIB, 140)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory(tmp_path).total == whole.total


@pytest.mark.server
def test_a_master_that_is_not_there_is_said_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(
            SparkStartError, match=f"no Spark master answers at spark://127.0.0.1:{port}: is it running"
        ):
            reach(f"spark://127.0.0.1:{port}")
        taken.listen()
        reach(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    reach("local[2]")
    reach("yarn")


def test_a_connect_address_is_the_master_or_the_variable(monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert [requirements.connect_address(master) for master in (None, "local[2]", "sc://h")] == [None, None, "sc://h"]
    monkeypatch.setenv("SPARK_REMOTE", "sc://other")
    assert requirements.connect_address("local[2]") == "sc://other"


def test_a_client_without_its_packages_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(requirements, "importable", lambda name: name != "grpc")
    assert requirements.connect_lack() == "Spark Connect needs grpc: pip install 'pyspark[connect]'"
    monkeypatch.setattr(requirements, "importable", lambda _name: True)
    assert requirements.connect_lack() == ""


def test_what_needs_classic_spark_is_refused_on_connect(monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    requirements.classic_only("local[2]", "this")
    with pytest.raises(SparkStartError, match="this needs classic Spark, and sc://h is Spark Connect: name a master"):
        requirements.classic_only("sc://h", "this")
    connected = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for use in (lambda: configured(connected), lambda: frame(connected, None)):
        with pytest.raises(SparkStartError, match="needs classic Spark, and this session is Spark Connect's: name a"):
            use()


def test_a_collector_of_the_user_takes_the_place_of_ours(monkeypatch):
    monkeypatch.setattr("streamgauge.spark.jvm_options.java_lack", lambda: "")
    ours = driver_settings("4g", local=True, user={})[JAVA_OPTIONS]
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-java-options -XX:+UseG1GC pyspark-shell")
    theirs = driver_settings("4g", local=True, user={})[JAVA_OPTIONS]
    assert ("-XX:+UseParallelGC" in ours, "GC" in theirs) == (True, False)


@pytest.mark.parametrize(("memory", "small"), [("512m", True), ("1g", True), ("1025m", False), ("4g", False)])
def test_a_small_heap_starts_small(monkeypatch, memory, small):
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", memory)
    monkeypatch.setattr("streamgauge.spark.jvm_options.java_lack", lambda: "")
    settings = driver_settings("4g", local=True, user={})
    assert settings["spark.driver.memory"] == memory
    assert ("-Xms64m" in settings[JAVA_OPTIONS]) is small
