"""Why answers are wrong: the nearest semantics, or named fault, under which the recorded answers come out exactly."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from math import inf

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.verdict import EQUAL_BITS, Diagnosis, Part
from streamgauge.oracle.diagnosis.explanation import ExplanationFit, Recorded, reports
from streamgauge.oracle.diagnosis.explanation import reports as recorded_reports
from streamgauge.oracle.diagnosis.models import Case, Fault, Model, Rows, Said, Slip, Stream, Sway
from streamgauge.oracle.diagnosis.search import CLOSEST, Search, SearchResult, refuse
from streamgauge.oracle.judging.align import by_order
from streamgauge.oracle.judging.oracle import Progress

VERY_LONG = 3
"""As long as how many parts of the whole run the description of one part is when models of two are tried beside it."""
PER_FAMILY = 50
"""How many of many values of a parameter are tried together with other faults."""
FINE_EVALUATIONS = 8_000
"""How many of these pairs are evaluated at most; those that report more or less often than recorded cost nothing."""
NEAREST_ORIGINS = 3
"""At how many t0 such pairs are tried: those at which the declared semantics comes nearest."""


class PatienceError(RuntimeError):
    """A search that was ended as it took too long, raised by a listener of its progress."""


def diagnose(run: Run, elements: Sequence[StreamElement], progress: Progress = lambda _done, _of: None) -> Diagnosis:
    """The models with the shortest descriptions that give exactly the recorded answers, or the closest one.

    Raises RefusedError when the run is too large, or its query has no meaning under the declared semantics;
    PatienceError when ``progress`` does.
    """
    explanation = explained(run, elements, progress)
    if explanation.ended:
        raise PatienceError(explanation.ended)
    return explanation.diagnosis


@dataclass(frozen=True, slots=True)
class Explained:
    """A diagnosis with what it was found from: the search, the declared case at its best t0, the models found.

    ``ended`` says why the search ended before all models were tried; those found are the ones that fit by then.
    """

    diagnosis: Diagnosis
    search: Search
    declared: Case
    found: tuple[SearchResult, ...]
    ended: str = ""


def explained(run: Run, elements: Sequence[StreamElement], progress: Progress = lambda _done, _of: None) -> Explained:
    """The diagnosis of a run, with the models themselves.

    The horizon is the verdict's (``advanced_to``). Where no model fits under it and the recording does not say what was
    fed, so that its end is known by its answers alone, models under which they end elsewhere are tried too. A search
    whose ``progress`` raises PatienceError ends with what was found by then.
    """
    refuse(run, Stream(elements))
    explanation = _explained(Search(run, elements), progress)
    if run.fed or explanation.ended or explanation.diagnosis.exact or not explanation.diagnosis.differs:
        return explanation
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
    best = min((result.distance for result in results), default=differs)
    if best >= differs:
        results = []
    results = _simplest(results)
    bits: dict[tuple[Part, ...], float] = {}
    for result in results:
        bits.setdefault(result.parts, round(result.bits, 1))
    t0 = results[0].case.t0 if results else declared.t0
    sayings = search.told(declared)
    reports = max(len(recorded_reports(sayings, search.recorded, search.variables)), differs)
    diagnosis = Diagnosis(tuple(bits), best, differs, reports, t0, tuple(bits.values()))
    return Explained(diagnosis, search, declared, tuple(results), ended)


def _simplest(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Each model once, as it is described most shortly; the shortest description first."""
    least: dict[Model, SearchResult] = {}
    for result in results:
        if result.model not in least or result.bits < least[result.model].bits:
            least[result.model] = result
    return sorted(least.values(), key=lambda result: result.bits)


