"""CSRBench's oracle (dellaglio/csrbench-oracle ac823b2): a search for t0, sets, a contiguous part, times ignored.

A run is right if, for some t0 from the semantics' t0 to t0 + size in steps of 1 s, the recorded relations are a
contiguous part of the expected ones. Window close starts with the first full window; under content change each time
after t0 has the scope from ``t0 + a * slide`` to that time plus 1 s, and empty scopes are skipped under non-empty
content. Relations are sets, times are ignored, missing heads or tails still match, and no relations match everything.
Numbers are equal if their text spells the same double, whatever the datatype; a solution with a number equals any other
with the same numbers. ``reproduce`` compares whole solutions, as the paper means; no verdict differs on the recorded
answers.

The decision is yes or no. Precision and recall in the verdict are ours, over the sets of the best placing.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Report, Semantics
from streamgauge.model.terms import Row, Term, is_literal
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import last_answer, ratio, totals
from streamgauge.papers.rules import Equality, RuleSettings, WindowQuery, in_sequence
from streamgauge.semantics.refusal import RefusedError

ABOUT = "CSRBench: yes or no; for some t0 the recorded relations are a contiguous part of the expected ones, as sets."

WITNESSES = 20
_DOUBLE = re.compile(r"\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN)\s*")

Mapping = tuple[str, tuple[tuple[str, object], ...]]
"""The key of a solution; equal solutions have equal keys."""


@dataclass(frozen=True)
class AnswerRelation:
    """A relation: its rows, the scope [start, end) in ms, and the number of triples in the window."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    start: int = 0
    end: int = 0
    content: int = 0
    equality: Equality = Equality.NUMBERS

    @cached_property
    def mappings(self) -> dict[Mapping, Row]:
        """The set of its solutions, each with a row; an empty relation has one empty solution."""
        mappings_ = {self.mapping(row): row for row in self.rows}
        # So an empty relation equals another empty one, and no other: its only solution binds nothing.
        return mappings_ or {("terms", ()): ()}

    def mapping(self, row: Row) -> Mapping:
        """The key of a solution; with numbers, their double values regardless of datatype."""
        terms = sorted((name, _bound(name, term)) for name, term in zip(self.variables, row, strict=True))
        values = [(name, term, number(term)) for name, term in terms]
        numbers = tuple((name, value) for name, _, value in values if value is not None)
        # The other terms of the solution are dropped here: the oracle's code compares the numbers alone.
        if numbers and self.equality is Equality.NUMBERS:
            return "numbers", numbers
        return "terms", tuple((name, term if value is None else value) for name, term, value in values)


def number(term: Term) -> float | None:
    """The double spelled by the text of a literal of any datatype; ``None`` for other terms."""
    match = _DOUBLE.fullmatch(term[1 : term.rindex('"')]) if is_literal(term) else None
    return None if match is None else float(match[1])


def _bound(name: str, term: Term | None) -> Term:
    if term is None:
        raise RefusedError(f"a solution leaves ?{name} unbound: CSRBench's oracle stops at one")
    return term


class ScopeAnswers:
    """A query's answers over the graphs of a stream; each scope is evaluated once for all oracles."""

    def __init__(self, query: ContinuousQuery, elements: Sequence[StreamElement]) -> None:
        """RefusedError for a query or stream that CSRBench's oracle does not know."""
        self.query = query
        self._answering = WindowQuery(query, "CSRBench")
        ordered = in_sequence(elements, query, "CSRBench")
        self._graphs = [
            (time, tuple(triple for element in group for triple in element.added))
            for time, group in groupby(ordered, key=lambda element: element.time)
        ]
        self._known: dict[tuple[int, int], AnswerRelation] = {}

    @property
    def times(self) -> list[int]:
        """The times of the graphs, ms, ascending."""
        return [time for time, _ in self._graphs]

    def over(self, start: int, end: int) -> AnswerRelation | None:
        """The answer over [start, end) in ms; ``None`` for an empty scope without static data."""
        # (start,) sorts before every (start, triples): the graphs of ``start`` are included, those of ``end`` are not.
        first, last = bisect_left(self._graphs, (start,)), bisect_left(self._graphs, (end,))
        if first >= last and not self.query.static:
            return None
        # Scopes of different t0 with the same graphs have the same answer, so the key is the range of graphs.
        if (first, last) not in self._known:
            content = {triple for _, triples in self._graphs[first:last] for triple in triples}
            rows = self._answering.rows(content)
            self._known[first, last] = AnswerRelation(self._answering.variables, rows, content=len(content))
        return self._known[first, last]


