"""Two runs side by side: differing conditions, measures, delays, and the rows of each window."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from markupsafe import Markup

from streamgauge.model.run import Run
from streamgauge.model.terms import Row, with_blank_nodes
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report.cards import pace
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.document import conditions
from streamgauge.report.measures import OF_RUN, count
from streamgauge.report.numbers import NOTHING, duration, interval, mebibytes, moment, number, percent, scope_borders
from streamgauge.report.plots import plots
from streamgauge.report.plots.measures import DELAY, of_kind
from streamgauge.report.run_lanes import DrawnRun
from streamgauge.report.series import Judged, Series, median_delay, state
from streamgauge.report.windows import shortener
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.rooms.runs.folder import BenchError
from streamgauge.workbench.rooms.runs.run_list import RunLine, cut
from streamgauge.workbench.rooms.runs.run_page import GROWTH, SECONDS, judged
from streamgauge.workbench.rooms.runs.timelines import lanes_of, picture

LISTED: Final = 200
"""Windows that are listed."""

ROWS: Final = 10
"""Rows of one side of a window that are shown."""

QUERY_LINES: Final = 400
"""Lines of the difference of two queries that are shown."""

WindowKey: TypeAlias = tuple[int, int, int, int]
"""Start, end and instant of a window (ms, -1 for none), and how many of the same came before it."""

SignedRow: TypeAlias = tuple[int, Row]
"""1 for a row that an answer adds, -1 for one that it removes; blank nodes without their labels."""


@dataclass(frozen=True, slots=True)
class DifferentValue:
    """A named value of two runs in words; ``change`` is the way from the first to the second, where there is one."""

    name: str
    first: str
    second: str
    change: str = ""


@dataclass(frozen=True, slots=True)
class WindowDifference:
    """A window whose rows or state differ: its name, both states, some rows that only one run has, and their counts."""

    name: str
    states: tuple[str, str]
    only_first: Sequence[tuple[str, ...]]
    only_second: Sequence[tuple[str, ...]]
    counts: tuple[int, int]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All that differs between two runs; ``drawings`` are of the delays, ``picture`` of the windows."""

    asked: Sequence[DifferentValue]
    query: Sequence[tuple[str, str]]
    measures: Sequence[DifferentValue]
    message: str
    drawings: Sequence[Markup]
    variables: Sequence[str]
    different: Sequence[WindowDifference]
    differing: int
    windows: int
    picture: Markup


def compare(root: Path, lines: tuple[RunLine, RunLine]) -> RunComparison:
    """Compare two judged runs; MistakeError where one cannot be read or is too large."""
    plots()  # imports, which may not be stopped in their midst
    with DEADLINES.within(SECONDS, GROWTH):
        first, second = (judged(root, line.place) for line in lines)
        if lines[0].place == lines[1].place:
            raise BenchError(f"{lines[0].place}: this is one run: choose two that are not the same")
        windows = list(_different(first, second))
        message, drawings = _delays(first, second)
        names = first[1].variables if len(first[1].variables) >= len(second[1].variables) else second[1].variables
        return RunComparison(
            list(_asked((first, second))),
            list(_query(first[0].header.query_text, second[0].header.query_text)),
            list(_measures(first, second, lines)),
            message,
            drawings,
            names,
            windows[:LISTED],
            len(windows),
            len(set(_windows(first)) | set(_windows(second))),
            picture([_drawn(root, *line) for line in zip("AB", lines, (first, second), strict=True)]),
        )


def _drawn(root: Path, label: str, line: RunLine, judged: Judged) -> DrawnRun:
    return lanes_of(label, root, line.place, judged[0].header, judged[1])


