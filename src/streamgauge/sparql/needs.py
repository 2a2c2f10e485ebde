"""The facts that a pattern can match, fetched by lookups from known terms, so that evaluation needs no others.

A pattern is walked from left to right with partial solutions: every solution of the whole pattern extends one of them.
Each triple pattern is looked up with the terms that they bind, and the results are collected:
``{ ?x :knows <b> OPTIONAL { ?x :age ?n } }`` looks up who knows <b>, then the age of each. OPTIONAL, MINUS and EXISTS
are looked up with the variables that their left side binds in every solution only, because a term from further outside
could hide that the right side has a solution (SPARQL 1.1, 18.6). Aggregates and LIMIT start from nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from typing import Final, TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import NOT_HERE, apart, question
from streamgauge.model.terms import Term, Triple, is_literal
from streamgauge.query.traversal import bound, exists_patterns, is_subquery, needs_triple
from streamgauge.query.updates import GraphNames
from streamgauge.sparql.algebra import Partners, inline, joined, merges
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.blocks import Solution, is_plain_block

Facts: TypeAlias = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
"""A lookup: the facts with these terms, ``None`` for any; a named graph is part of the subject (``question``)."""


class TooManySolutionsError(ValueError):
    """A pattern has more solutions, or reads more facts, than allowed."""


class Looks:
    """A budget of facts that may be read, shared by all lookups of one request."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def spend(self, number: int) -> None:
        """Spend ``number`` of the budget; TooManySolutionsError if it is exceeded."""
        self._left -= number
        if self._left < 0:
            raise TooManySolutionsError(
                f"WHERE reads more than {self._limit} facts: use more constants in its patterns"
            )


_Known: TypeAlias = Sequence[Solution]
"""Partial solutions."""
_UNIT: Final[_Known] = ({},)
_Match: TypeAlias = tuple[Term | None, Triple]
"""The name of a graph, ``None`` for the default graph, and a triple in it."""


def is_plain(pattern: al.Pattern) -> bool:
    """Whether a pattern's partial solutions are its solutions: only triple patterns without paths, joins and GRAPH."""
    match pattern:
        case al.BGP():
            return is_plain_block(pattern)
        case al.Join(left=left, right=right):
            return is_plain(left) and is_plain(right)
        case al.Graph(pattern=inner):
            return needs_triple(inner) and is_plain(inner)
        case _:
            return False


