"""Which answer speaks of which due report: by the instant it names, else order-preserving at minimal cost."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport

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
    said: dict[int, list[int]] = defaultdict(list)
    for i, report in enumerate(expected):
        due[report.due.instant].append(i)
    for j, answer in enumerate(answers):
        said[answer.instant or 0].append(j)
    pairs: list[Pair] = []
    for instant in sorted({*due, *said}):
        pairs += by_order(due[instant], said[instant], similar)
    return pairs


def by_order(reports: Sequence[int], said: Sequence[int], similar: Similarity) -> list[Pair]:
    """Minimal-cost order-preserving alignment within the band; ties go to the earlier report. Beyond PLACES by place.

    A pair costs 1 - similarity, a missed report or a surplus answer 1. Equal heads are paired at once, which never
    costs more: what one of them is paired with instead can take the other's gap.
    """
    same = 0
    while same < min(len(reports), len(said)) and similar(reports[same], said[same]) == 1.0:
        same += 1
    head: list[Pair] = list(zip(reports[:same], said[:same], strict=True))
    return head + _cheapest(reports[same:], said[same:], similar)


def _cheapest(reports: Sequence[int], said: Sequence[int], similar: Similarity) -> list[Pair]:
    """The alignment in the narrowest corridor outside of which nothing can cost as little (Ukkonen, 1985)."""
    rows, columns = len(reports), len(said)
    if not rows or not columns:
        return [(i, None) for i in reports] + [(None, j) for j in said]

    def distance(i: int, j: int) -> int:
        return _GAP - round(_GAP * similar(reports[i], said[j]))

    shift = columns - rows
    if rows * abs(shift) > PLACES:
        return _as_far_along(reports, said, similar)
    steps: list[bytearray] = []
    low = 0
    for band in _BANDS:
        low, high = min(0, shift) - band, max(0, shift) + band
        total, steps = _corridor(rows, columns, low, high, distance)
        if total < (2 * (band + 1) + abs(shift)) * _GAP:
            break
    return _walk(reports, said, steps, low)


def _as_far_along(reports: Sequence[int], said: Sequence[int], similar: Similarity) -> list[Pair]:
    """Each answer takes the first report left that has something of it, within the band of who is as far along."""
    pairs: list[Pair] = []
    taken = 0
    for number, j in enumerate(said):
        along = number * len(reports) // len(said)
        near = range(max(taken, along - BAND), min(len(reports), along + BAND + 1))
        found = next((place for place in near if similar(reports[place], j) > 0), None)
        if found is None:
            pairs.append((None, j))
            continue
        pairs += [(i, None) for i in reports[taken:found]]
        pairs.append((reports[found], j))
        taken = found + 1
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


def _walk(reports: Sequence[int], said: Sequence[int], steps: Sequence[bytearray], low: int) -> list[Pair]:
    pairs: list[Pair] = []
    i = j = 0
    while i < len(reports) or j < len(said):
        taken = steps[i][j - i - low]
        pairs.append((None if taken == _SURPLUS else reports[i], None if taken == _MISSED else said[j]))
        i += taken != _SURPLUS
        j += taken != _MISSED
    return pairs
