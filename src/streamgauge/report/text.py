"""The verdict on a run, and its diagnosis with a window in detail, for the terminal and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Borders
from streamgauge.model.terms import Row, by_parts
from streamgauge.model.verdict import Diagnosis, Judgement, Part, Verdict, WindowVerdict
from streamgauge.report.cards import explanation, facts_of, findings, late_ones
from streamgauge.report.fitting_table import FittingTable
from streamgauge.report.measures import OF_REPORT, OF_RUN, BorderedReport, chosen, in_use, texts
from streamgauge.report.numbers import interval, scope_borders
from streamgauge.report.series import delay_of, median_delay, state, unit_of

if TYPE_CHECKING:
    from streamgauge.oracle.diagnosis.diagnose import Worked
    from streamgauge.oracle.judging.opened import OpenedWindow

LISTED = 10
_STYLE = {Judgement.RIGHT: "green", Judgement.LATE: "yellow", Judgement.WRONG: "red", Judgement.UNKNOWN: "bold"}
_SIGN = {Judgement.RIGHT: "✓", Judgement.LATE: "◷", Judgement.WRONG: "✗", Judgement.UNKNOWN: "?"}
_OF_REPORT = chosen(
    OF_REPORT,
    ("state", "borders", "precision", "recall", "expected", "received", "undecided", "delay", "fits best"),
)


def verdict_lines(header: RunHeader, verdict: Verdict) -> RenderableType:
    """The verdict for the terminal: judgement, reason, figures, and the first reports that are not right."""
    unit = unit_of(header.semantics)
    parts: list[RenderableType] = [_word(header, verdict)]
    parts.extend(Text("  " + sentence, style="yellow") for sentence in verdict.cautions)
    parts.append(Text("  " + explanation(unit, verdict)))
    parts.extend(Text(f"  Note: {note}") for note in header.query.notes)
    if header.failure:
        parts.append(Text(f"  The engine failed. {header.failure}", style="red"))
    parts.extend(Text("  " + sentence) for sentence in findings(unit, verdict))
    parts.append(_figures([*(_scores(verdict) if verdict.windows else ()), *facts_of(header, [verdict])[2:]]))
    bad = (window for window in verdict.windows if state(window) != "right")
    # One pass: the iterator goes on after the listed ones, and the rest is only counted.
    if listed := list(islice(bad, LISTED)):
        parts.append(_table(listed, unit, scope_borders(header.query, header.semantics)))
    if more := sum(1 for _ in bad):
        parts.append(Text(f"  and {counted(more, f'more {unit}')}"))
    return Group(*parts)


def _word(header: RunHeader, verdict: Verdict) -> Text:
    judgement = verdict.judgement
    seed = header.workload.get("seed")
    again = "" if seed is None else f", seed {seed}"
    again += f", repetition {header.repetition}" if header.repetition > 1 else ""
    return Text.assemble(
        (f"{_SIGN[judgement]} {judgement.value}", _STYLE[judgement]),
        f"  {header.engine} as {header.semantics.name}{again}",
    )


def _scores(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The measures of a run, a few per line."""
    for line in (("precision", "recall"), ("missed", "surplus", "late")):
        yield ", ".join(line).capitalize(), ", ".join(texts(chosen(OF_RUN, line), verdict))
    median, longest, last = texts(chosen(OF_RUN, ("median delay", "longest delay", "last answer after start")), verdict)
    yield "Delay", f"median {median}, at most {longest}"
    yield "Last answer", f"{last} after the start"


