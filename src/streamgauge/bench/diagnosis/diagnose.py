"""Why answers are wrong: the nearest semantics, or named fault, under which the recorded answers come out exactly."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from streamgauge.bench.diagnosis.distance import reports as recorded_reports
from streamgauge.bench.diagnosis.models import Case, Fault, Model, Said, Slip, Stream, Sway
from streamgauge.bench.diagnosis.search import CLOSEST, Found, Progress, Search, refuse
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.verdict import Diagnosis, Part


def diagnose(run: Run, elements: Sequence[StreamElement], progress: Progress = lambda _done, _of: None) -> Diagnosis:
    """The models with fewest parts that give exactly the recorded answers, or the closest ones.

    Raises RefusedError when the run is too large, or its query has no meaning under the declared semantics.
    """
    return explained(run, elements, progress).diagnosis


@dataclass(frozen=True, slots=True)
class Explained:
    """A diagnosis with what it was found from: the search, the declared case at its best t0, the models found."""

    diagnosis: Diagnosis
    search: Search
    declared: Case
    found: tuple[Found, ...]


def explained(run: Run, elements: Sequence[StreamElement], progress: Progress = lambda _done, _of: None) -> Explained:
    """The diagnosis of a run, with the models themselves.

    The horizon is the verdict's (``advanced_to``). Where no model fits under it and the recording does not say what was
    fed, so that its end is known by its answers alone, models under which they end elsewhere are tried too.
    """
    refuse(run, Stream(elements))
    found = _explained(Search(run, elements), progress)
    if run.fed or found.diagnosis.exact or not found.diagnosis.differs:
        return found
    elsewhere = _explained(Search(run, elements, open_ended=True), progress)
    return elsewhere if elsewhere.diagnosis.exact else found


def _explained(search: Search, progress: Progress) -> Explained:
    tried = _Tried(search, progress)
    declared, differs = tried.declared()
    found: list[Found] = []
    if differs:
        found = tried.one() or tried.two() or tried.closest()
    best = min((each.distance for each in found), default=differs)
    if best >= differs:
        found = []
    found = _simplest(found)
    models = tuple(dict.fromkeys(each.parts for each in found))
    t0 = found[0].case.t0 if found else declared.t0
    told = search.told(declared)
    reports = max(len(recorded_reports(told, search.recorded, search.variables)), differs)
    return Explained(Diagnosis(models, best, differs, reports, t0), search, declared, tuple(found))


def _simplest(found: Sequence[Found]) -> list[Found]:
    """Each model once, as it slips least; what holds for the whole run before what slips now and then."""
    least: dict[Model, Found] = {}
    for each in found:
        if each.model not in least or each.slips < least[each.model].slips:
            least[each.model] = each
    return sorted(least.values(), key=lambda each: (each.slipping, each.slips))


class _Tried:
    """What was tried so far: tellings that were seen are not tried again."""

    def __init__(self, search: Search, progress: Progress) -> None:
        self.search, self._progress = search, progress
        self._distances: dict[object, tuple[int, Case, tuple[Fault, ...]]] = {}
        self._effects: dict[Fault, bool] = {}
        self._plain: set[object] = set()
        self._done = 0
        self._of = 2 * len(search.faults)

    def declared(self) -> tuple[Case, int]:
        """The declared case at its best t0, and how many reports differ from it; 0 when the answers come out."""
        best: tuple[int, Case] | None = None
        self.search.simulator.told(self.search.base)
        for case in self.search.cases(()):
            if self.search.comes_out(case):
                return case, 0
            told = self.search.told(case)
            self._plain.add(self.search.key(case, told))
            far = self.search.distance(case, told)
            if best is None or far < best[0]:
                best = far, case
        assert best is not None
        return best[1], max(best[0], 1)

    def one(self) -> list[Found]:
        """Models of one part under which the answers come out."""
        found = [*self._slipped((), 1)]
        for fault in self.search.faults:
            self._tick()
            found += self._whole((fault,))
        return found

    def two(self) -> list[Found]:
        """Models of two parts under which the answers come out."""
        active = [fault for fault in self.search.faults if self._acts(fault)]
        self._of += len(active) ** 2 // 2
        found = [*self._slipped((), 2)]
        for fault in active:
            self._tick()
            found += self._slipped((fault,), 1)
        for pair in combinations(active, 2):
            self._tick()
            if pair[0].family != pair[1].family:
                found += self._whole(pair)
        return found or [*self._enabled(active)]

    def _enabled(self, active: Sequence[Fault]) -> Iterator[Found]:
        """Pairs with a fault that does nothing alone."""
        idle = [fault for fault in self.search.faults if fault not in active]
        self._of += len(active) * len(idle)
        for fault in active:
            for other in idle:
                self._tick()
                if fault.family != other.family:
                    yield from self._whole((fault, other))

    def closest(self) -> list[Found]:
        """The model whose reports differ least, when none fits."""
        nearest = [(self._nearest((fault,)), fault) for fault in self.search.faults if self._acts(fault)]
        ranked = sorted((each for each in nearest if each[0]), key=lambda each: each[0].distance if each[0] else 0)
        pairs = [
            self._nearest(pair)
            for pair in combinations([fault for _, fault in ranked[:CLOSEST]], 2)
            if pair[0].family != pair[1].family
        ]
        found = [each for each in (*(each for each, _ in ranked), *pairs) if each is not None]
        least = min((each.distance for each in found), default=0)
        return [each for each in found if each.distance == least][:1]

    def _nearest(self, faults: tuple[Fault, ...]) -> Found | None:
        best: Found | None = None
        for case in self.search.cases(faults):
            far = self.search.distance(case, self.search.told(case))
            if best is None or far < best.distance:
                best = Found(faults, case, _parts(faults), None, far)
        return best

    def _whole(self, faults: tuple[Fault, ...]) -> Iterator[Found]:
        for case in self.search.cases(faults):
            if self.search.comes_out(case):
                yield Found(faults, case, _parts(faults), None, 0)
                return

    def _acts(self, fault: Fault) -> bool:
        """Whether a fault changes what is said at some t0."""
        if fault not in self._effects:
            keys = (self.search.key(case, self.search.told(case)) for case in self.search.cases((fault,)))
            self._effects[fault] = any(key not in self._plain for key in keys)
        return self._effects[fault]

    def _slipped(self, faults: tuple[Fault, ...], most: int) -> Iterator[Found]:
        """Models of these faults and at most ``most`` slips, fewest slips first."""
        for case in self.search.cases(faults):
            told = self.search.told(case)
            for slips in combinations(self.search.slips, most):
                if len({slip.family for slip in slips}) == most:
                    fit = self.search.fit(case, told, slips)
                    if fit is not None and len(fit.slipped) == most:
                        parts = tuple(slip.tell(places) for slip, places in fit.slipped.items())
                        yield Found((*faults, *slips), case, (*_parts(faults), *parts), fit, 0)
            for slips in combinations(self.search.slips, most - 1):
                yield from self._swaying(faults, case, slips)

    def _swaying(self, faults: tuple[Fault, ...], case: Case, slips: tuple[Slip, ...]) -> Iterator[Found]:
        for sway in self.search.sways:
            found = self.search.swayed(case, sway, slips)
            if found is not None and len(found[0].slipped) == len(slips):
                fit, reports = found
                parts = tuple(slip.tell(places) for slip, places in fit.slipped.items())
                told = (*_parts(faults), sway.tell(fit.swayed, reports), *parts)
                yield Found((*faults, sway, *slips), case, told, fit, 0)

    def _tick(self) -> None:
        self._done += 1
        self._progress(min(self._done, self._of), self._of)


def _parts(faults: Iterable[Fault]) -> tuple[Part, ...]:
    return tuple(fault.part for fault in faults)


__all__ = ["Explained", "Model", "Said", "Sway", "diagnose", "explained"]
