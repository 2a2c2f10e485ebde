"""MINUS removes no solutions, or one branch of UNION is not evaluated."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Seen
from streamgauge.oracle.diagnosis.sides import rewritten
from streamgauge.query.traversal import every_pattern


def proposals(seen: Seen) -> Iterator[Fault]:
    """Faults for queries with MINUS and UNION; NOT EXISTS is a condition of ``filter_ignored``."""
    operators = {type(pattern) for pattern in every_pattern(seen.case.query.form.pattern)}
    if al.Minus in operators:
        yield Fault(Part("MINUS ignored", "MINUS takes nothing away."), partial(rewritten, change=_kept))
    if al.Union in operators:
        for side in ("left", "right"):
            part = Part(f"UNION: {side} branch lost", f"Solutions of the {side} branch of UNION are lost.")
            yield Fault(part, partial(rewritten, change=partial(_other, side=side)), family="union")


def _kept(pattern: al.Pattern) -> al.Pattern:
    return pattern.left if isinstance(pattern, al.Minus) else pattern


def _other(pattern: al.Pattern, side: str) -> al.Pattern:
    if not isinstance(pattern, al.Union):
        return pattern
    return pattern.right if side == "left" else pattern.left
