"""Patterns evaluated over facts that are there at once: the local queries of the plan ``streamer``."""

from collections.abc import Collection, Sequence

from streamgauge.compute.changes import Bag, Contents, Snapshots
from streamgauge.compute.changes.bags import add
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Triple


class Local:
    """A query form that is evaluated over one set of triples after the other."""

    def __init__(self, form: al.QueryForm) -> None:
        self._triples: Collection[Triple] = ()
        self._contents = Contents()
        self._snapshots = Snapshots(form, self._contents)
        self._contents.see(None, lambda: (tuple(self._triples),))

    def answer(self, triples: Collection[Triple]) -> Bag:
        """Its answer over these triples."""
        self._triples = triples
        self._contents.look()
        try:
            return dict(self._snapshots.answer())
        finally:
            self._contents.release()
            self._triples = ()


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
