"""Conditions and expressions on single rows: a fast exact path, and pyoxigraph in batches for the rest."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from streamgauge.compute import expressions
from streamgauge.compute.numbers import BINARY, UNKNOWN, Number, Outcome, Unknown, number
from streamgauge.model.algebra import Call, Exists, Expression, Var, expression_variables
from streamgauge.model.terms import Row, Term, is_literal

Test = Callable[..., bool]
Cell = Term | None
_Value = Outcome | str
_Compiled = Callable[[Sequence[Cell]], _Value]

_WORD: Final = "[A-Za-z0-9 @_^$-]*"
_ALIKE: Final = re.compile(rf'"(?:{_WORD}\({_WORD}(?:\|{_WORD})*\))?{_WORD}"')
"""Regular expressions that mean the same in XPath (F&O 3.1, 5.6.1) and in Python, with choices at one place at most:
there is nothing to go back to again and again."""

LIMIT: Final = 100_000
"""How many results a cache remembers before it starts afresh."""


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a FILTER that must all hold: ``a && b`` filters like ``a`` and ``b`` one after the other."""
    if isinstance(condition, Call) and condition.operator == "&&":
        return tuple(part for argument in condition.arguments for part in conjuncts(argument))
    return (condition,)


def variables_of(expression: Expression) -> tuple[str, ...]:
    """The names of the variables that an expression reads, sorted."""
    return tuple(sorted(var.name for var in expression_variables(expression)))


def is_fast(condition: Expression) -> bool:
    """Whether a condition compares numbers or IRIs only, so that it is worth testing solution by solution."""
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
            return not is_literal(expression) or number(expression) is not UNKNOWN
        case Call(operator="+" | "-" | "*", arguments=(first, second)):
            return _countable(first) and _countable(second)
        case _:
            return False


def test(condition: Expression, names: Sequence[str]) -> Test:
    """A cached test of terms, one per name of ``names`` and in that order; what is not fast goes to pyoxigraph."""
    run = _compiled(condition, {name: position for position, name in enumerate(names)})

    def decide(cells: Sequence[Cell]) -> bool:
        value = run(cells)
        if isinstance(value, bool):
            return value
        if value is None:
            return False
        return expressions.holds(condition, names, [tuple(cells)])[0]

    return _cached_one(decide) if len(names) == 1 else _cached(decide)


def _cached_one(decide: Callable[[Sequence[Cell]], bool]) -> Test:
    known: dict[Cell, bool] = {}

    def one(cell: Cell) -> bool:
        found = known.get(cell)
        if found is None:
            if len(known) >= LIMIT:
                known.clear()
            found = known[cell] = decide((cell,))
        return found

    return one


def _cached(decide: Callable[[Sequence[Cell]], bool]) -> Test:
    known: dict[tuple[Cell, ...], bool] = {}

    def several(*cells: Cell) -> bool:
        found = known.get(cells)
        if found is None:
            if len(known) >= LIMIT:
                known.clear()
            found = known[cells] = decide(cells)
        return found

    return several


def _compiled(expression: Expression, positions: dict[str, int]) -> _Compiled:
    match expression:
        case Var(name=name):
            position = positions[name]
            return lambda cells: _leaf(cells[position])
        case str():
            constant = _leaf(expression)
            return lambda cells: constant  # noqa: ARG005
        case Call(operator="&&" | "||" | "!" as operator, arguments=arguments):
            return _logical(operator, [_compiled(argument, positions) for argument in arguments])
        case Call(operator=operator, arguments=(first, second)) if operator in BINARY:
            return _binary(operator, _compiled(first, positions), _compiled(second, positions))
        case Call(operator="REGEX", arguments=(Var(name=name), str(pattern))) if _ALIKE.fullmatch(pattern):
            return _matching(pattern[1:-1], positions[name])
        case _:
            return _unknown


def _unknown(_cells: Sequence[Cell]) -> _Value:
    return UNKNOWN


