"""Basic graph patterns and property paths over a graph, joined in a good order (SPARQL 1.2, 18.3 and 18.4).

Patterns are joined one by one through the graph's indexes, in an order chosen greedily when a block is planned: next is
the pattern that shares a variable with those before and matches the fewest triples. Paths come last, each after the
patterns that bind one of its ends. ``{ ?obs :procedure ?s ; :result ?r . ?r :floatValue ?v }`` over 2,000 observations:
the first pattern reads 2,000 triples, the others one triple per solution, through the index by subject of a predicate.

The remaining patterns depend only on the variables that they share with those before. If many solutions agree in these,
the rest is evaluated once per distinct combination (``_Rest``): in ``{ ?a :by ?s ; :value ?v . ?b :by ?s ; :value ?w
}`` over 10 stations with 100 observations each, the second half is evaluated for 10 stations instead of 1,000
observations, and then joined.

Inside a block a solution is a tuple of terms, one per variable.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeGuard

from streamgauge.model.algebra import (
    BGP,
    Expression,
    Node,
    Path,
    Pattern,
    TriplePattern,
    Var,
    expression_variables,
    triple_variables,
)
from streamgauge.model.terms import Term, Triple
from streamgauge.sparql.bgp import IndexedGraph
from streamgauge.sparql.expression import is_pure, row_condition
from streamgauge.sparql.paths import Ends, PathWalks

Solution: TypeAlias = dict[str, Term]
"""A solution mapping: the names of bound variables to terms."""

_Tuple: TypeAlias = tuple[Term, ...]
_Step: TypeAlias = Callable[[Iterable[_Tuple]], Iterator[_Tuple]]
"""Extends solutions by one pattern of a block, or by all remaining ones."""

LAZY_ROWS: Final = 64
"""Solutions that are extended lazily one by one, so that ASK, EXISTS and LIMIT do not read everything."""
REMEMBERED_TERMS: Final = 1 << 13
"""Terms whose test by a condition is remembered."""
CHUNK_ROWS: Final = 1 << 15
"""Solutions that are grouped together by the terms in which they agree."""


class Block:
    """A basic graph pattern over one graph, planned for solutions that bind the variables ``bound``."""

    def __init__(
        self,
        block: BGP,
        graph: IndexedGraph,
        fixed: Mapping[str, Term],
        bound: Iterable[str] = (),
        conditions: Iterable[Expression] = (),
    ) -> None:
        """``fixed`` are the substitutions of EXISTS (18.6); ``bound`` are the variables bound before.

        ``conditions`` are those of a FILTER around the block, without EXISTS; each is tested as soon as its variables
        are bound.
        """
        patterns = [_substituted(triple, fixed) for triple in block.patterns]
        used = {variable.name for triple in patterns for variable in triple_variables(triple)}
        self._known = tuple(name for name in bound if name in used)
        ordered = list(_ordered(patterns, graph, set(self._known)))
        tests = [_Test(condition, _read_variables(condition) & used) for condition in conditions]
        self._run, names = _planned(ordered, graph, self._known, tests)
        self._names = tuple(name for name in names if not name.startswith("_:"))
        self._hidden = len(self._names) < len(names)
        self._visible = [place for place, name in enumerate(names) if not name.startswith("_:")]

    def solutions(self, start: Solution) -> Iterator[Solution]:
        """The solutions that extend ``start``, with their multiplicity, without the blank nodes of the query."""
        rows = self._run((tuple([start[name] for name in self._known]),))
        names = self._names
        if self._hidden:
            visible = self._visible
            rows = (tuple([row[place] for place in visible]) for row in rows)
        if not start:
            return (dict(zip(names, row, strict=True)) for row in rows)
        return ({**start, **dict(zip(names, row, strict=True))} for row in rows)


@lru_cache(maxsize=4096)
def _read_variables(condition: Expression) -> frozenset[str]:
    """The names of the variables that a condition reads; blocks over many contents have the same conditions."""
    return frozenset(var.name for var in expression_variables(condition))


def _substituted(triple: TriplePattern, fixed: Mapping[str, Term]) -> TriplePattern:
    if not fixed:
        return triple

    def put(node: Node) -> Node:
        return fixed.get(node.name, node) if isinstance(node, Var) else node

    middle = triple.predicate
    return TriplePattern(put(triple.subject), put(middle) if isinstance(middle, Var) else middle, put(triple.object))


# The order of patterns


def _is_plain(triple: TriplePattern) -> bool:
    return isinstance(triple.predicate, Var | str)


def _ordered(patterns: Sequence[TriplePattern], graph: IndexedGraph, bound: set[str]) -> Iterator[TriplePattern]:
    """The patterns in their order of evaluation."""
    known = set(bound)
    plain = [triple for triple in patterns if _is_plain(triple)]
    paths = [triple for triple in patterns if not _is_plain(triple)]
    for left, cost in ((plain, _cost), (paths, _open_ends)):
        while left:
            # An estimate may build an index, which the last pattern may not need.
            best = min(left, key=lambda triple: cost(triple, graph, known)) if len(left) > 1 else left[0]
            left.remove(best)
            yield best
            known.update(var.name for var in triple_variables(best))


def _open_ends(triple: TriplePattern, _graph: IndexedGraph, known: set[str]) -> tuple[bool, float]:
    # Both ends open is worst, since the path is then walked from every node of the graph.
    open_ends = [isinstance(node, Var) and node.name not in known for node in (triple.subject, triple.object)]
    return all(open_ends), sum(open_ends)


def _cost(triple: TriplePattern, graph: IndexedGraph, known: set[str]) -> tuple[bool, float]:
    """(Whether the pattern shares no variable with the bound ones, triples that it reads per solution).

    The estimate is exact for constants, and the average size of an index entry for bound variables.
    """
    nodes, graph = _looked_up(triple, graph)
    constant = [place for place, node in nodes if isinstance(node, str)]
    places = [place for place, node in nodes if isinstance(node, str) or node.name in known]
    looked = len(graph.at(tuple(constant), _key([node for _, node in nodes if isinstance(node, str)])))
    if places == constant:
        # True sorts after False: a pattern without a shared variable is a product with all solutions so far, and comes
        # last however few triples it matches.
        return bool(known), looked
    # Worked example: 2,000 triples of :value over 100 sensors. With ?sensor bound the index by subject has 100
    # entries, so a look-up reads 20 triples on average.
    return False, min(looked, len(graph.triples) / (len(graph.index(tuple(places))) or 1))


def _looked_up(triple: TriplePattern, graph: IndexedGraph) -> tuple[list[tuple[int, Node]], IndexedGraph]:
    """The nodes of a pattern with their positions, and the graph to search: that of its predicate if it is constant."""
    middle = triple.predicate
    assert isinstance(middle, Var | str)
    if isinstance(middle, str):
        return [(0, triple.subject), (2, triple.object)], graph.of(middle)
    return [(0, triple.subject), (1, middle), (2, triple.object)], graph


def _key(terms: Sequence[Term]) -> Any:
    return terms[0] if len(terms) == 1 else tuple(terms)


# Steps


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition, with its variables that the block binds."""

    condition: Expression
    variables: frozenset[str]

    def on(self, names: tuple[str, ...]) -> Callable[[_Tuple], bool]:
        """The compiled test for solutions with these variables."""
        if len(self.variables) != 1 or not is_pure(self.condition):
            return row_condition(self.condition, names)
        (name,) = self.variables
        # Remembering is correct for pure conditions only: RAND or NOW would give the answer of another solution.
        place, holds = names.index(name), _term_test(self.condition, name)
        return lambda row: holds(row[place])


