"""The live engine: incremental evaluation over windows, under almost any semantics, in one process or several."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamgauge.engines import Emit, Session
from streamgauge.incremental.drivers.groups import drive_all
from streamgauge.incremental.evaluator import refuse as refuse_form
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Clock, Counting, Report, Semantics
from streamgauge.semantics.honoured import SHARED, not_honoured
from streamgauge.semantics.refusal import meaningless
from streamgauge.semantics.static_data import with_matched_static

if TYPE_CHECKING:
    from streamgauge.incremental.shards.plan import ShardingPlan

EVALUATOR = "changes"

OPTIONS = {"shards": "the number of processes over which queries are distributed if their answers permit it"}


HONOURED: Final = SHARED | {
    "report": (Report.WINDOW_CLOSE, Report.CONTENT_CHANGE, Report.NON_EMPTY, Report.PERIODIC),
    "clock": (Clock.APPLICATION,),
    "content": (Counting.SET,),
}
_SENTENCES: Final[dict[object, str]] = {
    Report.EXPIRATION: "reports at expirations: live reports at arrivals and clock ticks, use the engine fragments",
    Counting.BAG: "a bag as window content (content = bag): live keeps graphs, which are sets",
    Counting.UPDATES: "answers per message (content = updates): live keeps windows, use `stream --latency real-time`",
}


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why the query cannot be answered under the semantics; ``None`` if it can."""
    own_clock = f"{semantics.name} timestamps elements by {semantics.clock} time, but live has no clock of its own"
    sentences = _SENTENCES | {"clock": own_clock}
    if reason := meaningless(query, semantics) or not_honoured(semantics, HONOURED, "live", sentences):
        return reason
    r2s = query.r2s or semantics.r2s
    if r2s not in semantics.r2s_able:
        return f"{semantics.name} has no {r2s}: it has {', '.join(sorted(semantics.r2s_able))}"
    return refuse_form(
        query.form, [f"<{window.name}>" for window in query.windows if window.name is not None], ranked=True
    )


def start(query: ContinuousQuery, semantics: Semantics, emit: Emit, shards: int = 1) -> Session:
    """Start a session; under ``Origin.SEARCH`` it uses the semantics' own t0. ValueError for a refused query."""
    return start_all([(query, semantics, emit)], shards)


def start_all(queries: Sequence[tuple[ContinuousQuery, Semantics, Emit]], shards: int = 1) -> Session:
    """Start a session of several queries over the same streams, which share state; ValueError names a refused one.

    With ``shards`` they are distributed over processes if ``sharding`` permits; then answers are emitted by other
    threads, and ``close`` waits for the last one.
    """
    for number, (query, semantics, _) in enumerate(queries):
        if reason := refuse(query, semantics):
            raise ValueError(reason if len(queries) == 1 else f"query {query.name or number + 1}: {reason}")
    if (
        shards != 1
        and queries
        and (planned := _plan([registration[:2] for registration in queries], shards)).shards > 1
    ):
        from streamgauge.incremental.shards.session import ShardedSession

        return ShardedSession(
            [(with_matched_static(query, semantics), semantics, emit) for query, semantics, emit in queries], planned
        )
    return drive_all([(with_matched_static(query, semantics), semantics, emit) for query, semantics, emit in queries])


def sharding(queries: Sequence[tuple[ContinuousQuery, Semantics]], shards: int) -> str:
    """How queries are distributed over ``shards`` processes, as a sentence, with the reason if it is one process."""
    return _plan(queries, shards).sentence


def _plan(queries: Sequence[tuple[ContinuousQuery, Semantics]], shards: int) -> "ShardingPlan":
    from streamgauge.incremental.shards.plan import plan

    return plan(queries, shards)