@dataclass
class Needs:
    """Looks up in ``facts`` what patterns can match over ``graphs``, with at most ``most`` partial solutions at a time.

    Each lookup and each fact that it returns counts against ``looks``, also if it is answered from the cache.
    """

    facts: Facts
    graphs: GraphNames
    most: int
    looks: Looks
    default: dict[Triple, None] = field(default_factory=dict)
    named: dict[Term, dict[Triple, None]] = field(default_factory=dict)
    _answers: dict[tuple[Node | None, Term | None, Term | None, Term | None], list[_Match]] = field(
        default_factory=dict
    )
    _hidden: Iterator[int] = field(default_factory=count)

    def dataset(self) -> Dataset:
        """The dataset of all facts fetched so far."""
        named = {name: IndexedGraph(triples) for name, triples in self.named.items()}
        return Dataset(IndexedGraph(self.default), named)

    def of(self, pattern: al.Pattern, known: _Known = _UNIT, graph: Node | None = None) -> _Known:
        """Fetch what a pattern in a graph can match given partial solutions; the extended partial solutions."""
        match pattern:
            case al.BGP(patterns=patterns):
                return self._block(patterns, known, graph)
            case al.Join(left=left, right=right):
                # A subquery binds nothing for the other side, so the other side goes first and restricts the subquery.
                first, second = (right, left) if is_subquery(left) else (left, right)
                return self.of(second, self.of(first, known, graph), graph)
            case al.Union(left=left, right=right):
                return [*self.of(left, known, graph), *self.of(right, known, graph)]
            case al.Values(variables=variables):
                partners = Partners(inline(pattern, {}), [var.name for var in variables])
                return self._bounded(joined(known, merges(partners)))
            case al.Graph(name=name, pattern=inner):
                if not needs_triple(inner):
                    known = self._existing(name, known)
                return self.of(inner, known, name)
            case al.Group(pattern=inner) | al.Slice(pattern=inner):
                self.of(inner, _UNIT, graph)
                self._tested(pattern, inner, _UNIT, graph)
                return known
            case al.Project(pattern=inner, variables=variables):
                self.of(inner, _cut(known, [var.name for var in variables]), graph)
                return known
        return self._around(pattern, known, graph)

    def _around(
        self,
        pattern: al.LeftJoin | al.Minus | al.Filter | al.Extend | al.Distinct | al.Reduced | al.OrderBy,
        known: _Known,
        graph: Node | None,
    ) -> _Known:
        """``of`` for an operator whose solutions extend those of its left or only operand."""
        inner = pattern.left if isinstance(pattern, al.LeftJoin | al.Minus) else pattern.pattern
        solutions = self.of(inner, known, graph)
        if isinstance(pattern, al.LeftJoin | al.Minus):
            self.of(pattern.right, self._inside(inner, solutions, graph), graph)
        self._tested(pattern, inner, solutions, graph)
        return solutions

    def _tested(self, pattern: al.Pattern, inner: al.Pattern, solutions: _Known, graph: Node | None) -> None:
        """Fetch what EXISTS in the expressions of a pattern can match."""
        for tested in exists_patterns(pattern):
            self.of(tested, self._inside(inner, solutions, graph), graph)

    def _inside(self, left: al.Pattern, solutions: _Known, graph: Node | None) -> _Known:
        return _cut(solutions, bound(left) | ({graph.name} if isinstance(graph, Var) else frozenset()))

    # Triple patterns

    def _block(self, patterns: Sequence[TriplePattern], known: _Known, graph: Node | None) -> _Known:
        """The partial solutions extended by the patterns, those with the most known terms first."""
        left = list(patterns)
        while left:
            # Only what every partial solution binds: after UNION some leave variables unbound.
            names = frozenset.intersection(*map(frozenset, known)) if known else frozenset()
            best = min(left, key=lambda triple: _open_places(triple, names))
            left.remove(best)
            known = self._triple(best, known, graph)
        return known

    def _triple(self, triple: TriplePattern, known: _Known, graph: Node | None) -> _Known:
        if isinstance(triple.predicate, Var | str):
            nodes = al.nodes_of(triple)
            return self._bounded(chain.from_iterable(self._extended(nodes, solution, graph) for solution in known))
        return self._path(triple.predicate, triple.subject, triple.object, known, graph)

    def _bounded(self, solutions: Iterable[Solution]) -> _Known:
        # One more than allowed shows that there are too many, before all of them are computed.
        known = list(islice(solutions, self.most + 1))
        if len(known) > self.most:
            raise TooManySolutionsError(
                f"WHERE has more than {self.most} solutions: use more constants in its patterns"
            )
        return known

    def _extended(self, nodes: tuple[Node, Node, Node], solution: Solution, graph: Node | None) -> Iterator[Solution]:
        """The merges of a partial solution with the triples that it matches."""
        terms = [solution.get(node.name) if isinstance(node, Var) else node for node in nodes]
        unbound = [
            (node.name, place)
            for place, node in enumerate((*nodes, graph))
            if isinstance(node, Var) and node.name not in solution
        ]
        for name, triple in self.matches(_in(graph, solution), *terms):
            match = (*triple, str(name))
            fresh = {variable: match[place] for variable, place in unbound}
            # A variable in several places has the same term there.
            if len(fresh) == len(unbound) or all(fresh[variable] == match[place] for variable, place in unbound):
                yield {**solution, **fresh}

    def matches(
        self, graph: Node | None, subject: Term | None, predicate: Term | None, end: Term | None
    ) -> Sequence[_Match]:
        """The triples with these terms in a graph (a variable for all named ones); each lookup is made once."""
        key = graph, subject, predicate, end
        answer = self._answers.get(key)
        self.looks.spend(1)
        if answer is not None:
            # Cached facts are free to read, but their solutions have to be computed all the same.
            self.looks.spend(len(answer))
            return answer
        answer = self._answers[key] = list(self._fetched(graph, subject, predicate, end))
        return answer

    def _fetched(
        self, graph: Node | None, subject: Term | None, predicate: Term | None, end: Term | None
    ) -> Iterator[_Match]:
        # A variable may be bound to a literal by another pattern, but no triple begins with one.
        if subject is not None and is_literal(subject):
            return
        of_facts = graph is None and self.graphs.default is None
        subjects = [subject] if of_facts else [question(name, subject) for name in self._named(graph)]
        for fact in chain.from_iterable(self.facts(asked, predicate, end) for asked in subjects):
            self.looks.spend(1)
            if fact is NOT_HERE:
                continue
            own, triple = (None, fact) if of_facts else apart(fact)
            name = None if graph is None else own
            (self.default if name is None else self.named.setdefault(name, {}))[triple] = None
            yield name, triple

    def _named(self, graph: Node | None) -> Sequence[Term | None]:
        """The named graphs to look up in; ``None`` stands for all of them."""
        if graph is None:
            return self.graphs.default or ()
        if isinstance(graph, Var):
            return (None,) if self.graphs.named is None else self.graphs.named
        return (graph,) if self.graphs.named is None or graph in self.graphs.named else ()

    def _existing(self, name: Node, known: _Known) -> _Known:
        """Look up whether graphs exist, for a pattern that may have solutions without matching a triple."""
        if isinstance(name, str):
            self.matches(name, None, None, None)
            return known
        return [
            {**solution, name.name: graph}
            for solution in known
            for graph in dict.fromkeys(str(own) for own, _ in self.matches(_in(name, solution), None, None, None))
        ]

    # Property paths

    def _path(self, path: al.Path, subject: Node, end: Node, known: _Known, graph: Node | None) -> _Known:
        match path:
            case str():
                return self._triple(TriplePattern(subject, path, end), known, graph)
            case al.Inverse(path=inner):
                return self._path(inner, end, subject, known, graph)
            case al.Sequence(steps=steps):
                nodes = [subject, *(self._new() for _ in steps[1:]), end]
                for place, step in enumerate(steps):
                    known = self._path(step, nodes[place], nodes[place + 1], known, graph)
                return known
            case al.Alternative(choices=choices):
                return [one for choice in choices for one in self._path(choice, subject, end, known, graph)]
            case al.NegatedSet():
                # !(p|^q) matches in both directions; the predicates that it excludes are left to the evaluation.
                for one, other in ((subject, end), (end, subject)):
                    self._triple(TriplePattern(one, self._new(), other), known, graph)
                return known
        self._repeated(path, subject, end, known, graph)
        return known

    def _new(self) -> Var:
        return Var(f".path{next(self._hidden)}")

    def _repeated(self, path: al.Repeat, subject: Node, end: Node, known: _Known, graph: Node | None) -> None:
        """Walk a repeated path from its known end; if neither is known, fetch all triples of the graph."""
        starts, forward = _terms(subject, known), True
        if starts is None:
            starts, forward = _terms(end, known), False
        if starts is None or isinstance(graph, Var) or not _binds(path.path):
            self._triple(TriplePattern(self._new(), self._new(), self._new()), _UNIT, graph)
            return
        seen, waiting = set(starts), list(starts)
        for start in starts:
            self._node(start, graph)
        while waiting:
            near, far = waiting.pop(), self._new()
            ends: tuple[Node, Node] = (near, far) if forward else (far, near)
            for reached in self._path(path.path, *ends, _UNIT, graph):
                if (term := reached[far.name]) not in seen:
                    seen.add(term)
                    waiting.append(term)

    def _node(self, term: Term, graph: Term | None) -> None:
        """Look up a triple that makes a term a node of the graph, because paths of length zero connect nodes."""
        for subject, end in ((term, None), (None, term)):
            next(self._fetched(graph, subject, None, end), None)


