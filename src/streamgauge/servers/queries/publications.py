"""Elements out of a request: which format its body has, and their time where the body does not say it."""

from collections.abc import Callable, Sequence
from typing import Final

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import Reading, stream_formats
from streamgauge.model.element import StreamElement
from streamgauge.servers.queries.sessions import refuse_removal
from streamgauge.servers.queries.wishes import WishError

_BY_TYPE: Final = {
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/n-quads": "nquads",
    "application/trig": "trig",
    "application/x-jelly-rdf": "jelly",
    "application/n-triples": "turtle",
    "text/turtle": "turtle",
}
_ANY_LATENESS: Final = 2**53
"""Lateness is judged by each query, not by the reader."""


def read_items(
    body: bytes, kind: str, form: str | None, stream: str, time: str | None, now: Callable[[], int]
) -> Sequence[Input]:
    """The elements and advances of a body. ``kind`` is its media type, ``form`` a format's name that goes before it.

    ``time`` is the time (ms, or ``now``) of all its elements; Turtle and N-Triples without it are of now. WishError,
    FormatError and RefusedError say what is wrong.
    """
    media = kind.partition(";")[0].strip().lower()
    name = form or _BY_TYPE.get(media)
    made = stream_formats().get(name or "")
    if made is None or made.decoder is None:
        known = ", ".join(sorted(_BY_TYPE))
        raise WishError(f"elements come as one of {known}: {media or 'no content type'} is none (or name ?form=)")
    arrived = now() if time == "now" or (time is None and made.name == "turtle") else _milliseconds(time)
    items = made.decoder(Reading(stream=stream, lateness=_ANY_LATENESS))(body, "body", arrived)
    for item in items:
        if isinstance(item, StreamElement):
            refuse_removal(item)
    return items


def _milliseconds(time: str | None) -> int | None:
    if time is None:
        return None
    try:
        return int(time)
    except ValueError:
        raise WishError(f"t is {time!r:.40}: expected whole ms, or now") from None
