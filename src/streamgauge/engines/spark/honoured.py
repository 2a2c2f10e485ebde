"""The fields and values of a semantics that Spark honours: in micro-batches, and in real-time mode."""

from typing import Final

from streamgauge.model.semantics import (
    R2S,
    Borders,
    Changes,
    Clock,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Origin,
    Report,
    Scope,
    Tick,
)
from streamgauge.semantics.honoured import HonouredFields

MICRO_BATCHES: Final[HonouredFields] = {
    "report": (Report.WINDOW_CLOSE, Report.NON_EMPTY, Report.PERIODIC),
    "tick": (Tick.TUPLE, Tick.ELEMENT, Tick.BATCH, Tick.TIME),
    "r2s": (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES),
    "r2s_able": (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES),
    "notify_empty": (True, False),
    "origin": (Origin.FIXED, Origin.FIRST, Origin.SEARCH),
    "t0": None,
    "borders": (Borders.CLOSED_OPEN, Borders.OPEN_CLOSED, Borders.CLOSED),
    "scope": (Scope.SLIDES, Scope.RANGE),
    "partial_head": (True, False),
    "due": (Due.ALL,),
    "changes": (Changes.BOTH, Changes.ARRIVALS),
    "period": None,
    "time_unit": None,
    "lateness": None,
    "clock": (Clock.APPLICATION,),
    "content": (Counting.SET,),
    "answers": (Counting.SET, Counting.BAG),
    "grain": (Grain.REPORT, Grain.ROW),
    "empty_aggregate": (
        EmptyAggregate.SPARQL,
        EmptyAggregate.UNBOUND,
        EmptyAggregate.EMPTY_STRING,
        EmptyAggregate.NO_ROW,
    ),
    "since": None,
}

REAL_TIME: Final[HonouredFields] = {
    "report": (Report.CONTENT_CHANGE,),
    "tick": (Tick.ELEMENT,),
    "r2s": (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES),
    "r2s_able": (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES),
    "notify_empty": (True, False),
    "origin": (Origin.FIXED, Origin.FIRST, Origin.SEARCH),
    "t0": None,
    "borders": (Borders.CLOSED_OPEN,),
    "scope": (Scope.SLIDES,),
    "partial_head": (True,),
    "due": (Due.ALL, Due.LAST),
    "changes": (Changes.ARRIVALS,),
    "period": None,
    "time_unit": None,
    "lateness": (None,),
    "clock": (Clock.APPLICATION, Clock.ARRIVAL, Clock.PUT),
    "content": (Counting.UPDATES,),
    "answers": (Counting.SET, Counting.BAG),
    "grain": (Grain.REPORT, Grain.ROW),
    "empty_aggregate": (
        EmptyAggregate.SPARQL,
        EmptyAggregate.UNBOUND,
        EmptyAggregate.EMPTY_STRING,
        EmptyAggregate.NO_ROW,
    ),
    "since": (None,),
}
