"""An element of the stream is lost: the first, the last, or another one."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen, Stream, ordinal

MAX_LOST = 60
"""Elements of a stream up to which the loss of each is tried; in longer ones only that of the first and the last."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """The loss of each element, or of the first and the last one."""
    elements = seen.case.stream.elements
    count = len(elements)
    for at in range(count) if count <= MAX_LOST else sorted({0, count - 1}):
        which = {0: "first", count - 1: "last"}.get(at) or ordinal(at + 1)
        sentence = f"The {which} element of the stream (at {elements[at].time:,} ms) is lost."
        stream = Stream(elements[:at] + elements[at + 1 :])
        yield Fault(Part(f"{which} element lost", sentence), partial(Case.on, stream=stream), family="stream")