def _figures(lines: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in lines:
        table.add_row(Text("  " + name), Text(value))
    return table


def _table(windows: list[WindowVerdict], unit: str, borders: Borders) -> Table:
    table = FittingTable(unit, box=None, padding=(0, 1), header_style="bold")
    table.columns[0].justify = "right"
    shown = tuple(compress(_OF_REPORT, in_use(_OF_REPORT, windows)))
    for measure in shown:
        table.add_column(measure.name, justify="left" if measure.words else "right")
    for window in windows:
        cells = texts(shown, BorderedReport(window, borders))
        table.add_row(f"{window.index:,}", *map(Text, cells))
    return table


def verdict_json(header: RunHeader, verdict: Verdict) -> dict[str, object]:
    """The verdict as JSON values: shares 0 to 1, times in ms, rows as lists of N-Triples terms (``None`` unbound)."""
    clock = verdict.other_clock
    names = ("rules", "reason", "evaluator", "tolerance", "t0", "precision", "recall", "missed", "surplus", "late",
             "delay_bound", "horizon", "undecided", "max_delay", "last_answer")  # fmt: skip
    return {
        "engine": header.engine,
        "semantics": header.semantics.name,
        "repetition": header.repetition,
        "seed": header.workload.get("seed"),
        "judgement": verdict.judgement.value,
        "failure": header.failure,
        **{name: getattr(verdict, name) for name in names},
        "retyped": list(verdict.retyped),
        "cautions": list(verdict.cautions),
        "notes": list(header.query.notes),
        "median_delay": median_delay(verdict.windows),
        "other_clock": dict(zip(("clock", "precision", "recall"), clock, strict=True)) if clock else None,
        "diagnosis": diagnosis_json(verdict.diagnosis),
        "variables": list(verdict.variables),
        "windows": [_window_json(window) for window in verdict.windows],
    }


def _window_json(window: WindowVerdict) -> dict[str, object]:
    names = ("index", "start", "end", "instant", "report", "precision", "recall", "true_positives", "expected",
             "actual", "content", "delay", "late", "due", "undecided")  # fmt: skip
    return {
        "state": state(window),
        **{name: getattr(window, name) for name in names},
        **{name: list(map(list, getattr(window, name))) for name in ("missing", "surplus", "doubtful")},
        "borders": window.borders and list(window.borders),
        "fitted": window.fitted and list(window.fitted),
    }


def diagnosis_json(diagnosis: Diagnosis | None) -> dict[str, object] | None:
    """A diagnosis as JSON values: every model as its parts' names and sentences, and the proof."""
    if diagnosis is None:
        return None
    models = [[{"name": part.name, "sentence": part.sentence} for part in model] for model in diagnosis.models]
    return {
        "exact": diagnosis.exact,
        "models": models,
        "distance": diagnosis.distance,
        "differs": diagnosis.differs,
        "reports": diagnosis.reports,
        "t0": diagnosis.t0,
        "bits": list(diagnosis.bits),
        "equally_good": diagnosis.equal,
    }


MODELS = 8
"""Maximum number of printed models and rows of a diagnosis; the JSON has all."""


def explained_lines(header: RunHeader, verdict: Verdict, window: "Worked | None") -> RenderableType:
    """The diagnosis: a sentence for each part, the proof, equally good models, late reports, and a window."""
    diagnosis = verdict.diagnosis
    assert diagnosis is not None
    parts: list[RenderableType] = [Text(sentence, style="yellow") for sentence in verdict.cautions]
    parts.append(Text(headline(header, verdict), style="bold"))
    if diagnosis.models:
        parts += [Text(f"  - {part.sentence}") for part in diagnosis.models[0]]
    parts.append(Text("  " + proof(diagnosis)))
    parts += map(Text, _others(diagnosis))
    parts.append(Text(f"  The recording ends at {header.advanced_to:,} ms: no report was due after that time."))
    parts += [Text("  " + sentence) for sentence in late_ones(unit_of(header.semantics), verdict)]
    if window is not None:
        parts += ["", Text(_place(window)), _rows(window, bool(diagnosis.models))]
    return Group(*parts)


def _others(diagnosis: Diagnosis) -> Iterator[str]:
    """Further models with the same answers: the equally good ones, then those with more free choices."""
    # A worked example: of five models two are equally good. One is printed as the diagnosis, the other one as equally
    # good, and three as those with more free choices.
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
    """The names of models, with the length of their descriptions in bits if known."""
    for at in range(first, min(last, first + MODELS)):
        length = f" ({diagnosis.bits[at]:.0f} bits, the first has {diagnosis.bits[0]:.0f})" if diagnosis.bits else ""
        yield f"  - {_named(diagnosis.models[at])}{length}"
    if last - first > MODELS:
        yield f"  - and {last - first - MODELS:,} more"


def headline(header: RunHeader, verdict: Verdict) -> str:
    """Whether the answers differ from the declared semantics, as a sentence."""
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
    """The evidence for a diagnosis: how many reports differ under the model and under the declared semantics."""
    reports = counted(diagnosis.reports, "report")
    where = "" if diagnosis.t0 is None else f" with the first window at {diagnosis.t0:,} ms"
    if not diagnosis.differs:
        return f"The model gives all {reports}{where}."
    otherwise = f"under the declared semantics {diagnosis.differs:,} of {reports} differ"
    if diagnosis.exact:
        return f"Proof: this model gives exactly the recorded answers{where}; {otherwise}."
    if not diagnosis.models:
        return f"No model comes closer than the declared semantics: {diagnosis.differs:,} of {reports} differ{where}."
    return f"The closest model leaves {diagnosis.distance:,} of {reports} different{where}; {otherwise}."


def _named(model: Sequence[Part]) -> str:
    return " and ".join(part.name for part in model)


def _place(window: "Worked") -> str:
    scope = window.scope or window.model_scope
    when = "An answer that no report explains" if window.instant is None else f"The report at {window.instant:,} ms"
    return when + (f", window from {scope[0]:,} to {scope[1]:,} ms" if scope else "")


class _Sides(NamedTuple):
    """The rows of a window for a side-by-side table."""

    variables: tuple[str, ...]
    expected: Sequence[Row] | None
    recorded: Sequence[Row] | None
    model: Sequence[Row] | None


def _rows(window: "Worked | _Sides", with_model: bool) -> Table:
    table = FittingTable(
        "row (" + ", ".join(f"?{name}" for name in window.variables) + ")", "expected", "recorded", box=None
    )
    sides = [window.expected, window.recorded]
    if with_model:
        table.add_column("model")
        sides.append(window.model)
    bags = [Counter(side or ()) for side in sides]
    rows = dict.fromkeys(row for bag in bags for row in bag)
    # Rows that differ come first, as the table is cut.
    every = sorted(rows, key=lambda row: len({bag[row] for bag in bags}) == 1)
    for row in every[:MODELS]:
        table.add_row(_text(row), *(_times(bag[row]) for bag in bags))
    if len(every) > MODELS:
        table.add_row(f"and {len(every) - MODELS:,} more", *("" for _ in sides))
    table.add_row("rows in all", *("no report" if side is None else f"{len(side):,}" for side in sides))
    return table


def _text(row: Row) -> Text:
    return Text(", ".join("unbound" if term is None else _short(term) for term in row))


def _short(term: str) -> str:
    """A term in short form; triple terms are shortened part by part."""
    return by_parts(term, _short_part)


def _short_part(term: str) -> str:
    """An IRI's last part, a literal with its datatype's."""
    # Worked examples: `<http://example.org/a#b>` is `b`, `"5"^^<http://www.w3.org/2001/XMLSchema#integer>` is
    # `"5"^^integer`. An IRI that ends with a slash has no last part and stays whole.
    if term.startswith("<"):
        return term[1:-1].replace("#", "/").rpartition("/")[2] or term
    text, marked, kind = term.rpartition("^^")
    return f"{text}^^{_short_part(kind)}" if marked and term.startswith('"') else term


def _times(times: int) -> str:
    return "-" if times == 0 else ("yes" if times == 1 else f"{times:,} times")


def opened_lines(header: RunHeader, opened: "OpenedWindow") -> RenderableType:
    """A window for the terminal: state, content with some of its triples, and rows side by side."""
    window, unit = opened.window, unit_of(header.semantics)
    late = f", {delay_of(window)}" if window.late else ""
    parts: list[RenderableType] = [Text(f"{unit} {window.index:,}: {state(window)}{late}", style="bold")]
    if window.due:
        where = interval(window.start, window.end, scope_borders(header.query, header.semantics))
        parts.append(Text(f"  Due at {window.instant:,} ms, of {where}: {counted(window.content, 'triple')}."))
    parts += [Text(f"    {' '.join(map(_short, triple))}") for triple in opened.content[:MODELS]]
    if len(opened.content) > MODELS:
        parts.append(Text(f"    and {len(opened.content) - MODELS:,} more"))
    shown = _Sides(opened.variables, opened.expected, opened.received, None)
    return Group(*parts, _rows(shown, with_model=False))


def opened_json(window: "OpenedWindow") -> dict[str, object]:
    """A window as JSON values: verdict, triples and rows as lists of N-Triples terms."""
    sides = {"expected_rows": window.expected, "received_rows": window.received}
    return {
        **_window_json(window.window),
        "content_triples": [list(triple) for triple in window.content],
        "variables": list(window.variables),
        **{name: rows if rows is None else [list(row) for row in rows] for name, rows in sides.items()},
    }


def explained_json(header: RunHeader, verdict: Verdict, window: "Worked | None") -> dict[str, object]:
    """The diagnosis as JSON values: models as lists of parts, rows as lists of N-Triples terms, times in ms."""
    diagnosis = verdict.diagnosis
    assert diagnosis is not None
    late = [window for window in verdict.windows if window.late]
    return {
        "engine": header.engine,
        "semantics": header.semantics.name,
        **(diagnosis_json(diagnosis) or {}),
        "window": window and _worked_json(window),
        "horizon": header.advanced_to,
        "cautions": list(verdict.cautions),
        "delay_bound": verdict.delay_bound,
        "late": [
            {"index": late_answer.index, "instant": late_answer.instant, "delay": late_answer.delay}
            for late_answer in late
        ],
    }


def _worked_json(window: "Worked") -> dict[str, object]:
    sides = {"expected": window.expected, "recorded": window.recorded, "model": window.model}
    return {
        "instant": window.instant,
        "scope": window.scope and list(window.scope),
        "model_scope": window.model_scope and list(window.model_scope),
        "variables": list(window.variables),
        **{name: rows if rows is None else [list(row) for row in rows] for name, rows in sides.items()},
    }
