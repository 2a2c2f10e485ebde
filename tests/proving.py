"""A plugin for `make prove`: what has passed is written down as it passes, and is not run again from there."""

from collections.abc import Sequence
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proven", type=Path, help="a file of tests that have passed: they are left out, others added")


def pytest_configure(config: pytest.Config) -> None:
    if (file := config.getoption("--proven")) is not None:
        config.pluginmanager.register(Proven(file), "proven")


class Proven:
    """The tests that have passed, by node id, one a line; a test that a kill cut short is not among them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._passed = set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        proven = [item for item in items if item.nodeid in self._passed]
        if proven:
            items[:] = [item for item in items if item.nodeid not in self._passed]
            config.hook.pytest_deselected(items=proven)

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> str:
        return f"{len(items)} to prove; what has passed is in {self._file}: remove it to begin again"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as passed:
                passed.write(f"{report.nodeid}\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session):
        """That nothing is left to prove is not a failure."""
        result = yield
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._passed:
            session.exitstatus = pytest.ExitCode.OK
        return result
