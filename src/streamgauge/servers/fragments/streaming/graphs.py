"""The data's own named graphs, as far as a query needs them: what GRAPH is answered over."""

from collections.abc import Iterable, Sequence
from typing import Final

from streamgauge.incremental.drivers.fetched import Holding
from streamgauge.incremental.pool import Pool
from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term, Triple
from streamgauge.query.rebuild import every_pattern
from streamgauge.servers.fragments.fetching.contract import SourceError
from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.streaming.evaluating import Named
from streamgauge.servers.fragments.streaming.parts import Read

MOST: Final = 500
"""Named graphs that a query may be over: ``GRAPH ?g`` is evaluated in each."""


def asks_graphs(pattern: al.Pattern) -> bool:
    """Whether GRAPH is anywhere in a pattern."""
    return any(isinstance(each, al.Graph) for each in every_pattern(pattern))


def named(reads: Sequence[Read]) -> Named:
    """The named graphs that sources have together, names in order; SourceError when they are too many."""
    found: dict[Term, set[Triple]] = {}
    for quad in (quad for read in reads for quad in read.named):
        found.setdefault(quad[3], set()).add(quad[:3])
    if len(found) > MOST:
        what = (
            f"{len(found)} named graphs have what it asks for: name the graph, or connect ?g; at most {MOST} are taken"
        )
        raise SourceError("GRAPH", what)
    return {name: frozenset(found[name]) for name in sorted(found)}


class Graphs:
    """Named graphs of sources, as triples that enter and leave a pool."""

    def __init__(self, pool: Pool, names: Iterable[Term]) -> None:
        self._held = {name: Holding(*pool.feeds(name)) for name in names}
        self._seen: dict[int, tuple[Quad, ...]] = {}

    def fetched(self, reads: Sequence[Read]) -> None:
        """What sources have now, all of it in graphs whose names are known."""
        for number, read in enumerate(reads):
            if self._seen.get(number) is read.named:
                continue
            self._seen[number] = read.named
            facts: dict[Term, list[Fact]] = {}
            for quad in read.named:
                facts.setdefault(quad[3], []).append(Fact(quad[:3]))
            for name, holding in self._held.items():
                holding.fetched(number, facts.get(name, ()), 0)
