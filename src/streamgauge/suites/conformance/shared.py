"""A value of the semantics that explains many failing tasks at once, to be declared or fixed first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.search import Search, values
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.suites.conformance.runner import ConformanceOutcome, recorded

MAX_VALUES = 3
"""Maximum number of values, each for tasks that the previous ones do not explain."""


@dataclass(frozen=True)
class SharedValue:
    """A field and its value (``borders = (o, c]``) under which ``explained`` of ``failing`` tasks are right.

    ``contradicting`` counts passed tasks that would fail under it.
    """

    part: Part
    explained: int
    failing: int
    contradicting: int


def shared_values(
    failing: Sequence[ConformanceOutcome], passed: Iterable[ConformanceOutcome]
) -> tuple[SharedValue, ...]:
    """The values that explain most failing tasks, at least two each, the best one first.

    A value under which as many ``passed`` tasks would fail explains nothing.
    """
    left = [_explaining(outcome) for outcome in failing]
    shared, others, refuted = list[SharedValue](), tuple(passed), set[Part]()
    while len(shared) < MAX_VALUES:
        counts = Counter(part for parts in left for part in parts - refuted)
        # Among equals the name decides, so that each run shows the same value.
        part, explained = max(counts.items(), key=lambda item: (item[1], item[0].name), default=(None, 0))
        if part is None or explained < 2:
            break
        contradicting = sum(_contradicts(outcome, part) for outcome in others)
        if contradicting >= explained:
            refuted.add(part)
            continue
        shared.append(SharedValue(part, explained, len(failing), contradicting))
        # What this value explains is not counted again: the next one is to explain the rest.
        left = [parts for parts in left if part not in parts]
    return tuple(shared)


def _search(outcome: ConformanceOutcome) -> Search | None:
    """The search for models of a recording; ``None`` for a failure, or if a diagnosis is not possible."""
    if outcome.run is None or outcome.run.header.failure:
        return None
    try:
        return Search(*recorded(outcome))
    except (RefusedError, OutOfOrderError):
        return None


def _explaining(outcome: ConformanceOutcome) -> frozenset[Part]:
    """The values of the semantics under which a run is right."""
    search = _search(outcome)
    if search is None:
        return frozenset()
    return frozenset(fault.part for fault in values(search.seen) if any(map(search.comes_out, search.cases((fault,)))))


def _contradicts(outcome: ConformanceOutcome, part: Part) -> bool:
    """Whether a run that passed would be wrong under a value."""
    search = _search(outcome)
    if search is None:
        return False
    matching = [fault for fault in values(search.seen) if fault.part == part]
    return any(not any(map(search.comes_out, search.cases((fault,)))) for fault in matching)
