"""The facts that a pattern can match, found by questions from what is known, so that its evaluation reads no others.

A pattern is walked from left to right with partial solutions: for every solution that the whole pattern has, some
partial solution is part of it. Each triple pattern is asked with the terms that these bind, and what comes is kept:
``{ ?x :knows <b> OPTIONAL { ?x :age ?n } }`` asks for who knows <b>, then for the age of each. OPTIONAL, MINUS and
EXISTS are asked with the variables that their left side binds in every solution, because a term from further outside
could hide that the right side has a solution (SPARQL 1.1, 18.6). Aggregates and LIMIT are asked with nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final, TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import NOT_HERE, apart, question
from streamgauge.model.terms import Term, Triple, is_literal
from streamgauge.query.traversal import bound, every_expression, expressions, needs_triple
from streamgauge.query.updates import GraphNames
from streamgauge.sparql.bgp import Dataset, IndexedGraph

Facts: TypeAlias = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
"""The facts with these terms, ``None`` for any; those of a named graph where the subject is a ``question``."""


class TooManySolutionsError(ValueError):
    """A pattern has more solutions, or looks at more facts, than it may."""


class Looks:
    """How many facts may be looked at, ``most`` for all that is asked by these looks."""

    def __init__(self, limit: int) -> None:
        self._most = self._left = limit

    def spend(self, number: int) -> None:
        """So many more; TooManySolutionsError when they are too many."""
        self._left -= number
        if self._left < 0:
            raise TooManySolutionsError(f"WHERE looks at more than {self._most} facts: name more terms in it")


@dataclass(frozen=True, slots=True)
class PartialSolutions:
    """Tuples of terms, one for each name."""

    names: tuple[str, ...] = ()
    rows: Sequence[tuple[Term, ...]] = ((),)

    def cut(self, names: Iterable[str]) -> "PartialSolutions":
        """The different rows over those of the names that are here."""
        wanted = set(names)
        places = [place for place, name in enumerate(self.names) if name in wanted]
        rows = dict.fromkeys(tuple(row[place] for place in places) for row in self.rows)
        return PartialSolutions(tuple(self.names[place] for place in places), tuple(rows))


_UNIT: Final = (PartialSolutions(),)
_Known: TypeAlias = Sequence[PartialSolutions]
_Match: TypeAlias = tuple[Term | None, Triple]
"""The name of a graph, ``None`` for the default graph, and a triple in it."""


def is_plain(pattern: al.Pattern) -> bool:
    """Whether the partial solutions of a pattern are its solutions: triple patterns without paths, in graphs or not."""
    match pattern:
        case al.BGP(patterns=patterns):
            return all(isinstance(triple.predicate, Var | str) for triple in patterns)
        case al.Join(left=left, right=right):
            return is_plain(left) and is_plain(right)
        case al.Graph(pattern=inner):
            return needs_triple(inner) and is_plain(inner)
        case _:
            return False


@dataclass
class Needs:
    """Asks ``facts`` for what patterns can match over ``graphs``; at most ``most`` partial solutions at a time.

    Each question is a look, and each fact that answers it, also where it was asked before.
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
        """All facts that were found so far."""
        named = {name: IndexedGraph(triples) for name, triples in self.named.items()}
        return Dataset(IndexedGraph(self.default), named)

    def of(self, pattern: al.Pattern, known: _Known = _UNIT, graph: Node | None = None) -> _Known:
        """Ask for what a pattern in a graph can match beside known partial solutions; those of both together."""
        match pattern:
            case al.BGP(patterns=patterns):
                return self._block(patterns, known, graph)
            case al.Join(left=left, right=right):
                first, second = (right, left) if _is_opaque(left) else (left, right)
                return self.of(second, self.of(first, known, graph), graph)
            case al.Union(left=left, right=right):
                return [*self.of(left, known, graph), *self.of(right, known, graph)]
            case al.Values():
                return self._inline(pattern, known)
            case al.Graph(name=name, pattern=inner):
                if not needs_triple(inner):
                    known = self._existing(name, known)
                return self.of(inner, known, name)
            case al.Group(pattern=inner) | al.Slice(pattern=inner):
                self.of(inner, _UNIT, graph)
                self._tested(pattern, inner, _UNIT, graph)
                return known
            case al.Project(pattern=inner, variables=variables):
                self.of(inner, [rows.cut(var.name for var in variables) for rows in known], graph)
                return known
        return self._around(pattern, known, graph)

    def _around(
        self,
        pattern: al.LeftJoin | al.Minus | al.Filter | al.Extend | al.Distinct | al.Reduced | al.OrderBy,
        known: _Known,
        graph: Node | None,
    ) -> _Known:
        """An operator whose solutions extend those of its left or only side."""
        inner = pattern.left if isinstance(pattern, al.LeftJoin | al.Minus) else pattern.pattern
        solutions = self.of(inner, known, graph)
        if isinstance(pattern, al.LeftJoin | al.Minus):
            self.of(pattern.right, self._inside(inner, solutions, graph), graph)
        self._tested(pattern, inner, solutions, graph)
        return solutions

    def _tested(self, pattern: al.Pattern, inner: al.Pattern, solutions: _Known, graph: Node | None) -> None:
        """Ask for what EXISTS in the expressions of a pattern can match."""
        for tree in expressions(pattern):
            for part in every_expression(tree):
                if isinstance(part, al.Exists):
                    self.of(part.pattern, self._inside(inner, solutions, graph), graph)

    def _inside(self, left: al.Pattern, solutions: _Known, graph: Node | None) -> _Known:
        names = bound(left) | ({graph.name} if isinstance(graph, Var) else frozenset())
        return [solution.cut(names) for solution in solutions]

    def _inline(self, data: al.Values, known: _Known) -> _Known:
        """Known solutions with each row of inline data that agrees with them."""
        joined: list[PartialSolutions] = []
        for row in data.rows:
            terms = {var.name: term for var, term in zip(data.variables, row, strict=True) if term is not None}
            for relation in known:
                new = [name for name in terms if name not in relation.names]
                places = [(place, terms[name]) for place, name in enumerate(relation.names) if name in terms]
                tail = tuple(terms[name] for name in new)
                rows = [(*old, *tail) for old in relation.rows if all(old[place] == term for place, term in places)]
                joined.append(PartialSolutions((*relation.names, *new), rows))
        return self._bounded(_together(joined))

    # Triple patterns

    def _block(self, patterns: Sequence[TriplePattern], known: _Known, graph: Node | None) -> _Known:
        """Partial solutions with each match of the patterns, those first of which most terms are known."""
        left = list(patterns)
        while left:
            names = frozenset.intersection(*[frozenset(rows.names) for rows in known]) if known else frozenset()
            best = min(left, key=lambda triple: _open_places(triple, names))
            left.remove(best)
            known = self._triple(best, known, graph)
        return known

    def _triple(self, triple: TriplePattern, known: _Known, graph: Node | None) -> _Known:
        if isinstance(triple.predicate, Var | str):
            nodes = (triple.subject, triple.predicate, triple.object)
            return self._bounded([self._extended(nodes, rows, graph) for rows in known])
        return self._path(triple.predicate, triple.subject, triple.object, known, graph)

    def _bounded(self, known: _Known) -> _Known:
        if sum(len(relation.rows) for relation in known) > self.most:
            raise TooManySolutionsError(f"more than {self.most} solutions: name more terms in WHERE")
        return [relation for relation in known if relation.rows]

    def _extended(
        self, nodes: tuple[Node, Node, Node], known: PartialSolutions, graph: Node | None
    ) -> PartialSolutions:
        """Each partial solution with each triple that it matches."""
        slots = {name: place for place, name in enumerate(known.names)}
        wanted = [slots.get(node.name) if isinstance(node, Var) else node for node in (graph, *nodes)]
        fresh: dict[str, int] = {}
        same: list[tuple[int, int]] = []
        for place, node in enumerate((graph, *nodes)):
            if isinstance(node, Var) and node.name not in slots:
                first = fresh.setdefault(node.name, place)
                same += [(first, place)] if first != place else []
        rows: list[tuple[Term, ...]] = []
        for row in known.rows:
            quad = [row[node] if isinstance(node, int) else node for node in wanted]
            name = graph if quad[0] is None else quad[0]
            for match in self.matches(name, quad[1], quad[2], quad[3]):
                terms = (match[0], *match[1])
                if all(terms[one] == terms[other] for one, other in same):
                    rows.append((*row, *[str(terms[at]) for at in fresh.values()]))
            if len(rows) > self.most:
                break
        return PartialSolutions((*known.names, *fresh), rows)

    def matches(
        self, graph: Node | None, subject: Term | None, predicate: Term | None, end: Term | None
    ) -> Sequence[_Match]:
        """The triples of a graph, a variable for any named one, with these terms; each question is asked once."""
        key = graph, subject, predicate, end
        answer = self._answers.get(key)
        self.looks.spend(1)
        if answer is not None:
            self.looks.spend(len(answer))
            return answer
        answer = self._answers[key] = []
        for name, triple in self._asked(graph, subject, predicate, end):
            answer.append((name, triple))
            (self.default if name is None else self.named.setdefault(name, {}))[triple] = None
        return answer

    def _asked(
        self, graph: Node | None, subject: Term | None, predicate: Term | None, end: Term | None
    ) -> Iterator[_Match]:
        if subject is not None and is_literal(subject):
            return
        if graph is None and self.graphs.default is None:
            for triple in self.facts(subject, predicate, end):
                self.looks.spend(1)
                yield None, triple
            return
        for name in self._named(graph):
            for fact in self.facts(question(name, subject), predicate, end):
                self.looks.spend(1)
                if fact is not NOT_HERE:
                    own, triple = apart(fact)
                    yield (None if graph is None else own), triple

    def _named(self, graph: Node | None) -> Sequence[Term | None]:
        """The named graphs to ask; ``None`` among them is each."""
        if graph is None:
            return self.graphs.default or ()
        if isinstance(graph, Var):
            return (None,) if self.graphs.named is None else self.graphs.named
        return (graph,) if self.graphs.named is None or graph in self.graphs.named else ()

    def _existing(self, name: Node, known: _Known) -> _Known:
        """Ask whether the graphs exist, where a pattern in them may match no triple."""
        nodes = (Var(".s"), Var(".p"), Var(".o"))
        if isinstance(name, str):
            self.matches(name, None, None, None)
            return known
        return [self._extended(nodes, relation, name).cut((*relation.names, name.name)) for relation in known]

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
                for one, other in ((subject, end), (end, subject)):
                    self._triple(TriplePattern(one, self._new(), other), known, graph)
                return known
        self._repeated(path, subject, end, known, graph)
        return known

    def _new(self) -> Var:
        return Var(f".path{next(self._hidden)}")

    def _repeated(self, path: al.Repeat, subject: Node, end: Node, known: _Known, graph: Node | None) -> None:
        """Walk from the end of a repeated path that is known; where none is, ask for every edge and node."""
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
                fresh = [term for (term,) in reached.cut((far.name,)).rows if term not in seen]
                seen.update(fresh)
                waiting += fresh

    def _node(self, term: Term, graph: Term | None) -> None:
        """Ask for one triple that makes a term a node of a graph: paths of length zero join nodes."""
        for subject, end in ((term, None), (None, term)):
            for name, triple in islice(self._asked(graph, subject, None, end), 1):
                (self.default if name is None else self.named.setdefault(name, {}))[triple] = None


