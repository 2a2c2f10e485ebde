"""YABench's comparator for engines that report on window close: report i belongs to window i, whatever it says."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.model.query import Window
from streamgauge.oracle.judging.metrics import ratio
from streamgauge.papers.rules.yabench_lines import UNSET, Line
from streamgauge.papers.rules.yabench_reader import Content, Reader, Reports, Said, Solution

Ask = Callable[[Content], tuple[Solution, ...]]
"""The query's answer over a content."""


@dataclass(frozen=True, slots=True)
class Score:
    """Precision and recall on bags: both are 1 when both sides are empty, 0 where only the denominator is."""

    precision: float
    recall: float
    found: int

    @staticmethod
    def of(expected: Sequence[Solution], actual: Sequence[Solution]) -> "Score":
        """The score of an engine's rows."""
        found = (Counter(expected) & Counter(actual)).total()
        return Score(ratio(found, len(actual), len(expected)), ratio(found, len(expected), len(actual)), found)


def lines(reader: Reader, reports: Reports, window: Window, ask: Ask, *, gracious: bool) -> list[Line]:
    """A line per report of the engine; windows after its last report are never scored, nor reports after the stream."""
    found: list[Line] = []
    for number in range(1, len(reports) + 1):
        end = number * window.slide
        start = max(0, end - window.size)
        said = reports.next()
        reader.purge(start)
        content = reader.window(start, end)
        if said is None or content is None:
            break
        found.append(_line(reader, said, content, (end - window.size, end), ask, gracious=gracious))
    return found


def _line(reader: Reader, said: Said, content: Content, borders: tuple[int, int], ask: Ask, *, gracious: bool) -> Line:
    expected = ask(content)
    score = Score.of(expected, said.rows)
    start, end = borders
    delay = said.end - content.end
    if gracious and (expected or said.rows):
        delay = UNSET
        start, score = _start(reader, said, content, start, score, ask)
        end, score = _end(reader, said, (start, end), score, ask)
    return Line(
        score.precision,
        score.recall,
        len(said.rows),
        len(expected),
        len(content.triples),
        max(0, start),
        end,
        delay,
        score.found,
    )


def _start(reader: Reader, said: Said, content: Content, start: int, best: Score, ask: Ask) -> tuple[int, Score]:
    """Move the start right by one time after another while recall does not fall."""
    if best.recall < 1:
        for time in sorted({time for time, _ in content.triples})[1:]:
            score = Score.of(ask(reader.from_buffer(time)), said.rows)
            if score.recall < best.recall:
                break
            start, best = time, score
            if score.recall == 1:
                break
    return start, best


def _end(reader: Reader, said: Said, borders: tuple[int, int], best: Score, ask: Ask) -> tuple[int, Score]:
    """Then move the end right, reading on, while neither precision nor recall falls."""
    start, end = borders
    while best.precision < 1:
        time = reader.next_graph()
        content = None if time is None else reader.window(start, time)
        if time is None or content is None:
            break
        score = Score.of(ask(content), said.rows)
        if score.precision < best.precision or score.recall < best.recall:
            break
        end, best = time, score
    return end, best
