"""One comparison of the query uses another operator (``>`` for ``>=``), or one ``&&`` is evaluated as ``||``."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen
from streamgauge.query.printer import expression
from streamgauge.query.traversal import (
    every_expression,
    every_pattern,
    expression_parts,
    expressions,
    parts,
    with_pattern,
)

COMPARISONS = ("<", "<=", "=", "!=", ">=", ">")
_OTHERS = {operator: tuple(other for other in COMPARISONS if other != operator) for operator in COMPARISONS}
_OTHERS |= {"&&": ("||",), "||": ("&&",)}


def proposals(seen: Seen) -> Iterator[Fault]:
    """Each other operator for each comparison in FILTER, HAVING, OPTIONAL, BIND and EXISTS."""
    patterns = every_pattern(seen.case.query.form.pattern)
    trees = (tree for pattern in patterns for tree in expressions(pattern))
    for call in dict.fromkeys(part for tree in trees for part in every_expression(tree)):
        if isinstance(call, al.Call) and len(call.arguments) == 2:
            for other in _OTHERS.get(call.operator, ()):
                yield _fault(call, other)


def _fault(call: al.Call, operator: str) -> Fault:
    other = al.Call(operator, call.arguments)
    text, evaluated = expression(call), expression(other)
    part = Part(f"{operator} for {call.operator}: {text}", f"The condition {text} is evaluated as {evaluated}.")
    return Fault(part, partial(_change, call=call, other=other), family="condition")


def _change(case: Case, call: al.Call, other: al.Call) -> Case:
    form = case.query.form
    swapped = _everywhere(form.pattern, lambda tree: other if tree == call else tree)
    return case.asking(replace(case.query, form=with_pattern(form, swapped)))


def _everywhere(pattern: al.Pattern, change: Callable[[al.Expression], al.Expression]) -> al.Pattern:
    """The pattern with all expressions replaced by ``change``, innermost first, also in EXISTS."""

    def on_pattern(inner: al.Pattern) -> al.Pattern:
        return parts(inner, on_pattern, on_expression)

    def on_expression(tree: al.Expression) -> al.Expression:
        return change(expression_parts(tree, on_pattern, on_expression))

    return on_pattern(pattern)
