"""One side of a join keeps everything since t0, the other its window (CQELS on CSRBench's query 6)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.query import StreamWindow
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import KEPT, Case, Fault, Seen
from streamgauge.oracle.diagnosis.sides import Side, of_side, rewritten, sides, without


def proposals(seen: Seen) -> Iterator[Fault]:
    """One fault per side of a join."""
    for side in sides(seen.case.query.form):
        name = of_side(side)
        sentence = f"The join side of {name} is never purged: what it matched once stays."
        yield Fault(Part(f"join side {name} never purged", sentence), "kept side", partial(_keep, side=side))


def _keep(case: Case, side: Side) -> Case:
    form = rewritten(case.query.form, partial(_split, side=side))
    first = case.query.windows[0]
    return replace(case.asking(replace(case.query, form=form)), keeps=StreamWindow(first.stream, first.window, KEPT))


def _split(bgp: al.BGP, side: Side) -> al.Pattern:
    inside = tuple(pattern for pattern in bgp.patterns if pattern in side)
    if not inside:
        return bgp
    kept, rest = al.Graph(f"<{KEPT}>", al.BGP(inside)), without(bgp, side)
    return al.Join(kept, rest) if rest.patterns else kept
