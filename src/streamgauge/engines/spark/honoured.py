"""The fields and values of a semantics that Spark honours: in micro-batches, and in real-time mode."""

from typing import Final

from streamgauge.model.semantics import Borders, Changes, Clock, Counting, Due, Report, Scope, Tick
from streamgauge.semantics.honoured import SHARED

MICRO_BATCHES: Final = SHARED | {
    "report": (Report.WINDOW_CLOSE, Report.NON_EMPTY, Report.PERIODIC),
    "due": (Due.ALL,),
    "clock": (Clock.APPLICATION,),
    "content": (Counting.SET,),
}

REAL_TIME: Final = SHARED | {
    "report": (Report.CONTENT_CHANGE,),
    "tick": (Tick.ELEMENT,),
    "borders": (Borders.CLOSED_OPEN,),
    "scope": (Scope.SLIDES,),
    "partial_head": (True,),
    "changes": (Changes.ARRIVALS,),
    "lateness": (None,),
    "content": (Counting.UPDATES,),
    "since": (None,),
}
