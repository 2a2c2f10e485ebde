"""SPARQL algebra to relations: one case per operator, for all reports of a run together.

Basic graph patterns are joined star by star, in the order of the variables that connect them. A star is a set of triple
patterns linked through a subject. Only RDF variables connect; the window never does.

LIMIT and OFFSET keep the rows that ORDER BY determines in each report, or fail where SPARQL leaves them open.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.algebra import TriplePattern, Var, triple_variables
from streamgauge.model.terms import Term
from streamgauge.query.traversal import conjuncts, every_expression, every_pattern, expression_parts, expressions, parts
from streamgauge.spark import relation as rel
from streamgauge.spark.aggregates import group, running_group
from streamgauge.spark.exists import (
    Given,
    How,
    Narrow,
    distinct,
    flagged,
    is_join,
    kept,
    leaves,
    left_join,
    minus,
    negated,
    outer_rows,
    semi_join,
    settled,
)
from streamgauge.spark.facts import GraphFactsTable
from streamgauge.spark.intervals import swept
from streamgauge.spark.paths import NODE, OuterNodes, path_solutions
from streamgauge.spark.relation import Relation, column, join, number
from streamgauge.spark.scalars import DATA_BITS, SPARK_TYPES, canonical, condition, fast, value
from streamgauge.spark.term_order import chosen, places

AMBIGUOUS = (
    "streamgauge: LIMIT or OFFSET cuts between rows that ORDER BY does not tell apart: several answers are legal"
)
"""In the message of the error that a job fails with when a legal answer might be another one."""

_OPEN = "open"


@dataclass(frozen=True)
class Parts:
    """A SELECT under LIMIT and OFFSET taken apart; ``variables`` is ``None`` without a projection."""

    pattern: al.Pattern
    variables: tuple[str, ...] | None
    keys: tuple[tuple[al.Expression, bool], ...]
    distinct: bool


def taken_apart(node: al.Slice) -> Parts:
    """The sliced pattern, from DISTINCT down to the pattern under ORDER BY."""
    inner = node.pattern
    variables: tuple[str, ...] | None = None
    keys: tuple[tuple[al.Expression, bool], ...] = ()
    distinct = isinstance(inner, al.Distinct)
    if isinstance(inner, al.Distinct | al.Reduced):
        inner = inner.pattern
    if isinstance(inner, al.Project):
        variables, inner = tuple(var.name for var in inner.variables), inner.pattern
    if isinstance(inner, al.OrderBy):
        keys, inner = inner.keys, inner.pattern
    return Parts(inner, variables, keys, distinct)


def sliced(relation: Relation, node: al.Slice, keys: Sequence[Column], within: Sequence[str] = ()) -> Relation:
    """The rows that are kept of each report (and of each value of the variables ``within``) of an expanded relation.

    ``keys`` are the terms of the ORDER BY keys, as columns over it.
    """
    parts = taken_apart(node)
    names = relation.variables if parts.variables is None else (*parts.variables, *within)
    terms = [relation.value(name).alias(f"t{index}") for index, name in enumerate(names)]
    ordered = [key.alias(f"k{index}") for index, key in enumerate(keys)]
    groups = [fn.col("lo").cast("string").alias("g"), *(fn.col(column(n)).alias(f"g{i}") for i, n in enumerate(within))]
    rows = relation.frame.select(*groups, "lo", *terms, *ordered)
    kinds = {"lo": "int", **{f"t{index}": "string" for index in range(len(names))}, _OPEN: "int"}
    kept = swept(rows, rows.columns[: len(groups)], partial(_keep, node, parts, len(names)), kinds)
    failed = fn.raise_error(fn.lit(AMBIGUOUS)).cast("int")
    # In ``lo``, which every plan above reads: the optimizer would prune an unread column, and its error with it.
    low = fn.when(fn.col(_OPEN) == 1, failed).otherwise(fn.col("lo"))
    chosen_terms = [fn.col(f"t{index}").alias(column(name)) for index, name in enumerate(names)]
    frame = kept.select(low.alias("lo"), *chosen_terms).select("lo", fn.col("lo").alias("hi"), *map(column, names))
    return Relation(frame, names, relation.certain & set(names), 1)


def _keep(node: al.Slice, parts: Parts, width: int, listed: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows (report, terms, whether the choice is open) that are kept of rows (report, terms, keys)."""
    rows = list(listed)
    terms = [row[1 : width + 1] for row in rows]
    stands = places([row[width + 1 :] for row in rows], [down for _, down in parts.keys])
    indices = chosen(terms, stands, parts.distinct, node.offset, node.limit)
    if indices is None:
        # A single row carries the mark; its job fails, so its terms are never shown.
        yield *rows[0][: width + 1], 1
    for index in indices or ():
        yield *rows[index][: width + 1], 0


