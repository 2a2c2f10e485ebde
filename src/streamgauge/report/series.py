"""Runs sorted into series: the repetitions of one engine under one semantics, under a label of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Report, Semantics
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.report.numbers import duration

Judged: TypeAlias = tuple[Run, Verdict]

_WORST_FIRST = (Judgement.WRONG, Judgement.UNKNOWN, Judgement.LATE, Judgement.RIGHT)
_PER_REPETITION = frozenset({"seed"})


@dataclass(frozen=True)
class Series:
    """Repetitions that belong together; ``index`` gives its colour and shape in every plot."""

    index: int
    label: str
    runs: tuple[Judged, ...]

    @property
    def header(self) -> RunHeader:
        """The header of the first repetition, which speaks for the others."""
        return self.runs[0][0].header

    @property
    def judgement(self) -> Judgement:
        """The worst judgement of the repetitions."""
        found = {verdict.judgement for _, verdict in self.runs}
        return next(judgement for judgement in _WORST_FIRST if judgement in found)

    @property
    def unit(self) -> str:
        """What one line of the verdict is called: a window, or a report where reports are not window closes."""
        return unit_of(self.header.semantics)


def unit_of(semantics: Semantics) -> str:
    """``window`` where windows report as they close, else ``report``."""
    return "window" if Report.WINDOW_CLOSE in semantics.report else "report"


def unit_over(series: Sequence[Series]) -> str:
    """What a line of these verdicts is called: a report where some are windows and some are not."""
    units = {one.unit for one in series}
    return units.pop() if len(units) == 1 else "report"


def series_of(runs: Sequence[Judged]) -> tuple[Series, ...]:
    """The series of these runs, in order of first appearance; repetitions in order of their number."""
    varying = _varying([_traits(run.header) for run, _ in runs])
    groups: dict[str, list[Judged]] = {}
    for judged in runs:
        groups.setdefault(_label(judged[0].header, varying), []).append(judged)
    return tuple(
        Series(index, label, tuple(sorted(members, key=lambda judged: judged[0].header.repetition)))
        for index, (label, members) in enumerate(groups.items())
    )


def _traits(header: RunHeader) -> Mapping[str, str]:
    workload = {key: str(value) for key, value in header.workload.items() if key not in _PER_REPETITION}
    pace = "unpaced" if header.factor is None else f"{header.factor:g}"
    return {"query": header.query.name or "", **workload, "pace": pace}


def _varying(traits: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    keys = dict.fromkeys(key for trait in traits for key in trait)
    return tuple(key for key in keys if len({trait.get(key) for trait in traits}) > 1)


def _label(header: RunHeader, varying: tuple[str, ...]) -> str:
    traits = _traits(header)
    name = header.semantics.name
    engine = header.engine if header.engine == name else f"{header.engine} as {name}"
    return ", ".join([engine, *(f"{key} {traits[key]}" for key in varying if traits.get(key))])


def median_delay(windows: Sequence[WindowVerdict]) -> float | None:
    """The median delay (ms) of the reports that came, ``None`` when none did."""
    delays = [window.delay for window in windows if window.delay is not None]
    return median(delays) if delays else None


def delay_of(window: WindowVerdict) -> str:
    """The delay of a report in words, marked where it is beyond the bound."""
    return f"{duration(window.delay)}, late" if window.late else duration(window.delay)


def place(window: WindowVerdict) -> int | None:
    """Where a report stands in stream time (ms): its instant, else its end; ``None`` when it names neither."""
    return window.instant if window.instant is not None else window.end


def state(window: WindowVerdict) -> str:
    """One word for a judged report: right, late (right but too late), missed, surplus or wrong."""
    if window.right:
        return "late" if window.late else "right"
    if window.report is None:
        return "missed"
    return "wrong" if window.due else "surplus"
