"""YABench's oracle (YABench/yabench a3acfe2): closed borders, report i for window i, bags; means over its windows.

Its content-change comparator and its gracious modes are its own, with their slips. Window close: window i ends at i
slides, and report i of an engine belongs to it, whatever it says; windows after the last report are not scored, an
empty last report is lost, and a triple read ahead stays in the next window. Content change: at each time the scope is
[n slides, t], and expected are the rows that the last result did not have; row by row, in order, a record for each,
whose precision and recall are 0 or 1 (a matching report 1/1, the first other one 0/0 for all rows still expected,
leftovers 1/0 or 0/1), so those of a line are shares of records, not of rows. With one triple per time every second time
is skipped. In gracious mode a window's start goes one slide back, then right until all new rows match.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from streamgauge.model.element import StreamElement
from streamgauge.model.query import Window
from streamgauge.model.run import Run
from streamgauge.model.semantics import Report
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import last_answer, ratio
from streamgauge.papers.rules import RuleSettings, WindowQuery, in_sequence
from streamgauge.papers.yabench.oracle_files import (
    UNSET,
    Ask,
    EngineReport,
    EngineReports,
    InputReader,
    OracleLine,
    OracleWindow,
    OracleWriter,
    Solution,
    Timed,
    solutions,
)
from streamgauge.semantics.refusal import RefusedError


@dataclass(slots=True)
class _UnmatchedReport:
    """The first unmatched report, kept for the next time, and whether an earlier one matched."""

    kept: EngineReport | None = None
    matched: bool = False


class _Comparator:
    """Compares an engine's reports with the query's answers over windows of the input stream."""

    def __init__(self, reader: InputReader, reports: EngineReports, window: Window, ask: Ask) -> None:
        self._reader, self._reports, self._window, self._ask = reader, reports, window, ask
        self._out = OracleWriter(window.size, window.slide, reader.size)


class _PlainComparator(_Comparator):
    """Content change without gracious mode; ``single`` drops one unmatched report, otherwise many."""

    _kept: EngineReport | None = None
    _single = True

    def lines(self, *, single: bool) -> list[OracleLine]:
        self._single = single
        previous: tuple[Solution, ...] | None = None
        slides = 0
        while (time := self._reader.next_time()) is not None:
            # The first window that still contains ``time``: with 5 s each, 5000 ms is in [0, 5000], 5001 ms in [5000,
            # 10000].
            while slides * self._window.slide + self._window.size < time:
                slides += 1
            start = slides * self._window.slide
            content = self._reader.window(start, time)
            current = self._ask(content) if content else ()
            if content and not is_empty(current):
                fresh = without(current, previous)
                if fresh:
                    self._compare(content, fresh)
                    previous = current
            self._reader.purge(start - self._window.size)
        left_over(self._out, self._reports)
        return self._out.flush()

    def _compare(self, content: OracleWindow, expected: list[Solution]) -> None:
        report = self._kept or self._reports.next()
        self._kept = None
        if report is None:
            self._unsaid(content, expected)
            return
        match_ = self._match(content, expected, report)
        while match_.kept is not None and not match_.matched and not self._single:
            following = self._reports.next()
            match_ = self._match(content, expected, following) if following else _UnmatchedReport()
        # This is one of its slips: a report that matches nothing is lost unless an earlier one has matched.
        self._kept = match_.kept if match_.matched else None

    def _match(self, content: OracleWindow, expected: list[Solution], report: EngineReport) -> _UnmatchedReport:
        """Take reports while they match an expected row; the first other one stops it."""
        matched = False
        while True:
            if len(report.rows) != 1 or report.rows[0] not in expected:
                self._out.add(
                    OracleLine(0.0, 0.0, len(report.rows), 0, len(content.triples), content.start, content.end, UNSET)
                )
                return _UnmatchedReport(report, matched)
            matched = True
            expected.remove(report.rows[0])
            delay = report.end - content.end
            self._out.add(OracleLine(1.0, 1.0, 1, 1, len(content.triples), content.start, content.end, delay, 1))
            # No report is taken beyond the last expected row: it belongs to the next time.
            following = self._reports.next() if expected else None
            if following is None:
                self._unsaid(content, expected)
                return _UnmatchedReport(None, matched)
            report = following

    def _unsaid(self, content: OracleWindow, expected: list[Solution]) -> None:
        for _ in expected:
            self._out.add(OracleLine(1.0, 0.0, UNSET, 1, UNSET, content.start, content.end, UNSET))


def is_empty(rows: tuple[Solution, ...]) -> bool:
    """Whether there are no solutions, or only the empty one."""
    return not rows or (len(rows) == 1 and not rows[0])


def without(current: tuple[Solution, ...], previous: tuple[Solution, ...] | None) -> list[Solution]:
    """The rows that the last result with new rows lacked; all copies of its rows are removed."""
    old = set(previous or ())
    return [row for row in current if row not in old]


def left_over(out: OracleWriter, reports: EngineReports) -> None:
    """Add a record for each remaining report at the end of the stream."""
    while (report := reports.next()) is not None:
        start = out.number(report.end) * out.slide
        out.add(OracleLine(0.0, 1.0, len(report.rows), UNSET, UNSET, start, report.end, UNSET))


@dataclass(slots=True)
class _TriedContent:
    """The outcome of a content: rows still expected, rows taken, index of the next report."""

    expected: list[Solution]
    rows: int
    following: int
    matched: bool
    ended: bool = False


class _GraciousComparator(_Comparator):
    """Content change in gracious mode; RefusedError if YABench's oracle fails or does not end."""

    _at = 0
    _current: tuple[Solution, ...] = ()
    _previous: tuple[Solution, ...] | None = None

    def lines(self) -> list[OracleLine]:
        slides = 0
        while (time := self._reader.next_time()) is not None:
            while slides * self._window.slide + self._window.size < time:
                slides += 1
            # The slide back at which gracious mode begins.
            slides = max(0, slides - 1)
            content = self._reader.window(slides * self._window.slide, time)
            if not is_empty(self._current):
                self._previous = self._current
            if content:
                self._fit(content)
        # Reports were only looked at by index so far. Those taken are skipped, and what is left is surplus.
        for _ in range(self._at):
            self._reports.next()
        left_over(self._out, self._reports)
        return self._out.flush()

    def _fit(self, content: OracleWindow) -> None:
        """Try contents until one gives all new rows, none is left, or the last partial match is accepted."""
        partly: OracleWindow | None = None
        back = False
        while True:
            self._current = self._ask(content)
            expected = [] if is_empty(self._current) else without(self._current, self._previous)
            if not expected or self._reports.at(self._at) is None:
                return
            tried = self._try(content, expected, back=back)
            if not tried.expected:
                self._matched(content, tried)
                return
            # Going back would try the same content with the same reports, over and over.
            if back and tried.ended:
                raise RefusedError(f"YABench's oracle never ends: at {content.end} ms too few reports are left")
            back = back or (partly is not None and not tried.matched)
            if tried.matched:
                partly = content
            content = partly if back and partly else self._reader.without_first(content)

    def _try(self, content: OracleWindow, expected: list[Solution], *, back: bool) -> _TriedContent:
        """Take reports in order while they are expected; when going back, record the rest as missing."""
        place = self._at
        report = self._reports.at(place)
        assert report is not None
        if len(report.rows) != 1 or report.rows[0] not in expected:
            return _TriedContent(expected, len(report.rows), place + 1, matched=False)
        taken = len(report.rows)
        while True:
            place += 1
            if len(report.rows) != 1 or report.rows[0] not in expected:
                if back:
                    self._missing(content, len(report.rows))
                    return _TriedContent([], taken, place - 1, matched=True)
                return _TriedContent(expected, taken, place, matched=True)
            expected.remove(report.rows[0])
            taken += 1
            following = self._reports.at(place) if expected else None
            if following is None:
                return _TriedContent(expected, taken, place, matched=True, ended=bool(expected))
            report = following

    def _missing(self, content: OracleWindow, actual: int) -> None:
        size = len(content.triples)
        self._out.add(OracleLine(0.0, 0.0, actual, 0, size, content.start, content.end, UNSET))

    def _matched(self, content: OracleWindow, tried: _TriedContent) -> None:
        self._at = tried.following
        size, expected = len(content.triples), len(self._current)
        self._out.add(
            OracleLine(1.0, 1.0, tried.rows, expected, size, content.start, content.end, UNSET, tried.rows - 1)
        )


