"""The tables of runs for papers and spreadsheets: all runs as CSV, runs and means with intervals in LaTeX."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from streamgauge.model.controls import visible
from streamgauge.report.exports import table
from streamgauge.report.intervals import mean_interval
from streamgauge.report.latex import tex
from streamgauge.report.measures import OF_RUN, Measure, chosen
from streamgauge.report.numbers import NOTHING, duration, percent
from streamgauge.report.series import Judged, Series, series_of, traits_of, varying
from streamgauge.report.windows import named

_UNITS: Final[dict[Callable[[Any], str], str]] = {duration: ", ms", percent: " (0 to 1)"}
"""Format of a measure -> unit of its numbers."""

_OF_PAPER: Final = chosen(OF_RUN, ("precision", "recall", "reports", "missed", "surplus", "late", "median delay"))
_MEANS: Final = chosen(OF_RUN, ("precision", "recall", "median delay", "longest delay"))


def csv_table(runs: Sequence[Judged]) -> str:
    """A line per run: series, traits that distinguish it, seed and repetition, verdict, measures as numbers.

    Shares are from 0 to 1, times in ms; a cell is empty without a value.
    """
    series = series_of(runs)
    traits = {one.index: traits_of(one.header) for one in series}
    names = varying(list(traits.values()))
    headings = [f"{measure.name}{_UNITS.get(measure.written, '')}" for measure in OF_RUN]
    lines: list[Sequence[object]] = [
        ("engine", "semantics", *names, "seed", "repetition", "verdict", *headings, "failure"),
        *(
            (
                run.header.engine,
                run.header.semantics.name,
                *(traits[one.index].get(name, "") for name in names),
                run.header.workload.get("seed", ""),
                run.header.repetition,
                verdict.judgement.value,
                *("" if (value := measure.value(verdict)) is None else value for measure in OF_RUN),
                run.header.failure or "",
            )
            for one in series
            for run, verdict in one.runs
        ),
    ]
    return visible(table(lines))


def latex_tables(runs: Sequence[Judged], title: str) -> str:
    r"""A table of the runs, and one of means over repetitions with 95% intervals, if there are any.

    The tables need the package ``booktabs`` and are included by ``\input``.
    """
    series = series_of(runs)
    lines = [
        (named(one, run.header), verdict.judgement.value, *(measure.text(verdict) for measure in _OF_PAPER))
        for one in series
        for run, verdict in one.runs
    ]
    headings = ("Run", "Verdict", *(measure.heading for measure in _OF_PAPER))
    parts = [_tabular(f"{title}: runs", headings, "ll", lines)]
    if means := list(mean_lines(series)):
        parts.append(_tabular(f"{title}: means over repetitions with 95% intervals", MEAN_HEADINGS, "lr", means))
    return "\n".join(parts)


MEAN_HEADINGS: Final = ("Series", "Runs", *(measure.heading for measure in _MEANS))
"""The headings of ``mean_lines``."""


def mean_lines(series: Sequence[Series]) -> Iterator[tuple[str, ...]]:
    """A line per series with several runs: the mean of each measure, with an interval from three runs on."""
    for one in series:
        if len(one.runs) > 1:
            yield one.label, f"{len(one.runs):,}", *(_mean(one, measure) for measure in _MEANS)


def _mean(one: Series, measure: Measure[Any]) -> str:
    # Runs without a value, such as the delay of one that answered nothing, do not count as 0.
    values = [value for _, verdict in one.runs if (value := measure.value(verdict)) is not None]
    if not values:
        return NOTHING
    interval = mean_interval(values)
    text = measure.written(interval.mean)
    return text if interval.half is None else f"{text} \N{PLUS-MINUS SIGN} {measure.written(interval.half)}"


def _tabular(caption: str, headings: Sequence[str], left: str, lines: Sequence[Sequence[str]]) -> str:
    """A table with its caption; ``left`` are the kinds of the first columns, the others are numbers."""
    # A worked example: `left` is ll and there are five headings, so the columns are llrrr.
    columns = left + "r" * (len(headings) - len(left))
    rows = [
        r"\begin{table}",
        rf"\caption{{{tex(caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _row(headings),
        r"\midrule",
        *map(_row, lines),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(rows) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(tex, cells)) + r" \\"
