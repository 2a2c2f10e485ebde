"""Changing Linked Data from Python: ``async for answer in streamgauge.fragments.watch(query, addresses)``."""

from streamgauge.services.fragments.fetching.web import Web
from streamgauge.services.fragments.streaming.asked import RefusedQueryError
from streamgauge.services.fragments.streaming.events import Event, Failed, Fresh
from streamgauge.services.fragments.streaming.watching import UnknownPlanError, watch
from streamgauge.services.fragments.style import VOCABULARIES, Border, Label, Style

__all__ = [
    "VOCABULARIES",
    "Border",
    "Event",
    "Failed",
    "Fresh",
    "Label",
    "RefusedQueryError",
    "Style",
    "UnknownPlanError",
    "Web",
    "watch",
]