Item = TypeVar("Item")

_FEWER = 1  # a constant or a condition is taken to halve the rows


def basic_graph_pattern(
    facts: GraphFactsTable, patterns: Sequence[TriplePattern], numeric: frozenset[str], filtered: frozenset[str]
) -> Relation:
    """The solutions of a non-empty basic graph pattern, smallest first; ``filtered`` variables have conditions."""

    def size(pattern: TriplePattern) -> int:
        constants = sum(isinstance(node, str) for node in (pattern.subject, pattern.object))
        return facts.rows(pattern) // (1 + _FEWER * (constants + len(_triple_names(pattern) & filtered)))

    def smallest(star: Sequence[TriplePattern]) -> int:
        return min(map(size, star))

    def star(chosen: Sequence[TriplePattern]) -> Relation:
        return _joined(facts, [facts.match(pattern, numeric) for pattern in ordered(chosen, _triple_names, size)])

    stars = _stars(patterns)
    return _joined(facts, [star(chosen) for chosen in ordered(stars, _star_variables, smallest)])


def ordered(
    items: Sequence[Item], variables: Callable[[Item], frozenset[str]], size: Callable[[Item], int]
) -> list[Item]:
    """Join order: the smallest first, then always one that shares a variable with those before, if any does."""
    # A product of two large relations is what an order can do worst, hence connection before size.
    rest, ordered_items, known = list(items), list[Item](), frozenset[str]()
    while rest:
        # The position comes last, so that estimates that are equal always give the same plan.
        best = min(rest, key=lambda item: (not variables(item) & known, size(item), items.index(item)))
        rest.remove(best)
        ordered_items.append(best)
        known |= variables(best)
    return ordered_items


def _joined(facts: GraphFactsTable, relations: Sequence[Relation]) -> Relation:
    return reduce(lambda left, right: join(left, right, facts.reports), relations)


def _stars(patterns: Sequence[TriplePattern]) -> list[tuple[TriplePattern, ...]]:
    stars: list[tuple[TriplePattern, ...]] = []
    for pattern in patterns:
        linked = [star for star in stars if any(_linked(pattern, other) for other in star)]
        # A pattern may link stars that were separate so far.
        merged = tuple(item for star in linked for item in star)
        stars = [star for star in stars if star not in linked] + [(*merged, pattern)]
    return stars


def _linked(one: TriplePattern, other: TriplePattern) -> bool:
    """Whether two patterns share a variable that is the subject of at least one of them."""
    subjects = {node.name for node in (one.subject, other.subject) if isinstance(node, Var)}
    return bool(subjects & _triple_names(one) & _triple_names(other))


def _triple_names(pattern: TriplePattern) -> frozenset[str]:
    return frozenset(var.name for var in triple_variables(pattern))


def _star_variables(star: Iterable[TriplePattern]) -> frozenset[str]:
    return frozenset().union(*map(_triple_names, star))


_FLAG = ".exists"


