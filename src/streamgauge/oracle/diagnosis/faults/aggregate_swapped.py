"""One aggregate of the query is computed as another one (MIN for AVG), with DISTINCT, or without it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen
from streamgauge.oracle.diagnosis.sides import rewritten
from streamgauge.query.traversal import every_pattern

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")


def proposals(seen: Seen) -> Iterator[Fault]:
    """Every other function for each aggregate, and the same one with DISTINCT or without."""
    groups = [pattern for pattern in every_pattern(seen.case.query.form.pattern) if isinstance(pattern, al.Group)]
    for aggregate in dict.fromkeys(value for group in groups for _, value in group.aggregates):
        for other in _others(aggregate):
            text, computed = _text(aggregate), _text(other)
            part = Part(f"{computed} for {text}", f"The engine computes {computed} where the query asks for {text}.")
            yield Fault(part, partial(_change, aggregate=aggregate, other=other))


def _others(aggregate: al.Aggregate) -> Iterator[al.Aggregate]:
    # SAMPLE and GROUP_CONCAT have several legal values; COUNT(*) has no argument for another function.
    if aggregate.function not in FUNCTIONS or aggregate.argument is None:
        return
    yield replace(aggregate, distinct=not aggregate.distinct)
    for function in FUNCTIONS:
        if function != aggregate.function:
            yield replace(aggregate, function=function)


def _text(aggregate: al.Aggregate) -> str:
    argument = "*" if aggregate.argument is None else _short(aggregate.argument)
    return f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{argument})"


def _short(argument: al.Expression) -> str:
    return f"?{argument.name}" if isinstance(argument, al.Var) else "..."


def _change(case: Case, aggregate: al.Aggregate, other: al.Aggregate) -> Case:
    def swapped(pattern: al.Pattern) -> al.Pattern:
        if not isinstance(pattern, al.Group):
            return pattern
        values = tuple((var, other if value == aggregate else value) for var, value in pattern.aggregates)
        return replace(pattern, aggregates=values)

    return rewritten(case, swapped)
