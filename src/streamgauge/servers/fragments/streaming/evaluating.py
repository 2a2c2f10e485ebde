"""Patterns evaluated over facts that are there at once: the local queries of the plan ``streamer``."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from streamgauge.incremental import Bag, Contents, Snapshots
from streamgauge.incremental.bags import add
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple

Named: TypeAlias = Mapping[Term, Collection[Triple]]
"""Triples by the name of their graph."""

NOWHERE: Final[Named] = {}
"""No named graphs."""


class Local:
    """A query form that is evaluated over one set of triples, and named graphs, after the other."""

    def __init__(self, form: al.QueryForm) -> None:
        self._form = form
        self._triples: Collection[Triple] = ()
        self._named = NOWHERE
        self._see(())

    def answer(self, triples: Collection[Triple], named: Named = NOWHERE) -> Bag:
        """Its answer over these triples, and these graphs."""
        if tuple(named) != self._names:
            self._see(tuple(named))
        self._triples, self._named = triples, named
        self._contents.look()
        try:
            return dict(self._snapshots.answer())
        finally:
            self._contents.release()
            self._triples, self._named = (), NOWHERE

    def _see(self, names: tuple[Term, ...]) -> None:
        self._names, self._contents = names, Contents()
        self._snapshots = Snapshots(self._form, self._contents, names=names)
        self._contents.see(None, lambda: (tuple(self._triples),))
        for name in names:
            self._contents.see(name, partial(self._in, name))

    def _in(self, name: Term) -> tuple[tuple[Triple, ...]]:
        return (tuple(self._named[name]),)


def rows_of(pattern: al.Pattern) -> al.Select:
    """The query for all of a pattern's solutions."""
    variables = al.pattern_variables(pattern)
    return al.Select(al.Project(pattern, variables), tuple(var.name for var in variables))


def joined(left: tuple[Row, Bag], right: tuple[Row, Bag]) -> Bag:
    """The solutions of both that are compatible, merged: the columns of the left, then those only of the right.

    Each side is the names of its columns and a bag.
    """
    names, rows = left
    others, found = right
    pairs = [(names.index(name), at) for at, name in enumerate(others) if name in names]
    more = [at for at, name in enumerate(others) if name not in names]
    result: Bag = {}
    for row, count in rows.items():
        for other, times in found.items():
            cells = _merged(row, other, pairs)
            if cells is not None:
                add(result, (*cells, *(other[at] for at in more)), count * times)
    return result


def _merged(row: Row, other: Row, pairs: Sequence[tuple[int, int]]) -> Row | None:
    cells = list(row)
    for own, its in pairs:
        if cells[own] is None:
            cells[own] = other[its]
        elif other[its] is not None and other[its] != cells[own]:
            return None
    return tuple(cells)