@dataclass(frozen=True)
class Compiler:
    """Compiles patterns over the facts of each graph (``None``: the default graph) that `reads` names.

    ``numeric`` names the variables whose values are wanted as numbers. From ``many`` reports on, rows stay over
    intervals where they can; below, operators that compare rows work report by report. In an EXISTS, ``given`` are the
    outer rows.
    """

    graphs: Mapping[Term | None, GraphFactsTable]
    numeric: frozenset[str]
    many: int
    graph: Term | None = None
    given: Given | None = None

    @property
    def facts(self) -> GraphFactsTable:
        """The facts of the graph that patterns are matched with."""
        return self.graphs[self.graph]

    @property
    def reports(self) -> int:
        """The number of reports."""
        return self.facts.reports

    def relation(self, pattern: al.Pattern) -> Relation:
        """The solutions of a pattern in all reports."""
        compilers: dict[type, Callable[[Any], Relation]] = {
            al.BGP: self._bgp,
            al.Join: self._join,
            al.LeftJoin: self._left_join,
            al.Filter: self._filter,
            al.Union: self._union,
            al.Minus: self._minus,
            al.Extend: self._extend,
            al.Values: self._values,
            al.Graph: self._in_graph,
            al.Group: self._group,
            al.Project: self._project,
            al.Distinct: self._distinct,
            al.Reduced: self._same,
            al.OrderBy: self._same,
            al.Slice: self._slice,
        }
        return compilers[type(pattern)](pattern)

    def expanded(self, pattern: al.Pattern) -> Relation:
        """The solutions of a pattern, with the report of each."""
        return rel.refine(self.relation(pattern), 1)

    def _comparable(self, relation: Relation) -> Relation:
        """A relation as the operators want it that look for matches: report by report, or over intervals."""
        return relation if self.reports >= self.many else rel.refine(relation, 1)

    def _leaf(self, relation: Relation) -> Relation:
        """The solutions for each outer row, inside EXISTS."""
        return relation if self.given is None else self.given.joined(relation, self.reports)

    def _bgp(self, node: al.BGP, filtered: frozenset[str] = frozenset()) -> Relation:
        plain = [triple for triple in node.patterns if isinstance(triple.predicate, al.Var | str)]
        relations = {
            al.BGP((triple,)): path_solutions(self.facts, triple, self._near(triple))
            for triple in node.patterns
            if triple not in plain
        }
        if plain:
            solutions = basic_graph_pattern(self.facts, plain, self.numeric, filtered)
            # ``copies``: the triples were not made distinct, so a repeated triple would count as another solution.
            relations[al.BGP(tuple(plain))] = distinct(solutions) if self.facts.copies else solutions
        if not relations:
            return self._leaf(self._always((), ((),)))
        blocks = ordered(list(relations), _names, lambda block: block != al.BGP(tuple(plain)))
        return self._leaf(reduce(self._joined, [relations[block] for block in blocks]))

    def _near(self, triple: al.TriplePattern) -> OuterNodes | None:
        """The outer rows' values for the ends of a path, over NODE."""
        if self.given is None:
            return None
        names = {end.name for end in (triple.subject, triple.object) if isinstance(end, al.Var)}
        known = [name for name in self.given.names if name in names and name in self.given.relation.variables]
        ends = [self.given.relation.project((name,)).rename({name: NODE}) for name in known]
        bound = [end.where(fn.col(column(NODE)).isNotNull()) for end in ends]
        return OuterNodes(distinct(reduce(rel.union, bound)), frozenset(known)) if bound else None

    def _joined(self, left: Relation, right: Relation) -> Relation:
        return rel.join(left, right, self.reports)

    def _in_graph(self, node: al.Graph) -> Relation:
        assert isinstance(node.name, str)
        return replace(self, graph=node.name).relation(node.pattern)

    def _join(self, node: al.Join) -> Relation:
        return self._joined(self.relation(node.left), self.relation(node.right))

    def _union(self, node: al.Union) -> Relation:
        return rel.union(self.relation(node.left), self.relation(node.right))

    def _minus(self, node: al.Minus) -> Relation:
        left, right = self._read_again(node.left), self._comparable(self.relation(node.right))
        return minus(left, right, self.reports, self.given.free() if self.given else None)

    def _read_again(self, pattern: al.Pattern) -> Relation:
        """The left side of an operator that may read it twice."""
        relation = self._comparable(self.relation(pattern))
        return settled(relation) if any(map(_reads_twice, every_pattern(pattern))) else relation

    def _left_join(self, node: al.LeftJoin) -> Relation:
        left, right = self._read_again(node.left), self._comparable(self.relation(node.right))
        if node.condition is None:
            return left_join(left, right, self.reports)
        wanted = node.condition
        return left_join(left, right, self.reports, lambda pairs: self._where(wanted, pairs))

    def _filter(self, node: al.Filter) -> Relation:
        if not isinstance(node.pattern, al.BGP):
            return self._where(node.condition, self.relation(node.pattern))
        names, triples = frozenset(var.name for var in al.expression_variables(node.condition)), node.pattern.patterns
        # With copies, the condition goes below DISTINCT, which then compares fewer rows.
        if not triples or not self.facts.copies or self.given or _exists_in(node.condition):
            return self._where(node.condition, self._bgp(node.pattern, names))
        solutions = basic_graph_pattern(self.facts, triples, self.numeric, names)  # copies: there are no paths
        return distinct(self._where(node.condition, solutions))

    def _where(self, wanted: al.Expression, relation: Relation) -> Relation:
        """The rows that a condition keeps, its EXISTS last."""
        together = conjuncts(wanted)
        plain = [part for part in together if not _exists_in(part)]
        # The conditions on single rows first: fewer rows are then joined with the patterns of EXISTS.
        relation_ = reduce(lambda rows, part: rows.where(condition(part, rows)), plain, relation)
        for index, part in enumerate(part for part in together if part not in plain):
            # Each EXISTS uses the plan of its rows more than once, so a chain of them would double it at every step.
            relation_ = self._where_exists(settled(relation_) if index else relation_, part)
        return relation_

    def _where_exists(self, outer: Relation, part: al.Expression) -> Relation:
        exists = negated(part) or part
        if isinstance(exists, al.Exists):
            return self._matching(outer, exists.pattern, "left_semi" if exists is part else "left_anti")
        expression, flagged = self._flagged(part, outer)
        return flagged.where(condition(expression, flagged)).project(outer.variables)

    def _matching(self, outer: Relation, pattern: al.Pattern, how: How) -> Relation:
        """The rows of ``outer`` for which an EXISTS pattern has a solution, or those for which it has none."""
        left = self._comparable(outer)
        if is_join(pattern):
            right, narrow = self._paired(pattern)
            return semi_join(left, right, self.reports, how, narrow)
        known, matched = self._matched(left, pattern)
        return kept(known, matched, how).project(left.variables)

    def _matched(self, outer: Relation, pattern: al.Pattern) -> tuple[Relation, Relation]:
        """The outer rows with a key of the variables that an EXISTS pattern uses, and the keys for which it is true."""
        known, outer_relation = outer_rows(self._comparable(outer), pattern)
        # Each leaf of the pattern is joined with the outer rows: computed once for all leaves.
        if leaves(pattern) > 1:
            outer_relation = replace(outer_relation, relation=settled(outer_relation.relation))
        matched = replace(self, given=outer_relation).relation(pattern).project((outer_relation.key,))
        return known, self._comparable(matched)

    def _paired(self, pattern: al.Pattern) -> tuple[Relation, Narrow | None]:
        """EXISTS as a join: its right side, and its outermost conditions, which may speak of outer variables."""
        conditions: list[al.Expression] = []
        while isinstance(pattern, al.Filter):
            conditions.append(pattern.condition)
            pattern = pattern.pattern

        def narrow(pairs: Relation) -> Relation:
            return reduce(lambda rows, part: rows.where(condition(part, rows)), conditions, pairs)

        right = self._comparable(replace(self, given=None).relation(pattern))
        return right, narrow if conditions else None

    def _flagged(self, tree: al.Expression, relation: Relation) -> tuple[al.Expression, Relation]:
        """Replace each EXISTS of an expression by a variable, and extend the rows by these variables."""
        flagged_relation = relation
        flags: dict[al.Exists, al.Var] = {}
        for exists in _exists_in(tree):
            flags[exists], flagged_relation = self._flag(exists, flagged_relation)
        return _replaced(tree, flags), flagged_relation

    def _flag(self, exists: al.Exists, relation: Relation) -> tuple[al.Var, Relation]:
        """A new variable with the truth of EXISTS in each row."""
        name = rel.fresh(relation, _FLAG)
        rows = flagged(*self._matched(relation, exists.pattern), name)
        return al.Var(name), rows.project((*relation.variables, name))

    def _extend(self, node: al.Extend) -> Relation:
        before, name = self.relation(node.pattern), node.variable.name
        expression, inner = self._flagged(node.expression, before)
        typed = fast(expression, inner)
        numbers = dict(inner.numbers)
        frame = inner.frame
        # ``fast`` takes the number of a variable to have DATA_BITS: a wider one could overflow in the next product.
        if typed is not None and typed.kind in SPARK_TYPES and typed.bits <= DATA_BITS:
            numbers[name] = typed.kind
            frame = frame.withColumn(number(name), typed.column)
        simple = isinstance(expression, al.Var) or name not in numbers or typed is None
        term = value(expression, inner) if simple or typed is None else canonical(typed)
        frame = frame.withColumn(column(name), term)
        sure = isinstance(expression, str) or (isinstance(expression, al.Var) and expression.name in inner.certain)
        certain = inner.certain | {name} if sure else inner.certain
        relation = Relation(frame, (*inner.variables, name), certain, inner.width, numbers)
        return relation if inner is before else relation.project((*before.variables, name))

    def _values(self, node: al.Values) -> Relation:
        return self._leaf(self._always(tuple(var.name for var in node.variables), node.rows))

    def _group(self, node: al.Group) -> Relation:
        before = self.relation(node.pattern)
        wanted, inner = self._flagged_group(node, before)
        # The sweep has no key of outer rows, and at width 1 no intervals to save.
        if self.given is None and inner.width > 1 and self.reports >= self.many:
            running = running_group(inner, wanted, self.reports)
            if running is not None:
                return running
        # Also the reports without solutions: a group without keys exists in them.
        every = self.facts.spark.range(self.reports).select(fn.col("id").cast("int").alias("lo"))
        if self.given is None:
            return group(every, rel.refine(inner, 1), wanted)
        key = al.Var(self.given.key)
        rows = rel.refine(self.given.relation, 1).frame.select("lo", column(key.name))
        return self._leaf(group(rows, rel.refine(inner, 1), wanted, (key.name,)))

    def _flagged_group(self, node: al.Group, relation: Relation) -> tuple[al.Group, Relation]:
        """A Group without EXISTS in its keys and aggregates, and the rows with their values."""
        trees = [tree for _, tree in node.keys] + [a.argument for _, a in node.aggregates if a.argument is not None]
        if not any(map(_exists_in, trees)):
            return node, relation
        flags: dict[al.Exists, al.Var] = {}
        for exists in dict.fromkeys(exists for tree in trees for exists in _exists_in(tree)):
            flags[exists], relation = self._flag(exists, relation)
        without = parts(node, lambda pattern: pattern, lambda tree: _replaced(tree, flags))
        assert isinstance(without, al.Group)
        return without, relation

    def _project(self, node: al.Project) -> Relation:
        names = tuple(var.name for var in node.variables)
        if self.given is None:
            return self.relation(node.pattern).project(names)
        return self._leaf(self._within(names).relation(node.pattern).project((*names, self.given.key)))

    def _within(self, names: tuple[str, ...]) -> "Compiler":
        """The compiler for what a projection to these variables is made of."""
        return self if self.given is None else replace(self, given=self.given.limited(names))

    def _distinct(self, node: al.Distinct) -> Relation:
        return distinct(self._comparable(self.relation(node.pattern)))

    def _same(self, node: al.Reduced | al.OrderBy) -> Relation:
        # Solutions are a bag here: ORDER BY matters below a slice only, and REDUCED may keep every copy.
        return self.relation(node.pattern)

    def _slice(self, node: al.Slice) -> Relation:
        apart = taken_apart(node)
        inner = self if apart.variables is None else self._within(apart.variables)
        relation = rel.refine(inner.relation(apart.pattern), 1)
        trees = []
        for tree, _ in apart.keys:
            expression, relation = inner._flagged(tree, relation)
            trees.append(expression)
        keys = [value(tree, relation) for tree in trees]
        if self.given is None:
            return sliced(relation, node, keys)
        return self._leaf(sliced(relation, node, keys, (self.given.key,)))

    def _always(self, variables: tuple[str, ...], rows: tuple[tuple[str | None, ...], ...]) -> Relation:
        return rel.always(self.facts.spark, self.reports, variables, rows)


