"""Fitting slips: which reports of a model were answered as they are, and where it slipped, to explain every answer.

A shortest path through states (reports used, answers explained): an answer that a report gives costs 0, a slip 1.

Worked example: a model reports {a}, {b}, {c} and the answers are {a}, {c}. From (0, 0) the first report explains the
first answer: (1, 1). {b} does not explain {c}; with the slip "lost" it moves to (2, 1) at a cost of 1, and {c} ends at
(3, 2). One report was lost.
"""

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
from streamgauge.oracle.diagnosis.models import Carry, Emissions, ExplanationPlace, ModelReport, Rows, Slip, Taking
from streamgauge.oracle.judging.align import BAND, merged, whole
from streamgauge.oracle.judging.compare import overlap
from streamgauge.oracle.judging.oracle import in_columns
from streamgauge.oracle.worlds.blank_nodes import has_blanks
from streamgauge.oracle.worlds.restatement import computed_columns


class Recorded:
    """The recorded answers of a run, read by ``grain``: an answer is a whole report, or one row of it."""

    def __init__(self, run: Run, variables: tuple[str, ...], grain: Grain) -> None:
        self.answers = _in_order([in_columns(answer, variables) for answer in whole(run.answers)])
        self.grain = grain
        self.computed = computed_columns(run.header.query.form)
        self._same: dict[tuple[Rows, Rows], bool] = {}
        self._prints: dict[Rows, object] = {}
        self.bag = Counter(row for answer in self.answers for row in answer.added)

    @property
    def count(self) -> int:
        """The number of recorded answers."""
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

    def take(self, report: ModelReport, at: int) -> int | None:
        """The position after the answers that give exactly this report from position ``at`` on.

        ``None`` if they do not.
        """
        after = at + 1 if self.grain is Grain.REPORT else self._row_by_row(report, at)
        if after is None or after > self.count or (self.grain is Grain.REPORT and not self.named(report, at)):
            return None
        rows = self.rows(at) if after == at + 1 else tuple(row for k in range(at, after) for row in self.rows(k))
        return after if self.same(report.rows, rows) else None

    def _row_by_row(self, report: ModelReport, at: int) -> int | None:
        """The position after as many rows as the report has, in answers that name its instant or none.

        Else ``None``.
        """
        left, after = len(report.rows), at
        # An empty report is one answer without rows.
        if left == 0:
            return at + 1
        while left > 0 and after < self.count and self.named(report, after) and self.rows(after):
            left -= len(self.rows(after))
            after += 1
        return after if left == 0 else None

    def named(self, report: ModelReport, at: int) -> bool:
        """Whether the answer at a position names the report's instant, or no instant."""
        return at < self.count and self.answers[at].instant in (None, report.instant)

    def same(self, expected: Rows, actual: Rows) -> bool:
        """Whether two bags are equal, with computed numbers compared within tolerance."""
        # Lengths first: most comparisons of a search are of bags that differ in size, and end here.
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
        """A hashable value that is equal for equal bags: without computed numbers and blank nodes, which may differ."""
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
        # Shares the caches of comparisons, which do not depend on the grain.
        other = object.__new__(Recorded)
        other.__dict__.update(self.__dict__)
        other.grain = grain
        return other


