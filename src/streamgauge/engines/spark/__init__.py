"""RSP on Structured Streaming: micro-batches over event time that evaluate closed windows through ``spark``.

Micro-batches see instants of a clock, never single arrivals; queries that depend on arrivals are refused.
"""

from typing import Final

from streamgauge.engines import Emit, Session
from streamgauge.engines.spark.honoured import MICRO_BATCHES
from streamgauge.model.algebra import Select
from streamgauge.model.extras import require
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Counting, Due, EmptyAggregate, Report, Semantics
from streamgauge.semantics.honoured import not_honoured
from streamgauge.semantics.refusal import meaningless

__all__ = ["EVALUATOR", "refuse", "start"]

EVALUATOR = "spark"


def start(query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
    """Start a session in a Spark session of this process; ValueError for a refused query."""
    require("spark")
    # Here, so that listing engines does not need PySpark.
    from streamgauge.engines.spark.micro_batches import MicroBatches
    from streamgauge.spark.session import session

    if reason := refuse(query, semantics):
        raise ValueError(reason)
    return MicroBatches(session("local[*]", shuffle=2), query, semantics, emit)


_SENTENCES: Final[dict[object, str]] = {
    Counting.UPDATES: "answers per message (content = updates): micro-batches answer when windows close, use "
    "`stream --latency real-time`",
    Report.CONTENT_CHANGE: "reports at content changes: spark answers at instants of a clock (window close, periodic), "
    "use live",
    Report.EXPIRATION: "reports at expirations: spark answers at instants of a clock, use the engine fragments",
    Due.LAST: "only the last of several closing windows (due = last): which close together depends on single arrivals",
    Counting.BAG: "a bag as window content (content = bag): spark keeps graphs, which are sets",
}


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why the query cannot be answered under the semantics; ``None`` if it can."""
    own_clock = f"{semantics.name} timestamps elements by {semantics.clock} time, but spark has no clock of its own"
    sentences = _SENTENCES | {"clock": own_clock}
    if reason := meaningless(query, semantics) or not_honoured(semantics, MICRO_BATCHES, "spark", sentences):
        return reason
    if any(window.window.kind == "count" for window in query.windows):
        return "a count-based window: spark closes windows by time, use a time-based or landmark window"
    r2s = query.r2s or semantics.r2s
    if r2s not in semantics.r2s_able:
        return f"{semantics.name} has no {r2s}: it has {', '.join(sorted(semantics.r2s_able))}"
    if r2s is R2S.CHANGES:
        return f"{r2s} in one answer: spark sends one bag, use live"
    if semantics.empty_aggregate is not EmptyAggregate.SPARQL and not isinstance(query.form, Select):
        return "an empty_aggregate other than SPARQL's in ASK or CONSTRUCT: use SELECT"
    return _refuse_form(query)


def _refuse_form(query: ContinuousQuery) -> str | None:
    from streamgauge.query.graphs import spread
    from streamgauge.query.stamps import stamped
    from streamgauge.spark.exists import refuse as refuse_form

    names = tuple(f"<{window.name}>" for window in query.windows if window.name is not None)
    try:
        return refuse_form(spread(stamped(query.form), names))
    except ValueError as error:
        return str(error)
