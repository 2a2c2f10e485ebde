"""Generated joins: Python functions for the basic graph patterns over a graph, for triples that come and that go.

Patterns share what they look triples up in. One function handles a whole graph. A triple that comes is put into all
indexes first, one that goes is taken out last; a solution that uses it in several places is counted at the first of
them only: pattern i joins with patterns j < i on triples other than the new one.

An index has a tuple for a key with one value and a set for one with several. Where the triples of a predicate are of
one relation, its first index says whether a triple is there, and only further copies are counted (``more``); elsewhere
all copies are (``counts``).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from streamgauge.incremental.bags import Bag
from streamgauge.incremental.conditions import test, variables_of
from streamgauge.incremental.effort import TooMuchError
from streamgauge.incremental.plans import Path, Plan, Planned, Relation, Step, merged
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term, Triple

Feed = Callable[[Iterable[Triple]], None]
Follow = Callable[[Iterator[Triple]], bool]
"""Takes triples that come until one changes what was found: whether one did. The rest is left in the iterator."""

_T = ("s", "p", "o")


@dataclass(frozen=True, slots=True)
class Joins:
    """Running basic graph patterns: ``enter`` and ``leave`` take graphs and add to the bags of what was found.

    ``follow`` is ``enter`` with a stop wherever something is found.
    """

    enter: Feed
    leave: Feed
    follow: Follow
    indexes: dict[str, Any]
    source: str


@dataclass
class _Text:
    """Lines of Python under construction, and the constants that they use by name."""

    names: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    constants: dict[Any, str] = field(default_factory=dict)
    depth: int = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def block(self, lines: Sequence[str]) -> None:
        """Lines one level deeper."""
        self.depth += 1
        for line in lines:
            self.add(line)
        self.depth -= 1

    def constant(self, term: Term) -> str:
        name = self.constants.get(term)
        if name is None:
            name = self.constants[term] = f"c{len(self.constants)}"
            self.names[name] = term
        return name


def generate(planned: Sequence[Planned], outputs: Sequence[tuple[str, ...]], found: Sequence[Bag]) -> Joins:
    """Compile the joins of planned patterns over one graph, which share relations.

    Each adds signed rows over its output variables to its bag of ``found``.
    """
    relations, plans = merged(planned)
    leaves = [_Leaf(number, *each) for number, each in enumerate(zip(plans, outputs, strict=True))]
    paths = tuple(dict.fromkeys(path for leaf in leaves for path in leaf.paths))
    indexes: dict[str, Any] = {_index(path): (set() if _whole(relations, path) else {}) for path in paths}
    copies: dict[str, Any] = {"counts": {}, "more": {}}
    pending = {leaf.pending: bag for leaf, bag in zip(leaves, found, strict=True)}
    text = _Text({**indexes, **copies, **pending, **_tests(relations, leaves)})
    whole = _Whole(relations, _alike(leaves), paths)
    bodies = {name: _body(text, name, whole) for name in ("enter", "leave", "follow")}
    sources = [_module(text, name, body) for name, body in bodies.items()]
    enter, leave, follow = (_made(source, text.names) for source in sources)
    return Joins(enter, leave, follow, indexes | copies, "\n".join(sources))


def _made(source: str, names: Mapping[str, Any]) -> Any:
    """The function of a module's text; compiled by itself, as nothing else of the process runs meanwhile."""
    space: dict[str, Any] = {}
    exec(compiled(source), space)
    return space["build"](**names)


