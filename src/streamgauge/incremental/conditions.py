"""Compiled conditions and expressions on rows; results are cached by the terms that they read."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.crossovers import REMEMBERED_RESULTS
from streamgauge.model.algebra import Call, Expression, Var, expression_variables
from streamgauge.model.terms import Row, Term, is_literal
from streamgauge.sparql.expression import row_condition, row_expression
from streamgauge.sparql.values import DOUBLE, read

Test = Callable[..., bool]
Cell = Term | None


PARTS: Final = 8
"""Operators and terms of an expression that are charged as one row per evaluation."""

LONG_NS: Final = 200_000
"""Nanoseconds above which the CPU time of an evaluation is charged."""


def size_of(expression: Expression) -> int:
    """The number of operators and terms of an expression."""
    count, waiting = 0, [expression]
    while waiting:
        node = waiting.pop()
        count += 1
        if isinstance(node, Call):
            waiting += node.arguments
    return count


def variables_of(expression: Expression) -> tuple[str, ...]:
    """The sorted names of the variables that an expression reads."""
    return tuple(sorted(var.name for var in expression_variables(expression)))


def is_fast(condition: Expression) -> bool:
    """Whether a condition only compares numbers or IRIs, so that it is cheap enough to test inside joins."""
    if not isinstance(condition, Call):
        return False
    if condition.operator in ("&&", "||", "!"):
        return all(map(is_fast, condition.arguments))
    comparison = condition.operator in ("=", "!=", "<", ">", "<=", ">=")
    return comparison and bool(expression_variables(condition)) and all(map(_countable, condition.arguments))


def _countable(expression: Expression) -> bool:
    match expression:
        case Var():
            return True
        case str():
            return not is_literal(expression) or read(expression).kind <= DOUBLE
        case Call(operator="+" | "-" | "*", arguments=(first, second)):
            return _countable(first) and _countable(second)
        case _:
            return False


def test(condition: Expression, names: Sequence[str]) -> Test:
    """A cached test that takes one term per name, in the order of ``names``."""
    if len(names) == 1 and (iris := _listed(condition)) is not None:
        # IRIs are equal if their texts are, so membership needs no evaluation.
        return iris.__contains__
    decide = row_condition(condition, names)
    if len(names) == 1:
        return lru_cache(REMEMBERED_RESULTS)(lambda cell: decide((cell,)))
    return lru_cache(REMEMBERED_RESULTS)(lambda *cells: decide(cells))


def _listed(condition: Expression) -> frozenset[Term] | None:
    """The IRIs of ``?x IN (<a>, <b>)``; ``None`` for any other condition."""
    match condition:
        case Call(operator="IN", arguments=(Var(), *terms)) if all(isinstance(term, str) for term in terms):
            listed = frozenset(map(str, terms))
            return listed if all(term.startswith("<") and not term.startswith("<<") for term in listed) else None
    return None


class Batch:
    """An expression over rows with a bounded cache, charged to the budget ``effort``."""

    def __init__(
        self, expression: Expression, variables: Sequence[str], effort: EvaluationBudget | None = None
    ) -> None:
        self._effort = effort if effort is not None and effort.bounded else None
        self._weight = size_of(expression) // PARTS
        needed = set(variables_of(expression))
        self._positions = [position for position, name in enumerate(variables) if name in needed]
        self._names = [variables[position] for position in self._positions]
        self.expression = expression
        self._values: dict[Row, Cell] = {}
        self._kept: dict[Row, bool] = {}
        self._fast = _fast(expression, self._names)
        self._evaluate = row_expression(expression, self._names)
        self._holds = row_condition(expression, self._names)

    def values(self, rows: Iterable[Row]) -> list[Cell]:
        """The value for each row; ``None`` for an error."""
        if isinstance(self.expression, str):
            return [self.expression for _ in rows]
        if isinstance(self.expression, Var):
            at = self._positions[0] if self._positions else None
            return [None if at is None else row[at] for row in rows]
        return self._learned(self._values, self._keys(rows), self._evaluate)

    def holds(self, rows: Iterable[Row]) -> list[bool]:
        """Whether FILTER keeps each row."""
        keys = self._keys(rows)
        if self._fast is not None:
            return [self._fast(*key) for key in keys]
        return self._learned(self._kept, keys, self._holds)

    def _keys(self, rows: Iterable[Row]) -> list[Row]:
        """The cells that the expression reads, which are charged."""
        positions = self._positions
        keys = [tuple([row[position] for position in positions]) for row in rows]
        if self._effort is not None and self._weight:
            self._effort.spend(len(keys) * self._weight)
        return keys

    def _learned(self, known: dict[Row, Any], keys: list[Row], evaluate: Callable[[Row], Any]) -> list[Any]:
        if len(known) >= REMEMBERED_RESULTS:
            known.clear()
        if self._effort is not None:
            evaluate = _charged(evaluate, self._effort)
        for key in keys:
            if key not in known:
                known[key] = evaluate(key)
        return [known[key] for key in keys]


def _charged(evaluate: Callable[[Row], Any], effort: EvaluationBudget) -> Callable[[Row], Any]:
    """``evaluate``, charging slow evaluations by their CPU time, a microsecond as a row.

    The wall clock, which is cheap to read, decides when to read the CPU clock, which alone is charged.
    """
    since = thread_time_ns()

    def run(row: Row) -> Any:
        nonlocal since
        began = perf_counter_ns()
        value = evaluate(row)
        if perf_counter_ns() - began > LONG_NS:
            now = thread_time_ns()
            effort.spend((now - since) // 1000)
            since = now
        return value

    return run


def _fast(expression: Expression, names: Sequence[str]) -> Test | None:
    return test(expression, names) if is_fast(expression) and set(variables_of(expression)) == set(names) else None
