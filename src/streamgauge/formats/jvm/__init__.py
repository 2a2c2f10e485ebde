"""Engines on the JVM: their Java program and the pipe's (``Pipe.java`` here), compiled at first use, as a command."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

_OURS = tuple(Path(__file__).parent / name for name in ("Json.java", "Pipe.java", "Terms.java"))
_OPTIONS = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",  # the class generation of libraries older than Java 9
    "-Dfile.encoding=UTF-8",
    "-XX:MaxRAMPercentage=50",
    f"-Dlog4j.configuration={(Path(__file__).parent / 'log4j.properties').as_uri()}",  # no log files where it runs
)


class JvmError(RuntimeError):
    """Missing jars or JDK, or a program that does not compile with them; the sentence says what to do."""


def jars(variable: str, how: str, name: str) -> Path:
    """The folder of an engine's jars: from an environment variable, else where they were prepared.

    JvmError, ending with ``how`` to get them, if there are none.
    """
    home = os.environ.get(variable) or str(prepared(name))
    if any(Path(home).glob("*.jar")):
        return Path(home).resolve()
    if not os.environ.get(variable):
        raise JvmError(f"{variable} is not set: {how}")
    raise JvmError(f"{variable} is {home}, where there is no jar: {how}")


def prepared(name: str) -> Path:
    """The default folder of ``streamgauge engines prepare`` for an engine's jars."""
    return _cache() / "engines" / name


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamgauge"


def java_command(home: Path, sources: Sequence[Path], main: str) -> list[str]:
    """The command that runs the class ``main`` of the sources with the jars of ``home``; JvmError."""
    classes = _compiled(home, (*_OURS, *sources))
    return [tool("java"), *_OPTIONS, "-cp", f"{classes}{os.pathsep}{home}/*", main]


@cache
def _compiled(home: Path, sources: tuple[Path, ...]) -> Path:
    """The folder of their classes, in the user's cache under a hash of sources, jars and JDK."""
    javac = tool("javac")
    key = sha256(f"{javac} {Path(javac).resolve()}".encode())
    for jar in sorted(home.glob("*.jar")):
        key.update(f"{jar} {jar.stat().st_size}".encode())
    for source in sources:
        key.update(source.read_bytes())
    cached = _cache() / "jvm"
    classes = cached / key.hexdigest()[:32]
    if not classes.exists():
        cached.mkdir(parents=True, exist_ok=True)
        _compile(javac, home, sources, classes)
    return classes


def _compile(javac: str, home: Path, sources: Sequence[Path], classes: Path) -> None:
    """Compile in a temporary folder and move it into place: another process may do the same."""
    with tempfile.TemporaryDirectory(dir=classes.parent) as aside:
        scratch = Path(aside) / "classes"
        command = [javac, "-nowarn", "-encoding", "UTF-8", "-d", str(scratch), "-cp", f"{home}/*", *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = "\n".join(done.stderr.splitlines()[:5])
            raise JvmError(f"{sources[-1].name} does not compile with the jars of {home}: other versions?\n{errors}")
        try:
            scratch.rename(classes)
        except OSError:
            if not classes.exists():
                raise


def tool(name: str) -> str:
    """The path of a program of the JDK; JvmError with the remedy."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(name, path=f"{home}/bin") if home else None
    path = path or shutil.which(name)
    if path is None:
        raise JvmError(f"{name} is not found: install a JDK, 17 or later (Debian: openjdk-17-jdk-headless)")
    return path
