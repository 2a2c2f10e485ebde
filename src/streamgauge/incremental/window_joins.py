"""Joins over the graphs of windows: generated functions that process the triples that enter and leave.

The basic graph patterns of all queries share the relations in which triples are looked up, so that one function
handles a graph. A triple that enters is added to all indexes first; one that leaves is removed last. A solution
that uses the triple in several patterns is counted at the first one only: pattern i joins with patterns j < i on
triples other than the new one.

An index maps a key with one value to a tuple and a key with several to a set. If the triples of a predicate belong to
one relation, its first index knows whether a triple is present, and only further copies are counted (``more``);
otherwise all copies are counted (``counts``).

A worked example: ``?x :knows ?y . ?y :knows ?x``; (a knows b) and (b knows a) enter. The first is added to the index
``r0_so``, where (b, a) is not found. The second is added too; as pattern 0 it finds (a, b) for
pattern 1, which is the solution x=b, y=a; as pattern 1 it finds (a, b) for pattern 0, the solution x=a, y=b. Now
(c knows c) enters. As pattern 0 it finds itself for pattern 1: x=c, y=c. As pattern 1 it finds itself for pattern 0,
which is skipped because pattern 0 has counted that solution.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.conditions import test, variables_of
from streamgauge.incremental.ir import (
    PIECE,
    POSITIONS,
    Cases,
    Do,
    Emit,
    JoinCondition,
    JoinError,
    Module,
    PatternJoin,
    Probe,
    Scan,
    row_of,
    tuple_of,
)
from streamgauge.incremental.join_pool import JoinPool
from streamgauge.incremental.operators import Bag, Pull
from streamgauge.incremental.pattern_shapes import Leaf
from streamgauge.incremental.plan import (
    BgpRequest,
    Feed,
    JoinPlan,
    Path,
    PlannedBgp,
    TripleRelation,
    merged,
    plan_all,
    unheard,
)
from streamgauge.incremental.skewed_joins import SkewedJoins, TripleTable, band_parts
from streamgauge.incremental.stamp_rows import StampRows, stamp_rows
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, Triple


class WindowJoins(JoinPool):
    """The basic graph patterns of one or more queries over changing graphs; all patterns are requested first.

    ``static`` triples enter the default graph with its first ``feeds``; a collection, which may be a file, is read once
    and not kept. ``stamped``: time stamps are maintained as rows (``stamps``) instead of being fed as facts.
    """

    def __init__(self, static: Iterable[Triple] = (), stamped: bool = False) -> None:
        super().__init__()
        self._stamped = stamped
        self._static = static if isinstance(static, Collection) else tuple(static)
        self._stamps: dict[Node | None, list[StampRows]] = {}
        self._joins: dict[Term | None, list[Joins | SkewedJoins]] = {}
        self._skewed: dict[int, SkewedJoins] = {}
        self.pull = Pull()
        """The pull shared by all queries that are evaluated at a look."""

    def look(self) -> None:
        """Begin a look: queries are evaluated one after the other, and triples stay as they are meanwhile."""
        self.pull.begin()
        # One pull number for all queries of the look: what several of them read is pulled by the first one.
        self.pull.together = True

    def release(self) -> None:
        """End the look that ``look`` began."""
        self.pull.together = False

    @property
    def moved(self) -> bool:
        """Whether solutions have changed since they were last taken."""
        return any(self._bags)

    @cached_property
    def _bags(self) -> list[Bag]:
        """The bags that receive changes."""
        return [bag for _, bag in self.leaves] + [rows.found for some in self._stamps.values() for rows in some]

    def ask(self, request: BgpRequest) -> Bag:
        """Request the solutions of a pattern, or rows of time stamps."""
        stamps = stamp_rows(request) if self._stamped else None
        if stamps is None:
            return super().ask(request)
        self._stamps.setdefault(request.graph, []).append(stamps)
        return stamps.found

    def pending(self, bag: Bag) -> bool:
        """Whether solutions may have changed since a bag was taken; a second plan is always asked."""
        return bool(bag) or (bool(self._skewed) and id(bag) in self._skewed)

    def change(self, bag: Bag) -> Bag:
        """Take the rows of a bag, and those that a second plan finds."""
        change = bag.copy()
        bag.clear()
        if self._skewed and (skewed := self._skewed.get(id(bag))) is not None:
            skewed.add_to(change)
        return change

    def stamps(self, graph: Term) -> Sequence[StampRows]:
        """The requested rows of a graph of time stamps."""
        return self._stamps.get(graph, ())

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        """The functions for triples that enter and leave a graph; static triples enter with the first call."""
        if graph not in self._joins:
            self._joins[graph] = self._generated(graph)
            if graph is None:
                # After the joins exist, so that static triples pass through them like any others, and before any
                # element.
                self.feeds(None)[0](self._static)
        joins = self._joins[graph]
        if not joins:
            return unheard, unheard
        return _one([join.enter for join in joins]), _one([join.leave for join in joins])

    def _generated(self, graph: Term | None) -> list["Joins | SkewedJoins"]:
        """Compile the patterns of a graph: those with constant predicates together, the others separately.

        A single pattern may have a second plan.
        """
        leaves = [leaf for leaf in self.leaves if leaf[0].graph == graph]
        parts = band_parts(leaves[0][0]) if len(leaves) == 1 and not _is_open(leaves[0][0]) else None
        if parts is not None:
            skewed = self._skewed[id(leaves[0][1])] = SkewedJoins(*leaves[0], parts, _joined, self._bags)
            return [skewed]
        # A pattern with a variable predicate admits every triple; compiled together with others it would take from
        # them the dispatch by predicate.
        open_ = [leaf for leaf in leaves if _is_open(leaf[0])]
        groups = [[leaf for leaf in leaves if leaf not in open_], *([leaf] for leaf in open_)]
        return [_joined(group) for group in groups if group]


def _joined(leaves: Sequence[Leaf]) -> "Joins":
    requests = [request for request, _ in leaves]
    return generate(plan_all(requests), [request.output for request in requests], [bag for _, bag in leaves])


def _is_open(request: BgpRequest) -> bool:
    return any(isinstance(triple.predicate, Var) for triple in request.bgp.patterns)


def _one(feeds: Sequence[Callable[[Iterable[Triple]], None]]) -> Feed:
    """One function that calls all of them; a single one is returned unchanged."""
    if len(feeds) == 1:
        return feeds[0]

    def feed(triples: Iterable[Triple]) -> None:
        # An iterator would be empty for the second function.
        graph = tuple(triples)
        for one in feeds:
            one(graph)

    return feed


@dataclass(frozen=True, slots=True)
class Joins:
    """Generated joins: ``enter`` and ``leave`` take graphs and add to the bags of solutions."""

    enter: Feed
    leave: Feed
    indexes: dict[str, Any]
    tables: Sequence[TripleTable]


def generate(planned: Sequence[PlannedBgp], outputs: Sequence[tuple[str, ...]], bags: Sequence[Bag]) -> Joins:
    """Compile the joins of planned patterns over one graph; they share relations.

    Each adds signed rows over its output variables to its bag. TooMuchError beyond what CPython compiles.
    """
    relations, plans = merged(planned)
    leaves = [_Leaf(number, *plan) for number, plan in enumerate(zip(plans, outputs, strict=True))]
    paths = tuple(dict.fromkeys(path for leaf in leaves for path in leaf.paths))
    indexes: dict[str, Any] = {_index(path): (set() if _is_set(relations, path) else {}) for path in paths}
    copies: dict[str, Any] = {"counts": {}, "more": {}}
    pending = {leaf.pending: bag for leaf, bag in zip(leaves, bags, strict=True)}
    names = {**indexes, **copies, **pending, **_tests(relations, leaves)}
    enter, leave = (_Handler(names, name, relations, _alike(leaves), paths).built() for name in ("enter", "leave"))
    tables = [TripleTable(relations[path.relation], path.bound, indexes[_index(path)]) for path in paths]
    return Joins(enter, leave, indexes | copies, tables)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One of several patterns: its number, its plan over the common relations, its output columns."""

    number: int
    planned: PlannedBgp
    output: tuple[str, ...]

    @property
    def paths(self) -> Iterator[Path]:
        return (step.path for plan in self.planned.plans for step in plan.steps)

    @property
    def pending(self) -> str:
        return f"pending{self.number}"

    def conditions(self) -> list[JoinCondition]:
        return [
            JoinCondition(variables_of(condition), f"f{self.number}_{at}")
            for at, condition in enumerate(self.planned.conditions)
        ]


