"""One side of a join does not constrain the answers, nor do conditions on it (CQELS on CSRBench's query 7)."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Seen
from streamgauge.oracle.diagnosis.sides import Side, of_side, rewritten, sides, variables, without


def proposals(seen: Seen) -> Iterator[Fault]:
    """A fault for each side of a join."""
    every = sides(seen.case.query.form)
    for side in every:
        name = of_side(side)
        sentence = f"The join side of {name} does not constrain the answers: every match of the rest is one."
        others = frozenset(var for other in every if other != side for var in variables(other))
        change = partial(rewritten, change=partial(_left_out, side=side, gone=variables(side) - others))
        yield Fault(Part(f"join side {name} does not constrain", sentence), change)


def _left_out(pattern: al.Pattern, side: Side, gone: frozenset[al.Var]) -> al.Pattern:
    """BGPs without the side; a FILTER on a variable that only the side binds passes everything."""
    if isinstance(pattern, al.BGP):
        return without(pattern, side)
    if isinstance(pattern, al.Filter) and al.expression_variables(pattern.condition) & gone:
        return pattern.pattern
    return pattern
