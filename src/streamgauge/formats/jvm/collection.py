"""The jars of an engine on the JVM, collected from the user's own clone of its project into one folder, and checked.

The files are listed beside the engine (``jars.toml``), one entry for each project that has them. If the clone has no
jars, Maven builds them in a copy of it; it also fetches published libraries.
"""

import os
import re
import shutil
import signal
import subprocess
import tomllib
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Timer
from typing import IO, Final

from streamgauge.formats.fields import decode
from streamgauge.formats.files import overwrite, stage
from streamgauge.formats.jvm import JvmError, tool
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import counted

Tell = Callable[[str], object]

LIMIT_S: Final = 1800.0
"""Default time limit of a build: the first one fetches some hundred libraries and plugins."""

_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>"""
_MODULE: Final = re.compile(r"\[INFO\] Building (?!jar: )(\S.*?)\s+\[(\d+)/(\d+)\]$")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_GOALS: Final = ("package", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DskipTests")
_SHOWN: Final = 300
"""Characters of Maven's output quoted in an error."""

_ADVICE: Final = (
    (
        "Could not resolve|Could not transfer|Could not find artifact|Non-resolvable|Unknown host|offline",
        "Maven fetches libraries and plugins: is the network there, and is the mirror or proxy that it needs in "
        "~/.m2/settings.xml?",
    ),
    ("No space left", "make room, or name another place for temporary files by TMPDIR"),
    ("OutOfMemory|heap space", "give Maven more memory (MAVEN_OPTS=-Xmx2g)"),
)
"""Patterns in Maven's output, and the remedy."""


@dataclass(frozen=True, slots=True)
class Omission:
    """A line of a source file that is removed before the build, since a newer JDK does not compile it."""

    file: str
    line: str


@dataclass(frozen=True, slots=True)
class Build:
    """How Maven builds a project: its ``modules`` with their dependencies in the project, and options."""

    modules: tuple[str, ...]
    options: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()

    def fits(self, source: Path) -> bool:
        """Whether a folder has the sources."""
        return all((source / module / "pom.xml").is_file() for module in ("", *self.modules))


@dataclass(frozen=True, slots=True)
class MavenBuild:
    """A requested build of the clone ``source`` within ``limit_s``, with Maven's output in ``log``.

    ``tried`` is the version with which the build was tested.
    """

    build: Build
    source: Path
    tried: str
    log: Path
    limit_s: float = LIMIT_S


@contextmanager
def built(order: MavenBuild, tell: Tell) -> Iterator[Path]:
    """A built copy of the clone, which itself is not changed. JvmError with Maven's reason."""
    maven = _maven("build the clone yourself")
    tool("javac")
    with TemporaryDirectory(prefix="streamgauge-build-") as scratch:
        copy = Path(scratch) / "clone"
        tell(f"copying {order.source}")
        _copy_sources(order.source, copy)
        for omission in order.build.omissions:
            _omit(copy / omission.file, omission.line)
        tell("Maven begins")
        modules = ",".join(order.build.modules)
        _run([maven, "-B", *_GOALS, *order.build.options, "-pl", modules, "-am"], copy, order, tell)
        yield copy


def _maven(instead: str) -> str:
    program = shutil.which("mvn")
    if program is None:
        raise JvmError(f"Maven (mvn) is not found: install it (Debian: apt-get install maven), or {instead}")
    return program


def _copy_sources(source: Path, target: Path) -> None:
    """Copy the files of a clone, without its history and build output."""

    def left_out(_folder: str, names: list[str]) -> set[str]:
        # Only beside a pom.xml: elsewhere a folder may be named ``target`` and hold sources, as a package would.
        return {".git", "target"} & set(names) if "pom.xml" in names else set()

    try:
        shutil.copytree(source, target, symlinks=True, ignore=left_out)
    except shutil.Error as error:
        file, _, why = error.args[0][0]
        raise JvmError(f"{file} cannot be copied: {why.partition('] ')[2] or why}") from error
    except OSError as error:
        raise JvmError(f"{error.filename or source} cannot be copied: {obstacle(error)}") from error


