"""Which evaluator answers a query: changes as they come, or contents looked at whole."""

from collections.abc import Sequence
from typing import Final, Protocol

from streamgauge.incremental.bags import Bag, Delta
from streamgauge.incremental.drivers.instants import closing
from streamgauge.incremental.drivers.latest import Feed
from streamgauge.incremental.evaluator import Kept
from streamgauge.incremental.generate import Follow
from streamgauge.incremental.pool import Pool
from streamgauge.incremental.whole import Contents, Held, Snapshots
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Term
from streamgauge.query.stamps import uses_timestamp

OVERLAP: Final = 3
"""How many looks may see one triple for it to be worth looking at contents whole: measured, a star costs the same at 3
to 4 looks either way, a self-join at more than 5 (benchmarks/RESULTS.md)."""


class Answering(Protocol):
    """The answer of a query over contents that move."""

    variables: tuple[str, ...]

    def settle(self) -> Delta:
        """The change of the answer since it was last asked for."""
        ...

    def answer(self) -> Bag:
        """The answer now; do not change it."""
        ...

    def solutions(self) -> Bag:
        """The answer when it was last asked for; do not change it."""
        ...


class Leaves(Protocol):
    """Where the patterns of one query or several find their triples."""

    @property
    def moved(self) -> bool:
        """Whether the solutions of a pattern may have changed since answers were last asked for."""
        ...

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        """What is told of the triples that enter and leave a graph."""
        ...

    def follow(self, graph: Term | None) -> Follow | None:
        """What is told of the triples that enter a graph and stops where a pattern finds something, if that can be."""
        ...

    def see(self, graph: Term | None, held: Held) -> None:
        """One content of a graph, and what it holds when it is looked at."""
        ...

    def look(self) -> None:
        """A look at the contents begins."""
        ...

    def release(self) -> None:
        """It is over."""
        ...


def answering(queries: Sequence[ContinuousQuery], semantics: Semantics) -> tuple[Leaves, list[Answering]]:
    """Evaluators for queries with the same windows and static data, and what they have in common.

    ValueError for what they do not do.
    """
    first, empty = queries[0], semantics.empty_aggregate
    names = [f"<{each.name}>" for each in first.windows if each.name is not None]
    if all(looks_rarely(query, semantics) for query in queries):
        contents = Contents()
        return contents, [Snapshots(query.form, contents, empty, names) for query in queries]
    pool = Pool(first.static)
    kept: list[Answering] = [Kept(query.form, pool, empty, names) for query in queries]
    pool.feeds(None)
    return pool, kept


def looks_rarely(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether only closes (or periods) are looked at, few of which see the same triple, and nothing else is to join."""
    if query.static or uses_timestamp(query.form) or any(each.window.kind != "time" for each in query.windows):
        return False
    if closing(semantics):
        step = min(each.window.slide for each in query.windows)
    elif semantics.period is not None:
        step = semantics.period
    else:
        return False
    return max(each.window.size for each in query.windows) <= OVERLAP * step