@lru_cache(maxsize=16)
def _term_test(condition: Expression, name: str) -> Callable[[Term], bool]:
    """The test of a condition on one variable, which remembers terms: the contents of windows share most of them."""
    holds = row_condition(condition, (name,))
    return lru_cache(maxsize=REMEMBERED_TERMS)(lambda term: holds((term,)))


def _planned(
    patterns: Sequence[TriplePattern], graph: IndexedGraph, known: Sequence[str], tests: Sequence[_Test]
) -> tuple[_Step, tuple[str, ...]]:
    """The step for all patterns in this order, and the variables of its solutions.

    Each test is applied as soon as its variables are bound.
    """
    names = tuple(known)
    ready = [test.on(names) for test in tests if test.variables.issubset(names)]
    if ready:
        tests = [test for test in tests if not test.variables.issubset(names)]
        step, names = _planned(patterns, graph, known, tests)
        return lambda rows: step(reduce(_kept, ready, iter(rows))), names
    if not patterns:
        return iter, names
    first, *others = patterns
    slots = {name: place for place, name in enumerate(names)}
    step = _step(first, graph, slots)
    names = (*names, *(var.name for var in dict.fromkeys(triple_variables(first)) if var.name not in slots))
    rest, all_names = _planned(others, graph, names, tests)
    # A single remaining pattern is one look-up per solution already.
    if len(others) > 1:
        needed = {var.name for triple in others for var in triple_variables(triple)}
        shared = [place for place, name in enumerate(names) if name in needed]
        # Without shared variables nothing could be grouped; with all of them, no two different solutions would agree.
        if 0 < len(shared) < len(names):
            rest = _Rest(others, graph, names, shared, tests, rest)
    following = rest
    return lambda rows: following(step(rows)), all_names


