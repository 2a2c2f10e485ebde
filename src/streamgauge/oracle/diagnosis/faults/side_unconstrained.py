"""One side of a join does not constrain the answers, nor do conditions on it (CQELS on CSRBench's query 7)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen
from streamgauge.oracle.diagnosis.sides import Side, of_side, rewritten, sides, variables, without


def proposals(seen: Seen) -> Iterator[Fault]:
    """One fault per side of a join."""
    every = sides(seen.case.query.form)
    for side in every:
        name = of_side(side)
        sentence = f"The join side of {name} does not constrain the answers: every match of the rest is one."
        others = frozenset(var for other in every if other != side for var in variables(other))
        change = partial(_leave_out, side=side, gone=variables(side) - others)
        yield Fault(Part(f"join side {name} does not constrain", sentence), "left out side", change)


def _leave_out(case: Case, side: Side, gone: frozenset[al.Var]) -> Case:
    form = rewritten(case.query.form, partial(without, side=side), partial(_unless, gone=gone))
    return case.asking(replace(case.query, form=form))


def _unless(pattern: al.Pattern, gone: frozenset[al.Var]) -> al.Pattern:
    """A FILTER that reads what is gone does not hold back anything."""
    if isinstance(pattern, al.Filter) and al.expression_variables(pattern.condition) & gone:
        return pattern.pattern
    return pattern
