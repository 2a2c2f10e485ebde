"""Tables of judged reports: a selection, with differing rows and the command that explains each."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from streamgauge.model.phrases import counted
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.terms import XSD, Row, Term, by_parts
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.report.measures import OF_REPORT, BorderedReport, Measure, in_use, texts
from streamgauge.report.numbers import NOTHING, duration, scope_borders
from streamgauge.report.series import Judged, Series, rows_of, state

LISTED = 1500  # judged reports in all tables together
OTHERS = 100  # right reports in one table, where a run has more reports than are listed
WITNESSES = 20  # missing rows, and as many surplus rows, of one report
CELLS = 8000  # of missing and surplus rows, in all tables together
LETTERS = 200  # of one term

_PREFIX = re.compile(r"PREFIX\s+([\w.-]*):\s*<([^>\s]+)>", re.IGNORECASE)


def named(one: Series, header: RunHeader) -> str:
    """The name of a run: its series, and its repetition if there are several."""
    again = one.repetition(header)
    return f"{one.label}, {again}" if again else one.label


@dataclass(frozen=True)
class WitnessRows:
    """Rows of one side of a wrong report, shortened; ``rest`` counts those not shown."""

    side: str
    rows: tuple[tuple[str, ...], ...]
    rest: int
    total: int


@dataclass(frozen=True)
class ReportLine:
    """A judged report in its table; ``anchor`` is the target of links, ``sentences`` and ``command`` unfold."""

    state: str
    cells: tuple[str, ...]
    heading: str
    witnesses: tuple[WitnessRows, ...]
    anchor: str
    sentences: tuple[str, ...]
    command: str

    @property
    def differences(self) -> str:
        """The numbers of missing and surplus rows, such as ``3 missing, 1 surplus rows``."""
        counts = ", ".join(f"{side.total:,} {side.side}" for side in self.witnesses)
        return f"{counts} {'row' if sum(side.total for side in self.witnesses) == 1 else 'rows'}"


@dataclass(frozen=True)
class WindowTable:
    """The judged reports of a run; ``note`` states which are listed."""

    name: str
    anchor: str
    summary: str
    note: str
    variables: tuple[str, ...]
    lines: tuple[ReportLine, ...]

    @property
    def filtered(self) -> bool:
        """Whether hiding the right ones makes the table shorter, and not empty."""
        return len({line.state == "right" for line in self.lines}) > 1


def window_measures(series: Sequence[Series]) -> tuple[Measure[BorderedReport], ...]:
    """The columns of window tables after the report and its state."""
    measures = OF_REPORT[1:]
    windows = (window for one in series for _, verdict in one.runs for window in verdict.windows)
    return tuple(compress(measures, in_use(measures, windows)))


def window_tables(series: Sequence[Series]) -> list[WindowTable]:
    """A table per run with judged reports; long runs list those that are not right first."""
    runs = [(one, at, one.runs[at]) for one in series for _, at in one.by_seed if one.runs[at][1].windows]
    limit = listing_limit(series)
    wrong = sum(min(limit, sum(state(window) != "right" for window in judged[1].windows)) for _, _, judged in runs)
    shown = window_measures(series)
    return [_table(one, number, judged, (limit, wrong), shown) for one, number, judged in runs]


def listing_limit(series: Sequence[Series]) -> int:
    """The maximum number of reports in the table of a run."""
    count = sum(bool(verdict.windows) for one in series for _, verdict in one.runs)
    return max(10, min(200, LISTED // max(1, count)))


def listed(verdict: Verdict, limit: int) -> list[tuple[int, WindowVerdict]]:
    """The reports of a table with their places in the verdict: all, or those that are not right first."""
    placed = list(enumerate(verdict.windows))
    if len(placed) <= limit:
        return placed
    # Right reports fill only the rest: a table of 200 lines without the wrong ones would be of no use.
    bad = [entry for entry in placed if state(entry[1]) != "right"][:limit]
    good = [entry for entry in placed if state(entry[1]) == "right"][: min(OTHERS, limit - len(bad))]
    return sorted(bad + good)


def anchors(series: Sequence[Series], one: Series, number: int = 0) -> Mapping[int, str]:
    """The anchors of the listed reports of a series' run, by their places in the verdict."""
    windows_ = listed(one.runs[number][1], listing_limit(series))
    return {at: _anchor(one, number, at) for at, _ in windows_}


def _anchor(one: Series, number: int, place: int) -> str:
    return f"w{one.index}-{number}-{place}"