def _asked(runs: tuple[Judged, Judged]) -> Iterator[DifferentValue]:
    """The conditions that differ; a value that only one run has is empty in the other."""
    first, second = (run.header for run, _ in runs)
    plain = {
        "engine": (first.engine, second.engine),
        "experiment": (first.experiment, second.experiment),
        "query": ("", "another: below") if first.query_text != second.query_text else ("", ""),
        "dialect": (first.dialect, second.dialect),
        "pace": (pace(first.factor), pace(second.factor)),
        "stream advanced to": (moment(first.advanced_to), moment(second.advanced_to)),
        "repetition": (str(first.repetition), str(second.repetition)),
    }
    for name, (one, other) in plain.items():
        if one != other:
            yield DifferentValue(name, cut(one) or NOTHING, cut(other) or NOTHING)
    tables: Sequence[tuple[str, Mapping[str, object], Mapping[str, object]]] = (
        ("semantics", _fields(runs[0]), _fields(runs[1])),
        ("workload", first.workload, second.workload),
        ("parameter", first.parameters, second.parameters),
        ("option", first.options, second.options),
        ("version of", first.versions, second.versions),
        ("machine", first.machine, second.machine),
    )
    for about, one_table, other_table in tables:
        yield from _changed(about, one_table, other_table)


def _changed(about: str, first: Mapping[str, object], second: Mapping[str, object]) -> Iterator[DifferentValue]:
    for key in list(dict.fromkeys((*first, *second)))[:200]:
        one, other = (cut(str(table[key])) if key in table else NOTHING for table in (first, second))
        if one != other:
            yield DifferentValue(cut(f"{about} {key}"), one, other)


def _fields(judged: Judged) -> dict[str, object]:
    """The fields of a semantics as words."""
    [about] = conditions([Series(0, "", (judged,))])
    named = {name: value for name, value, _source in about.semantics}
    return {"name": judged[0].header.semantics.name, **named}


def _query(first: str, second: str) -> Iterator[tuple[str, str]]:
    """The lines of both queries as a difference, each with its sign; none where they are the same."""
    if first == second:
        return
    one, other = first.splitlines()[:QUERY_LINES], second.splitlines()[:QUERY_LINES]
    for place, line in enumerate(difflib.unified_diff(one, other, n=2, lineterm="")):
        if place >= QUERY_LINES:
            return
        # The first two lines of a unified diff name the files.
        if place > 1 and not line.startswith("@@"):
            yield line[:1], cut(line[1:], 400)


def _measures(first: Judged, second: Judged, lines: tuple[RunLine, RunLine]) -> Iterator[DifferentValue]:
    """Verdict and measures of both, the change beside them."""
    one, other = first[1], second[1]
    yield DifferentValue("Verdict", one.judgement.value, other.judgement.value)
    failures = [run.header.failure for run, _ in (first, second)]
    if any(failures):
        words = [cut(failure, 300) if failure else NOTHING for failure in failures]
        yield DifferentValue("Failure of the engine", words[0], words[1])
    for measure in OF_RUN:
        change = _CHANGES[measure.written](measure.value(one), measure.value(other))
        yield DifferentValue(measure.heading, measure.text(one), measure.text(other), change)
    memory, cpu = _pair(lines, "memory"), _pair(lines, "cpu")
    shown = [NOTHING if value is None else mebibytes(value) for value in memory]
    yield DifferentValue("Greatest memory", shown[0], shown[1], _times(*memory))
    shown = [NOTHING if value is None else f"{number(value)} s" for value in cpu]
    yield DifferentValue("CPU", shown[0], shown[1], _times(*cpu))


def _pair(lines: tuple[RunLine, RunLine], name: str) -> tuple[float | None, float | None]:
    return getattr(lines[0], name), getattr(lines[1], name)


def _more(first: int, second: int) -> str:
    return "" if first == second else _signed(f"{second - first:+,}")


def _points(first: float | None, second: float | None) -> str:
    if first is None or second is None or first == second:
        return ""
    return _signed(f"{100 * (second - first):+,.2f} points")


def _times(first: float | None, second: float | None) -> str:
    """The change as a share of the first value: ``+12.0%``, or as its multiple where that is 2 or more."""
    if first is None or second is None or first <= 0 or second < 0:
        return ""
    # 100 ms and 150 ms are +50.0%, 100 ms and 300 ms are 3 times.
    share = second / first
    if share >= 2:
        return f"{number(share) if share < 100 else f'{share:,.0f}'} times"
    return "" if round(share, 3) == 1 else _signed(f"{100 * (share - 1):+.1f}%")


