"""Pythons of this machine, and empty virtual environments of them into which wheels are installed by pip."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

OLDEST: Final = 11
"""The minor version of the oldest Python 3 that is supported."""

_SKIPPED: Final = {"pip", "setuptools"}
_SIZE: Final = 1 << 20


def pythons() -> Iterator[Path]:
    """The newest interpreter of each minor version that is supported here: on the path, and pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep) if folder]
    named = (file for folder in (*root.glob("versions/*/bin"), *folders) for file in folder.glob("python3.*"))
    results: dict[int, tuple[tuple[int, ...], Path]] = {}
    for file in named:
        if re.fullmatch(r"python3\.\d+", file.name) and (version := _version(file)) and version[1] >= OLDEST:
            results[version[1]] = max(results.get(version[1], ((), file)), (version, file))
    yield from (results[minor][1] for minor in sorted(results))


def _version(python: Path) -> tuple[int, ...]:
    """The version of an interpreter; empty for one that cannot make virtual environments, as shims cannot."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:3])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()


class InstallationError(Exception):
    """A step failed; the text has what it printed."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder."""

    home: Path

    @classmethod
    def made(cls, python: Path, home: Path) -> "Environment":
        """A new, empty one."""
        subprocess.run([python, "-m", "venv", home], check=True, env=bare())
        return cls(home)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.home / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Its folder site-packages."""
        (folder,) = self.home.glob("lib/python3*/site-packages")
        return folder

    def call(self, *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        """The output of a Python command (``-m ...``); InstallationError when it fails."""
        command = [str(self.python), *map(str, words)]
        environment = {**bare(), **(env or {})}
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd or self.home, env=environment)
        if done.returncode:
            raise InstallationError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def run(self, *words: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """A command of its folder ``bin``, with whatever exit code."""
        command = [str(self.home / "bin" / str(words[0])), *map(str, words[1:])]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=cwd or self.home, env=bare(), stdin=subprocess.DEVNULL
        )

    def pip(self, *words: object, constraints: Path | None = None, compiled: bool = True) -> str:
        """The output of a command of pip; ``compiled``: what it installs is compiled, as pip does."""
        env = {} if constraints is None else {"PIP_CONSTRAINT": str(constraints)}
        env |= {} if compiled else {"PIP_NO_COMPILE": "1"}
        return self.call("-m", "pip", "--disable-pip-version-check", "--quiet", *words, env=env)

    def distributions(self) -> set[str]:
        """The names of what is installed, without pip's own."""
        code = "from importlib.metadata import distributions as all; print(*(each.name for each in all()))"
        return set(self.call("-c", code).split()) - _SKIPPED

    def sizes(self) -> dict[str, float]:
        """The size (MB, 2^20 bytes) of each entry of site-packages but pip's own, the largest first."""
        entries = [entry for entry in self.packages.iterdir() if entry.name.partition("-")[0] not in _SKIPPED]
        sizes = {entry.name: sum(_files(entry)) / _SIZE for entry in entries}
        return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def bare() -> dict[str, str]:
    """The variables of this process but those of Python, and of the environment that runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    own = str(Path(sys.executable).parent)
    return kept | {"PATH": os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if part != own)}


def _files(entry: Path) -> Iterable[int]:
    if entry.is_file():
        yield entry.stat().st_size
    for folder, _, names in os.walk(entry):
        yield from (Path(folder, name).lstat().st_size for name in names)


def has_index() -> bool:
    """Whether pip reaches an index of packages here."""
    asking = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--quiet"]
    with TemporaryDirectory() as folder:
        return subprocess.run([*asking, "--dest", folder, "hatchling"], capture_output=True).returncode == 0
