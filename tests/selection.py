"""A pytest plugin: each test is marked with what it needs, and tests that share a process share a worker.

A fixture tells what a test needs (``spark``, ``kafka``, ``mosquitto``, ``browser``); a test that starts servers or
programs by other means is marked ``server`` by hand, one that waits for the clock ``realtime``. Under
``pytest -n N --dist loadgroup`` one worker runs all tests of a mark of ``SHARED`` (Kafka's with Spark's), so there is
one Kafka broker (and ``SESSIONS`` Spark sessions), and waiting overlaps with computing. All other tests go to workers
file by file, long files first. ``--quick`` leaves out what needs more than Python or much of it (``slow``), and holds
the rest to that: a quick test that starts a program or listens at a port fails, and one that computes for more than
``LONG_CPU`` is named. Without ``--quick`` nothing is held to it: in a process with a Spark session, that session's
own sockets would be taken for a test's.
"""

import atexit
import gc
import os
import platform
import re
import subprocess
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Final
from zlib import crc32

import pytest

NEEDS: Final = {
    "spark": "spark",
    "kafka": "kafka",
    "kafka_jars": "kafka",
    "mosquitto": "server",
    "mosquitto_program": "server",
    "browser": "browser",
}
"""Fixtures, each with the mark of the tests that use it."""

SHARED: Final = ("spark", "kafka", "browser", "realtime")
"""Marks whose tests run on one worker, the first that fits."""

SESSIONS: Final = 1
"""Spark sessions, each on a worker of its own; a session costs 11 s of CPU to start and 20 s to warm up."""

NICE: Final = 3
"""How much workers without Spark's tests step back: that group is the longest, and the suite lasts as long as it."""

RARELY: Final = (100_000, 20, 100)
"""Thresholds of the collection of garbage: at Python's own (700, 10, 10) it takes a tenth of the suite's CPU."""

MARKS: Final = pytest.StashKey[set[str]]()
"""The names of a test's marks."""

OUTSIDE: Final = ("spark", "kafka", "browser", "server", "realtime", "heavy", "prove")
"""Marks of tests that may start programs and listen at ports."""

SLOW: Final = (*OUTSIDE, "slow")
"""Marks of tests that `make quick` leaves out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests without a JVM, a browser, a server or a wait")
    parser.addoption("--slow-too", action="store_true", help="beside --quick: with those that take much CPU")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        config.pluginmanager.register(Quick(), "quick")


PROOFS: Final = re.compile(r"^pytestmark = .*pytest\.mark\.prove\b", re.MULTILINE)
"""What a file of proofs alone has."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of proofs alone are not imported where proofs are left out."""
    if config.option.markexpr != "not prove" or not collection_path.name.startswith("test_"):
        return None
    return True if PROOFS.search(collection_path.read_text("utf-8")) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with what its fixtures need, and with the group of tests that share a worker."""
    needs = {NEEDS[name] for name in getattr(item, "fixturenames", ()) if name in NEEDS}
    for name in needs:
        item.add_marker(name)
    marks = item.stash[MARKS] = needs | {marker.name for marker in item.iter_markers()}
    if "xdist_group" not in marks:
        file = item.nodeid.partition("::")[0]
        shared = next((name for name in SHARED if name in marks), None)
        if shared in ("spark", "kafka"):  # one test needs both: Kafka's are where one of the sessions is
            shared = f"spark-{crc32(file.encode()) % SESSIONS if 'kafka' not in marks else 0}"
        item.add_marker(pytest.mark.xdist_group(shared or file))


UNFREEZE: Final = gc.unfreeze


def stay_frozen() -> None:
    """Stands for ``gc.unfreeze`` once tests are collected.

    A recorded run unfreezes all objects of its process at its end. Each later run, which begins with a full collection,
    would go through all tests for 0.5 s of CPU.
    """


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session):
    """Collected tests live as long as the process: no collection of garbage looks at them, now or later."""
    gc.disable()
    try:
        import_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.unfreeze = stay_frozen
        gc.set_threshold(*RARELY)
        gc.enable()


def import_share(config: pytest.Config) -> None:
    """Of all test files, a worker imports its share first.

    A file is compiled by who imports it first: in a fresh copy all workers, going through the files in the same order,
    would each compile all of them, for 15 s of CPU.
    """
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    if workers == 1 or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    for file in files[int(worker.removeprefix("gw")) :: workers]:
        if not pytest_ignore_collect(file, config):
            with suppress(Exception, pytest.skip.Exception):  # the collection tells of it
                import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """The order is random but for this: groups that take long begin first, so that none is left over at the end."""
    if config.getoption("--quick"):
        keep_quick(config, items)
    result = yield
    groups = {item: group(item) for item in items}
    marks: dict[str, set[str]] = {}
    for item in items:
        marks.setdefault(groups[item], set()).update(item.stash[MARKS])

    def rank(name: str) -> int:
        """0 for the longest groups, 3 for the shortest."""
        if "heavy" in marks[name] or name.partition("-")[0] in SHARED:
            return 0
        return 1 if "server" in marks[name] else 2 if "slow" in marks[name] else 3

    ranks = {name: rank(name) for name in marks}
    items.sort(
        key=lambda item: (
            "kafka" not in item.stash[MARKS],  # one after the other, so that the broker ends with the last of them
            ranks[groups[item]],
        )
    )
    return result


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A worker steps back with its first test that is not Spark's."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    if not alone and not group(item).startswith("spark") and os.getpriority(os.PRIO_PROCESS, 0) == 0:
        os.nice(NICE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Frames of a test on Spark that refer to each other end with it, or the JVM would keep all of their plans."""
    if "spark" in item.stash[MARKS]:
        gc.collect()


