"""YABench's oracle (YABench/yabench a3acfe2): closed borders, report i for window i, bags; means over its windows.

Its content-change comparator and its gracious modes are its own, with their slips (docs/judging as others did).
Window close: report i of an engine belongs to window i, whatever it says.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from streamgauge.model.element import StreamElement
from streamgauge.model.query import Window
from streamgauge.model.run import Run
from streamgauge.model.semantics import Report
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import last_answer, ratio
from streamgauge.papers.contents import WindowQuery, in_sequence
from streamgauge.papers.rules import RuleSettings
from streamgauge.papers.yabench.content_change import gracious_lines, plain_lines
from streamgauge.papers.yabench.oracle_files import (
    UNSET,
    Ask,
    EngineReport,
    EngineReports,
    InputReader,
    OracleLine,
    OracleWindow,
    Solution,
    Timed,
    solutions,
)
from streamgauge.semantics.refusal import RefusedError

ABOUT = (
    "YABench: closed windows from 0 on paired with reports by index, bags; content change row by row; gracious modes."
)

MOST = 400_000_000
"""Triples that its content-change comparator may look at: it asks the whole window again at every time."""


def judge(run: Run, elements: Sequence[StreamElement], settings: RuleSettings) -> Verdict:
    """The verdict by its lines: precision and recall are means over them; unknown where its oracle fails."""
    try:
        found = lines(run, elements, settings)
    except RefusedError as error:
        return _unknown(run, str(error))
    if not found:
        return _unknown(run, "the engine reported nothing that YABench's oracle sees: it scores no window")
    windows = tuple(_window(number, line, settings) for number, line in enumerate(found))
    right = all(window.right for window in windows) and run.header.failure is None
    delays = [window.delay for window in windows if window.delay is not None]
    return Verdict(
        judgement=Judgement.RIGHT if right else Judgement.WRONG,
        evaluator="definition",
        t0=0,
        precision=sum(line.precision for line in found) / len(found),
        recall=sum(line.recall for line in found) / len(found),
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
    """The lines of its ORACLE_ file for a run; RefusedError for what it does not know or fails at."""
    header = run.header
    answering = WindowQuery(header.query, "YABench")
    if header.query.static:
        raise RefusedError("the query has static data: YABench knows none")
    stream = _stream(in_sequence(elements, header.query, "YABench"))

    def ask(content: OracleWindow) -> tuple[Solution, ...]:
        rows = answering.rows(triple for _, triple in content.triples)
        return solutions(answering.variables, rows)

    reader, reports = InputReader(stream), EngineReports(run.answers, header.started)
    closes = Report.WINDOW_CLOSE in header.semantics.report
    if closes == (Report.CONTENT_CHANGE in header.semantics.report):
        raise RefusedError(f"{header.semantics.name} reports otherwise: YABench knows window close or content change")
    if closes:
        return close_lines(reader, reports, header.query.window, ask, gracious=settings.gracious)
    _refuse_size(stream, header.query.window.size)
    if settings.gracious:
        return gracious_lines(reader, reports, header.query.window, ask)
    single = settings.single_result and str(header.workload.get("singleresult")).lower() != "false"
    return plain_lines(reader, reports, header.query.window, ask, single_result=single)


def _stream(ordered: Sequence[StreamElement]) -> list[Timed]:
    return list(chain.from_iterable(((one.time, triple) for triple in one.added) for one in ordered))


def _refuse_size(stream: Sequence[Timed], size: int) -> None:
    """Refuse what would take days: YABench's own oracle never finished its big content-change runs."""
    times = {time for time, _ in stream}
    span = max(times, default=0) - min(times, default=0) + 1
    looked = len(times) * len(stream) * min(1.0, size / span)
    if looked > MOST:
        raise RefusedError(
            f"YABench asks the whole window again at each of {len(times):,} times, {looked:,.0f} triples in all: more "
            f"than {MOST:,}; its own oracle did not finish such runs, judge without --as"
        )


def _unknown(run: Run, reason: str) -> Verdict:
    empty = Verdict(Judgement.UNKNOWN, None, None, 0.0, 0.0, 0, 0, 0, None, (), ())
    return replace(empty, reason=reason, rules="yabench", last_answer=last_answer(run))


def _window(number: int, line: OracleLine, settings: RuleSettings) -> WindowVerdict:
    """A line as a window; in gracious mode its borders are those that were fitted, and it has no delay."""
    return WindowVerdict(
        index=number,
        start=line.start,
        end=line.end,
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
        """The score of an engine's rows."""
        found = (Counter(expected) & Counter(actual)).total()
        return BagScore(ratio(found, len(actual), len(expected)), ratio(found, len(expected), len(actual)), found)


def close_lines(
    reader: InputReader, reports: EngineReports, window: Window, ask: Ask, *, gracious: bool
) -> list[OracleLine]:
    """A line per report of the engine; windows after its last report are never scored, nor reports after the stream."""
    found: list[OracleLine] = []
    for number in range(1, len(reports) + 1):
        end = number * window.slide
        start = max(0, end - window.size)
        said = reports.next()
        reader.purge(start)
        content = reader.window(start, end)
        if said is None or content is None:
            break
        found.append(_close_line(reader, said, content, (end - window.size, end), ask, gracious=gracious))
    return found


def _close_line(
    reader: InputReader,
    said: EngineReport,
    content: OracleWindow,
    borders: tuple[int, int],
    ask: Ask,
    *,
    gracious: bool,
) -> OracleLine:
    expected = ask(content)
    score = BagScore.of(expected, said.rows)
    start, end = borders
    delay = said.end - content.end
    if gracious and (expected or said.rows):
        delay = UNSET
        start, score = _start(reader, said, content, start, score, ask)
        end, score = _end(reader, said, (start, end), score, ask)
    return OracleLine(
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


def _start(
    reader: InputReader, said: EngineReport, content: OracleWindow, start: int, best: BagScore, ask: Ask
) -> tuple[int, BagScore]:
    """Move the start right by one time after another while recall does not fall."""
    if best.recall < 1:
        for time in sorted({time for time, _ in content.triples})[1:]:
            score = BagScore.of(ask(reader.from_buffer(time)), said.rows)
            if score.recall < best.recall:
                break
            start, best = time, score
            if score.recall == 1:
                break
    return start, best


def _end(
    reader: InputReader, said: EngineReport, borders: tuple[int, int], best: BagScore, ask: Ask
) -> tuple[int, BagScore]:
    """Then move the end right, reading on, while neither precision nor recall falls."""
    start, end = borders
    while best.precision < 1:
        time = reader.next_graph()
        content = None if time is None else reader.window(start, time)
        if time is None or content is None:
            break
        score = BagScore.of(ask(content), said.rows)
        if score.precision < best.precision or score.recall < best.recall:
            break
        end, best = time, score
    return end, best
