"""Alignment of answers with due reports: by the instant that an answer names, else in order at minimal cost.

Changes are added up to whole answers first (``whole``), and answers of a row each are merged (``merged``).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import Grain
from streamgauge.model.terms import Row
from streamgauge.oracle.judging.compare import Alike, alike, exact_terms

LOOKAHEAD = 32
"""Lookahead of the merge: answers that are compared before one of them is taken as the start of a later report."""

Item = TypeVar("Item")
Key = TypeVar("Key")


def whole(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """The answers as whole bags: where some remove rows, the sum of all changes so far; otherwise unchanged.

    A row that is removed while it is absent counts as -1, so that its next addition adds nothing.
    """
    if not any(answer.removed for answer in answers):
        return tuple(answers)
    bag: Counter[Row] = Counter()
    bags: list[Answer] = []
    for answer in answers:
        bag.update(answer.added)
        # subtract keeps counts below zero, which elements() leaves out: an engine that removes before it adds is even.
        bag.subtract(answer.removed)
        bags.append(replace(answer, added=tuple(bag.elements()), removed=()))
    return tuple(bags)


def merged(
    answers: Sequence[Answer],
    expected: Sequence[ExpectedReport],
    grain: Grain,
    computed: frozenset[int] = frozenset(),
    equal: Alike | None = None,
) -> tuple[Answer, ...]:
    """Row-grained answers merged into one answer per report; report-grained answers unchanged.

    ``computed`` are the columns whose numbers are compared by value; ``equal`` compares two rows in these columns.
    """
    if grain is Grain.REPORT:
        return tuple(answers)
    # One answer without an instant and all go by their rows: named and unnamed answers have no common order.
    if any(answer.instant is None for answer in answers):
        return _greedily(answers, expected, computed, equal)
    due = _grouped(expected, lambda report: report.due.instant)
    merged_answers: list[Answer] = []
    # Groups are in order of first appearance, as a dict is.
    for (instant, scope), group in _grouped(answers, lambda answer: (answer.instant or 0, answer.scope)).items():
        of_scope = [report for report in due[instant] if (report.due.start, report.due.end) == scope]
        candidates = of_scope or due[instant]  # all where answers name no scope, or one that is not due
        # One report may take all rows of its instant. With several (two windows, count-based closes) the rows decide.
        merged_answers += _greedily(group, candidates, computed, equal) if len(candidates) > 1 else [_merge(group)]
    return tuple(merged_answers)


def _grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, in order of first appearance; none of any other key."""
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _merge(group: Sequence[Answer]) -> Answer:
    rows = tuple(row for answer in group for row in answer.added)
    # A report has been answered when its last row has arrived.
    return replace(group[0], added=rows, received=max(answer.received for answer in group))


def _greedily(
    answers: Sequence[Answer],
    expected: Sequence[ExpectedReport],
    computed: frozenset[int],
    equal: Alike | None,
) -> tuple[Answer, ...]:
    bags = [report.rows for report in expected if report.rows]
    reports = _Reports(bags, computed, equal or partial(alike, computed=computed))
    merged_answers: list[Answer] = []
    # An empty answer is a report of its own: no row says which report it continues.
    for empty, group in groupby(answers, key=lambda answer: not answer.added):
        run = list(group)
        merged_answers += run if empty else reports.groups(run)
    return tuple(merged_answers)


