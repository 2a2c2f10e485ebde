"""Server-sent events (WHATWG HTML, 9.2): ``sse+http://host/path``. A source is a client.

The client is imported on first use; sinks are in ``streamgauge.servers.event_sink``. Guarantees: docs/sources.md.
"""

from dataclasses import replace
from random import Random

from streamgauge.formats.streams import Reading
from streamgauge.sources.contract import Address, Position, Source, read_options
from streamgauge.sources.decoders import Messages

SCHEMES = ("sse+http", "sse+https")


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """A source subscribed to events; SourceError if the server has no event stream."""
    from streamgauge.sources.sse.client import SseSource, SseSourceOptions

    options = read_options(SseSourceOptions, address)
    return SseSource(address, options, Messages(address, options, reading, form), Random())


def resume_source(address: Address, reading: Reading | None, form: str | None, position: Position) -> Source:
    """A source that resumes after the last processed event."""
    from streamgauge.sources.sse.client import SseSource, SseSourceOptions

    options = replace(read_options(SseSourceOptions, address), last=position["last"])
    return SseSource(address, options, Messages(address, options, reading, form), Random(), position["items"])