def _matching(pattern: str, position: int) -> _Compiled:
    """Whether a plain literal without escapes matches; other terms are not decided here."""
    try:
        search = re.compile(pattern).search
    except re.error:
        return _unknown

    def run(cells: Sequence[Cell]) -> _Value:
        cell = cells[position]
        plain = cell is not None and cell[0] == cell[-1] == '"' and "\\" not in cell
        return search(cell[1:-1]) is not None if cell is not None and plain else UNKNOWN

    return run


def _leaf(cell: Cell) -> _Value:
    """A number, the text of an IRI, ``None`` for unbound, UNKNOWN for other literals and blank nodes."""
    if cell is None:
        return None
    return cell if cell[0] == "<" and cell[1] != "<" else number(cell)


def _binary(operator: str, first: _Compiled, second: _Compiled) -> _Compiled:
    operate = BINARY[operator]

    def run(cells: Sequence[Cell]) -> _Value:
        left, right = first(cells), second(cells)
        if isinstance(left, Number) and isinstance(right, Number):
            return operate(left, right)
        if left is None or right is None:
            return None
        if isinstance(left, str) and isinstance(right, str) and operator in ("=", "!="):
            return (left == right) is (operator == "=")
        return UNKNOWN

    return run


def _logical(operator: str, parts: Sequence[_Compiled]) -> _Compiled:
    """Three-valued: an error yields to a deciding operand (SPARQL 1.1, 17.2)."""
    deciding = operator == "||"

    def run(cells: Sequence[Cell]) -> _Value:
        values = [part(cells) for part in parts]
        if not all(value is None or isinstance(value, bool) for value in values):
            return UNKNOWN
        if any(value is deciding for value in values):
            return deciding
        return None if None in values else not deciding

    def negation(cells: Sequence[Cell]) -> _Value:
        value = parts[0](cells)
        return not value if isinstance(value, bool) else None if value is None else UNKNOWN

    return negation if operator == "!" else run


class Batch:
    """An expression over rows with a bounded memory: what is new is evaluated in one go."""

    def __init__(self, expression: Expression, variables: Sequence[str]) -> None:
        needed = set(variables_of(expression))
        self._positions = [position for position, name in enumerate(variables) if name in needed]
        self._names = [variables[position] for position in self._positions]
        self._expression = expression
        self._values: dict[Row, Cell] = {}
        self._kept: dict[Row, bool] = {}
        self._fast = _fast(expression, self._names)

    def values(self, rows: Iterable[Row]) -> list[Cell]:
        """The expression's value for each row, ``None`` for an error."""
        if isinstance(self._expression, str):
            return [self._expression for _ in rows]
        if isinstance(self._expression, Var):
            at = self._positions[0] if self._positions else None
            return [None if at is None else row[at] for row in rows]
        keys = self._keys(rows)
        self._learn(self._values, keys, expressions.evaluate)
        return [self._values[key] for key in keys]

    def holds(self, rows: Iterable[Row]) -> list[bool]:
        """Whether the expression, as a FILTER, keeps each row."""
        keys = self._keys(rows)
        if self._fast is not None:
            return [self._fast(*key) for key in keys]
        self._learn(self._kept, keys, expressions.holds)
        return [self._kept[key] for key in keys]

    def _keys(self, rows: Iterable[Row]) -> list[Row]:
        positions = self._positions
        return [tuple([row[position] for position in positions]) for row in rows]

    def _learn(
        self, known: dict[Row, Cell] | dict[Row, bool], keys: list[Row], evaluate: Callable[..., list[Any]]
    ) -> None:
        if len(known) >= LIMIT:
            known.clear()
        fresh = [key for key in dict.fromkeys(keys) if key not in known]
        if fresh:
            known.update(zip(fresh, evaluate(self._expression, self._names, fresh), strict=True))


def _fast(expression: Expression, names: Sequence[str]) -> Test | None:
    return test(expression, names) if is_fast(expression) and set(variables_of(expression)) == set(names) else None


def reads_patterns(expression: Expression) -> bool:
    """Whether an EXISTS stands in the expression."""
    if isinstance(expression, Call):
        return any(map(reads_patterns, expression.arguments))
    return isinstance(expression, Exists)


__all__ = ["Batch", "Unknown", "conjuncts", "is_fast", "reads_patterns", "test", "variables_of"]
