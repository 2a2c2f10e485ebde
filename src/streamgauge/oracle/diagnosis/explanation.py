"""Fitting slips: which reports a faulty engine said right, and where it slipped, so that every answer is explained."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Grain
from streamgauge.model.terms import Term, blank_nodes
from streamgauge.oracle.diagnosis.models import Carry, Emissions, ExplanationPlace, Rows, Said, Slip, Taking
from streamgauge.oracle.judging.align import BAND, merged, whole
from streamgauge.oracle.judging.compare import overlap
from streamgauge.oracle.judging.oracle import in_columns
from streamgauge.oracle.worlds.blank_nodes import has_blanks
from streamgauge.oracle.worlds.restatement import computed_columns


class Recorded:
    """Recorded answers; ``grain`` says whether a report is one answer or a row each."""

    def __init__(self, run: Run, variables: tuple[str, ...], grain: Grain) -> None:
        self.answers = _in_order([in_columns(answer, variables) for answer in whole(run.answers)])
        self.grain = grain
        self.computed = computed_columns(run.header.query.form)
        self._same: dict[tuple[Rows, Rows], bool] = {}
        self._prints: dict[Rows, object] = {}
        self.bag = Counter(row for answer in self.answers for row in answer.added)

    @property
    def count(self) -> int:
        """How many answers were recorded."""
        return len(self.answers)

    @property
    def by_row(self) -> bool:
        """Whether a report is one answer per row."""
        return self.grain is Grain.ROW

    def rows(self, at: int) -> Rows:
        """The rows of an answer."""
        return self.answers[at].added

    def instant(self, at: int) -> int | None:
        """The instant (ms) that an answer names."""
        return self.answers[at].instant

    def take(self, saying: Said, at: int) -> int | None:
        """The position after the answers that say exactly this report from a position on, ``None`` if they do not."""
        after = at + 1 if self.grain is Grain.REPORT else self._row_by_row(saying, at)
        if after is None or after > self.count or (self.grain is Grain.REPORT and not self.named(saying, at)):
            return None
        rows = self.rows(at) if after == at + 1 else tuple(row for k in range(at, after) for row in self.rows(k))
        return after if self.same(saying.rows, rows) else None

    def _row_by_row(self, saying: Said, at: int) -> int | None:
        """The place behind as many rows as the report has, from answers that name its instant or none."""
        left, after = len(saying.rows), at
        if left == 0:
            return at + 1
        while left > 0 and after < self.count and self.named(saying, after) and self.rows(after):
            left -= len(self.rows(after))
            after += 1
        return after if left == 0 else None

    def named(self, saying: Said, at: int) -> bool:
        """Whether an answer names the report's instant, or none."""
        return at < self.count and self.answers[at].instant in (None, saying.instant)

    def same(self, expected: Rows, actual: Rows) -> bool:
        """Whether two bags are equal, computed numbers within tolerance."""
        if len(expected) != len(actual):
            return False
        if expected == actual:
            return True
        key = (expected, actual)
        if key not in self._same:
            self._same[key] = self._equal(expected, actual)
        return self._same[key]

    @cached_property
    def fingerprints(self) -> Counter[object]:
        """The fingerprints of all answers."""
        return Counter(self.fingerprint(answer.added) for answer in self.answers)

    def fingerprint(self, rows: Rows) -> object:
        """A value that is the same for equal bags: computed numbers and blank nodes are left out."""
        if rows not in self._prints:
            bag = Counter(tuple(self._plain(at, term) for at, term in enumerate(row)) for row in rows)
            self._prints[rows] = frozenset(bag.items())
        return self._prints[rows]

    def _plain(self, at: int, term: Term | None) -> Term | None:
        return None if term is None or at in self.computed or blank_nodes(term) else term

    def _equal(self, expected: Rows, actual: Rows) -> bool:
        if Counter(expected) == Counter(actual):
            return True
        if not self.computed and not has_blanks(actual):
            return False
        return overlap(expected, actual, self.computed).common == len(actual)

    def under(self, grain: Grain) -> "Recorded":
        """The same answers read with another grain."""
        if grain is self.grain:
            return self
        other = object.__new__(Recorded)
        other.__dict__.update(self.__dict__)
        other.grain = grain
        return other