def _binds(path: al.Path) -> bool:
    """Whether a walk along the path binds its other end, so that the walk can go on from there."""
    match path:
        case str():
            return True
        case al.Inverse(path=inner):
            return _binds(inner)
        case al.Sequence(steps=parts) | al.Alternative(choices=parts):
            return all(map(_binds, parts))
        case _:
            return False


def _terms(node: Node, known: _Known) -> list[Term] | None:
    """The terms that partial solutions have for a node; ``None`` if some leave it unbound."""
    terms = dict.fromkeys(node if isinstance(node, str) else solution.get(node.name) for solution in known)
    return None if None in terms else [str(term) for term in terms]


def _in(graph: Node | None, solution: Solution) -> Node | None:
    """The name of the graph that a solution gives."""
    return solution.get(graph.name, graph) if isinstance(graph, Var) else graph


def _cut(known: _Known, names: Iterable[str]) -> _Known:
    """The distinct partial solutions over these variables."""
    names = tuple(names)
    return [dict(row) for row in {tuple((name, row[name]) for name in names if name in row): None for row in known}]


def _open_places(triple: TriplePattern, bound: frozenset[str]) -> int:
    """The number of unbound positions of a pattern; a path counts one more."""
    nodes = (triple.subject, triple.object, triple.predicate)
    path = not isinstance(triple.predicate, Var | str)
    return path + sum(isinstance(node, Var) and node.name not in bound for node in nodes)
