"""The elements that a session accepts, by stream and by order of time."""

from collections.abc import Collection

from streamgauge.model.element import StreamElement
from streamgauge.semantics.refusal import OutOfOrderError, StreamNameError


class Admission:
    """The streams of a query; elements of others are skipped, and reported at the end if there were no own ones."""

    def __init__(self, streams: Collection[str]) -> None:
        self.streams, self.heard = frozenset(streams), False
        self._foreign: str | None = None

    def takes(self, element: StreamElement, now: int | None = None) -> bool:
        """Whether an element belongs to the query's streams; OutOfOrderError if it is before ``now`` (ms)."""
        if element.stream not in self.streams:
            self._foreign = element.stream
            return False
        self.heard = True
        if now is not None and element.time < now:
            raise OutOfOrderError(f"element {element.sequence} goes back to {element.time} ms: sort the stream")
        return True

    def close(self) -> None:
        """End the input; StreamNameError if there were elements, but none of the query's streams."""
        if self._foreign is not None and not self.heard:
            raise StreamNameError(self.streams, self._foreign)


def disorder(element: StreamElement, greatest: int) -> OutOfOrderError:
    """The error for an element before the time ``greatest`` (ms) of an earlier one, without a lateness bound."""
    return OutOfOrderError(
        f"element {element.sequence} goes back from {greatest} to {element.time} ms: "
        "sort the stream or declare a lateness bound"
    )
