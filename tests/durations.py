"""A pytest plugin: how long each test took is kept, and the slowest are told with the reason they give.

``--durations-kept FILE`` writes a line of JSON per test, slowest first: ``test``, ``seconds`` (set-up and tear-down
with it), ``cpu`` (seconds that its process and ended children computed), ``outcome``. A test over ``LONG`` seconds
says why beside it: ``@pytest.mark.heavy("the reason")``; one that does not is told at the end. What it shares with
others (a Spark session, a broker) is set up by whichever test is the first, and needs no reason there; nor does the
first test on a Spark session, whose JVM loads and compiles on the way what all others use. The clock of a loaded
machine fails no test.

A worker of pytest-xdist sends one report of a test that passes instead of three, with the times of the other two:
thirteen thousand tests are mostly small, and a report costs as much as many of them.
"""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

LONG: Final = 20.0
"""Seconds beyond which a test gives a reason."""

SHOWN: Final = 10

PHASES: Final = ["setup", "call", "teardown"]
"""Those of a test that is run; with `--setup-only` there is no call."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-kept", type=Path, metavar="FILE", help="keep how long each test took")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config.getoption("--durations-kept")), "durations-kept")
    elif not getattr(config.option, "xmlpath", None):  # JUnit's file needs a report of each phase
        config.pluginmanager.register(OneReport(), "one-report")


COMPUTED: Final = pytest.StashKey[float]()
"""CPU seconds of the process when a test began."""


def computed() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The CPU time goes along with the test's report, also from another process."""
    item.user_properties.append(("cpu", round(computed() - item.stash[COMPUTED], 2)))


WARM: Final = pytest.StashKey[bool]()
"""Whether a test of this process has used its Spark session."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A reason goes along with the test's report, also from another process."""
    item.stash[COMPUTED] = computed()
    if "spark" in getattr(item, "fixturenames", ()) and not item.config.stash.get(WARM, False):
        item.config.stash[WARM] = True
        item.user_properties.append(("warms", True))
    heavy = item.get_closest_marker("heavy")
    if heavy is not None:
        item.user_properties.append(("heavy", heavy.args[0] if heavy.args else ""))


class OneReport:
    """Runs the phases of a test as pytest does, and tells of a test that passes once."""

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in told(runtestprotocol(item, log=False, nextitem=nextitem)):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def told(reports: list[pytest.TestReport]) -> list[pytest.TestReport]:
    """The reports of a test; where all phases passed the one of the call, with the seconds of the others."""
    if [report.when for report in reports] != PHASES or any(report.outcome != "passed" for report in reports):
        return reports
    before, call, after = reports
    call.user_properties = [*after.user_properties, ("setup", before.duration), ("teardown", after.duration)]
    return [call]


class Durations:
    """Adds up the phases of each test."""

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._seconds: dict[str, float] = defaultdict(float)
        self._set_up: dict[str, float] = defaultdict(float)
        self._outcomes: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._warming: set[str] = set()
        self._computed: dict[str, float] = {}
        self._cpu: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phases = {str(report.when): report.duration}
        phases |= {name: float(took) for name, took in report.user_properties if name in ("setup", "teardown")}
        self._seconds[report.nodeid] += sum(phases.values())
        self._set_up[report.nodeid] += phases.get("setup", 0.0)
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome
        self._reasons |= [(report.nodeid, str(said)) for name, said in report.user_properties if name == "heavy"]
        self._warming |= {report.nodeid for name, _ in report.user_properties if name == "warms"}
        self._computed |= [(report.nodeid, float(took)) for name, took in report.user_properties if name == "computed"]
        self._cpu |= [(report.nodeid, float(took)) for name, took in report.user_properties if name == "cpu"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slowest = sorted(self._seconds.items(), key=lambda entry: -entry[1])
        if self._kept is not None:
            self._write(self._kept, slowest)
        if len(slowest) > SHOWN:
            terminalreporter.section("slowest tests")
            for test, seconds in slowest[:SHOWN]:
                terminalreporter.line(self._line(test, seconds))
        for test, seconds in self._computed.items():
            terminalreporter.line(f"{seconds:6.1f} s of CPU, too much for a quick test: mark {test} `slow`")

    def _line(self, test: str, seconds: float) -> str:
        reason = self._reasons.get(test)
        long = test not in self._warming and seconds - self._set_up[test] > LONG
        missing = "over 20 s without a reason: mark it `heavy` and say why" if long else ""
        return f"{seconds:6.1f} s  {test.partition('@')[0]}{f'  ({reason or missing})' if reason or missing else ''}"

    def _write(self, file: Path, slowest: list[tuple[str, float]]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (
            {
                "test": test,
                "seconds": round(seconds, 3),
                "cpu": self._cpu.get(test),
                "outcome": self._outcomes.get(test),
            }
            for test, seconds in slowest
        )
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
