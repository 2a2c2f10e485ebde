"""A comparison as a table for the terminal, Markdown, JSON, and points for benchmark dashboards."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.text import Text

from streamgauge.model.controls import visible
from streamgauge.model.phrases import counted
from streamgauge.report.comparison.changes import Comparison, MeasuredChange, Trend
from streamgauge.report.comparison.measurements import Measurements
from streamgauge.report.fitting_table import FittingTable
from streamgauge.report.numbers import NOTHING, duration, mebibytes, number

COLUMNS = ("run", "measure", "base", "now", "change", "")
_STYLE = {Trend.WORSE: "red", Trend.GONE: "red", Trend.BETTER: "green", Trend.NEW: "yellow", Trend.SAME: "dim"}


def headline(comparison: Comparison) -> str:
    """The comparison, as a sentence."""
    subjects = len({change.subject for change in comparison.changes})
    compared = f"{counted(subjects, 'subject')} compared"
    bad = comparison.worse
    if not bad:
        return f"Nothing got worse: {compared}."
    first = bad[0]
    more = f", and {counted(len(bad) - 1, 'other change')}" if len(bad) > 1 else ""
    gone = f"{first.subject} is gone" if first.trend is Trend.GONE else f"{first.measure} of {first.subject} got worse"
    return f"{gone}{more}: {compared}."


def compared_table(comparison: Comparison) -> FittingTable:
    """The changes for the terminal; unchanged measures are left out if something changed."""
    table = FittingTable(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in ("base", "now", "change") else "left")
    for change in _shown_changes(comparison):
        *cells, word = _cells(change)
        table.add_row(*cells, Text(word, style=_STYLE[change.trend]))
    return table


def markdown(comparison: Comparison) -> str:
    """The comparison for a pull request: a sentence, the changes, and unchanged measures in a fold."""
    lines = [f"### Streamgauge: {headline(comparison)}", "", *_markdown_table(_shown_changes(comparison))]
    same = [change for change in comparison.changes if change.trend is Trend.SAME]
    if same and len(same) < len(comparison.changes):
        lines += [
            "",
            f"<details><summary>{len(same):,} unchanged</summary>",
            "",
            *_markdown_table(same),
            "",
            "</details>",
        ]
    return visible("\n".join(lines) + "\n")


def compared_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON values: ``worse`` is whether it fails, ``changes`` have every measure."""
    return {
        "worse": bool(comparison.worse),
        "sentence": headline(comparison),
        "changes": [{**asdict(change), "trend": change.trend.value} for change in comparison.changes],
    }


def smaller_is_better(measurements: Measurements) -> list[dict[str, Any]]:
    """The measures of runs as points of github-action-benchmark's tool ``customSmallerIsBetter``."""
    points = []
    for run in measurements.runs:
        extra = f"{run.judgement.value}; {counted(run.windows, 'window')} of {counted(run.runs, 'run')}"
        values = (
            ("windows not as expected", "windows", run.wrong),
            ("delay, median", "ms", run.delay),
            ("delay, 99th percentile", "ms", run.slow),
            ("CPU", "s", run.cpu),
            ("memory", "bytes", run.memory),
        )
        points += [
            {"name": f"{run.name}/{measure}", "unit": unit, "value": value, "extra": extra}
            for measure, unit, value in values
            if value is not None
        ]
    return points


def bigger_is_better(measurements: Measurements) -> list[dict[str, Any]]:
    """The capacities, in triples per second, as points of github-action-benchmark's tool ``customBiggerIsBetter``."""
    return [
        {"name": one.name, "unit": "triples/s", "value": one.rate or 0, "extra": _carried(one.value, one.unit)}
        for one in measurements.capacities
        if one.absent is None
    ]


def _carried(value: float | None, unit: str) -> str:
    return "nothing carried" if value is None else f"carries {number(value)} {unit}".rstrip()


def _shown_changes(comparison: Comparison) -> list[MeasuredChange]:
    """The measures that changed; all if none did."""
    # If nothing changed, all measures are shown: an empty table would look like a failed comparison.
    return [change for change in comparison.changes if change.trend is not Trend.SAME] or list(comparison.changes)


def _markdown_table(changes: list[MeasuredChange]) -> Iterator[str]:
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---|---|--:|--:|--:|---|"
    for change in changes:
        # A bar within a cell would end it.
        *cells, word = (cell.replace("|", r"\|") for cell in _cells(change))
        marked = f"**{word}**" if change.trend in (Trend.WORSE, Trend.GONE) else word
        yield "| " + " | ".join((*cells, marked)) + " |"


def _cells(change: MeasuredChange) -> tuple[str, ...]:
    base, now = _value(change.base, change.unit), _value(change.now, change.unit)
    return change.subject, change.measure, base, now, _difference(change), change.trend.value


def _value(value: float | str | None, unit: str) -> str:
    if value is None or isinstance(value, str):
        return value or NOTHING
    match unit:
        case "ms":
            return duration(value)
        case "s":
            return duration(value * 1000)
        case "bytes":
            return mebibytes(value)
        case _:
            return f"{number(value)} {unit}".rstrip()


def _difference(change: MeasuredChange) -> str:
    """The change in percent of the base, with the tolerance if it is worse."""
    base, now = change.base, change.now
    # Words, as verdicts are, have no difference in percent, nor has a growth from 0.
    if not isinstance(base, int | float) or not isinstance(now, int | float) or not base:
        return ""
    moved = f"{100 * (now - base) / base:+,.0f}%".replace("-", "\N{MINUS SIGN}")
    return f"{moved} ({change.allowed:.0%} allowed)" if change.allowed and change.trend is Trend.WORSE else moved
