"""How far what a model says is from what was recorded: the number of reports that differ."""

from collections.abc import Sequence

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import Grain
from streamgauge.oracle.diagnosis.models import Said
from streamgauge.oracle.diagnosis.recorded import Recorded
from streamgauge.oracle.judging.merge import merged

BAND = 50
"""How many reports an answer may be away from its own."""


def reports(told: Sequence[Said], recorded: Recorded, variables: tuple[str, ...]) -> tuple[Answer, ...]:
    """The recorded answers, one per report."""
    if recorded.grain is Grain.REPORT:
        return recorded.answers
    expected = [ExpectedReport(said.due, variables, said.rows, 0) for said in told]
    return merged(recorded.answers, expected, recorded.grain, recorded.computed)


def distance(told: Sequence[Said], recorded: Recorded, variables: tuple[str, ...], open_end: int | None) -> int:
    """The fewest reports to change, leave out or add; those after ``open_end`` (ms) may be missing at the end."""
    answers = reports(told, recorded, variables)
    far = len(told) + len(answers)
    band = BAND + abs(len(told) - len(answers))
    row = {j: j for j in range(min(len(answers), band) + 1)}
    best = far
    for i in range(len(told) + 1):
        if i:
            row = _next(told[i - 1], i, row, answers, recorded, band)
        if all(open_end is not None and said.instant > open_end for said in told[i:]) or i == len(told):
            best = min(best, row.get(len(answers), far))
    return best


def _next(
    said: Said, i: int, above: dict[int, int], answers: Sequence[Answer], recorded: Recorded, band: int
) -> dict[int, int]:
    """The next row of the edit distance, from the one above it."""
    far = i + len(answers)
    row: dict[int, int] = {}
    for j in range(max(0, i - band), min(len(answers), i + band) + 1):
        best = min(above.get(j, far), row.get(j - 1, far)) + 1
        if j:
            best = min(best, above.get(j - 1, far) + (not _equal(said, answers[j - 1], recorded)))
        row[j] = best
    return row


def _equal(said: Said, answer: Answer, recorded: Recorded) -> bool:
    return answer.instant in (None, said.instant) and recorded.same(said.rows, answer.added)
