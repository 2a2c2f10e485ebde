"""How much the windows of a query hold."""

from collections import deque

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery


class WindowEstimate:
    """An estimate of how many triples the windows of a query hold."""

    def __init__(self, query: ContinuousQuery) -> None:
        kinds = [(each.window.kind, each.window.size) for each in query.windows]
        self._size = max((size for kind, size in kinds if kind == "time"), default=0)
        self._counted = sum(size for kind, size in kinds if kind == "count")
        self._landmark = any(kind == "landmark" for kind, _ in kinds)
        self._recent: deque[tuple[int, int]] = deque()
        self._within = self._all = 0

    @property
    def triples(self) -> int:
        """How many."""
        return self._all if self._landmark else self._within + min(self._counted, self._all)

    def take(self, element: StreamElement) -> None:
        """An element enters, what is out of every window leaves."""
        self._all += len(element.added)
        if self._size:
            self._within += len(element.added)
            self._recent.append((element.time, len(element.added)))
            while self._recent[0][0] < element.time - self._size:
                self._within -= self._recent.popleft()[1]
