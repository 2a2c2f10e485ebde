"""The jars of an engine on the JVM, collected from the user's own clone of its project into one folder, and checked.

Which files those are is data beside the engine (``jars.toml``): one entry for each project that has them.
"""

import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from streamgauge.formats.fields import decode
from streamgauge.formats.jvm import JvmError
from streamgauge.formats.making import making, put

Tell = Callable[[str], object]

FILE: Final = "jars.toml"
_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>"""


@dataclass(frozen=True, slots=True)
class Clone:
    """A project that has an engine's jars, as a clone of it has them.

    ``project`` names it, ``tested`` and ``commit`` say at which version it was tried. Its jars are the files that the
    patterns ``jars`` find in the clone, without those named like ``leave``, or the ``files`` of a ``branch``;
    ``libraries`` (GROUP:ARTIFACT:VERSION) come from Maven with all that they depend on. ``needs`` are the beginnings of
    names of jars without which the engine does not work, ``absent`` says what to do where the clone has no jars yet.
    """

    project: str
    tested: str
    commit: str
    needs: tuple[str, ...]
    absent: str
    jars: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    branch: str = ""
    files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """A collection of jars: the clone's kind and commit (empty where git does not say one), and the jars' names."""

    clone: Clone
    commit: str
    names: tuple[str, ...]

    @property
    def tested(self) -> bool:
        """Whether the commit is the one that was tried."""
        return self.commit == self.clone.commit


def clones(folder: Path) -> tuple[Clone, ...]:
    """The projects that have the jars of the engine in a folder; none where the engine needs no jars."""
    file = folder / FILE
    if not file.exists():
        return ()
    found = tomllib.loads(file.read_text(encoding="utf-8"))["clone"]
    return tuple(decode(Clone, each, f"{FILE} clone[{place}]") for place, each in enumerate(found))


def collect(kinds: Sequence[Clone], source: Path, target: Path, tell: Tell) -> Collected:
    """Copy the jars of a clone into ``target``, all of them or none; JvmError says what is missing or broken."""
    if not source.is_dir():
        raise JvmError(f"{source}: no such folder: give --source the folder of your clone of {_projects(kinds)}")
    kind = _kind(kinds, source)
    with making(target) as place:
        place.mkdir()
        tell(f"collecting jars of {kind.project}")
        _copy(kind, source, place)
        if kind.libraries:
            tell(f"asking Maven for {', '.join(kind.libraries)} and what they depend on")
            resolve(kind.libraries, place)
        names = tuple(sorted(jar.name for jar in place.glob("*.jar")))
        tell(f"checking {len(names)} jars")
        check(kind, place)
        put(place, target)
    branch = _reference(kind, source) if kind.files else None
    return Collected(kind, _git(source, "rev-parse", f"{branch or 'HEAD'}^{{commit}}"), names)


def _projects(kinds: Iterable[Clone]) -> str:
    return " or ".join(kind.project for kind in kinds)


def _kind(kinds: Sequence[Clone], source: Path) -> Clone:
    """The project that the folder is a clone of, by the jars in it."""
    for kind in kinds:
        if (kind.files and _reference(kind, source) is not None) or _built(kind, source):
            return kind
    raise JvmError(f"{source}: no jars of {_projects(kinds)} here: {'; or '.join(kind.absent for kind in kinds)}")


def _built(kind: Clone, source: Path) -> list[Path]:
    found = (jar for pattern in kind.jars for jar in sorted(source.glob(pattern)))
    return [jar for jar in found if not any(fnmatch(jar.name, each) for each in kind.leave)]


def _reference(kind: Clone, source: Path) -> str | None:
    """Where the files of a branch are: ``""`` in the folder itself, else the branch's name; ``None`` for nowhere."""
    if all((source / file).is_file() for file in kind.files):
        return ""
    for name in (f"origin/{kind.branch}", kind.branch):
        if _git(source, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return name
    return None


def _copy(kind: Clone, source: Path, place: Path) -> None:
    for jar in _built(kind, source):
        shutil.copy2(jar, place / jar.name)
    reference = _reference(kind, source) if kind.files else None
    for file in kind.files if reference is not None else ():
        target = place / Path(file).name
        if not reference:
            shutil.copy2(source / file, target)
            continue
        shown = subprocess.run(["git", "-C", source, "show", f"{reference}:{file}"], capture_output=True, check=False)
        if shown.returncode:
            raise JvmError(f"{source}: branch {reference} has no {file}: fetch it again (git fetch origin)")
        target.write_bytes(shown.stdout)


def _git(source: Path, *words: str) -> str:
    """The output of git about a clone, empty where the folder is none or there is no git."""
    try:
        done = subprocess.run(["git", "-C", source, *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def resolve(libraries: Sequence[str], place: Path) -> None:
    """Have Maven copy published libraries and what they depend on into a folder; JvmError says why it did not."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JvmError(
            f"Maven (mvn) is not found: install it (Debian: apt-get install maven), or put {', '.join(libraries)} and "
            "all that they depend on into the folder by hand"
        )
    with TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format("".join(map(_dependency, libraries))), encoding="utf-8")
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={place}", "-DincludeScope=runtime"]
        done = subprocess.run(
            [maven, "-B", "-q", "-f", pom, *goal], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("[ERROR]")]
        raise JvmError(f"Maven did not get {', '.join(libraries)}: {said[0][8:] if said else 'it gave no reason'}")


def _dependency(library: str) -> str:
    names = zip(("groupId", "artifactId", "version"), library.split(":"), strict=True)
    return f"<dependency>{''.join(f'<{name}>{value}</{name}>' for name, value in names)}</dependency>"


def check(kind: Clone, place: Path) -> None:
    """Hold a folder of jars against what the engine needs; JvmError lists what is missing, or names a broken jar."""
    names = {jar.name for jar in place.glob("*.jar")}
    missing = [each for each in kind.needs if not any(name.startswith(each) for name in names)]
    if missing:
        raise JvmError(
            f"of the jars of {kind.project} ({kind.tested}) these are missing: {', '.join(missing)}; {kind.absent}"
        )
    for name in sorted(names):
        try:
            with zipfile.ZipFile(place / name) as jar:
                broken = jar.testzip()
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise JvmError(f"{name} is broken: {error}: build or fetch it again") from error
        if broken is not None:
            raise JvmError(f"{name} is broken in {broken}: build or fetch it again")
