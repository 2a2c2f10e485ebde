"""Rewritings of the algebra: GRAPH is pushed down, basic graph patterns are merged, property paths are expanded.

``GRAPH ?g { ?s :p ?v OPTIONAL { ?s :q ?w } }`` becomes ``LeftJoin(Graph(?g, ?s :p ?v), Graph(?g, ?s :q ?w))``: both
sides bind ?g, so they are joined within one graph (SPARQL 1.1, 18.6), whatever graphs exist. A group that needs no
triple is joined with the names of the existing graphs, ``Graph(?g, {})``. If ?g or MINUS occurs inside, the column
gets another name, because ?g is unbound inside and the sides of a MINUS do not share it.

SPARQL 1.1, 18.6 substitutes the outer solution into the pattern of EXISTS. If that is equivalent to joining with it
afterwards, the pattern is ``closed``. Otherwise it is evaluated with a ``Domain`` (``row_joins``): every leaf is joined
with the distinct values of the outer variables, and a key distinguishes the outer solutions up to the top. A
substituted variable is not shared by the sides of MINUS, and a subquery is substituted only for the variables that it
projects.

The normal form has one BGP for the joined patterns of a graph, and separate leaves for paths with ``*``, ``+`` or
``?``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.traversal import (
    bound,
    every_expression,
    every_pattern,
    expression_parts,
    needs_triple,
    nullable,
    parts,
    reads_patterns,
    repeats,
    with_pattern,
    written_variables,
)

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class PatternLeaf:
    """Triple patterns over one graph: ``None`` for the default graph, a variable for all named graphs."""

    graph: al.Node | None
    bgp: al.BGP

    @property
    def repeated(self) -> al.Repeat | None:
        """The path, if the leaf is a single property path with ``*``, ``+`` or ``?``."""
        path = self.bgp.patterns[0].predicate if len(self.bgp.patterns) == 1 else None
        return path if isinstance(path, al.Repeat) else None

    def under(self, conditions: Sequence[al.Expression]) -> al.Pattern:
        """The triple patterns over their graph, filtered by conditions."""
        pattern: al.Pattern = self.bgp if self.graph is None else al.Graph(self.graph, self.bgp)
        return reduce(lambda inner, condition: al.Filter(condition, inner), conditions, pattern)


def leaf(pattern: al.Pattern) -> PatternLeaf | None:
    """A normal pattern as a leaf; ``None`` for any other pattern."""
    if isinstance(pattern, al.BGP):
        return PatternLeaf(None, pattern)
    if isinstance(pattern, al.Graph) and isinstance(pattern.pattern, al.BGP):
        return PatternLeaf(pattern.name, pattern.pattern)
    return None


def operands(pattern: al.Pattern) -> tuple[al.Pattern, ...]:
    """The operands of nested joins, left to right."""
    if isinstance(pattern, al.Join):
        return operands(pattern.left) + operands(pattern.right)
    return (pattern,)


def reads(expression: al.Expression) -> Names:
    """The variables that an expression may read, including all in patterns of EXISTS."""
    names: set[str] = set()
    for part in every_expression(expression):
        if isinstance(part, al.Var):
            names.add(part.name)
        elif isinstance(part, al.Exists):
            names |= mentions(part.pattern)
    return frozenset(names)


def mentions(pattern: al.Pattern) -> Names:
    """All variables that occur in a pattern."""
    return frozenset(names_of(written_variables(pattern)))


def scope(pattern: al.Pattern) -> Names:
    """The variables in scope."""
    return frozenset(block_names(pattern) if isinstance(pattern, al.BGP) else names_of(al.pattern_variables(pattern)))


def block_names(block: al.BGP) -> tuple[str, ...]:
    """The variables of triple patterns, in order of first appearance."""
    nodes = [node for pattern in block.patterns for node in (pattern.subject, pattern.predicate, pattern.object)]
    return tuple(dict.fromkeys([node.name for node in nodes if isinstance(node, al.Var)]))


def names_of(variables: Iterable[al.Var]) -> tuple[str, ...]:
    """The names of variables."""
    return tuple(variable.name for variable in variables)


def zero_ends(pattern: al.Pattern) -> Names:
    """The variables at the ends of a path that may have length zero, where an outer value matches itself."""
    leaf_ = leaf(pattern)
    if leaf_ is None or leaf_.repeated is None or not nullable(leaf_.repeated):
        return frozenset()
    return scope(pattern)


def closed(pattern: al.Pattern, outer: Names) -> bool:
    """Whether substituting the outer variables is equivalent to joining with them afterwards."""
    match pattern:
        case al.BGP() | al.Graph():
            return not zero_ends(pattern) & outer
        case al.Values():
            return True
        case al.Slice():
            # LIMIT cuts after substitution, so a slice that shares a variable is another slice for each outer
            # solution.
            return not scope(pattern) & outer
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            return closed(left, outer) and closed(right, outer)
        case al.LeftJoin(left=left, right=right, condition=condition):
            # In an OPTIONAL, substitution decides whether the right side matches. Afterwards it is too late: the left
            # row would have been kept or dropped by other matches.
            taken = mentions(right) | (reads(condition) if condition is not None else frozenset())
            return closed(left, outer) and closed(right, outer) and taken & outer <= bound(left)
        case al.Minus(left=left, right=right):
            # A substituted variable is no longer a variable that both sides of a MINUS share.
            return closed(left, outer) and not mentions(right) & outer
        case al.Filter(condition=condition, pattern=inner):
            return closed(inner, outer) and reads(condition) & outer <= bound(inner)
        case al.Extend(pattern=inner, variable=variable, expression=value):
            known = reads(value) & outer <= bound(inner) and variable.name not in outer
            return known and closed(inner, outer)
        case al.Project(pattern=inner, variables=variables):
            return closed(inner, outer & frozenset(names_of(variables)))
        case al.Group(pattern=inner, keys=keys):
            # Substitution restricts the rows that are aggregated; joining afterwards is the same only if the variable
            # is a key.
            kept = outer & scope(pattern)
            return kept <= {var.name for var, key in keys if var == key} & bound(inner) and closed(inner, kept)
        case _:
            return closed(pattern.pattern, outer)


MOST_PATTERNS = 16
"""Maximum triple patterns of one generated join: CPython allows 20 nested loops."""


class UnsupportedError(ValueError):
    """A query that the incremental evaluator does not support; the message names the part."""


@dataclass
class Normaliser:
    """Rewrites patterns; its fresh variables ``_:path0``, ``_:path1`` ... are unique across them."""

    _fresh: Iterator[int] = field(default_factory=count)

    def pattern(self, pattern: al.Pattern) -> al.Pattern:
        """The normal form of a pattern; UnsupportedError names an unsupported part."""
        match pattern:
            case al.BGP(patterns=patterns):
                return _joined(self._bgp(patterns, None))
            case al.Graph(name=name, pattern=al.BGP(patterns=patterns)):
                return _joined(self._bgp(patterns, name))
            case al.Join():
                return _over_unions([part for operand in operands(pattern) for part in operands(self.pattern(operand))])
            case al.Filter(condition=condition, pattern=al.Join() as inner):
                return _filtered(condition, self.pattern(inner))
            case al.LeftJoin() | al.Union() | al.Minus():
                return replace(pattern, left=self.pattern(pattern.left), right=self.pattern(pattern.right))
            case al.Values():
                return pattern
            case al.Slice(pattern=inner, offset=0, limit=None):
                return self.pattern(inner)
            case al.Slice():
                return pattern  # taken apart with its order when its operator is built
            case al.OrderBy(pattern=inner) | al.Reduced(pattern=inner):
                return self.pattern(inner)
            case _:
                return replace(pattern, pattern=self.pattern(pattern.pattern))

    def _bgp(self, patterns: tuple[al.TriplePattern, ...], graph: al.Node | None) -> Iterator[al.Pattern]:
        plain = tuple(triple for triple in patterns if isinstance(triple.predicate, al.Var | str))
        if plain or not patterns:
            yield _over(graph, plain)
        for triple in patterns:
            if triple not in plain:
                yield from operands(self.path(triple.subject, triple.predicate, triple.object, graph))

    def path(self, subject: al.Node, path: al.Path | al.Var, end: al.Node, graph: al.Node | None) -> al.Pattern:
        """A property path as a pattern; a path with ``*``, ``+`` or ``?`` remains as a leaf."""
        match path:
            case al.Inverse(path=inner):
                return self.path(end, inner, subject, graph)
            case al.Sequence(steps=steps):
                return _joined(self._steps(subject, steps, end, graph))
            case al.Alternative(choices=choices):
                return reduce(al.Union, [self.path(subject, choice, end, graph) for choice in choices])
            case al.NegatedSet():
                return reduce(al.Union, self._negated(subject, path, end, graph))
            case _:
                return _over(graph, (al.TriplePattern(subject, path, end),))

    def _steps(
        self, subject: al.Node, steps: tuple[al.Path, ...], end: al.Node, graph: al.Node | None
    ) -> Iterator[al.Pattern]:
        here = subject
        for step in steps[:-1]:
            there = self.variable()
            yield from operands(self.path(here, step, there, graph))
            here = there
        yield from operands(self.path(here, steps[-1], end, graph))

    def _negated(
        self, subject: al.Node, path: al.NegatedSet, end: al.Node, graph: al.Node | None
    ) -> Iterator[al.Pattern]:
        # ``!()`` has neither and matches every predicate forwards.
        if path.forward or not path.backward:
            yield self._other_than(subject, path.forward, end, graph)
        if path.backward:
            yield self._other_than(end, path.backward, subject, graph)

    def _other_than(
        self, subject: al.Node, excluded: tuple[Term, ...], end: al.Node, graph: al.Node | None
    ) -> al.Pattern:
        predicate = self.variable()
        pattern = _over(graph, (al.TriplePattern(subject, predicate, end),))
        for iri in excluded:
            pattern = al.Filter(al.Call("!=", (predicate, iri)), pattern)
        return pattern

    def variable(self) -> al.Var:
        """A variable that no query contains."""
        return al.Var(f"_:path{next(self._fresh)}")


MOST_BRANCHES = 4
"""Maximum branches of a UNION over which a join is distributed."""


def _over_unions(parts: Sequence[al.Pattern]) -> al.Pattern:
    """The join of the parts, distributed over the branches of a UNION that leaves a shared variable unbound.

    A worked example: ``?s :in ?r { ?r :floor ?f } UNION { ?s :extra ?f }``. Rows of the UNION bind ?r or ?s, so that
    they share no key. ``{ ?s :in ?r . ?r :floor ?f } UNION { ?s :in ?r ; :extra ?f }`` has the same solutions with the
    same multiplicities, by two joins of triples.
    """
    for union in parts:
        others = [part for part in parts if part is not union]
        branches = _branches(union)
        known = frozenset[str]().union(*map(scope, others))
        if 1 < len(branches) <= MOST_BRANCHES and all(map(_is_plain, (*branches, *others))):
            # Where a branch leaves a variable unbound that the others bind, rows have no common key.
            if (scope(union) & known) - bound(union):
                return reduce(al.Union, [_joined([*others, branch]) for branch in branches])
            break
    return _joined(parts)


def _branches(pattern: al.Pattern) -> tuple[al.Pattern, ...]:
    """The branches of nested UNIONs, left to right."""
    return (*_branches(pattern.left), *_branches(pattern.right)) if isinstance(pattern, al.Union) else (pattern,)


def _is_plain(pattern: al.Pattern) -> bool:
    """Whether a pattern consists of triple patterns over one graph."""
    leaf_ = leaf(pattern)
    return leaf_ is not None and leaf_.repeated is None and bool(leaf_.bgp.patterns)


def _filtered(condition: al.Expression, pattern: al.Pattern) -> al.Pattern:
    """The filtered pattern; a condition is pushed into the branches of a distributed UNION."""
    if isinstance(pattern, al.Union) and not reads_patterns(condition):
        return al.Union(_filtered(condition, pattern.left), _filtered(condition, pattern.right))
    return al.Filter(condition, pattern)


def _over(graph: al.Node | None, patterns: tuple[al.TriplePattern, ...]) -> al.Pattern:
    """Triple patterns over a graph; without patterns the empty BGP, or the names of all graphs."""
    bgp = al.BGP(patterns)
    return bgp if graph is None or (isinstance(graph, str) and not patterns) else al.Graph(graph, bgp)


def _joined(parts: Iterable[al.Pattern]) -> al.Pattern:
    """The join of the parts: plain triple patterns first, merged per graph; repeated paths last."""
    blocks: dict[al.Node | None, tuple[al.TriplePattern, ...]] = {}
    others: list[al.Pattern] = []
    paths: list[al.Pattern] = []
    for part in parts:
        leaf_ = leaf(part)
        if leaf_ is None:
            others.append(part)
        elif leaf_.repeated is not None:
            paths.append(part)
        else:
            blocks[leaf_.graph] = blocks.get(leaf_.graph, ()) + leaf_.bgp.patterns
    merged = [
        _over(graph, some)
        for graph, patterns in blocks.items()
        for some in (_portions(patterns) if patterns or not isinstance(graph, al.Var) else [()])
    ]
    return _chained([*merged, *others, *paths] or [al.BGP(())])


def _portions(patterns: tuple[al.TriplePattern, ...]) -> Iterator[tuple[al.TriplePattern, ...]]:
    """The patterns in portions of at most MOST_PATTERNS, connected if possible."""
    if 0 < len(patterns) <= MOST_PATTERNS:
        yield patterns
        return
    waiting, known, ordered = list(dict.fromkeys(patterns)), frozenset[al.Var](), list[al.TriplePattern]()
    while waiting:
        chosen = next((triple for triple in waiting if known & set(al.triple_variables(triple))), waiting[0])
        waiting.remove(chosen)
        ordered.append(chosen)
        known |= set(al.triple_variables(chosen))
    for start in range(0, len(ordered), MOST_PATTERNS):
        yield tuple(ordered[start : start + MOST_PATTERNS])


def _chained(parts: list[al.Pattern]) -> al.Pattern:
    """The join of the parts in an order in which each shares a variable with those before it, if possible."""
    chain, waiting = parts[0], parts[1:]
    while waiting:
        known = set(al.pattern_variables(chain))
        # A part that shares nothing would be a product; it waits until all that are connected have been joined.
        chosen = next((part for part in waiting if known & set(al.pattern_variables(part))), waiting[0])
        waiting.remove(chosen)
        chain = al.Join(chain, chosen)
    return chain


HIDDEN = ".graph"
"""The prefix of columns for graph names that a query does not bind."""


def push_graphs(form: al.QueryForm) -> al.QueryForm:
    """Push every GRAPH down, until only ``Graph`` over a BGP is left.

    UnsupportedError names what is not supported inside ``GRAPH ?g``. Returns the same object if there is no GRAPH.
    """
    if not any(isinstance(pattern, al.Graph) for pattern in every_pattern(form.pattern)):
        return form
    return with_pattern(form, _GraphPush().push(form.pattern, None))


@dataclass
class _GraphPush:
    """Pushes GRAPH down in one query; ``numbers`` name its own columns."""

    numbers: "count[int]" = field(default_factory=count)

    def push(self, pattern: al.Pattern, graph: al.Node | None) -> al.Pattern:
        """The pattern with this active graph: the default graph (``None``), a name, or a variable for all."""
        match pattern:
            case al.BGP():
                return self._block(pattern, graph)
            case al.Graph(name=name, pattern=inner):
                inner_pattern = self._every(name, inner) if isinstance(name, al.Var) else self._named(name, inner)
                return al.Join(inner_pattern, _names(graph)) if isinstance(graph, al.Var) else inner_pattern
            case al.Values() if isinstance(graph, al.Var):
                return al.Join(pattern, _names(graph))
        below = partial(self.push, graph=graph)
        pushed = parts(pattern, below, partial(_inside, below=below))
        return _carrying(pushed, graph) if isinstance(graph, al.Var) else pushed

    def _block(self, block: al.BGP, graph: al.Node | None) -> al.Pattern:
        if graph is None or (isinstance(graph, str) and not block.patterns):
            return block
        if isinstance(graph, al.Var) and any(repeats(triple.predicate) for triple in block.patterns):
            raise UnsupportedError("a property path with *, + or ? inside GRAPH ?variable: name the graph")
        return al.Graph(graph, block)

    def _every(self, name: al.Var, inner: al.Pattern) -> al.Pattern:
        """``GRAPH ?name { inner }``."""
        occurs = name.name in mentions(inner)
        # The variable of GRAPH itself can be the column only if nothing inside could tell: neither a use of it nor a
        # MINUS, whose sides would share it.
        if not occurs and not any(isinstance(pattern, al.Minus) for pattern in every_pattern(inner)):
            return self.push(inner, name)
        own = self._own()
        pushed = self.push(inner, own)
        if name.name not in scope(inner):
            return al.Extend(pushed, name, own)
        if name.name not in bound(inner):
            raise UnsupportedError(f"GRAPH ?{name.name} whose group may bind ?{name.name}: use another variable in it")
        # The group binds the variable itself: its solutions must agree with the name of the graph.
        return al.Filter(al.Call("SAMETERM", (name, own)), pushed)

    def _named(self, name: Term, inner: al.Pattern) -> al.Pattern:
        """``GRAPH <name> { inner }``: no solutions if the graph does not exist."""
        pushed = self.push(inner, name)
        if needs_triple(inner):
            return pushed
        # Without a triple pattern nothing inside would fail in a graph that does not exist, so its name is looked up.
        own = self._own()
        # Without a triple pattern nothing inside would fail in a graph that does not exist, so its name is looked up.
        return al.Join(al.Join(_names(own), al.Values((own,), ((name,),))), pushed)

    def _own(self) -> al.Var:
        return al.Var(f"{HIDDEN}{next(self.numbers)}")


def _names(graph: al.Var) -> al.Pattern:
    """The names of the existing graphs."""
    return al.Graph(graph, al.BGP(()))


def _inside(tree: al.Expression, below: partial[al.Pattern]) -> al.Expression:
    """The expression with GRAPH pushed down inside EXISTS."""
    return expression_parts(tree, below, partial(_inside, below=below))


def _carrying(pattern: al.Pattern, graph: al.Var) -> al.Pattern:
    """A pattern inside ``GRAPH ?graph`` with the graph's name as a column."""
    match pattern:
        case al.Project(pattern=inner, variables=variables):
            return al.Project(inner, (*variables, graph))
        case al.Group(pattern=inner, keys=keys, aggregates=aggregates):
            if not keys:
                raise UnsupportedError("an aggregate without GROUP BY inside GRAPH ?variable: group by it outside")
            return al.Group(inner, (*keys, (graph, graph)), aggregates)
        case _:
            return pattern
