"""Runs sorted into series: the repetitions of one engine under one semantics, under a label of their own."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from statistics import median
from typing import TypeAlias

from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Report, Semantics
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.report.numbers import duration

Judged: TypeAlias = tuple[Run, Verdict]

_WORST_FIRST = (Judgement.WRONG, Judgement.UNKNOWN, Judgement.LATE, Judgement.RIGHT)
_PER_REPETITION = frozenset({"seed"})
_FOUND = frozenset({"triples", "notes"})
"""Entries of a header's workload that say what was found in a stream."""


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

    @cached_property
    def _names(self) -> Mapping[int, str]:
        headers = [run.header for run, _ in self.runs]
        numbers = [header.repetition for header in headers]
        if len(set(numbers)) < len(numbers):
            numbers = list(range(1, len(headers) + 1))
        seeds = [header.workload.get("seed") for header in headers]
        named = ["" if seed is None or len(set(map(str, seeds))) == 1 else f" (seed {seed})" for seed in seeds]
        return {
            id(header): f"repetition {number}{seed}"
            for header, number, seed in zip(headers, numbers, named, strict=True)
        }

    def repetition(self, header: RunHeader) -> str:
        """The name of one of its runs, empty where there is no other: ``repetition 2 (seed 7)``."""
        return self._names[id(header)] if len(self.runs) > 1 else ""

    @property
    def judgement(self) -> Judgement:
        """The worst judgement of the repetitions."""
        found = {verdict.judgement for _, verdict in self.runs}
        return next(judgement for judgement in _WORST_FIRST if judgement in found)

    @property
    def unit(self) -> str:
        """The name of one line of the verdict: a window, or a report where reports are not window closes."""
        return unit_of(self.header.semantics)


def unit_of(semantics: Semantics) -> str:
    """``window`` where windows report as they close, else ``report``."""
    return "window" if Report.WINDOW_CLOSE in semantics.report else "report"


def unit_over(series: Sequence[Series]) -> str:
    """The name of a line of these verdicts: a report where some are windows and some are not."""
    units = {one.unit for one in series}
    return units.pop() if len(units) == 1 else "report"


def series_of(runs: Sequence[Judged]) -> tuple[Series, ...]:
    """The series of these runs, in order of first appearance; repetitions in order of number and seed.

    Runs of one experiment, engine, query, semantics, parameters and pace are repetitions of one series, whatever was
    found. Example: of seeds 1 and 2 with 400 and 402 triples there is one series of two repetitions.
    """
    groups: dict[Hashable, list[Judged]] = {}
    for judged in runs:
        groups.setdefault(identity(judged[0].header), []).append(judged)
    labels = _labels([members[0][0].header for members in groups.values()])
    return tuple(
        Series(index, label, tuple(sorted(members, key=_order)))
        for index, (label, members) in enumerate(zip(labels, groups.values(), strict=True))
    )


def identity(header: RunHeader) -> Hashable:
    """All that was asked of a run but its seed and the number of its repetition; nothing that was found."""
    return header.experiment, header.engine, header.query_text, header.semantics, _pairs(header)


def _pairs(header: RunHeader) -> Hashable:
    tables = (_workload(header), header.options, header.parameters)
    return header.factor, tuple(tuple(sorted((key, str(value)) for key, value in table.items())) for table in tables)


def _workload(header: RunHeader) -> Mapping[str, object]:
    return {key: value for key, value in header.workload.items() if key not in _PER_REPETITION | _FOUND}


def _order(judged: Judged) -> tuple[int, str]:
    header = judged[0].header
    seed = header.workload.get("seed", "")
    return header.repetition, f"{seed:>20}"


def _labels(headers: Sequence[RunHeader]) -> Iterator[str]:
    """A label for each series: the engine, its semantics, and what tells the series from others; a number at last."""
    everywhere = _varying([_traits(header) for header in headers])
    seen: Counter[str] = Counter()
    for header in headers:
        alike = [one for one in headers if (one.engine, one.semantics.name) == (header.engine, header.semantics.name)]
        own = _varying([_own(one) for one in alike])
        label = ", ".join([_engine(header), *_named(_traits(header), everywhere), *_named(_own(header), own)])
        seen[label] += 1
        yield label if seen[label] == 1 else f"{label} ({seen[label]})"


def _engine(header: RunHeader) -> str:
    name = header.semantics.name
    return header.engine if header.engine == name else f"{header.engine} as {name}"


def _named(traits: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    return (f"{name} {traits[name]}" for name in names if traits.get(name))


def _traits(header: RunHeader) -> Mapping[str, str]:
    """Traits that may differ between any two series, in words."""
    pace = "unpaced" if header.factor is None else f"{header.factor:g}"
    tables = (_workload(header), header.parameters)
    given = {key: str(value) for table in tables for key, value in table.items()}
    return {"experiment": header.experiment, "query": header.query.name or "", **given, "pace": pace}


def _own(header: RunHeader) -> Mapping[str, str]:
    """Traits that may differ between two series of an engine under semantics of one name."""
    semantics = {
        one.name.replace("_", " "): _written(getattr(header.semantics, one.name))
        for one in fields(header.semantics)
        if one.name not in {"name", "sources"}
    }
    return semantics | {key: str(value) for key, value in header.options.items()}


def _written(value: object) -> str:
    return " and ".join(sorted(map(str, value))) if isinstance(value, frozenset) else str(value)


def _varying(traits: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    keys = dict.fromkeys(key for trait in traits for key in trait)
    return tuple(key for key in keys if len({trait.get(key) for trait in traits}) > 1)


def median_delay(windows: Sequence[WindowVerdict]) -> float | None:
    """The median delay (ms) of the reports that came, ``None`` when none did."""
    delays = [window.delay for window in windows if window.delay is not None]
    return median(delays) if delays else None


def delay_of(window: WindowVerdict) -> str:
    """The delay of a report in words, marked where it is beyond the bound."""
    return f"{duration(window.delay)}, late" if window.late else duration(window.delay)


def place(window: WindowVerdict) -> int | None:
    """The place of a report in stream time (ms): its instant, else its end; ``None`` when it names neither."""
    return window.instant if window.instant is not None else window.end


def state(window: WindowVerdict) -> str:
    """One word for a judged report: right, late (right but too late), missed, surplus or wrong."""
    if window.right:
        return "late" if window.late else "right"
    if window.report is None:
        return "missed"
    return "wrong" if window.due else "surplus"
