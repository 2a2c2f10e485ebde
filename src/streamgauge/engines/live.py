"""The live engine: incremental evaluation over windows, under any Semantics value, in this process or several."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamgauge.engines import Emit, Session
from streamgauge.incremental.drivers.window import drive_all
from streamgauge.incremental.evaluator import refuse as refuse_form
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Clock, Counting, Report, Semantics
from streamgauge.semantics.refusal import meaningless

if TYPE_CHECKING:
    from streamgauge.incremental.shards.plan import ShardingPlan

EVALUATOR = "changes"

OPTIONS = {"shards": "the number of processes over which queries are spread where their answers allow it"}


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


def start(query: ContinuousQuery, semantics: Semantics, emit: Emit, shards: int = 1) -> Session:
    """Begin to answer; t0 is the semantics' own where it is searched for others. ValueError for what is refused."""
    return start_all([(query, semantics, emit)], shards)


def start_all(asked: Sequence[tuple[ContinuousQuery, Semantics, Emit]], shards: int = 1) -> Session:
    """Begin to answer several queries over the same streams; they share what they can. ValueError names the refused.

    With ``shards`` they are spread over so many processes where ``sharding`` says so; then answers are emitted by
    threads of their own, and ``close`` waits for the last one.
    """
    for number, (query, semantics, _) in enumerate(asked):
        if reason := refuse(query, semantics):
            raise ValueError(reason if len(asked) == 1 else f"query {query.name or number + 1}: {reason}")
    if shards != 1 and asked and (planned := _plan([each[:2] for each in asked], shards)).shards > 1:
        from streamgauge.incremental.shards.session import ShardedSession

        return ShardedSession(asked, planned)
    return drive_all(asked)


def sharding(asked: Sequence[tuple[ContinuousQuery, Semantics]], shards: int) -> str:
    """How queries are spread over so many processes: a sentence, with the reason where it is one process."""
    return _plan(asked, shards).sentence


def _plan(asked: Sequence[tuple[ContinuousQuery, Semantics]], shards: int) -> "ShardingPlan":
    from streamgauge.incremental.shards.plan import plan

    return plan(asked, shards)