class CsrbenchOracle:
    """The answers that CSRBench's oracle expects from a stream and a query, by t0."""

    def __init__(
        self, contents: ScopeAnswers, semantics: Semantics, time_unit: int = 1000, equality: Equality = Equality.NUMBERS
    ) -> None:
        """RefusedError for a semantics that it does not know; ``time_unit`` (ms) is its system.timeunit."""
        _refuse(semantics)
        self._contents, self._window = contents, contents.query.window
        self._semantics, self._unit = semantics, time_unit
        self._r2s = contents.query.r2s or semantics.r2s
        self.equality = equality

    @property
    def candidates(self) -> range:
        """The candidates for t0, ms: both ends of the first window."""
        first = self._semantics.t0
        # The stop is one beyond, so that both ends of the first window are candidates.
        return range(first, first + self._window.size + 1, self._unit)

    def output(self, t0: int) -> tuple[AnswerRelation, ...]:
        """The expected relations when the first window starts at ``t0`` (ms)."""
        return tuple(self._streamed(self._evaluated(t0)))

    def scopes(self, t0: int) -> Iterator[tuple[int, int]]:
        """The evaluated scopes [from, to) in ms, up to a window after the last data."""
        times = self._contents.times
        last = max(times, default=0) + self._window.size
        if Report.WINDOW_CLOSE in self._semantics.report:
            scopes_ = closing(self._window, t0)
        else:
            scopes_ = changing(self._window, t0, times, self._unit)
        for start, end in scopes_:
            if start > last:
                return
            yield start, end

    def _evaluated(self, t0: int) -> Iterator[AnswerRelation]:
        for start, end in self.scopes(t0):
            relation = self._contents.over(start, end)
            if relation is not None:
                yield replace(relation, start=start, end=end, equality=self.equality)
            elif Report.NON_EMPTY not in self._semantics.report and self._semantics.notify_empty:
                yield AnswerRelation((), (), start, end, 0, self.equality)

    def _streamed(self, evaluated: Iterator[AnswerRelation]) -> Iterator[AnswerRelation]:
        before: AnswerRelation | None = None
        for relation in evaluated:
            sent = _sent(self._r2s, before, relation)
            before = relation
            if sent is not None and (sent.rows or self._semantics.notify_empty):
                yield sent


def closing(window: Window, t0: int) -> Iterator[tuple[int, int]]:
    """Window close: the scope of the first full window, then one per slide."""
    clock = t0
    while True:
        # Up to the first full window the clock jumps by a size, then by slides: with t0 = 0, size 4 and slide 2 the
        # scopes are [0, 4), [2, 6), [4, 8).
        clock += window.size if clock < window.size else window.slide
        yield max(0, clock - window.size), clock


