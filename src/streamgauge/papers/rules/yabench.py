"""YABench's oracle (YABench/yabench a3acfe2): closed borders, report i for window i, bags; means over its windows.

Its content-change comparator and its gracious modes are its own, with their slips (docs/judging as others did).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Report
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.clock import last_answer
from streamgauge.papers.rules import Settings, yabench_change, yabench_close, yabench_gracious
from streamgauge.papers.rules.content import Answering, in_sequence
from streamgauge.papers.rules.yabench_lines import Line
from streamgauge.papers.rules.yabench_reader import Content, Reader, Reports, Solution, Timed, solutions
from streamgauge.semantics.refusal import RefusedError

ABOUT = (
    "YABench: closed windows from 0 on paired with reports by index, bags; content change row by row; gracious modes."
)

MOST = 400_000_000
"""Triples that its content-change comparator may look at: it asks the whole window again at every time."""


def judge(run: Run, elements: Sequence[StreamElement], settings: Settings) -> Verdict:
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


def lines(run: Run, elements: Sequence[StreamElement], settings: Settings) -> list[Line]:
    """The lines of its ORACLE_ file for a run; RefusedError for what it does not know or fails at."""
    header = run.header
    answering = Answering(header.query, "YABench")
    if header.query.static:
        raise RefusedError("the query has static data: YABench knows none")
    stream = _stream(in_sequence(elements, header.query, "YABench"))

    def ask(content: Content) -> tuple[Solution, ...]:
        rows = answering.rows(triple for _, triple in content.triples)
        return solutions(answering.variables, rows)

    reader, reports = Reader(stream), Reports(run.answers, header.started)
    closes = Report.WINDOW_CLOSE in header.semantics.report
    if closes == (Report.CONTENT_CHANGE in header.semantics.report):
        raise RefusedError(f"{header.semantics.name} reports otherwise: YABench knows window close or content change")
    if closes:
        return yabench_close.lines(reader, reports, header.query.window, ask, gracious=settings.gracious)
    _refuse_size(stream, header.query.window.size)
    if settings.gracious:
        return yabench_gracious.lines(reader, reports, header.query.window, ask)
    single = settings.single_result and str(header.workload.get("singleresult")).lower() != "false"
    return yabench_change.lines(reader, reports, header.query.window, ask, single_result=single)


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


def _window(number: int, line: Line, settings: Settings) -> WindowVerdict:
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