ABOUT = (
    "YABench: closed windows from 0 on paired with reports by index, bags; content change row by row; gracious modes."
)

MAX_TRIPLES = 400_000_000
"""Maximum number of triples for its content-change comparator, which queries the whole window at every time."""


def judge(run: Run, elements: Sequence[StreamElement], settings: RuleSettings) -> Verdict:
    """The verdict by its lines, with mean precision and recall; unknown if its oracle fails."""
    lines_ = lines(run, elements, settings)
    if not lines_:
        raise RefusedError("the engine reported nothing that YABench's oracle sees: it scores no window")
    windows = tuple(_window(number, line, _declared(number, line, run), settings) for number, line in enumerate(lines_))
    right = all(window.right for window in windows) and run.header.failure is None
    delays = [window.delay for window in windows if window.delay is not None]
    return Verdict(
        judgement=Judgement.RIGHT if right else Judgement.WRONG,
        evaluator="definition",
        t0=0,
        precision=sum(line.precision for line in lines_) / len(lines_),
        recall=sum(line.recall for line in lines_) / len(lines_),
        missed=0,
        surplus=0,
        late=0,
        max_delay=max(delays, default=None),
        variables=run.answers[0].variables,
        windows=windows,
        tolerance="terms compared exactly, numbers too; rows as bags; means over windows",
        reason=run.header.failure or "",
        last_answer=last_answer(run),
        rules="yabench",
    )


