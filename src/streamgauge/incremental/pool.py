"""The basic graph patterns of one query or of several over graphs that change, with common indexes for each graph."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from streamgauge.incremental.bags import Bag
from streamgauge.incremental.generate import Feed, Follow, Joins, generate
from streamgauge.incremental.operators import Take
from streamgauge.incremental.plans import Asked, plan_all
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term, Triple


class Pool:
    """Patterns are asked for first; then ``feeds`` gives what triples of a graph enter and leave by.

    ``static`` triples are in the default graph from its first ``feeds`` on; a collection, which may be a file, is gone
    through and not kept.
    """

    def __init__(self, static: Iterable[Triple] = ()) -> None:
        self._static = static if isinstance(static, Collection) else tuple(static)
        self._leaves: list[tuple[Asked, Bag]] = []
        self._found: list[Bag] = []
        self._joins: dict[Term | None, list[Joins]] = {}

    @property
    def moved(self) -> bool:
        """Whether the solutions of a pattern have changed since they were taken."""
        return any(self._found)

    def leaf(self, asked: Asked) -> Take:
        """A pattern whose solutions are wanted."""
        found: Bag = {}
        self._leaves.append((asked, found))
        self._found.append(found)
        return partial(_taken, found)

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        """Two functions that let triples enter and leave a graph; they do nothing when no pattern reads it."""
        if graph not in self._joins:
            self._joins[graph] = self._generated(graph)
            if graph is None:
                self.feeds(None)[0](self._static)
        joins = self._joins[graph]
        return _one([each.enter for each in joins]), _one([each.leave for each in joins])

    def follow(self, graph: Term | None) -> Follow | None:
        """Lets triples enter a graph with a stop wherever a pattern finds something, if they are joined as one."""
        self.feeds(graph)
        joins = self._joins[graph]
        return joins[0].follow if len(joins) == 1 else None

    def see(self, graph: Term | None, _held: object) -> None:
        """A content of a graph; what it holds enters and leaves by ``feeds``."""

    def look(self) -> None:
        """Changes have been followed as they came."""

    def release(self) -> None:
        """They are followed further."""

    def _generated(self, graph: Term | None) -> list[Joins]:
        """Patterns whose predicates are constants together; one with a variable there would slow them down."""
        leaves = [each for each in self._leaves if each[0].graph == graph]
        open_ = [each for each in leaves if _is_open(each[0])]
        groups = [[each for each in leaves if each not in open_], *([each] for each in open_)]
        return [_joined(group) for group in groups if group]

    def remembered(self) -> dict[str, int]:
        """How many entries each index holds."""
        joins = [each for graph in self._joins.values() for each in graph]
        return {
            f"{number}.{name}": len(index) for number, each in enumerate(joins) for name, index in each.indexes.items()
        }


def _joined(leaves: Sequence[tuple[Asked, Bag]]) -> Joins:
    asked = [each for each, _ in leaves]
    return generate(plan_all(asked), [each.output for each in asked], [found for _, found in leaves])


def _taken(found: Bag) -> Bag:
    change = found.copy()
    found.clear()
    return change


def _is_open(asked: Asked) -> bool:
    return any(isinstance(triple.predicate, Var) for triple in asked.bgp.patterns)


def _one(feeds: Sequence[Callable[[Iterable[Triple]], None]]) -> Feed:
    """One function for all, without a detour for a single one."""
    if len(feeds) == 1:
        return feeds[0]

    def feed(triples: Iterable[Triple]) -> None:
        graph = tuple(triples)
        for one in feeds:
            one(graph)

    return feed
