"""Time stamps as rows: a request for whole stamps needs no facts to join.

A worked example: ``timestamp(?s, :value, ?v)`` is a left join with four facts of a stamp: its subject ?s, its predicate
:value, its object ?v, its time. When (a :value 1) arrives at 7 ms, the row (a, 1, 7) is added; when the triple arrives
again at 9 ms, that row is replaced by (a, 1, 9).
"""

from collections.abc import Sequence
from typing import Final

from streamgauge.incremental.operators import Bag, add
from streamgauge.incremental.plan import BgpRequest
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term, Triple
from streamgauge.query.stamps import stamp_nodes

_CELLS: Final = 4
"""Subject, predicate, object and time."""


class StampRows:
    """The rows of a request for time stamps; changes are added to the bag ``found``."""

    def __init__(self, cells: Sequence[Var | Term], output: Sequence[str]) -> None:
        self.found: Bag = {}
        self._constants = [(at, cell) for at, cell in enumerate(cells) if isinstance(cell, str)]
        first = {cell: at for at, cell in reversed([*enumerate(cells)]) if isinstance(cell, Var)}
        own = [(at, first[cell]) for at, cell in enumerate(cells) if isinstance(cell, Var)]
        self._equal = [(at, other) for at, other in own if at != other]
        self._places = [first[Var(name)] for name in output]

    def move(self, triple: Triple, time: Term, count: int) -> None:
        """Add (1) or remove (-1) the stamp of a triple."""
        cells = (*triple, time)
        for at, term in self._constants:
            if cells[at] != term:
                return
        for at, other in self._equal:
            if cells[at] != cells[other]:
                return
        add(self.found, tuple([cells[at] for at in self._places]), count)


def stamp_rows(request: BgpRequest) -> StampRows | None:
    """The rows of a request that asks only for time stamps, each as a whole; ``None`` for any other request."""
    nodes = stamp_nodes(request.bgp)
    if nodes is None or request.conditions or not isinstance(nodes[0], Var):
        return None
    name, cells = nodes[0], nodes[-_CELLS:]
    return None if name in cells or name.name in request.output else StampRows(cells, request.output)