def compiled(source: str) -> CodeType:
    """The code of generated joins; TooMuchError beyond what Python compiles: 100 indents, 20 loops in each other."""
    try:
        return compile(source, "<joins>", "exec")
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise TooMuchError(f"its joins are too many or too deep to be compiled ({error})") from None


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One pattern of several: its number, its joins over the common relations, the columns of its rows."""

    number: int
    planned: Planned
    output: tuple[str, ...]

    @property
    def paths(self) -> Iterator[Path]:
        return (step.path for plan in self.planned.plans for step in plan.steps)

    @property
    def pending(self) -> str:
        return f"pending{self.number}"

    def condition(self, number: int) -> str:
        return f"f{self.number}_{number}"


@dataclass(frozen=True, slots=True)
class _Whole:
    """Everything that the functions are generated of."""

    relations: tuple[Relation, ...]
    alike: Sequence[Sequence[_Leaf]]
    paths: tuple[Path, ...]


def _alike(leaves: Sequence[_Leaf]) -> list[list[_Leaf]]:
    """Leaves in groups that have the same patterns over the same relations: only conditions and output differ."""
    groups: dict[Hashable, list[_Leaf]] = {}
    for leaf in leaves:
        groups.setdefault((leaf.planned.patterns, leaf.planned.relation_of), []).append(leaf)
    return list(groups.values())


def _body(text: _Text, name: str, whole: _Whole) -> str:
    """The text of a function."""
    text.lines.clear()
    _function(text, name, whole)
    return "\n".join("    " + line for line in text.lines)


def _module(text: _Text, name: str, body: str) -> str:
    """The text of a module that makes a function of all names."""
    return f"def build({', '.join(text.names)}):\n{body}\n    return {name}\n"


def _index(path: Path) -> str:
    return f"r{path.relation}_{''.join(_T[at] for at in path.bound)}"


def _whole(relations: Sequence[Relation], path: Path) -> bool:
    """A path without open columns (or without bound ones) is a set, not a dictionary of tuples and sets."""
    return path.bound in (relations[path.relation].columns, ())


def _tests(relations: Sequence[Relation], leaves: Sequence[_Leaf]) -> dict[str, Any]:
    single = {
        f"t{number}_{index}": test(condition, [name])
        for number, relation in enumerate(relations)
        for index, (_, name, condition) in enumerate(relation.conditions)
    }
    several = {
        leaf.condition(number): test(condition, variables_of(condition))
        for leaf in leaves
        for number, condition in enumerate(leaf.planned.conditions)
    }
    return single | several


def _function(text: _Text, name: str, whole: _Whole) -> None:
    text.add(f"def {name}(triples):")
    text.depth += 1
    text.add("for t in triples:")
    text.depth += 1
    text.add("s, p, o = t")
    predicates = [relation.constants[1] for relation in whole.relations]
    if all(predicate is not None for predicate in predicates):
        for number, predicate in enumerate(dict.fromkeys(predicates)):
            text.add(f"{'elif' if number else 'if'} p == {text.constant(predicate or '')}:")
            text.depth += 1
            _handle(text, name, whole, [at for at, other in enumerate(predicates) if other == predicate])
            text.depth -= 1
    else:
        _handle(text, name, whole, range(len(predicates)))
    text.depth -= 1
    if name == "follow":
        text.add("return False")
    text.depth -= 1


def _handle(text: _Text, name: str, whole: _Whole, relations: Sequence[int]) -> None:
    """Admit the triple to its relations, count its copies, keep the indexes, join."""
    admits = {relation: _admission(text, whole.relations, relation) for relation in relations}
    guard = len(relations) > 1
    if guard:
        for relation, admitted in admits.items():
            text.add(f"a{relation} = {admitted}")
        text.add(f"if not ({' or '.join(f'a{relation}' for relation in relations)}): continue")
    elif admits[relations[0]] != "True":
        text.add(f"if not ({admits[relations[0]]}): continue")
    own = [] if guard else [path for path in whole.paths if path.relation == relations[0]]
    first = own[0] if own else None
    _count(text, name, whole, first)
    rest = [path for path in whole.paths if path != first or name == "leave"]
    blocks: list[Callable[[int], None]] = [
        lambda relation: _index_all(text, name, whole, rest, relation),
        lambda relation: _join_all(text, name, whole, relation),
    ]
    for block in reversed(blocks) if name == "leave" else blocks:
        for relation in relations:
            before = len(text.lines)
            if guard:
                text.add(f"if a{relation}:")
                text.depth += 1
            block(relation)
            if guard:
                text.depth -= 1
                if len(text.lines) == before + 1:
                    text.lines.pop()
    if name == "follow":
        found = (leaf.pending for alike in whole.alike for leaf in alike)
        text.add(f"if {' or '.join(found)}: return True")


def _admission(text: _Text, relations: Sequence[Relation], number: int) -> str:
    relation = relations[number]
    parts = [f"{_T[at]} == {text.constant(c)}" for at, c in enumerate(relation.constants) if c is not None and at != 1]
    if any(other.constants[1] is None for other in relations) and relation.constants[1] is not None:
        parts.append(f"p == {text.constant(relation.constants[1])}")
    parts += [f"{_T[at]} == {_T[first]}" for at, first in enumerate(relation.equal) if first != at]
    parts += [f"t{number}_{index}({_T[at]})" for index, (at, _, _) in enumerate(relation.conditions)]
    return " and ".join(parts) or "True"


def _count(text: _Text, name: str, whole: _Whole, first: Path | None) -> None:
    """Pass over a triple of which there are copies; one that comes enters the index ``first``, which knows them."""
    if name != "leave" and first is not None:
        copy = ["more[t] = more.get(t, 0) + 1", "continue"]
        _enter(text, _access(whole.relations, first), copy)
    elif name != "leave":
        text.add("n = counts.get(t)")
        text.add("if n:")
        text.add("    counts[t] = n + 1; continue")
        text.add("counts[t] = 1")
    elif first is not None:
        text.add("if more and t in more:")
        text.add("    if more[t] > 1: more[t] -= 1")
        text.add("    else: del more[t]")
        text.add("    continue")
    else:
        text.add("n = counts[t]")
        text.add("if n > 1:")
        text.add("    counts[t] = n - 1; continue")
        text.add("del counts[t]")


@dataclass(frozen=True, slots=True)
class _Access:
    """An index in the text: its name, what it is asked by, what it holds; ``key`` is ``None`` for a set."""

    index: str
    key: str | None
    value: str


def _access(relations: Sequence[Relation], path: Path) -> _Access:
    columns = relations[path.relation].columns
    if _whole(relations, path):
        return _Access(_index(path), None, _tuple([_T[at] for at in columns]))
    rest = _tuple([_T[at] for at in columns if at not in path.bound])
    return _Access(_index(path), _tuple([_T[at] for at in path.bound]), rest)


def _enter(text: _Text, access: _Access, copy: Sequence[str]) -> None:
    """Put the triple into an index; ``copy`` is done when it is there already (nothing where it cannot be)."""
    index, key, value = access.index, access.key, access.value
    if key is None:
        if copy:
            text.add(f"if {value} in {index}:")
            text.block(copy)
        text.add(f"{index}.add({value})")
        return
    text.add(f"x = {index}.get({key})")
    text.add(f"if x is None: {index}[{key}] = ({value},)")
    if copy:
        text.add(f"elif {value} in x:")
        text.block(copy)
    text.add(f"elif x.__class__ is tuple: {index}[{key}] = {{x[0], {value}}}")
    text.add(f"else: x.add({value})")


def _leave(text: _Text, access: _Access) -> None:
    """Take the triple out of an index."""
    index, key, value = access.index, access.key, access.value
    if key is None:
        text.add(f"{index}.remove({value})")
        return
    text.add(f"x = {index}[{key}]")
    text.add(f"if len(x) > 1: x.remove({value})")
    text.add(f"else: del {index}[{key}]")


def _index_all(text: _Text, name: str, whole: _Whole, paths: Sequence[Path], relation: int) -> None:
    for path in paths:
        if path.relation == relation:
            access = _access(whole.relations, path)
            if name == "leave":
                _leave(text, access)
            else:
                _enter(text, access, ())


def _tuple(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _join_all(text: _Text, name: str, whole: _Whole, relation: int) -> None:
    for alike in whole.alike:
        for number, plan in enumerate(alike[0].planned.plans):
            if alike[0].planned.relation_of[plan.pattern] == relation:
                _join(text, name, alike, number)


def _join(text: _Text, name: str, alike: Sequence[_Leaf], number: int) -> None:
    """Nested loops over the steps; ``where`` says which local holds each variable.

    Leaves that join alike do it once, and test their conditions at the end, each its own.
    """
    depth, leaf = text.depth, alike[0]
    planned, plan = leaf.planned, leaf.planned.plans[number]
    where = {
        node.name: _T[at]
        for at, node in reversed([*enumerate(planned.patterns[plan.pattern])])
        if isinstance(node, Var)
    }
    alone = len(alike) == 1
    _conditions(text, leaf, plan.conditions if alone else (), where)
    for at, step in enumerate(plan.steps):
        _step(text, planned, step, at, where)
        if step.pattern < plan.pattern:
            _other_triple(text, planned, step, plan, where)
        _conditions(text, leaf, step.conditions if alone else (), where)
    inside = text.depth
    for each in alike:
        _conditions(text, each, () if alone else range(len(each.planned.conditions)), where)
        _found(text, name, each, where)
        text.depth = inside
    text.depth = depth


def _found(text: _Text, name: str, leaf: _Leaf, where: dict[str, str]) -> None:
    """A solution is counted."""
    text.add(f"row = ({''.join(where[variable] + ', ' for variable in leaf.output)})")
    text.add(f"n = {leaf.pending}.get(row, 0) {'-' if name == 'leave' else '+'} 1")
    text.add(f"if n: {leaf.pending}[row] = n")
    text.add(f"else: del {leaf.pending}[row]")


def _conditions(text: _Text, leaf: _Leaf, numbers: Iterable[int], where: dict[str, str]) -> None:
    for number in numbers:
        arguments = ", ".join(where[variable] for variable in variables_of(leaf.planned.conditions[number]))
        text.add(f"if {leaf.condition(number)}({arguments}):")
        text.depth += 1


def _step(text: _Text, planned: Planned, step: Step, number: int, where: dict[str, str]) -> None:
    nodes = planned.patterns[step.pattern]
    columns = planned.relations[step.path.relation].columns
    index = _index(step.path)
    key = _tuple([_local(where, nodes[at]) for at in step.path.bound])
    fresh = [at for at in columns if at not in step.path.bound]
    names = {at: f"v{number}{_T[at]}" for at in fresh}
    if not fresh:
        text.add(f"if {key} in {index}:" if columns else f"if () in {index}:")
    elif step.path.bound:
        text.add(f"for {_tuple(list(names.values()))} in {index}.get({key}, ()):")
    else:
        text.add(f"for {_tuple(list(names.values()))} in {index}:")
    text.depth += 1
    where.update({_var(nodes[at]): local for at, local in names.items()})


def _local(where: dict[str, str], node: Var | Term) -> str:
    return where[_var(node)]


def _var(node: Var | Term) -> str:
    if not isinstance(node, Var):
        raise TypeError(f"{node} is a constant where a column is expected")
    return node.name


def _other_triple(text: _Text, planned: Planned, step: Step, plan: Plan, where: dict[str, str]) -> None:
    """Pass over the new triple itself where an earlier pattern could match it too."""
    same: list[str] = []
    for at, (earlier, own) in enumerate(
        zip(planned.patterns[step.pattern], planned.patterns[plan.pattern], strict=True)
    ):
        if isinstance(earlier, str) and isinstance(own, str):
            if earlier != own:
                return
            continue
        left = text.constant(earlier) if isinstance(earlier, str) else where[earlier.name]
        if left != _T[at]:
            same.append(f"{left} == {_T[at]}")
    text.add(f"if not ({' and '.join(same)}):" if same else "if False:")
    text.depth += 1
