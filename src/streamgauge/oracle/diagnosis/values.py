"""Semantics values as models: every field's other values, one at a time."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model.semantics import (
    CQL,
    R2S,
    Borders,
    Changes,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Report,
    Scope,
    Semantics,
    Tick,
)
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen

_SENTENCES = {
    "borders": "The borders of a window are {}.",
    "scope": "The scope of a report moves by {}.",
    "tick": "Content becomes visible by {}.",
    "due": "Of several windows that are due at one instant, {} reported.",
    "changes": "Content change counts {}.",
    "empty_aggregate": "An aggregate over nothing gives {}.",
    "content": "A window's content is a {}: repeated triples count accordingly.",
    "answers": "An answer is a {}: repeated rows count accordingly.",
    "grain": "An answer holds one {}.",
}
_ENUMS = {
    "borders": Borders,
    "scope": Scope,
    "tick": Tick,
    "due": Due,
    "changes": Changes,
    "empty_aggregate": EmptyAggregate,
    "content": Counting,
    "answers": Counting,
    "grain": Grain,
}
_DUE = {Due.ALL: "all are", Due.LAST: "only the last is"}
UNITS = (1, 10, 100, 1000)
MOST_ORIGINS = 60
"""How many other starts of the first window are tried."""


def values(seen: Seen) -> Iterator[Fault]:
    """A fault per other value of each field of the declared semantics."""
    semantics = seen.case.semantics
    many = any(len(seen.recorded.rows(at)) > 1 for at in range(seen.recorded.count))
    for name, kind in _ENUMS.items():
        for value in kind:
            if value is not getattr(semantics, name) and not (value is Grain.ROW and many):
                text = _DUE[value] if isinstance(value, Due) else str(value)
                yield _field(name, value, _SENTENCES[name].format(text))
    yield _partial_head(semantics)
    yield _notify_empty(semantics)
    yield from _operators(seen)
    yield from _strategies(semantics)
    for unit in UNITS:
        if unit != semantics.time_unit:
            yield _field("time_unit", unit, f"The engine's time unit is {unit} ms.")
    yield from _other_origins(seen)


def values_by_field(seen: Seen) -> dict[str, tuple[Fault, ...]]:
    """The other values, by the field of the semantics that they are values of."""
    found: dict[str, list[Fault]] = {}
    for fault in values(seen):
        found.setdefault(f"value of {fault.family}", []).append(fault)
    return {kind: tuple(faults) for kind, faults in found.items()}


def _field(name: str, value: object, sentence: str) -> Fault:
    return Fault(Part(f"{name} = {value}", sentence), name, partial(_under, name=name, value=value))


def _under(case: Case, name: str, value: object) -> Case:
    return case.under(**{name: value})


def _partial_head(semantics: Semantics) -> Fault:
    if semantics.partial_head:
        return _field("partial_head", False, "Nothing is reported before the first full window.")
    return _field("partial_head", True, "Partial windows are reported before the first full one.")


def _notify_empty(semantics: Semantics) -> Fault:
    if semantics.notify_empty:
        return _field("notify_empty", False, "An answer without rows is not sent.")
    return _field("notify_empty", True, "An answer without rows is sent too.")


def _operators(seen: Seen) -> Iterator[Fault]:
    declared = seen.case.query.r2s or seen.case.semantics.r2s
    for r2s in CQL:
        if r2s is not declared:
            part = Part(f"r2s = {r2s}", f"The engine streams {r2s}, not {declared}.")
            yield Fault(part, "r2s", partial(_streaming, r2s=r2s))


def _streaming(case: Case, r2s: R2S) -> Case:
    return case.asking(replace(case.query, r2s=r2s)).under(r2s_able=frozenset(CQL))


def _strategies(semantics: Semantics) -> Iterator[Fault]:
    report = semantics.report
    if Report.NON_EMPTY in report:
        yield _report(report - {Report.NON_EMPTY}, "Windows without content are reported too.")
    else:
        yield _report(report | {Report.NON_EMPTY}, "Windows without content are not reported.")
    both = {Report.WINDOW_CLOSE, Report.CONTENT_CHANGE}
    rest = report - both
    if Report.WINDOW_CLOSE in report:
        yield _report(
            rest | {Report.CONTENT_CHANGE}, "The engine reports when the content changes, not when windows close."
        )
        yield _report(report | {Report.CONTENT_CHANGE}, "A closing window is reported only when its content changed.")
    elif Report.CONTENT_CHANGE in report:
        yield _report(
            rest | {Report.WINDOW_CLOSE}, "The engine reports when windows close, not when the content changes."
        )


def _report(report: frozenset[Report], sentence: str) -> Fault:
    name = " and ".join(sorted(report))
    return Fault(Part(f"report = {name}", sentence), "report", lambda case: case.under(report=report))


def _other_origins(seen: Seen) -> Iterator[Fault]:
    """Starts of the first window at which some window would hold something else than at every candidate."""
    slides = [each.window.slide for each in seen.case.query.windows if each.window.kind == "time"]
    if not slides:
        return
    base, slide = seen.case.t0, min(slides)
    residues = {(time + after - base) % slide for time in seen.case.stream.times for after in (0, 1)}
    named = {at - base for i in range(seen.recorded.count) if (at := seen.recorded.instant(i)) is not None}
    if named:
        residues &= {at % slide for at in named} | {0}
    for residue in sorted(residues - {0})[:MOST_ORIGINS]:
        t0 = base + residue
        part = Part(f"t0 = {t0} ms", f"The first window starts at {t0} ms, which is no candidate for t0.")
        yield Fault(part, "t0", partial(_from, t0=t0), t0)


def _from(case: Case, t0: int) -> Case:
    return replace(case, t0=t0)
