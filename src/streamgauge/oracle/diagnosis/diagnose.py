"""Why answers are wrong: the nearest semantics, or named fault, under which the recorded answers come out exactly."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from math import inf

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.verdict import EQUAL_BITS, Diagnosis, Part
from streamgauge.oracle.diagnosis.explanation import ExplanationFit, Recorded, merged_answers
from streamgauge.oracle.diagnosis.models import Case, Fault, Model, ModelReport, Rows, Slip, Stream, Sway
from streamgauge.oracle.diagnosis.search import CLOSEST, Search, SearchResult, refuse
from streamgauge.oracle.judging.align import by_order
from streamgauge.oracle.judging.oracle import Progress

VERY_LONG = 3
"""Factor over the longest description of a whole-run fault from which models of two parts are tried as well."""
PER_FAMILY = 50
"""Values of each fine family (``Fault.fine``) that are combined with other faults."""
FINE_EVALUATIONS = 8_000
"""Maximum evaluations of such combinations; those with another number of reports are discarded without evaluation."""
NEAREST_ORIGINS = 3
"""Candidates for t0 under which such combinations are tried: those nearest to the recording as declared."""


class PatienceError(RuntimeError):
    """Raised by a ``progress`` callback to end a search that takes too long."""


def diagnose(run: Run, elements: Sequence[StreamElement], progress: Progress = lambda _done, _of: None) -> Diagnosis:
    """The models with the shortest descriptions that give exactly the recorded answers, or the closest one.

    Raises RefusedError if the run is too large or its query is undefined under the declared semantics, and
    PatienceError if ``progress`` does.
    """
    explanation = explained(run, elements, progress)
    if explanation.ended:
        raise PatienceError(explanation.ended)
    return explanation.diagnosis


@dataclass(frozen=True, slots=True)
class Explained:
    """A diagnosis with its evidence: the search, the declared case at its best t0, and the models in ``found``.

    ``ended`` says why the search ended early; ``found`` then has the models that fitted so far.
    """

    diagnosis: Diagnosis
    search: Search
    declared: Case
    found: tuple[SearchResult, ...]
    ended: str


def explained(run: Run, elements: Sequence[StreamElement], progress: Progress = lambda _done, _of: None) -> Explained:
    """The diagnosis of a run, with the models themselves.

    The horizon is the verdict's (``advanced_to``). An imported recording without hand-overs shows its end only by its
    answers: if no model fits it, the search is repeated with an open end. A search whose ``progress`` raises
    PatienceError returns the models found so far.
    """
    refuse(run, Stream(elements))
    explanation = _explained(Search(run, elements), progress)
    if run.fed or explanation.ended or explanation.diagnosis.exact or not explanation.diagnosis.differs:
        return explanation
    # Only if the first search fails: with an open end, fewer reports have to fit.
    elsewhere = _explained(Search(run, elements, open_ended=True), progress)
    return elsewhere if elsewhere.diagnosis.exact else explanation


def _explained(search: Search, progress: Progress) -> Explained:
    tried = _Tried(search, progress)
    declared, differs = tried.declared()
    results, ended = list[SearchResult](), ""
    try:
        if differs:
            results = tried.exact() or tried.closest()
    except PatienceError as error:
        results, ended = tried.fitting, str(error)
    # A closest model that is no closer than the declared semantics explains nothing.
    best = min((result.distance for result in results), default=differs)
    if best >= differs:
        results = []
    results = _simplest(results)
    bits: dict[tuple[Part, ...], float] = {}
    for result in results:
        bits.setdefault(result.parts, round(result.bits, 1))
    t0 = results[0].case.t0 if results else declared.t0
    recorded = merged_answers(search.reports(declared), search.recorded, search.variables)
    diagnosis = Diagnosis(tuple(bits), best, differs, max(len(recorded), differs), t0, tuple(bits.values()))
    return Explained(diagnosis, search, declared, tuple(results), ended)


def _simplest(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Each model once, with its shortest description; shortest first."""
    # One model may fit under several t0, and with slips in other places.
    least: dict[Model, SearchResult] = {}
    for result in results:
        if result.model not in least or result.bits < least[result.model].bits:
            least[result.model] = result
    return sorted(least.values(), key=lambda result: result.bits)


