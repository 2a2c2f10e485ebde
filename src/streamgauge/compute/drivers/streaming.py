"""Relation to stream: what is said at an evaluated instant, from the change since the last one."""

from collections.abc import Callable, Mapping
from itertools import repeat

from streamgauge.compute.changes import Evaluator
from streamgauge.compute.drivers.scopes import Candidate
from streamgauge.model.algebra import Construct, QueryForm, Select
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.semantics import R2S, Counting, Grain, Semantics
from streamgauge.model.terms import Row

Emit = Callable[[Answer], None]


class Streamer:
    """Evaluates and emits: Rstream the bag, Istream and Dstream its difference to the last evaluated instant."""

    def __init__(self, evaluator: Evaluator, form: QueryForm, r2s: R2S, semantics: Semantics, emit: Emit) -> None:
        self._evaluator, self._r2s, self._emit = evaluator, r2s, emit
        self._sets = semantics.answers is Counting.SET
        self._by_row = semantics.grain is Grain.ROW
        self._notify_empty = semantics.notify_empty
        self._kind = _kind(form)

    def report(self, candidate: Candidate) -> None:
        """Evaluate at this instant and send what is due."""
        rows = self._rows()
        if not rows and not self._notify_empty:
            return
        parts = [(row,) for row in rows] if self._by_row and rows else [rows]
        variables, scope = self._evaluator.variables, (candidate.start, candidate.instant)
        for part in parts:
            self._emit(Answer(variables, part, (), self._kind, candidate.instant, scope))

    def _rows(self) -> tuple[Row, ...]:
        delta = self._evaluator.settle()
        now = self._evaluator.solutions()
        if self._r2s is R2S.RSTREAM:
            return tuple(now) if self._sets else _elements(now)
        if self._sets:
            delta = {row: 1 if row in now else -1 for row, count in delta.items() if _toggles(now.get(row, 0), count)}
        sign = 1 if self._r2s is R2S.ISTREAM else -1
        return _elements({row: sign * count for row, count in delta.items() if sign * count > 0})


def _toggles(now: int, change: int) -> bool:
    """Whether a row with ``now`` copies after this change appeared or vanished by it."""
    return (now > 0) != (now - change > 0)


def _elements(bag: Mapping[Row, int]) -> tuple[Row, ...]:
    if max(bag.values(), default=1) == 1:
        return tuple(bag)
    return tuple(row for each, count in bag.items() for row in repeat(each, count))


def _kind(form: QueryForm) -> AnswerKind:
    if isinstance(form, Select):
        return "solutions"
    return "triples" if isinstance(form, Construct) else "boolean"
