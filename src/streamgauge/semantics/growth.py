"""Answers that need not wait for their tick to be complete, because no later element can retract them."""

from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Changes, Counting, Grain, Report, Semantics, Tick
from streamgauge.query.stamps import reads_time
from streamgauge.query.traversal import every_part, every_pattern

_GROWING: Final = (al.BGP, al.Join, al.Union, al.Graph, al.Values, al.Filter, al.Extend, al.Project, al.Distinct)
"""Monotone operators: more triples never remove a solution."""


def grows(form: al.QueryForm) -> bool:
    """Whether a SELECT is monotone: more triples never remove a row."""
    patterns = list(every_pattern(form.pattern))
    trees = (part for pattern in patterns for part in every_part(pattern))
    growing = all(isinstance(pattern, _GROWING) for pattern in patterns)
    # A positive EXISTS would be monotone, but its negation is an operator above it.
    return isinstance(form, al.Select) and growing and not any(isinstance(part, al.Exists) for part in trees)


def ticks_by_time(semantics: Semantics) -> bool:
    """Whether content changes are reported once per time, when all elements of that time have arrived."""
    return semantics.tick is Tick.BATCH and Report.CONTENT_CHANGE in semantics.report


def sent_at_once(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether new rows are sent before all elements of their time have arrived, since they cannot be retracted.

    A row that was evicted at that time and matches again is not new (``RelationToStream``).
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
    """A sentence for users if answers wait until time has passed, with the remedy; else an empty string."""
    if not ticks_by_time(semantics) or sent_at_once(query, semantics):
        return ""
    return (
        f"{semantics.name} reports once all elements of a time have come, and more may come until a later one does: "
        "answers wait for the next element, or with --wall (advance='wall') for the clock"
    )
