"""Changing Linked Data from Python: ``async for answer in streamgauge.fragments.watch(query, addresses)``.

``solve`` asks a basic graph pattern once, of the same sources.
"""

from streamgauge.model.algebra import Var
from streamgauge.services.fragments.fetching.contract import SourceError
from streamgauge.services.fragments.fetching.guarded import guarded_client
from streamgauge.services.fragments.fetching.joins import solve
from streamgauge.services.fragments.fetching.limits import Limits
from streamgauge.services.fragments.fetching.sources import open_source
from streamgauge.services.fragments.fetching.web import Web
from streamgauge.services.fragments.quads import QuadPattern
from streamgauge.services.fragments.streaming.asked import RefusedQueryError
from streamgauge.services.fragments.streaming.events import Event, Failed, Fresh, Listening, Polling
from streamgauge.services.fragments.streaming.patience import GaveUpError
from streamgauge.services.fragments.streaming.watching import UnknownPlanError, UnpushedPlanError, watch
from streamgauge.services.fragments.style import VOCABULARIES, Border, Label, Style

__all__ = [
    "VOCABULARIES",
    "Border",
    "Event",
    "Failed",
    "Fresh",
    "GaveUpError",
    "Label",
    "Limits",
    "Listening",
    "Polling",
    "QuadPattern",
    "RefusedQueryError",
    "SourceError",
    "Style",
    "UnknownPlanError",
    "UnpushedPlanError",
    "Var",
    "Web",
    "guarded_client",
    "open_source",
    "solve",
    "watch",
]
