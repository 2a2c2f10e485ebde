"""What a window holds: graphs by time, and how the set of triples differs from the last time it was looked at."""

from collections import deque
from collections.abc import Callable, Iterable

from streamgauge.model.semantics import Changes
from streamgauge.model.terms import Triple

Graph = tuple[Triple, ...]
Feed = Callable[[Iterable[Triple]], None]


class Content:
    """The graphs of a window, oldest first; what enters and leaves is passed on to ``enter`` and ``leave``."""

    def __init__(self, enter: Feed, leave: Feed) -> None:
        self._enter, self._leave = enter, leave
        self._graphs: deque[tuple[int, Graph]] = deque()

    def add(self, time: int, graph: Graph) -> None:
        """Let a graph of ``time`` (ms) enter."""
        if graph:
            self._enter(graph)
            graphs = self._graphs
            if graphs and graphs[-1][0] > time:
                self._insert(time, graph)
            else:
                graphs.append((time, graph))

    def _insert(self, time: int, graph: Graph) -> None:
        later = []
        while self._graphs and self._graphs[-1][0] > time:
            later.append(self._graphs.pop())
        self._graphs.append((time, graph))
        self._graphs.extend(reversed(later))

    def drop_before(self, first: int) -> None:
        """Let everything earlier than ``first`` (ms) leave."""
        graphs, leave = self._graphs, self._leave
        while graphs and graphs[0][0] < first:
            leave(graphs.popleft()[1])

    @property
    def oldest(self) -> int | None:
        """The time of the oldest graph, ``None`` when the content is empty."""
        return self._graphs[0][0] if self._graphs else None


class Presence:
    """The set of triples by reference, and what differs from when ``settle`` was last called."""

    def __init__(self, changes: Changes) -> None:
        self._arrivals_only = changes is Changes.ARRIVALS
        self._counts: dict[Triple, int] = {}
        self._net: dict[Triple, bool] = {}

    def enter(self, triples: Iterable[Triple]) -> None:
        """Count triples in."""
        counts, net = self._counts, self._net
        for triple in triples:
            copies = counts.get(triple)
            if copies is not None:
                counts[triple] = copies + 1
                continue
            counts[triple] = 1
            if triple in net:
                del net[triple]
            else:
                net[triple] = True

    def leave(self, triples: Iterable[Triple]) -> None:
        """Count triples out."""
        counts, net = self._counts, self._net
        for triple in triples:
            copies = counts[triple]
            if copies > 1:
                counts[triple] = copies - 1
                continue
            del counts[triple]
            if triple in net:
                del net[triple]
            else:
                net[triple] = False

    @property
    def differs(self) -> bool:
        """Whether the set has changed at all since it was settled."""
        return bool(self._net)

    def settle(self) -> bool:
        """Whether the set has changed in the way that counts; from now on compared with what is there now."""
        changed = any(self._net.values()) if self._arrivals_only else bool(self._net)
        self._net.clear()
        return changed