class _Reports:
    """Cuts a sequence of rows into reports, by filling the expected bags in order.

    Worked example: expected {a, b}, {c}, {a}; rows a, b, c, a. Row a begins the first report and b completes it. c is
    not in it, and the next report has it: a new group. The last a begins the third group: (a, b), (c), (a).
    """

    def __init__(self, bags: Sequence[tuple[Row, ...]], computed: frozenset[int], same: Alike) -> None:
        self._bags, self._computed, self._same = bags, computed, same
        self._counted = [Counter(bag) for bag in bags]
        self._at = -1
        self._left: Counter[Row] = Counter()

    def groups(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers, each of which has rows, merged into one per report."""
        groups: list[list[Answer]] = []
        for place, answer in enumerate(answers):
            begins = not self._takes(self._left, answer) and self._begins_later(answers, place)
            if begins or not groups:
                groups.append([])
            groups[-1].append(answer)
        return [_merge(group) for group in groups]

    def _begins_later(self, answers: Sequence[Answer], place: int) -> bool:
        """Whether this answer begins a later report, which has its rows and explains more of the answers that follow.

        A wrong row that a much later report happens to contain must not skip all reports before that one.
        """
        ahead = self._ahead(self._at, answers[place])
        if ahead is None:
            return False
        # The bag is complete and its successor has the row: nothing is skipped, so there is nothing to weigh.
        if not (ahead == self._at + 1 and not self._left.total()):
            coming = answers[place + 1 : place + 1 + LOOKAHEAD]
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
        """How many answers fit a report, if each that does not fit moves on to the next report with its rows."""
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
        # No further than alignment may displace an answer.
        within = range(at + 1, min(at + 1 + BAND, len(self._bags)))
        return next((i for i in within if all(self._equal_row(self._counted[i], row) for row in answer.added)), None)

    def _takes(self, left: Counter[Row], answer: Answer) -> bool:
        """Take the answer's rows out of the rest of a bag, all or none; whether they were there."""
        places = [self._equal_row(left, row) for row in answer.added]
        if None in places:
            return False
        taken = Counter(row for row in places if row is not None)
        if any(left[row] < count for row, count in taken.items()):
            return False
        left.subtract(taken)
        return True

    def _equal_row(self, left: Counter[Row], row: Row) -> Row | None:
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
"""(position of the due report, position of the answer); ``None`` for a surplus answer or a missed report."""

Similarity = Callable[[int, int], float]
"""|E and A| / |E or A| of due report i and answer j, in [0, 1]; 1 if both are empty."""

BAND = 50
"""Reports by which an answer may be displaced (docs/semantics.md, Scores)."""

MAX_CORRIDOR = 10_000_000
"""Reports times the difference in numbers: the size of the narrowest corridor, beyond which alignment takes hours."""

_GAP = 1_000_000_000  # cost of a missed report or surplus answer; integers, because equal costs must compare equal
_BANDS = (2, 8, 24, BAND)
_PAIR, _SURPLUS, _MISSED = 0, 1, 2
_FAR = 1 << 62


def align(expected: Sequence[ExpectedReport], answers: Sequence[Answer], similar: Similarity) -> list[Pair]:
    """Pairs in order; every due report and every answer appears once. ``similar(i, j)`` is in [0, 1]."""
    if all(answer.instant is not None for answer in answers):
        return _by_instant(expected, answers, similar)
    return by_order(range(len(expected)), range(len(answers)), similar)


def _by_instant(expected: Sequence[ExpectedReport], answers: Sequence[Answer], similar: Similarity) -> list[Pair]:
    due = _grouped(range(len(expected)), lambda i: expected[i].due.instant)
    recorded = _grouped(range(len(answers)), lambda j: answers[j].instant or 0)
    pairs: list[Pair] = []
    for instant in sorted({*due, *recorded}):
        pairs += by_order(due[instant], recorded[instant], similar)
    return pairs


def by_order(reports: Sequence[int], answers: Sequence[int], similar: Similarity) -> list[Pair]:
    """Minimal-cost order-preserving alignment within the band; ties go to the earlier report.

    A pair costs 1 - similarity, a missed report or a surplus answer 1. Above ``MAX_CORRIDOR`` answers are aligned by
    their relative position instead.
    """
    # Pairing an equal prefix is free and never worse: in any alignment that pairs one of two equal heads elsewhere, the
    # other is a gap, and exchanging the two costs nothing.
    same = 0
    while same < min(len(reports), len(answers)) and similar(reports[same], answers[same]) == 1.0:
        same += 1
    head: list[Pair] = list(zip(reports[:same], answers[:same], strict=True))
    return head + _cheapest(reports[same:], answers[same:], similar)


def _cheapest(reports: Sequence[int], answers: Sequence[int], similar: Similarity) -> list[Pair]:
    """The alignment of least cost, in the narrowest corridor that is proven to contain it (Ukkonen, 1985).

    Worked example: 10 reports, 9 answers, the fourth lost. shift = -1, so band 2 is the diagonals -3 to 2. The cost is
    one gap, less than the 2 * 3 + 1 gaps of any path that leaves the corridor: the first band suffices.
    """
    rows, columns = len(reports), len(answers)
    if not rows or not columns:
        return [(i, None) for i in reports] + [(None, j) for j in answers]

    def distance(i: int, j: int) -> int:
        return _GAP - round(_GAP * similar(reports[i], answers[j]))

    shift = columns - rows
    if rows * abs(shift) > MAX_CORRIDOR:
        return _as_far_along(reports, answers, similar)
    steps: list[bytearray] = []
    low = 0
    for band in _BANDS:
        low, high = min(0, shift) - band, max(0, shift) + band
        total, steps = _corridor(rows, columns, low, high, distance)
        # Leaving the corridor takes band + 1 gaps, coming back as many, and any path needs |shift| more.
        if total < (2 * (band + 1) + abs(shift)) * _GAP:
            break
    return _walk(reports, answers, steps, low)


def _as_far_along(reports: Sequence[int], answers: Sequence[int], similar: Similarity) -> list[Pair]:
    """Pair each answer with the first remaining report that shares a row, near the same relative position."""
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
    """Dynamic programming over the pairs (i, j) with low <= j - i <= high: the least cost, and the best step from each.

    Row i is stored by diagonal, k = j - i - low: a pair goes to k of row i + 1, a missed report to its k - 1, a surplus
    answer to k + 1 of the same row.
    """
    width = high - low + 1
    steps = [bytearray(width) for _ in range(rows + 1)]
    now: list[int] = []
    # From the end, so that _walk reads the steps from the front and ties are decided there, at the earliest report.
    for i in range(rows, -1, -1):
        # One place more than the corridor, so that ``k + 1`` at its border reads _FAR.
        after, now = now, [_FAR] * (width + 1)
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
            # A pair wins ties: of two equal reports the earlier gets the answer. A surplus answer comes before a missed
            # report, which leaves the earlier report for the answers that follow.
            taken[k] = _PAIR if best == pair else _SURPLUS if best == surplus else _MISSED
    return now[-low], steps


def _walk(reports: Sequence[int], answers: Sequence[int], steps: Sequence[bytearray], low: int) -> list[Pair]:
    pairs: list[Pair] = []
    i = j = 0
    while i < len(reports) or j < len(answers):
        taken = steps[i][j - i - low]
        pairs.append((None if taken == _SURPLUS else reports[i], None if taken == _MISSED else answers[j]))
        i += taken != _SURPLUS
        j += taken != _MISSED
    return pairs
