"""What an engine is asked: each case under its own semantics and under every profile, on the engine's scale of time."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import lcm

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Clock, Semantics
from streamgauge.query import print_query
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.order import admit, origins
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.suites.conformance.cases import OWN, Case

PACE_MS_PER_UNIT = 200
"""How long one unit of a case takes, wall ms, for engines that stamp elements by their arrival."""

DIALECTS = ("rspql", "csparql")
"""In which queries are written for engines that read any; RSP-QL has every clause but names each of several windows."""


@dataclass(frozen=True)
class Scale:
    """How long one unit of a case is, ms: at least for an engine, and in real time for one on arrival time."""

    unit: int = 1
    pace: int = PACE_MS_PER_UNIT


@dataclass(frozen=True)
class Asked:
    """A case under one semantics, on a scale: ``name`` tells it from all others; ``factor`` is the run's pace.

    Elements that are handed over later than ``slack`` (ms) may come out on the other side of a border.
    """

    name: str
    case: Case
    semantics: Semantics
    factor: float | None
    slack: int | None = None

    @property
    def profile(self) -> str:
        """The name of the semantics: a profile's, or ``own``."""
        return self.semantics.name


def asked(cases: Sequence[Case], profiles: Sequence[str] | None, scale: Scale) -> Iterator[Asked]:
    """Every case under its own semantics and under the profiles (``None``: all) under which it has a meaning.

    Cases that differ in their semantics alone are one task under a profile: the first of them.
    """
    seen: set[object] = set()
    for case in cases:
        for profile in (OWN, *(PROFILES if profiles is None else profiles)):
            chosen = case.semantics if profile == OWN else _under(case, PROFILES[profile])
            same = (profile, case.query, case.stream, case.advance, case.semantics.lateness)
            if (profile == OWN or same not in seen) and _meaning(case, chosen):
                seen.add(same)
                yield _scaled(case, chosen, scale)


def _under(case: Case, profile: Semantics) -> Semantics:
    """The profile with the case's lateness bound, which belongs to its stream."""
    return replace(profile, lateness=case.semantics.lateness)


def _meaning(case: Case, semantics: Semantics) -> bool:
    """Whether the definition says what is right: not for an operator that the profile lacks, nor for disorder."""
    first = case.stream[0].time if case.stream else None
    windows = case.query.windows
    try:
        refuse(case.query, semantics)
        admit(case.stream, semantics, windows, origins(semantics, windows, first)[0])
    except (RefusedError, OutOfOrderError):
        return False
    return True


def _scaled(case: Case, semantics: Semantics, scale: Scale) -> Asked:
    """The case with as many ms for each of its units as engine and semantics need.

    No arrival can be had exactly on a border, so on arrival time windows are half a unit longer.
    """
    arrival = semantics.clock is not Clock.APPLICATION
    base = lcm(scale.unit, scale.pace) if arrival else scale.unit
    name = f"{case.name} @ {semantics.name}"
    if semantics.name == OWN:
        own = case.scaled(base)
        return Asked(name, own, own.semantics, 1.0 if arrival else None)
    unit = lcm(base, semantics.time_unit)
    lateness = None if semantics.lateness is None else semantics.lateness * unit
    declared, scaled, slack = replace(semantics, lateness=lateness), case.scaled(unit), None
    if semantics.clock is Clock.ARRIVAL:
        slack = unit // 2
        scaled = scaled.widened(slack)
    return Asked(name, scaled, declared, 1.0 if arrival else None, slack)


@cache
def text(query: ContinuousQuery, dialect: str | None) -> tuple[str, str]:
    """The query in the dialect that an engine reads, or in the first that can say it; ValueError when it cannot."""
    if dialect is not None:
        return print_query(query, dialect), dialect
    *others, last = DIALECTS
    for name in others:
        with suppress(ValueError):
            return print_query(query, name), name
    return print_query(query, last), last
