"""Answers as whole reports: changes added up, answers of a row each merged by instant, else greedily in order."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import Grain
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.judging.align import BAND
from streamgauge.oracle.judging.compare import Alike, alike

AHEAD = 32
"""How many answers are looked at before one leads to a later report."""

Numbered: TypeAlias = tuple[int, ExpectedReport]
"""An expected report and its place."""

Key = tuple[int, tuple[int, int] | None]


def whole(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Answers that send changes as what holds after each; other answers as they are.

    A row that is removed but does not hold is owed: its next addition adds nothing.
    """
    if not any(answer.removed for answer in answers):
        return tuple(answers)
    held: Counter[Row] = Counter()
    found: list[Answer] = []
    for answer in answers:
        held.update(answer.added)
        held.subtract(answer.removed)
        found.append(replace(answer, added=tuple(held.elements()), removed=()))
    return tuple(found)


def merged(
    answers: Sequence[Answer],
    expected: Sequence[ExpectedReport],
    grain: Grain,
    computed: frozenset[int] = frozenset(),
    equal: Callable[[int], Alike] | None = None,
) -> tuple[Answer, ...]:
    """Row-grained answers as one answer per report, report-grained ones as they are.

    ``computed`` are the columns whose numbers are compared by value; ``equal`` says of an expected report, by its
    place, which rows are equal to its own but for these.
    """
    if grain is Grain.REPORT:
        return tuple(answers)
    if any(answer.instant is None for answer in answers):
        return _greedily(answers, list(enumerate(expected)), computed, equal)
    due: dict[int, list[Numbered]] = defaultdict(list)
    for place, report in enumerate(expected):
        due[report.due.instant].append((place, report))
    found: list[Answer] = []
    for (instant, scope), group in _by_name(answers):
        meant = _meant(due[instant], scope)
        found += _greedily(group, meant, computed, equal) if len(meant) > 1 else [_merge(group)]
    return tuple(found)


def _meant(due: Sequence[Numbered], scope: tuple[int, int] | None) -> Sequence[Numbered]:
    """Of the reports due at one instant those of the scope that answers name; all when they name none, or another."""
    return [one for one in due if (one[1].due.start, one[1].due.end) == scope] or due


def _by_name(answers: Sequence[Answer]) -> list[tuple[Key, list[Answer]]]:
    """The answers of each instant and scope, in order of first appearance."""
    groups: dict[Key, list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.instant or 0, answer.scope].append(answer)
    return list(groups.items())


def _merge(group: Sequence[Answer]) -> Answer:
    rows = tuple(row for answer in group for row in answer.added)
    return replace(group[0], added=rows, received=max(answer.received for answer in group))


def _greedily(
    answers: Sequence[Answer],
    expected: Sequence[Numbered],
    computed: frozenset[int],
    equal: Callable[[int], Alike] | None,
) -> tuple[Answer, ...]:
    filled = [(place, report) for place, report in expected if report.rows]
    same: list[Alike] = [partial(alike, computed=computed) if equal is None else equal(place) for place, _ in filled]
    reports = _Reports([report.rows for _, report in filled], computed, same)
    found: list[Answer] = []
    for hollow, group in groupby(answers, key=lambda answer: not answer.added):
        run = list(group)
        found += run if hollow else reports.groups(run)
    return tuple(found)


class _Reports:
    """The expected bags with rows, taken from in order."""

    def __init__(self, bags: Sequence[tuple[Row, ...]], computed: frozenset[int], same: Sequence[Alike]) -> None:
        self._bags, self._same = bags, same
        self._computed = computed
        self._counted = [Counter(bag) for bag in bags]
        self._at = -1
        self._left: Counter[Row] = Counter()

    def groups(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers, each with rows, as one per report."""
        groups: list[list[Answer]] = []
        for place, answer in enumerate(answers):
            begins = not self._takes(self._at, self._left, answer) and self._goes_on(answers, place)
            if begins or not groups:
                groups.append([])
            groups[-1].append(answer)
        return [_merge(group) for group in groups]

    def _goes_on(self, answers: Sequence[Answer], place: int) -> bool:
        """Whether this answer leads to a later report: it holds its rows, and leading there explains more of the rest.

        A row that is wrong but happens to be a later report's must not skip all reports before that one.
        """
        ahead = self._ahead(self._at, answers[place])
        if ahead is None:
            return False
        if not (ahead == self._at + 1 and not self._left.total()):
            coming = answers[place + 1 : place + 1 + AHEAD]
            there = 1 + self._explained(ahead, self._after(ahead, answers[place]), coming)
            if there <= self._explained(self._at, self._left.copy(), coming):
                return False
        self._at, self._left = ahead, self._after(ahead, answers[place])
        return True

    def _after(self, at: int, answer: Answer) -> Counter[Row]:
        left = self._counted[at].copy()
        self._takes(at, left, answer)
        return left

    def _explained(self, at: int, left: Counter[Row], answers: Sequence[Answer]) -> int:
        """How many of the answers belong to reports when every one leads to the next that holds it."""
        found = 0
        for answer in answers:
            if not self._takes(at, left, answer):
                ahead = self._ahead(at, answer)
                if ahead is None:
                    continue
                at, left = ahead, self._after(ahead, answer)
            found += 1
        return found

    def _ahead(self, at: int, answer: Answer) -> int | None:
        within = range(at + 1, min(at + 1 + BAND, len(self._bags)))
        return next((i for i in within if all(self._found(i, self._counted[i], row) for row in answer.added)), None)

    def _takes(self, at: int, left: Counter[Row], answer: Answer) -> bool:
        """Take the answer's rows out of what is left, if all are there."""
        found = [self._found(at, left, row) for row in answer.added]
        if None in found:
            return False
        taken = Counter(row for row in found if row is not None)
        if any(left[row] < count for row, count in taken.items()):
            return False
        left.subtract(taken)
        return True

    def _found(self, at: int, left: Counter[Row], row: Row) -> Row | None:
        """The row itself or, where numbers are computed, one with equal terms and numbers within tolerance."""
        if left[row] > 0:
            return row
        if not self._computed or not left:
            return None
        exact = self._exact(row)
        same = self._same[at]
        return next(
            (other for other, count in left.items() if count > 0 and self._exact(other) == exact and same(other, row)),
            None,
        )

    def _exact(self, row: Row) -> list[Term | None]:
        return [term for place, term in enumerate(row) if place not in self._computed]
