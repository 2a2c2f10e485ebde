"""YABench's gracious mode for content change: the start one slide back, then moved right until all new rows match."""

from dataclasses import dataclass

from streamgauge.model.query import Window
from streamgauge.papers.rules.yabench_change import is_empty, left_over, without
from streamgauge.papers.rules.yabench_close import Ask
from streamgauge.papers.rules.yabench_lines import UNSET, Gathering, Line
from streamgauge.papers.rules.yabench_reader import Content, Reader, Reports, Solution
from streamgauge.semantics.refusal import RefusedError


def lines(reader: Reader, reports: Reports, window: Window, ask: Ask) -> list[Line]:
    """The lines in gracious mode; RefusedError where YABench's oracle fails or never ends."""
    return _Gracious(reader, reports, window, ask).lines()


@dataclass(slots=True)
class _Tried:
    """How one content fared: what is still expected, rows taken, the place of the next report."""

    expected: list[Solution]
    rows: int
    following: int
    matched: bool
    ended: bool = False


class _Gracious:
    def __init__(self, reader: Reader, reports: Reports, window: Window, ask: Ask) -> None:
        self._reader, self._reports, self._window, self._ask = reader, reports, window, ask
        self._out = Gathering(window.size, window.slide, reader.size)
        self._at = 0
        self._current: tuple[Solution, ...] = ()
        self._previous: tuple[Solution, ...] | None = None

    def lines(self) -> list[Line]:
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

    def _fit(self, content: Content) -> None:
        """Try contents until one gives all new rows, none is left, or the last that matched in part is taken."""
        partly: Content | None = None
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

    def _try(self, content: Content, expected: list[Solution], *, back: bool) -> _Tried:
        """Take reports in order while they are expected; going back, what is missing then is recorded as missing."""
        place = self._at
        said = self._reports.at(place)
        assert said is not None
        if len(said.rows) != 1 or said.rows[0] not in expected:
            return _Tried(expected, len(said.rows), place + 1, matched=False)
        taken = len(said.rows)
        while True:
            place += 1
            if len(said.rows) != 1 or said.rows[0] not in expected:
                if back:
                    self._missing(content, len(said.rows))
                    return _Tried([], taken, place - 1, matched=True)
                return _Tried(expected, taken, place, matched=True)
            expected.remove(said.rows[0])
            taken += 1
            following = self._reports.at(place) if expected else None
            if following is None:
                return _Tried(expected, taken, place, matched=True, ended=bool(expected))
            said = following

    def _missing(self, content: Content, actual: int) -> None:
        size = len(content.triples)
        self._out.add(Line(0.0, 0.0, actual, 0, size, content.start, content.end, UNSET))

    def _found(self, content: Content, tried: _Tried) -> None:
        self._at = tried.following
        size, expected = len(content.triples), len(self._current)
        self._out.add(Line(1.0, 1.0, tried.rows, expected, size, content.start, content.end, UNSET, tried.rows - 1))
