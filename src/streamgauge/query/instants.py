"""``NOW()`` as plain SPARQL: a triple beside the contents states the instant of the report.

A worked example: ``FILTER(?t > NOW())`` becomes ``FILTER(?t > ?.now0)`` over what was below it, joined with
``GRAPH <urn:streamgauge:stamps?now> { <urn:streamgauge:now> <urn:streamgauge:time> ?.now0 }``, a graph of one triple.
Source: SPARQL 1.1, 17.4.5.1: all calls in one execution return the same value; here an execution is a report.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from streamgauge.formats.instants import date_time
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, Triple
from streamgauge.query.graphs import STAMPS
from streamgauge.query.traversal import (
    every_expression,
    every_pattern,
    expressions,
    patterns_replaced,
    with_pattern,
    with_value,
)

NOW: Final = "NOW"
NOW_GRAPH: Final[Term] = f"<{STAMPS}?now>"
_SUBJECT, _PREDICATE = "<urn:streamgauge:now>", "<urn:streamgauge:time>"


def now_fact(instant: int) -> Triple:
    """The single triple of ``NOW_GRAPH`` at a report's instant (ms)."""
    return _SUBJECT, _PREDICATE, date_time(instant)


def uses_now(form: al.QueryForm) -> bool:
    """Whether the query calls NOW() anywhere."""
    return any(any(map(calls_now, expressions(pattern))) for pattern in every_pattern(form.pattern))


def with_instant(form: al.QueryForm) -> al.QueryForm:
    """The form with NOW() replaced by variables that ``NOW_GRAPH`` binds; the same object if it is not called.

    ``GRAPH ?g`` must not range over ``NOW_GRAPH``: apply ``graphs.spread`` to the result.
    """
    return with_pattern(form, _NowRewriter().pattern(form.pattern)) if uses_now(form) else form


def global_group(pattern: al.Pattern) -> al.Group | None:
    """The aggregation without GROUP BY that produces a query's single row, else ``None``."""
    while inner := _inside(pattern):
        pattern = inner
    return pattern if isinstance(pattern, al.Group) and not pattern.keys else None


_SHELLS: Final = al.Project | al.Extend | al.Filter | al.Distinct | al.Reduced | al.OrderBy | al.Slice


def _inside(pattern: al.Pattern) -> al.Pattern | None:
    """The pattern below an operator that keeps the single row, such as the join with ``NOW_GRAPH``."""
    if isinstance(pattern, _SHELLS):
        return pattern.pattern
    if isinstance(pattern, al.Join):
        # Only this join keeps the row: any other may multiply or remove it.
        if _is_fact(pattern.right):
            return pattern.left
        return pattern.right if _is_fact(pattern.left) else None
    return None


def _is_fact(pattern: al.Pattern) -> bool:
    return isinstance(pattern, al.Graph) and pattern.name == NOW_GRAPH


@dataclass(slots=True)
class _NowRewriter:
    """Rewrites one form with a new variable per operator: MINUS would compare a shared one."""

    count: int = field(default=0)

    def pattern(self, pattern: al.Pattern) -> al.Pattern:
        """The pattern, in which each operator whose own expressions call NOW() is over a join with ``NOW_GRAPH``."""
        result = patterns_replaced(pattern, self.pattern)
        if not any(map(calls_now, expressions(result))):
            return result
        variable = al.Var(f".now{self.count}")
        self.count += 1
        # The condition of an OPTIONAL sees both sides; joined on the left, the fact's variable would be part of every
        # solution.
        below = "right" if isinstance(result, al.LeftJoin) else "pattern"
        fact = al.Graph(NOW_GRAPH, al.BGP((al.TriplePattern(_SUBJECT, _PREDICATE, variable),)))
        joined: al.Pattern = replace(cast(Any, result), **{below: al.Join(getattr(result, below), fact)})
        return with_value(joined, al.Call(NOW, ()), variable)


def calls_now(tree: al.Expression) -> bool:
    """Whether an expression calls NOW() outside of the patterns of its EXISTS."""
    return any(map(_is_now, every_expression(tree)))


def _is_now(part: al.Expression) -> bool:
    return isinstance(part, al.Call) and part.operator.upper() == NOW and not part.arguments