def changing(window: Window, t0: int, times: Sequence[int], unit: int) -> Iterator[tuple[int, int]]:
    """Content change: a scope at each time after t0, but not at t0; its start moves by slides."""
    for time in times:
        if time > t0:
            # With size 4, slide 2 and t0 = 0, time 3 has the start 0, time 4 the start 2, time 6 the start 4.
            slides = max(0, (time - t0 - window.size) // window.slide + 1)
            yield max(t0, t0 + slides * window.slide), time + unit


def _refuse(semantics: Semantics) -> None:
    closes = Report.WINDOW_CLOSE in semantics.report
    if closes == (Report.CONTENT_CHANGE in semantics.report) or semantics.period is not None:
        strategies = " and ".join(sorted(semantics.report))
        raise RefusedError(f"{semantics.name} reports on {strategies}: CSRBench knows window close or content change")


def _sent(r2s: R2S, before: AnswerRelation | None, now: AnswerRelation) -> AnswerRelation | None:
    """The relation that the operator sends, by sets; Dstream sends nothing at first."""
    if r2s is R2S.RSTREAM or (before is None and r2s is R2S.ISTREAM):
        return now
    if before is None:
        return None
    left, right = (now, before) if r2s is R2S.ISTREAM else (before, now)
    rows = [row for row in left.rows if left.mapping(row) not in right.mappings]
    return replace(now, variables=left.variables, rows=tuple(rows))


def counts(output: Sequence[AnswerRelation]) -> tuple[int, int]:
    """The numbers of relations and of their solutions, without that of an empty relation."""
    return len(output), sum(len(relation.mappings) for relation in output if relation.rows)


def recorded(answers: Sequence[Answer], equality: Equality = Equality.NUMBERS) -> tuple[AnswerRelation, ...]:
    """An engine's answers as relations."""
    return tuple(AnswerRelation(answer.variables, answer.added, equality=equality) for answer in answers)


def grouped(answers: Sequence[Answer], together: int) -> tuple[Answer, ...]:
    """Answers received in the same ``together`` ms merged into one; times stay."""
    groups = groupby(answers, key=lambda answer: answer.received // (together * 1_000_000))
    return tuple(
        replace(members_kept[0], added=tuple(row for answer in members_kept for row in answer.added))
        for _, members in groups
        if (members_kept := list(members))
    )


@dataclass(frozen=True, slots=True)
class Placing:
    """The best placing of recorded among expected relations: offset of the first, number of equal ones."""

    t0: int
    offset: int
    equal: int
    contained: bool


def place(output: Sequence[AnswerRelation], recorded: Sequence[AnswerRelation], t0: int) -> Placing:
    """The placing with most equal relations, the earliest of these; ``contained`` if all are, contiguously."""
    # Sets as numbers, so that a placing compares integers.
    names: dict[frozenset[Mapping], int] = {}
    have, want = (
        [names.setdefault(frozenset(relation.mappings), len(names)) for relation in side] for side in (output, recorded)
    )
    for offset in range(len(have) - len(want) + 1):
        if have[offset : offset + len(want)] == want:
            return Placing(t0, offset, len(want), contained=True)
    # Not contained: the best placing only serves to show what differs.
    best = Placing(t0, 0, 0, contained=False)
    # From the last recorded relation on the first expected one to the first recorded on the last expected.
    for offset in range(1 - len(want), len(have)):
        over = range(max(0, -offset), min(len(want), len(have) - offset))
        equal = sum(have[offset + i] == want[i] for i in over)
        if equal > best.equal:
            best = Placing(t0, offset, equal, contained=False)
    return best


def judge(run: Run, elements: Sequence[StreamElement], settings: RuleSettings) -> Verdict:
    """Right at the first t0 under which the recorded relations are contained; otherwise with the best placing."""
    contents = ScopeAnswers(run.header.query, elements)
    oracle = CsrbenchOracle(contents, run.header.semantics, settings.time_unit, settings.equality)
    return verdict(run, oracle, settings.progress)


def verdict(
    run: Run, oracle: CsrbenchOracle, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Verdict:
    """The verdict on a run by an oracle for its query, stream and semantics."""
    relations = recorded(run.answers, oracle.equality)
    best: Placing | None = None
    for tried, t0 in enumerate(oracle.candidates, 1):
        placing = place(oracle.output(t0), relations, t0)
        progress(tried, len(oracle.candidates))
        if best is None or placing.contained or placing.equal > best.equal:
            best = placing
        if placing.contained:
            break
    assert best is not None
    return _verdict(run, oracle, relations, best)


def _verdict(run: Run, oracle: CsrbenchOracle, recorded: Sequence[AnswerRelation], best: Placing) -> Verdict:
    output = oracle.output(best.t0)
    windows = tuple(_window(i, output, relation, best) for i, relation in enumerate(recorded))
    precision, recall = totals(windows)
    return Verdict(
        judgement=Judgement.RIGHT if best.contained else Judgement.WRONG,
        evaluator="definition",
        t0=best.t0,
        precision=precision,
        recall=recall,
        missed=0,
        surplus=sum(not window.due for window in windows),
        late=0,
        max_delay=None,
        variables=run.answers[0].variables if run.answers else (),
        windows=windows,
        tolerance=f"numbers by double value; {oracle.equality}; relations as sets; times ignored",
        reason=_reason(output, recorded, best, oracle.candidates),
        last_answer=last_answer(run),
        rules="csrbench",
    )


def _reason(
    output: Sequence[AnswerRelation], recorded: Sequence[AnswerRelation], best: Placing, candidates: range
) -> str:
    if best.contained:
        return f"The {len(recorded)} recorded relations are a contiguous part of the {len(output)} expected ones."
    return (
        f"For no t0 from {candidates[0]} to {candidates[-1]} ms are the {len(recorded)} recorded relations a "
        f"part of the expected ones; the best placing, at t0 = {best.t0} ms, has {best.equal} equal."
    )


def _window(index: int, output: Sequence[AnswerRelation], relation: AnswerRelation, best: Placing) -> WindowVerdict:
    """A recorded relation compared with the expected one in its place, as sets."""
    at = best.offset + index
    due = output[at] if 0 <= at < len(output) else None
    want = due.mappings if due and due.rows else {}
    have = relation.mappings if relation.rows else {}
    common = len(want.keys() & have.keys())
    return WindowVerdict(
        index=index,
        start=due.start if due else None,
        end=due.end if due else None,
        instant=due.end if due else None,
        report=index,
        precision=ratio(common, len(have), len(want)) if due else 0.0,
        recall=ratio(common, len(want), len(have)) if due else 0.0,
        true_positives=common,
        expected=len(want),
        actual=len(have),
        content=due.content if due else 0,
        delay=None,
        missing=tuple(row for key, row in want.items() if key not in have)[:WITNESSES],
        surplus=tuple(row for key, row in have.items() if key not in want)[:WITNESSES],
        due=due is not None,
    )
