"""Which answer speaks of which due report: by the instant it names, else order-preserving at minimal cost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import Grain

Pair = tuple[int | None, int | None]
"""(position of the due report, position of the answer); ``None`` for a missed or a surplus one."""

Similarity = Callable[[int, int], float]

BAND = 50
"""How many reports an answer may be away from its own (SEMANTICS, alignment)."""


def merged(answers: Sequence[Answer], expected: Sequence[ExpectedReport], grain: Grain) -> tuple[Answer, ...]:
    """Row-grained answers merged to one per report: by instant when named, else greedily in order."""
    if grain is Grain.REPORT:
        return tuple(answers)
    if all(answer.instant is not None for answer in answers):
        groups: dict[tuple[int | None, tuple[int, int] | None], list[Answer]] = defaultdict(list)
        for answer in answers:
            groups[answer.instant, answer.scope].append(answer)
        return tuple(_merge(group) for group in groups.values())
    return _merge_greedily(answers, expected)


def _merge(group: Sequence[Answer]) -> Answer:
    rows = tuple(row for answer in group for row in answer.added)
    return replace(group[0], added=rows, received=max(answer.received for answer in group))


def _merge_greedily(answers: Sequence[Answer], expected: Sequence[ExpectedReport]) -> tuple[Answer, ...]:
    groups: list[list[Answer]] = []
    at = -1
    remaining: Counter[object] = Counter()
    for answer in answers:
        while groups == [] or not all(remaining[row] > 0 for row in answer.added):
            ahead = next(
                (
                    i
                    for i in range(at + 1, min(at + 1 + BAND, len(expected)))
                    if all(row in expected[i].rows for row in answer.added)
                ),
                None,
            )
            if ahead is None:
                if not groups:
                    groups.append([])
                break
            at, remaining = ahead, Counter(expected[ahead].rows)
            groups.append([])
        remaining.subtract(answer.added)
        groups[-1].append(answer)
    return tuple(_merge(group) for group in groups if group)


def align(expected: Sequence[ExpectedReport], answers: Sequence[Answer], similar: Similarity) -> list[Pair]:
    """Pairs in order; every due report and every answer appears once. ``similar(i, j)`` is in [0, 1]."""
    if all(answer.instant is not None for answer in answers):
        return _by_instant(expected, answers, similar)
    return _by_order(range(len(expected)), range(len(answers)), similar)


def _by_instant(expected: Sequence[ExpectedReport], answers: Sequence[Answer], similar: Similarity) -> list[Pair]:
    due: dict[int, list[int]] = defaultdict(list)
    said: dict[int, list[int]] = defaultdict(list)
    for i, report in enumerate(expected):
        due[report.due.instant].append(i)
    for j, answer in enumerate(answers):
        said[answer.instant or 0].append(j)
    pairs: list[Pair] = []
    for instant in sorted({*due, *said}):
        pairs += _by_order(due[instant], said[instant], similar)
    return pairs


def _by_order(reports: Sequence[int], said: Sequence[int], similar: Similarity) -> list[Pair]:
    """Minimal-cost order-preserving alignment within the band; ties go to the earlier report."""
    same = 0
    while same < min(len(reports), len(said)) and similar(reports[same], said[same]) == 1.0:
        same += 1
    head: list[Pair] = list(zip(reports[:same], said[:same], strict=True))
    return head + _cheapest(reports[same:], said[same:], similar)


def _cheapest(reports: Sequence[int], said: Sequence[int], similar: Similarity) -> list[Pair]:
    """Dynamic programming over (reports, answers); a gap costs 1, a pair 1 - similarity."""
    rows, columns = len(reports), len(said)
    far = float("inf")
    band = BAND + abs(rows - columns)
    cost: list[dict[int, float]] = [{} for _ in range(rows + 1)]
    step: list[dict[int, str]] = [{} for _ in range(rows + 1)]
    for i in range(rows + 1):
        for j in range(max(0, i - band), min(columns, i + band) + 1):
            options = [(0.0, "")] if i == j == 0 else []
            if i and j and j - 1 in cost[i - 1]:
                options.append((cost[i - 1][j - 1] + 1 - similar(reports[i - 1], said[j - 1]), "pair"))
            if j:
                options.append((cost[i].get(j - 1, far) + 1, "surplus"))
            if i:
                options.append((cost[i - 1].get(j, far) + 1, "missed"))
            cost[i][j], step[i][j] = min(options, key=lambda option: option[0])
    return _walk_back(reports, said, step)


def _walk_back(reports: Sequence[int], said: Sequence[int], step: Sequence[dict[int, str]]) -> list[Pair]:
    pairs: list[Pair] = []
    i, j = len(reports), len(said)
    while i or j:
        taken = step[i][j]
        i -= taken != "surplus"
        j -= taken != "missed"
        pairs.append((reports[i] if taken != "surplus" else None, said[j] if taken != "missed" else None))
    return pairs[::-1]
