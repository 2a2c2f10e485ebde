"""The spark engine through the conformance suite: right or refused by name, a part here, all of it by `make prove`."""

from dataclasses import replace

import pytest

from streamgauge.suites.conformance import runner
from streamgauge.suites.conformance.cases import asked, load
from streamgauge.suites.conformance.runner import TaskResult, certify, engine

PART = 500
"""Every so manieth task that is not refused before it runs: two, as each starts the engine with a JVM of its own."""

PARTS = 16
"""In so many tests the whole suite is proven: each a few minutes, so that a proof says how far it is and can go on."""


def wrong(every: int, first: int = 0) -> list[str]:
    """What is wrong with every so manieth task, from the first on, that the engine does not refuse by itself."""
    subject = engine("spark")
    taken = [item for item in asked(load(), subject.profiles, subject.scale) if not refused(subject, item)]
    outcomes = certify(subject, taken[first::every], 1, lambda: pytest.fail("the definition judges"))
    return [f"{outcome.name}: {outcome.sentence}" for outcome in outcomes if outcome.kind is not TaskResult.PASSED]


def refused(subject, item) -> str | None:
    return subject.refuse(item.case.query, item.semantics)


@pytest.mark.server
@pytest.mark.heavy("a session of its own, and a start of the engine for each case")
def test_a_part_of_the_suite_is_right(monkeypatch):
    monkeypatch.setattr(runner, "LIMITS", replace(runner.LIMITS, seconds=900.0))  # beside much other work
    assert wrong(PART) == []


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_whole_suite_is_right(part):
    assert wrong(PARTS, part) == []


def test_what_is_refused_is_named():
    subject = engine("spark")
    sentences = {refused(subject, item) for item in asked(load(), subject.profiles, subject.scale)} - {None}
    words = ("content changes", "due = last", "no clock of its own", "count-based window", "content = bag")
    words = (*words, "reports at expirations", "answers per message (content = updates)")
    assert {word for word in words if any(word in sentence for sentence in sentences)} == set(words)
    assert all(any(word in sentence for word in words) for sentence in sentences)
