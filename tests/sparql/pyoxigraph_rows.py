"""pyoxigraph's answer to an expression over rows, for comparison: one query for a whole batch."""

from collections.abc import Iterator, Mapping, Sequence

import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical
from streamgauge.model.algebra import Call, Expression, Var, expression_variables
from streamgauge.model.terms import Row, Term
from streamgauge.query.printer import expression as printed

_ROW = "<urn:streamgauge:row>"
_INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
_CANONICAL = Canonical()


def evaluate(expression: Expression, variables: Sequence[str], rows: Sequence[Row]) -> list[Term | None]:
    """The value of an expression (no EXISTS) for each row over ``variables``; ``None`` for an error or unbound."""
    values: list[Term | None] = [None] * len(rows)
    if isinstance(expression, Var):
        return [row[variables.index(expression.name)] for row in rows] if expression.name in variables else values
    used = _used(expression, variables)
    for index, value in _solutions(f"({printed(_renamed(expression, used))} AS ?value)", "", used, rows):
        values[index] = None if value is None else _CANONICAL.term(value)
    return values


def holds(expression: Expression, variables: Sequence[str], rows: Sequence[Row]) -> list[bool]:
    """Whether FILTER(expression) keeps each row over ``variables``: its effective boolean value, error is False."""
    kept = [False] * len(rows)
    used = _used(expression, variables)
    for index, _ in _solutions("(1 AS ?value)", f"FILTER({printed(_renamed(expression, used))})", used, rows):
        kept[index] = True
    return kept


def _used(expression: Expression, variables: Sequence[str]) -> dict[str, int]:
    """The position in a row of each variable that the expression reads; -1 where rows do not have it."""
    places = {name: position for position, name in enumerate(variables)}
    return {name: places.get(name, -1) for name in sorted(var.name for var in expression_variables(expression))}


def _renamed(expression: Expression, used: Mapping[str, int]) -> Expression:
    """The expression with its variables under names that no query text could clash with or reject."""
    match expression:
        case Var(name=name):
            return Var(f"v{list(used).index(name)}")
        case Call(operator=operator, arguments=arguments):
            return Call(operator, tuple(_renamed(argument, used) for argument in arguments))
        case _:
            return expression


def _solutions(
    select: str, condition: str, used: Mapping[str, int], rows: Sequence[Row]
) -> Iterator[tuple[int, ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None]]:
    places = [(f"v{index}", position) for index, position in enumerate(used.values()) if position >= 0]
    store = ox.Store()
    store.extend(ox.parse("\n".join(_triples(rows, places)), format=ox.RdfFormat.N_TRIPLES))
    bound = "".join(f"OPTIONAL {{ ?row <urn:streamgauge:{name}> ?{name} }} " for name, _ in places)
    result = store.query(f"SELECT ?index {select} WHERE {{ ?row {_ROW} ?index . {bound}{condition} }}")
    assert isinstance(result, ox.QuerySolutions)
    for solution in result:
        index = solution[0]
        assert isinstance(index, ox.Literal)
        yield int(index.value), solution[1]


def _triples(rows: Sequence[Row], places: Sequence[tuple[str, int]]) -> Iterator[str]:
    for index, row in enumerate(rows):
        yield f'<urn:streamgauge:row:{index}> {_ROW} "{index}"{_INTEGER} .'
        for name, position in places:
            if row[position] is not None:
                yield f"<urn:streamgauge:row:{index}> <urn:streamgauge:{name}> {row[position]} ."