def lines(run: Run, elements: Sequence[StreamElement], settings: RuleSettings) -> list[OracleLine]:
    """The lines of a run's ORACLE_ file; RefusedError for what its oracle does not support or fails at."""
    header = run.header
    answering = WindowQuery(header.query, "YABench")
    if header.query.static:
        raise RefusedError("the query has static data: YABench knows none")
    stream = _stream(in_sequence(elements, header.query, "YABench"))

    def ask(content: OracleWindow) -> tuple[Solution, ...]:
        rows = answering.rows(triple for _, triple in content.triples)
        return solutions(answering.variables, rows)

    inputs = InputReader(stream), EngineReports(run.answers, header.started), header.query.window, ask
    closes = Report.WINDOW_CLOSE in header.semantics.report
    if closes == (Report.CONTENT_CHANGE in header.semantics.report):
        raise RefusedError(f"{header.semantics.name} reports otherwise: YABench knows window close or content change")
    if closes:
        return _CloseComparator(*inputs).lines(gracious=settings.gracious)
    _refuse_size(stream, header.query.window.size)
    if settings.gracious:
        return _GraciousComparator(*inputs).lines()
    single = settings.single_result and str(header.workload.get("singleresult")).lower() != "false"
    return _PlainComparator(*inputs).lines(single=single)


def _stream(ordered: Sequence[StreamElement]) -> list[Timed]:
    return list(chain.from_iterable(((one.time, triple) for triple in one.added) for one in ordered))


def _refuse_size(stream: Sequence[Timed], size: int) -> None:
    """Refuse runs of days: YABench's own oracle never finished its big content-change runs."""
    times = {time for time, _ in stream}
    span = max(times, default=0) - min(times, default=0) + 1
    # At each time the window has this share of the stream's triples, if they come evenly.
    looked = len(times) * len(stream) * min(1.0, size / span)
    if looked > MAX_TRIPLES:
        raise RefusedError(
            f"YABench asks the whole window again at each of {len(times):,} times, {looked:,.0f} triples in all: more "
            f"than {MAX_TRIPLES:,}; its own oracle did not finish such runs, judge without --as"
        )


