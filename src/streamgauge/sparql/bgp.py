"""Datasets in memory: graphs with indexes (SPARQL 1.2, 13).

Terms are compared as strings (RDF 1.2 Concepts, 3.4: literal term equality), so ``"01"^^xsd:integer`` and
``"1"^^xsd:integer`` are two terms.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias

from streamgauge.model.terms import Term, Triple

Positions: TypeAlias = tuple[int, ...]
"""Positions in a triple, ascending: 0 subject, 1 predicate, 2 object."""

Index: TypeAlias = Mapping[Hashable, list[Triple]]
"""Triples by their terms at some positions: the key is a term for one position, else a tuple of terms."""

_NONE: Final[list[Triple]] = []


class IndexedGraph:
    """A graph that builds its indexes on first use and keeps triples in order of insertion.

    With ``occurrences`` it keeps repeated triples too, for contents that are bags. The triples of each predicate form a
    graph of their own (``of``), so that the index for a pattern contains no triples of other predicates.
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
        """The nodes of the graph: all subjects and objects (SPARQL 1.2, 18.4)."""
        if self._nodes is None:
            self._nodes = frozenset(node for subject, _, item in self.triples for node in (subject, item))
        return self._nodes

    def of(self, predicate: Term) -> "IndexedGraph":
        """The graph of the triples with this predicate."""
        if self._parts is None:
            # By predicate first: queries nearly always name it, and an index by subject over one predicate's triples
            # is smaller than one over all, and is built for the predicates in use only.
            self._parts = {str(name): _part(triples) for name, triples in _grouped(self.triples, (1,)).items()}
        return self._parts.get(predicate, _EMPTY)

    def index(self, positions: Positions) -> Index:
        """The index by the terms at these positions; without positions it has the single key ``()``."""
        index = self._indexes.get(positions)
        if index is None:
            index = self._indexes[positions] = _grouped(self.triples, positions)
        return index

    def at(self, positions: Positions, key: Hashable) -> list[Triple]:
        """The triples with these terms at these positions; ``key`` as in ``index``."""
        return self.index(positions).get(key, _NONE)

    def extend(self, triples: Iterable[Triple]) -> None:
        """Add triples, and update the existing indexes."""
        if not self._occurrences:
            # Only graphs that grow need a set of their triples; most are built once and read.
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
                # The index without positions is the list of triples itself, which was extended already.
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
        """Remove one occurrence of each of these triples, and update the existing indexes."""
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
                # An empty list would count as an entry where ``_cost`` divides triples by entries, so estimates would
                # drift while a window slides.
                if not index[key]:
                    del index[key]
        for predicate, less in _grouped(triples, (1,)).items() if self._parts is not None else ():
            assert self._parts is not None
            self._parts[str(predicate)]._remove(less)


def _part(triples: list[Triple]) -> IndexedGraph:
    # The whole graph has already dropped repetitions, unless it keeps them.
    return IndexedGraph(triples, occurrences=True)


def _grouped(triples: list[Triple], positions: Positions) -> dict[Hashable, list[Triple]]:
    if not positions:
        return {(): triples}
    index: defaultdict[Hashable, list[Triple]] = defaultdict(list)
    # One position gives the term itself, several a tuple: the keys of ``Index``.
    key = itemgetter(*positions)
    for triple in triples:
        index[key(triple)].append(triple)
    # From now on a plain mapping, to which no look-up may add a key.
    index.default_factory = None
    return index


def _take(triples: list[Triple], gone: list[Triple]) -> None:
    """Remove occurrences from a list: one by one if they are few, otherwise in one pass."""
    if len(gone) <= MAX_SINGLE_REMOVALS:
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


MAX_SINGLE_REMOVALS: Final = 4
"""Removals up to which each is searched in a pass of its own (``list.remove`` runs in C)."""
_EMPTY: Final = IndexedGraph(())


@dataclass(frozen=True, slots=True)
class Dataset:
    """A default graph, and named graphs by their name as a term (SPARQL 1.2, 13)."""

    default: IndexedGraph
    named: Mapping[Term, IndexedGraph] = field(default_factory=dict)
