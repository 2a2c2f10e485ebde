"""Datasets in memory: graphs with indexes (SPARQL 1.2, 13).

Terms are equal when their strings are equal (RDF 1.2 Concepts, 3.4: literal term equality), so ``"01"^^xsd:integer``
and ``"1"^^xsd:integer`` are two terms.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias

from streamgauge.model.terms import Term, Triple

Positions: TypeAlias = tuple[int, ...]
"""Positions of a triple, ascending: 0 subject, 1 predicate, 2 object."""

Index: TypeAlias = Mapping[Hashable, list[Triple]]
"""Triples by the terms at some positions: one term for one position, else a tuple of them."""

_NONE: Final[list[Triple]] = []


class IndexedGraph:
    """A graph whose indexes are built when they are first used; triples keep the order in which they came.

    With ``occurrences`` a triple that comes several times is there several times (a content that is a bag). The triples
    of a predicate are a graph by themselves (``of``), so that a pattern's index holds no other predicate's triples.
    """

    __slots__ = ("_indexes", "_nodes", "_occurrences", "_parts", "_present", "triples")

    def __init__(self, triples: Iterable[Triple], occurrences: bool = False) -> None:
        self.triples: list[Triple] = list(triples) if occurrences else list(dict.fromkeys(triples))
        self._occurrences = occurrences
        self._present: set[Triple] | None = None
        self._indexes: dict[Positions, dict[Hashable, list[Triple]]] = {}
        self._parts: dict[Term, IndexedGraph] | None = None
        self._nodes: frozenset[Term] | None = None

    @property
    def nodes(self) -> frozenset[Term]:
        """Every subject and object: the nodes of the graph (SPARQL 1.2, 18.4)."""
        if self._nodes is None:
            self._nodes = frozenset(node for subject, _, item in self.triples for node in (subject, item))
        return self._nodes

    def of(self, predicate: Term) -> "IndexedGraph":
        """The triples with a predicate."""
        if self._parts is None:
            self._parts = {str(name): _part(triples) for name, triples in _grouped(self.triples, (1,)).items()}
        return self._parts.get(predicate, _EMPTY)

    def index(self, positions: Positions) -> Index:
        """The triples by the terms at these positions; one entry, ``()``, for no position."""
        index = self._indexes.get(positions)
        if index is None:
            index = self._indexes[positions] = _grouped(self.triples, positions)
        return index

    def at(self, positions: Positions, key: Hashable) -> list[Triple]:
        """The triples with these terms at these positions, keyed as ``index`` does."""
        return self.index(positions).get(key, _NONE)

    def extend(self, triples: Iterable[Triple]) -> None:
        """Add triples, in the indexes that there are too."""
        if not self._occurrences:
            if self._present is None:
                self._present = set(self.triples)
            triples = [triple for triple in dict.fromkeys(triples) if triple not in self._present]
            self._present.update(triples)
        self._append(list(triples))

    def _append(self, triples: list[Triple]) -> None:
        self._nodes = None
        self.triples.extend(triples)
        for positions, index in self._indexes.items():
            for key, more in _grouped(triples, positions).items():
                if positions:
                    index.setdefault(key, []).extend(more)
        if self._parts is not None:
            for predicate, more in _grouped(triples, (1,)).items():
                part = self._parts.get(str(predicate))
                if part is None:
                    self._parts[str(predicate)] = _part(more)
                else:
                    part._append(more)

    def discard(self, triples: Iterable[Triple]) -> None:
        """Take away triples, of each one occurrence; in the indexes that there are too."""
        gone = Counter(triples)
        if self._present is not None:
            self._present -= gone.keys()
        self._remove(list(gone.elements()))

    def _remove(self, triples: list[Triple]) -> None:
        self._nodes = None
        _take(self.triples, triples)
        for positions, index in self._indexes.items():
            for key, less in _grouped(triples, positions).items() if positions else ():
                _take(index[key], less)
                if not index[key]:
                    del index[key]
        for predicate, less in _grouped(triples, (1,)).items() if self._parts is not None else ():
            assert self._parts is not None
            self._parts[str(predicate)]._remove(less)


def _part(triples: list[Triple]) -> IndexedGraph:
    return IndexedGraph(triples, occurrences=True)


def _grouped(triples: list[Triple], positions: Positions) -> dict[Hashable, list[Triple]]:
    if not positions:
        return {(): triples}
    index: defaultdict[Hashable, list[Triple]] = defaultdict(list)
    key = itemgetter(*positions)
    for triple in triples:
        index[key(triple)].append(triple)
    index.default_factory = None
    return index


def _take(triples: list[Triple], gone: list[Triple]) -> None:
    """Remove occurrences from a list: one by one where they are few, in one pass where they are many."""
    if len(gone) <= FEW:
        for triple in gone:
            triples.remove(triple)
        return
    left = Counter(gone)
    kept = []
    for triple in triples:
        if left.get(triple):
            left[triple] -= 1
        else:
            kept.append(triple)
    triples[:] = kept


FEW: Final = 4
"""Removals that are searched one by one, at the cost of a pass each."""
_EMPTY: Final = IndexedGraph(())


@dataclass(frozen=True, slots=True)
class Dataset:
    """A default graph and named graphs, by the IRI of their name as a term (SPARQL 1.2, 13)."""

    default: IndexedGraph
    named: Mapping[Term, IndexedGraph] = field(default_factory=dict)
