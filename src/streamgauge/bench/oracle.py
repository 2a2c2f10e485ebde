"""The oracle: a pure function from a run and its stream's expected reports to a verdict (DESIGN, judging)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from streamgauge.bench.align import align, merged
from streamgauge.bench.clock import due_time, last_answer
from streamgauge.bench.compare import Overlap, computed_columns, overlap, similarity, tolerance_sentence
from streamgauge.bench.expected import Expect
from streamgauge.bench.metrics import Unit, judge, totals
from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.verdict import Evaluator, Judgement, Verdict
from streamgauge.semantics.order import origins


@dataclass(frozen=True, slots=True)
class Rules:
    """How to judge: the evaluator's name, the bound on the delay (ms), how many witness rows to keep per window."""

    evaluator: Evaluator = "definition"
    max_delay: float | None = None
    witnesses: int = 20


Progress = Callable[[int, int], None]
"""Told (candidates for t0 tried, how many there are)."""


def check(
    run: Run, expect: Expect, first: int | None, rules: Rules, progress: Progress = lambda _a, _b: None
) -> Verdict:
    """Judge a run against the reports that ``expect`` gives for its stream; ``first`` is its first element's time.

    The candidate for t0 with the best score wins, ties go to the smallest; a run that cannot be judged is unknown.
    """
    if rules.evaluator == run.header.evaluator:
        return unknown(
            run, f"the engine itself runs on {rules.evaluator}, which may not judge it: name another evaluator"
        )
    if run.header.failure is not None and not run.answers:
        return unknown(run, f"the engine failed before it answered: {run.header.failure}")
    best: Verdict | None = None
    candidates = origins(run.header.semantics, run.header.query.windows, first)
    for tried, t0 in enumerate(candidates, 1):
        verdict = _at(run, expect, t0, rules)
        progress(tried, len(candidates))
        if best is None or _score(verdict) > _score(best):
            best = verdict
        if verdict.judgement in {Judgement.RIGHT, Judgement.LATE}:
            break
    return best if best is not None else unknown(run, "no candidate for t0")


def unknown(run: Run, reason: str) -> Verdict:
    """The verdict on a run that cannot be judged, with the reason."""
    return Verdict(
        Judgement.UNKNOWN, None, None, 0.0, 0.0, 0, 0, 0, None, (), (), reason=reason, last_answer=last_answer(run)
    )


def _score(verdict: Verdict) -> tuple[bool, float, int]:
    """Right first, then F1 over rows, then how few reports were missed or surplus."""
    both = verdict.precision + verdict.recall
    f1 = 2 * verdict.precision * verdict.recall / both if both else 0.0
    return verdict.judgement in {Judgement.RIGHT, Judgement.LATE}, f1, -verdict.missed - verdict.surplus


def _at(run: Run, expect: Expect, t0: int, rules: Rules) -> Verdict:
    header = run.header
    expected = expect(header.query, header.semantics, header.advanced_to, t0)
    columns = expected[0].variables if expected else (run.answers[0].variables if run.answers else ())
    answers = tuple(in_columns(answer, columns) for answer in run.answers)
    answers = merged(answers, expected, header.semantics.grain)
    units = _units(expected, answers, computed_columns(header.query.form))
    when = due_time(run)
    windows = tuple(judge(index, unit, when, rules.witnesses) for index, unit in enumerate(units))
    delays = [window.delay for window in windows if window.delay is not None]
    late = sum(delay > rules.max_delay for delay in delays) if rules.max_delay is not None else 0
    right = all(window.right for window in windows) and header.failure is None
    precision, recall = totals(windows)
    return Verdict(
        judgement=(Judgement.LATE if late else Judgement.RIGHT) if right else Judgement.WRONG,
        evaluator=rules.evaluator,
        t0=t0,
        precision=precision,
        recall=recall,
        missed=sum(unit.answer is None for unit in units),
        surplus=sum(unit.report is None for unit in units),
        late=late,
        max_delay=max(delays, default=None),
        variables=columns,
        windows=windows,
        tolerance=tolerance_sentence(header.query.form),
        reason=header.failure or "",
        last_answer=last_answer(run),
    )


def in_columns(answer: Answer, columns: tuple[str, ...]) -> Answer:
    """The answer with its rows in the order of these columns; columns it lacks are unbound, others are kept last."""
    if answer.variables == columns or answer.kind != "solutions":
        return answer
    order = (*columns, *(name for name in answer.variables if name not in columns))
    at = {name: i for i, name in enumerate(answer.variables)}
    rows = tuple(tuple(row[at[name]] if name in at else None for name in order) for row in answer.added)
    return replace(answer, variables=order, added=rows)


def _units(expected: tuple[ExpectedReport, ...], answers: tuple[Answer, ...], computed: frozenset[int]) -> list[Unit]:
    """Due reports and answers side by side, aligned at minimal cost."""

    @lru_cache(maxsize=10_000)
    def compare(i: int, j: int) -> Overlap:
        return overlap(expected[i].rows, answers[j].added, computed)

    def similar(i: int, j: int) -> float:
        return similarity(compare(i, j).common, len(expected[i].rows), len(answers[j].added))

    def unit(i: int | None, j: int | None) -> Unit:
        report = None if i is None else expected[i]
        answer = None if j is None else answers[j]
        if i is not None and j is not None:
            return Unit(report, answer, j, compare(i, j))
        return Unit(report, answer, j, Overlap(0, report.rows if report else (), answer.added if answer else ()))

    return [unit(i, j) for i, j in align(expected, answers, similar)]