def _in_order(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Answers that all name their instant by it, as the oracle takes them; others as they came."""
    if all(answer.instant is not None for answer in answers):
        return tuple(sorted(answers, key=lambda answer: answer.instant or 0))
    return tuple(answers)


def reports(sayings: Sequence[Said], recorded: Recorded, variables: tuple[str, ...]) -> tuple[Answer, ...]:
    """The recorded answers, one per report."""
    if recorded.grain is Grain.REPORT:
        return recorded.answers
    expected = [ExpectedReport(saying.due, variables, saying.rows, 0) for saying in sayings]
    return merged(recorded.answers, expected, recorded.grain, recorded.computed)


def distance(sayings: Sequence[Said], recorded: Recorded, variables: tuple[str, ...], open_end: int | None) -> int:
    """The fewest reports to change, leave out or add; those after ``open_end`` (ms) may be missing at the end."""
    answers = reports(sayings, recorded, variables)
    far = len(sayings) + len(answers)
    band = BAND + abs(len(sayings) - len(answers))
    row = {j: j for j in range(min(len(answers), band) + 1)}
    best = far
    for i in range(len(sayings) + 1):
        if i:
            row = _next(sayings[i - 1], i, row, answers, recorded, band)
        if all(open_end is not None and saying.instant > open_end for saying in sayings[i:]) or i == len(sayings):
            best = min(best, row.get(len(answers), far))
    return best


def _next(
    saying: Said, i: int, above: dict[int, int], answers: Sequence[Answer], recorded: Recorded, band: int
) -> dict[int, int]:
    """The next row of the edit distance, from the one above it."""
    far = i + len(answers)
    row: dict[int, int] = {}
    for j in range(max(0, i - band), min(len(answers), i + band) + 1):
        best = min(above.get(j, far), row.get(j - 1, far)) + 1
        if j:
            best = min(best, above.get(j - 1, far) + (not _equal(saying, answers[j - 1], recorded)))
        row[j] = best
    return row


def _equal(saying: Said, answer: Answer, recorded: Recorded) -> bool:
    return answer.instant in (None, saying.instant) and recorded.same(saying.rows, answer.added)


State: TypeAlias = tuple[int, int, Carry]
"""(reports said, answers explained, what an emission carried over)."""


@dataclass(frozen=True, slots=True)
class ExplanationFit:
    """An explanation: the reports told, the places of each slip, how often something swayed, the states passed.

    ``choices`` counts the ways in which something might have swayed, over all reports.
    """

    told: Sequence[Said]
    slipped: dict[Slip, list[ExplanationPlace]]
    swayed: int
    path: tuple[State, ...]
    choices: int = 0


@dataclass(frozen=True, slots=True)
class FittingTask:
    """The task of an explanation: reports told, answers recorded, and which slips may happen.

    Reports later than ``open_end`` (ms) may be missing at the end: the recording does not say how far time came.
    """

    told: Sequence[Said]
    recorded: Taking
    slips: Sequence[Slip] = ()
    open_end: int | None = None
    emissions: Emissions | None = None
    start: Carry = None
    choices: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """How a state was reached: the cost so far, from where, by which slip at which place."""

    cost: int
    back: State | None
    slip: Slip | None = None
    place: ExplanationPlace | None = None


_Onward: TypeAlias = tuple[State, int, Slip | None, ExplanationPlace | None]


def fit(task: FittingTask) -> ExplanationFit | None:
    """The explanation with fewest slips; ``None`` when the answers do not come out, or only with too many slips."""
    reports = len(task.told)
    bound = reports // 2 + sum(reports + task.recorded.count for slip in task.slips if not slip.half)
    layers: list[dict[tuple[int, Carry], _Step]] = [{} for _ in range(reports + 1)]
    layers[0][0, task.start] = _Step(0, None)
    for i in range(reports + 1):
        _advance(task, i, layers, bound)
    ends = [
        (step.cost, (i, j, carry))
        for i, layer in enumerate(layers)
        for (j, carry), step in layer.items()
        if j == task.recorded.count and _may_end(task, i)
    ]
    if not ends:
        return None
    _, state = min(ends, key=lambda end: (end[0], -end[1][0]))
    return _claimed(task, _walk(state, layers), layers[state[0]][state[1], state[2]].cost)


def _may_end(task: FittingTask, i: int) -> bool:
    if i == len(task.told):
        return True
    end = task.open_end
    return end is not None and all(saying.instant > end for saying in task.told[i:])


def _advance(task: FittingTask, i: int, layers: list[dict[tuple[int, Carry], _Step]], bound: int) -> None:
    """Follow every state of a layer onward; surplus answers stay in the layer, further along it."""
    pending = sorted(layers[i], key=lambda key: key[0])
    for j, carry in pending:
        here = layers[i][j, carry]
        for state, cost, slip, place in _onward(task, i, j, carry):
            ahead, after, carried = state
            known = layers[ahead].get((after, carried))
            if here.cost + cost > bound or (known is not None and known.cost <= here.cost + cost):
                continue
            layers[ahead][after, carried] = _Step(here.cost + cost, (i, j, carry), slip, place)
            if ahead == i and known is None:
                pending.append((after, carried))


def _onward(task: FittingTask, i: int, j: int, carry: Carry) -> Iterator[_Onward]:
    if i == len(task.told):
        yield from _after_the_end(task, j, carry)
        return
    options = task.emissions(i, carry) if task.emissions else ((0, carry, task.told[i]),)
    for cost, carried, saying in options:
        if saying is None:
            yield (i + 1, j, carried), cost, None, None
            continue
        after = task.recorded.take(saying, j)
        if after is not None:
            yield (i + 1, after, carried), cost, None, None
        place = ExplanationPlace(i, j, saying, task.told, task.recorded)
        for slip in task.slips:
            for di, dj in slip.moves(place):
                if i + di <= len(task.told) and j + dj <= task.recorded.count:
                    yield (i + di, j + dj, carried if di else carry), cost + 1 if di else 1, slip, place


def _after_the_end(task: FittingTask, j: int, carry: Carry) -> Iterator[_Onward]:
    """Surplus answers after the last report."""
    if not task.told or j >= task.recorded.count:
        return
    end = len(task.told)
    place = ExplanationPlace(end, j, task.told[-1], task.told, task.recorded)
    for slip in task.slips:
        for di, dj in slip.moves(place):
            if di == 0 and j + dj <= task.recorded.count:
                yield (end, j + dj, carry), 1, slip, place


def _walk(state: State, layers: list[dict[tuple[int, Carry], _Step]]) -> list[tuple[State, _Step]]:
    steps: list[tuple[State, _Step]] = []
    at: State | None = state
    while at is not None:
        step = layers[at[0]][at[1], at[2]]
        steps.append((at, step))
        at = step.back
    return steps[::-1]


def _claimed(task: FittingTask, path: list[tuple[State, _Step]], cost: int) -> ExplanationFit | None:
    """The fit, unless something that happens now and then would have happened in half of the reports or more."""
    slipped: dict[Slip, list[ExplanationPlace]] = {}
    for (i, j, _), step in path:
        if step.slip is not None and step.place is not None:
            place = replace(step.place, move=(i - step.place.i, j - step.place.j))
            slipped.setdefault(step.slip, []).append(place)
    swayed = cost - sum(map(len, slipped.values()))
    reports = max(path[-1][0][0], 1)
    often = any(slip.half and 2 * len(places) >= reports for slip, places in slipped.items())
    if often or 2 * swayed >= reports:
        return None
    return ExplanationFit(task.told, slipped, swayed, tuple(state for state, _ in path), task.choices)
