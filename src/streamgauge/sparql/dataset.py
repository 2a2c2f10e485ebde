"""RDF datasets in memory: graphs of term strings, with an index for every choice of known positions.

Terms are equal when their strings are equal (RDF 1.1 Concepts, 3.3: literal term equality), so ``"01"^^xsd:integer``
and ``"1"^^xsd:integer`` are two terms.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from streamgauge.model.terms import Term, Triple

Positions: TypeAlias = tuple[int, ...]
"""Positions of a triple, ascending: 0 subject, 1 predicate, 2 object."""

Index: TypeAlias = Mapping[Hashable, list[Triple]]
"""Triples by the terms at some positions: one term for one position, else a tuple of them."""

_NONE: Final[list[Triple]] = []


class IndexedGraph:
    """A graph whose indexes are built when they are first used; triples keep the order in which they came.

    With ``occurrences`` a triple that comes several times is there several times (a content that is a bag).
    """

    __slots__ = ("_indexes", "_nodes", "triples")

    def __init__(self, triples: Iterable[Triple], occurrences: bool = False) -> None:
        self.triples: list[Triple] = list(triples) if occurrences else list(dict.fromkeys(triples))
        self._indexes: dict[Positions, dict[Hashable, list[Triple]]] = {}
        self._nodes: frozenset[Term] | None = None

    @property
    def nodes(self) -> frozenset[Term]:
        """Every subject and object: the nodes of the graph (SPARQL 1.1, 18.4)."""
        if self._nodes is None:
            self._nodes = frozenset(node for subject, _, item in self.triples for node in (subject, item))
        return self._nodes

    def index(self, positions: Positions) -> Index:
        """The triples by the terms at these positions; one entry, ``()``, for no position."""
        found = self._indexes.get(positions)
        if found is None:
            found = self._indexes[positions] = self._built(positions)
        return found

    def at(self, positions: Positions, key: Hashable) -> list[Triple]:
        """The triples with these terms at these positions, keyed as ``index`` does."""
        return self.index(positions).get(key, _NONE)

    def _built(self, positions: Positions) -> dict[Hashable, list[Triple]]:
        if not positions:
            return {(): self.triples}
        index: dict[Hashable, list[Triple]] = {}
        if len(positions) == 1:
            (position,) = positions
            for triple in self.triples:
                index.setdefault(triple[position], []).append(triple)
        elif len(positions) == 2:
            one, two = positions
            for triple in self.triples:
                index.setdefault((triple[one], triple[two]), []).append(triple)
        else:
            for triple in self.triples:
                index.setdefault(triple, []).append(triple)
        return index


@dataclass(frozen=True, slots=True)
class Dataset:
    """A default graph and named graphs, by the IRI of their name as a term (SPARQL 1.1, 13)."""

    default: IndexedGraph
    named: Mapping[Term, IndexedGraph] = field(default_factory=dict)
