"""The oracle: a pure function from a run and its stream's expected reports to a verdict (docs/judging.md)."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Grain
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Evaluator, Judgement, Verdict, WindowVerdict
from streamgauge.oracle.expected.reports import Expect
from streamgauge.oracle.judging.align import whole
from streamgauge.oracle.judging.compare import tolerance_sentence
from streamgauge.oracle.judging.metrics import Unit, due_time, judge, last_answer, ratio, totals
from streamgauge.oracle.judging.units import Alignment, LegalUnits, in_order, is_right, may_be_open
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.oracle.worlds.slices import is_ordered, order_keys
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.definition import CAME, SIGN, WENT, operator, signed


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """How to judge: the evaluator's name, the bound on the delay (ms), the number of witness rows kept per window.

    ``exact_datatypes`` compares the datatypes of computed numbers too.
    """

    evaluator: Evaluator = "definition"
    max_delay: float | None = None
    witnesses: int = 20
    exact_datatypes: bool = False


Progress = Callable[[int, int], None]
"""Receives (done, total) in units of the step: candidates for t0, windows, models."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a run's answers under one t0: the columns of the expected rows, and the scored units.

    ``retyped`` are columns whose numbers have another datatype than expected; ``unknown`` maps the indexes of windows
    that are not right, but may be, to the reason why it cannot be decided.
    """

    variables: tuple[str, ...]
    windows: tuple[WindowVerdict, ...]
    retyped: tuple[str, ...] = ()
    unknown: Mapping[int, str] = field(default_factory=dict)


Score = Callable[[int], Scored]
"""A function from a candidate for t0 (ms) to the scores under it."""


def check(
    run: Run,
    expect: Expect,
    first: int | None,
    rules: JudgingRules,
    progress: Progress = lambda _a, _b: None,
    score: Score | None = None,
) -> Verdict:
    """Judge a run against the reports that ``expect`` gives for its stream; ``first`` is its first element's time.

    ``score`` replaces the comparison of rows (``deltas.by_changes``). The candidate for t0 with the best score wins,
    ties go to the smallest; a run that cannot be judged is unknown.
    """
    sends = operator(run.header.query, run.header.semantics)
    if sends not in {R2S.RSTREAM, R2S.CHANGES} and any(answer.removed for answer in run.answers):
        return unknown(
            run,
            f"its answers remove rows, which {sends} never does: declare Rstream to judge what holds, or {R2S.CHANGES}",
        )
    return decide(run, score or RowScores(run, expect, rules), first, rules, progress, best_possible(run, expect))


Rank: TypeAlias = tuple[bool, float, int]
"""The order of verdicts: right ones first, then F1 over rows, then fewer missed and surplus reports."""


def decide(
    run: Run,
    score: Score,
    first: int | None,
    rules: JudgingRules,
    progress: Progress = lambda _a, _b: None,
    bound: Callable[[int], Rank] | None = None,
) -> Verdict:
    """The verdict from the scores of the best t0; see ``check``.

    ``bound`` gives an upper bound of the rank under a t0, so that a candidate that cannot beat an earlier one is not
    scored.
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
        # Candidates ascend and ties go to the smallest t0, so an equal bound is not worth scoring either.
        skipped = best is not None and bound is not None and bound(t0) <= _score(best)
        verdict = None if skipped else _verdict(run, score(t0), t0, rules)
        progress(tried, len(candidates))
        if verdict is None:
            continue
        if best is None or _score(verdict) > _score(best):
            best = verdict
        if verdict.judgement in {Judgement.RIGHT, Judgement.LATE}:
            break
    assert best is not None  # there is always a candidate (origins)
    return best


def unknown(run: Run, reason: str) -> Verdict:
    """The verdict ``unknown`` with the reason."""
    return Verdict(
        Judgement.UNKNOWN, None, None, 0.0, 0.0, 0, 0, 0, None, (), (), reason=reason, last_answer=last_answer(run)
    )


