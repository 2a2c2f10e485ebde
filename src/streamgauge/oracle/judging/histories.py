"""Istream and Dstream where the answer before has several legal values: the histories that fit all answers so far.

A history is one legal answer per report. Among the histories that fit the differences so far, only the last
answers matter for what comes next:

    legal before: {a}, {a, b}     legal now: {a, b}     Istream sent b: before was {a}; sent nothing: before was {a, b}

Rows that share no choice are separate parts, so GROUP_CONCAT in each of 20 groups is 20 small searches, not one over
their product. Legal answers are enumerated only around a report that differs from the evaluator's own history: from the
last report before it with a single legal answer to the next at which only the evaluator's history fits.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Final, TypeAlias

from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S
from streamgauge.model.terms import Row
from streamgauge.oracle.worlds.components import components
from streamgauge.oracle.worlds.conditions import MAX_CASES, CutOffError
from streamgauge.oracle.worlds.intervals import OpenError
from streamgauge.oracle.worlds.legality import Opinion, ReportLegality
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.oracle.worlds.openings import sent_texts
from streamgauge.semantics.definition import difference

Bag: TypeAlias = Counter[Row]
Part: TypeAlias = list[Bag]
"""The legal bags of a set of rows that shares no choice with any other row."""

MAX_PAIRS: Final = 50 * MAX_CASES
"""Maximum number of pairs (bag before, bag now) compared for one part; beyond it the verdict is unknown."""


@dataclass(frozen=True, slots=True)
class SentDifference:
    """A report with the evaluator's whole answer (``rows``), and the difference received.

    ``as_expected``: it is the evaluator's own difference. A report that is evaluated but not ``sent`` (before
    ``since``) has nothing received to compare.
    """

    due: DueReport
    rows: Bag
    received: tuple[Row, ...]
    as_expected: bool
    sent: bool


class Histories:
    """The search for legal histories through one run."""

    def __init__(self, legality: ReportLegality, r2s: R2S, sent: Sequence[SentDifference]) -> None:
        self._legality, self._r2s, self._sent = legality, r2s, sent
        self._texts = sent_texts(row for report in sent for row in report.received)

    def opinions(self) -> list[Opinion]:
        """For each report in order, whether its difference fits a legal history."""
        sent = self._sent
        opinions: list[Opinion] = []
        # The answer before the first report is empty.
        before: list[Part] | None = [[Counter()]]
        while (place := len(opinions)) < len(sent):
            differing = next((at for at in range(place, len(sent)) if not sent[at].as_expected), len(sent))
            # Before ``start`` all differences are the evaluator's own; at ``start`` the search begins from the one
            # answer known.
            start = self._known_before(place, differing)
            opinions += [Opinion(True)] * (start - place)
            before = before if start == place else [[sent[start - 1].rows]]
            for at in range(start, len(sent)):
                opinion, before = self._step(sent[at], sent[at - 1] if at else None, before)
                opinions.append(opinion)
                # Only the evaluator's own answer is left: from here on its history decides again, without enumeration.
                if at >= differing and before is not None and _one(before) == sent[at].rows:
                    break
        return opinions

    def _known_before(self, place: int, differing: int) -> int:
        """The latest place up to ``differing`` whose previous report has one legal answer only, else ``place``."""
        if differing == len(self._sent):
            return differing
        while differing > place and not self._legality.is_certain(self._sent[differing - 1].due):
            differing -= 1
        return differing

    def _step(
        self, report: SentDifference, previous: SentDifference | None, before: list[Part] | None
    ) -> tuple[Opinion, list[Part] | None]:
        """The opinion on a report, and its legal answers that fit so far; ``None`` if there are too many to list."""
        try:
            closed = self._legality.is_closed(report.due)
            now = [[report.rows]] if closed else self._legality.answers(report.due).parts(self._texts)
            if not report.sent:
                return Opinion(True), now
            # Only this report cannot be judged; the next one starts from the legal answers of this one.
            if before is None:
                return _unknown(report, "the answer before cannot be told"), now
            received = self._canonical(report, previous)
            return self._fitting(before, now, received)
        except (OpenError, CutOffError) as error:
            return _unknown(report, str(error)), None

    def _fitting(self, before: list[Part], now: list[Part], received: Bag) -> tuple[Opinion, list[Part]]:
        """Whether a pair of legal answers has the received difference, and the answers now of all such pairs."""
        after: list[Part] = []
        illegal: list[Overlap] = []
        common = 0
        for linked in _linked(before, now):
            olds, news = _sums(linked[0]), _sums(linked[1])
            if len(olds) * len(news) > MAX_PAIRS:
                raise CutOffError(f"more than {MAX_PAIRS:,} histories are legal")
            rows = {row for bag in (*olds, *news) for row in bag}
            # Received rows go to the part that can produce them; what no part takes is surplus.
            wanted = Counter({row: times for row, times in received.items() if self._bare(row) in rows})
            received = received - wanted
            fitting = [new for new in news if any(self._changes(old, new) == wanted for old in olds)]
            common += wanted.total() if fitting else 0
            if not fitting:
                illegal.append(self._nearest(olds, news, wanted))
            # A part without a fit is reported once; later reports start from all its answers, so one wrong answer costs
            # one window.
            after.append(fitting or news)
        if not illegal and not received:
            return Opinion(True), after
        common += sum(report.common for report in illegal)
        missing = tuple(row for report in illegal for row in report.missing)
        surplus = (*(row for report in illegal for row in report.surplus), *received.elements())
        return Opinion(False, nearest=Overlap(common, missing, surplus)), after

    def _nearest(self, olds: Part, news: Part, wanted: Bag) -> Overlap:
        """The overlap with the nearest legal difference among the first ``MAX_CASES``, for the witnesses."""
        pairs = islice(product(olds, news), MAX_CASES)
        legal = min(
            (self._changes(*pair) for pair in pairs), key=lambda bag: (bag - wanted).total() + (wanted - bag).total()
        )
        both = (legal & wanted).total()
        return Overlap(both, tuple((legal - wanted).elements()), tuple((wanted - legal).elements()))

    def _changes(self, before: Bag, now: Bag) -> Bag:
        return Counter(difference(self._r2s, before, now))

    def _bare(self, row: Row) -> Row:
        """A row without its sign."""
        return row[:-1] if self._r2s is R2S.CHANGES else row

    def _canonical(self, report: SentDifference, previous: SentDifference | None) -> Bag:
        """The received rows with each number in the form in which the legal answers (now or before) write it."""
        bare = list(dict.fromkeys(map(self._bare, report.received)))
        own: dict[Row, Row] = {}
        for known in (previous, report):
            if known is not None and not self._legality.is_closed(known.due):
                own |= self._legality.answers(known.due).canonical(bare)
        return Counter(
            (*own.get(self._bare(row), self._bare(row)), *row[len(self._bare(row)) :]) for row in report.received
        )


def _unknown(report: SentDifference, reason: str) -> Opinion:
    """The opinion on a report whose legal answers cannot be listed.

    Right if it is the evaluator's own, else unknown.
    """
    return Opinion(report.as_expected, "" if report.as_expected else reason)


def _one(parts: list[Part]) -> Bag | None:
    """The answer, if each part has exactly one bag; else ``None``."""
    return None if any(len(part) > 1 for part in parts) else _sums(parts)[0]


def _sums(parts: Sequence[Part]) -> Part:
    """The whole answers of these parts: one for each combination of their bags."""
    if prod(map(len, parts)) > MAX_PAIRS:
        raise CutOffError(f"more than {MAX_PAIRS:,} histories are legal")
    return [sum(bags, Counter[Row]()) for bags in product(*parts)]


def _linked(before: list[Part], now: list[Part]) -> Iterator[tuple[list[Part], list[Part]]]:
    """Groups of parts before and now that share rows, each of which can be decided alone.

    Rows of certain parts (one bag) that no open part contains form one group, compared by a single difference.
    """
    sides = [(side, part) for side, parts in enumerate((before, now)) for part in parts]
    # A worked example: before {x} certain and {g1} or {g2} open, now {x} certain and {g2} or {g3}. The open parts
    # share g2 and are decided together; x is in the group of certain rows.
    open_rows = {row for _, part in sides if len(part) > 1 for bag in part for row in bag}
    linked: list[tuple[int, Part]] = []
    rest: list[tuple[int, Part]] = []
    for side, part in sides:
        if len(part) > 1:
            linked.append((side, part))
            continue
        (bag,) = part
        shared = [row for row in bag if row in open_rows]
        linked += ((side, [Counter({row: bag[row]})]) for row in shared)
        rest.append((side, [Counter({row: times for row, times in bag.items() if row not in open_rows})]))
    for group in (rest, *components(linked, lambda item: {row for bag in item[1] for row in bag})):
        yield [part for side, part in group if side == 0], [part for side, part in group if side == 1]