class _Tried:
    """The search through the models of one run, from the simplest on, with what was learned on the way."""

    def __init__(self, search: Search, progress: Progress) -> None:
        self.search, self._progress = search, progress
        self._effects: dict[Fault, bool] = {}
        self._plain: set[object] = set()
        self._nearest_origins: tuple[int, ...] = ()
        self.fitting: list[SearchResult] = []
        """Models found so far that give exactly the recorded answers."""
        self._done = 0
        single = len(search.faults) + len(search.fine)
        self._at_most(single + _steps(len(search.faults), len(search.faults), len(search.fine)))

    def declared(self) -> tuple[Case, int]:
        """The declared case at its best t0, and the number of reports that differ from it; 0 if none does."""
        tried: list[tuple[int, Case]] = []
        # Called for its RefusedError: ``Search.reports`` would take a query without a definition for one without
        # reports.
        self.search.simulator.reports(self.search.base)
        for case in self.search.cases(()):
            if self.search.comes_out(case):
                return case, 0
            reports = self.search.reports(case)
            self._plain.add(self.search.key(case, reports))
            tried.append((self.search.distance(case, reports), case))
        # Sorted by the distance alone: cases do not compare, and of equally near ones the first candidate stays first.
        tried.sort(key=lambda trial: trial[0])
        self._nearest_origins = tuple(case.t0 for _, case in tried[:NEAREST_ORIGINS])
        # At least 1: the distance may be 0 although no case came out, as it merges answers before
        # it compares, where ``comes_out`` takes them one by one.
        return tried[0][1], max(tried[0][0], 1)

    def exact(self) -> list[SearchResult]:
        """Models that give exactly the recorded answers: of one part, and of two if one needs a very long description.

        Fine faults (one of many values) are tried only if they could have a shorter description than what was found.
        """
        # In the order of the lengths of descriptions: a later stage runs only if it may still find one that is as
        # short.
        results, length = self._one(self.search.faults), self.search.length
        if _shortest(results) + EQUAL_BITS > length.shortest(self.search.fine):
            results += self._one(self.search.fine)
        if _shortest(results) > VERY_LONG * length.longest(self.search.faults):
            results += self._two(bool(results))
        return results

    def _one(self, faults: Sequence[Fault]) -> list[SearchResult]:
        """Exact models of one whole-run fault, or of one slip; slips come last because fitting them takes longest."""
        results: list[SearchResult] = []
        for fault in faults:
            self._tick()
            results += self._whole((fault,))
        return [*results, *self._slipped((), 1)] if faults is self.search.faults else results

    def _two(self, explained: bool) -> list[SearchResult]:
        """Exact models with two causes; ``explained`` omits combinations that are unlikely and expensive."""
        active = [fault for fault in self.search.faults if self._acts(fault)]
        self._at_most(_steps(len(active), len(self.search.faults), len(self.search.fine)))
        # Slips first, since a pair of faults of the whole run is rarer than two incidents.
        results = [*self._slipped((), 2)]
        for fault in active:
            self._tick()
            results += self._slipped((fault,), 1)
        for pair in combinations(active, 2):
            self._tick()
            if pair[0].family != pair[1].family:
                results += self._whole(pair)
        if explained:
            return results
        return results or [*self._refined(active)] or [*self._enabled(active)]

    def _refined(self, active: Sequence[Fault]) -> Iterator[SearchResult]:
        """Exact models of a fine fault with a slip, with an active fault, or with another fine fault.

        Bounded by ``FINE_EVALUATIONS``, with the first values of all families first.
        """
        fine, until = self._first_fine(), self.search.evaluated + FINE_EVALUATIONS
        for at, fault in enumerate(fine):
            self._tick()
            yield from self._slipped((fault,), 1, self._nearest_origins)
            for other in (*active, *fine[:at]):
                if self.search.evaluated > until:
                    return
                if fault.family != other.family:
                    yield from self._whole((fault, other), self._nearest_origins)

    def _first_fine(self) -> list[Fault]:
        """The fine faults of all families in turn, at most ``PER_FAMILY`` of each.

        A bounded search misses no family.
        """
        families: dict[str, list[Fault]] = {}
        for fault in self.search.fine:
            families.setdefault(fault.family, []).append(fault)
        # Worked example: with the families {a1, a2, a3} and {b1} the order is a1, b1, a2, a3.
        turns = zip_longest(*(faults[:PER_FAMILY] for faults in families.values()))
        return [fault for turn in turns for fault in turn if fault is not None]

    def _enabled(self, active: Sequence[Fault]) -> Iterator[SearchResult]:
        """Exact pairs with a fault that has no effect alone, such as a filter that only matters to late elements."""
        idle = [fault for fault in self.search.faults if fault not in active]
        for fault in active:
            for other in idle:
                self._tick()
                if fault.family != other.family:
                    yield from self._whole((fault, other))

    def closest(self) -> list[SearchResult]:
        """The model of one or two faults whose reports differ least, if none fits."""
        nearest = [(self._near((fault,)), fault) for fault in self.search.faults if self._acts(fault)]
        ranked = sorted(
            (trial for trial in nearest if trial[0]), key=lambda trial: trial[0].distance if trial[0] else 0
        )
        pairs = [
            self._near(pair)
            for pair in combinations([fault for _, fault in ranked[:CLOSEST]], 2)
            if pair[0].family != pair[1].family
        ]
        results = [result for result in (*(result for result, _ in ranked), *pairs) if result is not None]
        # One only, the first of the equally near ones: single faults come before pairs, the simpler before the less
        # simple.
        return sorted(results, key=lambda result: result.distance)[:1]

    def _near(self, faults: tuple[Fault, ...]) -> SearchResult | None:
        """The nearest case of these faults over all t0; counts as a step of the search."""
        self._tick()
        return self._nearest(faults)

    def _nearest(self, faults: tuple[Fault, ...]) -> SearchResult | None:
        best: SearchResult | None = None
        for case in self.search.cases(faults):
            far = self.search.distance(case, self.search.reports(case))
            if best is None or far < best.distance:
                best = SearchResult(faults, case, _parts(faults), None, far, self.search.length.of(faults, None))
        return best

    def _whole(self, faults: tuple[Fault, ...], origins: Sequence[int] | None = None) -> Iterator[SearchResult]:
        for case in self.search.cases(faults, origins):
            if self.search.comes_out(case):
                yield self._fits(
                    SearchResult(faults, case, _parts(faults), None, 0, self.search.length.of(faults, None))
                )
                return

    def _acts(self, fault: Fault) -> bool:
        """Whether a fault changes the declared reports at some t0; one that does not is not an explanation alone."""
        if fault not in self._effects:
            self._look()
            # Compared with the declared reports at every t0: a fault that only amounts to another t0 is none.
            keys = (self.search.key(case, self.search.reports(case)) for case in self.search.cases((fault,)))
            self._effects[fault] = any(key not in self._plain for key in keys)
        return self._effects[fault]

    def _slipped(
        self, faults: tuple[Fault, ...], count: int, origins: Sequence[int] | None = None
    ) -> Iterator[SearchResult]:
        """Exact models of these faults with ``count`` slips, or a sway and one slip fewer."""
        for case in self.search.cases(faults, origins):
            self._look()
            reports = self.search.reports(case)
            if faults and not self.search.similar(case, reports):
                continue
            for slips in combinations(self.search.slips, count):
                fit = self.search.fit(case, reports, slips)
                if fit is not None and len(fit.slipped) == count:
                    parts = tuple(slip.describe(places) for slip, places in fit.slipped.items())
                    yield self._result((*faults, *slips), case, (*_parts(faults), *parts), fit)
            # A sway takes the place of one slip, so a model has as many parts either way.
            for slips in combinations(self.search.slips, count - 1):
                yield from self._swaying(faults, case, slips)

    def _swaying(self, faults: tuple[Fault, ...], case: Case, slips: tuple[Slip, ...]) -> Iterator[SearchResult]:
        for sway in self.search.sways:
            swayed = self.search.swayed(case, sway, slips)
            if swayed is not None and len(swayed[0].slipped) == len(slips):
                fit, reports = swayed
                parts = tuple(slip.describe(places) for slip, places in fit.slipped.items())
                described = (*_parts(faults), sway.describe(fit.swayed, reports), *parts)
                yield self._result((*faults, sway, *slips), case, described, fit)

    def _result(self, model: Model, case: Case, parts: tuple[Part, ...], fit: ExplanationFit) -> SearchResult:
        return self._fits(SearchResult(model, case, parts, fit, 0, self.search.length.of(model, fit)))

    def _fits(self, result: SearchResult) -> SearchResult:
        self.fitting.append(result)
        return result

    def _tick(self) -> None:
        self._done += 1
        self._look()

    def _at_most(self, left: int) -> None:
        """Set the number of steps that may be left; they are all taken only if nothing fits."""
        self._of = self._done + max(1, left)

    def _look(self) -> None:
        """Report progress, which may raise PatienceError; the last step is not reported before the search is over."""
        self._progress(min(self._done, self._of - 1), self._of)