def _score(verdict: Verdict) -> Rank:
    """The rank of a verdict."""
    right = verdict.judgement in {Judgement.RIGHT, Judgement.LATE}
    return right, _f1(verdict.precision, verdict.recall), -verdict.missed - verdict.surplus


def _f1(precision: float, recall: float) -> float:
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def best_possible(run: Run, expect: Expect) -> Callable[[int], Rank] | None:
    """An upper bound of the rank of a run under a t0; ``None`` if some answer names no instant.

    An answer that names an instant is only aligned with reports due then. So each answer at an instant without a due
    report is surplus, and weighs its rows or at least one (``totals``). Only the instants have to be computed for this,
    not the expected rows.

    Worked example: two answers of 10 rows at 5,000 and 5,500 ms; windows close every 1,000 ms. From t0 = 0 the second
    answer is surplus: at most 10 of 20 rows are right, so F1 is at most 2/3. From t0 = 200 both are: F1 is 0.
    """
    header = run.header
    if any(answer.instant is None for answer in run.answers):
        return None
    rows: dict[int, int] = defaultdict(int)
    answers: dict[int, set[object]] = defaultdict(set)
    both = operator(header.query, header.semantics) is R2S.CHANGES
    for place, answer in enumerate(run.answers if both else whole(run.answers)):
        instant = answer.instant or 0
        rows[instant] += len(answer.added) + len(answer.removed)
        answers[instant].add(answer.scope if header.semantics.grain is Grain.ROW else place)

    def bound(t0: int) -> Rank:
        due = expect.instants(header.query, header.semantics, header.advanced_to, t0)
        apart = rows.keys() - due
        surplus = sum(len(answers[instant]) for instant in apart)
        wrong = sum(max(1, rows[instant]) for instant in apart)
        met = sum(rows[instant] for instant in rows.keys() & due)
        f1 = _f1(ratio(met, met + wrong, met + wrong), 1.0)
        return not surplus, f1 * _ROUNDING if f1 else 0.0, -surplus

    return bound


_ROUNDING: Final = 1 + 1e-9
"""Factor that keeps the bound on F1 above the value itself, whatever either is rounded to."""


def _verdict(run: Run, scored: Scored, t0: int, rules: JudgingRules) -> Verdict:
    header, windows = run.header, _timed(scored.windows, rules.max_delay)
    delays = [window.delay for window in windows if window.delay is not None]
    late = sum(window.late for window in windows)
    wrong = [window.index for window in windows if not window.right]
    right = not wrong and header.failure is None
    open_ = bool(wrong) and header.failure is None and all(index in scored.unknown for index in wrong)
    precision, recall = totals(windows)
    judgement = (Judgement.LATE if late else Judgement.RIGHT) if right else Judgement.WRONG
    return Verdict(
        judgement=Judgement.UNKNOWN if open_ else judgement,
        evaluator=rules.evaluator,
        t0=t0,
        precision=precision,
        recall=recall,
        missed=sum(window.report is None for window in windows),
        surplus=sum(not window.due for window in windows),
        late=late,
        max_delay=max(delays, default=None),
        variables=scored.variables,
        windows=windows,
        tolerance=tolerance_sentence(header.query.form, scored.retyped, exact_datatypes=rules.exact_datatypes)
        + _order_sentence(header),
        reason=header.failure or (scored.unknown[wrong[0]] if open_ else ""),
        last_answer=last_answer(run),
        undecided=sum(window.undecided for window in windows),
        delay_bound=rules.max_delay,
        horizon=header.advanced_to,
        retyped=scored.retyped,
    )


def _timed(windows: tuple[WindowVerdict, ...], bound: float | None) -> tuple[WindowVerdict, ...]:
    """The windows, with ``late`` set where the delay exceeds the bound (ms)."""
    if bound is None:
        return windows
    return tuple(
        replace(window, late=True) if window.delay is not None and window.delay > bound else window
        for window in windows
    )


