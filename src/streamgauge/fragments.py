"""Changing Linked Data from Python: ``async for answer in streamgauge.fragments.watch(query, addresses)``.

``solve`` asks a basic graph pattern once, of the same sources.
"""

from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source, solve
from streamgauge.servers.fragments.client.transport import ClientLimits, guarded_client
from streamgauge.servers.fragments.labels import VOCABULARIES, Border, Label, Style
from streamgauge.servers.fragments.live_queries import RefusedQueryError
from streamgauge.servers.fragments.live_queries.poll_loop import Event, Failed, Fresh, GaveUpError, Listening, Polling
from streamgauge.servers.fragments.live_queries.watch import UnknownPlanError, UnpushedPlanError, watch

__all__ = [
    "VOCABULARIES",
    "Border",
    "CachingHttpClient",
    "ClientLimits",
    "Event",
    "Failed",
    "Fresh",
    "GaveUpError",
    "Label",
    "LinkedDataError",
    "Listening",
    "Polling",
    "QuadPattern",
    "RefusedQueryError",
    "Style",
    "UnknownPlanError",
    "UnpushedPlanError",
    "Var",
    "guarded_client",
    "open_source",
    "solve",
    "watch",
]
