"""The quads that a fragment selects, and an index of selections by the quads that they may contain."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import chain, combinations, product
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from streamgauge.model.algebra import Node, Var
from streamgauge.servers.fragments import Match, Quad
from streamgauge.servers.fragments.pages.terms import BindingRow

EqualPlaces: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of places (0 subject .. 3 graph) that must have the same term."""

RequestedNodes: TypeAlias = tuple[Node | None, Node | None, Node | None, Node | None]
"""The nodes in the four places of a request; ``None`` for an empty place."""


class Branch(NamedTuple):
    """Quads of a match that have the same term in each pair of places of ``same``."""

    match: Match
    same: EqualPlaces = ()

    def takes(self, quad: Quad) -> bool:
        """Whether the branch selects a quad."""
        return fits(quad, self.match) and all(quad[one] == quad[other] for one, other in self.same)


class Selection(NamedTuple):
    """The union of branches; ``plain`` if they are disjoint and without ``same``, so that matches can be counted."""

    branches: tuple[Branch, ...]
    plain: bool = True

    def takes(self, quad: Quad) -> bool:
        """Whether the quad is selected."""
        return any(branch.takes(quad) for branch in self.branches)

    @property
    def matches(self) -> tuple[Match, ...]:
        """Matches that together contain all selected quads."""
        if len(self.branches) == 1:
            return (self.branches[0].match,)
        return tuple(dict.fromkeys(branch.match for branch in self.branches))


def select(wanted: RequestedNodes, rows: Sequence[BindingRow] | None = None) -> Selection:
    """The selection of a pattern; with ``rows`` only quads that are compatible with one of them.

    For ``?x <p> ?y`` the rows (x=<a>) and (x=<a>, y=<b>) give the branches (<a>, <p>, ?) and (<a>, <p>, <b>), of which
    the second is within the first and dropped. Branches that overlap otherwise make the selection not ``plain``.
    """
    if rows is None:
        s, p, o, g = wanted
        if not (type(s) is Var or type(p) is Var or type(o) is Var or type(g) is Var):
            return Selection((Branch((s, p, o, g)),))  # type: ignore[arg-type]
        branch = _branch(wanted)
        return Selection((branch,), not branch.same)
    branches = list(dict.fromkeys(_branch(wanted, row) for row in rows))
    # Distinct branches that bind the same places are disjoint: no pairwise comparison is needed.
    if len({tuple(term is None for term in branch.match) for branch in branches}) == 1 and not branches[0].same:
        return Selection(tuple(branches))
    least = [one for one in branches if not any(_within(one, other) for other in branches if other != one)]
    overlap = any(_overlap(one.match, other.match) for one, other in combinations(least, 2))
    return Selection(tuple(least), not overlap and not any(branch.same for branch in least))


def fits(quad: Quad, match: Match) -> bool:
    """Whether a match selects a quad."""
    return all(wanted is None or wanted == term for term, wanted in zip(quad, match, strict=True))


def matches_of(quads: Iterable[Quad]) -> set[Match]:
    """All matches that select one of the quads: sixteen per quad, each place bound or not."""
    selections = (product((s, None), (p, None), (o, None), (g, None)) for s, p, o, g in quads)
    return set(chain.from_iterable(selections))


SWEEP: Final = 2_000
"""Quads of a change above which all selections count as touched: computing 16 matches per quad would cost more."""

Item = TypeVar("Item", bound=Hashable)


class SelectionIndex(Generic[Item]):
    """Items by the matches of their selections; a change finds those it affects by sixteen lookups per quad."""

    def __init__(self) -> None:
        self._by_match: dict[Match, set[Item]] = {}

    def put(self, item: Item, selection: Selection) -> None:
        """Add an item under all matches of its selection."""
        for match in selection.matches:
            self._by_match.setdefault(match, set()).add(item)

    def drop(self, item: Item, selection: Selection) -> None:
        """Remove an item that was added with this selection."""
        for match in selection.matches:
            items = self._by_match[match]
            items.discard(item)
            if not items:
                del self._by_match[match]

    def touched(self, quads: Sequence[Quad]) -> set[Item]:
        """The items whose selections may contain one of the quads."""
        if len(quads) > SWEEP:
            return set[Item]().union(*self._by_match.values())
        return self.of(matches_of(quads) if self._by_match else ())

    def of(self, matches: Collection[Match]) -> set[Item]:
        """The items that are indexed under one of the matches."""
        return set[Item]().union(*[self._by_match[match] for match in matches if match in self._by_match])


def _branch(wanted: RequestedNodes, row: BindingRow | None = None) -> Branch:
    nodes = wanted if row is None else [row.get(node, node) if isinstance(node, Var) else node for node in wanted]
    subject, predicate, object_, graph = [None if isinstance(node, Var) else node for node in nodes]
    free = sum([isinstance(node, Var) for node in nodes])
    return Branch((subject, predicate, object_, graph), _same(nodes) if free > 1 else ())


def _same(nodes: Sequence[Node | None]) -> EqualPlaces:
    """The pairs of places with the same variable."""
    named = [(place, node) for place, node in enumerate(nodes) if isinstance(node, Var)]
    return tuple((one, other) for (one, this), (other, that) in combinations(named, 2) if this == that)


def _within(one: Branch, other: Branch) -> bool:
    """Whether ``other`` selects everything that ``one`` selects."""
    wider = all(wide is None or wide == narrow for narrow, wide in zip(one.match, other.match, strict=True))
    return wider and all(
        pair in one.same or (one.match[pair[0]] is not None and one.match[pair[0]] == one.match[pair[1]])
        for pair in other.same
    )


def _overlap(one: Match, other: Match) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))
