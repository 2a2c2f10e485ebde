"""Rows for which implementations may decide a FILTER or HAVING either way (docs/semantics.md, terms and numbers).

``bounds.py`` finds the reports that may have such rows, ``latitude.py`` says for each which readings of its content
are possible: rows that only some of them have are undecided. Queries without a comparison of computed numbers have
none.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.expected.reports import ContentInspection, Expect, Look, expected_reports, together
from streamgauge.oracle.judging import choices
from streamgauge.oracle.judging.bounds import bounded
from streamgauge.oracle.judging.compare import computed_columns, fits
from streamgauge.oracle.judging.cuts import every_instant, whole
from streamgauge.oracle.judging.decidable import DecidableContents, Narrowed
from streamgauge.oracle.judging.intervals import INTERVAL, OpenError, own
from streamgauge.oracle.judging.latitude import Latitude, Possible
from streamgauge.oracle.judging.limited import LimitedIntegers
from streamgauge.oracle.judging.support import Operands
from streamgauge.query.printer import sparql
from streamgauge.semantics.content import Contents
from streamgauge.semantics.definition import operator
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.stream import streamed


@dataclass(frozen=True, slots=True)
class Doubt:
    """The undecided part of one expected report: ``rows`` is a bag; ``silent`` when it may not be due at all."""

    rows: tuple[Row, ...] = ()
    silent: bool = False


CERTAIN = Doubt()


class Possibilities:
    """The possible answers of the reports of one stream under one t0, each computed when it is asked for."""

    def __init__(self, look: Callable[[], Look], query: ContinuousQuery, semantics: Semantics) -> None:
        self._looking = cache(look)
        bare = whole(query)
        asked = bare.query if bare is not None else query
        self._semantics = semantics
        self._latitude: Callable[[], Latitude] = cache(lambda: Latitude(asked, semantics))
        self._narrowed: Callable[[], Narrowed] = cache(lambda: Narrowed(query))
        self._decidable: Callable[[], DecidableContents] = cache(lambda: DecidableContents(query))
        self._operands = Operands(query.form)
        self._limits: Callable[[], LimitedIntegers] = cache(lambda: LimitedIntegers(query, semantics))
        self._known: dict[DueReport, Possible | str] = {}

    def _look(self, due: DueReport) -> Contents:
        return self._looking()(due)

    def of(self, due: DueReport) -> Possible:
        """Both readings of a report's content; OpenError with the reason where intervals cannot tell."""
        if due not in self._known:
            self._known[due] = self._computed(due)
        found = self._known[due]
        if isinstance(found, str):
            raise OpenError(found)
        return found

    def certain(self, due: DueReport) -> bool:
        """Whether nothing of a report's content is open to intervals, so that ``of`` raises no error."""
        return self._decidable().include(self._look(due))

    def near(self, due: DueReport, rows: Sequence[Row], computed: frozenset[int], *coarse: Sequence[Row]) -> Possible:
        """Both readings, in terms: ``rows`` of the plain answer but where the ``coarse`` readings differ from them.

        OpenError with the reason where intervals cannot tell.
        """
        narrowed = self._narrowed()
        query = None
        if narrowed.possible and self.certain(due):
            keys = {narrowed.key(row) for row in _differing(rows, *coarse)}
            query = narrowed.to(keys)
        if query is None:
            return _named(self.of(due), rows, computed)
        sides: tuple[list[Row], list[Row]] = [], []
        for row in rows:
            sides[narrowed.key(row) in keys].append(row)
        far, inside = map(tuple, sides)
        found = _named(Latitude(query, self._semantics).possible(self._look(due)), inside, computed)
        return Possible((*far, *found.loose), (*far, *found.tight))

    def refuse(self, due: DueReport) -> None:
        """OpenError where the query reads numbers that implementations need not support."""
        for inside in self._look(due):
            for arrival in inside:
                self._operands.refuse(arrival.triples)

    def exclude(self, due: DueReport, said: Sequence[Row]) -> bool:
        """Whether rows are wrong for a report by all implementations, whatever numbers they support."""
        return self._limits().exclude(self._look(due), said)

    def _computed(self, due: DueReport) -> Possible | str:
        try:
            return self._latitude().possible(self._look(due))
        except (OpenError, RefusedError) as error:
            return str(error)


def possibilities(expect: Expect, query: ContinuousQuery, semantics: Semantics, t0: int) -> Possibilities | None:
    """The possible answers of what ``expect`` gives; ``None`` where it does not show the contents."""
    if not isinstance(expect, ContentInspection):
        return None
    return Possibilities(lambda: expect.look(query, semantics, t0), query, semantics)


Rows = Mapping[DueReport, tuple[Row, ...]]


