"""The diagnosis of a run for the terminal (rich) and for programs (JSON), with one window worked through."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Diagnosis, Part, Verdict
from streamgauge.oracle.diagnosis.worked import Worked
from streamgauge.report.cards import late_ones
from streamgauge.report.series import unit_of

LISTED = 8
"""Models and rows that are printed; the JSON has all."""


def explained_lines(header: RunHeader, verdict: Verdict, window: Worked | None) -> RenderableType:
    """The diagnosis: a sentence for each part, the proof, models that fit as well, late reports, and one window."""
    diagnosis = verdict.diagnosis
    assert diagnosis is not None
    parts: list[RenderableType] = [Text(sentence, style="yellow") for sentence in verdict.cautions]
    parts.append(Text(headline(header, verdict), style="bold"))
    if diagnosis.models:
        parts += [Text(f"  - {part.sentence}") for part in diagnosis.models[0]]
    parts.append(Text("  " + proof(diagnosis)))
    parts += map(Text, _others(diagnosis))
    parts.append(Text(f"  The recording's time came to {header.advanced_to:,} ms: no report was due after it."))
    parts += [Text("  " + sentence) for sentence in late_ones(unit_of(header.semantics), verdict)]
    if window is not None:
        parts += ["", Text(_place(window)), _rows(window, bool(diagnosis.models))]
    return Group(*parts)


def _others(diagnosis: Diagnosis) -> Iterator[str]:
    """The other models that give the same answers: those that are equally good, then those of more free choices."""
    equal = diagnosis.models[1 : diagnosis.equal]
    if equal:
        models = counted(len(equal), "other model")
        be = "is" if len(equal) == 1 else "are"
        yield f"  {models} {be} equally good: the recorded answers cannot tell them apart."
        yield from _listed(diagnosis, 1, diagnosis.equal)
    longer = len(diagnosis.models) - diagnosis.equal
    if longer > 0:
        give = "gives" if longer == 1 else "give"
        yield f"  {counted(longer, 'model')} with more free choices {give} the same answers:"
        yield from _listed(diagnosis, diagnosis.equal, len(diagnosis.models))


def _listed(diagnosis: Diagnosis, first: int, last: int) -> Iterator[str]:
    """Some of the models by name, with the bits of their descriptions where they are known."""
    for at in range(first, min(last, first + LISTED)):
        length = f" ({diagnosis.bits[at]:.0f} bits, the first has {diagnosis.bits[0]:.0f})" if diagnosis.bits else ""
        yield f"  - {_named(diagnosis.models[at])}{length}"
    if last - first > LISTED:
        yield f"  - and {last - first - LISTED:,} more"


def headline(header: RunHeader, verdict: Verdict) -> str:
    """Whether there is anything to explain, and whether a model explains it."""
    diagnosis = verdict.diagnosis
    assert diagnosis is not None
    if not diagnosis.differs and verdict.late:
        late = counted(verdict.late, unit_of(header.semantics))
        return f"{header.engine} answered as {header.semantics.name} should, {late} later than allowed."
    if not diagnosis.differs:
        return f"{header.engine} answered as {header.semantics.name} should: there is nothing to explain."
    if diagnosis.exact:
        return f"{header.engine} does not answer as {header.semantics.name} should:"
    return "None fits: no semantics, no named fault and no two of them give the recorded answers."


def proof(diagnosis: Diagnosis) -> str:
    """The figures by which a diagnosis is believed."""
    reports = counted(diagnosis.reports, "report")
    where = "" if diagnosis.t0 is None else f" with the first window at {diagnosis.t0:,} ms"
    if not diagnosis.differs:
        return f"All {reports} come out{where}."
    otherwise = f"under the declared semantics {diagnosis.differs:,} of {reports} differ"
    if diagnosis.exact:
        return f"Proof: so the recorded answers come out exactly{where}; {otherwise}."
    if not diagnosis.models:
        return f"No model comes closer than the declared semantics: {diagnosis.differs:,} of {reports} differ{where}."
    return f"The closest model leaves {diagnosis.distance:,} of {reports} different{where}; {otherwise}."


def _named(model: Sequence[Part]) -> str:
    return " and ".join(part.name for part in model)


def _place(window: Worked) -> str:
    scope = window.scope or window.model_scope
    when = "An answer that no report explains" if window.instant is None else f"The report at {window.instant:,} ms"
    return when + (f", window from {scope[0]:,} to {scope[1]:,} ms" if scope else "")


def _rows(window: Worked, with_model: bool) -> Table:
    table = Table("row (" + ", ".join(f"?{name}" for name in window.variables) + ")", "expected", "recorded", box=None)
    sides = [window.expected, window.recorded]
    if with_model:
        table.add_column("model")
        sides.append(window.model)
    every = list(dict.fromkeys(row for side in sides for row in side or ()))
    for row in every[:LISTED]:
        table.add_row(_text(row), *(_times(side, row) for side in sides))
    if len(every) > LISTED:
        table.add_row(f"and {len(every) - LISTED:,} more", *("" for _ in sides))
    table.add_row("rows in all", *("no report" if side is None else f"{len(side):,}" for side in sides))
    return table


def _text(row: Row) -> Text:
    return Text(", ".join("unbound" if term is None else _short(term) for term in row))


def _short(term: str) -> str:
    """An IRI's last part, a literal with its datatype's."""
    if term.startswith("<"):
        return term[1:-1].replace("#", "/").rpartition("/")[2] or term
    text, marked, kind = term.rpartition("^^")
    return f"{text}^^{_short(kind)}" if marked and term.startswith('"') else term


def _times(side: Sequence[Row] | None, row: Row) -> str:
    times = 0 if side is None else sum(other == row for other in side)
    return "-" if times == 0 else ("yes" if times == 1 else f"{times:,} times")


def explained_json(header: RunHeader, verdict: Verdict, window: Worked | None) -> dict[str, object]:
    """The diagnosis as JSON values: models as lists of parts, rows as lists of N-Triples terms, times in ms."""
    diagnosis = verdict.diagnosis
    assert diagnosis is not None
    late = [each for each in verdict.windows if each.late]
    return {
        "engine": header.engine,
        "semantics": header.semantics.name,
        "exact": diagnosis.exact,
        "differs": diagnosis.differs,
        "distance": diagnosis.distance,
        "reports": diagnosis.reports,
        "t0": diagnosis.t0,
        "bits": list(diagnosis.bits),
        "equally_good": diagnosis.equal,
        "models": [[{"name": part.name, "sentence": part.sentence} for part in model] for model in diagnosis.models],
        "window": window and _window_json(window),
        "horizon": header.advanced_to,
        "cautions": list(verdict.cautions),
        "delay_bound": verdict.delay_bound,
        "late": [{"index": each.index, "instant": each.instant, "delay": each.delay} for each in late],
    }


def _window_json(window: Worked) -> dict[str, object]:
    sides = {"expected": window.expected, "recorded": window.recorded, "model": window.model}
    return {
        "instant": window.instant,
        "scope": window.scope and list(window.scope),
        "model_scope": window.model_scope and list(window.model_scope),
        "variables": list(window.variables),
        **{name: rows if rows is None else [list(row) for row in rows] for name, rows in sides.items()},
    }
