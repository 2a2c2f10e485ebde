"""YABench's comparator for engines that report on content change: row by row, in order, a record for each.

Precision and recall of a record are 0 or 1, so those of a line are shares of records, not of rows. In gracious mode a
window's start goes one slide back, then right until all new rows match.
"""

from dataclasses import dataclass

from streamgauge.model.query import Window
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
)
from streamgauge.semantics.refusal import RefusedError


def plain_lines(
    reader: InputReader, reports: EngineReports, window: Window, ask: Ask, *, single_result: bool
) -> list[OracleLine]:
    """The lines without gracious mode; ``single_result`` drops one report that matches nothing, else many."""
    return _PlainComparator(reader, reports, window, ask, single_result).lines()


@dataclass(slots=True)
class _UnmatchedReport:
    """The report that did not match and is kept, and whether any did."""

    kept: EngineReport | None = None
    matched: bool = False


class _PlainComparator:
    def __init__(
        self, reader: InputReader, reports: EngineReports, window: Window, ask: Ask, single_result: bool
    ) -> None:
        self._reader, self._reports, self._window, self._ask = reader, reports, window, ask
        self._single = single_result
        self._out = OracleWriter(window.size, window.slide, reader.size)
        self._kept: EngineReport | None = None

    def lines(self) -> list[OracleLine]:
        previous: tuple[Solution, ...] | None = None
        slides = 0
        while (time := self._reader.next_time()) is not None:
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
        said = self._kept or self._reports.next()
        self._kept = None
        if said is None:
            self._unsaid(content, expected)
            return
        found = self._match(content, expected, said)
        while found.kept is not None and not found.matched and not self._single:
            following = self._reports.next()
            found = self._match(content, expected, following) if following else _UnmatchedReport()
        self._kept = found.kept if found.matched else None

    def _match(self, content: OracleWindow, expected: list[Solution], said: EngineReport) -> _UnmatchedReport:
        """Take reports as long as they match a row that is expected; the first that does not ends it."""
        matched = False
        while True:
            if len(said.rows) != 1 or said.rows[0] not in expected:
                self._out.add(
                    OracleLine(0.0, 0.0, len(said.rows), 0, len(content.triples), content.start, content.end, UNSET)
                )
                return _UnmatchedReport(said, matched)
            matched = True
            expected.remove(said.rows[0])
            delay = said.end - content.end
            self._out.add(OracleLine(1.0, 1.0, 1, 1, len(content.triples), content.start, content.end, delay, 1))
            following = self._reports.next() if expected else None
            if following is None:
                self._unsaid(content, expected)
                return _UnmatchedReport(None, matched)
            said = following

    def _unsaid(self, content: OracleWindow, expected: list[Solution]) -> None:
        for _ in expected:
            self._out.add(OracleLine(1.0, 0.0, UNSET, 1, UNSET, content.start, content.end, UNSET))


def is_empty(rows: tuple[Solution, ...]) -> bool:
    """Whether there is no solution, or one that binds nothing."""
    return not rows or (len(rows) == 1 and not rows[0])


def without(current: tuple[Solution, ...], previous: tuple[Solution, ...] | None) -> list[Solution]:
    """The rows that the last result with new rows did not have; all copies of one that it had are gone."""
    old = set(previous or ())
    return [row for row in current if row not in old]


def left_over(out: OracleWriter, reports: EngineReports) -> None:
    """A record for every report that is left when the stream has ended."""
    while (said := reports.next()) is not None:
        start = out.number(said.end) * out.slide
        out.add(OracleLine(0.0, 1.0, len(said.rows), UNSET, UNSET, start, said.end, UNSET))


def gracious_lines(reader: InputReader, reports: EngineReports, window: Window, ask: Ask) -> list[OracleLine]:
    """The lines in gracious mode; RefusedError where YABench's oracle fails or never ends."""
    return _GraciousComparator(reader, reports, window, ask).lines()


@dataclass(slots=True)
class _TriedContent:
    """The outcome of one content: rows still expected, rows taken, the place of the next report."""

    expected: list[Solution]
    rows: int
    following: int
    matched: bool
    ended: bool = False


class _GraciousComparator:
    def __init__(self, reader: InputReader, reports: EngineReports, window: Window, ask: Ask) -> None:
        self._reader, self._reports, self._window, self._ask = reader, reports, window, ask
        self._out = OracleWriter(window.size, window.slide, reader.size)
        self._at = 0
        self._current: tuple[Solution, ...] = ()
        self._previous: tuple[Solution, ...] | None = None

    def lines(self) -> list[OracleLine]:
        slides = 0
        while (time := self._reader.next_time()) is not None:
            while slides * self._window.slide + self._window.size < time:
                slides += 1
            slides = max(0, slides - 1)
            content = self._reader.window(slides * self._window.slide, time)
            if not is_empty(self._current):
                self._previous = self._current
            if content:
                self._fit(content)
        for _ in range(self._at):
            self._reports.next()
        left_over(self._out, self._reports)
        return self._out.flush()

    def _fit(self, content: OracleWindow) -> None:
        """Try contents until one gives all new rows, none is left, or the last that matched in part is taken."""
        partly: OracleWindow | None = None
        back = False
        while True:
            self._current = self._ask(content)
            expected = [] if is_empty(self._current) else without(self._current, self._previous)
            if not expected or self._reports.at(self._at) is None:
                return
            tried = self._try(content, expected, back=back)
            if not tried.expected:
                self._found(content, tried)
                return
            if back and tried.ended:
                raise RefusedError(f"YABench's oracle never ends: at {content.end} ms too few reports are left")
            back = back or (partly is not None and not tried.matched)
            if tried.matched:
                partly = content
            content = partly if back and partly else self._reader.without_first(content)

    def _try(self, content: OracleWindow, expected: list[Solution], *, back: bool) -> _TriedContent:
        """Take reports in order while they are expected; going back, what is missing then is recorded as missing."""
        place = self._at
        said = self._reports.at(place)
        assert said is not None
        if len(said.rows) != 1 or said.rows[0] not in expected:
            return _TriedContent(expected, len(said.rows), place + 1, matched=False)
        taken = len(said.rows)
        while True:
            place += 1
            if len(said.rows) != 1 or said.rows[0] not in expected:
                if back:
                    self._missing(content, len(said.rows))
                    return _TriedContent([], taken, place - 1, matched=True)
                return _TriedContent(expected, taken, place, matched=True)
            expected.remove(said.rows[0])
            taken += 1
            following = self._reports.at(place) if expected else None
            if following is None:
                return _TriedContent(expected, taken, place, matched=True, ended=bool(expected))
            said = following

    def _missing(self, content: OracleWindow, actual: int) -> None:
        size = len(content.triples)
        self._out.add(OracleLine(0.0, 0.0, actual, 0, size, content.start, content.end, UNSET))

    def _found(self, content: OracleWindow, tried: _TriedContent) -> None:
        self._at = tried.following
        size, expected = len(content.triples), len(self._current)
        self._out.add(
            OracleLine(1.0, 1.0, tried.rows, expected, size, content.start, content.end, UNSET, tried.rows - 1)
        )
