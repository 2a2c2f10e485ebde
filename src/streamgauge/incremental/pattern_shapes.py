"""Basic graph patterns that differ only in names and constants; over windows they are joined once.

If a hundred queries select the readings of one sensor each, their patterns are joined as one with a variable for the
sensor, and each solution goes to the queries of its sensor: the cost of an element does not depend on the number of
queries.

A worked example: ``?o :sensor :s1 ; :value ?v`` and ``?x :sensor :s2 ; :value ?y``. Both are joined as ``?v0 :sensor
?c0 ; :value ?v1 FILTER(?c0 IN (:s1, :s2))``. The solution c0 = :s2, v0 = o7, v1 = 5 goes to the second, as x = o7,
y = 5. Only one constant may differ: with two, the join would also find pairs of constants that no query has.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from streamgauge.incremental.operators import Bag, add
from streamgauge.incremental.plan import BgpRequest, disconnected
from streamgauge.model.algebra import BGP, Call, Expression, Node, TriplePattern, Var, triple_variables
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.query.traversal import with_names


@dataclass(frozen=True, slots=True)
class PatternShape:
    """Patterns over the variables ``v0``, ``v1`` ... and ``c0``, ``c1`` ... for constants; rows are over ``output``."""

    patterns: tuple[TriplePattern, ...]
    conditions: tuple[Expression, ...]
    output: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass
class _Naming:
    """New names for variables and constants, in order of first appearance."""

    variables: dict[str, str] = field(default_factory=dict)
    constants: dict[Term, str] = field(default_factory=dict)

    def node(self, node: Node) -> Var:
        if isinstance(node, Var):
            return Var(self.variables.setdefault(node.name, f"v{len(self.variables)}"))
        return Var(self.constants.setdefault(node, f"c{len(self.constants)}"))

    def pattern(self, pattern: TriplePattern) -> TriplePattern:
        """Predicates and classes stay, because they determine which facts are relevant."""
        predicate = pattern.predicate
        if not isinstance(predicate, Var | str):
            raise TypeError("a property path is not a triple pattern: normalise the query first")
        named = predicate == RDF_TYPE and isinstance(pattern.object, str)
        subject = self.node(pattern.subject)
        kept = self.node(predicate) if isinstance(predicate, Var) else predicate
        return TriplePattern(subject, kept, pattern.object if named else self.node(pattern.object))

    def condition(self, condition: Expression) -> Expression:
        if isinstance(condition, Var):
            return Var(self.variables[condition.name])
        if isinstance(condition, Call):
            return Call(condition.operator, tuple(map(self.condition, condition.arguments)))
        return condition


def shape(bgp_request: BgpRequest) -> tuple[PatternShape, tuple[Term, ...]]:
    """The shape of a request, and its constants."""
    naming = _Naming()
    patterns = tuple(map(naming.pattern, bgp_request.bgp.patterns))
    conditions = tuple(map(naming.condition, bgp_request.conditions))
    output = tuple(naming.variables[name] for name in bgp_request.output)
    return PatternShape(patterns, conditions, output, tuple(naming.constants.values())), tuple(naming.constants)


def original(bgp_request: BgpRequest, name: str) -> str:
    """The name that a variable of the shape has in the request."""
    naming = _Naming()
    for pattern in bgp_request.bgp.patterns:
        naming.pattern(pattern)
    return next(own for own, variable in naming.variables.items() if variable == name)


Leaf: TypeAlias = tuple[BgpRequest, Bag]
"""A requested pattern, and the bag for its solutions."""

_Asked: TypeAlias = tuple[tuple[Term, ...], Bag]
"""The constants of a pattern, and its bag."""


class SharedSolutions:
    """The solutions of patterns joined as one; the first column of ``found`` is the constant."""

    def __init__(self, kind: PatternShape, graph: Node | None, at: int, asked: Sequence[_Asked]) -> None:
        self.found: Bag = {}
        self._bags: defaultdict[Term | None, list[Bag]] = defaultdict(list)
        for constants, bag in asked:
            self._bags[constants[at]].append(bag)
        key = kind.keys[at]
        # Only one constant becomes a variable; the others are the same in all patterns of the group.
        fixed = {Var(name): term for name, term in zip(kind.keys, asked[0][0], strict=True) if name != key}
        patterns = tuple(with_names(pattern, fixed) for pattern in kind.patterns)
        # Without it, the join would also keep solutions of sensors that no query asks for.
        among = Call("IN", (Var(key), *dict.fromkeys(constants[at] for constants, _ in asked)))
        self.request = BgpRequest(graph, BGP(patterns), (*kind.conditions, among), (key, *kind.output))

    def hand_out(self, change: Bag) -> set[int]:
        """Distribute a change to the bags of its constants; returns their ids."""
        bags, touched = self._bags, set[int]()
        for row, count in change.items():
            for bag in bags.get(row[0], ()):
                add(bag, row[1:], count)
                touched.add(id(bag))
        return touched


def joined_once(asked: Sequence[Leaf]) -> tuple[list[Leaf], dict[int, SharedSolutions]]:
    """The patterns to join, and the shared solutions by the ids of the bags that they feed."""
    alike: defaultdict[tuple[Node | None, PatternShape], list[_Asked]] = defaultdict(list)
    for request, bag in asked:
        if _is_sharable(request):
            kind, constants = shape(request)
            alike[request.graph, kind].append((constants, bag))
    leaves, shared = list[Leaf](), dict[int, SharedSolutions]()
    for (graph, kind), members in alike.items():
        for at, group in _differing(members):
            solutions = SharedSolutions(kind, graph, at, group)
            leaves.append((solutions.request, solutions.found))
            shared |= {id(bag): solutions for _, bag in group}
    return [*(leaf for leaf in asked if id(leaf[1]) not in shared), *leaves], shared


def _is_sharable(request: BgpRequest) -> bool:
    """Whether a pattern stays connected without its constants."""
    patterns = request.bgp.patterns
    return bool(patterns) and all(map(triple_variables, patterns)) and len(disconnected(request.bgp)) == 1


def _differing(members: Sequence[_Asked]) -> Iterator[tuple[int, list[_Asked]]]:
    """Groups of patterns of one shape that differ in one constant, an IRI, with its position."""
    places = [[constants[at] for constants, _ in members] for at in range(len(members[0][0]))]
    # IRIs only: a pattern matches a literal by term, whereas IN compares values, so "1" would match "01".
    iris = [at for at, terms in enumerate(places) if all(map(_is_iri, terms))]
    if len(members) < 2 or not iris:
        return
    # The place with most different constants joins most patterns as one.
    at = max(iris, key=lambda at: len(set(places[at])))
    groups: defaultdict[Hashable, list[_Asked]] = defaultdict(list)
    for constants, bag in members:
        groups[constants[:at] + constants[at + 1 :]].append((constants, bag))
    yield from ((at, group) for group in groups.values() if len(group) > 1)


def _is_iri(term: Term) -> bool:
    return term.startswith("<") and not term.startswith("<<")
