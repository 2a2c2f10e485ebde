"""Verdicts: how right and how late a run is, per window and as a whole."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from streamgauge.model.terms import Row

Evaluator: TypeAlias = Literal["definition", "changes", "spark"]


class Judgement(StrEnum):
    """The whole run in a word."""

    RIGHT = "right"
    LATE = "right but late"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WindowVerdict:
    """One due report (or one surplus report, with ``expected`` 0) judged.

    ``start``, ``end`` and ``instant`` in ms, ``None`` for a surplus report that names none; ``report`` is the
    position of the answer that was matched (``None`` when it was missed); ``delay`` in ms, ``None`` when
    missed; ``missing`` and ``surplus`` are witnesses, at most as many as the oracle was asked to keep.
    """

    index: int
    start: int | None
    end: int | None
    instant: int | None
    report: int | None
    precision: float
    recall: float
    true_positives: int
    expected: int
    actual: int
    content: int
    delay: float | None
    missing: tuple[Row, ...] = ()
    surplus: tuple[Row, ...] = ()

    @property
    def right(self) -> bool:
        """Exactly the expected bag, reported."""
        return self.precision == 1.0 and self.recall == 1.0 and self.report is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run judged: totals are micro-averaged over windows; ``evaluator`` says who gave the expected answers.

    ``t0`` in ms, ``None`` when unknown; ``reason`` explains ``unknown``; ``other_clock`` holds (clock,
    precision, recall) of the same run judged under its other clock, when there is one; ``last_answer`` is the
    arrival of the last answer after the stream's start, and ``max_delay`` the greatest delay, both in ms.
    """

    judgement: Judgement
    evaluator: Evaluator | None
    t0: int | None
    precision: float
    recall: float
    missed: int
    surplus: int
    late: int
    max_delay: float | None
    variables: tuple[str, ...]
    windows: tuple[WindowVerdict, ...]
    tolerance: str = ""
    reason: str = ""
    other_clock: tuple[str, float, float] | None = None
    last_answer: float | None = None
