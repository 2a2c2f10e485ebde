"""The oracle: a pure function from a run and its stream's expected reports to a verdict (docs/judging.md)."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final, NamedTuple, Self, TypeAlias

from streamgauge.formats.windows import gathered_windows
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Grain
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Evaluator, Judgement, Verdict, WindowVerdict
from streamgauge.oracle.expected.reports import Expect, Objects
from streamgauge.oracle.judging.align import whole
from streamgauge.oracle.judging.compare import tolerance_sentence
from streamgauge.oracle.judging.metrics import Totals, Unit, due_time, judge, last_answer, ratio
from streamgauge.oracle.judging.units import Alignment, LegalUnits, in_order, is_right
from streamgauge.oracle.worlds.closed import ClosedTerms, literal_class, may_be_open
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.oracle.worlds.slices import order_keys
from streamgauge.query.traversal import answer_order
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


class JudgedWindow(NamedTuple):
    """A window verdict; ``unknown`` says why it cannot be decided whether it is right, although it is not.

    ``retyped`` are the places of columns whose numbers have another datatype than expected.
    """

    verdict: WindowVerdict
    unknown: str = ""
    retyped: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a run's answers under one t0: the columns of the expected rows, and the scored units.

    ``retyped`` are columns whose numbers have another datatype than expected. ``unknown`` says why the first window
    that is not right cannot be decided; it is empty if some window is certainly wrong, or none.
    """

    variables: tuple[str, ...]
    windows: Sequence[WindowVerdict]
    totals: Totals
    retyped: tuple[str, ...]
    unknown: str

    @classmethod
    def of(cls, variables: tuple[str, ...], judged: Iterable[JudgedWindow], max_delay: float | None) -> Self:
        """The scores of windows that are judged one by one; those delayed by more than ``max_delay`` (ms) are late."""
        totals, retyped, reasons = Totals(), set[int](), dict[str, None]()

        def added() -> Iterator[WindowVerdict]:
            for window, unknown, places in judged:
                late = max_delay is not None and window.delay is not None and window.delay > max_delay
                timed = replace(window, late=True) if late else window
                totals.add(timed)
                retyped.update(places)
                if not timed.right and not (unknown and reasons):  # the first reason, and whether one has none
                    reasons[unknown] = None
                yield timed

        windows = gathered_windows(added())
        # A window that is wrong without doubt makes the run wrong, whatever is undecided in others.
        undecided = "" if "" in reasons else next(iter(reasons), "")
        return cls(variables, windows, totals, tuple(variables[place] for place in sorted(retyped)), undecided)


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
    last = last_answer(run)
    candidates = origins(run.header.semantics, run.header.query.windows, first)
    for tried, t0 in enumerate(candidates, 1):
        # Candidates ascend and ties go to the smallest t0, so an equal bound is not worth scoring either.
        skipped = best is not None and bound is not None and bound(t0) <= _score(best)
        verdict = None if skipped else _verdict(run, score(t0), t0, rules, last)
        progress(tried, len(candidates))
        if verdict is None:
            continue
        if best is None or _score(verdict) > _score(best):
            best = verdict
        # No later candidate can be better: ties go to the smallest t0.
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
        # Answers of a row each are merged by scope and count once.
        answers[instant].add(answer.scope if header.semantics.grain is Grain.ROW else place)

    def bound(t0: int) -> Rank:
        due = expect.instants(header.query, header.semantics, header.advanced_to, t0)
        apart = rows.keys() - due
        surplus = sum(len(answers[instant]) for instant in apart)
        wrong = sum(max(1, rows[instant]) for instant in apart)
        met = sum(rows[instant] for instant in rows.keys() & due)
        # The best case: all rows at due instants are right, and none is missing.
        f1 = _f1(ratio(met, met + wrong, met + wrong), 1.0)
        return not surplus, f1 * _ROUNDING if f1 else 0.0, -surplus

    return bound


_ROUNDING: Final = 1 + 1e-9
"""Factor that keeps the bound on F1 above the value itself, whatever either is rounded to."""


