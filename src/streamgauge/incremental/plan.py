"""Delta plans for basic graph patterns: relations, access paths and join order for a triple that enters or leaves.

A right row of OPTIONAL, MINUS or EXISTS matters only if a left row agrees with it, and every left row meets the triple
patterns that are joined there (``firm``). Joining these to the right side too, and projecting their variables away
again (``semijoined``), leaves the right side with a few rows instead of all rows of a property.

A worked example: ``?s :memberOf :d1 OPTIONAL { ?s :telephone ?t }``. The right side has everybody's telephones.
``SELECT DISTINCT ?s ?t { ?s :telephone ?t . ?s :memberOf :d1 }`` has those of the members of ``:d1``, with the same
multiplicity, which is one. No left row agrees with the others.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias

from streamgauge.incremental.conditions import is_fast, variables_of
from streamgauge.model import algebra as al
from streamgauge.model.algebra import BGP, Call, Expression, Node, TriplePattern, Var, expression_variables, nodes_of
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.query.traversal import below_filters, reads_patterns


@dataclass(frozen=True, slots=True)
class TripleRelation:
    """The triples that patterns of one shape match: constants, equal positions, conditions on one position.

    ``equal`` holds for each position the first position with the same variable; ``conditions`` are (position, name
    of the variable, condition).
    """

    constants: tuple[Term | None, Term | None, Term | None]
    equal: tuple[int, int, int]
    conditions: tuple[tuple[int, str, Expression], ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions that vary, each variable once."""
        return tuple(at for at in range(3) if self.constants[at] is None and self.equal[at] == at)


