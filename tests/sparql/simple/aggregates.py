"""The set functions of 18.5.1 over the solutions of one group."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

from streamgauge.model import algebra as al
from tests.sparql.simple.choices import Choices, ExpressionError, OpenError
from tests.sparql.simple.expressions import Expressions
from tests.sparql.simple.functions import combined, numeric, written
from tests.sparql.simple.ordering import least
from tests.sparql.simple.values import DIR_LANG_STRING, LANG_STRING, XSD, Number, is_literal, literal, same, split, term

MOST = 4
"""So many values are added or concatenated in every order; more are left open where their order matters."""


def aggregated(
    aggregate: al.Aggregate, members: Sequence[dict[str, str]], expressions: Expressions, choices: Choices
) -> str:
    """The value of an aggregate over a group, ExpressionError where it has none."""
    if aggregate.argument is None:
        rows = _different_rows(members) if aggregate.distinct else members
        return literal(str(len(rows)), XSD + "integer")
    cells = [_cell(aggregate.argument, member, expressions) for member in members]
    if aggregate.distinct:
        cells = _different(cells)
    values = [cell for cell in cells if cell is not None]
    match aggregate.function:
        case "COUNT":
            return literal(str(len(values)), XSD + "integer")
        case "SUM":
            return term(_sum(cells, choices))
        case "AVG":
            return term(_average(cells, choices))
        case "MIN" | "MAX":
            return _extreme(cells, aggregate.function == "MAX", choices)
        case "SAMPLE":
            return _known(cells[choices.choose(len(cells))] if cells else None)
        case _:
            return literal(aggregate.separator.join(_texts(cells, choices)))


def _cell(tree: al.Expression, solution: dict[str, str], expressions: Expressions) -> str | None:
    try:
        return expressions.evaluate(tree, solution)
    except ExpressionError:
        return None


def _known(cell: str | None) -> str:
    if cell is None:
        raise ExpressionError("an aggregate over an error")
    return cell


def _different(cells: list[str | None]) -> list[str | None]:
    results: list[str | None] = []
    for cell in cells:
        if not any(same(cell, other) for other in results):
            results.append(cell)
    return results


def _different_rows(members: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    results: list[dict[str, str]] = []
    for member in members:
        if not any(
            member.keys() == other.keys() and all(same(member[n], other[n]) for n in member) for other in results
        ):
            results.append(member)
    return results


def _extreme(cells: list[str | None], most: bool, choices: Choices) -> str:
    """MIN and MAX in the order of ORDER BY; errors come first there, or are left out (11.5 shows neither)."""
    known = [cell for cell in cells if cell is not None]
    if None in cells and not most and known and choices.policy("an error is the least"):
        raise ExpressionError("MIN over an error")
    if None in cells and known and most and choices.policy("an aggregate over an error is an error"):
        raise ExpressionError("MAX over an error")
    return _known(least(known, choices, most) if known else None)


def _sum(cells: list[str | None], choices: Choices) -> Number:
    numbers = [numeric(_known(cell)) for cell in cells]
    if len({_added(list(order)) for order in _orders(numbers)}) > 1:
        results = list(dict.fromkeys(_added(list(order)) for order in _orders(numbers)))
        return results[choices.choose(len(results))]
    return _added(numbers)


def _orders(numbers: list[Number]) -> list[tuple[Number, ...]]:
    if all(isinstance(number.number, Fraction) for number in numbers):
        return [tuple(numbers)]
    if len(numbers) <= MOST:
        return list(permutations(numbers))
    return [tuple(numbers), tuple(reversed(numbers)), tuple(sorted(numbers, key=lambda item: float(item.number)))]


def _added(numbers: Sequence[Number]) -> Number:
    total = Number("integer", Fraction(0))
    for number in numbers:
        total = combined("+", total, number)
    return total if total.number == total.number else Number(total.kind, float("nan"))


def _average(cells: list[str | None], choices: Choices) -> Number:
    if not cells:
        return Number("integer", Fraction(0))
    return combined("/", _sum(cells, choices), Number("integer", Fraction(len(cells))))


def _is_string(cell: str) -> bool:
    return is_literal(cell) and split(cell)[1] in (DIR_LANG_STRING, LANG_STRING, XSD + "string")


def _texts(cells: list[str | None], choices: Choices) -> tuple[str, ...]:
    """The texts of GROUP_CONCAT in some order."""
    values = [_known(cell) for cell in cells]
    if any(not _is_string(value) for value in values) and choices.policy("GROUP_CONCAT takes strings only, as CONCAT"):
        raise ExpressionError("GROUP_CONCAT of what is not a string")
    texts = [written(value) for value in values]
    if len(set(texts)) <= 1:
        return tuple(texts)
    if len(texts) > MOST:
        raise OpenError("the order of GROUP_CONCAT")
    orders = sorted(set(permutations(texts)))
    return orders[choices.choose(len(orders))]
