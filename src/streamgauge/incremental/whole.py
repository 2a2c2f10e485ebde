"""Queries over contents that are looked at whole: the same operators as the incremental ones, from nothing each time.

Worth it where little of a content is still there at the next look: what comes in between costs nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from streamgauge.incremental.bags import Bag, Delta, difference
from streamgauge.incremental.columns import Matches, Parted
from streamgauge.incremental.generate import Feed
from streamgauge.incremental.normal import UnsupportedError
from streamgauge.incremental.operators import Take
from streamgauge.incremental.plans import Asked, plan
from streamgauge.incremental.tree import Tree
from streamgauge.model import algebra as al
from streamgauge.model.algebra import Var
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Term, Triple

Held: TypeAlias = Callable[[], Iterable[Sequence[Triple]]]
"""What a content holds now, graph by graph."""


class Contents:
    """The contents that one query or several look at, parted as their patterns ask; nothing stays between two looks."""

    def __init__(self) -> None:
        self._parted: dict[Term | None, Parted] = {}
        self._seen: list[tuple[Term | None, Held]] = []
        self._matches: list[Matches] = []
        self.moved = True

    def leaf(self, asked: Asked) -> Take:
        """A pattern whose solutions are wanted at each look."""
        if isinstance(asked.graph, Var):
            raise UnsupportedError("GRAPH over each graph: spread the query first")
        parted = self._parted.setdefault(asked.graph, Parted())
        matches = Matches(plan(asked.bgp, asked.conditions), asked.output, parted)
        self._matches.append(matches)
        return matches.take

    def see(self, graph: Term | None, held: Held) -> None:
        """One more content of a graph, ``None`` for the default graph."""
        if graph in self._parted:
            self._seen.append((graph, held))

    def feeds(self, _graph: Term | None) -> tuple[Feed, Feed]:
        """Two functions that do nothing: what comes and goes between two looks is not asked about."""
        return _pass, _pass

    def follow(self, _graph: Term | None) -> None:
        """Nothing can be followed."""

    def look(self) -> None:
        """Take in what is held now."""
        for graph, parted in self._parted.items():
            parted.fill([triples for name, held in self._seen if name == graph for triples in held()])
        for matches in self._matches:
            matches.renew()

    def release(self) -> None:
        """The look is over."""
        for parted in self._parted.values():
            parted.fill(())


class Snapshots:
    """The answer of a query at the looks at its contents.

    Raises UnsupportedError for what ``evaluator.refuse`` names.
    """

    def __init__(
        self,
        form: al.QueryForm,
        contents: Contents,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
        names: Sequence[Term] = (),
    ) -> None:
        self._tree = Tree(form, names, empty_aggregate, contents.leaf)
        self._shown: Bag = {}
        self.variables = self._tree.variables

    def settle(self) -> Delta:
        """The change of the answer since it was last asked for."""
        before = self._shown
        return difference(self.answer(), before)

    def answer(self) -> Bag:
        """Evaluate at this look, once: row -> multiplicity; do not change it."""
        self._tree.forget()
        self._shown = self._tree.pull()
        return self._shown

    def solutions(self) -> Bag:
        """The answer when it was last asked for; do not change it."""
        return self._shown


def _pass(_triples: Iterable[Triple]) -> None:
    """Nothing is done with triples one by one."""
