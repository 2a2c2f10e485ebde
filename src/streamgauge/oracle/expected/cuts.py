"""LIMIT and OFFSET of a whole query, applied in the driver, because a job of Spark refuses ambiguous cuts.

Spark evaluates the query without its LIMIT, with the keys of ORDER BY as further columns. Its rows are sorted by
``order_key``, so that one of the legal answers is chosen deterministically; ``oracle.worlds`` knows the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Row
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import variable_names
from streamgauge.sparql.comparison import Descending, order_key


@dataclass(frozen=True, slots=True)
class UncutQuery:
    """A SELECT without its LIMIT: ``query`` has one more column for each of its ``keys`` that is not a column."""

    query: ContinuousQuery
    cut: a.Slice
    width: int
    keys: tuple[tuple[int, bool], ...]

    def kept(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """The rows that LIMIT and OFFSET keep, in the columns of the query that was cut."""

        def place(row: Row) -> list[object]:
            return [Descending(order_key(row[at])) if down else order_key(row[at]) for at, down in self.keys]

        end = None if self.cut.limit is None else self.cut.offset + self.cut.limit
        return tuple(row[: self.width] for row in sorted(rows, key=place)[self.cut.offset : end])


def uncut(query: ContinuousQuery) -> UncutQuery | None:
    """The query without LIMIT and OFFSET; ``None`` without one, or if DISTINCT merges rows of different keys."""
    form = query.form
    if not isinstance(form, a.Select) or not isinstance(form.pattern, a.Slice):
        return None
    below, distinct = form.pattern.pattern, False
    while isinstance(below, a.Distinct | a.Reduced):
        distinct, below = distinct or isinstance(below, a.Distinct), below.pattern
    assert isinstance(below, a.Project)
    columns, below = below.variables, below.pattern
    keys = below.keys if isinstance(below, a.OrderBy) else ()
    below = below.pattern if isinstance(below, a.OrderBy) else below
    taken = variable_names(form)
    fresh = (a.Var(name) for number in count() if (name := f"key{number}") not in taken)
    named = [key if isinstance(key, a.Var) and not key.name.startswith(".") else next(fresh) for key, _ in keys]
    computed = [pair for pair in zip(named, keys, strict=True) if pair[0] != pair[1][0]]
    extended = reduce(lambda inner, pair: a.Extend(inner, pair[0], pair[1][0]), computed, below)
    variables = tuple(dict.fromkeys((*columns, *named)))
    # With a key as a further column, rows that differ in it only would not be merged.
    if distinct and len(variables) > len(columns):
        return None
    plain: a.Pattern = a.Project(extended, variables)
    bare = a.Select(a.Distinct(plain) if distinct else plain, tuple(variable.name for variable in variables))
    places = tuple((variables.index(name), down) for name, (_, down) in zip(named, keys, strict=True))
    return UncutQuery(replace(query, form=bare, sparql=sparql(bare)), form.pattern, len(form.variables), places)
