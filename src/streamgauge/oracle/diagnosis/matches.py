"""The matches of a query's WHERE part, before aggregation and projection."""

from functools import lru_cache

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.query.traversal import every_pattern


@lru_cache(maxsize=256)
def where(form: al.QueryForm) -> al.Pattern:
    """The pattern below projection, modifiers, expressions of SELECT and aggregation."""
    pattern = form.pattern
    while isinstance(pattern, al.Project | al.Extend | al.Distinct | al.Reduced | al.OrderBy | al.Slice) or _having(
        pattern
    ):
        pattern = pattern.pattern  # type: ignore[union-attr]
    return pattern.pattern if isinstance(pattern, al.Group) else pattern


def _having(pattern: al.Pattern) -> bool:
    if not isinstance(pattern, al.Filter):
        return False
    inner = pattern.pattern
    while isinstance(inner, al.Filter | al.Extend):
        inner = inner.pattern
    return isinstance(inner, al.Group)


def matches_query(query: ContinuousQuery) -> ContinuousQuery:
    """The query for all variables of the WHERE part, over the same windows."""
    pattern = where(query.form)
    variables = tuple(var for var in al.pattern_variables(pattern) if not var.name.startswith("_:"))
    form = al.Select(al.Project(pattern, variables), tuple(var.name for var in variables))
    return ContinuousQuery(form, query.windows, None, query.static)


@lru_cache(maxsize=256)
def aggregates(form: al.QueryForm) -> bool:
    """Whether the query aggregates."""
    return any(isinstance(pattern, al.Group) for pattern in every_pattern(form.pattern))
