"""One side of a join keeps everything since t0, the other its window (CQELS on CSRBench's query 6)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import KEPT, Case, Fault, Seen
from streamgauge.oracle.diagnosis.sides import Side, of_side, rewritten, sides, without


def proposals(seen: Seen) -> Iterator[Fault]:
    """A fault for each side of a join."""
    for side in sides(seen.case.query.form):
        name = of_side(side)
        sentence = f"The join side of {name} is never purged: what it matched once stays."
        yield Fault(Part(f"join side {name} never purged", sentence), partial(_keep, side=side))


def _keep(case: Case, side: Side) -> Case:
    return replace(rewritten(case, partial(_split, side=side)), keeps=replace(case.query.windows[0], name=KEPT))


def _split(pattern: al.Pattern, side: Side) -> al.Pattern:
    if not isinstance(pattern, al.BGP):
        return pattern
    inside = tuple(triple for triple in pattern.patterns if triple in side)
    if not inside:
        return pattern
    kept, rest = al.Graph(f"<{KEPT}>", al.BGP(inside)), without(pattern, side)
    return al.Join(kept, rest) if rest.patterns else kept
