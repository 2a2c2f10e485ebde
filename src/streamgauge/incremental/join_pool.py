"""The common side of joins over windows: patterns are asked for, graphs fed, and solutions taken at each look."""

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
    """The solutions of patterns over graphs that move: followed as triples enter and leave, or found at each look."""

    def __init__(self) -> None:
        self._asked: list[Leaf] = []
        self._shared: dict[int, SharedSolutions] = {}
        self._solutions: list[SharedSolutions] = []

    @property
    def moved(self) -> bool:
        """Whether solutions may have changed since they were taken."""
        return True

    def leaf(self, request: BgpRequest) -> Take:
        """Request the solutions of a pattern, before the graphs are fed."""
        return partial(self.taken, self.ask(request))

    def ask(self, request: BgpRequest) -> Bag:
        """The same; the bag by which they are taken."""
        bag: Bag = {}
        self._asked.append((request, bag))
        return bag

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The patterns that are joined, once all are asked for, each with the bag of its solutions."""
        leaves, self._shared = joined_once(self._asked)
        self._solutions = [*dict.fromkeys(self._shared.values())]
        return leaves

    def taken(self, bag: Bag) -> Bag:
        """The change of what was asked for with a bag since it was taken last."""
        shared = self._shared.get(id(bag)) if self._shared else None
        if shared is not None and self.pending(shared.found):
            shared.hand_out(self.change(shared.found))
        return self.change(bag)

    def hand_out(self) -> set[int]:
        """Solutions that are shared go to those that ask for them: the ids of the bags that have changed."""
        pending = [solutions for solutions in self._solutions if self.pending(solutions.found)]
        return set[int]().union(*[solutions.hand_out(self.change(solutions.found)) for solutions in pending])

    def shares(self, bag: Bag) -> bool:
        """Whether only ``hand_out`` changes a bag."""
        return id(bag) in self._shared

    def pending(self, bag: Bag) -> bool:
        """Whether solutions may have changed since a bag was taken."""
        return bool(bag)

    def change(self, bag: Bag) -> Bag:
        """The rows that a bag has, which it has no more."""
        change = bag.copy()
        bag.clear()
        return change

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:  # noqa: ARG002
        """Functions that take the triples that enter and leave a graph; they do nothing when no pattern needs them."""
        return unheard, unheard

    def stamps(self, graph: Term) -> "Sequence[StampRows]":  # noqa: ARG002
        """The rows of stamps that are asked of a graph of stamps without facts."""
        return ()

    def bind(self, graph: Term | None, content: "WindowContent") -> None:
        """One content of a graph, ``None`` for the default graph, which is seen when it is looked at."""

    def over(self, graph: Term | None) -> None:
        """Patterns are all asked for, and the first content is of this graph."""

    @property
    def in_columns(self) -> "ColumnJoins | None":
        """The pool itself while changes are joined in columns."""
        return None

    def enter_columns(self, triples: int) -> bool:  # noqa: ARG002
        """Whether changes are joined in columns from now on, beside one of so many triples."""
        return False

    def numbered(self, batch: "ElementBatch") -> "IdTriples | None":  # noqa: ARG002
        """The triples of a batch by numbers, ``None`` where they are taken as they are."""
        return None

    def cut(self, time: int, t0: int) -> int | None:  # noqa: ARG002
        """Time comes to ``time`` (ms) and windows begin at ``t0``: what came before is apart; when the next cut is."""
        return None

    def look(self) -> None:
        """A look at the contents begins."""

    def release(self) -> None:
        """The look is over."""
