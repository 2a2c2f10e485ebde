"""What the oracle's diagnosis says of a deviating run, in words that do not depend on the case."""

import re
from collections.abc import Iterable, Sequence, Set

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.oracle.diagnosis.search import Search
from streamgauge.oracle.judging.arrivals import by_arrival
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.suites.conformance.running import Kind, Outcome

NONE_FITS = "no semantics, no named fault and no two of them give these answers"

_AND = " and "
_COUNTED = re.compile(r"\b[\d,]+ (report|border)s?\b")
_NTH = re.compile(r"\b(?:first|last|\d+(?:st|nd|rd|th))(?= element lost)")
_NUMBER = re.compile(r"-?\b\d[\d,.]*")


def findings(outcome: Outcome) -> tuple[str, ...]:
    """Every explanation of a wrong outcome: how the engine failed, the models that fit, or that none does."""
    assert outcome.run is not None
    if outcome.run.header.failure:
        return (_failed(outcome.run.header.failure),)
    run, stream = _diagnosed(outcome)
    try:
        diagnosis = diagnose(run, stream)
    except (RefusedError, OutOfOrderError) as error:
        return (f"not diagnosed: {error}",)
    if not diagnosis.exact:
        return (NONE_FITS,)
    return tuple(dict.fromkeys(map(_words, diagnosis.models)))


def contradicted(outcomes: Iterable[Outcome], candidates: Set[str]) -> frozenset[str]:
    """The findings that a task which came out right speaks against: under one of its parts its answers would differ.

    What happens only now and then (a report lost, a border that jitters) is never contradicted.
    """
    left = set(candidates)
    for outcome in outcomes:
        if outcome.kind is Kind.PASSED:
            denied = _denied(*_diagnosed(outcome), left)
            left -= {finding for finding in left if any(_has(finding, part) for part in denied)}
    return frozenset(candidates) - left


def _has(finding: str, part: str) -> bool:
    return finding == part or finding.startswith(part + _AND) or finding.endswith(_AND + part)


def _denied(run: Run, stream: Sequence[StreamElement], findings: Set[str]) -> set[str]:
    """The parts of these findings under which, in whatever way they happen, this run's answers would be others."""
    try:
        search = Search(run, stream)
    except (RefusedError, OutOfOrderError):
        return set()
    denied: dict[str, bool] = {}
    for fault in (*search.faults, *search.fine):
        part = _general(fault.part.name)
        if denied.get(part, True) and any(_has(finding, part) for finding in findings):
            denied[part] = not any(map(search.comes_out, search.cases((fault,))))
    return {part for part, is_so in denied.items() if is_so}


def _diagnosed(outcome: Outcome) -> tuple[Run, tuple[StreamElement, ...]]:
    """The run and its stream as the diagnosis takes them: at arrival times where those count."""
    run, stream = outcome.run, outcome.asked.case.stream
    assert run is not None
    if outcome.asked.semantics.clock is Clock.APPLICATION:
        return run, stream
    return by_arrival(run, stream)


def _words(model: Sequence[Part]) -> str:
    return _AND.join(sorted(_general(part.name) for part in model))


def _general(name: str) -> str:
    """A part's name without what belongs to the one run: expressions, which element, how often."""
    kind, colon, _ = name.partition(": ")
    return kind if colon else _NTH.sub("one", _COUNTED.sub(r"\1s", name))


def _failed(failure: str) -> str:
    """The last line that a failed engine left, its numbers taken out."""
    last = failure.strip().splitlines()[-1].strip()
    return "fails: " + _NUMBER.sub("n", last)[:160]
