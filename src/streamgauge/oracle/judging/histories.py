"""Differences to the report before, where what was sent before is open: the histories that fit all answers so far.

Istream, Dstream and both send what changes. A history is one legal answer for each report; of those that fit the
differences received so far only the last answers are kept:

    legal before: {a}, {a, b}     legal now: {a, b}     Istream sent b: before was {a}; sent nothing: before was {a, b}

Until a report differs from the evaluator's own history, that one is followed alone; legal answers are listed from the
report before the first difference on.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S
from streamgauge.model.terms import Row
from streamgauge.oracle.worlds.conditions import MAX_CASES, CutOffError
from streamgauge.oracle.worlds.intervals import OpenError
from streamgauge.oracle.worlds.legality import Opinion, ReportLegality
from streamgauge.semantics.definition import SIGNS, difference

Bag: TypeAlias = Counter[Row]


@dataclass(frozen=True, slots=True)
class SentDifference:
    """A report with the evaluator's whole answer, and what was received; ``as_expected`` where that is its own."""

    due: DueReport
    rows: Bag
    received: tuple[Row, ...]
    as_expected: bool


class Histories:
    """The legal histories of one run."""

    def __init__(self, legality: ReportLegality, r2s: R2S, answers: Callable[[Sequence[Row]], Bag] = Counter) -> None:
        self._legality, self._r2s, self._bag = legality, r2s, answers

    def opinions(self, sent: Sequence[SentDifference]) -> list[Opinion]:
        """Whether each difference fits a legal history."""
        found: list[Opinion] = []
        before: list[Bag] | None = [Counter()]
        alone = True
        for place, report in enumerate(sent):
            next_differs = place + 1 < len(sent) and not sent[place + 1].as_expected
            if alone and report.as_expected and not next_differs:
                found.append(Opinion(True))
                before = [report.rows]
                continue
            previous = sent[place - 1] if place else None
            opinion, before = self._step(report, previous, before)
            found.append(opinion)
            alone = before == [report.rows]
        return found

    def _step(
        self, report: SentDifference, previous: SentDifference | None, before: list[Bag] | None
    ) -> tuple[Opinion, list[Bag] | None]:
        """The opinion on a report, and its legal answers that fit; ``None`` where they cannot be listed."""
        if before is None:
            unknown = "" if report.as_expected else "the answer before cannot be told"
            return Opinion(report.as_expected, unknown), self._listed(report)
        try:
            now = self._legality.answers(report.due).bags()
            received = self._canonical(report, previous)
        except (OpenError, CutOffError) as error:
            return Opinion(report.as_expected, "" if report.as_expected else str(error)), None
        if len(before) * len(now) > MAX_CASES:
            return Opinion(report.as_expected, "" if report.as_expected else "too many histories are legal"), None
        fitting = [bag for bag in now if any(self._changes(old, bag) == received for old in before)]
        if report.as_expected and report.rows not in fitting:
            fitting.append(report.rows)
        return Opinion(bool(fitting)), fitting or now

    def _listed(self, report: SentDifference) -> list[Bag] | None:
        try:
            return self._legality.answers(report.due).bags()
        except (OpenError, CutOffError):
            return None

    def _changes(self, before: Bag, now: Bag) -> Bag:
        return Counter(difference(self._r2s, before, now))

    def _canonical(self, report: SentDifference, previous: SentDifference | None) -> Bag:
        """The received rows with SPARQL's own values of numbers, as the answers now or before have them."""
        possible = [self._legality.answers(report.due)]
        possible += [] if previous is None else [self._legality.answers(previous.due)]
        found: Bag = Counter()
        for row in report.received:
            bare, signs = (row[:-1], row[-1:]) if self._r2s is R2S.CHANGES and row[-1:] in SIGNS else (row, ())
            plain = next((own for each in possible if (own := each.canonical(bare)) != bare), bare)
            found[(*plain, *signs)] += 1
        return found
