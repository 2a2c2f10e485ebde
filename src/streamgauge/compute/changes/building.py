"""From algebra to running operators; what cannot run is refused by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from streamgauge.compute.changes import matching
from streamgauge.compute.changes.aggregates import unsupported
from streamgauge.compute.changes.conditions import Batch, conjuncts, reads_patterns
from streamgauge.compute.changes.generate import Joins, generate
from streamgauge.compute.changes.grouping import Grouped
from streamgauge.compute.changes.normal import UnsupportedError
from streamgauge.compute.changes.operators import (
    Both,
    Compute,
    Constant,
    JoinRows,
    Keep,
    Merge,
    Operator,
    Pick,
    Source,
    Unique,
)
from streamgauge.compute.changes.plans import MOST_PATTERNS, plan, pushable
from streamgauge.model import algebra as al

Needed = frozenset[str]
_CHANGING = {"RAND", "UUID", "STRUUID", "NOW", "BNODE"}


@dataclass
class Builder:
    """Builds a tree of operators; columns come in ``order`` where that saves a step.

    ``joins`` are its leaves, ``groups`` its aggregations, an inner one before the one around it.
    """

    order: tuple[str, ...] = ()
    joins: list[Joins] = field(default_factory=list)
    groups: list[Grouped] = field(default_factory=list)

    def build(self, pattern: al.Pattern, needed: Needed) -> Operator:
        """The operator of a pattern, whose columns hold at least the needed ones that it binds."""
        match pattern:
            case al.BGP():
                return self._bgp(pattern, (), needed)
            case al.Filter(condition=condition, pattern=inner):
                return self._filter(condition, inner, needed)
            case al.Join() | al.LeftJoin() | al.Minus():
                return self._two_sided(pattern, needed)
            case al.Union(left=left, right=right):
                return self._union(left, right, needed)
            case al.Extend(pattern=inner, variable=variable, expression=expression):
                return self._extend(inner, variable.name, expression, needed)
            case al.Values(variables=variables, rows=rows):
                return Constant(_names(variables), rows)
            case al.Project(pattern=inner, variables=variables):
                built = self.build(inner, frozenset(_names(variables)))
                return picked(built, _names(variables))
            case al.Distinct(pattern=inner):
                return Unique(picked(self.build(inner, _scope(inner)), tuple(sorted(_scope(inner)))))
            case al.Group():
                return self._group(pattern)
            case _:
                raise UnsupportedError(f"{type(pattern).__name__}: it is not kept incrementally")

    def _bgp(self, bgp: al.BGP, conditions: Sequence[al.Expression], needed: Needed) -> Operator:
        if not bgp.patterns:
            return self._kept(Constant((), ((),)), conditions)
        if len(bgp.patterns) > MOST_PATTERNS:
            raise UnsupportedError(f"more than {MOST_PATTERNS} triple patterns in one group: split it by subqueries")
        names = _names(al.pattern_variables(bgp))
        inside = [condition for condition in conditions if pushable(condition, bgp)]
        outside = [condition for condition in conditions if condition not in inside]
        wanted = needed.union(*map(_reads, outside))
        output = tuple(name for name in dict.fromkeys((*self.order, *names)) if name in wanted and name in names)
        joins = generate(plan(bgp, inside), output)
        self.joins.append(joins)
        return self._kept(Source(joins, output), outside)

    def _kept(self, operator: Operator, conditions: Sequence[al.Expression]) -> Operator:
        for condition in conditions:
            operator = Keep(operator, _batch(condition, operator.variables))
        return operator

    def _filter(self, condition: al.Expression, inner: al.Pattern, needed: Needed) -> Operator:
        parts = list(conjuncts(condition))
        while isinstance(inner, al.Filter):
            parts += conjuncts(inner.condition)
            inner = inner.pattern
        exists = [part for part in parts if reads_patterns(part)]
        plain = [part for part in parts if part not in exists]
        for part in plain:
            _check(part)
        needed = needed.union(*map(_reads, parts))
        built = self._filtered(inner, plain, needed)
        for part in exists:
            built = self._exists(built, part)
        return built

    def _filtered(self, inner: al.Pattern, parts: Sequence[al.Expression], needed: Needed) -> Operator:
        match inner:
            case al.BGP():
                return self._bgp(inner, parts, needed)
            case al.Join(left=al.BGP() as bgp, right=right):
                early = [part for part in parts if pushable(part, bgp)]
                late = [part for part in parts if part not in early]
                shared = needed | (_scope(bgp) & _scope(right))
                return self._kept(JoinRows(self._bgp(bgp, early, shared), self.build(right, shared)), late)
            case _:
                return self._kept(self.build(inner, needed), parts)

    def _exists(self, built: Operator, part: al.Expression) -> Operator:
        wanted = True
        while isinstance(part, al.Call) and part.operator == "!":
            wanted, part = not wanted, part.arguments[0]
        if not isinstance(part, al.Exists):
            raise UnsupportedError("EXISTS inside a larger expression: make it a FILTER of its own")
        _check_closed(part.pattern)
        right = self.build(part.pattern, frozenset(built.variables))
        names = tuple(name for name in right.variables if name in built.variables)
        return matching.existing(built, picked(right, names), wanted)

    def _two_sided(self, pattern: al.Join | al.LeftJoin | al.Minus, needed: Needed) -> Operator:
        condition = pattern.condition if isinstance(pattern, al.LeftJoin) else None
        if condition is not None:
            _check(condition)
        reads = frozenset[str]() if condition is None else _reads(condition)
        both = needed | reads | (_scope(pattern.left) & _scope(pattern.right))
        left, right = self.build(pattern.left, both), self.build(pattern.right, both)
        if isinstance(pattern, al.Join):
            return JoinRows(left, right)
        if isinstance(pattern, al.Minus):
            return matching.without(left, right)
        merge = Merge(left, right)
        return matching.optional(left, right, None if condition is None else _batch(condition, merge.variables), merge)

    def _union(self, left: al.Pattern, right: al.Pattern, needed: Needed) -> Operator:
        sides = self.build(left, needed), self.build(right, needed)
        names = tuple(dict.fromkeys(sides[0].variables + sides[1].variables))
        return Both(picked(sides[0], names), picked(sides[1], names), sides[0].certain & sides[1].certain)

    def _extend(self, inner: al.Pattern, name: str, expression: al.Expression, needed: Needed) -> Operator:
        _check(expression)
        built = self.build(inner, needed | _reads(expression))
        return Compute(built, name, _batch(expression, built.variables))

    def _group(self, group: al.Group) -> Operator:
        if reason := unsupported(aggregate for _, aggregate in group.aggregates):
            raise UnsupportedError(reason)
        arguments = [aggregate.argument for _, aggregate in group.aggregates if aggregate.argument is not None]
        reads = frozenset[str]().union(*map(_reads, (*arguments, *(key for _, key in group.keys))))
        whole = any(aggregate.argument is None and aggregate.distinct for _, aggregate in group.aggregates)
        inner = self.build(group.pattern, _visible(group.pattern) if whole else reads)
        if whole:
            inner = picked(inner, tuple(sorted(_visible(group.pattern))))
        for variable, key in group.keys:
            if key != variable:
                _check(key)
                inner = Compute(inner, variable.name, _batch(key, inner.variables))
        inputs = [None if a.argument is None else _batch(a.argument, inner.variables) for _, a in group.aggregates]
        keys = tuple(variable.name for variable, _ in group.keys)
        made = Grouped(inner, keys, [(var.name, aggregate) for var, aggregate in group.aggregates], inputs)
        self.groups.append(made)
        return made


def picked(operator: Operator, names: tuple[str, ...]) -> Operator:
    """The operator with exactly these columns."""
    return operator if operator.variables == names else Pick(operator, names)


def _batch(expression: al.Expression, variables: Sequence[str]) -> Batch:
    _check(expression)
    return Batch(expression, variables)


def _reads(expression: al.Expression) -> Needed:
    return frozenset(var.name for var in al.expression_variables(expression))


def _scope(pattern: al.Pattern) -> Needed:
    return frozenset(_names(al.pattern_variables(pattern)))


def _visible(pattern: al.Pattern) -> Needed:
    """The variables that ``*`` means: not a query's blank nodes, nor what a path was spelt out with."""
    return frozenset(name for name in _scope(pattern) if not name.startswith("_:"))


def _names(variables: Sequence[al.Var]) -> tuple[str, ...]:
    return tuple(variable.name for variable in variables)


def _check(expression: al.Expression) -> None:
    """Refuse what has no value of its own for a row."""
    match expression:
        case al.Exists():
            raise UnsupportedError("EXISTS inside a larger expression: make it a FILTER of its own")
        case al.Call(operator=operator, arguments=arguments):
            if operator.upper() in _CHANGING:
                raise UnsupportedError(f"{operator.upper()}: its value changes from call to call")
            for argument in arguments:
                _check(argument)
        case _:
            pass


def _check_closed(pattern: al.Pattern) -> None:
    """Refuse an EXISTS whose inside depends on the outer solution by more than the variables that it binds."""
    match pattern:
        case al.BGP() | al.Values():
            return
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            _check_closed(left)
            _check_closed(right)
        case al.Filter(condition=condition, pattern=inner):
            if reads_patterns(condition) or not _reads(condition) <= _scope(inner):
                raise UnsupportedError("EXISTS with a FILTER over variables of the outer group")
            _check_closed(inner)
        case _:
            raise UnsupportedError(f"EXISTS over {type(pattern).__name__}: only joins, unions and filters are kept")
