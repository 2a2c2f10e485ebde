"""A second plan for patterns under a comparison, used once a key has many rows: parts sorted by the compared value.

``?s :in ?r ; :value ?v . ?o :in ?r ; :value ?w FILTER(?v - ?w > 98)`` is joined triple by triple, which is cheapest if
a room has few subjects: each pair is tested. If all subjects are in one room, each triple meets all others. Then the
parts ``?s :in ?r ; :value ?v`` and ``?o :in ?r ; :value ?w`` are joined separately, and their rows are joined under
the ``Band`` (``band_join``), which sorts the rows of a room by ?v and by ?w.

A worked example, with FEW_ROWS = 2: (a in r), (a value 1), (b in r), (b value 100) enter, and the first plan
finds the pair (b, a). Then (c in r) enters: now r has three subjects. The parts take over the five triples, and their
join finds (b, a) again, which is skipped because it has been emitted. Then (c value 0) enters, and the join finds
(b, c) only.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

from streamgauge.incremental.band_join import BandJoin
from streamgauge.incremental.bands import Band, band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import is_fast, variables_of
from streamgauge.incremental.crossovers import FEW_ROWS, SKEW_CHUNK
from streamgauge.incremental.operators import Bag, LeafSource, Pick, add_all
from streamgauge.incremental.plan import BgpRequest, TripleRelation, pushable, stars
from streamgauge.model.algebra import Expression, Var, triple_variables
from streamgauge.model.terms import Triple

if TYPE_CHECKING:
    from streamgauge.incremental.window_joins import Joins


@dataclass(frozen=True, slots=True)
class TripleTable:
    """An index of the triples of a relation: from the columns ``bound`` to the others, or the set of all columns.

    One column is a term, several are a tuple.
    """

    relation: TripleRelation
    bound: tuple[int, ...]
    index: Any

    @property
    def by_object(self) -> bool:
        """Whether the key is the object alone, which many triples may share."""
        # Subjects rarely have many triples of one predicate, objects (rooms, classes) often do; only these are checked
        # for skew.
        return self.bound == (2,) != self.relation.columns

    def triples(self) -> Iterator[Triple]:
        """Iterate over the distinct triples of the relation."""
        relation, bound = self.relation, self.bound
        rest = tuple(at for at in relation.columns if at not in bound)
        whole = not bound or not rest
        rows = _tuples(self.index, len(relation.columns)) if whole else _rows(self.index, len(bound), len(rest))
        columns = relation.columns if whole else bound + rest
        for row in rows:
            known = dict(zip(columns, row, strict=True))
            nodes = (known[relation.equal[at]] if c is None else c for at, c in enumerate(relation.constants))
            yield tuple(nodes)  # type: ignore[misc]


def _rows(index: dict[Any, Collection[Any]], bound: int, rest: int) -> Iterator[tuple[Any, ...]]:
    """Rows of a key and one of its values."""
    for key, values in index.items():
        before = (key,) if bound == 1 else key
        for value in _tuples(values, rest):
            yield (*before, *value)


def _tuples(values: Collection[Any], width: int) -> Iterable[tuple[Any, ...]]:
    return zip(values, strict=True) if width == 1 else values


def _held(joins: "Joins") -> Iterator[Triple]:
    """The triples in the joins, with their copies."""
    counts, more = joins.indexes["counts"], joins.indexes["more"]
    for triple in dict.fromkeys(chain(counts, *(table.triples() for table in joins.tables))):
        yield from repeat(triple, counts[triple] if triple in counts else 1 + more.get(triple, 0))


@dataclass(frozen=True, slots=True)
class BandParts:
    """Two parts of a pattern, the band between their rows, and the conditions on rows of both."""

    left: BgpRequest
    right: BgpRequest
    band: Band
    late: tuple[Expression, ...]


def band_parts(request: BgpRequest) -> BandParts | None:
    """The two parts of a pattern that share only objects and are compared; ``None`` for any other pattern."""
    parts = stars(request.bgp) if request.conditions and not isinstance(request.graph, Var) else ()
    if len(parts) != 2:
        return None
    names = [
        tuple(dict.fromkeys(v.name for pattern in part.patterns for v in triple_variables(pattern))) for part in parts
    ]
    inner = [tuple(condition for condition in request.conditions if pushable(condition, part)) for part in parts]
    band_, late = band([condition for condition in request.conditions if condition not in inner[0] + inner[1]], *names)
    if band_ is None or not set(names[0]) & set(names[1]) or not all(map(is_fast, late)):
        return None
    kept = {*request.output, *(name for condition in late for name in variables_of(condition)), band_.left, band_.right}
    kept |= set(names[0]) & set(names[1])
    left, right = (
        BgpRequest(request.graph, part, tested, tuple(name for name in own if name in kept))
        for part, tested, own in zip(parts, inner, names, strict=True)
    )
    return BandParts(left, right, band_, tuple(late))


class SkewedJoins:
    """The joins of one pattern over a graph by whichever plan is in use; changes are added to ``bag``.

    ``generate`` compiles joins; ``bags`` lists the bags that may hold changes, to which the parts add theirs.
    """

    def __init__(
        self,
        request: BgpRequest,
        bag: Bag,
        parts: BandParts,
        generate: "Callable[[Sequence[tuple[BgpRequest, Bag]]], Joins]",
        bags: list[Bag],
    ) -> None:
        self._parts, self._generate, self._bags, self._output = parts, generate, bags, request.output
        self._joins = generate([(request, bag)])
        self._join: Pick | None = None
        self._operator: BandJoin | None = None
        self._waiting: tuple[Bag, Bag] = ({}, {})
        self._entered, self._next = 0, FEW_ROWS

    @property
    def woken(self) -> bool:
        """Whether the second plan is in use."""
        return self._join is not None

    @property
    def indexes(self) -> dict[str, Any]:
        """The indexes of the plan in use, including the rows that its join remembers."""
        tables = () if self._operator is None else self._operator.tables()
        return self._joins.indexes | {f"rows {at}": table for at, table in enumerate(tables)}

    def add_to(self, change: Bag) -> None:
        """Add the change found by the second plan."""
        if self._join is not None and any(self._waiting):
            add_all(change, self._join.pull())

    def enter(self, triples: Iterable[Triple]) -> None:
        """Add triples; from time to time the indexes are checked for skew."""
        coming = (triples,) if isinstance(triples, tuple) and len(triples) <= SKEW_CHUNK else _chunks(triples)
        for some in coming:
            self._joins.enter(some)
            self._entered += len(some)
            if self._entered >= self._next:
                self._look()

    def leave(self, triples: Iterable[Triple]) -> None:
        """Remove triples from the indexes."""
        self._joins.leave(triples)

    def _look(self) -> None:
        indexes = [] if self.woken else [table.index for table in self._joins.tables if table.by_object]
        # The next look at the indexes comes after as many triples as they have keys, so that looking costs O(1) a
        # triple.
        self._next = self._entered + FEW_ROWS + sum(map(len, indexes))
        if any(len(values) > FEW_ROWS for index in indexes for values in index.values()):
            self._wake()

    def _wake(self) -> None:
        """Switch to the second plan; solutions of the current content have been emitted already."""
        joins = list(_held(self._joins))
        left, right = self._waiting
        parts = self._parts
        self._joins = self._generate([(parts.left, left), (parts.right, right)])
        sides = LeafSource(_taker(left), parts.left.output), LeafSource(_taker(right), parts.right.output)
        read = (name for condition in parts.late for name in variables_of(condition))
        kept = frozenset((*self._output, *read))
        self._operator = BandJoin(sides[0], sides[1], parts.band, kept, EvaluationBudget(), parts.late)
        self._join = Pick(self._operator, self._output)
        self._joins.enter(joins)
        # The first pull finds everything that the first plan has emitted, and is dropped.
        self._join.pull()
        self._bags += self._waiting


def _chunks(triples: Iterable[Triple]) -> Iterator[tuple[Triple, ...]]:
    coming = iter(triples)
    while some := tuple(islice(coming, SKEW_CHUNK)):
        yield some


def _taker(bag: Bag) -> Callable[[], Bag]:
    def take() -> Bag:
        change = bag.copy()
        bag.clear()
        return change

    return take
