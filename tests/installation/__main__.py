"""The installation as a user does it, on every Python of this machine: `python -m tests.installation [PYTHON...]`.

pip builds the wheel in isolation and installs the core into an empty environment; the quick start of each role is read
with it; each extra is refused by name, installed alone by the command that the refusal says, and taken out again. Then
the tests of the wheel (tests/cli/test_wheel.py). Sizes and times are printed. The exit code is 1 when something is
otherwise, and 0 where pip reaches no index of packages.
"""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final

from streamgauge.model.extras import EXTRAS, command
from tests.installation.environments import Environment, InstallationError, has_index, pythons

Say = Callable[[object], None]
"""Prints a line about one Python."""

ROOT: Final = Path(__file__).resolve().parents[2]
CONSTRAINTS: Final = ROOT / "constraints.txt"
PAGES: Final = sorted([*(ROOT / "docs").glob("start-*.md"), *(ROOT / "docs").glob("howto-*.md")])
QUICK_STARTS: Final = [page for page in PAGES if "pip install 'streamgauge[" not in page.read_text(encoding="utf-8")]
"""The pages that a new user begins with, and the recipes that need no extra."""

REFUSED: Final = {
    "columns": "sepbm run configuration --out made-recording --system columns",
    "gtfs": "query average.rq --stream feed.pb",
    "kafka": "query average.rq --stream kafka://127.0.0.1/readings",
    "mcp": "mcp",
    "mqtt": "query average.rq --stream mqtt://127.0.0.1/readings",
    "names": "generate university --out made-university.nq --format nquads --extended census",
    "plots": "report runs --figures made-figures --out made-report.html",
    "spark": "stream average.rq --from readings.nq --to made-answers/ --checkpoint made-state/ --drain",
}
"""A command that needs an extra, in the folder of the examples."""

ENDLESS: Final = {"kafka", "mcp", "mqtt"}
"""Extras whose command waits for others once it has what it needs."""


QUICK_START_PORTS: Final = Lock()
"""The pages name the servers' own ports, so one Python reads them at a time."""

WHEEL_TESTS: Final = (sys.executable, "-m", "pytest", "-m", "prove", "tests/cli/test_wheel.py")

AT_ONCE: Final = 4
"""Pythons, and the wheel, that are checked at once: each waits for the index half of the time."""


def main(named: Sequence[str]) -> int:
    """Check each Python named, all that are here unless given; 1 when something is otherwise, else 0."""
    if not has_index():
        print("pip reaches no index of packages here: the installation is not checked")
        return 0
    with TemporaryDirectory(prefix="streamgauge-installation-") as home, ThreadPoolExecutor(AT_ONCE) as pool:
        checks = [pool.submit(passes, python, Path(home)) for python in (map(Path, named) if named else pythons())]
        wheel = pool.submit(subprocess.run, WHEEL_TESTS, cwd=ROOT)
        return int(False in [check.result() for check in checks] or wheel.result().returncode != 0)


def passes(python: Path, home: Path) -> bool:
    """Whether all is as it should be with a Python, each step printed as it ends."""
    say = partial(print, f"{python.name}:", flush=True)
    try:
        check(python, home / python.name, say)
    except InstallationError as error:
        say(error)
        return False
    return True


def check(python: Path, home: Path, say: Say) -> None:
    """Check one Python in an empty folder; InstallationError."""
    with step("the core, from the checkout, built in isolation", say):
        core = Environment.made(python, home)
        core.pip("install", "--constraint", CONSTRAINTS, ROOT)
    sizes = core.sizes()
    large = ", ".join(f"{name} {size:.0f}" for name, size in list(sizes.items())[:6])
    say(f"size: {sum(sizes.values()):.0f} MB ({large})")
    if not core.run("streamgauge", "docs", "--path").stdout.strip().endswith("site"):
        raise InstallationError("the wheel has no site of the documentation")
    with QUICK_START_PORTS, step("the quick starts", say):
        pages = core.call("-m", "tests.installation.reading", *QUICK_STARTS, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
        for line in pages.splitlines():
            say(line.strip())
    folder = home / "examples"
    copytree(ROOT / "examples", folder)
    prepare(core, folder)
    for extra in REFUSED:
        alone(core, extra, folder, say)


def prepare(core: Environment, folder: Path) -> None:
    """Make what the refused commands name: a run, a configuration of SEP-BM, a feed."""
    (folder / "feed.pb").touch()
    making = (
        "init mine",
        "run mine/experiment.toml --out runs",
        "sepbm generate configuration --publications 2 --channels 1",
    )
    for words in making:
        done = core.run("streamgauge", *words.split(), cwd=folder)
        if done.returncode:
            raise InstallationError(f"streamgauge {words}\n{done.stderr}")


def alone(core: Environment, extra: str, folder: Path, say: Say) -> None:
    """An extra is refused by name, installed by the command that the refusal says, there, and taken out again."""
    done = core.run("streamgauge", *REFUSED[extra].split(), cwd=folder)
    if done.returncode != 2 or not done.stderr.strip().endswith(command(extra)):
        raise InstallationError(f"without {extra}, streamgauge {REFUSED[extra]}: {done.returncode}\n{done.stderr}")
    before, size = core.distributions(), sum(core.sizes().values())
    began = time.monotonic()
    core.pip(*shlex.split(command(extra))[1:], constraints=CONSTRAINTS, compiled=False)  # half of the time
    new = core.distributions() - before
    size, seconds = sum(core.sizes().values()) - size, time.monotonic() - began
    say(f"{extra}: {size:+.0f} MB, {seconds:.0f} s ({', '.join(sorted(new))})")
    states = json.loads(core.run("streamgauge", "doctor", "--json").stdout)
    there = {state["name"]: state["found"] for state in states if state["kind"] == "extra"}
    if {name for name, result in there.items() if result} - {"docs"} != {extra}:
        raise InstallationError(f"with {extra} installed alone, doctor says {there}")
    for module in EXTRAS[extra].modules:
        core.call("-c", f"import {module}")
    if extra not in ENDLESS:
        again = core.run("streamgauge", *REFUSED[extra].split(), cwd=folder)
        if "pip install" in again.stderr or "Traceback" in again.stderr:
            raise InstallationError(f"with {extra}, streamgauge {REFUSED[extra]}\n{again.stderr}")
    core.pip("uninstall", "--yes", *new)
    for place in folder.glob("made-*"):
        rmtree(place) if place.is_dir() else place.unlink()


@contextmanager
def step(name: str, say: Say) -> Iterator[None]:
    """Print how long a step took."""
    began = time.monotonic()
    yield
    say(f"{name}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
