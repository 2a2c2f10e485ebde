"""Verdicts: how right and how late a run is, per window and as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, Literal, TypeAlias

from streamgauge.model.tabular import SHOWN, html_table, shown
from streamgauge.model.terms import Row

Evaluator: TypeAlias = Literal["definition", "changes", "spark"]


class Judgement(StrEnum):
    """The verdict on a whole run in one word."""

    RIGHT = "right"
    LATE = "right but late"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WindowVerdict:
    """One due report (or one surplus report, with ``expected`` 0) judged.

    ``start``, ``end`` and ``instant`` in ms, ``None`` for a surplus report that names none; ``report`` is the
    position of the answer that was matched (``None`` when it was missed); ``delay`` in ms, ``None`` when
    missed; ``missing`` and ``surplus`` are witnesses, up to the oracle's limit. ``due`` is false for a surplus
    report. ``undecided`` counts rows in which a legal answer may differ from the evaluator's own, and ``doubtful``
    has some of them. ``borders`` are the best fit (ms) of gracious mode, ``fitted`` precision and recall under them.
    ``late``: its delay exceeds the bound.
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
    due: bool = True
    undecided: int = 0
    borders: tuple[int, int] | None = None
    fitted: tuple[float, float] | None = None
    doubtful: tuple[Row, ...] = ()
    late: bool = False

    @property
    def right(self) -> bool:
        """Whether a report was received and its bag is exactly the expected one."""
        return self.precision == 1.0 and self.recall == 1.0 and self.report is not None

    def _repr_html_(self) -> str:
        """The window with its borders, sizes and the rows that were answered otherwise, for notebooks."""
        facts = {
            "window": f"{self.start:,} - {self.end:,} ms" if self.start is not None and self.end is not None else None,
            "instant": None if self.instant is None else f"{self.instant:,} ms",
            "precision, recall": f"{self.precision:.4f}, {self.recall:.4f}",
            "expected, received": f"{self.expected:,}, {self.actual:,}" if self.report is not None else "no report",
            "triples in the window": f"{self.content:,}",
            "delay": None if self.delay is None else f"{self.delay:,.1f} ms" + (", late" if self.late else ""),
        }
        summary = html_table((f"window {self.index}", ""), [(name, fact) for name, fact in facts.items() if fact])
        sides = [("missing", row) for row in self.missing] + [("surplus", row) for row in self.surplus]
        if not sides:
            return summary
        rows = [(side, *map(shown, row)) for side, row in sides[:SHOWN]]
        head = ["", *("" for _ in rows[0][1:])]
        return summary + html_table(head, rows, "rows answered otherwise", len(sides) - len(rows))


@dataclass(frozen=True, slots=True)
class Part:
    """One deviation in a model: another value of a Semantics field, or a fault; ``sentence`` describes it for users."""

    name: str
    sentence: str


EQUAL_BITS: Final = 2.0
"""Difference in description length (bits) below which two models count as equally good: odds of 4 to 1."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why answers are wrong: the models that fit them best, shortest description first, and the evidence.

    ``models`` give the same answers on this run. ``distance`` is how many reports differ from the recorded ones under
    them (0: exact), ``differs`` how many do under the declared semantics, of ``reports`` recorded ones. ``t0`` in ms.
    ``bits`` are the lengths of the models' descriptions; models less than EQUAL_BITS longer than the first are as good.
    """

    models: tuple[tuple[Part, ...], ...]
    distance: int
    differs: int
    reports: int
    t0: int | None = None
    bits: tuple[float, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the models reproduce the recorded answers; otherwise none fits and they are only the closest."""
        return bool(self.models) and self.distance == 0

    @property
    def equal(self) -> int:
        """The number of equally good models, the first included; all of them if no lengths are known."""
        if not self.bits:
            return len(self.models)
        return sum(bit < self.bits[0] + EQUAL_BITS for bit in self.bits)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run judged: totals are micro-averaged over windows; ``evaluator`` says who gave the expected answers.

    ``t0`` in ms, ``None`` when unknown; ``reason`` explains ``unknown``; ``other_clock`` holds (clock,
    precision, recall) of the same run judged under its other clock, when there is one; ``last_answer`` is the
    arrival of the last answer after the stream's start, and ``max_delay`` the greatest delay, both in ms. ``rules``
    names whose rules judged (``streamgauge``, ``csrbench``, ``yabench``). ``delay_bound`` (ms) is the longest delay
    that was allowed; ``horizon`` (ms) the end of the recording's time: later reports were not due. ``cautions`` are
    sentences about what makes the whole verdict doubtful, such as an unknown stream name. ``retyped`` are columns
    whose computed numbers were equal by value but of another datatype than expected, which was ignored.
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
    windows: Sequence[WindowVerdict]
    tolerance: str = ""
    reason: str = ""
    other_clock: tuple[str, float, float] | None = None
    last_answer: float | None = None
    rules: str = "streamgauge"
    undecided: int = 0
    diagnosis: Diagnosis | None = None
    delay_bound: float | None = None
    horizon: int | None = None
    cautions: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """The verdict with the windows that were not answered as expected, for notebooks."""
        wrong = (window for window in self.windows if not window.right or window.late)
        listed = tuple(islice(wrong, SHOWN))
        summary = [
            ("verdict", str(self.judgement)),
            *([("reason", self.reason)] if self.reason else []),
            ("precision, recall", f"{self.precision:.4f}, {self.recall:.4f}"),
            ("windows", f"{len(self.windows):,}"),
            ("missed, surplus, late", f"{self.missed:,}, {self.surplus:,}, {self.late:,}"),
            *([("longest delay", f"{self.max_delay:,.1f} ms")] if self.max_delay is not None else []),
            *(("caution", caution) for caution in self.cautions),
            *(("diagnosis", part.sentence) for part in _explained(self.diagnosis)),
        ]
        head = ("window", "instant (ms)", "precision", "recall", "expected", "got")
        rows = [
            (str(report.index), f"{report.instant}", f"{report.precision:.2f}", f"{report.recall:.2f}", *_sizes(report))
            for report in listed
        ]
        # `wrong` goes on after the listed ones: the sum counts the others.
        detail = html_table(head, rows, "windows not as expected", sum(1 for _ in wrong)) if rows else ""
        return html_table(("verdict", ""), summary) + detail


def _explained(diagnosis: Diagnosis | None) -> tuple[Part, ...]:
    """The parts of the simplest model that fits."""
    return diagnosis.models[0] if diagnosis is not None and diagnosis.exact else ()


def _sizes(window: WindowVerdict) -> tuple[str, str]:
    return f"{window.expected:,}", f"{window.actual:,}"
