"""The jars of an engine on the JVM, collected from the user's own clone of its project into one folder, and checked.

Which files those are is data beside the engine (``jars.toml``): one entry for each project that has them.
"""

import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from streamgauge.formats.atomic import making, put
from streamgauge.formats.fields import decode
from streamgauge.formats.jvm import JvmError
from streamgauge.formats.jvm.maven import LIMIT_S, Build, MavenBuild, Tell, built, resolve
from streamgauge.model.counts import counted

FILE: Final = "jars.toml"


@dataclass(frozen=True, slots=True)
class Clone:
    """A project that has an engine's jars, as a clone of it has them.

    ``project`` names it, ``tested`` and ``commit`` say at which version it was tried. Its jars are the files that the
    patterns ``jars`` find in the clone, without those named like ``leave``, or the ``files`` of a ``branch``;
    ``libraries`` (GROUP:ARTIFACT:VERSION) come from Maven with all that they depend on. ``needs`` are the beginnings of
    names of jars without which the engine does not work, ``absent`` says what to do where the clone has no jars and no
    sources of which ``build`` makes them.
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
    build: Build | None = None


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


def collect(kinds: Sequence[Clone], source: Path, target: Path, tell: Tell, limit_s: float = LIMIT_S) -> Collected:
    """Copy the jars of a clone into ``target``, all of them or none; JvmError says what is missing or broken.

    Where the clone has sources but not all jars, a copy of the clone is built first, for ``limit_s`` at most.
    """
    if not source.is_dir():
        raise JvmError(f"{source}: no such folder: give --source the folder of your clone of {_projects(kinds)}")
    kind = _kind(kinds, source)
    order = _order(kind, source, target, limit_s)
    with making(target) as place, built(order, tell) if order else nullcontext(source) as there:
        place.mkdir()
        tell(f"collecting jars of {kind.project}")
        _copy(kind, there, place)
        if kind.libraries:
            tell(f"asking Maven for {', '.join(kind.libraries)} and what they depend on")
            resolve(kind.libraries, place)
        names = tuple(sorted(jar.name for jar in place.glob("*.jar")))
        tell(f"checking {counted(len(names), 'jar')}")
        check(kind, place)
        put(place, target)
    branch = _reference(kind, source) if kind.files else None
    return Collected(kind, _git(source, "rev-parse", f"{branch or 'HEAD'}^{{commit}}"), names)


def _projects(kinds: Iterable[Clone]) -> str:
    return " or ".join(kind.project for kind in kinds)


def _kind(kinds: Sequence[Clone], source: Path) -> Clone:
    """The project that the folder is a clone of, by the jars or the sources in it."""
    for kind in kinds:
        if (kind.files and _reference(kind, source) is not None) or _built(kind, source):
            return kind
    for kind in kinds:
        if kind.build is not None and kind.build.fits(source):
            return kind
    raise JvmError(f"{source}: no jars of {_projects(kinds)} here: {'; or '.join(kind.absent for kind in kinds)}")


def _order(kind: Clone, source: Path, target: Path, limit_s: float) -> MavenBuild | None:
    """The build that makes the jars; ``None`` where the clone has all of them, or no sources."""
    jars = {jar.name for jar in _built(kind, source)}
    if kind.build is None or not kind.build.fits(source) or not _missing(kind, jars):
        return None
    log = target.with_name(f"{target.name}-maven.log")
    return MavenBuild(kind.build, source, f"{kind.tested} ({kind.commit[:12]})", log, limit_s)


def _missing(kind: Clone, names: Iterable[str]) -> list[str]:
    """The beginnings of names that the engine needs and no jar has."""
    there = tuple(names)
    return [each for each in kind.needs if not any(name.startswith(each) for name in there)]


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


def check(kind: Clone, place: Path) -> None:
    """Hold a folder of jars against what the engine needs; JvmError lists what is missing, or names a broken jar."""
    names = {jar.name for jar in place.glob("*.jar")}
    if missing := _missing(kind, names):
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
