"""Maven, called for the jars of an engine: a build in a copy of the user's own clone, and published libraries."""

import os
import re
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Timer
from typing import IO, Final

from streamgauge.formats.jvm import JvmError, tool
from streamgauge.model.counts import counted
from streamgauge.model.obstacles import obstacle

Tell = Callable[[str], object]

LIMIT_S: Final = 1800.0
"""Seconds that a build may take unless told otherwise: the first one fetches some hundred libraries and plugins."""

_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>"""
_MODULE: Final = re.compile(r"\[INFO\] Building (?!jar: )(\S.*?)\s+\[(\d+)/(\d+)\]$")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_GOALS: Final = ("package", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DskipTests")
_SHOWN: Final = 300
"""Characters of Maven's own words in a sentence."""

_ADVICE: Final = (
    (
        "Could not resolve|Could not transfer|Could not find artifact|Non-resolvable|Unknown host|offline",
        "Maven fetches libraries and plugins: is the network there, and is the mirror or proxy that it needs in "
        "~/.m2/settings.xml?",
    ),
    ("No space left", "make room, or name another place for temporary files by TMPDIR"),
    ("OutOfMemory|heap space", "give Maven more memory (MAVEN_OPTS=-Xmx2g)"),
)
"""Words of Maven, and what to do about them."""


@dataclass(frozen=True, slots=True)
class Omission:
    """A line of a source file that is left out of what is built, as a newer JDK does not compile it."""

    file: str
    line: str


@dataclass(frozen=True, slots=True)
class Build:
    """How Maven builds a project: which ``modules``, with all of the project that they need, and further options."""

    modules: tuple[str, ...]
    options: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()

    def fits(self, source: Path) -> bool:
        """Whether a folder has the sources."""
        return all((source / module / "pom.xml").is_file() for module in ("", *self.modules))


@dataclass(frozen=True, slots=True)
class MavenBuild:
    """A build that is wanted: of the clone ``source``, within ``limit_s``, Maven's words going into ``log``.

    ``tried`` says at which version the project was built before.
    """

    build: Build
    source: Path
    tried: str
    log: Path
    limit_s: float = LIMIT_S


@contextmanager
def built(order: MavenBuild, tell: Tell) -> Iterator[Path]:
    """A copy of the clone, built; the clone itself is left as it is. JvmError says why Maven did not build it."""
    maven = _maven("build the clone yourself")
    tool("javac")
    with TemporaryDirectory(prefix="streamgauge-build-") as scratch:
        copy = Path(scratch) / "clone"
        tell(f"copying {order.source}")
        _copy(order.source, copy)
        for each in order.build.omissions:
            _omit(copy / each.file, each.line)
        tell("Maven begins")
        modules = ",".join(order.build.modules)
        _run([maven, "-B", *_GOALS, *order.build.options, "-pl", modules, "-am"], copy, order, tell)
        yield copy


def _maven(instead: str) -> str:
    found = shutil.which("mvn")
    if found is None:
        raise JvmError(f"Maven (mvn) is not found: install it (Debian: apt-get install maven), or {instead}")
    return found


def _copy(source: Path, target: Path) -> None:
    """The files of a clone, without its history and without what was built before."""

    def left_out(_folder: str, names: list[str]) -> set[str]:
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
        kept = [each for each in file.read_bytes().splitlines(keepends=True) if each.strip() != line.encode()]
        file.write_bytes(b"".join(kept))


def _run(command: Sequence[str], copy: Path, order: MavenBuild, tell: Tell) -> None:
    """Let Maven build; what it started ends with it, at the limit and at Ctrl-C too."""
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
            start_new_session=True,
        )
        over = Event()
        late = Timer(order.limit_s, _end, (process, over))
        late.start()
        try:
            said = _follow(process, log, tell)
            code = process.wait()
        finally:
            late.cancel()
            _kill(process)
    if over.is_set():
        raise JvmError(_failure(order, f"not done after {order.limit_s:g} s", "allow more (--limit 1h)"))
    if code:
        raise JvmError(_failure(order, _reason(said), _advice(said, order.tried)))
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
    """Keep all that Maven says in the log, and tell how far it is; its errors, or its last words where it has none."""
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
        elif found := _MODULE.search(text):
            module = f"Maven builds {found[1]} ({found[2]} of {found[3]})"
        else:
            continue
        tell(f"{module}, {counted(fetched, 'file')} fetched" if fetched else module)
    return errors or [f"it ended, its last words being: {' / '.join(last)}" if last else "it ended without a word"]


def _failure(order: MavenBuild, reason: str, advice: str) -> str:
    what = " and ".join(order.build.modules)
    return f"Maven did not build {what} in a copy of {order.source}: {reason}; {advice}; its words are in {order.log}"


def _reason(said: Sequence[str]) -> str:
    """The first error that says more than that there is one."""
    told = (line.strip() for line in said if line.strip() and not line.startswith("COMPILATION ERROR"))
    return next(told, said[0])[:_SHOWN]


def _advice(said: Sequence[str], tried: str) -> str:
    text = "\n".join(said)
    tried_at = f"tried was {tried} with JDK 17 (JAVA_HOME names a JDK): check that version out"
    return next((advice for words, advice in _ADVICE if re.search(words, text)), tried_at)


def resolve(libraries: Sequence[str], place: Path) -> None:
    """Have Maven copy published libraries and what they depend on into a folder; JvmError says why it did not."""
    maven = _maven(f"put {', '.join(libraries)} and all that they depend on into the folder by hand")
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