def _alike(leaves: Sequence[_Leaf]) -> list[list[_Leaf]]:
    """Group leaves with the same patterns over the same relations; only conditions and output differ."""
    groups: dict[Hashable, list[_Leaf]] = {}
    for leaf in leaves:
        groups.setdefault((leaf.planned.patterns, leaf.planned.relation_of), []).append(leaf)
    return list(groups.values())


def _index(path: Path) -> str:
    return f"r{path.relation}_{''.join(POSITIONS[at] for at in path.bound)}"


def _is_set(relations: Sequence[TripleRelation], path: Path) -> bool:
    """Whether the index of a path is a set: it has no open columns, or no bound ones."""
    return path.bound in (relations[path.relation].columns, ())


def _tests(relations: Sequence[TripleRelation], leaves: Sequence[_Leaf]) -> dict[str, Any]:
    single = {
        f"t{number}_{index}": test(condition, [name])
        for number, relation in enumerate(relations)
        for index, (_, name, condition) in enumerate(relation.conditions)
    }
    several = {
        f"f{leaf.number}_{number}": test(condition, variables_of(condition))
        for leaf in leaves
        for number, condition in enumerate(leaf.planned.conditions)
    }
    return single | several


class _Handler:
    """Builds the function ``enter`` or ``leave`` of a graph.

    If it would be too long to compile at once, each predicate, the indexes of each relation and each join become
    functions.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        name: str,
        relations: tuple[TripleRelation, ...],
        alike: Sequence[Sequence[_Leaf]],
        paths: tuple[Path, ...],
    ) -> None:
        self._name, self._relations, self._alike, self._paths = name, relations, alike, paths
        self._module = Module(dict(names))
        self._predicates = [relation.constants[1] for relation in relations]
        # An estimate of generated lines: two for each step, six for each solution's row and count.
        joins = [2 * len(plan.steps) + 6 * len(leaf) for leaf in alike for plan in leaf[0].planned.plans]
        self._parted = sum(joins) + 6 * len(paths) > PIECE and None not in self._predicates
        self._skip = "return" if self._parted else "continue"

    def built(self) -> Any:
        """The compiled function; TooMuchError."""
        module = self._module
        module.function(self._name, ["triples"])
        with module.branch():
            module.add(Scan("t", "triples"), Do("s, p, o = t"))
            self._dispatch()
        try:
            return module.built()[0]
        except JoinError as error:
            raise TooMuchError(f"its joins are too many or too deep to be compiled ({error})") from None

    def _dispatch(self) -> None:
        """Dispatch on the predicate if all relations have a constant one."""
        if None in self._predicates:
            self._handle(range(len(self._predicates)))
            return
        cases = []
        for predicate in dict.fromkeys(self._predicates):
            condition = f"p == {self._module.use(predicate)}"
            with self._module.collected() as operations, self._part("t, s, p, o"):
                self._handle([at for at, other in enumerate(self._predicates) if other == predicate])
            cases.append((condition, operations))
        self._module.add(Cases(cases))

    def _part(self, parameters: str = "s, p, o") -> AbstractContextManager[None]:
        """A nested branch, or a function of its own."""
        return self._module.part(parameters) if self._parted else self._module.branch()

    def _handle(self, relations: Sequence[int]) -> None:
        """Admit the triple to its relations, count its copies, maintain the indexes, join."""
        # With several relations of one predicate a triple may be in some of them only, so no single index knows its
        # copies.
        guarded = len(relations) > 1
        self._admit(relations, guarded)
        own = [] if guarded else [path for path in self._paths if path.relation == relations[0]]
        first = own[0] if own else None
        self._count(first)
        rest = [path for path in self._paths if path != first or self._name == "leave"]
        blocks: list[Callable[[int], None]] = [partial(self._keep_indexes, rest), self._join_all]
        # Entering: indexes first, then joins, so that a triple finds itself. Leaving is the mirror image: it still
        # finds itself.
        for block in reversed(blocks) if self._name == "leave" else blocks:
            for relation in relations:
                with self._module.collected() as operations:
                    block(relation)
                if guarded and operations:
                    operations = [Cases([(f"a{relation}", operations)])]
                self._module.add(*operations)

    def _admit(self, relations: Sequence[int], guarded: bool) -> None:
        """Skip a triple that belongs to no relation; with several, a local per relation records the result."""
        admits = {relation: self._admission(relation) for relation in relations}
        if guarded:
            self._statements(*(f"a{relation} = {admitted}" for relation, admitted in admits.items()))
            self._statements(f"if not ({' or '.join(f'a{relation}' for relation in relations)}): {self._skip}")
        elif admits[relations[0]] != "True":
            self._statements(f"if not ({admits[relations[0]]}): {self._skip}")

    def _admission(self, number: int) -> str:
        relation, use = self._relations[number], self._module.use
        parts = [f"{POSITIONS[at]} == {use(c)}" for at, c in enumerate(relation.constants) if c is not None and at != 1]
        if None in self._predicates and relation.constants[1] is not None:
            parts.append(f"p == {use(relation.constants[1])}")
        parts += [f"{POSITIONS[at]} == {POSITIONS[first]}" for at, first in enumerate(relation.equal) if first != at]
        parts += [f"t{number}_{index}({POSITIONS[at]})" for index, (at, _, _) in enumerate(relation.conditions)]
        return " and ".join(parts) or "True"

    def _count(self, first: Path | None) -> None:
        """Skip a triple that has copies; an entering triple is added to the index ``first``, which knows them."""
        skip = self._skip
        if self._name != "leave" and first is not None:
            self._enter(_access(self._relations, first), ("    more[t] = more.get(t, 0) + 1", f"    {skip}"))
        elif self._name != "leave":
            self._statements("n = counts.get(t)", "if n:", f"    counts[t] = n + 1; {skip}", "counts[t] = 1")
        elif first is not None:
            more = ("    if more[t] > 1: more[t] -= 1", "    else: del more[t]")
            self._statements("if more and t in more:", *more, f"    {skip}")
        else:
            self._statements("n = counts[t]", "if n > 1:", f"    counts[t] = n - 1; {skip}", "del counts[t]")

    def _statements(self, *lines: str) -> None:
        self._module.add(*map(Do, lines))

    def _enter(self, access: "_Access", copy: Sequence[str]) -> None:
        """Add the triple to an index; ``copy`` runs if it is present already (empty if it cannot be)."""
        index, key, value = access.index, access.key, access.value
        if key is None:
            self._statements(*([f"if {value} in {index}:", *copy] if copy else []), f"{index}.add({value})")
            return
        self._statements(
            f"x = {index}.get({key})",
            f"if x is None: {index}[{key}] = ({value},)",
            *([f"elif {value} in x:", *copy] if copy else []),
            f"elif x.__class__ is tuple: {index}[{key}] = {{x[0], {value}}}",
            f"else: x.add({value})",
        )

    def _leave(self, access: "_Access") -> None:
        """Remove the triple from an index."""
        index, key, value = access.index, access.key, access.value
        if key is None:
            self._statements(f"{index}.remove({value})")
            return
        # A set that has shrunk to one value stays a set, or values that come and go would convert it again and again.
        self._statements(f"x = {index}[{key}]", f"if len(x) > 1: x.remove({value})", f"else: del {index}[{key}]")

    def _keep_indexes(self, paths: Sequence[Path], relation: int) -> None:
        with self._part():
            for path in paths:
                if path.relation == relation:
                    access = _access(self._relations, path)
                    if self._name == "leave":
                        self._leave(access)
                    else:
                        self._enter(access, ())

    def _join_all(self, relation: int) -> None:
        for alike in self._alike:
            for plan in alike[0].planned.plans:
                if alike[0].planned.relation_of[plan.pattern] == relation:
                    with self._part():
                        self._join(alike, plan)

    def _join(self, alike: Sequence[_Leaf], plan: JoinPlan) -> None:
        """Emit the joins of alike leaves once; if there are several, each tests its own conditions at the end."""
        leaf, alone = alike[0], len(alike) == 1
        own = leaf.planned.patterns[plan.pattern]
        where = {node.name: POSITIONS[at] for at, node in reversed([*enumerate(own)]) if isinstance(node, Var)}
        join = _WindowJoin(self._module, leaf.planned.patterns, where, leaf.conditions() if alone else [], leaf, plan)
        join.join((step.pattern for step in plan.steps), plan.pattern, POSITIONS)
        for alike_leaf in alike:
            # A branch for each leaf: its conditions must not end the loops for the others.
            with self._module.branch():
                if not alone:
                    join.waiting = alike_leaf.conditions()
                    join.test()
                count = Emit(alike_leaf.pending, "- 1" if self._name == "leave" else "+ 1")
                self._module.add(row_of(alike_leaf.output, where), count)


@dataclass
class _WindowJoin(PatternJoin):
    """Joins a triple that matches one pattern with the indexes of a graph."""

    leaf: _Leaf
    plan: JoinPlan

    def look_up(self, number: int, at: int) -> None:
        """Look up the pattern by its bound columns; its open variables become locals."""
        nodes, path = self.patterns[at], self.plan.steps[number].path
        columns = self.leaf.planned.relations[path.relation].columns
        key = tuple_of([self.where[_variable(nodes[column])] for column in path.bound])
        names = {column: f"v{number}{POSITIONS[column]}" for column in columns if column not in path.bound}
        targets = tuple_of(list(names.values()))
        if names and not path.bound:
            self.module.add(Scan(targets, _index(path)))
        else:
            self.module.add(Probe(_index(path), key if columns else "()", targets if names else ""))
        self.where.update({_variable(nodes[column]): local for column, local in names.items()})


@dataclass(frozen=True, slots=True)
class _Access:
    """An index in generated code: its name, key and value; ``key`` is ``None`` for a set."""

    index: str
    key: str | None
    value: str


def _access(relations: Sequence[TripleRelation], path: Path) -> _Access:
    columns = relations[path.relation].columns
    if _is_set(relations, path):
        return _Access(_index(path), None, tuple_of([POSITIONS[at] for at in columns]))
    rest = tuple_of([POSITIONS[at] for at in columns if at not in path.bound])
    return _Access(_index(path), tuple_of([POSITIONS[at] for at in path.bound]), rest)


def _variable(node: Var | Term) -> str:
    if not isinstance(node, Var):
        raise TypeError(f"{node} is a constant where a column is expected")
    return node.name
