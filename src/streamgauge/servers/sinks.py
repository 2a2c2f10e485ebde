"""Sinks by URL: those that connect to a server (``sources``) and those that listen for clients."""

from collections.abc import Callable, Mapping
from typing import Final

from streamgauge import sources
from streamgauge.sources import Sink
from streamgauge.sources.contract import Address


def _open_event_sink(address: Address) -> Sink:
    from streamgauge.servers.event_sink import open_event_sink

    return open_event_sink(address)


LISTENING: Final[Mapping[str, Callable[[Address], Sink]]] = {
    "sse+http": _open_event_sink,
    "sse+https": _open_event_sink,
}
"""Schemes whose sinks listen; their servers are imported when one is opened."""


def open_sink(url: str) -> Sink:
    """Open the sink of a URL, with the options that sources have; SourceError."""
    return sources.open_sink(url, LISTENING)
