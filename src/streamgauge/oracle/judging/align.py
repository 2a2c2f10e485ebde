"""Alignment of answers with due reports: by the instant that an answer names, else in order at minimal cost.

Changes are added up to whole answers first (``whole``), and answers of a row each are merged (``merged``).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import Grain
from streamgauge.model.terms import Row
from streamgauge.oracle.judging.compare import Alike, alike, exact_terms

AHEAD = 32
"""How many answers are looked at before one leads to a later report."""

Key = tuple[int, tuple[int, int] | None]


def whole(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Answers that send changes as what holds after each; other answers as they are.

    A row that is removed but does not hold is owed: its next addition adds nothing.
    """
    if not any(answer.removed for answer in answers):
        return tuple(answers)
    bag: Counter[Row] = Counter()
    answers_: list[Answer] = []
    for answer in answers:
        bag.update(answer.added)
        bag.subtract(answer.removed)
        answers_.append(replace(answer, added=tuple(bag.elements()), removed=()))
    return tuple(answers_)


def merged(
    answers: Sequence[Answer],
    expected: Sequence[ExpectedReport],
    grain: Grain,
    computed: frozenset[int] = frozenset(),
    equal: Alike | None = None,
) -> tuple[Answer, ...]:
    """Row-grained answers as one answer per report, report-grained ones as they are.

    ``computed`` are the columns whose numbers are compared by value; ``equal`` says which rows are equal but for these.
    """
    if grain is Grain.REPORT:
        return tuple(answers)
    if any(answer.instant is None for answer in answers):
        return _greedily(answers, expected, computed, equal)
    due: dict[int, list[ExpectedReport]] = defaultdict(list)
    for report in expected:
        due[report.due.instant].append(report)
    answers_: list[Answer] = []
    for (instant, scope), group in _by_name(answers):
        of_scope = [report for report in due[instant] if (report.due.start, report.due.end) == scope]
        meant = of_scope or due[instant]  # all where answers name no scope, or another
        answers_ += _greedily(group, meant, computed, equal) if len(meant) > 1 else [_merge(group)]
    return tuple(answers_)


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
    expected: Sequence[ExpectedReport],
    computed: frozenset[int],
    equal: Alike | None,
) -> tuple[Answer, ...]:
    bags = [report.rows for report in expected if report.rows]
    reports = _Reports(bags, computed, equal or partial(alike, computed=computed))
    answers_: list[Answer] = []
    for hollow, group in groupby(answers, key=lambda answer: not answer.added):
        run = list(group)
        answers_ += run if hollow else reports.groups(run)
    return tuple(answers_)