def _binds(path: al.Path) -> bool:
    """Whether a walk along the path binds its other end."""
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
    """The terms that partial solutions have for a node; ``None`` where some leave it open."""
    if isinstance(node, str):
        return [node]
    if not all(node.name in relation.names for relation in known):
        return None
    return list(dict.fromkeys(row[relation.names.index(node.name)] for relation in known for row in relation.rows))


def _open_places(triple: TriplePattern, bound: frozenset[str]) -> int:
    """How many ends of a pattern no known term stands for; those of a path count as one more."""
    nodes = (triple.subject, triple.object, triple.predicate)
    path = not isinstance(triple.predicate, Var | str)
    return path + sum(isinstance(node, Var) and node.name not in bound for node in nodes)


def _is_opaque(pattern: al.Pattern) -> bool:
    """Whether the partial solutions of a pattern say nothing of its own variables: subqueries."""
    return isinstance(pattern, al.Project | al.Distinct | al.Reduced | al.Slice | al.Group | al.OrderBy)


def _together(known: Sequence[PartialSolutions]) -> _Known:
    """The same rows, those over the same names as one."""
    rows: dict[tuple[str, ...], list[tuple[Term, ...]]] = {}
    for relation in known:
        rows.setdefault(relation.names, []).extend(relation.rows)
    return [PartialSolutions(names, members) for names, members in rows.items()]