def _omit(file: Path, line: str) -> None:
    if file.is_file():
        # In bytes: the encoding of a foreign source file is not known, and line ends stay as they are.
        kept = [entry for entry in file.read_bytes().splitlines(keepends=True) if entry.strip() != line.encode()]
        file.write_bytes(b"".join(kept))


def _run(command: Sequence[str], copy: Path, order: MavenBuild, tell: Tell) -> None:
    """Run Maven; its process group is killed at the limit and on Ctrl-C."""
    order.log.parent.mkdir(parents=True, exist_ok=True)
    with order.log.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            cwd=copy,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # Its own process group, so that _kill also ends the processes that Maven forks.
            start_new_session=True,
        )
        over = Event()
        # The limit holds even while Maven is silent: ``_follow`` is blocked reading its output then.
        late = Timer(order.limit_s, _end, (process, over))
        late.start()
        try:
            output = _follow(process, log, tell)
            code = process.wait()
        finally:
            late.cancel()
            _kill(process)
    if over.is_set():
        raise JvmError(_failure(order, f"not done after {order.limit_s:g} s", "allow more (--limit 1h)"))
    if code:
        raise JvmError(_failure(order, _reason(output), _advice(output, order.tried)))
    # The output is of use only where the build failed.
    order.log.unlink()


def _end(process: "subprocess.Popen[str]", over: Event) -> None:
    over.set()
    _kill(process)


def _kill(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _follow(process: "subprocess.Popen[str]", log: IO[str], tell: Tell) -> list[str]:
    """Log Maven's output and report progress; returns its errors, or its last lines if it printed none."""
    errors: list[str] = []
    last: deque[str] = deque(maxlen=3)
    module, fetched = "Maven begins", 0
    assert process.stdout is not None
    for line in process.stdout:
        text = _COLOUR.sub("", line).rstrip()
        log.write(f"{text}\n")
        last.extend([text] if text else ())
        if text.startswith("[ERROR]"):
            errors.append(text[8:])
        elif text.startswith("Downloaded from "):
            fetched += 1
        elif match := _MODULE.search(text):
            module = f"Maven builds {match[1]} ({match[2]} of {match[3]})"
        else:
            continue
        tell(f"{module}, {counted(fetched, 'file')} fetched" if fetched else module)
    return errors or [f"it ended, its last words being: {' / '.join(last)}" if last else "it ended without a word"]


def _failure(order: MavenBuild, reason: str, advice: str) -> str:
    what = " and ".join(order.build.modules)
    return f"Maven did not build {what} in a copy of {order.source}: {reason}; {advice}; its words are in {order.log}"


def _reason(output: Sequence[str]) -> str:
    """The first error with a reason."""
    # Maven's first error line is often a mere heading.
    errors = (line.strip() for line in output if line.strip() and not line.startswith("COMPILATION ERROR"))
    return next(errors, output[0])[:_SHOWN]


def _advice(output: Sequence[str], tried: str) -> str:
    text = "\n".join(output)
    tried_at = f"tested is {tried} with JDK 17 (JAVA_HOME names a JDK): check out that version"
    return next((advice for words, advice in _ADVICE if re.search(words, text)), tried_at)


def resolve(libraries: Sequence[str], place: Path, *, alone: bool = False) -> None:
    """Have Maven copy published libraries and their dependencies into a folder; JvmError with its reason.

    ``alone`` leaves out the dependencies.
    """
    maven = _maven(f"put {', '.join(libraries)} and all that they depend on into the folder by hand")
    with TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format("".join(_dependency(library, alone) for library in libraries)), encoding="utf-8")
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={place}", "-DincludeScope=runtime"]
        done = subprocess.run(
            [maven, "-B", "-q", "-f", pom, *goal], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("[ERROR]")]
        raise JvmError(f"Maven did not get {', '.join(libraries)}: {errors[0][8:] if errors else 'it gave no reason'}")


