"""Jars of other people's engines, collected from clones: whole or not at all, and what is missing is named."""

import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge import engines
from streamgauge.formats.jvm import JvmError, collection, jars, prepared
from streamgauge.formats.jvm.collection import Build, Clone, Omission, clones, collect

pytestmark = pytest.mark.server

KIND = Clone(
    project="a project",
    tested="tag 1",
    commit="c" * 40,
    jars=("core/target/*.jar", "core/target/dependency/*.jar"),
    leave=("*-sources.jar",),
    needs=("core-1", "library-"),
    absent="build core with Maven",
)
BRANCH = replace(
    KIND, jars=(), branch="jars", files=("org/core-1.jar", "org/library-2.jar"), absent="fetch the branch jars"
)


def jar(file: Path, content: str = "x" * 1000) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as made:
        made.writestr("A.class", content)
    return file


@pytest.fixture
def clone(tmp_path):
    source = tmp_path / "clone"
    jar(source / "core/target/core-1.jar")
    jar(source / "core/target/core-1-sources.jar")
    jar(source / "core/target/dependency/library-2.jar")
    return source


def git(source: Path, *words: str) -> str:
    own = ["git", "-C", str(source), "-c", "user.name=n", "-c", "user.email=e@example.org", *words]
    return subprocess.run(own, check=True, capture_output=True, text=True).stdout.strip()


def test_the_jars_of_a_built_clone_are_collected(clone, tmp_path):
    messages = []
    result = collect((BRANCH, KIND), clone, tmp_path / "out", messages.append)
    assert result.names == ("core-1.jar", "library-2.jar")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == list(result.names)
    assert (result.commit, result.tested) == ("", False)
    assert messages == ["collecting jars of a project", "checking 2 jars"]


@pytest.mark.server
def test_the_jars_of_a_branch_are_collected_without_checking_it_out(tmp_path):
    source = tmp_path / "clone"
    source.mkdir()
    git(source, "init", "-q", "-b", "jars")
    for file in BRANCH.files:
        jar(source / file)
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "jars")
    git(source, "checkout", "-q", "--orphan", "main")
    git(source, "rm", "-q", "-rf", ".")
    git(source, "commit", "-q", "--allow-empty", "-m", "sources")
    result = collect((BRANCH,), source, tmp_path / "out", lambda _what: None)
    assert result.names == ("core-1.jar", "library-2.jar")
    assert result.commit == git(source, "rev-parse", "jars")
    assert collect((replace(BRANCH, commit=result.commit),), source, tmp_path / "out", lambda _what: None).tested


def test_files_of_a_branch_that_is_checked_out_are_taken(tmp_path):
    for file in BRANCH.files:
        jar(tmp_path / "clone" / file)
    assert len(collect((BRANCH,), tmp_path / "clone", tmp_path / "out", lambda _what: None).names) == 2


def spoil(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda clone: (clone / "core/target/dependency/library-2.jar").unlink(), "are missing: library-; build core"),
        (lambda clone: spoil(clone / "core/target/core-1.jar"), "core-1.jar is broken in A.class: build or fetch"),
        (
            lambda clone: (clone / "core/target/core-1.jar").write_text("no jar"),
            "core-1.jar is broken: File is not a zip",
        ),
        (lambda clone: [file.unlink() for file in clone.rglob("*.jar")], "no jars of a project here: build core with"),
    ],
)
def test_what_is_missing_or_broken_is_named_and_nothing_is_put(clone, tmp_path, change, words):
    jar(tmp_path / "out" / "before-1.jar")
    change(clone)
    with pytest.raises(JvmError, match=words):
        collect((KIND,), clone, tmp_path / "out", lambda _what: None)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["before-1.jar"]


MAVEN = f"""#!{sys.executable}
import sys, zipfile
pom = open(sys.argv[sys.argv.index("-f") + 1]).read()
assert "<groupId>g</groupId><artifactId>library</artifactId><version>2</version>" in pom
target = next(word.split("=")[1] for word in sys.argv if word.startswith("-DoutputDirectory="))
if "FAIL" == "@":
    sys.exit("[ERROR] Could not resolve g:library")
zipfile.ZipFile(target + "/library-2.jar", "w").writestr("A", "")
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    def put(text: str) -> None:
        program = tmp_path / "bin" / "mvn"
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return put


@pytest.mark.server
def test_published_libraries_come_from_maven(clone, tmp_path, maven):
    (clone / "core/target/dependency/library-2.jar").unlink()
    asking = replace(KIND, libraries=("g:library:2",))
    maven(MAVEN)
    assert collect((asking,), clone, tmp_path / "out", lambda _what: None).names == ("core-1.jar", "library-2.jar")
    maven(MAVEN.replace('"@"', '"FAIL"'))
    with pytest.raises(JvmError, match="Maven did not get g:library:2: Could not resolve g:library"):
        collect((asking,), clone, tmp_path / "other", lambda _what: None)


def test_without_maven_it_is_asked_for(clone, tmp_path, monkeypatch):
    monkeypatch.setattr(collection.shutil, "which", lambda _name: None)
    with pytest.raises(JvmError, match=r"Maven \(mvn\) is not found: install it"):
        collect((replace(KIND, libraries=("g:library:2",)),), clone, tmp_path / "out", lambda _what: None)


@pytest.mark.parametrize("name", ["csparql", "cqels", "yasper"])
def test_every_engine_with_jars_says_which(name):
    kinds = clones(engines.folder(engines.load(name)))
    assert kinds
    for kind in kinds:
        assert len(kind.commit) == 40
        assert kind.jars or (kind.branch and kind.files)
        assert kind.absent
        assert kind.tested
        assert len(kind.needs) > 5


def test_engines_without_jars_have_none():
    assert clones(engines.folder(engines.load("spark"))) == ()


def test_jars_that_were_prepared_need_no_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("STREAMGAUGE_CQELS_HOME", raising=False)
    with pytest.raises(JvmError, match="STREAMGAUGE_CQELS_HOME is not set: do so"):
        jars("STREAMGAUGE_CQELS_HOME", "do so", "cqels")
    jar(prepared("cqels") / "a.jar")
    assert jars("STREAMGAUGE_CQELS_HOME", "do so", "cqels") == tmp_path / "streamgauge" / "engines" / "cqels"
    monkeypatch.setenv("STREAMGAUGE_CQELS_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JvmError, match="nowhere, where there is no jar: do so"):
        jars("STREAMGAUGE_CQELS_HOME", "do so", "cqels")


BUILT = replace(
    KIND,
    build=Build(("core",), ("-Dlicense.skip=true",), (Omission("core/src/Old.java", "import gone.Thing;"),)),
    absent="give a clone of a project",
)
BUILDER = f"""#!{sys.executable}
import os, sys, zipfile
def say(*lines):
    print(*lines, sep="\\n", flush=True)
