"""SPARQL expressions over batches of rows, exactly, by pyoxigraph: one query for a whole batch."""

from collections.abc import Iterator, Sequence

import pyoxigraph as ox

from streamgauge.model.algebra import Expression, Var, expression_variables
from streamgauge.model.terms import Row, Term
from streamgauge.query.printer import expression as print_expression
from streamgauge.wire.canonical import Canonical

_ROW = "<urn:streamgauge:row>"
_INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
_CANONICAL = Canonical()


def evaluate(expression: Expression, variables: Sequence[str], rows: Sequence[Row]) -> list[Term | None]:
    """The value of an expression (no EXISTS) for each row over ``variables``; ``None`` for an error or unbound."""
    values: list[Term | None] = [None] * len(rows)
    if isinstance(expression, Var):
        return [row[variables.index(expression.name)] for row in rows] if expression.name in variables else values
    result = _fresh("value", variables)
    select = f"({print_expression(expression)} AS ?{result})"
    for index, value in _solutions(select, "", expression, variables, rows):
        values[index] = None if value is None else _CANONICAL.term(value)
    return values


def holds(expression: Expression, variables: Sequence[str], rows: Sequence[Row]) -> list[bool]:
    """Whether FILTER(expression) keeps each row over ``variables``: its effective boolean value, error is False."""
    kept = [False] * len(rows)
    for index, _ in _solutions("", f"FILTER({print_expression(expression)})", expression, variables, rows):
        kept[index] = True
    return kept


def _solutions(
    select: str, condition: str, expression: Expression, variables: Sequence[str], rows: Sequence[Row]
) -> Iterator[tuple[int, ox.Literal | None]]:
    needed = {var.name for var in expression_variables(expression)}
    used = [(position, name) for position, name in enumerate(variables) if name in needed]
    store = ox.Store()
    store.extend(ox.parse("\n".join(_triples(rows, used)), format=ox.RdfFormat.N_TRIPLES))
    row, index = _fresh("row", variables), _fresh("index", variables)
    bound = "".join(f"OPTIONAL {{ ?{row} <urn:streamgauge:{position}> ?{name} }} " for position, name in used)
    query = f"SELECT ?{index} {select} WHERE {{ ?{row} {_ROW} ?{index} . {bound}{condition} }}"
    found = store.query(query)
    assert isinstance(found, ox.QuerySolutions)
    for solution in found:
        yield int(solution[0].value), solution[1] if select else None


def _triples(rows: Sequence[Row], used: Sequence[tuple[int, str]]) -> Iterator[str]:
    for index, row in enumerate(rows):
        yield f'<urn:streamgauge:row:{index}> {_ROW} "{index}"{_INTEGER} .'
        for position, _ in used:
            if row[position] is not None:
                yield f"<urn:streamgauge:row:{index}> <urn:streamgauge:{position}> {row[position]} ."


def _fresh(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
