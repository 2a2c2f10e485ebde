"""A newcomer's waits: each thing of the first hour, done as a program of its own, beside its limit.

python -m benchmarks.first_hour [--only TEXT], which chooses those whose name has this text

Printed are wall time and CPU time (s) of the program and of those that it waited for (Spark's JVM is not one of them);
a server's are until it answers `/health`.
The limits are of wall time on an idle machine with two cores, but for those of CPU time. The exit code is 1 when
something is beyond its limit or does not end as it should; the suite does the same things for their outcome
(tests/cli/test_examples.py, tests/cli/test_first_hour.py).
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.measure import free_port, options
from benchmarks.results import ResultTable
from streamgauge.harness.resources import reaped, spent

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
SELF: Final = "-m streamgauge"


@dataclass(frozen=True, slots=True)
class Wait:
    """Commands one after the other and the limit of their time in s (wall, or CPU); a server ends when it is ready."""

    name: str
    commands: tuple[str, ...]
    limit: float
    cpu: bool = False
    serves: bool = False


WAITS: Final = (
    Wait("the demo", (f"{SELF} demo --out demo-out",), 30),
    Wait("the first experiment", (f"{SELF} run {EXAMPLES}/select.toml --out select",), 60),
    Wait("own stream and query", (f"{SELF} init mine", f"{SELF} run mine/experiment.toml"), 60),
    Wait(
        "generate weather", (f"{SELF} generate weather --stations 2 --interval 1s --duration 10s --out weather",), 1.5
    ),
    Wait("generate university", (f"{SELF} generate university --universities 1 --out university",), 5),
    Wait("--help", (f"{SELF} --help",), 0.35, cpu=True),
    Wait("import streamgauge", ("-c import\tstreamgauge",), 0.15, cpu=True),
    Wait("engine serve", (f"{SELF} engine serve live --port PORT",), 1.5, serves=True),
    Wait("broker serve", (f"{SELF} broker serve {EXAMPLES}/data.ttl --port PORT",), 1.5, serves=True),
    Wait("fragments serve", (f"{SELF} fragments serve {EXAMPLES}/trains.nq --port PORT",), 1.5, serves=True),
)


@dataclass(frozen=True, slots=True)
class Waited:
    """Wall and CPU time (s), and whether all ended as they should."""

    wall: float
    cpu: float
    ended_well: bool


def words(command: str) -> list[str]:
    """The words of a command; a tab stands for a space within a word."""
    return [sys.executable, *(word.replace("\t", " ") for word in command.split(" "))]


def waited(wait: Wait, folder: Path) -> Waited:
    """Do it in a folder; programs find the package where this one did."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if wait.serves:
        port = free_port()
        return _served(words(wait.commands[0].replace("PORT", f"{port}")), port, folder, environment)
    before, began = reaped(), time.monotonic()
    codes = [
        subprocess.run(words(command), cwd=folder, env=environment, capture_output=True).returncode
        for command in wait.commands
    ]
    return Waited(time.monotonic() - began, reaped() - before, not any(codes))


def _served(command: Sequence[str], port: int, folder: Path, environment: dict[str, str]) -> Waited:
    """A server until it is ready, and whether it ends by Ctrl-C."""
    began = time.monotonic()
    program = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not _answers(port) and program.poll() is None:
        time.sleep(0.01)
    wall = time.monotonic() - began
    if program.poll() is not None:
        return Waited(wall, 0.0, False)
    used = spent(program.pid)
    program.send_signal(signal.SIGINT)
    return Waited(wall, used, program.wait(30) in (0, 130))


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def main() -> int:
    """Do all, print each; 1 when something took too long or failed."""
    only = options(__doc__, only="").only
    beyond = 0
    with ResultTable("first_hour", ("", "s", "CPU s", "limit", "outcome")) as table:
        for wait in (wait for wait in WAITS if only in wait.name):
            with tempfile.TemporaryDirectory() as folder:
                cost = waited(wait, Path(folder))
            took = cost.cpu if wait.cpu else cost.wall
            right = cost.ended_well and took <= wait.limit
            beyond += not right
            remark = "" if right else "BEYOND" if cost.ended_well else "FAILED"
            unit = "s of CPU" if wait.cpu else "s"
            table.add(wait.name, f"{cost.wall:.2f}", f"{cost.cpu:.2f}", f"{wait.limit} {unit}", remark)
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
