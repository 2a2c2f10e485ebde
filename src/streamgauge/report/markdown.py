"""Verdicts as Markdown (GitHub's), for pull requests and job summaries: headline, a table of runs, wrong rows."""

import re
from collections.abc import Iterator, Sequence

from streamgauge.model.controls import visible
from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Judgement, WindowVerdict
from streamgauge.report import cards
from streamgauge.report.measures import OF_REPORT, OF_RUN, BorderedReport, chosen, texts
from streamgauge.report.numbers import scope_borders
from streamgauge.report.series import Judged, Series, series_of, state
from streamgauge.report.windows import command_of, cut, named, shortener

SIGNS = {
    Judgement.RIGHT: "\N{WHITE HEAVY CHECK MARK}",
    Judgement.LATE: "\N{ALARM CLOCK}",
    Judgement.WRONG: "\N{CROSS MARK}",
    Judgement.UNKNOWN: "\N{BLACK QUESTION MARK ORNAMENT}",
}
LISTED = 10
"""Maximum number of reports of a run, and of rows of a report."""
# GitHub links a bare ``http://`` and ``www.`` without any brackets, so these are escaped like the signs.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&@!]|:(?=//)|(?<=www)\.)")
_OF_RUN = chosen(OF_RUN, ("precision", "recall", "reports", "missed", "surplus", "late", "median delay"))
_OF_REPORT = chosen(OF_REPORT, ("state", "borders", "expected", "received", "delay"))


def page(runs: Sequence[Judged], title: str) -> str:
    """The verdicts as Markdown; ValueError without a run.

    Texts of engines, queries and workloads are escaped, so that they make no link, image or mention.
    """
    if not runs:
        raise ValueError("there is no run to report: give at least one run with its verdict")
    return visible("\n".join(_lines(series_of(runs), title)) + "\n")


def _lines(series: Sequence[Series], title: str) -> Iterator[str]:
    yield f"## {escaped(title)}"
    yield ""
    yield escaped(cards.headline(series))
    yield ""
    yield _row(["Run", "Verdict", *(measure.heading for measure in _OF_RUN)])
    yield _row(["---", "---", *["---:"] * len(_OF_RUN)])
    judged = [(one, run) for one in series for run in one.runs]
    for one, run in judged:
        yield _row(_cells(one, run))
    for one, run in judged:
        if run[1].judgement is not Judgement.RIGHT or run[0].header.failure:
            yield from _detail(one, run)


def _cells(one: Series, judged: Judged) -> Iterator[str]:
    run, verdict = judged
    yield escaped(named(one, run.header))
    yield f"{SIGNS[verdict.judgement]} {verdict.judgement.value}"
    yield from map(escaped, texts(_OF_RUN, verdict))


def _detail(one: Series, judged: Judged) -> Iterator[str]:
    """The reasons why a run is not right, folded: sentences, the first such reports, and the rows of the first."""
    run, verdict = judged
    name = escaped(named(one, run.header))
    yield ""
    # Markdown within HTML is read only after an empty line.
    yield f"<details><summary>{SIGNS[verdict.judgement]} {name}</summary>"
    yield ""
    if run.header.failure:
        yield f"- The engine failed. {escaped(run.header.failure)}"
    yield f"- {escaped(cards.explanation(one.unit, verdict))}"
    yield from (f"- {escaped(sentence)}" for sentence in (*verdict.cautions, *cards.findings(one.unit, verdict)))
    bad = [window for window in verdict.windows if state(window) != "right"]
    if bad:
        yield from _windows(one, judged, bad)
    yield ""
    yield "</details>"


def _windows(one: Series, judged: Judged, bad: Sequence[WindowVerdict]) -> Iterator[str]:
    run, _ = judged
    yield ""
    yield _row((one.unit.capitalize(), *(measure.heading for measure in _OF_REPORT)))
    yield _row(["---", *("---" if measure.words else "---:" for measure in _OF_REPORT)])
    for window in bad[:LISTED]:
        cells = texts(_OF_REPORT, BorderedReport(window, scope_borders(run.header.query, run.header.semantics)))
        yield _row((f"{window.index:,}", *map(escaped, cells)))
    if len(bad) > LISTED:
        yield ""
        yield f"And {counted(len(bad) - LISTED, f'more {one.unit}')}."
    if command := command_of(run, bad[0].index):
        yield ""
        yield "The first of them:"
        yield ""
        # An indented block needs no escapes, but ends with its line: a folder's name may contain a line end.
        yield f"    {' '.join(command.split())}"
    yield from _witnesses(run.header.query_text, bad[0])


def _witnesses(query_text: str, window: WindowVerdict) -> Iterator[str]:
    short = shortener(query_text)
    for side, rows in (("missing", window.missing), ("surplus", window.surplus)):
        if rows:
            yield ""
            yield f"Rows {side} in {window.index:,}:"
            yield ""
        for row in rows[:LISTED]:
            yield f"    {'; '.join('unbound' if term is None else _plain(short(term)) for term in row)}"


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """One line of text."""
    return " ".join(text.split())


def escaped(text: str) -> str:
    """Escape text for Markdown, on one line and shortened if it is very long."""
    return _SPECIAL.sub(r"\\\1", _plain(cut(text)))