_CHANGES: Final[Mapping[Callable[[Any], str], Callable[[Any, Any], str]]] = {
    percent: _points,
    count: _more,
    duration: _times,
}
"""How a measure's change is written, by how its values are."""


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _delays(first: Judged, second: Judged) -> tuple[str, Sequence[Markup]]:
    """The message and the drawings of both runs' delays over stream time; none where no answer has one."""
    series = [Series(index, label, (run_,)) for index, (label, run_) in enumerate((("A", first), ("B", second)))]
    middles = [median_delay(run_[1].windows) for run_ in (first, second)]
    if None in middles:
        return "", ()
    drawn = [drawing for figure in of_kind(ChartDrawing(), series, DELAY) for drawing in figure.drawings]
    message = f"Median delay: A {duration(middles[0])}, B {duration(middles[1])}"
    return message, [Markup(drawing) for drawing in drawn]


def _windows(judged: Judged) -> dict[WindowKey, WindowVerdict]:
    """The judged reports of a run by their windows."""
    windows_: dict[WindowKey, WindowVerdict] = {}
    seen: Counter[tuple[int, int, int]] = Counter()
    for window in judged[1].windows:
        place = tuple(-1 if at is None else at for at in (window.start, window.end, window.instant))
        key = (place[0], place[1], place[2])
        # Several reports of one window at one instant, as for each row one, are told apart by their order.
        windows_[(*key, seen[key])] = window
        seen[key] += 1
    return windows_


def _rows(run: Run, window: WindowVerdict | None) -> Counter[SignedRow]:
    """The rows of the answer that a judged report is about."""
    if window is None or window.report is None or not 0 <= window.report < len(run.answers):
        return Counter()
    answer = run.answers[window.report]
    return Counter([(1, _unlabelled(row)) for row in answer.added] + [(-1, _unlabelled(row)) for row in answer.removed])


def _unlabelled(row: Row) -> Row:
    # Labels of blank nodes differ from run to run, and say nothing.
    return tuple(term and with_blank_nodes(term, lambda _blank: "_:blank") for term in row)


def _different(first: Judged, second: Judged) -> Iterator[WindowDifference]:
    """The windows that only one run has, or whose rows or state differ, in order of their instants."""
    one, other = _windows(first), _windows(second)
    borders = scope_borders(first[0].header.query, first[0].header.semantics)
    shorts = [shortener(run.header.query_text) for run, _ in (first, second)]
    for key in sorted({*one, *other}, key=lambda key: (key[2], key)):
        windows = one.get(key), other.get(key)
        rows = _rows(first[0], windows[0]), _rows(second[0], windows[1])
        # Differences of bags: a row that one run has twice and the other once is there once.
        only = rows[0] - rows[1], rows[1] - rows[0]
        states = tuple("not due" if window is None else state(window) for window in windows)
        # Also equally wrong windows are no difference.
        if states[0] == states[1] and not only[0] and not only[1]:
            continue
        shown = [
            [_words(row, short) for row in sorted(side, key=_order)[:ROWS]]
            for side, short in zip(only, shorts, strict=True)
        ]
        start, end, instant = (None if at == -1 else at for at in key[:3])
        where = interval(start, end, borders)
        name = where if instant in (None, end) else f"{where}, at {moment(instant or 0)}"
        yield WindowDifference(
            name if start is not None or instant is None else f"at {moment(instant)}",
            (states[0], states[1]),
            shown[0],
            shown[1],
            (only[0].total(), only[1].total()),
        )


def _order(row: SignedRow) -> tuple[str, ...]:
    return tuple(term or "" for term in row[1])


def _words(row: SignedRow, short: Callable[[str], str]) -> tuple[str, ...]:
    cells = tuple(NOTHING if term is None else short(term) for term in row[1])
    return cells if row[0] > 0 or not cells else (f"removed: {cells[0]}", *cells[1:])