def _table(
    one: Series,
    number: int,
    judged: Judged,
    limits: tuple[int, int],
    shown: Sequence[Measure[BorderedReport]],
) -> WindowTable:
    run, verdict = judged
    limit, wrong = limits
    chosen = listed(verdict, limit)
    bad = sum(state(window) != "right" for window in verdict.windows)
    # All wrong reports of all tables share the cells, or the page would grow with every wrong run.
    rows = max(1, min(WITNESSES, CELLS // max(1, wrong * len(verdict.variables))))
    short = shortener(run.header.query_text)
    note = ""
    if len(chosen) < len(verdict.windows):
        note = f"{len(chosen):,} of {counted(len(verdict.windows), one.unit)} listed: "
        note += f"{min(limit, bad):,} of the {bad:,} that are not right or late, then the earliest of the others."
        if not bad:
            note = f"The first {len(chosen):,} of {counted(len(verdict.windows), one.unit)} are listed; all are right."
    late = sum(state(window) == "late" for window in verdict.windows)
    words = [f"{bad - late:,} not right"] * (bad > late) + [f"{late:,} late"] * bool(late)
    text = ", ".join([counted(len(verdict.windows), one.unit), *(words or ["all right"])])
    borders = scope_borders(run.header.query, run.header.semantics)
    lines = tuple(
        replace(
            _line(window, judged, one.unit, rows, short, _anchor(one, number, at)),
            cells=texts(shown, BorderedReport(window, borders)),
        )
        for at, window in chosen
    )
    return WindowTable(named(one, run.header), f"t{one.index}-{number}", text, note, verdict.variables, lines)


def _line(
    window: WindowVerdict, judged: Judged, unit: str, rows: int, short: Callable[[Term], str], anchor: str
) -> ReportLine:
    run, verdict = judged
    missing = _witness("missing", window.missing, window.expected - window.true_positives, rows, short)
    surplus = _witness("surplus", window.surplus, window.actual - window.true_positives, rows, short)
    doubtful = _witness("undecided", window.doubtful, window.undecided, rows, short)
    sides = tuple(side for side in (missing, surplus, doubtful) if side.total > 0)
    sentences, command = tuple(_sentences(window, verdict)), command_of(run, window.index)
    return ReportLine(state(window), (), f"{unit} {window.index:,}", sides, anchor, sentences, command)


def _sentences(window: WindowVerdict, verdict: Verdict) -> Iterator[str]:
    """Sentences on a report: its content, the rows expected and received, and its delay."""
    if not window.due:
        yield f"No report was due here; {counted(window.actual, 'row')} came."
        return
    message = f"{counted(window.content, 'triple')} in the window: {rows_of(window)}."
    yield message if window.report is not None else f"{message} No answer was received for it."
    if window.late and window.delay is not None:
        allowed = "" if verdict.delay_bound is None else f", later than the {duration(verdict.delay_bound)} allowed"
        yield f"It came {duration(window.delay)} after it was due{allowed}."


def command_of(run: Run, index: int) -> str:
    """The command that explains a report of a recorded run; empty for a run without a folder."""
    return "" if run.folder is None else f"streamgauge explain {shlex.quote(str(run.folder))} --window {index}"


def _witness(side: str, rows: Sequence[Row], total: int, limit: int, short: Callable[[Term], str]) -> WitnessRows:
    total = max(total, len(rows))
    shown = tuple(tuple(NOTHING if term is None else short(term) for term in row) for row in rows[:limit])
    return WitnessRows(side, shown, total - len(shown), total)


def shortener(query_text: str) -> Callable[[Term], str]:
    """A function that writes terms with the query's prefixes and shortens very long ones."""
    # The longest namespace first: one may be the beginning of another.
    prefixes = sorted(_PREFIX.findall(query_text), key=lambda prefix: -len(prefix[1]))
    known = [(name + ":", iri) for name, iri in prefixes] + [("xsd:", XSD)]

    def short_part(term: Term) -> str:
        head, tail = ("", term) if term.startswith("<") else _split(term)
        for name, iri in known:
            # Names with other characters would need an escape.
            if tail.startswith("<" + iri) and re.fullmatch(r"[\w.-]*", tail[len(iri) + 1 : -1]):
                tail = name + tail[len(iri) + 1 : -1]
                break
        return head + tail

    return lambda term: cut(by_parts(term, short_part))


def _split(term: Term) -> tuple[str, str]:
    at = term.rfind("^^<")
    # ``^^<`` may be in the text too: only the last one, before a final ``>``, introduces a datatype.
    return (term[: at + 2], term[at + 2 :]) if at > 0 and term.endswith(">") else (term, "")


def cut(text: str) -> str:
    """The text, or its beginning with the number of omitted characters."""
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}… ({len(text) - LETTERS:,} more characters)"
