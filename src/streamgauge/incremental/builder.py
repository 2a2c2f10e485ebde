"""From algebra to running operators; unsupported patterns are refused by name."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias, TypeVar

from streamgauge.incremental import existence as matching
from streamgauge.incremental.band_join import BandJoin
from streamgauge.incremental.bands import band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.common_groups import CommonGroup, CommonGroups, threshold
from streamgauge.incremental.conditions import Batch, is_fast, variables_of
from streamgauge.incremental.equalities import equality
from streamgauge.incremental.grouped import Grouped
from streamgauge.incremental.operators import (
    Both,
    Compute,
    Constant,
    FilterRows,
    Keyed,
    LeafSource,
    Operator,
    Pick,
    Pull,
    Shared,
    Stateful,
    Take,
    Unique,
)
from streamgauge.incremental.paths import START, GraphNodes, PathSolutions, Reachability
from streamgauge.incremental.plan import BgpRequest, counted, disconnected, firm, pushable, semijoined, stars, witnessed
from streamgauge.incremental.pushdown import decided_by_right, pushed
from streamgauge.incremental.rewrite import (
    HIDDEN,
    Normaliser,
    PatternLeaf,
    UnsupportedError,
    block_names,
    closed,
    leaf,
    mentions,
    names_of,
    operands,
    reads,
    scope,
)
from streamgauge.incremental.row_joins import Domain, JoinRows, Merge
from streamgauge.incremental.slices import ranked_rows
from streamgauge.model import algebra as al
from streamgauge.query.traversal import below_filters, conjuncts, expression_parts, nullable, reads_patterns
from streamgauge.sparql.expression import VOLATILE
from streamgauge.sparql.paths import at_terms

Needed = frozenset[str]
State = TypeVar("State", bound=Stateful)
MakeLeaf: TypeAlias = Callable[[BgpRequest], Take]
"""Builds the leaf of a request."""


@dataclass
class Builder:
    """Builds a tree of operators; columns are in ``order`` if that saves a step.

    ``make_leaf`` builds its leaves; ``groups`` collects its aggregations by normal pattern, ``states`` the operators
    with state; ``effort`` is their budget, ``pull`` numbers pulls; ``narrow``: right sides are ``semijoined``;
    ``common``: aggregations shared with other queries. With a ``domain``, every operator carries its columns.
    """

    make_leaf: MakeLeaf
    order: tuple[str, ...] = ()
    groups: list[tuple[al.Group, Grouped]] = field(default_factory=list)
    states: list[Stateful] = field(default_factory=list)
    domain: Domain | None = None
    effort: EvaluationBudget = field(default_factory=EvaluationBudget)
    narrow: bool = False
    normal: Normaliser = field(default_factory=Normaliser)
    fresh: Iterator[int] = field(default_factory=count)
    pull: Pull = field(default_factory=Pull)
    common: CommonGroups | None = None

    def build(self, pattern: al.Pattern, needed: Needed) -> Operator:
        """The operator of a normal pattern; its columns include the needed ones that the pattern binds."""
        match pattern:
            case al.BGP() | al.Graph() | al.Values() | al.Join():
                return self._join(operands(pattern), (), needed)
            case al.Filter():
                return self._filter(*below_filters(pattern), needed)
            case al.LeftJoin():
                return self._optional(pattern, needed)
            case al.Minus(left=left, right=right):
                shared = scope(left) & scope(right)
                narrowed = self._semijoined(right, firm(left), False)
                sides = self.build(left, needed | shared), self.build(narrowed, shared)
                named = frozenset(name for name in shared if not name.startswith(HIDDEN))
                return self._with(matching.without(*sides, named, self.domain, self.effort))
            case al.Union(left=left, right=right):
                return self._union(left, right, needed)
            case al.Extend(pattern=inner, variable=variable, expression=expression):
                return self._extend(inner, variable.name, expression, needed)
            case al.Project(pattern=inner, variables=variables):
                return self._project(inner, names_of(variables))
            case al.Distinct(pattern=inner):
                inner = inner if self.narrow or self.domain is not None else witnessed(inner)
                names = tuple(sorted(scope(inner).union(self._hidden)))
                return self._with(Unique(picked(self.build(inner, scope(inner)), names)))
            case al.Group():
                return self._group(pattern)
            case al.Slice():
                return self._with(ranked_rows(pattern, self._normally, self.effort, self.domain))
            case _:
                raise UnsupportedError(f"{type(pattern).__name__}: it is not kept incrementally")

    @property
    def _hidden(self) -> tuple[str, ...]:
        return () if self.domain is None else self.domain.columns

    @property
    def _alone(self) -> "Builder":
        """A copy of the builder without a domain."""
        return self if self.domain is None else replace(self, domain=None)

    def _with(self, operator: State) -> State:
        """Register an operator with state."""
        self.states.append(operator)
        return operator

    def _shared(self, operator: Operator) -> Shared:
        return self._with(Shared(operator, self.pull))

    def _name(self, stem: str) -> str:
        return f".{stem}{next(self.fresh)}"

    def _join(self, parts: Sequence[al.Pattern], conditions: Sequence[al.Expression], needed: Needed) -> Operator:
        """The join of the parts under conditions, each tested in the first leaf that can."""
        parts = [
            piece
            for at, part in enumerate(parts)
            for piece in self._pieces(part, conditions, needed.union(*map(scope, (*parts[:at], *parts[at + 1 :]))))
        ]
        early: dict[int, list[al.Expression]] = {at: [] for at in range(len(parts))}
        late: list[al.Expression] = []
        for condition in conditions:
            place = next((at for at, part in enumerate(parts) if _takes(part, condition)), None)
            (late if place is None else early[place]).append(condition)
        scopes = [scope(part) for part in parts] if len(parts) > 1 else []
        shared = {name for at, one in enumerate(scopes) for two in scopes[:at] for name in one & two}
        kept = needed.union(shared, self._hidden)
        wanted = kept.union(*map(reads, late))
        leaves = all(isinstance(part, al.BGP | al.Graph | al.Values) for part in parts)
        built = self.domain.tap() if self.domain is not None and leaves else None
        for at, part in enumerate(parts):
            leaf_ = leaf(part)
            if leaf_ is not None and leaf_.repeated is not None:
                built = self._path(built, leaf_, leaf_.repeated, _nodes_in(parts[:at], leaf_.graph))
            else:
                right = self._operand(part, early[at], wanted)
                built = right if built is None else self._joined(built, right, late, kept)
        assert built is not None
        return self._kept(built, late, [firm_part for part in parts for firm_part in firm(part)]) if late else built

    def _pieces(self, part: al.Pattern, conditions: Sequence[al.Expression], needed: Needed) -> Sequence[al.Pattern]:
        """Split triple patterns that only a comparison connects, or of which some only affect multiplicities.

        The former are joined by the compared values; of the latter, one row per key is joined with its multiplicity.
        """
        leaf_ = leaf(part)
        if self.narrow or self.domain is not None or leaf_ is None or isinstance(leaf_.graph, al.Var):
            return (part,)
        apart, pieces = stars(leaf_.bgp), disconnected(leaf_.bgp)
        if _compare(apart, lambda *sides: equality(conditions, *sides) is not None) or counted(
            apart, conditions, needed
        ):
            pieces = apart
        elif not _compare(pieces, lambda *sides: band(conditions, *sides)[0] is not None):
            return (part,)
        return [piece if leaf_.graph is None else al.Graph(leaf_.graph, piece) for piece in pieces]

    def _joined(self, left: Operator, right: Operator, late: list[al.Expression], kept: Needed) -> Operator:
        """The join of two sides; conditions that become part of the join are removed from ``late``."""
        sides = left.variables, right.variables
        equal = equality(late, *sides)
        band_, rest = band(late, *sides) if late and equal is None else (None, late)
        if band_ is None or Merge(left, right).loose:
            return self._with(JoinRows(left, right, self.effort, equal))
        names, both = kept.union(*map(reads, rest)), {*left.variables, *right.variables}
        tested = [condition for condition in rest if is_fast(condition) and both.issuperset(variables_of(condition))]
        late[:] = [condition for condition in rest if condition not in tested]
        return self._with(BandJoin(left, right, band_, names, self.effort, tested))

    def _semijoined(self, right: al.Pattern, left: Sequence[al.TriplePattern], counted: bool = True) -> al.Pattern:
        """The right side restricted to rows that can meet the left side."""
        return semijoined(right, left, counted) if self.narrow and self.domain is None else right

    def _operand(self, part: al.Pattern, conditions: Sequence[al.Expression], needed: Needed) -> Operator:
        leaf_ = leaf(part)
        if leaf_ is not None:
            return self._leaf(leaf_, conditions, needed)
        if isinstance(part, al.Values):
            return self._with(Constant(names_of(part.variables), part.rows))
        if isinstance(part, al.Graph):
            raise UnsupportedError("GRAPH over anything but triple patterns: spread the query first")
        return self.build(part, needed)

    def _leaf(self, block: PatternLeaf, conditions: Sequence[al.Expression], needed: Needed) -> Operator:
        if not block.bgp.patterns and not isinstance(block.graph, al.Var):
            return self._kept(self._with(Constant((), ((),))), conditions)
        names = (*([block.graph.name] if isinstance(block.graph, al.Var) else []), *block_names(block.bgp))
        output = tuple(name for name in dict.fromkeys((*self.order, *names)) if name in needed and name in names)
        request = BgpRequest(block.graph, block.bgp, tuple(conditions), output)
        return LeafSource(self.make_leaf(request), output, block.under(conditions))

    def _path(self, built: Operator | None, block: PatternLeaf, path: al.Repeat, present: Needed) -> Operator:
        """A repeated path: followed from a constant end, else from what is joined so far, else from all nodes.

        ``present`` are variables whose values are known to be nodes of the path's graph.
        """
        one, two = block.bgp.patterns[0].subject, block.bgp.patterns[0].object
        start, end = self.normal.variable(), self.normal.variable()
        steps = self.normal.path(start, path.path, end, block.graph)
        certain = frozenset[str]() if built is None else built.certain
        ahead = _known(one, certain) >= _known(two, certain)
        nodes, ends = ((one, two), (start, end)) if ahead else ((two, one), (end, start))
        pairs = picked(self._alone.build(steps, frozenset(names_of(ends))), names_of(ends))
        edges = self._shared(self._with(Unique(pairs)))
        zero = nullable(path)
        shared = None if built is None else self._shared(built)
        demand = self._shared(self._demand(nodes[0], shared, edges if not zero else None, block.graph))
        same = self._same(nodes[0], shared, demand, block, present, at_terms(path)) if zero else None
        placed = PathSolutions(
            self._with(Reachability(edges.tap(), demand.tap(), same, path.modifier, self.effort)), nodes
        )
        return placed if shared is None else self._with(JoinRows(shared.tap(), placed, self.effort))

    def _demand(self, node: al.Node, built: Shared | None, edges: Shared | None, graph: al.Node | None) -> Operator:
        """The nodes from which a path starts."""
        if isinstance(node, str):
            return self._with(Constant((START,), ((node,),)))
        if built is not None and node.name in built.inner.certain:
            return self._with(Unique(Pick(built.tap(), (node.name,))))
        if edges is not None:
            return self._with(Unique(Pick(edges.tap(), edges.inner.variables[:1])))
        return self._nodes(graph)

    def _same(
        self, node: al.Node, built: Shared | None, demand: Shared, block: PatternLeaf, present: Needed, terms: bool
    ) -> Operator:
        """The nodes that a path of length zero connects with themselves: the graph's, with ``terms`` also its ends."""
        if not terms:
            return self._with(Unique(self._nodes(block.graph)))
        outer = frozenset(name for name in scope(block.bgp) if name in self._hidden)
        certain = frozenset[str]() if built is None else built.inner.certain
        for name in outer - certain:
            raise UnsupportedError(f"EXISTS with a path of length zero at ?{name}, which may be unbound outside")
        if isinstance(node, str) or built is None or node.name not in certain or node.name in present | outer:
            return demand.tap()
        same = self._nodes(block.graph)
        for name in outer:
            same = Both(same, Pick(built.tap(), (name,)), same.certain)
        return self._with(Unique(same))

    def _nodes(self, graph: al.Node | None) -> Operator:
        ends = self.normal.variable(), self.normal.variable()
        bgp = al.BGP((al.TriplePattern(ends[0], self.normal.variable(), ends[1]),))
        return self._with(Unique(GraphNodes(self._alone._leaf(PatternLeaf(graph, bgp), (), frozenset(names_of(ends))))))

    def _kept(
        self, operator: Operator, conditions: Sequence[al.Expression], left: Sequence[al.TriplePattern] = ()
    ) -> Operator:
        """Filter rows, which match the patterns ``left``, by all conditions; EXISTS comes last."""
        for condition in sorted(conditions, key=reads_patterns):
            operator = (
                self._exists(operator, condition, left)
                if reads_patterns(condition)
                else FilterRows(operator, _batch(condition, operator.variables, self.effort))
            )
        return operator

    def _filter(self, inner: al.Pattern, parts: list[al.Expression], needed: Needed) -> Operator:
        if isinstance(inner, al.BGP | al.Graph | al.Values | al.Join):
            return self._join(operands(inner), parts, needed)
        if isinstance(inner, al.Group) and self.common is not None and self.domain is None:
            return self._kept(self._common_group(inner, self.common, parts), parts)
        if self.domain is None:
            inner, parts = pushed(parts, inner)
        rest = parts if self.domain is not None else [part for part in parts if not matching.misses(part, inner)]
        needed, absent = needed.union(*map(reads, rest)), len(rest) < len(parts)
        built = self._optional(inner, needed, absent) if isinstance(inner, al.LeftJoin) else self.build(inner, needed)
        return self._kept(built, rest, firm(inner))

    def _exists(self, built: Operator, condition: al.Expression, firm_left: Sequence[al.TriplePattern]) -> Operator:
        """A condition with EXISTS: alone, negated, or inside a larger expression."""
        wanted, part = True, condition
        while isinstance(part, al.Call) and part.operator == "!":
            wanted, part = not wanted, part.arguments[0]
        if isinstance(part, al.Exists):
            left, right, late = self._sides(built, part.pattern, firm_left)
            return picked(self._with(matching.existing(left, right, wanted, self.effort, late)), built.variables)
        operator, plain = self._resolved(built, condition)
        return picked(FilterRows(operator, _batch(plain, operator.variables, self.effort)), built.variables)

    def _sides(
        self, built: Operator, pattern: al.Pattern, left: Sequence[al.TriplePattern] = ()
    ) -> tuple[Operator, Operator, al.Expression | None]:
        """The sides of an EXISTS: the outer solutions, the inner rows that decide, and a condition on both."""
        inside = self.normal.pattern(pattern)
        outer = frozenset(built.variables)
        inner, late = matching.late_condition(inside, outer)
        if closed(inner, outer):
            shown = outer if late is None else outer | reads(late)
            _check(late)
            right = self._alone.build(self._alone._semijoined(inner, left, late is not None), shown & scope(inner))
            return built, picked(right, tuple(name for name in right.variables if name in shown)), late
        taken = mentions(inside)
        names = tuple(name for name in built.variables if name in taken)
        key = self._name("outer")
        keyed = self._shared(Keyed(built, key, names))
        domain = Domain(key, names, names, self._shared(self._with(Unique(Pick(keyed.tap(), (key, *names))))))
        right = replace(self, domain=domain).build(inside, frozenset((key,)))
        return keyed.tap(), Pick(right, (key,)), None

    def _resolved(self, built: Operator, expression: al.Expression) -> tuple[Operator, al.Expression]:
        """Replace each EXISTS in an expression by a column."""
        operator = built

        def resolve(tree: al.Expression) -> al.Expression:
            nonlocal operator
            if not isinstance(tree, al.Exists):
                return expression_parts(tree, lambda inner: inner, resolve)
            name = self._name("exists")
            left, right, late = self._sides(operator, tree.pattern)
            operator = picked(
                self._with(matching.marked(left, right, name, self.effort, late)), (*operator.variables, name)
            )
            return al.Var(name)

        resolved = resolve(expression)
        return operator, resolved

    def _optional(self, pattern: al.LeftJoin, needed: Needed, absent: bool = False) -> Operator:
        """OPTIONAL; if the right side must be ``absent``, only the left rows without a match."""
        pattern = decided_by_right(pattern) if self.domain is None else pattern
        condition = pattern.condition
        read = reads(condition) if condition is not None else frozenset[str]()
        both = needed | read | (scope(pattern.left) & scope(pattern.right))
        left = self.build(pattern.left, both)
        right = self.build(self._semijoined(pattern.right, firm(pattern.left)), both)
        if condition is not None and reads_patterns(condition):
            return self._optional_exists(left, right, condition)
        _check(condition)
        if absent:
            right = picked(right, tuple(name for name in right.variables if name in read.union(left.variables)))
            return self._with(matching.existing(left, right, False, self.effort, condition))
        return self._with(matching.optional(left, right, condition, self.effort))

    def _optional_exists(self, left: Operator, right: Operator, condition: al.Expression) -> Operator:
        """OPTIONAL with EXISTS in its condition: the rows that join under it, and the left rows without a match."""
        key = self._name("row")
        keyed = self._shared(Keyed(left, key, left.variables))
        joined = self._shared(self._kept(self._with(JoinRows(keyed.tap(), right, self.effort)), conjuncts(condition)))
        names = Merge(left, right).variables
        rest = self._with(matching.existing(keyed.tap(), Pick(joined.tap(), (key,)), False, self.effort))
        return Both(picked(joined.tap(), names), picked(rest, names), left.certain)

    def _union(self, left: al.Pattern, right: al.Pattern, needed: Needed) -> Operator:
        sides = self.build(left, needed), self.build(right, needed)
        names = tuple(dict.fromkeys(sides[0].variables + sides[1].variables))
        return Both(picked(sides[0], names), picked(sides[1], names), sides[0].certain & sides[1].certain)

    def _extend(self, inner: al.Pattern, name: str, expression: al.Expression, needed: Needed) -> Operator:
        self._assign(name)
        built = self.build(inner, needed | reads(expression))
        operator, plain = self._resolved(built, expression)
        return picked(
            Compute(operator, name, _batch(plain, operator.variables, self.effort), self.effort),
            (*built.variables, name),
        )

    def _assign(self, name: str) -> None:
        if name in self._hidden:
            raise UnsupportedError(f"EXISTS that assigns ?{name}, a variable of the group around it: rename it")

    def _project(self, inner: al.Pattern, names: tuple[str, ...]) -> Operator:
        """A subquery, which sees the outer variables that it projects."""
        if self.domain is None:
            return picked(self.build(inner, frozenset(names)), names)
        seen = tuple(name for name in self.domain.variables if name in mentions(inner).intersection(names))
        if not seen:
            built = picked(self._alone.build(inner, frozenset(names)), names)
        else:
            rows = self._shared(Pick(self.domain.tap(), (self.domain.key, *seen)))
            domain = replace(self.domain, variables=seen, rows=rows)
            columns = (*dict.fromkeys((*domain.columns, *names)),)
            built = picked(replace(self, domain=domain).build(inner, frozenset(columns)), columns)
        return self._with(JoinRows(self.domain.tap(), built, self.effort))

    def _normally(self, pattern: al.Pattern, columns: tuple[str, ...]) -> Operator:
        if self.narrow:
            raise UnsupportedError("LIMIT and OFFSET of a subquery: their order changes with every fact")
        return picked(self.build(self.normal.pattern(pattern), frozenset(columns)), columns)

    def _group(self, group: al.Group) -> Operator:
        """An aggregation, shared with other queries that have the same."""
        if self.common is None or self.domain is not None:
            return self._own_group(group)
        return self._common_group(group, self.common, ())

    def _common_group(self, group: al.Group, common: CommonGroups, conditions: Sequence[al.Expression]) -> Operator:
        """A reader of a shared aggregation, of at least the rows that satisfy the conditions."""
        known = common.known.get(group)
        if known is None:
            known = common.known[group] = self._with(CommonGroup(self._own_group(group), self.pull))
        else:
            self.groups.append((group, known.grouped))
        names = [variable.name for variable, _ in group.aggregates]
        limit = next((limit_ for condition in conditions if (limit_ := threshold(condition, names)) is not None), None)
        return known.tap() if limit is None else known.tap_beyond(limit)

    def _own_group(self, group: al.Group) -> Grouped:
        arguments = [aggregate.argument for _, aggregate in group.aggregates if aggregate.argument is not None]
        read = frozenset[str]().union(*map(reads, (*arguments, *(key for _, key in group.keys))))
        whole = any(aggregate.argument is None and aggregate.distinct for _, aggregate in group.aggregates)
        inner = self.build(group.pattern, _visible(group.pattern) if whole else read)
        if whole:
            inner = picked(inner, tuple(sorted(_visible(group.pattern).union(self._hidden))))
        for variable, key in group.keys:
            if key != variable:
                self._assign(variable.name)
                inner, plain = self._resolved(inner, key)
                inner = Compute(inner, variable.name, _batch(plain, inner.variables, self.effort), self.effort)
        return self._grouped(group, inner)

    def _grouped(self, group: al.Group, inner: Operator) -> Grouped:
        arguments: list[al.Expression | None] = []
        for _, aggregate in group.aggregates:
            plain = aggregate.argument
            if plain is not None:
                inner, plain = self._resolved(inner, plain)
            arguments.append(plain)
        inputs = [None if plain is None else _batch(plain, inner.variables, self.effort) for plain in arguments]
        keys = tuple(dict.fromkeys((*self._hidden, *(variable.name for variable, _ in group.keys))))
        grouped = self._with(
            Grouped(inner, keys, [(var.name, aggregate) for var, aggregate in group.aggregates], inputs, self.effort)
        )
        self.groups.append((group, grouped))
        return grouped