def _declared(number: int, line: OracleLine, run: Run) -> tuple[int, int]:
    """The borders (ms) of a line's window if none were moved."""
    window = run.header.query.window
    if Report.WINDOW_CLOSE in run.header.semantics.report:
        end = (number + 1) * window.slide
        return max(0, end - window.size), end
    # ``-((a - b) // c)`` is (b - a) / c rounded up: with 5 s each, a line that ends at 5000 ms begins at 0, one that
    # ends at 5001 ms at 5000.
    slides = max(0, -((window.size - line.end) // window.slide))
    return slides * window.slide, line.end


def _window(number: int, line: OracleLine, declared: tuple[int, int], settings: RuleSettings) -> WindowVerdict:
    """A line as a window; in gracious mode with the fitted borders, and without a delay."""
    start, end = declared if settings.gracious else (line.start, line.end)
    return WindowVerdict(
        index=number,
        start=start,
        end=end,
        instant=line.end,
        report=number,
        precision=line.precision,
        recall=line.recall,
        true_positives=line.found,
        expected=max(0, line.expected),
        actual=max(0, line.actual),
        content=max(0, line.input),
        delay=None if settings.gracious else float(line.delay),
        borders=(line.start, line.end) if settings.gracious else None,
        fitted=(line.precision, line.recall) if settings.gracious else None,
    )


@dataclass(frozen=True, slots=True)
class BagScore:
    """Precision and recall on bags: both are 1 when both sides are empty, 0 where only the denominator is."""

    precision: float
    recall: float
    found: int

    @staticmethod
    def of(expected: Sequence[Solution], actual: Sequence[Solution]) -> "BagScore":
        """The score of actual rows against expected rows."""
        # The intersection of bags: the smaller count of each row.
        common = (Counter(expected) & Counter(actual)).total()
        return BagScore(ratio(common, len(actual), len(expected)), ratio(common, len(expected), len(actual)), common)


class _CloseComparator(_Comparator):
    """Window close: a line per report; windows after the last report and reports after the stream are not scored."""

    def lines(self, *, gracious: bool) -> list[OracleLine]:
        lines_: list[OracleLine] = []
        for number in range(1, len(self._reports) + 1):
            end = number * self._window.slide
            start = max(0, end - self._window.size)
            report = self._reports.next()
            self._reader.purge(start)
            content = self._reader.window(start, end)
            if report is None or content is None:
                break
            lines_.append(self._line(report, content, end, gracious=gracious))
        return lines_

    def _line(self, report: EngineReport, content: OracleWindow, end: int, *, gracious: bool) -> OracleLine:
        expected = self._ask(content)
        score = BagScore.of(expected, report.rows)
        start, delay = end - self._window.size, report.end - content.end
        if gracious and (expected or report.rows):
            delay = UNSET
            start, score = self._start(report, content, start, score)
            end, score = self._end(report, start, end, score)
        sizes = len(report.rows), len(expected), len(content.triples)
        return OracleLine(score.precision, score.recall, *sizes, max(0, start), end, delay, score.found)

    def _start(self, report: EngineReport, content: OracleWindow, start: int, best: BagScore) -> tuple[int, BagScore]:
        """Move the start right from time to time while recall does not fall."""
        if best.recall < 1:
            # From the first time on, the content is what it is already.
            for time in sorted({time for time, _ in content.triples})[1:]:
                score = BagScore.of(self._ask(self._reader.from_buffer(time)), report.rows)
                if score.recall < best.recall:
                    break
                start, best = time, score
                if score.recall == 1:
                    break
        return start, best

    def _end(self, report: EngineReport, start: int, end: int, best: BagScore) -> tuple[int, BagScore]:
        """Then move the end right, reading on, while neither precision nor recall falls."""
        # Surplus rows may be expected ones in a longer window.
        while best.precision < 1:
            time = self._reader.next_graph()
            content = None if time is None else self._reader.window(start, time)
            if time is None or content is None:
                break
            score = BagScore.of(self._ask(content), report.rows)
            if score.precision < best.precision or score.recall < best.recall:
                break
            end, best = time, score
        return end, best
