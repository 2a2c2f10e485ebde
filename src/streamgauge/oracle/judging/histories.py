"""Differences to the report before, where what was sent before is open: the histories that fit all answers so far.

Istream, Dstream and both send what changes. A history is one legal answer for each report; of those that fit the
differences received so far only the last answers are kept:

    legal before: {a}, {a, b}     legal now: {a, b}     Istream sent b: before was {a}; sent nothing: before was {a, b}

Rows that share no choice are kept apart, so a list of GROUP_CONCAT for each of 20 groups is 20 small searches. Legal
answers are listed where a report differs from the evaluator's own history, from the last report before it on that has
one legal answer only, to the next at which the own history is the only one that fits.
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
from streamgauge.oracle.worlds.openings import SentTexts, sent_texts
from streamgauge.semantics.definition import SIGNS, difference

Bag: TypeAlias = Counter[Row]
Part: TypeAlias = list[Bag]
"""The bags that some rows may be, apart from all other rows."""

MAX_PAIRS: Final = 50 * MAX_CASES
"""How many pairs of a bag before and a bag now are compared for one part."""


@dataclass(frozen=True, slots=True)
class SentDifference:
    """A report with the evaluator's whole answer, and what was received; ``as_expected`` where that is its own.

    Where nothing is ``sent``, as before the beginning of reports, what was received says nothing.
    """

    due: DueReport
    rows: Bag
    received: tuple[Row, ...]
    as_expected: bool
    sent: bool = True


class Histories:
    """The legal histories of one run."""

    def __init__(self, legality: ReportLegality, r2s: R2S) -> None:
        self._legality, self._r2s = legality, r2s
        self._texts: SentTexts = {}

    def opinions(self, sent: Sequence[SentDifference]) -> list[Opinion]:
        """Whether each difference fits a legal history."""
        self._texts = sent_texts(row for report in sent for row in report.received)
        opinions: list[Opinion] = []
        before: list[Part] | None = [[Counter()]]
        while (place := len(opinions)) < len(sent):
            differing = next((at for at in range(place, len(sent)) if not sent[at].as_expected), len(sent))
            start = self._known_before(sent, place, differing)
            opinions += [Opinion(True)] * (start - place)
            before = before if start == place else [[sent[start - 1].rows]]
            for at in range(start, len(sent)):
                opinion, before = self._step(sent[at], sent[at - 1] if at else None, before)
                opinions.append(opinion)
                if at >= differing and before is not None and _one(before) == sent[at].rows:
                    break
        return opinions

    def _known_before(self, sent: Sequence[SentDifference], place: int, differing: int) -> int:
        """The last place up to the first difference before which one answer only is legal, or the first place."""
        if differing == len(sent):
            return differing
        while differing > place and not self._legality.is_certain(sent[differing - 1].due):
            differing -= 1
        return differing

    def _step(
        self, report: SentDifference, previous: SentDifference | None, before: list[Part] | None
    ) -> tuple[Opinion, list[Part] | None]:
        """The opinion on a report, and its legal answers that fit; ``None`` where they cannot be listed."""
        try:
            closed = self._legality.is_closed(report.due)
            now = [[report.rows]] if closed else self._legality.answers(report.due).parts(self._texts)
            if not report.sent:
                return Opinion(True), now
            if before is None:
                return _unknown(report, "the answer before cannot be told"), now
            received = self._canonical(report, previous)
            return self._fitting(before, now, received)
        except (OpenError, CutOffError) as error:
            return _unknown(report, str(error)), None

    def _fitting(self, before: list[Part], now: list[Part], received: Bag) -> tuple[Opinion, list[Part]]:
        """Whether some pair of legal answers has the received difference, and the answers now of such pairs."""
        after: list[Part] = []
        illegal: list[Overlap] = []
        common = 0
        for linked in _linked(before, now):
            olds, news = _sums(linked[0]), _sums(linked[1])
            if len(olds) * len(news) > MAX_PAIRS:
                raise CutOffError(f"more than {MAX_PAIRS:,} histories are legal")
            rows = {row for bag in (*olds, *news) for row in bag}
            wanted = Counter({row: times for row, times in received.items() if self._bare(row) in rows})
            received = received - wanted
            fitting = [new for new in news if any(self._changes(old, new) == wanted for old in olds)]
            common += wanted.total() if fitting else 0
            if not fitting:
                illegal.append(self._nearest(olds, news, wanted))
            after.append(fitting or news)
        if not illegal and not received:
            return Opinion(True), after
        common += sum(report.common for report in illegal)
        missing = tuple(row for report in illegal for row in report.missing)
        surplus = (*(row for report in illegal for row in report.surplus), *received.elements())
        return Opinion(False, nearest=Overlap(common, missing, surplus)), after

    def _nearest(self, olds: Part, news: Part, wanted: Bag) -> Overlap:
        """A legal difference that has much in common with the received one."""
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
        return row[:-1] if self._r2s is R2S.CHANGES and row[-1:] in SIGNS else row

    def _canonical(self, report: SentDifference, previous: SentDifference | None) -> Bag:
        """The received rows with SPARQL's own values of numbers, as the answers now or before have them."""
        bare = list(dict.fromkeys(map(self._bare, report.received)))
        own: dict[Row, Row] = {}
        for known in (previous, report):
            if known is not None and not self._legality.is_closed(known.due):
                own |= self._legality.answers(known.due).canonical(bare)
        return Counter(
            (*own.get(self._bare(row), self._bare(row)), *row[len(self._bare(row)) :]) for row in report.received
        )


def _unknown(report: SentDifference, reason: str) -> Opinion:
    """The opinion on a report that cannot be told from others: right where it is the evaluator's own."""
    return Opinion(report.as_expected, "" if report.as_expected else reason)


def _one(parts: list[Part]) -> Bag | None:
    """The one answer of some parts; ``None`` where there are several."""
    return None if any(len(part) > 1 for part in parts) else _sums(parts)[0]


def _sums(parts: Sequence[Part]) -> Part:
    """The bags of several parts together."""
    if prod(map(len, parts)) > MAX_PAIRS:
        raise CutOffError(f"more than {MAX_PAIRS:,} histories are legal")
    return [sum(bags, Counter[Row]()) for bags in product(*parts)]


def _linked(before: list[Part], now: list[Part]) -> Iterator[tuple[list[Part], list[Part]]]:
    """Parts before and now, apart where they have no row in common; the rows of all certain parts are together."""
    sides = [(side, part) for side, parts in enumerate((before, now)) for part in parts]
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