def pytest_unconfigure() -> None:
    """Libraries that count their objects find all of them at the end, after pytest has looked for garbage itself."""
    gc.unfreeze = UNFREEZE
    atexit.register(gc.unfreeze)


def group(item: pytest.Item) -> str:
    """The name of the group of tests that share a worker with this one."""
    marker = item.get_closest_marker("xdist_group")
    return "" if marker is None else str(marker.args[0])


def keep_quick(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not quick."""
    slow = {name for name in SLOW if name != "slow" or not config.getoption("--slow-too")}
    if left_out := [item for item in items if item.stash[MARKS] & slow]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.stash[MARKS] & slow]


LONG_CPU: Final = 1.0
"""Seconds of CPU beyond which a quick test is told: it should be marked ``slow``."""


class Quick:
    """Holds unmarked tests to their word: one that starts a program or listens at a port fails, with the reason."""

    def __init__(self) -> None:
        self._watching, self._began = False, 0.0
        self._deeds: list[str] = []
        self._earlier = frozenset[int]()
        """Threads of tests before, and of fixtures that tests share: what these do is not this test's."""
        platform.processor()  # a program on Linux, asked once for each process
        with suppress(ImportError):
            import_module("urllib3.util.connection")  # binds a port to learn of IPv6 once, for whoever imports it first
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        # Kept for the teardown: raised here, in a server's thread, it would leave the test waiting for the server.
        if not self._watching or event not in ("subprocess.Popen", "socket.bind"):
            return
        if threading.get_ident() not in self._earlier:
            deed = "starts a program" if event == "subprocess.Popen" else "listens at a port"
            self._deeds.append(f"{deed} ({subprocess.list2cmdline(map(str, arguments))[:200]})")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self._watching = item.stash[MARKS].isdisjoint(OUTSIDE)
        own = threading.get_ident()
        self._earlier = frozenset(thread.ident for thread in threading.enumerate() if thread.ident not in (None, own))
        self._began = process_time()
        try:
            return (yield)
        finally:
            self._watching = False

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """The time goes along with the test's report, also from another process."""
        took = process_time() - self._began
        if took > LONG_CPU and item.stash[MARKS].isdisjoint(SLOW):
            item.user_properties.append(("computed", took))
        deeds, self._deeds = self._deeds, []
        if deeds:
            pytest.fail(f"this test {deeds[0]}: mark it `server`")
