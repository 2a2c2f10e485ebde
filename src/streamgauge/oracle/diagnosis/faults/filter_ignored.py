"""A FILTER or HAVING condition is not applied."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Seen
from streamgauge.oracle.diagnosis.sides import rewritten
from streamgauge.query.printer import expression
from streamgauge.query.traversal import conjuncts, every_pattern


def proposals(seen: Seen) -> Iterator[Fault]:
    """Each condition ignored, and all of them."""
    filters = [pattern for pattern in every_pattern(seen.case.query.form.pattern) if isinstance(pattern, al.Filter)]
    # Conjunct by conjunct, as engines lose one comparison of a FILTER more often than all of it.
    conditions = tuple(dict.fromkeys(conjunct for pattern in filters for conjunct in conjuncts(pattern.condition)))
    for condition in conditions:
        text = expression(condition)
        yield _ignored(f"condition ignored: {text}", f"The condition {text} is not applied.", (condition,))
    if len(conditions) > 1:
        yield _ignored("all conditions ignored", "No FILTER or HAVING condition is applied.", conditions)


def _ignored(name: str, sentence: str, conditions: tuple[al.Expression, ...]) -> Fault:
    return Fault(
        Part(name, sentence),
        partial(rewritten, change=partial(_without, conditions=conditions)),
        family="condition",
    )


def _without(pattern: al.Pattern, conditions: tuple[al.Expression, ...]) -> al.Pattern:
    if not isinstance(pattern, al.Filter):
        return pattern
    kept = [conjunct for conjunct in conjuncts(pattern.condition) if conjunct not in conditions]
    inner = pattern.pattern
    for condition in kept:
        inner = al.Filter(condition, inner)
    return inner