def _in_order(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """The answers by instant if all name one, as the oracle aligns them; otherwise in the order of arrival."""
    if all(answer.instant is not None for answer in answers):
        return tuple(sorted(answers, key=lambda answer: answer.instant or 0))
    return tuple(answers)


def merged_answers(
    reports: Sequence[ModelReport], recorded: Recorded, variables: tuple[str, ...]
) -> tuple[Answer, ...]:
    """The recorded answers merged into one per report."""
    expected = [ExpectedReport(report.due, variables, report.rows, 0) for report in reports]
    return merged(recorded.answers, expected, recorded.grain, recorded.computed)


def distance(
    reports: Sequence[ModelReport], recorded: Recorded, variables: tuple[str, ...], open_end: int | None
) -> int:
    """The edit distance: the fewest reports to change, omit or add.

    Trailing ones after ``open_end`` (ms) may be missing.
    """
    answers = merged_answers(reports, recorded, variables)
    far = len(reports) + len(answers)
    # The band bounds the table to a stripe along its diagonal; long runs would need a quadratic one.
    band = BAND + abs(len(reports) - len(answers))
    row = {j: j for j in range(min(len(answers), band) + 1)}
    best = far
    for i in range(len(reports) + 1):
        if i:
            row = _next(reports[i - 1], i, row, answers, recorded, band)
        if all(open_end is not None and report.instant > open_end for report in reports[i:]) or i == len(reports):
            best = min(best, row.get(len(answers), far))
    return best


def _next(
    report: ModelReport, i: int, above: dict[int, int], answers: Sequence[Answer], recorded: Recorded, band: int
) -> dict[int, int]:
    """The next row of the table of the edit distance, within the band."""
    far = i + len(answers)
    row: dict[int, int] = {}
    for j in range(max(0, i - band), min(len(answers), i + band) + 1):
        # As in Levenshtein's table: from above a report without an answer, from the left an answer without a report,
        # and along the diagonal a pair, which costs 1 unless they are equal.
        best = min(above.get(j, far), row.get(j - 1, far)) + 1
        if j:
            best = min(best, above.get(j - 1, far) + (not _equal(report, answers[j - 1], recorded)))
        row[j] = best
    return row


def _equal(report: ModelReport, answer: Answer, recorded: Recorded) -> bool:
    return answer.instant in (None, report.instant) and recorded.same(report.rows, answer.added)


State: TypeAlias = tuple[int, int, Carry]
"""(reports used, answers explained, state carried from report to report by a sway)."""


@dataclass(frozen=True, slots=True)
class ExplanationFit:
    """An explanation: the model's reports, the places of each slip, the number of sways, the path of states.

    ``choices`` is the number of sways that were possible over all reports.
    """

    reports: Sequence[ModelReport]
    slipped: dict[Slip, list[ExplanationPlace]]
    swayed: int
    path: tuple[State, ...]
    choices: int = 0


@dataclass(frozen=True, slots=True)
class FittingTask:
    """The input of ``fit``: the model's reports, the recorded answers, and the slips that may happen.

    Reports later than ``open_end`` (ms) may be missing at the end, because the recording does not show the horizon.
    """

    reports: Sequence[ModelReport]
    recorded: Taking
    slips: Sequence[Slip]
    open_end: int | None
    emissions: Emissions | None = None
    start: Carry = None
    choices: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """How a state is reached: the cost so far, the state before, and the slip with its place, if it is by one."""

    cost: int
    back: State | None
    slipped: tuple[Slip, ExplanationPlace] | None


_Onward: TypeAlias = tuple[State, int, tuple[Slip, ExplanationPlace] | None]


def fit(task: FittingTask) -> ExplanationFit | None:
    """The explanation with the fewest slips.

    ``None`` if there is none, or only one with too many slips (``_claimed``).
    """
    count = len(task.reports)
    # ``_claimed`` refuses explanations with more slips than this; costlier states need not be followed.
    bound = count // 2 + sum(count + task.recorded.count for slip in task.slips if not slip.half)
    layers: list[dict[tuple[int, Carry], _Step]] = [{} for _ in range(count + 1)]
    layers[0][0, task.start] = _Step(0, None, None)
    for i in range(count + 1):
        _advance(task, i, layers, bound)
    ends = [
        (step.cost, (i, j, carry))
        for i, layer in enumerate(layers)
        for (j, carry), step in layer.items()
        if j == task.recorded.count and _may_end(task, i)
    ]
    if not ends:
        return None
    # Of equally cheap ends the one that uses more reports.
    _, state = min(ends, key=lambda end: (end[0], -end[1][0]))
    return _claimed(task, _walk(state, layers), layers[state[0]][state[1], state[2]].cost)


def _may_end(task: FittingTask, i: int) -> bool:
    if i == len(task.reports):
        return True
    end = task.open_end
    return end is not None and all(report.instant > end for report in task.reports[i:])


def _advance(task: FittingTask, i: int, layers: list[dict[tuple[int, Carry], _Step]], bound: int) -> None:
    """Follow every state of a layer. A slip for surplus answers stays in the layer, so new states are queued behind."""
    # In the order of answers explained: a slip within the layer only leads to later ones.
    pending = sorted(layers[i], key=lambda key: key[0])
    for j, carry in pending:
        here = layers[i][j, carry]
        for state, cost, slipped in _onward(task, i, j, carry):
            ahead, after, carried = state
            known = layers[ahead].get((after, carried))
            if here.cost + cost > bound or (known is not None and known.cost <= here.cost + cost):
                continue
            layers[ahead][after, carried] = _Step(here.cost + cost, (i, j, carry), slipped)
            if ahead == i and known is None:
                pending.append((after, carried))


def _onward(task: FittingTask, i: int, j: int, carry: Carry) -> Iterator[_Onward]:
    if i == len(task.reports):
        yield from _after_the_end(task, j)
        return
    options = task.emissions(i, carry) if task.emissions else ((0, carry, task.reports[i]),)
    for cost, carried, report in options:
        if report is None:
            yield (i + 1, j, carried), cost, None
            continue
        after = task.recorded.take(report, j)
        if after is not None:
            yield (i + 1, after, carried), cost, None
        place = ExplanationPlace(i, j, report, task.reports, task.recorded)
        for slip in task.slips:
            for di, dj in slip.moves(place):
                if i + di <= len(task.reports) and j + dj <= task.recorded.count:
                    # A slip that uses no report leaves the carried state and its cost to the report itself.
                    yield (i + di, j + dj, carried if di else carry), cost + 1 if di else 1, (slip, place)


def _after_the_end(task: FittingTask, j: int) -> Iterator[_Onward]:
    """Surplus answers after the last report, where what was carried has no more effect."""
    if not task.reports or j >= task.recorded.count:
        return
    end = len(task.reports)
    place = ExplanationPlace(end, j, task.reports[-1], task.reports, task.recorded)
    for slip in task.slips:
        for di, dj in slip.moves(place):
            # Only slips that use no report, as none is left.
            if di == 0 and j + dj <= task.recorded.count:
                yield (end, j + dj, None), 1, (slip, place)


def _walk(state: State, layers: list[dict[tuple[int, Carry], _Step]]) -> list[tuple[State, _Step]]:
    steps: list[tuple[State, _Step]] = []
    at: State | None = state
    while at is not None:
        step = layers[at[0]][at[1], at[2]]
        steps.append((at, step))
        at = step.back
    return steps[::-1]


def _claimed(task: FittingTask, path: list[tuple[State, _Step]], cost: int) -> ExplanationFit | None:
    """The fit, or ``None`` if a slip happens in half of the reports or more: then it is a rule, not a slip."""
    slipped: dict[Slip, list[ExplanationPlace]] = {}
    for (i, j, _), step in path:
        if step.slipped is not None:
            slip, place = step.slipped
            slipped.setdefault(slip, []).append(replace(place, move=(i - place.i, j - place.j)))
    # Slips cost 1 each, so the rest of the cost is that of sways.
    swayed = cost - sum(map(len, slipped.values()))
    reports = max(path[-1][0][0], 1)
    often = any(slip.half and 2 * len(places) >= reports for slip, places in slipped.items())
    if often or 2 * swayed >= reports:
        return None
    return ExplanationFit(task.reports, slipped, swayed, tuple(state for state, _ in path), task.choices)
