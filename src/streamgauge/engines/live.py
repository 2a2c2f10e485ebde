"""The live engine: incremental evaluation over windows, in process, under any Semantics value."""

from collections.abc import Sequence

from streamgauge.engines import Emit, Session
from streamgauge.incremental.drivers.window import drive_all
from streamgauge.incremental.evaluator import refuse as refuse_form
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Clock, Counting, Report, Semantics
from streamgauge.semantics.refusal import meaningless

EVALUATOR = "changes"


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """``None``, or the sentence why this query cannot be answered under the semantics."""
    if reason := meaningless(query, semantics):
        return reason
    if Report.EXPIRATION in semantics.report:
        return "reports at expirations: live has arrivals and clocks, use the engine fragments"
    if semantics.content is Counting.BAG:
        return "a content that is a bag (content = bag): live keeps graphs, which are sets"
    if semantics.content is Counting.UPDATES:
        return "updates (content = updates): live keeps graphs, use `stream --latency real-time`"
    if semantics.clock is not Clock.APPLICATION:
        return f"{semantics.name} stamps elements by {semantics.clock} time and live has no clock of its own"
    r2s = query.r2s or semantics.r2s
    if r2s not in semantics.r2s_able:
        return f"{semantics.name} has no {r2s}: it has {', '.join(sorted(semantics.r2s_able))}"
    return refuse_form(query.form, [f"<{each.name}>" for each in query.windows if each.name is not None], ranked=True)


def start(query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
    """Begin to answer; t0 is the semantics' own where it is searched for others. ValueError for what is refused."""
    return start_all([(query, semantics, emit)])


def start_all(asked: Sequence[tuple[ContinuousQuery, Semantics, Emit]]) -> Session:
    """Begin to answer several queries over the same streams; they share what they can. ValueError names the refused."""
    for number, (query, semantics, _) in enumerate(asked):
        if reason := refuse(query, semantics):
            raise ValueError(reason if len(asked) == 1 else f"query {query.name or number + 1}: {reason}")
    return drive_all(asked)