def _kept(rows: Iterable[_Tuple], holds: Callable[[_Tuple], bool]) -> Iterable[_Tuple]:
    return filter(holds, rows)


class _Rest:
    """The remaining patterns, evaluated once for all solutions that agree in the shared variables."""

    def __init__(
        self, patterns: Sequence[TriplePattern], graph: IndexedGraph, names: tuple[str, ...], shared: list[int],
        tests: Sequence[_Test], step: _Step,
    ) -> None:  # fmt: skip
        """``names`` are the variables of solutions, ``shared`` the places of those in the patterns.

        ``step`` extends solutions one by one, with its tests.
        """
        self._patterns, self._graph, self._names, self._shared = patterns, graph, names, shared
        self._tests, self._one_by_one = tests, step

    def __call__(self, rows: Iterable[_Tuple]) -> Iterator[_Tuple]:
        rows = iter(rows)
        yield from self._one_by_one(islice(rows, LAZY_ROWS))
        # In chunks, because all solutions of a large join at once would take the memory that the lazy steps avoid.
        chunk = list(islice(rows, CHUNK_ROWS))
        if not chunk:
            return
        key = _picked(self._shared)
        # Grouping pays only if solutions agree: with more than half of them distinct it would cost more than it saves.
        if 2 * len(set(map(key, chunk))) > len(chunk):
            yield from self._one_by_one(chain(chunk, rows))
            return
        shared_names = tuple(self._names[place] for place in self._shared)
        outside = frozenset(self._names) - frozenset(shared_names)
        # A condition that reads a variable outside of the shared ones differs between solutions that agree in these,
        # so it cannot be tested in the part that they have in common; it follows after the join.
        inner = [test for test in self._tests if test.variables.isdisjoint(outside)]
        step, inner_names = _planned(self._patterns, self._graph, shared_names, inner)
        all_names = self._names + inner_names[len(shared_names) :]
        outer = [test.on(all_names) for test in self._tests if not test.variables.isdisjoint(outside)]
        extensions: dict[_Tuple, list[_Tuple]] = {}
        width = len(self._shared)
        while chunk:
            # A dict keeps their order, so that equal inputs give answers in an equal order.
            fresh = dict.fromkeys(shared for shared in map(key, chunk) if shared not in extensions)
            # Also for those without any extension: else the next chunk would search for them again.
            extensions.update((shared, []) for shared in fresh)
            for row in step(fresh):
                extensions[row[:width]].append(row[width:])
            joined: Iterable[_Tuple] = (row + extension for row in chunk for extension in extensions[key(row)])
            yield from reduce(_kept, outer, joined)
            chunk = list(islice(rows, CHUNK_ROWS))


def _picked(places: Sequence[int]) -> Callable[[_Tuple], _Tuple]:
    if len(places) == 1:
        (place,) = places
        return lambda row: (row[place],)
    return itemgetter(*places)


def _step(triple: TriplePattern, graph: IndexedGraph, slots: Mapping[str, int]) -> _Step:
    """The step of one pattern for solutions with the variables of ``slots`` at these places."""
    if not _is_plain(triple):
        return _path_step(triple, graph, slots)
    nodes, graph = _looked_up(triple, graph)
    known = [(place, node) for place, node in nodes if isinstance(node, str) or node.name in slots]
    candidates = _candidates(known, graph, slots)
    first: dict[str, int] = {}
    same = []
    for place, node in nodes:
        if isinstance(node, Var) and node.name not in slots and first.setdefault(node.name, place) != place:
            same.append((first[node.name], place))
    return _extending(candidates, same, list(first.values()))


def _candidates(
    known: Sequence[tuple[int, Node]], graph: IndexedGraph, slots: Mapping[str, int]
) -> Callable[[_Tuple], Sequence[Triple]]:
    """A function from a solution to the triples that agree with it at the known positions."""
    places = tuple(place for place, _ in known)
    nodes = [node for _, node in known]
    taken = [slots[node.name] for node in nodes if isinstance(node, Var)]
    if not taken:
        triples = graph.at(places, _key([node for node in nodes if isinstance(node, str)]))
        return lambda _row: triples
    get = graph.index(places).get
    if len(nodes) == 1:
        (slot,) = taken
        return lambda row: get(row[slot], ())
    if len(taken) == len(nodes):
        pick = itemgetter(*taken)
        return lambda row: get(pick(row), ())

    def mixed(row: _Tuple) -> Sequence[Triple]:
        return get(tuple([row[slots[node.name]] if isinstance(node, Var) else node for node in nodes]), ())

    return mixed


