"""Server-sent events (WHATWG HTML, 9.2): ``sse+http://host/path``. A source is a client, a sink a small server.

Client and server are imported when one is opened. See docs/sources.md for what is guaranteed.
"""

from random import Random

from streamgauge.formats.streams import Reading
from streamgauge.sources.contract import Address, Sink, Source, SourceError, read_options
from streamgauge.sources.decoders import Messages

SCHEMES = ("sse+http", "sse+https")


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """Subscribes to events; SourceError when there is no event stream."""
    from streamgauge.sources.sse.client import SseSource, SseSourceOptions

    options = read_options(SseSourceOptions, address)
    return SseSource(address, options, Messages(address, options, reading, form), Random())


def open_sink(address: Address) -> Sink:
    """Serves events; SourceError when the port is taken."""
    from streamgauge.sources.sse.server import SseOptions, SseSink

    if address.scheme != "sse+http":
        raise SourceError(f"{address.text}: events are served over http only: put a proxy with TLS before it")
    return SseSink(address, read_options(SseOptions, address), Random())