@dataclass(frozen=True, slots=True)
class Path:
    """An index of a relation: from the columns ``bound`` to the set of the others."""

    relation: int
    bound: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a join: the pattern to look up, and the index."""

    pattern: int
    path: Path


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """The steps for a triple that matches pattern ``pattern``."""

    pattern: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class PlannedBgp:
    """A planned basic graph pattern; ``relation_of`` maps patterns to relations."""

    patterns: tuple[tuple[Node, Node, Node], ...]
    relations: tuple[TripleRelation, ...]
    relation_of: tuple[int, ...]
    conditions: tuple[Expression, ...]
    plans: tuple[JoinPlan, ...]

    def names(self, pattern: int) -> tuple[str, ...]:
        """The variables of a pattern, one for each column of its relation."""
        nodes, columns = self.patterns[pattern], self.relations[self.relation_of[pattern]].columns
        return tuple(node.name for at, node in enumerate(nodes) if at in columns and isinstance(node, Var))


@dataclass(frozen=True, slots=True)
class BgpRequest:
    """A request for the solutions of a basic graph pattern over a graph: conditions and output variables.

    ``None`` is the default graph; a variable stands for each named graph, whose name is in its column.
    """

    graph: Node | None
    bgp: BGP
    conditions: tuple[Expression, ...]
    output: tuple[str, ...]


Feed: TypeAlias = Callable[[Iterable[Triple]], None]
"""Receives the triples that enter, or leave, a graph."""


def unheard(_triples: Iterable[Triple]) -> None:
    """Ignore triples: a feed without readers."""


def plan_all(requests: Sequence[BgpRequest]) -> list[PlannedBgp]:
    """Plan patterns over one graph; patterns that differ only in conditions on one variable share a relation.

    These conditions are then tested while joining, not before.
    """
    planned = [plan(request.bgp, request.conditions) for request in requests]
    ways: dict[tuple[object, object], set[TripleRelation]] = {}
    for relation in chain.from_iterable(plan_.relations for plan_ in planned):
        ways.setdefault((relation.constants, relation.equal), set()).add(relation)
    # A relation is an index that every triple enters. Ten thresholds on one value would be ten indexes, so they become
    # one relation without conditions.
    several = {relation for relations in ways.values() if len(relations) > 1 for relation in relations}
    return [
        plan(request.bgp, request.conditions, frozenset(request.conditions))
        if several.intersection(plan_.relations)
        else plan_
        for request, plan_ in zip(requests, planned, strict=True)
    ]


def merged(planned: Sequence[PlannedBgp]) -> tuple[tuple[TripleRelation, ...], list[PlannedBgp]]:
    """The distinct relations of all plans, and the plans rewritten to them."""
    relations = tuple(dict.fromkeys(chain.from_iterable(request.relations for request in planned)))
    place = {relation: number for number, relation in enumerate(relations)}
    return relations, [
        _over(request, relations, [place[relation] for relation in request.relations]) for request in planned
    ]


def _over(planned: PlannedBgp, relations: tuple[TripleRelation, ...], places: Sequence[int]) -> PlannedBgp:
    """The plan with its relations renumbered to ``places``."""

    def moved(step: Step) -> Step:
        return replace(step, path=Path(places[step.path.relation], step.path.bound))

    plans = tuple(replace(plan, steps=tuple(map(moved, plan.steps))) for plan in planned.plans)
    of = tuple(places[relation] for relation in planned.relation_of)
    return replace(planned, relations=relations, relation_of=of, plans=plans)


def plan(bgp: BGP, conditions: Sequence[Expression], late: frozenset[Expression] = frozenset()) -> PlannedBgp:
    """Plan a basic graph pattern: its relations, and per pattern the joins that follow, most-bound first.

    Conditions in ``late`` are tested while joining.
    """
    patterns = tuple(nodes_of(triple) for triple in bgp.patterns)
    # Conditions on one variable belong to the relation: a triple that fails them is never stored.
    single = [condition for condition in conditions if len(variables_of(condition)) == 1 and condition not in late]
    rest = tuple(condition for condition in conditions if condition not in single)
    shapes = [_relation(nodes, single) for nodes in patterns]
    relations = tuple(dict.fromkeys(shapes))
    relation_of = tuple(relations.index(shape) for shape in shapes)
    # One plan per pattern, because a triple that enters may match any of them, and the join starts from it.
    plans = tuple(_plan(first, patterns, relations, relation_of) for first in range(len(patterns)))
    return PlannedBgp(patterns, relations, relation_of, rest, plans)


def pushable(condition: Expression, bgp: BGP) -> bool:
    """Whether a condition can be tested inside the joins: it is fast, and the pattern binds its variables."""
    if not is_fast(condition):
        return False
    bound = {node.name for triple in bgp.patterns for node in nodes_of(triple) if isinstance(node, Var)}
    return bound.issuperset(variables_of(condition))


def _relation(nodes: tuple[Node, ...], single: Sequence[Expression]) -> TripleRelation:
    constants = [node if isinstance(node, str) else None for node in nodes]
    equal = [nodes.index(node) if isinstance(node, Var) else at for at, node in enumerate(nodes)]
    conditions = tuple(
        (at, name, _anonymous(condition, name))
        for condition in single
        for name in variables_of(condition)
        for at in [next((at for at, node in enumerate(nodes) if node == Var(name)), None)]
        if at is not None
    )
    named = tuple((at, _NAME, condition) for at, _, condition in conditions)
    return TripleRelation((constants[0], constants[1], constants[2]), (equal[0], equal[1], equal[2]), named)


_NAME = "x"


def _anonymous(condition: Expression, name: str) -> Expression:
    """The condition with its variable renamed, so that patterns of one shape share a relation."""
    match condition:
        case Var():
            return Var(_NAME) if condition.name == name else condition
        case Call(operator=operator, arguments=arguments):
            return Call(operator, tuple(_anonymous(argument, name) for argument in arguments))
        case _:
            return condition


def _plan(
    first: int,
    patterns: Sequence[tuple[Node, ...]],
    relations: Sequence[TripleRelation],
    relation_of: Sequence[int],
) -> JoinPlan:
    # A worked example: ``?s :p ?o . ?o :q ?v . ?s :r :c``. A triple of ``:p`` binds ?s and ?o. The third pattern is
    # bound completely, so it is tested first; then ``:q`` is looked up by ?o, which opens ?v. From a triple of ``:q``
    # the order is ``:p`` by its object, then ``:r``.
    steps = []
    bound = _names(patterns[first])
    left = [index for index in range(len(patterns)) if index != first]
    while left:
        # Greedy, and fixed when the query is compiled. A product comes only where nothing connected is left.
        chosen = max(left, key=lambda index: _boundness(patterns[index], relations[relation_of[index]], bound))
        left.remove(chosen)
        columns = relations[relation_of[chosen]].columns
        known = tuple(at for at in columns if _name(patterns[chosen][at]) in bound)
        bound = bound | _names(patterns[chosen])
        steps.append(Step(chosen, Path(relation_of[chosen], known)))
    return JoinPlan(first, tuple(steps))


def _boundness(nodes: Sequence[Node], relation: TripleRelation, bound: frozenset[str]) -> tuple[int, int, int]:
    """A rank for the join order: fully bound patterns first, then connected ones with few open columns."""
    known = sum(_name(nodes[at]) in bound for at in relation.columns)
    opened = len(relation.columns) - known
    constants = sum(constant is not None for constant in relation.constants)
    return (2 if opened == 0 else 1 if known else 0), -opened, known + constants


def _names(nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset(node.name for node in nodes if isinstance(node, Var))


def _name(node: Node) -> str | None:
    return node.name if isinstance(node, Var) else None


def disconnected(bgp: BGP) -> list[BGP]:
    """The connected components of the triple patterns."""
    return _parts(bgp, lambda one, other: not _variables(one).isdisjoint(_variables(other)))


def stars(bgp: BGP) -> list[BGP]:
    """The triple patterns in parts connected only by objects of both sides, whose values many rows may share."""
    return _parts(bgp, lambda one, other: bool((_variables(one) & _variables(other)) - (_ends(one) & _ends(other))))


def _parts(bgp: BGP, tied: Callable[[TriplePattern, TriplePattern], bool]) -> list[BGP]:
    """The components of the triple patterns under the relation ``tied``."""
    parts: list[list[TriplePattern]] = []
    for triple in bgp.patterns:
        # A triple may tie parts that were separate so far; they become one.
        met = [part for part in parts if any(tied(triple, other) for other in part)]
        parts = [part for part in parts if part not in met]
        parts.append([*(other for part in met for other in part), triple])
    return [BGP(tuple(part)) for part in parts]


def _variables(triple: TriplePattern) -> frozenset[Var]:
    return frozenset(al.triple_variables(triple))


def _ends(triple: TriplePattern) -> frozenset[Var]:
    """The variables of a triple pattern that occur only as its object."""
    return _variables(triple) - {triple.subject, triple.predicate}


def witnessed(pattern: al.Pattern) -> al.Pattern:
    """A normal pattern under DISTINCT, in which parts that only decide whether a solution exists become EXISTS.

    A worked example: ``SELECT DISTINCT ?s { ?s :in ?r . ?o :in ?r ; :note ?n }``. With n subjects in one room the
    join has n rows per note, of which all but one give the same ?s. With ``FILTER EXISTS { ?o :in ?r ; :note
    ?n }`` there are n rows. Parts are ``stars``, because joins by subject have few rows per key.
    """
    block, conditions = below_filters(pattern.pattern if isinstance(pattern, al.Project) else pattern)
    if not isinstance(block, BGP) or not isinstance(pattern, al.Project) or any(map(reads_patterns, conditions)):
        return pattern
    kept, parted = _witnesses(stars(block), frozenset(pattern.variables), conditions)
    if not parted:
        return pattern
    inside = {
        part: [condition for condition in conditions if expression_variables(condition) <= _all_of([part])]
        for part in parted
    }
    left = [condition for condition in conditions if not any(condition in tested for tested in inside.values())]
    left += [al.Exists(_filtered(part, tested)) for part, tested in inside.items()]
    return al.Project(
        _filtered(BGP(tuple(chain.from_iterable(part.patterns for part in kept))), left), pattern.variables
    )


def _witnesses(
    parts: Sequence[BGP], shown: frozenset[Var], conditions: Sequence[Expression]
) -> tuple[list[BGP], list[BGP]]:
    """The parts to keep, and those to turn into EXISTS without leaving a product behind."""
    kept, parted = list(parts), list[BGP]()
    for part in parts:
        own, rest = _all_of([part]), [other for other in kept if other is not part]
        read = [
            expression_variables(condition) for condition in conditions if not expression_variables(condition) <= own
        ]
        visible = shown.union(_all_of(other for other in parts if other is not part), *read)
        # A part may become EXISTS if others bind all of its variables that are visible, and if without it the rest
        # does not fall apart into a product.
        if rest and own & visible <= _all_of(rest) and _pieces(rest) <= _pieces(kept):
            kept, parted = rest, [*parted, part]
    return kept, parted


def counted(parts: Sequence[BGP], conditions: Iterable[Expression], needed: frozenset[str]) -> bool:
    """Whether some parts have no needed variable of their own, so that they only affect multiplicities.

    A worked example: ``SELECT ?r (COUNT(*) AS ?c) { ?s :in ?r . ?o :in ?r } GROUP BY ?r``. With n subjects in a room
    the join has n * n solutions. Separately, both parts have one row per room, n times, and so has their join.
    """
    if len(parts) < 2:
        return False
    within = [_all_of([part]) for part in parts]
    read = [names for names in map(expression_variables, conditions) if not any(names <= own for own in within)]
    visible = frozenset[Var]().union(map(Var, needed), *read)
    return any(
        own & visible <= frozenset[Var]().union(*within[:at], *within[at + 1 :]) for at, own in enumerate(within)
    )


def _pieces(parts: Sequence[BGP]) -> int:
    """The number of connected components of parts."""
    return len(disconnected(BGP(tuple(chain.from_iterable(part.patterns for part in parts)))))


def _all_of(parts: Iterable[BGP]) -> frozenset[Var]:
    return frozenset[Var]().union(*[_variables(triple) for part in parts for triple in part.patterns])


def _filtered(pattern: al.Pattern, conditions: Iterable[Expression]) -> al.Pattern:
    for condition in conditions:
        pattern = al.Filter(condition, pattern)
    return pattern


MAX_SHARED_PATTERNS: Final = 8
"""Maximum triple patterns of a right side with those of the left, because each is maintained."""


def firm(pattern: al.Pattern) -> tuple[al.TriplePattern, ...]:
    """Triple patterns over the default graph that every solution of a normal pattern matches (a subset of them)."""
    match pattern:
        case al.BGP(patterns=patterns):
            return tuple(pattern for pattern in patterns if isinstance(pattern.predicate, al.Var | str))
        case al.Join(left=left, right=right):
            return firm(left) + firm(right)
        case al.LeftJoin(left=inner) | al.Minus(left=inner) | al.Filter(pattern=inner):
            return firm(inner)
        case _:
            return ()


def semijoined(right: al.Pattern, left: Sequence[al.TriplePattern], counted: bool = True) -> al.Pattern:
    """The right side restricted to rows that agree with solutions of ``left``; ``counted`` preserves multiplicities.

    Unchanged if that would not make it smaller: it is not a basic graph pattern under simple filters over its
    variables, it has a constant itself, or ``left`` has none connected with it. Without ``counted``, rows also have
    the variables of ``left``.
    """
    block = _block(right)
    # A constant of its own already keeps the right side small.
    if block is None or any(map(_is_bound, block.patterns)):
        return right
    more = _pruned(_connected(block, left), set(al.pattern_variables(block)))
    if not any(map(_is_bound, more)) or len(block.patterns) + len(more) > MAX_SHARED_PATTERNS:
        return right
    whole = _with_block(right, al.BGP((*block.patterns, *more)))
    # Distinct restores the multiplicities: solutions of triple patterns over a set of triples are a set, and joining
    # with the left patterns may only have repeated them.
    return al.Distinct(al.Project(whole, al.pattern_variables(block))) if counted else whole


def _pruned(more: Sequence[al.TriplePattern], own: set[al.Var]) -> list[al.TriplePattern]:
    """Drop patterns that neither have a constant nor lead to one, because they exclude few rows."""
    kept = list(more)
    while True:
        known = [set(al.triple_variables(pattern)) for pattern in kept]
        for at, pattern in enumerate(kept):
            others = own.union(*known[:at], *known[at + 1 :]) - own
            if not _is_bound(pattern) and not (known[at] & others):
                del kept[at]
                break
        else:
            return kept


def _block(pattern: al.Pattern) -> al.BGP | None:
    match pattern:
        case al.BGP(patterns=patterns):
            plain = all(isinstance(pattern.predicate, al.Var | str) for pattern in patterns)
            return pattern if patterns and plain else None
        case al.Filter(condition=condition, pattern=inner) if not reads_patterns(condition):
            block = _block(inner)
            own = {variable.name for variable in al.pattern_variables(inner)}
            return block if own.issuperset(variables_of(condition)) else None
        case _:
            return None


def _with_block(pattern: al.Pattern, block: al.BGP) -> al.Pattern:
    return (
        al.Filter(pattern.condition, _with_block(pattern.pattern, block)) if isinstance(pattern, al.Filter) else block
    )


def _connected(block: al.BGP, left: Sequence[al.TriplePattern]) -> list[al.TriplePattern]:
    """The patterns connected with the block, directly or through others."""
    known = set(al.pattern_variables(block))
    waiting, connected = (
        [pattern for pattern in dict.fromkeys(left) if pattern not in block.patterns],
        list[al.TriplePattern](),
    )
    while chosen := next((pattern for pattern in waiting if known & set(al.triple_variables(pattern))), None):
        waiting.remove(chosen)
        connected.append(chosen)
        known |= set(al.triple_variables(chosen))
    return connected


def _is_bound(pattern: al.TriplePattern) -> bool:
    """Whether the subject or object is a constant other than a class."""
    # A class hardly restricts: most subjects of a stream may be of it.
    is_class = pattern.predicate == RDF_TYPE
    return isinstance(pattern.subject, str) or (isinstance(pattern.object, str) and not is_class)