class _Tried:
    """The models tried so far: tellings that were seen are not tried again."""

    def __init__(self, search: Search, progress: Progress) -> None:
        self.search, self._progress = search, progress
        self._effects: dict[Fault, bool] = {}
        self._plain: set[object] = set()
        self._nearest_origins: tuple[int, ...] = ()
        self.fitting: list[SearchResult] = []
        """The models found under which the answers come out."""
        self._done = 0
        self._of = 1
        self._at_most(_steps(len(search.faults) + len(search.fine), len(search.faults), len(search.fine)))

    def declared(self) -> tuple[Case, int]:
        """The declared case at its best t0, and how many reports differ from it; 0 when the answers come out."""
        tried: list[tuple[int, Case]] = []
        self.search.simulator.told(self.search.base)
        for case in self.search.cases(()):
            if self.search.comes_out(case):
                return case, 0
            sayings = self.search.told(case)
            self._plain.add(self.search.key(case, sayings))
            tried.append((self.search.distance(case, sayings), case))
        tried.sort(key=lambda trial: trial[0])
        self._nearest_origins = tuple(case.t0 for _, case in tried[:NEAREST_ORIGINS])
        return tried[0][1], max(tried[0][0], 1)

    def exact(self) -> list[SearchResult]:
        """Models under which the answers come out: of one part, and of two where one needs a very long description.

        Parts that are one of many values are tried only where the others need a longer description.
        """
        results, length = self._one(self.search.faults), self.search.length
        if _shortest(results) + EQUAL_BITS > length.shortest(self.search.fine):
            results += self._one(self.search.fine)
        if _shortest(results) > VERY_LONG * length.longest(self.search.faults):
            results += self._two(bool(results))
        return results

    def _one(self, faults: Sequence[Fault]) -> list[SearchResult]:
        """Models of one part, or of one slip, under which the answers come out; slips take longest, so come last."""
        results: list[SearchResult] = []
        for fault in faults:
            self._tick()
            results += self._whole((fault,))
        return [*results, *self._slipped((), 1)] if faults is self.search.faults else results

    def _two(self, explained: bool) -> list[SearchResult]:
        """Models of two parts; unlikely ones only when nothing is explained yet."""
        active = [fault for fault in self.search.faults if self._acts(fault)]
        self._at_most(_steps(0, len(active), len(self.search.fine), len(self.search.faults)))
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
        """One of many values with a slip, with a fault that acts, or with another such value.

        The first values of each family come first; a number of evaluations bounds the search.
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
        """The first values of each family, in turn."""
        families: dict[str, list[Fault]] = {}
        for fault in self.search.fine:
            families.setdefault(fault.family, []).append(fault)
        turns = zip_longest(*(faults[:PER_FAMILY] for faults in families.values()))
        return [fault for turn in turns for fault in turn if fault is not None]

    def _enabled(self, active: Sequence[Fault]) -> Iterator[SearchResult]:
        """Pairs with a fault that does nothing alone."""
        idle = [fault for fault in self.search.faults if fault not in active]
        for fault in active:
            for other in idle:
                self._tick()
                if fault.family != other.family:
                    yield from self._whole((fault, other))

    def closest(self) -> list[SearchResult]:
        """The model whose reports differ least, when none fits."""
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
        least = min((result.distance for result in results), default=0)
        return [result for result in results if result.distance == least][:1]

    def _near(self, faults: tuple[Fault, ...]) -> SearchResult | None:
        """The nearest of these models at any t0; a step of the search."""
        self._tick()
        return self._nearest(faults)

    def _nearest(self, faults: tuple[Fault, ...]) -> SearchResult | None:
        best: SearchResult | None = None
        for case in self.search.cases(faults):
            far = self.search.distance(case, self.search.told(case))
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
        """Whether a fault changes what is said at some t0."""
        if fault not in self._effects:
            self._look()
            keys = (self.search.key(case, self.search.told(case)) for case in self.search.cases((fault,)))
            self._effects[fault] = any(key not in self._plain for key in keys)
        return self._effects[fault]

    def _slipped(
        self, faults: tuple[Fault, ...], count: int, origins: Sequence[int] | None = None
    ) -> Iterator[SearchResult]:
        """Models of these faults and at most ``most`` slips, fewest slips first."""
        for case in self.search.cases(faults, origins):
            self._look()
            sayings = self.search.told(case)
            if faults and not self.search.similar(case, sayings):
                continue
            for slips in combinations(self.search.slips, count):
                if len({slip.family for slip in slips}) == count:
                    fit = self.search.fit(case, sayings, slips)
                    if fit is not None and len(fit.slipped) == count:
                        parts = tuple(slip.tell(places) for slip, places in fit.slipped.items())
                        yield self._found((*faults, *slips), case, (*_parts(faults), *parts), fit)
            for slips in combinations(self.search.slips, count - 1):
                yield from self._swaying(faults, case, slips)

    def _swaying(self, faults: tuple[Fault, ...], case: Case, slips: tuple[Slip, ...]) -> Iterator[SearchResult]:
        for sway in self.search.sways:
            swayed = self.search.swayed(case, sway, slips)
            if swayed is not None and len(swayed[0].slipped) == len(slips):
                fit, reports = swayed
                parts = tuple(slip.tell(places) for slip, places in fit.slipped.items())
                sayings = (*_parts(faults), sway.tell(fit.swayed, reports), *parts)
                yield self._found((*faults, sway, *slips), case, sayings, fit)

    def _found(self, model: Model, case: Case, parts: tuple[Part, ...], fit: ExplanationFit) -> SearchResult:
        return self._fits(SearchResult(model, case, parts, fit, 0, self.search.length.of(model, fit)))

    def _fits(self, result: SearchResult) -> SearchResult:
        self.fitting.append(result)
        return result

    def _tick(self) -> None:
        self._done += 1
        self._look()

    def _at_most(self, left: int) -> None:
        """So many steps may be left: all of them are taken only where nothing fits."""
        self._of = self._done + max(1, left)

    def _look(self) -> None:
        """Say how far the search is, which may end it."""
        self._progress(min(self._done, self._of - 1), self._of)


def _steps(single: int, active: int, fine: int, faults: int | None = None) -> int:
    """The most steps of a search: ``single`` faults, then pairs of ``active`` ones, with values and with the others.

    Pairs with one that does nothing alone are most where half of the faults act.
    """
    every = active if faults is None else faults
    idle = active * (every - active) if faults is not None else active * active // 4
    return single + active + active * (active - 1) // 2 + fine + idle + every + CLOSEST * (CLOSEST - 1) // 2


def _shortest(results: Iterable[SearchResult]) -> float:
    return min((result.bits for result in results), default=inf)


def _parts(faults: Iterable[Fault]) -> tuple[Part, ...]:
    return tuple(fault.part for fault in faults)


__all__ = ["Explained", "Model", "Said", "Sway", "diagnose", "explained"]


@dataclass(frozen=True, slots=True)
class Worked:
    """A report that differs from the declared semantics: its instant and scope (ms), and rows; ``None``: no report."""

    instant: int | None
    scope: tuple[int, int] | None
    expected: Rows | None
    recorded: Rows | None
    model: Rows | None
    model_scope: tuple[int, int] | None
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """One report of the model, and the answers that it explains; ``None`` where there is none."""

    said: Said | None
    recorded: Rows | None


def worked(explained: Explained) -> Worked | None:
    """The first report that differs from the declared semantics; ``None`` when none does."""
    search, declared = explained.search, explained.search.told(explained.declared)
    at = {saying.instant: saying for saying in declared}
    best = explained.found[0] if explained.found else None
    for unit in _units(explained, best):
        instant = unit.said.instant if unit.said else None
        due = at.get(instant) if instant is not None else None
        if _differs(search.recorded, due, unit.recorded):
            model = unit.said if best else None
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


def _differs(recorded: Recorded, due: Said | None, rows: Rows | None) -> bool:
    if due is None or rows is None:
        return (due is None) != (rows is None)
    return not recorded.same(due.rows, rows)


def _units(explained: Explained, result: SearchResult | None) -> Iterator[_Unit]:
    search = explained.search
    case = result.case if result else explained.declared
    sayings = search.told(case)
    recorded = search.recorded.under(case.semantics.grain)
    fit = None if result is None else result.fit or search.fit(case, sayings, ())
    if fit is None:
        yield from _aligned(sayings, recorded, search.variables)
        return
    for (i, j, _), (ahead, after, _) in zip(fit.path, fit.path[1:], strict=False):
        saying = fit.told[i] if i < ahead else None
        rows = tuple(row for k in range(j, after) for row in recorded.rows(k)) if j < after else None
        yield _Unit(saying, rows)


def _aligned(sayings: tuple[Said, ...], recorded: Recorded, variables: tuple[str, ...]) -> Iterator[_Unit]:
    answers = reports(sayings, recorded, variables)

    def similar(i: int, j: int) -> float:
        return float(recorded.same(sayings[i].rows, answers[j].added))

    for i, j in by_order(range(len(sayings)), range(len(answers)), similar):
        yield _Unit(None if i is None else sayings[i], None if j is None else answers[j].added)
