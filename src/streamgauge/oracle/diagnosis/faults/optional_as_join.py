"""OPTIONAL is evaluated as a join, which loses solutions without the optional part; or it is not evaluated."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Seen
from streamgauge.oracle.diagnosis.sides import rewritten
from streamgauge.query.traversal import every_pattern


def proposals(seen: Seen) -> Iterator[Fault]:
    """Both faults, for a query with OPTIONAL."""
    if any(isinstance(pattern, al.LeftJoin) for pattern in every_pattern(seen.case.query.form.pattern)):
        joined = Part("OPTIONAL as a join", "OPTIONAL is evaluated as a join: solutions without it are lost.")
        yield Fault(joined, partial(rewritten, change=_join))
        ignored = Part("OPTIONAL ignored", "OPTIONAL is not evaluated: what it would add is always unbound.")
        yield Fault(ignored, partial(rewritten, change=_left))


def _join(pattern: al.Pattern) -> al.Pattern:
    if not isinstance(pattern, al.LeftJoin):
        return pattern
    joined = al.Join(pattern.left, pattern.right)
    # The condition of an OPTIONAL is part of the algebra's LeftJoin, so without it the join needs a filter of its own.
    return joined if pattern.condition is None else al.Filter(pattern.condition, joined)


def _left(pattern: al.Pattern) -> al.Pattern:
    return pattern.left if isinstance(pattern, al.LeftJoin) else pattern
