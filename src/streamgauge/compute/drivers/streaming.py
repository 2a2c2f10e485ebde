"""What a driver sends at a report: Rstream, Istream or Dstream of the solutions, from their exact changes."""

from collections.abc import Callable, Iterable

from streamgauge.compute.drivers.answering import Answering
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.semantics import R2S, Counting, Grain, Semantics
from streamgauge.model.terms import Row


class Streaming:
    """The relation-to-stream side of one query (CQL): differences are to the last evaluated instant."""

    def __init__(
        self, form: al.QueryForm, evaluator: Answering, r2s: R2S, semantics: Semantics, emit: Callable[[Answer], None]
    ) -> None:
        self._evaluator, self._r2s, self._emit = evaluator, r2s, emit
        self._semantics = semantics
        self._sets = semantics.answers is Counting.SET
        self._kind = _kind(form)

    def report(self, instant: int, scope: tuple[int, int]) -> None:
        """Evaluate, and send what the operator gives; an empty answer only when the semantics notifies of it."""
        rows = self._rows()
        if not rows and not self._semantics.notify_empty:
            return
        bags = [(row,) for row in rows] if self._semantics.grain is Grain.ROW and rows else [rows]
        for bag in bags:
            self._emit(Answer(self._evaluator.variables, bag, (), self._kind, instant, scope))

    def _rows(self) -> tuple[Row, ...]:
        if self._r2s is R2S.RSTREAM:
            answer = self._evaluator.answer()
            return tuple(answer) if self._sets or sum(answer.values()) == len(answer) else _repeated(answer.items())
        delta = self._evaluator.settle()
        solutions = self._evaluator.solutions()
        sign = 1 if self._r2s is R2S.ISTREAM else -1
        if self._sets:
            return tuple([row for row, count in delta.items() if sign * _turn(solutions.get(row, 0), count) > 0])
        return _repeated([(row, sign * count) for row, count in delta.items() if sign * count > 0])


def _turn(now: int, change: int) -> int:
    """1 when a row came into the set, -1 when it left it, 0 when only its copies changed."""
    return (now > 0) - (now - change > 0)


def _repeated(bag: Iterable[tuple[Row, int]]) -> tuple[Row, ...]:
    return tuple([row for row, count in bag for _ in range(count)])


def _kind(form: al.QueryForm) -> AnswerKind:
    if isinstance(form, al.Select):
        return "solutions"
    return "boolean" if isinstance(form, al.Ask) else "triples"
