"""Exit codes of the command line."""

from collections.abc import Iterable
from enum import IntEnum

from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict


class Exit(IntEnum):
    """0 right, 1 wrong verdict, 2 bad input, 3 engine failure, 4 unknown, 5 right but late."""

    RIGHT = 0
    WRONG = 1
    BAD_INPUT = 2
    ENGINE_FAILURE = 3
    UNKNOWN = 4
    LATE = 5


_BY_JUDGEMENT = {
    Judgement.RIGHT: Exit.RIGHT,
    Judgement.WRONG: Exit.WRONG,
    Judgement.UNKNOWN: Exit.UNKNOWN,
    Judgement.LATE: Exit.LATE,
}
_WORST_FIRST = (Exit.ENGINE_FAILURE, Exit.WRONG, Exit.UNKNOWN, Exit.LATE, Exit.RIGHT)


def exit_code(judged: Iterable[tuple[Run, Verdict]]) -> Exit:
    """The code of the worst run: engine failure, wrong, unknown, late, right."""
    # A failed engine's answers can be right as far as they go, so its failure counts before any verdict.
    codes = {Exit.ENGINE_FAILURE if run.header.failure else _BY_JUDGEMENT[verdict.judgement] for run, verdict in judged}
    return next((code for code in _WORST_FIRST if code in codes), Exit.RIGHT)