class RowScores:
    """Scores by comparing the rows of each answer with those of the report that it is aligned with."""

    def __init__(self, run: Run, expect: Expect, rules: JudgingRules) -> None:
        self._run, self._expect, self._rules = run, expect, rules
        self._known: tuple[int, tuple[str, ...], list[Unit]] | None = None

    def __call__(self, t0: int) -> Scored:
        """The scores under one t0 (ms)."""
        when = due_time(self._run)
        names, units = self._matched(t0)
        windows = tuple(judge(index, unit, when, self._rules.witnesses) for index, unit in enumerate(units))
        retyped = frozenset[int]().union(*(unit.both.retyped for unit in units))
        reasons = {index: unit.unknown for index, unit in enumerate(units) if unit.unknown}
        return Scored(names, windows, tuple(names[place] for place in sorted(retyped)), reasons)

    def units(self, t0: int) -> list[Unit]:
        """Due reports aligned with answers; the last t0's are cached, because gracious mode asks again."""
        return self._matched(t0)[1]

    def _matched(self, t0: int) -> tuple[tuple[str, ...], list[Unit]]:
        if self._known is None or self._known[0] != t0:
            self._known = (t0, *matched(self._run, self._expect, t0, self._rules))
        return self._known[1:]


def matched(
    run: Run, expect: Expect, t0: int, rules: JudgingRules = JudgingRules()
) -> tuple[tuple[str, ...], list[Unit]]:
    """The columns of the expected rows, and due reports and answers aligned at minimal cost.

    The evaluator's own answers are compared first; other legal answers are computed only if one differs.
    """
    header = run.header
    query, semantics = header.query, header.semantics
    expected = expect(query, semantics, header.advanced_to, t0)
    names = expected[0].variables if expected else (run.answers[0].variables if run.answers else ())
    both = operator(query, semantics) is R2S.CHANGES
    answers = [in_columns(_signed(one) if both else one, names) for one in run.answers]
    answers = answers if both else list(whole(answers))
    plain = Alignment(expected, answers, query, semantics, exact_datatypes=rules.exact_datatypes)
    units = plain.units()
    if not all(map(is_right, units)) and may_be_open(query.form):
        looking = cache(lambda: expect.look(query, semantics, t0))
        legality = ReportLegality(lambda due: looking()(due), query, semantics, exact_datatypes=rules.exact_datatypes)
        units = LegalUnits(run, expect, t0, legality, plain).units(units)
    keys = compared_order(header)
    return names, [in_order(unit, keys) for unit in units] if keys else units


def compared_order(header: RunHeader) -> tuple[tuple[int, bool], ...]:
    """The columns by which each answer's rows must be ordered (docs/judging.md); empty if order is not judged."""
    sends = operator(header.query, header.semantics)
    kept = header.ordered and sends is R2S.RSTREAM and header.semantics.grain is Grain.REPORT
    return order_keys(header.query.form) if kept else ()


def _order_sentence(header: RunHeader) -> str:
    """The verdict's note on ORDER BY, where the query has one for its whole answer."""
    if not is_ordered(header.query.form):
        return ""
    if compared_order(header):
        return "; rows in the order of ORDER BY"
    return "; the order of rows is left out"


def _signed(answer: Answer) -> Answer:
    """The added and the removed rows as one bag with a sign column (``definition.signed``)."""
    rows = (*signed(answer.added, CAME), *signed(answer.removed, WENT))
    return replace(answer, variables=(*answer.variables, SIGN), added=rows, removed=())


def in_columns(answer: Answer, columns: tuple[str, ...]) -> Answer:
    """The answer with its rows in the order of these columns; missing columns are unbound, additional ones come last.

    An answer of triples is a graph, so a repeated triple counts once.
    """
    if answer.kind == "triples":
        return replace(answer, added=tuple(dict.fromkeys(answer.added)), removed=tuple(dict.fromkeys(answer.removed)))
    if answer.variables == columns or answer.kind != "solutions":
        return answer
    order = (*columns, *(name for name in answer.variables if name not in columns))
    at = {name: i for i, name in enumerate(answer.variables)}

    def ordered(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple(tuple(row[at[name]] if name in at else None for name in order) for row in rows)

    return replace(answer, variables=order, added=ordered(answer.added), removed=ordered(answer.removed))
