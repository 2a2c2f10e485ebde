"""YABench's comparator for engines that report on content change: row by row, in order, a record for each.

Precision and recall of a record are 0 or 1, so those of a line are shares of records, not of rows.
"""

from dataclasses import dataclass

from streamgauge.model.query import Window
from streamgauge.papers.rules.yabench_close import Ask
from streamgauge.papers.rules.yabench_lines import UNSET, Gathering, Line
from streamgauge.papers.rules.yabench_reader import Content, Reader, Reports, Said, Solution


def lines(reader: Reader, reports: Reports, window: Window, ask: Ask, *, single_result: bool) -> list[Line]:
    """The lines without gracious mode; ``single_result`` drops one report that matches nothing, else many."""
    return _Comparing(reader, reports, window, ask, single_result).lines()


@dataclass(slots=True)
class _Found:
    """The report that did not match and is kept, and whether any did."""

    kept: Said | None = None
    matched: bool = False


class _Comparing:
    def __init__(self, reader: Reader, reports: Reports, window: Window, ask: Ask, single_result: bool) -> None:
        self._reader, self._reports, self._window, self._ask = reader, reports, window, ask
        self._single = single_result
        self._out = Gathering(window.size, window.slide, reader.size)
        self._kept: Said | None = None

    def lines(self) -> list[Line]:
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

    def _compare(self, content: Content, expected: list[Solution]) -> None:
        said = self._kept or self._reports.next()
        self._kept = None
        if said is None:
            self._unsaid(content, expected)
            return
        found = self._match(content, expected, said)
        while found.kept is not None and not found.matched and not self._single:
            following = self._reports.next()
            found = self._match(content, expected, following) if following else _Found()
        self._kept = found.kept if found.matched else None

    def _match(self, content: Content, expected: list[Solution], said: Said) -> _Found:
        """Take reports as long as they match a row that is expected; the first that does not ends it."""
        matched = False
        while True:
            if len(said.rows) != 1 or said.rows[0] not in expected:
                self._out.add(
                    Line(0.0, 0.0, len(said.rows), 0, len(content.triples), content.start, content.end, UNSET)
                )
                return _Found(said, matched)
            matched = True
            expected.remove(said.rows[0])
            delay = said.end - content.end
            self._out.add(Line(1.0, 1.0, 1, 1, len(content.triples), content.start, content.end, delay, 1))
            following = self._reports.next() if expected else None
            if following is None:
                self._unsaid(content, expected)
                return _Found(None, matched)
            said = following

    def _unsaid(self, content: Content, expected: list[Solution]) -> None:
        for _ in expected:
            self._out.add(Line(1.0, 0.0, UNSET, 1, UNSET, content.start, content.end, UNSET))


def is_empty(rows: tuple[Solution, ...]) -> bool:
    """Whether there is no solution, or one that binds nothing."""
    return not rows or (len(rows) == 1 and not rows[0])


def without(current: tuple[Solution, ...], previous: tuple[Solution, ...] | None) -> list[Solution]:
    """The rows that the last result with new rows did not have; all copies of one that it had are gone."""
    old = set(previous or ())
    return [row for row in current if row not in old]


def left_over(out: Gathering, reports: Reports) -> None:
    """A record for every report that is left when the stream has ended."""
    while (said := reports.next()) is not None:
        start = out.number(said.end) * out.slide
        out.add(Line(0.0, 1.0, len(said.rows), UNSET, UNSET, start, said.end, UNSET))