def _extending(
    candidates: Callable[[_Tuple], Sequence[Triple]], same: Sequence[tuple[int, int]], fresh: Sequence[int]
) -> _Step:
    """The step that binds variables at the ``fresh`` positions; ``same`` are pairs of positions of one variable."""
    if same:
        matching = candidates

        def equal(row: _Tuple) -> Sequence[Triple]:
            return [triple for triple in matching(row) if all(triple[one] == triple[two] for one, two in same)]

        candidates = equal
    if not fresh:
        # In a bag a triple may occur more than once, and each occurrence is a solution.
        return lambda rows: chain.from_iterable([row] * len(candidates(row)) for row in rows)
    if len(fresh) == 1:
        (place,) = fresh
        return lambda rows: ((*row, triple[place]) for row in rows for triple in candidates(row))
    if len(fresh) == 2:
        place, other = fresh
        return lambda rows: ((*row, triple[place], triple[other]) for row in rows for triple in candidates(row))
    # All three positions are fresh, so the triple itself is what the solution gains.
    return lambda rows: (row + triple for row in rows for triple in candidates(row))


# Paths


def _path_step(triple: TriplePattern, graph: IndexedGraph, slots: Mapping[str, int]) -> _Step:
    path, subject, item = triple.predicate, triple.subject, triple.object
    assert not isinstance(path, Var)
    walks = PathWalks(graph)
    if isinstance(subject, str):
        far = item if isinstance(item, str) else None
        # From a constant: one walk serves all solutions.
        ends = walks.ends(path, subject, True, True, far)
        return _walked(lambda _row: ends, item, slots)
    if isinstance(item, str):
        ends = walks.ends(path, item, False, True, None)
        return _walked(lambda _row: ends, subject, slots)
    # From the end that is bound, the subject where both are; ``_everywhere`` has neither.
    for start, other, forward in ((subject, item, True), (item, subject, False)):
        if start.name in slots:
            # Each start is walked once, as many solutions may arrive at the same node.
            slot, known = slots[start.name], dict[Term, Ends]()

            def from_variable(row: _Tuple, slot: int = slot, forward: bool = forward) -> Ends:
                node = row[slot]
                if node not in known:  # noqa: B023
                    known[node] = walks.ends(path, node, forward, False, None)  # noqa: B023
                return known[node]  # noqa: B023

            return _walked(from_variable, other, slots)
    return _everywhere(walks, path, subject == item)


def _walked(ends: Callable[[_Tuple], Ends], other: Node, slots: Mapping[str, int]) -> _Step:
    """The step that extends solutions by the ends of a path, or keeps those whose other end is among them."""
    if isinstance(other, str):
        return lambda rows: chain.from_iterable([row] * ends(row).get(other, 0) for row in rows)
    if other.name in slots:
        slot = slots[other.name]
        return lambda rows: chain.from_iterable([row] * ends(row).get(row[slot], 0) for row in rows)
    return lambda rows: (
        extended for row in rows for end, count in ends(row).items() for extended in [(*row, end)] * count
    )


def _everywhere(walks: PathWalks, path: Path, loop: bool) -> _Step:
    """The step that extends solutions by all pairs of ends of a path, or by nodes for a ``loop`` (?x path ?x)."""
    pairs: list[_Tuple] | None = None

    def between() -> Iterator[_Tuple]:
        # Sorted, because the order of a set of strings changes from process to process.
        for start in sorted(walks.graph.nodes):
            for end, count in walks.ends(path, start, True, False, None).items():
                if not loop or start == end:
                    yield from [(start,) if loop else (start, end)] * count

    def step(rows: Iterable[_Tuple]) -> Iterator[_Tuple]:
        nonlocal pairs
        for row in rows:
            if pairs is None:
                pairs = list(between())
            for pair in pairs:
                yield row + pair

    return step


def is_plain_block(pattern: Pattern) -> TypeGuard[BGP]:
    """Whether a pattern is a basic graph pattern without paths, which can be matched from the other side's terms."""
    return isinstance(pattern, BGP) and all(isinstance(pattern.predicate, Var | str) for pattern in pattern.patterns)


def block_extensions(
    block: BGP, graph: IndexedGraph, fixed: Mapping[str, Term], shared: Sequence[str]
) -> Callable[[Solution], Iterator[Solution]]:
    """A function from a solution to its merges with a block's compatible solutions, matched from its shared terms."""
    blocks: dict[tuple[str, ...], Block] = {}

    def extended(solution: Solution) -> Iterator[Solution]:
        # A plan per set of bound variables: after OPTIONAL or UNION solutions differ in these.
        bound = tuple(name for name in shared if name in solution)
        if bound not in blocks:
            blocks[bound] = Block(block, graph, fixed, bound)
        return blocks[bound].solutions(solution)

    return extended