def doubts(
    expect: Expect,
    query: ContinuousQuery,
    semantics: Semantics,
    advanced_to: int,
    t0: int,
    possible: Possibilities | None,
) -> tuple[tuple[ExpectedReport, ...], list[Doubt]]:
    """The expected reports without undecided rows, and beside each what is undecided about it; times in ms."""
    forms = bounded(query.form)
    if forms is None or isinstance(query.form.pattern, a.Slice):
        plain = expect(query, semantics, advanced_to, t0)
        return plain, [CERTAIN] * len(plain)
    every, plainly = every_instant(query, semantics), replace(query, r2s=R2S.RSTREAM)
    moved = [(replace(plainly, form=form, sparql=sparql(form)), every) for form in forms]
    asked = [(query, semantics), (plainly, every)][: 1 if every == semantics else 2]
    found = together(expect, [*asked, *moved], advanced_to, t0)
    plain, base, coarse = found[0], found[len(asked) - 1], found[len(asked) :]
    bags = {report.due: report.rows for report in base}
    near: list[Rows] = [{report.due: report.rows for report in one} for one in coarse]
    readings = _readings(bags, near, possible, computed_columns(query.form))
    if all(reading == bags for reading in readings):
        return plain, [CERTAIN] * len(plain)
    sizes, r2s = {report.due: report.content for report in base}, operator(query, semantics)
    others = [expected_reports(streamed(reading.items(), r2s, semantics), sizes, query, r2s) for reading in readings]
    return _agreed([plain, *others])


def _readings(
    plain: Rows, near: Sequence[Rows], possible: Possibilities | None, computed: frozenset[int]
) -> list[Rows]:
    """The loose and the tight reading of every instant, exact where the coarse ones differ."""
    loose, tight = dict(near[0]), dict(near[1])
    for due, rows in plain.items():
        found: Possible | None = Possible(loose[due], tight[due])
        if not _alike(loose[due], tight[due], rows) and possible is not None:
            found = _exact(possible, due, rows, computed, loose[due], tight[due])
        if found is None or _alike(found.loose, found.tight, rows):
            loose[due] = tight[due] = rows
        else:
            loose[due], tight[due] = found.loose, found.tight
    return [loose, tight]


def _alike(first: Sequence[Row], *others: Sequence[Row]) -> bool:
    if all(other == first for other in others):
        return True
    counted = Counter(first)
    return all(Counter(other) == counted for other in others)


def _differing(*bags: Sequence[Row]) -> set[Row]:
    """The rows that some bags have more often than others."""
    counted = [Counter(bag) for bag in bags]
    return {row for row in set().union(*counted) if len({count[row] for count in counted}) > 1}


def _exact(
    possible: Possibilities, due: DueReport, rows: Sequence[Row], computed: frozenset[int], *coarse: Sequence[Row]
) -> Possible | None:
    """Both readings, ``None`` where intervals cannot tell: what is compared with the plain answer is then unknown."""
    try:
        return possible.near(due, rows, computed, *coarse)
    except OpenError:
        return None


def _named(found: Possible, plain: Sequence[Row], computed: frozenset[int]) -> Possible:
    loose = named(found.loose, plain, computed)
    return Possible(loose, loose if found.tight is found.loose else named(found.tight, plain, computed))


def named(rows: Iterable[Row], plain: Sequence[Row], computed: frozenset[int]) -> tuple[Row, ...]:
    """Rows with interval literals as rows of terms: those of the plain answer that fit, else SPARQL's own value."""
    left = Counter(plain)
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in left:
        groups[_key(row, computed)].append(row)
    found: list[Row] = []
    for row in rows:
        term = row if left[row] > 0 else _fitting(row, groups[_key(row, computed)], left, computed)
        left[term] -= 1
        found.append(term)
    return tuple(found)


def _key(row: Row, computed: frozenset[int]) -> Row:
    return tuple(term for place, term in enumerate(row) if place not in computed)


def _fitting(row: Row, others: Sequence[Row], left: Counter[Row], computed: frozenset[int]) -> Row:
    for other in others:
        if left[other] > 0 and all(fits(row[place], other[place]) for place in computed):
            return other
    return tuple(map(_own, row))


def _own(term: Term | None) -> Term | None:
    if choices.is_open(term):
        return choices.one_of(term or "")
    return own(term) if term and INTERVAL in term else term


def _agreed(versions: Sequence[Sequence[ExpectedReport]]) -> tuple[tuple[ExpectedReport, ...], list[Doubt]]:
    found: list[tuple[ExpectedReport, Doubt]] = []
    bags: list[dict[DueReport, ExpectedReport]] = [{report.due: report for report in one} for one in versions]
    every = {report.due: report for one in reversed(versions) for report in one}
    for due in sorted(every, key=lambda due: (due.instant, due.seen)):
        counted = [Counter(bag[due].rows) if due in bag else Counter[Row]() for bag in bags]
        certain, possible = counted[0].copy(), counted[0].copy()
        for other in counted[1:]:
            certain &= other
            possible |= other
        rest = possible - certain
        doubt = Doubt(tuple(rest.elements()), any(due not in bag for bag in bags))
        found.append((replace(every[due], rows=tuple(certain.elements())), doubt))
    return tuple(report for report, _ in found), [doubt for _, doubt in found]
