"""RSP on Structured Streaming: micro-batches, event time, closed windows through ``spark``."""

from streamgauge.engines import Emit, Session
from streamgauge.engines.spark.refusal import refuse
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics

__all__ = ["EVALUATOR", "refuse", "start"]

EVALUATOR = "spark"


def start(query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
    """Begin to answer in a Spark session of this process; ValueError for what is refused."""
    from streamgauge.engines.spark.session import MicroBatches
    from streamgauge.spark.session import session

    if reason := refuse(query, semantics):
        raise ValueError(reason)
    return MicroBatches(session("local[*]", shuffle=2), query, semantics, emit)