class _Reports:
    """The expected bags with rows, taken from in order."""

    def __init__(self, bags: Sequence[tuple[Row, ...]], computed: frozenset[int], same: Alike) -> None:
        self._bags, self._computed, self._same = bags, computed, same
        self._counted = [Counter(bag) for bag in bags]
        self._at = -1
        self._left: Counter[Row] = Counter()

    def groups(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers, each with rows, as one per report."""
        groups: list[list[Answer]] = []
        for place, answer in enumerate(answers):
            begins = not self._takes(self._left, answer) and self._goes_on(answers, place)
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
        self._takes(left, answer)
        return left

    def _explained(self, at: int, left: Counter[Row], answers: Sequence[Answer]) -> int:
        """How many of the answers belong to reports when every one leads to the next that holds it."""
        count = 0
        for answer in answers:
            if not self._takes(left, answer):
                ahead = self._ahead(at, answer)
                if ahead is None:
                    continue
                at, left = ahead, self._after(ahead, answer)
            count += 1
        return count

    def _ahead(self, at: int, answer: Answer) -> int | None:
        within = range(at + 1, min(at + 1 + BAND, len(self._bags)))
        return next((i for i in within if all(self._found(self._counted[i], row) for row in answer.added)), None)

    def _takes(self, left: Counter[Row], answer: Answer) -> bool:
        """Take the answer's rows out of what is left, if all are there."""
        places = [self._found(left, row) for row in answer.added]
        if None in places:
            return False
        taken = Counter(row for row in places if row is not None)
        if any(left[row] < count for row, count in taken.items()):
            return False
        left.subtract(taken)
        return True

    def _found(self, left: Counter[Row], row: Row) -> Row | None:
        """The row itself or, where numbers are computed, one with equal terms and numbers within tolerance."""
        if left[row] > 0:
            return row
        if not self._computed or not left:
            return None
        exact = exact_terms(row, self._computed)
        return next(
            (
                other
                for other, count in left.items()
                if count > 0 and exact_terms(other, self._computed) == exact and self._same(other, row)
            ),
            None,
        )


Pair = tuple[int | None, int | None]
"""(position of the due report, position of the answer); ``None`` for a missed or a surplus one."""

Similarity = Callable[[int, int], float]
"""How alike due report i and answer j are: |E and A| / |E or A|, 1 when both are empty."""

BAND = 50
"""How many reports an answer may be away from its own (SEMANTICS, alignment)."""

PLACES = 10_000_000
"""Reports times by how many the answers are more or fewer: beyond it the least cost takes hours and is not sought."""

_GAP = 1_000_000_000  # the cost of a gap: costs are whole numbers, so that ties are ties
_BANDS = (2, 8, 24, BAND)
_PAIR, _SURPLUS, _MISSED = 0, 1, 2
_FAR = 1 << 62


def align(expected: Sequence[ExpectedReport], answers: Sequence[Answer], similar: Similarity) -> list[Pair]:
    """Pairs in order; every due report and every answer appears once. ``similar(i, j)`` is in [0, 1]."""
    if all(answer.instant is not None for answer in answers):
        return _by_instant(expected, answers, similar)
    return by_order(range(len(expected)), range(len(answers)), similar)


def _by_instant(expected: Sequence[ExpectedReport], answers: Sequence[Answer], similar: Similarity) -> list[Pair]:
    due: dict[int, list[int]] = defaultdict(list)
    recorded: dict[int, list[int]] = defaultdict(list)
    for i, report in enumerate(expected):
        due[report.due.instant].append(i)
    for j, answer in enumerate(answers):
        recorded[answer.instant or 0].append(j)
    pairs: list[Pair] = []
    for instant in sorted({*due, *recorded}):
        pairs += by_order(due[instant], recorded[instant], similar)
    return pairs


def by_order(reports: Sequence[int], answers: Sequence[int], similar: Similarity) -> list[Pair]:
    """Minimal-cost order-preserving alignment within the band; ties go to the earlier report. Beyond PLACES by place.

    A pair costs 1 - similarity, a missed report or a surplus answer 1. Equal heads are paired at once, which never
    costs more: what one of them is paired with instead can take the other's gap.
    """
    same = 0
    while same < min(len(reports), len(answers)) and similar(reports[same], answers[same]) == 1.0:
        same += 1
    head: list[Pair] = list(zip(reports[:same], answers[:same], strict=True))
    return head + _cheapest(reports[same:], answers[same:], similar)


def _cheapest(reports: Sequence[int], answers: Sequence[int], similar: Similarity) -> list[Pair]:
    """The alignment in the narrowest corridor outside of which nothing can cost as little (Ukkonen, 1985)."""
    rows, columns = len(reports), len(answers)
    if not rows or not columns:
        return [(i, None) for i in reports] + [(None, j) for j in answers]

    def distance(i: int, j: int) -> int:
        return _GAP - round(_GAP * similar(reports[i], answers[j]))

    shift = columns - rows
    if rows * abs(shift) > PLACES:
        return _as_far_along(reports, answers, similar)
    steps: list[bytearray] = []
    low = 0
    for band in _BANDS:
        low, high = min(0, shift) - band, max(0, shift) + band
        total, steps = _corridor(rows, columns, low, high, distance)
        if total < (2 * (band + 1) + abs(shift)) * _GAP:
            break
    return _walk(reports, answers, steps, low)


def _as_far_along(reports: Sequence[int], answers: Sequence[int], similar: Similarity) -> list[Pair]:
    """Each answer takes the first report left that has something of it, within the band of who is as far along."""
    pairs: list[Pair] = []
    taken = 0
    for number, j in enumerate(answers):
        along = number * len(reports) // len(answers)
        near = range(max(taken, along - BAND), min(len(reports), along + BAND + 1))
        place_ = next((place for place in near if similar(reports[place], j) > 0), None)
        if place_ is None:
            pairs.append((None, j))
            continue
        pairs += [(i, None) for i in reports[taken:place_]]
        pairs.append((reports[place_], j))
        taken = place_ + 1
    return pairs + [(i, None) for i in reports[taken:]]


def _corridor(
    rows: int, columns: int, low: int, high: int, distance: Callable[[int, int], int]
) -> tuple[int, list[bytearray]]:
    """Dynamic programming from the end over places (i, j) with low <= j - i <= high: the cost, and a step per place."""
    width = high - low + 1
    steps = [bytearray(width) for _ in range(rows + 1)]
    after = [_FAR] * (width + 1)
    for i in range(rows, -1, -1):
        now = [_FAR] * (width + 1)
        taken = steps[i]
        for k in range(min(high, columns - i) - low, max(low, -i) - low - 1, -1):
            j = i + k + low
            if i == rows and j == columns:
                now[k] = 0
                continue
            pair = after[k] + distance(i, j) if i < rows and j < columns else _FAR
            surplus = now[k + 1] + _GAP if j < columns else _FAR
            missed = after[k - 1] + _GAP if i < rows and k else _FAR
            best = min(pair, surplus, missed)
            now[k] = best
            taken[k] = _PAIR if best == pair else _SURPLUS if best == surplus else _MISSED
        after = now
    return after[-low], steps


def _walk(reports: Sequence[int], answers: Sequence[int], steps: Sequence[bytearray], low: int) -> list[Pair]:
    pairs: list[Pair] = []
    i = j = 0
    while i < len(reports) or j < len(answers):
        taken = steps[i][j - i - low]
        pairs.append((None if taken == _SURPLUS else reports[i], None if taken == _MISSED else answers[j]))
        i += taken != _SURPLUS
        j += taken != _MISSED
    return pairs
