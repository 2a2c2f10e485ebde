"""A pytest plugin: ``--spread N`` collects the tests once and runs them in N processes, which are forked from this one.

Workers of pytest-xdist import and collect all tests by themselves, for 14 s of CPU a worker, and each test costs them
and their controller some milliseconds. Here a worker has what this process has collected, asks for a group of tests
(``xdist_group``) when it has run one, and sends a message for each test. A worker that dies is replaced: the test that
it was at has failed, the others of its group are run by the next worker.
"""

import atexit
import os
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Final

import pytest

from tests.durations import OneReport

Group = list[int]
"""Indices of tests that one worker runs one after the other."""

STOP: Final[Group] = []
"""Sent to a worker that is to end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--spread", type=int, default=0, metavar="N", help="run the tests in N forked processes (Linux)")


def pytest_configure(config: pytest.Config) -> None:
    if (count := config.getoption("--spread")) > 1 and not config.option.collectonly:
        if sys.platform != "linux":
            raise pytest.UsageError("--spread forks processes with threads, as only Linux can: -n 4 --dist loadgroup")
        config.pluginmanager.register(Spread(config, count), "workers")


@dataclass(eq=False)
class Worker:
    """A forked process, also as a file that its end makes readable, its pipe, and what is left to run of its group."""

    pid: int
    process: int
    connection: Connection
    pending: Group = field(default_factory=list)
    fault: str = ""


class Spread:
    """Sends groups of tests to workers and tells pytest their reports."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        self._config, self._count, self._started = config, count, 0
        self._queue: deque[Group] = deque()
        self._workers: list[Worker] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        if begun := [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]:
            raise pytest.UsageError(
                f"workers would not have these threads, which began while tests were collected: {begun}"
            )
        groups: dict[str, Group] = {}
        for index, item in enumerate(session.items):
            groups.setdefault(item.get_closest_marker("xdist_group").args[0], []).append(index)
        self._queue = deque(groups.values())
        try:
            for _ in range(min(self._count, len(groups))):
                self._fork(session)
            while self._workers:
                ready = wait([part for worker in self._workers for part in (worker.connection, worker.process)])
                for worker in list(self._workers):
                    if worker.connection in ready:
                        self._take(session, worker)
                    elif worker.process in ready:  # without the end of its pipe, which a program of a test may hold
                        self._remove(session, worker)
        finally:
            for worker in self._workers:
                worker.connection.close()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True

    def _fork(self, session: pytest.Session) -> None:
        here, there = Pipe()
        self._started += 1
        basetemp = self._config._tmp_path_factory.getbasetemp() / f"worker-{self._started}"  # type: ignore[attr-defined]
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which wait for work
            pid = os.fork()
        if pid == 0:
            for connection in (here, *(worker.connection for worker in self._workers)):
                connection.close()
            basetemp.mkdir(mode=0o700)
            self._config._tmp_path_factory._basetemp = basetemp  # type: ignore[attr-defined]
            work(session, there, f"gw{self._started - 1}")
        there.close()
        self._workers.append(Worker(pid, os.pidfd_open(pid), here))

    def _take(self, session: pytest.Session, worker: Worker) -> None:
        """Take a message of a worker: that it has nothing to do, the reports of a test, or the end of its pipe."""
        message, ended = None, False
        try:
            message = worker.connection.recv()
            if message is None:
                worker.pending = self._queue.popleft() if self._queue else STOP
                worker.connection.send(worker.pending)
        except (EOFError, OSError):
            ended = True  # another worker is forked outside of this block: its errors would tell of this one
        if ended:
            self._remove(session, worker)
        elif message is not None:
            self._run(session, worker, *message)

    def _remove(self, session: pytest.Session, worker: Worker) -> None:
        """Wait for the end of a worker, and tell how it was."""
        self._workers.remove(worker)
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        worker.connection.close()
        os.close(worker.process)
        self._ended(session, worker, code)

    def _run(self, session: pytest.Session, worker: Worker, index: int | None, reports: list[Any]) -> None:
        """Tell the reports of a test that a worker has run; without a test there is the worker's own error."""
        if index is None:
            worker.fault = reports[0]
            return
        worker.pending = [other for other in worker.pending if other != index]
        for data in reports:
            self._tell(self._config.hook.pytest_report_from_serializable(config=self._config, data=data))
        if session.shouldfail or session.shouldstop:
            self._queue.clear()
            for other in self._workers:
                other.connection.send(STOP)

    def _tell(self, report: Any) -> None:
        self._config.hook.pytest_runtest_logreport(report=report)

    def _ended(self, session: pytest.Session, worker: Worker, code: int) -> None:
        """Where a worker died, the test that it was at has failed, and another one goes on."""
        if code == 0 or session.shouldfail:
            return
        first, *rest = worker.pending or [len(session.items) - 1]
        item = session.items[first]
        at = "while it ran" if worker.pending else "without a test to run, the last one is"
        text = f"a worker ended with {code} {at} {item.nodeid}\n{worker.fault}"
        self._tell(pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call"))
        if rest:
            self._queue.appendleft(rest)
        if self._queue and not session.shouldfail:
            self._fork(session)


class Apart:
    """Stands for the next test at the end of a group: of what is set up it needs what the session has."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[pytest.Session]:
        return [self._session]


class Reports:
    """Keeps the reports of a test until they are sent."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.kept: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.kept.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def work(session: pytest.Session, connection: Connection, name: str) -> None:
    """Run groups of tests until there are none, and end this process."""
    code = 1
    try:
        for index, reports in ran(session, connection, name):
            connection.send((index, reports))
        session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
        code = 0
    except BaseException:
        with suppress(BaseException):
            connection.send((None, [traceback.format_exc()]))
            session._setupstate.teardown_exact(None)
            atexit._run_exitfuncs()
    finally:
        os._exit(code)


def ran(session: pytest.Session, connection: Connection, name: str) -> Iterator[tuple[int, list[Any]]]:
    """The tests of the groups that the pipe has, with their reports."""
    reports, config = silenced(session.config, name), session.config
    connection.send(None)
    while indices := connection.recv():
        items: list[Any] = [*(session.items[index] for index in indices), Apart(session)]
        for index, item, following in zip(indices, items, items[1:], strict=False):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield index, reports.kept
            reports.kept = []
            if connection.poll():
                return
        connection.send(None)


def silenced(config: pytest.Config, name: str) -> Reports:
    """Keep reports instead of showing them, and capture output in files of this process."""
    os.environ["PYTEST_XDIST_WORKER"] = name
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config.get_terminal_writer()._file = Path(os.devnull).open("w")  # noqa: SIM115
    config.pluginmanager.unregister(name="durations-kept")
    config.pluginmanager.register(OneReport(), "one-report")
    reports = Reports(config)
    config.pluginmanager.register(reports, "kept-reports")
    return reports
