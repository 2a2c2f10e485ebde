"""A pytest plugin (entry point ``pytest11``): fixtures for streams, sessions and servers, and conformance tests.

Fixtures import what they use, so that other test runs only pay for this file.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from streamgauge.suites.conformance.cases import ConformanceTask
    from streamgauge.suites.conformance.runner import Subject
    from streamgauge.testing.servers import ServedBroker
    from streamgauge.testing.sessions import RecordedSession
    from streamgauge.testing.streams import StreamBuilder
    from streamgauge.testing.tasks import ConformanceSession

_TASK: Final = "streamgauge_task"
_NOBODY: Final = "name an engine: --streamgauge-engine NAME, or --streamgauge-program COMMAND"
_SELECTION: "Final[pytest.StashKey[tuple[Subject, tuple[ConformanceTask, ...]]]]" = pytest.StashKey()
OPTIONS: Final = (
    ("engine", "NAME", "the engine to test with the conformance suite"),
    ("program", "COMMAND", "a program on the pipe instead of an engine: 'node mine.js'"),
    ("deviations", "FILE", "the list of deviations, which are expected failures (default: the engine's own)"),
    ("case", "TEXT", "only cases with this text in their name, or of this theme"),
    ("semantics", "NAME", "only under this profile, or `own` for the cases' own"),
)
"""Options of the command line: (name without ``--streamgauge-``, value, help)."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of conformance tests."""
    group = parser.getgroup("streamgauge", "conformance of engines for continuous queries (streamgauge)")
    for name, metavar, about in OPTIONS:
        group.addoption(f"--streamgauge-{name}", metavar=metavar, help=about)


def pytest_configure(config: pytest.Config) -> None:
    """Find the engine and tasks of the command line before collection; UsageError."""
    if config.getoption("--streamgauge-engine") is None and config.getoption("--streamgauge-program") is None:
        return
    from streamgauge.testing.tasks import subject_of, tasks_of

    subject = subject_of(config)
    config.stash[_SELECTION] = (subject, tasks_of(config, subject))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize ``streamgauge_task`` with the tasks of the command line's engine."""
    if _TASK not in metafunc.fixturenames:
        return
    if (selected := metafunc.config.stash.get(_SELECTION, None)) is None:
        # Without any parameter pytest would take the argument for a fixture that does not exist.
        metafunc.parametrize(_TASK, [pytest.param(None, marks=pytest.mark.skip(reason=_NOBODY), id="no engine")])
        return
    metafunc.parametrize(_TASK, selected[1], ids=[task.name for task in selected[1]])


@pytest.fixture(scope="session")
def streamgauge_conformance(request: pytest.FixtureRequest) -> "Iterator[ConformanceSession]":
    """A session of the engine or program of the command line."""
    from streamgauge.testing.tasks import conformance_session

    if (selected := request.config.stash.get(_SELECTION, None)) is None:
        pytest.skip(_NOBODY)
    with conformance_session(selected[0]) as session:
        yield session


@pytest.fixture(scope="session")
def streamgauge_every_task(streamgauge_conformance: "ConformanceSession") -> "tuple[ConformanceTask, ...]":
    """All conformance tasks of the engine, regardless of the command line's selection."""
    from streamgauge.suites.conformance.cases import asked, load

    subject = streamgauge_conformance.subject
    return tuple(asked(load(), subject.profiles, subject.scale))


@pytest.fixture
def streamgauge_stream() -> "type[StreamBuilder]":
    """The builder of streams: ``streamgauge_stream("urn:in", {"": "urn:"}).at("1s", ":a :p 1 .")``."""
    from streamgauge.testing.streams import StreamBuilder

    return StreamBuilder


@pytest.fixture
def streamgauge_session() -> "Iterator[Callable[..., RecordedSession]]":
    """Starts sessions of engines, ``streamgauge_session(query, engine="live")``, closed after the test."""
    from streamgauge.testing.sessions import RecordedSession

    with ExitStack() as stack:

        def begin(query: Any, **options: Any) -> "RecordedSession":
            return stack.enter_context(RecordedSession(query, **options))

        yield begin


@pytest.fixture
def streamgauge_broker() -> "Iterator[ServedBroker]":
    """An empty broker with its ``url`` and a ``client`` that publishes and subscribes, stopped after the test."""
    from streamgauge.testing.servers import served_broker

    with served_broker() as broker:
        yield broker


@pytest.fixture
def streamgauge_fragments() -> Iterator[Callable[..., str]]:
    """Starts fragments servers; ``streamgauge_fragments({"trains": trig})`` returns the address."""
    from streamgauge.testing.servers import served_fragments

    with ExitStack() as stack:

        def serve(datasets: Any, clock: Callable[[], int] | None = None) -> str:
            return stack.enter_context(served_fragments(datasets, clock))

        yield serve
