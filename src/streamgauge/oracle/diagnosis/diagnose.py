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
    found = explained(run, elements, progress)
    if found.ended:
        raise PatienceError(found.ended)
    return found.diagnosis


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
    found = _explained(Search(run, elements), progress)
    if run.fed or found.ended or found.diagnosis.exact or not found.diagnosis.differs:
        return found
    elsewhere = _explained(Search(run, elements, open_ended=True), progress)
    return elsewhere if elsewhere.diagnosis.exact else found


def _explained(search: Search, progress: Progress) -> Explained:
    tried = _Tried(search, progress)
    declared, differs = tried.declared()
    found, ended = list[SearchResult](), ""
    try:
        if differs:
            found = tried.exact() or tried.closest()
    except PatienceError as error:
        found, ended = tried.fitting, str(error)
    best = min((each.distance for each in found), default=differs)
    if best >= differs:
        found = []
    found = _simplest(found)
    bits: dict[tuple[Part, ...], float] = {}
    for each in found:
        bits.setdefault(each.parts, round(each.bits, 1))
    t0 = found[0].case.t0 if found else declared.t0
    told = search.told(declared)
    reports = max(len(recorded_reports(told, search.recorded, search.variables)), differs)
    diagnosis = Diagnosis(tuple(bits), best, differs, reports, t0, tuple(bits.values()))
    return Explained(diagnosis, search, declared, tuple(found), ended)


def _simplest(found: Sequence[SearchResult]) -> list[SearchResult]:
    """Each model once, as it is described most shortly; the shortest description first."""
    least: dict[Model, SearchResult] = {}
    for each in found:
        if each.model not in least or each.bits < least[each.model].bits:
            least[each.model] = each
    return sorted(least.values(), key=lambda each: each.bits)


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
            told = self.search.told(case)
            self._plain.add(self.search.key(case, told))
            tried.append((self.search.distance(case, told), case))
        tried.sort(key=lambda each: each[0])
        self._nearest_origins = tuple(case.t0 for _, case in tried[:NEAREST_ORIGINS])
        return tried[0][1], max(tried[0][0], 1)

    def exact(self) -> list[SearchResult]:
        """Models under which the answers come out: of one part, and of two where one needs a very long description.

        Parts that are one of many values are tried only where the others need a longer description.
        """
        found, length = self._one(self.search.faults), self.search.length
        if _shortest(found) + EQUAL_BITS > length.shortest(self.search.fine):
            found += self._one(self.search.fine)
        if _shortest(found) > VERY_LONG * length.longest(self.search.faults):
            found += self._two(bool(found))
        return found

    def _one(self, faults: Sequence[Fault]) -> list[SearchResult]:
        """Models of one part, or of one slip, under which the answers come out; slips take longest, so come last."""
        found: list[SearchResult] = []
        for fault in faults:
            self._tick()
            found += self._whole((fault,))
        return [*found, *self._slipped((), 1)] if faults is self.search.faults else found

    def _two(self, explained: bool) -> list[SearchResult]:
        """Models of two parts; unlikely ones only when nothing is explained yet."""
        active = [fault for fault in self.search.faults if self._acts(fault)]
        self._at_most(_steps(0, len(active), len(self.search.fine), len(self.search.faults)))
        found = [*self._slipped((), 2)]
        for fault in active:
            self._tick()
            found += self._slipped((fault,), 1)
        for pair in combinations(active, 2):
            self._tick()
            if pair[0].family != pair[1].family:
                found += self._whole(pair)
        if explained:
            return found
        return found or [*self._refined(active)] or [*self._enabled(active)]

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
        ranked = sorted((each for each in nearest if each[0]), key=lambda each: each[0].distance if each[0] else 0)
        pairs = [
            self._near(pair)
            for pair in combinations([fault for _, fault in ranked[:CLOSEST]], 2)
            if pair[0].family != pair[1].family
        ]
        found = [each for each in (*(each for each, _ in ranked), *pairs) if each is not None]
        least = min((each.distance for each in found), default=0)
        return [each for each in found if each.distance == least][:1]

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
        self, faults: tuple[Fault, ...], most: int, origins: Sequence[int] | None = None
    ) -> Iterator[SearchResult]:
        """Models of these faults and at most ``most`` slips, fewest slips first."""
        for case in self.search.cases(faults, origins):
            self._look()
            told = self.search.told(case)
            if faults and not self.search.similar(case, told):
                continue
            for slips in combinations(self.search.slips, most):
                if len({slip.family for slip in slips}) == most:
                    fit = self.search.fit(case, told, slips)
                    if fit is not None and len(fit.slipped) == most:
                        parts = tuple(slip.tell(places) for slip, places in fit.slipped.items())
                        yield self._found((*faults, *slips), case, (*_parts(faults), *parts), fit)
            for slips in combinations(self.search.slips, most - 1):
                yield from self._swaying(faults, case, slips)

    def _swaying(self, faults: tuple[Fault, ...], case: Case, slips: tuple[Slip, ...]) -> Iterator[SearchResult]:
        for sway in self.search.sways:
            found = self.search.swayed(case, sway, slips)
            if found is not None and len(found[0].slipped) == len(slips):
                fit, reports = found
                parts = tuple(slip.tell(places) for slip, places in fit.slipped.items())
                told = (*_parts(faults), sway.tell(fit.swayed, reports), *parts)
                yield self._found((*faults, sway, *slips), case, told, fit)

    def _found(self, model: Model, case: Case, parts: tuple[Part, ...], fit: ExplanationFit) -> SearchResult:
        return self._fits(SearchResult(model, case, parts, fit, 0, self.search.length.of(model, fit)))

    def _fits(self, found: SearchResult) -> SearchResult:
        self.fitting.append(found)
        return found

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


def _shortest(found: Iterable[SearchResult]) -> float:
    return min((each.bits for each in found), default=inf)


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
    at = {said.instant: said for said in declared}
    found = explained.found[0] if explained.found else None
    for unit in _units(explained, found):
        instant = unit.said.instant if unit.said else None
        due = at.get(instant) if instant is not None else None
        if _differs(search.recorded, due, unit.recorded):
            model = unit.said if found else None
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


def _units(explained: Explained, found: SearchResult | None) -> Iterator[_Unit]:
    search = explained.search
    case = found.case if found else explained.declared
    told = search.told(case)
    recorded = search.recorded.under(case.semantics.grain)
    fit = None if found is None else found.fit or search.fit(case, told, ())
    if fit is None:
        yield from _aligned(told, recorded, search.variables)
        return
    for (i, j, _), (ahead, after, _) in zip(fit.path, fit.path[1:], strict=False):
        said = fit.told[i] if i < ahead else None
        rows = tuple(row for k in range(j, after) for row in recorded.rows(k)) if j < after else None
        yield _Unit(said, rows)


def _aligned(told: tuple[Said, ...], recorded: Recorded, variables: tuple[str, ...]) -> Iterator[_Unit]:
    answers = reports(told, recorded, variables)

    def similar(i: int, j: int) -> float:
        return float(recorded.same(told[i].rows, answers[j].added))

    for i, j in by_order(range(len(told)), range(len(answers)), similar):
        yield _Unit(None if i is None else told[i], None if j is None else answers[j].added)