_NO_OTHERS: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def _dependency(library: str, alone: bool) -> str:
    names = zip(("groupId", "artifactId", "version"), library.split(":"), strict=True)
    named = "".join(f"<{name}>{value}</{name}>" for name, value in names)
    return f"<dependency>{named}{_NO_OTHERS if alone else ''}</dependency>"


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
    """The projects that have the jars of the engine in a folder; empty if it needs no jars."""
    file = folder / FILE
    if not file.exists():
        return ()
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["clone"]
    return tuple(decode(Clone, entry, f"{FILE} clone[{place}]") for place, entry in enumerate(entries))


def collect(kinds: Sequence[Clone], source: Path, target: Path, tell: Tell, limit_s: float = LIMIT_S) -> Collected:
    """Copy the jars of a clone into ``target``, all of them or none; JvmError names what is missing or broken.

    If the clone has sources but not all jars, a copy of it is built first, within ``limit_s``.
    """
    if not source.is_dir():
        raise JvmError(f"{source}: no such folder: give --source the folder of your clone of {_projects(kinds)}")
    kind = _kind(kinds, source)
    order = _order(kind, source, target, limit_s)
    with stage(target) as place, built(order, tell) if order else nullcontext(source) as there:
        place.mkdir()
        tell(f"collecting jars of {kind.project}")
        _copy(kind, there, place)
        if kind.libraries:
            tell(f"asking Maven for {', '.join(kind.libraries)} and what they depend on")
            resolve(kind.libraries, place)
        names = tuple(sorted(jar.name for jar in place.glob("*.jar")))
        tell(f"checking {counted(len(names), 'jar')}")
        check(kind, place)
        overwrite(place, target)
    branch = _reference(kind, source) if kind.files else None
    return Collected(kind, _git(source, "rev-parse", f"{branch or 'HEAD'}^{{commit}}"), names)


def _projects(kinds: Iterable[Clone]) -> str:
    return " or ".join(kind.project for kind in kinds)


def _kind(kinds: Sequence[Clone], source: Path) -> Clone:
    """The project that the folder is a clone of, by the jars or sources in it."""
    for kind in kinds:
        # First the clones that have jars: those need no build.
        if (kind.files and _reference(kind, source) is not None) or _built(kind, source):
            return kind
    for kind in kinds:
        if kind.build is not None and kind.build.fits(source):
            return kind
    raise JvmError(f"{source}: no jars of {_projects(kinds)} here: {'; or '.join(kind.absent for kind in kinds)}")


def _order(kind: Clone, source: Path, target: Path, limit_s: float) -> MavenBuild | None:
    """The build that makes the jars; ``None`` if the clone has all of them, or no sources."""
    jars = {jar.name for jar in _built(kind, source)}
    if kind.build is None or not kind.build.fits(source) or not _missing(kind, jars):
        return None
    log = target.with_name(f"{target.name}-maven.log")
    return MavenBuild(kind.build, source, f"{kind.tested} ({kind.commit[:12]})", log, limit_s)


def _missing(kind: Clone, names: Iterable[str]) -> list[str]:
    """The prefixes of required jars that no name has."""
    present = tuple(names)
    return [need for need in kind.needs if not any(name.startswith(need) for name in present)]


def _built(kind: Clone, source: Path) -> list[Path]:
    jars = (jar for pattern in kind.jars for jar in sorted(source.glob(pattern)))
    return [jar for jar in jars if not any(fnmatch(jar.name, pattern) for pattern in kind.leave)]


def _reference(kind: Clone, source: Path) -> str | None:
    """The place of a branch's files: ``""`` for the folder itself, else the branch's name; ``None`` for nowhere."""
    if all((source / file).is_file() for file in kind.files):
        return ""
    # First that of the remote, which a fetch brings up to date; the local one may be behind.
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
    """The output of git about a clone; empty if the folder is not a clone, or git is not installed."""
    try:
        done = subprocess.run(["git", "-C", source, *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def check(kind: Clone, place: Path) -> None:
    """Check a folder of jars against the engine's needs; JvmError lists missing jars, or names a broken one."""
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
