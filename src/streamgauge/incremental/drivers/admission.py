"""The guard of a session: the elements that it takes, by their stream and by the order of time."""

from collections.abc import Collection

from streamgauge.model.element import StreamElement
from streamgauge.semantics.refusal import OutOfOrderError, StreamNameError


class Admission:
    """The streams of a query; elements of others are left out, and named at the end if none of its own came."""

    def __init__(self, streams: Collection[str]) -> None:
        self.streams, self.heard = frozenset(streams), False
        self._foreign: str | None = None

    def takes(self, element: StreamElement) -> bool:
        """Whether an element is of the query's streams."""
        if element.stream in self.streams:
            self.heard = True
            return True
        self._foreign = element.stream
        return False

    def close(self) -> None:
        """No more input; StreamNameError when elements came, but none of a stream that the query names."""
        if self._foreign is not None and not self.heard:
            raise StreamNameError(self.streams, self._foreign)


def disorder(element: StreamElement, greatest: int) -> OutOfOrderError:
    """The error for an element that is earlier than one before it, of ``greatest`` (ms), without a lateness bound."""
    return OutOfOrderError(
        f"element {element.sequence} goes back from {greatest} to {element.time} ms: "
        "sort the stream or declare a lateness bound"
    )
