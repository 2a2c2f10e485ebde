"""ORDER BY (15.1): which solution comes before which, and what the order leaves open."""

from collections.abc import Sequence

from streamgauge.model import algebra as al
from tests.sparql.simple.choices import Choices, ExpressionError
from tests.sparql.simple.expressions import Expressions, Solution
from tests.sparql.simple.values import Moment, Number, compared, is_triple, promoted, same, triple, value


def before(left: str | None, right: str | None) -> bool | None:
    """Whether the one comes before the other; ``False`` where they are equal, ``None`` where their order is open."""
    if _kind(left) != _kind(right):
        return _kind(left) < _kind(right)
    if left is None or right is None:
        return False
    if same(left, right):
        return False
    if is_triple(left):
        return _triples(triple(left), triple(right))
    if left.startswith("<"):
        return left[1:-1] < right[1:-1]
    if left.startswith("_:"):
        return None
    return _literals(left, right)


def _literals(left: str, right: str) -> bool | None:
    try:
        one, other = value(left), value(right)
    except ExpressionError:
        return None
    if isinstance(one, Number) and isinstance(other, Number):
        _, first, second = promoted(one, other)
        return first < second if first == first and second == second else None
    if isinstance(one, Moment) and isinstance(other, Moment) and one.kind == other.kind:
        try:
            return compared(one, other) < 0
        except ExpressionError:
            return None
    if type(one) is type(other) and isinstance(one, bool | str):
        return one < other  # type: ignore[operator]
    return None


def _kind(cell: str | None) -> int:
    if cell is None:
        return 0
    if is_triple(cell):
        return 4
    return 1 if cell.startswith("_:") else 2 if cell.startswith("<") else 3


def _triples(left: tuple[str, str, str], right: tuple[str, str, str]) -> bool | None:
    """By subject, predicate and object (SPARQL 1.2, 15.1)."""
    for one, other in zip(left, right, strict=True):
        if (first := before(one, other)) is not False:
            return first
        if before(other, one) is not False:
            return False if before(other, one) else None
    return False


def least(cells: Sequence[str | None], choices: Choices, descending: bool = False) -> str | None:
    """A first one in ascending (descending) order; any of those that none comes before."""

    def precedes(left: str | None, right: str | None) -> bool:
        return before(right, left) is True if descending else before(left, right) is True

    distinct = [cell for at, cell in enumerate(cells) if cell not in cells[:at]]
    first = [cell for cell in distinct if not any(precedes(other, cell) for other in distinct)]
    return first[choices.choose(len(first))]


class Order:
    """The order of solutions by keys, each ascending or descending."""

    def __init__(self, keys: Sequence[tuple[al.Expression, bool]], expressions: Expressions, choices: Choices) -> None:
        self._keys, self._expressions, self._choices = keys, expressions, choices

    def first(self, solutions: list[dict[str, str]]) -> int:
        """The place of a solution that none comes before: any of them, equal ones counted once."""
        keys = [[self._cell(tree, solution) for tree, _ in self._keys] for solution in solutions]
        places = [
            at
            for at, key in enumerate(keys)
            if not any(self._precedes(other, key) for other in keys) and solutions[at] not in solutions[:at]
        ]
        return places[self._choices.choose(len(places))]

    def _cell(self, tree: al.Expression, solution: Solution) -> str | None:
        try:
            return self._expressions.evaluate(tree, solution)
        except ExpressionError:
            return None

    def _precedes(self, left: list[str | None], right: list[str | None]) -> bool:
        for (_, descending), one, other in zip(self._keys, left, right, strict=True):
            earlier, later = before(one, other), before(other, one)
            if earlier is None:
                return False
            if earlier or later:
                return bool(later if descending else earlier)
        return False