assert sys.argv[1:] == (
    "-B package dependency:copy-dependencies -DincludeScope=runtime -DskipTests -Dlicense.skip=true -pl core -am"
).split(), sys.argv
assert not os.path.exists(".git") and not os.path.exists("core/target")
assert open("core/src/Old.java").read() == "package old;\\nclass Old {{}}\\n"
say("[INFO] Scanning for projects...", "Downloaded from there: a.jar", "[INFO] Building parent 1      [1/2]")
#HERE
os.makedirs("core/target/dependency")
for name in ("core/target/core-1.jar", "core/target/dependency/library-2.jar"):
    with zipfile.ZipFile(name, "w") as made:
        made.writestr("A", "")
say("[INFO] Building core 1      [2/2]", "[INFO] Building jar: core-1.jar")
"""


@pytest.fixture
def sources(tmp_path):
    source = tmp_path / "sources"
    for file in ("pom.xml", "core/pom.xml", ".git/HEAD", "core/target/core-0.jar"):
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).write_text("")
    (source / "core/src").mkdir()
    (source / "core/src/Old.java").write_text("package old;\nimport gone.Thing;\nclass Old {}\n")
    return source


def files(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_clone_that_is_not_built_is_built_in_a_copy(sources, tmp_path, maven):
    maven(BUILDER)
    before, told = files(sources), []
    result = collect((BRANCH, BUILT), sources, tmp_path / "out", told.append)
    assert result.names == ("core-1.jar", "library-2.jar")
    assert files(sources) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "out", "sources"]
    assert told[1:] == [
        "Maven begins",
        "Maven begins, 1 file fetched",
        "Maven builds parent 1 (1 of 2), 1 file fetched",
        "Maven builds core 1 (2 of 2), 1 file fetched",
        "collecting jars of a project",
        "checking 2 jars",
    ]


def test_a_clone_that_is_built_is_not_built_again(clone, tmp_path, maven):
    for file in ("pom.xml", "core/pom.xml"):
        (clone / file).write_text("")
    maven("#!/bin/sh\nexit 9\n")
    assert collect((BUILT,), clone, tmp_path / "out", lambda _what: None).names == ("core-1.jar", "library-2.jar")


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        (
            'say("[ERROR] COMPILATION ERROR : ", "[ERROR] Old.java:[3,1] no such symbol"); sys.exit(1)',
            "Old.java:[3,1] no such symbol; tested is tag 1 (cccccccccccc) with JDK 17",
        ),
        (
            'say("[ERROR] Could not resolve dependencies for project core: g:library"); sys.exit(1)',
            "project core: g:library; Maven fetches libraries and plugins: is the network there",
        ),
        ('say("no space", "No space left on device"); sys.exit(1)', "make room, or name another place"),
        ("sys.exit(7)", "it ended, its last words being: [INFO] Scanning for projects... / Downloaded from there"),
        ("import time; time.sleep(60)", "not done after 2 s; allow more (--limit 1h)"),
    ],
)
def test_a_build_that_fails_is_one_sentence_with_its_log(sources, tmp_path, maven, fails, words):
    maven(BUILDER.replace("#HERE", fails))
    before = files(sources)
    with pytest.raises(JvmError) as failed:
        collect((BUILT,), sources, tmp_path / "out", lambda _what: None, 2.0)
    message = str(failed.value)
    assert message.startswith(f"Maven did not build core in a copy of {sources}: ")
    assert words in message
    assert "\n" not in message
    log = tmp_path / "out-maven.log"
    assert message.endswith(f"its words are in {log}")
    assert "Building parent 1" in log.read_text()
    assert files(sources) == before
    assert not (tmp_path / "out").exists()


def test_a_build_needs_maven_and_a_jdk(sources, tmp_path, maven, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    maven(BUILDER)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(JvmError, match="javac is not found: install a JDK"):
        collect((BUILT,), sources, tmp_path / "out", lambda _what: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JvmError, match=r"Maven \(mvn\) is not found: install it .*, or build the clone yourself"):
        collect((BUILT,), sources, tmp_path / "out", lambda _what: None)


def test_folders_without_jars_and_sources_are_refused(sources, tmp_path):
    (sources / "core/pom.xml").unlink()
    (sources / "core/target/core-0.jar").unlink()
    with pytest.raises(JvmError, match="no jars of a project here: give a clone of a project"):
        collect((BUILT,), sources, tmp_path / "out", lambda _what: None)


@pytest.mark.parametrize("name", ["csparql", "yasper"])
def test_engines_that_are_built_say_what_to_build(name):
    (kind,) = clones(engines.folder(engines.load(name)))
    assert kind.build is not None
    assert kind.build.modules
