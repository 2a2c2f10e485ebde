"""Changing Linked Data from Python: ``async for answer in streamgauge.fragments.watch(query, addresses)``.

``solve`` asks a basic graph pattern once, of the same sources.
"""

from streamgauge.model.algebra import Var
from streamgauge.servers.fragments.fetching.contract import SourceError
from streamgauge.servers.fragments.fetching.guarded import guarded_client
from streamgauge.servers.fragments.fetching.joins import solve
from streamgauge.servers.fragments.fetching.limits import Limits
from streamgauge.servers.fragments.fetching.sources import open_source
from streamgauge.servers.fragments.fetching.web import Web
from streamgauge.servers.fragments.quads import QuadPattern
from streamgauge.servers.fragments.streaming.asked import RefusedQueryError
from streamgauge.servers.fragments.streaming.events import Event, Failed, Fresh, Listening, Polling
from streamgauge.servers.fragments.streaming.patience import GaveUpError
from streamgauge.servers.fragments.streaming.watching import UnknownPlanError, UnpushedPlanError, watch
from streamgauge.servers.fragments.style import VOCABULARIES, Border, Label, Style

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
