"""Joins over a moving window by the change between two looks: in columns if it is large, else triple by triple.

Triples that enter and leave between two looks are joined in columns with the content (``span_joins``), whatever the
looks are: closes of windows, or the ticks of a batch, many at once. If changes are small, generated joins
(``window_joins``) process each triple. Both have the same content, so that one can take over from the other at any
look: the new one reads the content, and solutions that were emitted already are not a change.

A worked example: ``?obs :result ?res . ?res :value ?v``, and a window that slides by a second. At a look 400 triples
entered and 300 left: columns find the rows that begin and end with them. Then the stream slows down to 10 triples a
second. The debt of small changes grows until it is as large as the content: then the content enters the generated
joins, and the solutions that columns have emitted are subtracted.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from streamgauge.incremental.crossovers import COLUMNAR_CHANGE, COLUMNAR_PATTERNS
from streamgauge.incremental.pattern_shapes import Leaf
from streamgauge.incremental.plan import BgpRequest, Feed, disconnected, unheard
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.incremental.window_pieces import WindowBegins, size_of
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, Triple

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch
    from streamgauge.incremental.drivers.content import WindowContent
    from streamgauge.incremental.pane_joins import WindowPanes
    from streamgauge.incremental.term_ids import IdTriples, TermIds
    from streamgauge.incremental.window_columns import WindowColumns


class ColumnJoins(WindowJoins):
    """Patterns over the content of one time-based window.

    ``begins``: the beginnings of windows that are evaluated when they close; without it, each look is a tick.
    """

    def __init__(self, begins: WindowBegins | None) -> None:
        super().__init__()
        self._begins, self._t0 = begins, 0
        self._graph: Term | None = None
        self._content: WindowContent
        self._waits = False
        self._trace: WindowPanes | WindowColumns | None = None
        self._columns: WindowColumns | None = None
        self._terms: TermIds | None = None
        # Two counters with hysteresis: credit leads into columns, debt out of them. Changing costs as much as the
        # content, so it may happen only once changes of that total size have paid for it.
        self._credit = self._debt = 0
        self._large = COLUMNAR_CHANGE
        """Triples of a change that costs as much in columns as one by one: more for many groups of patterns."""

    @property
    def columns(self) -> "WindowColumns | None":
        """The content in columns, while changes are joined that way."""
        return self._columns

    @property
    def joining(self) -> int | None:
        """The number of the pattern that a look joins over all that has arrived, if it does."""
        trace = self._trace  # read once: another thread asks while this one may leave columns
        return None if trace is None else trace.joining

    @property
    def in_columns(self) -> "ColumnJoins | None":
        """The pool itself while it joins changes in columns."""
        return None if self._columns is None else self

    def over(self, graph: Term | None) -> None:
        """Hold the content of this graph; arrivals wait for the first look if some of its patterns are joins."""
        self._graph = graph
        self._large = COLUMNAR_CHANGE * max(1, len(self._requests) // COLUMNAR_PATTERNS)
        # Single patterns gain nothing from waiting: each triple is a solution or none.
        joined = any(len(request.bgp.patterns) > 1 for request, _ in self.leaves)
        self._waits = self._begins is not None and self._possible and joined

    @property
    def _requests(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf[0].graph == self._graph]

    @property
    def _possible(self) -> bool:
        """Whether columns can join all patterns over the content."""
        return bool(self._requests) and all(_columnar(request) for request, _ in self._requests)

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        """The functions for triples that enter and leave a graph."""
        if graph == self._graph and (self._waits or self._trace is not None):
            return unheard, unheard
        return super().feeds(graph)

    def bind(self, graph: Term | None, content: "WindowContent") -> None:  # noqa: ARG002
        """Set the content of the window."""
        self._content = content

    def numbered(self, batch: "ElementBatch") -> "IdTriples | None":
        """The triples of a batch as term ids; a large batch may switch to columns at the next look."""
        triples = len(batch.added) // 3
        # Small batches neither earn credit nor cost any: only batches that columns would be faster for count.
        if self._columns is None and not self._waits:
            self._credit += triples if triples >= self._large else 0
            return None
        return self._ids.of_batch(batch)

    def together(self, time: int, arrived: "Sequence[Sequence[Triple]]") -> "IdTriples":
        """Triples that arrived at a time (ms), as term ids."""
        return self._ids.joined([self._ids.of_triples([(time, tuple(triples))]) for triples in arrived])

    @property
    def _ids(self) -> "TermIds":
        if self._terms is None:
            from streamgauge.incremental.term_ids import TermIds

            self._terms = TermIds()
        return self._terms

    def cut(self, time: int, t0: int) -> int | None:
        """Gather the arrivals since the last cut; the time of the next cut."""
        self._t0 = t0
        if self._begins is None or not (self._waits or self._trace is not None):
            return None
        self._gather(self._begins)
        return self._begins.following(time, t0)

    def _gather(self, begins: WindowBegins) -> None:
        if (predicates := self._predicates) is not None:
            self._content.gather(predicates, lambda at: begins.last(at, self._t0))

    @property
    def _predicates(self) -> Collection[Term] | None:
        """The predicates that are asked for, ``None`` where all are."""
        predicates = {triple.predicate for request, _ in self._requests for triple in request.bgp.patterns}
        names = [predicate for predicate in predicates if isinstance(predicate, str)]
        return names if len(names) == len(predicates) else None

    def look(self) -> None:
        """Begin a look; in columns, join the change since the last one."""
        super().look()
        begins, content = self._begins, self._content
        if begins is None or not (self._waits or self._trace is not None):
            return
        self._gather(begins)
        arrivals = content.fresh()
        # An empty look decides nothing; the way to join is chosen by the first arrivals.
        if self._waits and not arrivals:
            return
        if content.arrivals is None or not self.worth(size_of(arrivals)):
            self.leave_columns()
            return
        if self._trace is None:
            self._waits = False
            self._trace = self._begun(begins)
        # Columns that made far too many rows (WASTED_ROWS) are not tried again for this window; panes that overlapped
        # are only the wrong form, and large batches may still lead to columns.
        if not self._trace.move(arrivals, content.horizon):
            self.leave_columns(for_good=self._columns is not None)

    def _begun(self, begins: WindowBegins) -> "WindowPanes | WindowColumns":
        """The columns of arrivals if they came in batches, else their panes."""
        if self._terms is not None:
            self._columns = self._made()
            return self._columns
        from streamgauge.incremental.pane_joins import WindowPanes

        return WindowPanes(self._requests, lambda time: begins.last(time, self._t0))

    def worth(self, triples: int) -> bool:
        """Whether changes are still joined in columns after one of this many triples; small ones cost more there."""
        self._debt = max(0, self._debt + self._large - triples)
        spans_held = 0 if self._trace is None else self._trace.held
        # Two changes of grace: a window that has just begun holds nothing, and one small look would otherwise end
        # columns.
        return self._debt <= spans_held + 2 * self._large

    def release(self) -> None:
        """End the look; after large batches, the next one is in columns."""
        super().release()
        if self._begins is not None and self._columns is None:
            self.enter_columns(0)

    def enter_columns(self, triples: int) -> bool:
        """Switch to columns once batches, with one of this many triples, amount to the content."""
        content = self._content
        self._credit += triples if triples >= self._large else 0
        arrivals_held = content.arrivals
        if arrivals_held is None or self._credit < max(self._large, arrivals_held) or not self._possible:
            return False
        self._trace = self._columns = self._made()
        self._debt = 0
        self._columns.take_in(content.fresh(whole=True), content.horizon)
        # From here on triples reach the columns by the look; fed to generated joins as well, they would count twice.
        content.feed(unheard, unheard)
        # The generated joins and their indexes are as large as the content, and outdated from now on.
        self._joins.pop(self._graph, None)
        self._skewed.clear()
        return True

    def _made(self) -> "WindowColumns":
        from streamgauge.incremental.window_columns import WindowColumns

        return WindowColumns(self._requests, self._ids)

    def leave_columns(self, for_good: bool = False) -> None:
        """Switch to generated joins, which read the content; solutions emitted by columns are subtracted."""
        trace, self._trace, self._columns, self._waits = self._trace, None, None, False
        self._credit = -(2**62) if for_good else 0
        feeds = self.feeds(self._graph)
        self._content.feed(*feeds)
        for triples in self._content.graphs():
            feeds[0](triples)
        if trace is not None:
            # The generated joins have just counted the whole content as new solutions.
            trace.take_back()


def _columnar(request: BgpRequest) -> bool:
    """Whether all patterns have a variable and are connected, over a single graph."""
    patterns = request.bgp.patterns
    plain = all(al.triple_variables(pattern) for pattern in patterns) and not isinstance(request.graph, al.Var)
    # Unconnected patterns are a product, whose rows columns would write out at every look.
    return bool(patterns) and plain and len(disconnected(request.bgp)) == 1
