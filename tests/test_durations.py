"""Durations by one report of a test or by three: the sums are the same, and what did not pass is told in full."""

import pytest

from tests.durations import PHASES, Durations, pytest_runtest_setup, pytest_runtest_teardown, told

SPENT = {"setup": 21.0, "call": 2.0, "teardown": 0.5}


def reports(failing: str = "") -> list[pytest.TestReport]:
    """The reports of a test whose phases took ``SPENT`` seconds, of which one may have failed."""
    return [
        pytest.TestReport(
            "one",
            ("one.py", 1, "one"),
            {},
            "failed" if phase == failing else "passed",
            None,
            phase,
            duration=SPENT[phase],
            user_properties=[("cpu", 1.5)] if phase == "teardown" else [],
        )
        for phase in PHASES
    ]


def kept(given: list[pytest.TestReport]) -> Durations:
    durations = Durations(None)
    for report in given:
        durations.pytest_runtest_logreport(report)
    return durations


def test_one_report_says_what_three_say():
    one, three = kept(told(reports())), kept(reports())
    assert len(told(reports())) == 1
    assert vars(one) == vars(three)
    assert one._seconds == {"one": 23.5}
    assert one._cpu == {"one": 1.5}


@pytest.mark.parametrize("phase", PHASES)
def test_a_test_that_does_not_pass_is_told_in_full(phase):
    assert [report.when for report in told(reports(phase))] == PHASES


def test_a_test_that_is_only_set_up_is_told_as_it_is():
    given = reports()[::2]
    assert told(given) is given


def test_what_is_shared_needs_no_reason():
    """The first 21 s set up what others use too."""
    assert "reason" not in kept(reports())._line("one", 23.5)
    assert "without a reason" in kept(reports())._line("one", 41.5)


def test_the_first_on_a_spark_session_needs_no_reason():
    """Its own part warms up the JVM for the others."""
    warming = reports()
    warming[-1].user_properties.append(("warms", True))
    assert "reason" not in kept(told(warming))._line("one", 41.5)


def test_the_phases_are_enough_to_know_the_cpu_of_a_test(request):
    """``make mutants`` runs only these, in a copy of the process."""
    pytest_runtest_setup(request.node)
    pytest_runtest_teardown(request.node)
    assert [name for name, _ in request.node.user_properties if name == "cpu"]
