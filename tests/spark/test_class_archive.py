"""The archive of Spark's classes: its place, the options of a JVM that maps it, and a failure that leaves nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.spark import class_archive

JAVA = sys.executable  # any program: only its path, size and time of change count


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_no_archive_gives_no_options() -> None:
    assert class_archive.options(JAVA) == ""
    assert class_archive.options("") == ""
    assert class_archive.options("/no/such/java") == ""


def test_an_archive_is_mapped_and_made_once(home: Path) -> None:
    place = class_archive.archive(JAVA)
    assert place.is_relative_to(home / "cache")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"classes")
    assert f"-XX:SharedArchiveFile={place} " in class_archive.options(JAVA)
    assert class_archive.make(JAVA) == place
    assert place.read_bytes() == b"classes"


def test_another_java_has_another_archive(home: Path) -> None:
    other = home / "java"
    other.write_bytes(b"program")
    first = class_archive.archive(str(other))
    other.write_bytes(b"program, a later build")
    assert len({class_archive.archive(JAVA), first, class_archive.archive(str(other))}) == 3


def test_a_failure_leaves_nothing_and_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*command: object, **given: object) -> None:
        (new,) = [word for word in given["env"]["SPARK_SUBMIT_OPTS"].split() if "ArchiveClassesAtExit" in word]
        Path(new.partition("=")[2]).write_bytes(b"half")
        raise subprocess.CalledProcessError(1, command, stderr=b"first\nno room\n")

    monkeypatch.setattr(subprocess, "run", fail)
    monkeypatch.setattr("streamgauge.spark.jvm_options.java", lambda: JAVA)
    class_archive.main()
    assert capsys.readouterr().out == "no archive of Spark's classes, sessions start more slowly: no room\n"
    assert list((home / "cache" / "streamgauge").iterdir()) == []