def _steps(active: int, faults: int, fine: int) -> int:
    """The steps of a search for two causes, and for the closest model: all are taken only if nothing fits.

    Active faults are tried with slips and in pairs, of two of them and with idle ones.
    """
    return active + active * (2 * faults - active - 1) // 2 + fine + faults


def _shortest(results: Iterable[SearchResult]) -> float:
    return min((result.bits for result in results), default=inf)


def _parts(faults: Iterable[Fault]) -> tuple[Part, ...]:
    return tuple(fault.part for fault in faults)


__all__ = ["Explained", "Model", "ModelReport", "Sway", "diagnose", "explained"]


@dataclass(frozen=True, slots=True)
class Worked:
    """A report that differs from the declared semantics: its instant and scope (ms), and rows (``None``: no report)."""

    instant: int | None
    scope: tuple[int, int] | None
    expected: Rows | None
    recorded: Rows | None
    model: Rows | None
    model_scope: tuple[int, int] | None
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A report of the model and the rows of the answers that it explains; ``None`` for a surplus or missed one."""

    report: ModelReport | None
    recorded: Rows | None


def worked(explained: Explained) -> Worked | None:
    """The first report that differs from the declared semantics, for a worked example; ``None`` if none does."""
    search, declared = explained.search, explained.search.reports(explained.declared)
    at = {report.instant: report for report in declared}
    best = explained.found[0] if explained.found else None
    for unit in _units(explained, best):
        instant = unit.report.instant if unit.report else None
        due = at.get(instant) if instant is not None else None
        if _differs(search.recorded, due, unit.recorded):
            model = unit.report if best else None
            return Worked(
                instant,
                (due.due.start, due.due.end) if due else None,
                due.rows if due else None,
                unit.recorded,
                model.rows if model else None,
                (model.due.start, model.due.end) if model else None,
                search.variables,
            )
    return None


def _differs(recorded: Recorded, due: ModelReport | None, rows: Rows | None) -> bool:
    if due is None or rows is None:
        return (due is None) != (rows is None)
    return not recorded.same(due.rows, rows)


def _units(explained: Explained, result: SearchResult | None) -> Iterator[_Unit]:
    search = explained.search
    case = result.case if result else explained.declared
    reports = search.reports(case)
    recorded = search.recorded.under(case.semantics.grain)
    fit = None if result is None else result.fit or search.fit(case, reports, ())
    if fit is None:
        yield from _aligned(reports, recorded, search.variables)
        return
    # A step that uses a report explains answers by it; one that uses none has surplus answers; one that explains none
    # lost the report.
    for (i, j, _), (ahead, after, _) in zip(fit.path, fit.path[1:], strict=False):
        report = fit.reports[i] if i < ahead else None
        rows = tuple(row for k in range(j, after) for row in recorded.rows(k)) if j < after else None
        yield _Unit(report, rows)


def _aligned(reports: tuple[ModelReport, ...], recorded: Recorded, variables: tuple[str, ...]) -> Iterator[_Unit]:
    answers = merged_answers(reports, recorded, variables)

    def similar(i: int, j: int) -> float:
        return float(recorded.same(reports[i].rows, answers[j].added))

    for i, j in by_order(range(len(reports)), range(len(answers)), similar):
        yield _Unit(None if i is None else reports[i], None if j is None else answers[j].added)
