"""The live engine: in this process, incremental, one time-based window, under any Semantics value that it accepts."""

from streamgauge.compute.changes import refuse as refuse_form
from streamgauge.compute.drivers import WindowDriver
from streamgauge.engines import Emit, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Clock, Counting, Semantics


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """The sentence why ``live`` cannot answer the query under the semantics, ``None`` when it can."""
    r2s = query.r2s or semantics.r2s
    if len(query.windows) != 1:
        return f"live answers over one window, the query has {len(query.windows)}: name one stream"
    if r2s not in semantics.r2s_able:
        able = ", ".join(sorted(semantics.r2s_able))
        return f"{semantics.name} has no {r2s} (it has {able}): change the query's keyword or the semantics"
    if semantics.content is Counting.BAG:
        return f"live keeps the content of a window as a set, {semantics.name} as a bag: use content = set"
    if semantics.clock is Clock.ARRIVAL:
        return f"live has no clock of its own, {semantics.name} windows by arrival: use the application clock"
    return refuse_form(query.form)


def start(query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
    """Register the query; ValueError with the sentence of ``refuse`` when it cannot be answered."""
    if reason := refuse(query, semantics):
        raise ValueError(reason)
    return WindowDriver(query, semantics, emit)
