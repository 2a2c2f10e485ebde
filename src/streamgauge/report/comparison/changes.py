"""Changes between two sides' measurements, and whether they are worse beyond tolerance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from streamgauge.report.comparison.measurements import (
    WORST_FIRST,
    CapacityMeasurement,
    Measurements,
    RunMeasurement,
)


class Trend(StrEnum):
    """The direction of a change."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The shares of the base by which values may get worse."""

    delay: float = 0.25
    cpu: float = 0.25
    memory: float = 0.25
    capacity: float = 0.1


FLOORS: Final[Mapping[str, float]] = {"delay": 10.0, "cpu": 0.1, "memory": 16 * 2**20}
"""Growth that never counts, however small its base: ms, s, bytes. It is the noise between runs on one machine."""


@dataclass(frozen=True, slots=True)
class MeasuredChange:
    """A measure of a subject on both sides, ``None`` if not measured, in ``unit``.

    ``base`` and ``now`` are numbers or words; ``allowed`` is the share by which it may get worse.
    """

    subject: str
    measure: str
    base: float | str | None
    now: float | str | None
    unit: str
    trend: Trend
    allowed: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All changes; with ``subset``, missing runs are not a fault."""

    changes: tuple[MeasuredChange, ...]
    subset: bool = False

    @property
    def worse(self) -> tuple[MeasuredChange, ...]:
        """The changes for which the comparison fails."""
        bad = {Trend.WORSE} if self.subset else {Trend.WORSE, Trend.GONE}
        return tuple(change for change in self.changes if change.trend in bad)


def compared(base: Measurements, now: Measurements, tolerances: Tolerances, *, subset: bool = False) -> Comparison:
    """Every change from the base; runs are matched by name, a single run on each side without regard to names."""
    runs = _matched(base.runs, now.runs)
    capacities = _matched(base.capacities, now.capacities)
    changes = [change for name, old, new in runs for change in _run_changes(name, old, new, tolerances)]
    changes += [_capacity_change(name, old, new, tolerances.capacity) for name, old, new in capacities]
    return Comparison(tuple(changes), subset)


Named = TypeVar("Named", RunMeasurement, CapacityMeasurement)


def _matched(base: Sequence[Named], now: Sequence[Named]) -> Iterator[tuple[str, Named | None, Named | None]]:
    # A folder was renamed, or another engine tried: with one run on each side it is clear what is compared.
    if len(base) == len(now) == 1:
        yield now[0].name, base[0], now[0]
        return
    old: dict[str, Named] = {named.name: named for named in base}
    new: dict[str, Named] = {named.name: named for named in now}
    for name in dict.fromkeys((*old, *new)):
        yield name, old.get(name), new.get(name)


def _run_changes(
    name: str, old: RunMeasurement | None, new: RunMeasurement | None, tolerances: Tolerances
) -> Iterator[MeasuredChange]:
    if old is None or new is None:
        trend = Trend.NEW if old is None else Trend.GONE
        base_verdict, verdict = (None if run is None else _verdict(run) for run in (old, new))
        yield MeasuredChange(name, "verdict", base_verdict, verdict, "", trend)
        return
    yield MeasuredChange(name, "verdict", _verdict(old), _verdict(new), "", _order(_rank(old), _rank(new)))
    # Compared as shares, since one side may have more windows; shown as numbers.
    yield MeasuredChange(
        name, "windows not as expected", old.wrong, new.wrong, "", _order(_share(old), _share(new)), 0.0
    )
    for kind, measure, unit in (
        ("delay", "delay, median", "ms"),
        ("slow", "delay, 99th percentile", "ms"),
        ("cpu", "CPU", "s"),
        ("memory", "memory", "bytes"),
    ):
        base, now = getattr(old, kind), getattr(new, kind)
        name_of = "delay" if kind == "slow" else kind
        allowed = getattr(tolerances, name_of)
        if base is not None or now is not None:
            trend = _grown(base, now, allowed, FLOORS[name_of])
            yield MeasuredChange(name, measure, base, now, unit, trend, allowed)


def _verdict(run: RunMeasurement) -> str:
    return "engine failed" if run.failed else run.judgement.value


def _rank(run: RunMeasurement) -> int:
    """The severity of a verdict, 0 for the best."""
    return len(WORST_FIRST) if run.failed else len(WORST_FIRST) - 1 - WORST_FIRST.index(run.judgement)


def _share(run: RunMeasurement) -> float:
    return run.wrong / run.windows if run.windows else 0.0


def _order(base: float, now: float) -> Trend:
    if now == base:
        return Trend.SAME
    return Trend.WORSE if now > base else Trend.BETTER


def _grown(base: float | None, now: float | None, allowed: float, floor: float) -> Trend:
    """Whether a value that should be small grew, or shrank, beyond the allowed share and the floor."""
    if base is None or now is None:
        # A cost that is measured on one side only is no regression.
        return Trend.NEW if base is None else Trend.SAME
    if abs(now - base) <= floor:
        return Trend.SAME
    if now > base * (1 + allowed):
        return Trend.WORSE
    # The rule above with the sides exchanged: a comparison read backwards says the opposite.
    return Trend.BETTER if base > now * (1 + allowed) else Trend.SAME


def _capacity_change(
    name: str, old: CapacityMeasurement | None, new: CapacityMeasurement | None, allowed: float
) -> MeasuredChange:
    some = new or old
    assert some is not None
    base, now = (None if one is None else one.value for one in (old, new))
    if old is None or old.absent:
        trend = Trend.NEW
    elif new is None or new.absent:
        trend = Trend.GONE
    else:
        trend = _fallen(old, new, allowed)
    return MeasuredChange(name, "capacity", base, now, some.unit, trend, allowed)


def _fallen(old: CapacityMeasurement, new: CapacityMeasurement, allowed: float) -> Trend:
    """Whether the hardest value that is carried got easier, or harder, beyond the allowed share."""
    if old.value is None or new.value is None:
        # Carrying nothing that was tried is worse than any value.
        return _order(old.value is None, new.value is None)
    # On an axis where smaller is harder, such as a slide, exchanging the sides gives the same inequality.
    hard, now = (old.value, new.value) if new.greater else (new.value, old.value)
    if now < hard * (1 - allowed):
        return Trend.WORSE
    return Trend.BETTER if hard < now * (1 - allowed) else Trend.SAME
