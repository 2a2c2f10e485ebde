"""The verdict on one run for the terminal (rich) and for programs (JSON)."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Borders
from streamgauge.model.verdict import Diagnosis, Judgement, Verdict, WindowVerdict
from streamgauge.report.cards import explanation, facts_of, findings, fitted
from streamgauge.report.numbers import duration, interval, percent
from streamgauge.report.series import delay_of, median_delay, state, unit_of

LISTED = 10
_STYLE = {Judgement.RIGHT: "green", Judgement.LATE: "yellow", Judgement.WRONG: "red", Judgement.UNKNOWN: "bold"}
_SIGN = {Judgement.RIGHT: "✓", Judgement.LATE: "◷", Judgement.WRONG: "✗", Judgement.UNKNOWN: "?"}
_COLUMNS = ("state", "borders", "precision", "recall", "expected", "received", "undecided", "delay", "fits best")
_WORDS = ("state", "borders", "fits best")


def verdict_lines(header: RunHeader, verdict: Verdict) -> RenderableType:
    """The verdict as rich prints it: the word, the reason, the figures, and the first reports that are not right."""
    unit = unit_of(header.semantics)
    parts: list[RenderableType] = [_word(header, verdict)]
    parts.extend(Text("  " + sentence, style="yellow") for sentence in verdict.cautions)
    parts.append(Text("  " + explanation(unit, verdict)))
    parts.extend(Text(f"  Note: {note}") for note in header.query.notes)
    if header.failure:
        parts.append(Text(f"  The engine failed. {header.failure}", style="red"))
    parts.extend(Text("  " + sentence) for sentence in findings(unit, verdict))
    parts.append(_figures([*(_scores(verdict) if verdict.windows else ()), *facts_of(header, [verdict])[2:]]))
    bad = [window for window in verdict.windows if state(window) != "right"]
    if bad:
        parts.append(_table(bad[:LISTED], unit, header.semantics.borders))
    if len(bad) > LISTED:
        parts.append(Text(f"  and {counted(len(bad) - LISTED, f'more {unit}')}"))
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


def _scores(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    return (
        ("Precision, recall", f"{percent(verdict.precision)}, {percent(verdict.recall)}"),
        ("Missed, surplus, late", f"{verdict.missed:,}, {verdict.surplus:,}, {verdict.late:,}"),
        ("Delay", f"median {duration(median_delay(verdict.windows))}, at most {duration(verdict.max_delay)}"),
        ("Last answer", f"{duration(verdict.last_answer)} after the start"),
    )


def _figures(lines: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in lines:
        table.add_row(Text("  " + name), Text(value))
    return table


def _table(windows: list[WindowVerdict], unit: str, borders: Borders) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="bold")
    shown = _shown(windows)
    for name in (unit, *shown):
        table.add_column(name, justify="left" if name in _WORDS else "right")
    for window in windows:
        cells = {
            "state": state(window),
            "borders": interval(window.start, window.end, borders),
            "precision": percent(window.precision),
            "recall": percent(window.recall),
            "expected": f"{window.expected:,}",
            "received": f"{window.actual:,}",
            "undecided": f"{window.undecided:,}",
            "delay": delay_of(window),
            "fits best": fitted(window, borders),
        }
        table.add_row(f"{window.index:,}", *(Text(cells[name]) for name in shown))
    return table


def _shown(windows: Sequence[WindowVerdict]) -> tuple[str, ...]:
    """The columns that say something about these windows."""
    empty = {
        "undecided": not any(window.undecided for window in windows),
        "fits best": not any(window.borders for window in windows),
    }
    return tuple(name for name in _COLUMNS if not empty.get(name, False))


def verdict_json(header: RunHeader, verdict: Verdict) -> dict[str, object]:
    """The verdict as JSON values: shares 0 to 1, times in ms, rows as lists of N-Triples terms (``None`` unbound)."""
    clock = verdict.other_clock
    return {
        "engine": header.engine,
        "semantics": header.semantics.name,
        "repetition": header.repetition,
        "seed": header.workload.get("seed"),
        "judgement": verdict.judgement.value,
        "rules": verdict.rules,
        "reason": verdict.reason,
        "failure": header.failure,
        "evaluator": verdict.evaluator,
        "tolerance": verdict.tolerance,
        "retyped": list(verdict.retyped),
        "t0": verdict.t0,
        "precision": verdict.precision,
        "recall": verdict.recall,
        "missed": verdict.missed,
        "surplus": verdict.surplus,
        "late": verdict.late,
        "delay_bound": verdict.delay_bound,
        "horizon": verdict.horizon,
        "cautions": list(verdict.cautions),
        "notes": list(header.query.notes),
        "undecided": verdict.undecided,
        "median_delay": median_delay(verdict.windows),
        "max_delay": verdict.max_delay,
        "last_answer": verdict.last_answer,
        "other_clock": dict(zip(("clock", "precision", "recall"), clock, strict=True)) if clock else None,
        "diagnosis": diagnosis_json(verdict.diagnosis),
        "variables": list(verdict.variables),
        "windows": [_window_json(window) for window in verdict.windows],
    }


def _window_json(window: WindowVerdict) -> dict[str, object]:
    return {
        "index": window.index,
        "state": state(window),
        "start": window.start,
        "end": window.end,
        "instant": window.instant,
        "report": window.report,
        "precision": window.precision,
        "recall": window.recall,
        "true_positives": window.true_positives,
        "expected": window.expected,
        "actual": window.actual,
        "content": window.content,
        "delay": window.delay,
        "late": window.late,
        "missing": [list(row) for row in window.missing],
        "surplus": [list(row) for row in window.surplus],
        "due": window.due,
        "undecided": window.undecided,
        "doubtful": [list(row) for row in window.doubtful],
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