def _verdict(run: Run, scored: Scored, t0: int, rules: JudgingRules, last: float | None) -> Verdict:
    """The verdict from the scores under a t0; ``last`` is the arrival of the last answer (``last_answer``)."""
    header, totals = run.header, scored.totals
    right = not totals.wrong and header.failure is None
    open_ = bool(scored.unknown) and header.failure is None
    precision, recall = totals.scores
    judgement = (Judgement.LATE if totals.late else Judgement.RIGHT) if right else Judgement.WRONG
    return Verdict(
        judgement=Judgement.UNKNOWN if open_ else judgement,
        evaluator=rules.evaluator,
        t0=t0,
        precision=precision,
        recall=recall,
        missed=totals.missed,
        surplus=totals.surplus,
        late=totals.late,
        max_delay=totals.max_delay,
        variables=scored.variables,
        windows=scored.windows,
        tolerance=tolerance_sentence(header.query.form, scored.retyped, exact_datatypes=rules.exact_datatypes)
        + _order_sentence(header),
        reason=header.failure or scored.unknown,
        last_answer=last,
        undecided=totals.undecided,
        delay_bound=rules.max_delay,
        horizon=header.advanced_to,
        retyped=scored.retyped,
    )


class RowScores:
    """Scores by comparing the rows of each answer with those of the report that it is aligned with."""

    def __init__(self, run: Run, expect: Expect, rules: JudgingRules) -> None:
        self._run, self._expect, self._rules = run, expect, rules
        self._known: tuple[int, tuple[str, ...], list[Unit]] | None = None
        self.is_open = cache(partial(is_open, run.header.query, expect.objects))
        """Whether other answers than the evaluator's may be legal; the stream's terms are read once for every t0."""

    def __call__(self, t0: int) -> Scored:
        """The scores under one t0 (ms)."""
        when = due_time(self._run)
        names, units = self._matched(t0)
        judged = (
            JudgedWindow(judge(index, unit, when, self._rules.witnesses), unit.unknown, unit.both.retyped)
            for index, unit in enumerate(units)
        )
        return Scored.of(names, judged, self._rules.max_delay)

    def units(self, t0: int) -> list[Unit]:
        """Due reports aligned with answers; the last t0's are cached, because gracious mode asks again."""
        return self._matched(t0)[1]

    def _matched(self, t0: int) -> tuple[tuple[str, ...], list[Unit]]:
        if self._known is None or self._known[0] != t0:
            self._known = (t0, *matched(self._run, self._expect, t0, self._rules, self.is_open))
        return self._known[1:]


def matched(
    run: Run,
    expect: Expect,
    t0: int,
    rules: JudgingRules = JudgingRules(),
    open_: Callable[[], bool] | None = None,
) -> tuple[tuple[str, ...], list[Unit]]:
    """The columns of the expected rows, and due reports and answers aligned at minimal cost.

    The evaluator's own answers are compared first; other legal answers are computed only if one differs, and something
    is open (``is_open``, which ``open_`` may have asked before).
    """
    header = run.header
    query, semantics = header.query, header.semantics
    names, plain = aligned(run, expect(query, semantics, header.advanced_to, t0), rules)
    units = plain.units()
    if not all(map(is_right, units)) and (open_ or partial(is_open, query, expect.objects))():
        # Prepared when a content is first asked for, which not every run does.
        looking = cache(lambda: expect.look(query, semantics, t0))
        legality = ReportLegality(lambda due: looking()(due), query, semantics, exact_datatypes=rules.exact_datatypes)
        units = LegalUnits(run, expect, t0, legality, plain).units(units)
    keys = compared_order(header)
    return names, [in_order(unit, keys) for unit in units] if keys else units


def aligned(run: Run, expected: Sequence[ExpectedReport], rules: JudgingRules) -> tuple[tuple[str, ...], Alignment]:
    """The columns of the expected rows, and the alignment of a run's answers with the evaluator's own."""
    query, semantics = run.header.query, run.header.semantics
    names = expected[0].variables if expected else (run.answers[0].variables if run.answers else ())
    both = operator(query, semantics) is R2S.CHANGES
    answers = [in_columns(_signed(one) if both else one, names) for one in run.answers]
    answers = answers if both else list(whole(answers))
    return names, Alignment(expected, answers, query, semantics, exact_datatypes=rules.exact_datatypes)


def is_open(query: ContinuousQuery, objects: Objects) -> bool:
    """Whether anything in the query and its streams gives some report several legal answers."""
    return may_be_open(query.form) and not ClosedTerms(query).hold(partial(objects, query, literal_class))


def compared_order(header: RunHeader) -> tuple[tuple[int, bool], ...]:
    """The columns by which each answer's rows must be ordered (docs/judging.md); empty if order is not judged."""
    sends = operator(header.query, header.semantics)
    kept = header.ordered and sends is R2S.RSTREAM and header.semantics.grain is Grain.REPORT
    return order_keys(header.query.form) if kept else ()


def _order_sentence(header: RunHeader) -> str:
    """The verdict's note on ORDER BY, where the query has one for its whole answer."""
    if answer_order(header.query.form) is None:
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
