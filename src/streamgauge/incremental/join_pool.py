"""The common interface of joins over windows: request patterns, feed graphs, take solutions at each look."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from streamgauge.incremental.operators import Bag, Take
from streamgauge.incremental.pattern_shapes import Leaf, SharedSolutions, joined_once
from streamgauge.incremental.plan import BgpRequest, Feed, unheard
from streamgauge.model.terms import Term

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch
    from streamgauge.incremental.column_joins import ColumnJoins
    from streamgauge.incremental.drivers.content import WindowContent
    from streamgauge.incremental.stamp_rows import StampRows
    from streamgauge.incremental.term_ids import IdTriples


class JoinPool:
    """The solutions of patterns over changing graphs, maintained per triple or recomputed at each look."""

    def __init__(self) -> None:
        self._asked: list[Leaf] = []
        self._shared: dict[int, SharedSolutions] = {}
        self._solutions: list[SharedSolutions] = []

    @property
    def joining(self) -> int | None:
        """The number of the pattern that a look joins over all that has arrived, if it does."""
        return None

    @property
    def moved(self) -> bool:
        """Whether solutions may have changed since they were last taken."""
        return True

    def leaf(self, request: BgpRequest) -> Take:
        """Request the solutions of a pattern, before the graphs are fed."""
        return partial(self.taken, self.ask(request))

    def ask(self, request: BgpRequest) -> Bag:
        """Request the solutions of a pattern; the bag identifies them in ``taken``."""
        bag: Bag = {}
        self._asked.append((request, bag))
        return bag

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The patterns to join, with the bags of their solutions; no requests may follow."""
        leaves, self._shared = joined_once(self._asked)
        self._solutions = [*dict.fromkeys(self._shared.values())]
        return leaves

    def taken(self, bag: Bag) -> Bag:
        """The change of the solutions of a bag since the last call."""
        # By identity: bags are mutable and equal whenever they are empty.
        shared = self._shared.get(id(bag)) if self._shared else None
        if shared is not None and self.pending(shared.found):
            shared.hand_out(self.change(shared.found))
        return self.change(bag)

    def hand_out(self) -> set[int]:
        """Distribute shared solutions; the ids of the bags that changed."""
        pending = [solutions for solutions in self._solutions if self.pending(solutions.found)]
        return set[int]().union(*[solutions.hand_out(self.change(solutions.found)) for solutions in pending])

    def shares(self, bag: Bag) -> bool:
        """Whether a bag receives shared solutions."""
        return id(bag) in self._shared

    def pending(self, bag: Bag) -> bool:
        """Whether solutions may have changed since a bag was taken."""
        return bool(bag)

    def change(self, bag: Bag) -> Bag:
        """Take all rows out of a bag."""
        # Copy and clear, instead of a new dict: generated functions hold a reference to this bag.
        change = bag.copy()
        bag.clear()
        return change

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:  # noqa: ARG002
        """The functions for triples that enter and leave a graph; ``unheard`` if no pattern needs them."""
        return unheard, unheard

    def stamps(self, graph: Term) -> "Sequence[StampRows]":  # noqa: ARG002
        """The requested rows of a graph of time stamps."""
        return ()

    def bind(self, graph: Term | None, content: "WindowContent") -> None:
        """Register a content of a graph (``None``: the default graph), to be read at each look."""

    def over(self, graph: Term | None) -> None:
        """All patterns have been requested; the first content belongs to this graph."""

    @property
    def in_columns(self) -> "ColumnJoins | None":
        """The pool itself while it joins changes in columns."""
        return None

    def enter_columns(self, triples: int) -> bool:  # noqa: ARG002
        """Switch to columns if that pays off, given a change of this many triples; whether it did."""
        return False

    def numbered(self, batch: "ElementBatch") -> "IdTriples | None":  # noqa: ARG002
        """The triples of a batch as ids; ``None`` if they are processed as terms."""
        return None

    def cut(self, time: int, t0: int) -> int | None:  # noqa: ARG002
        """Cut the content at ``time`` (ms), given windows that begin at ``t0``; the time of the next cut."""
        return None

    def look(self) -> None:
        """Begin a look at the contents."""

    def release(self) -> None:
        """End the look that ``look`` began."""