def _names(block: al.BGP) -> frozenset[str]:
    return frozenset(var.name for triple in block.patterns for var in al.triple_variables(triple))


def _exists_in(tree: al.Expression) -> list[al.Exists]:
    """The distinct EXISTS of an expression, without those nested in one."""
    return list(dict.fromkeys(part for part in every_expression(tree) if isinstance(part, al.Exists)))


def lasting(form: al.QueryForm) -> bool:
    """Whether a plan of the query, once made, may be run over other rows: nothing of it is computed but by running it.

    Not so for paths, for EXISTS, and where an OPTIONAL or MINUS is on the left of another: `settled` keeps rows.
    """
    return not any(map(_keeps_rows, every_pattern(form.pattern)))


def _keeps_rows(pattern: al.Pattern) -> bool:
    match pattern:
        case al.BGP(patterns=triples):
            return any(not isinstance(triple.predicate, al.Var | str) for triple in triples)
        case al.LeftJoin(left=left) | al.Minus(left=left) if any(map(_reads_twice, every_pattern(left))):
            return True
        case _:
            return any(map(_exists_in, expressions(pattern)))


def _reads_twice(pattern: al.Pattern) -> bool:
    """Whether an operator compares its left side with its matches."""
    return isinstance(pattern, al.LeftJoin | al.Minus) or any(map(_exists_in, expressions(pattern)))


def _replaced(tree: al.Expression, flags: Mapping[al.Exists, al.Var]) -> al.Expression:
    if isinstance(tree, al.Exists):
        return flags[tree]
    return expression_parts(tree, lambda pattern: pattern, lambda part: _replaced(part, flags))
