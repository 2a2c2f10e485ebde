"""Under which conditions a series ran: workload, query, semantics with sources, versions, machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum

from streamgauge.model.counts import counted
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.report.cards import pace
from streamgauge.report.numbers import NOTHING, moment, seconds
from streamgauge.report.series import Series
from streamgauge.report.tables import cut

_TIMES = frozenset({"t0", "period", "time_unit", "lateness"})


@dataclass(frozen=True)
class Conditions:
    """What the end of the page tells about one series; each table is lines of cells."""

    label: str
    run: tuple[tuple[str, str], ...]
    workload: tuple[tuple[str, str], ...]
    query: str
    dialect: str
    semantics: tuple[tuple[str, str, str], ...]
    versions: tuple[tuple[str, str], ...]
    machine: tuple[tuple[str, str], ...]


def conditions(series: Sequence[Series]) -> list[Conditions]:
    """One entry per series; where repetitions differ, all values are named."""
    return [_conditions(one) for one in series]


def _conditions(one: Series) -> Conditions:
    headers = [run.header for run, _ in one.runs]
    return Conditions(
        one.label,
        _run(one),
        _merged([header.workload for header in headers]),
        one.header.query_text,
        one.header.dialect,
        _semantics(one.header.semantics),
        _merged([header.versions for header in headers]),
        _merged([header.machine for header in headers]),
    )


def _run(one: Series) -> tuple[tuple[str, str], ...]:
    header = one.header
    fed = sum(len(run.fed) for run, _ in one.runs)
    answers = sum(len(run.answers) for run, _ in one.runs)
    return (
        ("Engine", header.engine),
        ("Query", header.query.name or "unnamed"),
        ("Windows", _windows(header.query)),
        ("Background data", counted(len(header.query.static), "triple")),
        ("Repetitions", f"{len(one.runs):,}"),
        ("Pace", pace(header.factor)),
        ("Stream advanced to", _joined(moment(run.header.advanced_to) for run, _ in one.runs)),
        ("Fed", counted(fed, "element")),
        ("Received", counted(answers, "answer")),
    )


def _windows(query: ContinuousQuery) -> str:
    return "; ".join(
        f"{seconds(one.window.size)} s, every {seconds(one.window.slide)} s, on {one.stream}" for one in query.windows
    )


def _joined(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))


def _merged(mappings: Sequence[Mapping[str, object]]) -> tuple[tuple[str, str], ...]:
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return tuple((key, cut(_joined(mapping[key] for mapping in mappings if key in mapping))) for key in keys)


def _semantics(semantics: Semantics) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (
            one.name.replace("_", " "),
            _value(one.name, getattr(semantics, one.name)),
            semantics.sources.get(one.name, NOTHING),
        )
        for one in fields(semantics)
        if one.name not in ("name", "sources")
    )


def _value(name: str, value: object) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case frozenset():
            return ", ".join(sorted(map(str, value)))
        case Enum():
            return str(value.value)
        case int() if name in _TIMES:
            return f"{value:,} ms"
    return str(value)