def picked(operator: Operator, names: tuple[str, ...]) -> Operator:
    """The operator with exactly these columns."""
    return operator if operator.variables == names else Pick(operator, names)


def _compare(pieces: Sequence[al.BGP], compares: Callable[[Collection[str], Collection[str]], bool]) -> bool:
    """Whether a condition compares two of the pieces."""
    scopes = [block_names(piece) for piece in pieces]
    return any(compares(one, two) for at, one in enumerate(scopes) for two in scopes[:at])


def _takes(part: al.Pattern, condition: al.Expression) -> bool:
    """Whether a condition can be tested inside the joins of a part."""
    leaf_ = leaf(part)
    if leaf_ is None or leaf_.repeated is not None or reads_patterns(condition):
        return False
    return bool(leaf_.bgp.patterns) and pushable(condition, leaf_.bgp)


def _nodes_in(parts: Sequence[al.Pattern], graph: al.Node | None) -> Needed:
    """The variables at subjects or objects of triple patterns over the graph."""
    leaves = [leaf(part) for part in parts]
    blocks = [leaf_.bgp for leaf_ in leaves if leaf_ is not None and leaf_.graph == graph and leaf_.repeated is None]
    nodes = (node for bgp in blocks for triple in bgp.patterns for node in (triple.subject, triple.object))
    return frozenset(node.name for node in nodes if isinstance(node, al.Var))


def _known(node: al.Node, certain: frozenset[str]) -> int:
    """How well an end of a path is known: 2 for a constant, 1 for a bound variable, else 0."""
    if isinstance(node, str):
        return 2
    return 1 if node.name in certain else 0


def _batch(expression: al.Expression, variables: Sequence[str], effort: EvaluationBudget) -> Batch:
    _check(expression)
    return Batch(expression, variables, effort)


def _visible(pattern: al.Pattern) -> Needed:
    """The variables that ``*`` selects: no blank nodes of the query, no variables made by rewriting."""
    return frozenset(name for name in scope(pattern) if not name.startswith(("_:", ".")))


def _check(expression: al.Expression | None) -> None:
    """Refuse functions whose value is not determined by a row."""
    if isinstance(expression, al.Call):
        if expression.operator.upper() in VOLATILE:
            raise UnsupportedError(f"{expression.operator.upper()}: its value changes from call to call")
        for argument in expression.arguments:
            _check(argument)
