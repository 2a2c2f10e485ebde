"""Which answers go out at once where all elements of a time are one tick: those that no later element takes back."""

from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Changes, Counting, Grain, Report, Semantics, Tick
from streamgauge.query.stamps import reads_time
from streamgauge.query.traversal import every_expression, every_pattern, expressions

_GROWING: Final = (al.BGP, al.Join, al.Union, al.Graph, al.Values, al.Filter, al.Extend, al.Project, al.Distinct)
"""Patterns whose solutions only become more as triples come."""


def grows(form: al.QueryForm) -> bool:
    """Whether triples that come take no row of a query away."""
    patterns = list(every_pattern(form.pattern))
    trees = (part for pattern in patterns for tree in expressions(pattern) for part in every_expression(tree))
    growing = all(isinstance(pattern, _GROWING) for pattern in patterns)
    return isinstance(form, al.Select) and growing and not any(isinstance(part, al.Exists) for part in trees)


def ticks_by_time(semantics: Semantics) -> bool:
    """Whether a change of the content is reported once all elements of a time have come."""
    return semantics.tick is Tick.BATCH and Report.CONTENT_CHANGE in semantics.report


def sent_at_once(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether new rows go out before all elements of their time have come: each row is an answer, and none goes again.

    Rows that left at that time and come again are not new (``RelationToStream``).
    """
    return (
        ticks_by_time(semantics)
        and semantics.report - {Report.NON_EMPTY} == {Report.CONTENT_CHANGE}
        and (query.r2s or semantics.r2s) is R2S.ISTREAM
        and (semantics.grain, semantics.changes, semantics.content) == (Grain.ROW, Changes.BOTH, Counting.SET)
        and not semantics.notify_empty
        and semantics.lateness is None
        and all(window.window.kind == "time" for window in query.windows)
        and grows(query.form)
        and not reads_time(query.form)
    )


def waits_for_time(query: ContinuousQuery, semantics: Semantics) -> str:
    """The sentence that says that answers wait until time has passed theirs, and what to do; else nothing."""
    if not ticks_by_time(semantics) or sent_at_once(query, semantics):
        return ""
    return (
        f"{semantics.name} reports once all elements of a time have come, and more may come until a later one does: "
        "answers wait for the next element, or with --wall (advance='wall') for the clock"
    )
