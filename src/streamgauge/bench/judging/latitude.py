"""The answers over one content under interval arithmetic: which rows, with which numbers, implementations may give.

The query is restated for pyoxigraph: every operation and aggregate on computed numbers is one of ``intervals.py``, as a
custom function. What it computes inexactly goes on as a literal that holds an interval. A comparison of such numbers
that may go either way is taken as true in the loose reading and as false in the tight one; under MINUS and ``!`` the
other way round. So a row of the tight reading is certain, a row of the loose one is possible:

    FILTER(?x - ?y > 0.0)       loose   FILTER(<...loose>(">", <...>("-", ?x, ?y), 0.0))      x - y > 0.0 may hold
                                tight   FILTER(<...tight>(">", <...>("-", ?x, ?y), 0.0))      x - y > 0.0 must hold
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial, reduce
from typing import Any, Final

import pyoxigraph as ox

from streamgauge.bench.judging import choices, intervals
from streamgauge.bench.judging.compare import computed_variables
from streamgauge.bench.judging.intervals import Interval, OpenError, Sum, read
from streamgauge.bench.judging.support import REASON, refuse
from streamgauge.compute.expressions import evaluate
from streamgauge.compute.numbers import INTEGER
from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.query.printer import sparql
from streamgauge.query.rebuild import every_pattern, parts, with_pattern
from streamgauge.semantics.content import Contents
from streamgauge.semantics.evaluate import Calls, Snapshot

COMPARISONS: Final = frozenset({"=", "!=", "<", ">", "<=", ">="})
BINARY: Final = frozenset("+-*/")
UNARY: Final = frozenset({"+", "-", "ABS", "CEIL", "FLOOR", "ROUND"})
CASTS: Final = {f"<{XSD}{name}>": kind for kind, name in enumerate(("integer", "decimal", "float", "double"))}
_KIND_ONLY: Final = frozenset({"DATATYPE", "ISNUMERIC", "ISLITERAL", "ISIRI", "ISBLANK", "LANG", "BOUND"})
_NAMESPACE: Final = "urn:streamgauge:interval-function:"
_ZERO: Final = f'"0"^^<{XSD}integer>'
_NOTHING: Final = ox.NamedNode("urn:streamgauge:nothing")


class Reading(StrEnum):
    """How a comparison that may go either way is taken; ``STRICT`` where it may not occur."""

    LOOSE = "loose"
    TIGHT = "tight"
    STRICT = "strict"

    @property
    def opposite(self) -> "Reading":
        """The reading under a negation."""
        return {Reading.LOOSE: Reading.TIGHT, Reading.TIGHT: Reading.LOOSE}.get(self, self)


@dataclass(frozen=True, slots=True)
class Possible:
    """The bags of the loose and of the tight reading over one content; computed numbers may be interval literals."""

    loose: tuple[Row, ...]
    tight: tuple[Row, ...]


def computes(tree: a.Expression, bound: frozenset[a.Var]) -> bool:
    """Whether an expression computes a number, or reads one of the ``bound`` (computed) variables."""
    match tree:
        case a.Var():
            return tree in bound
        case a.Call(operator=operator, arguments=arguments):
            own = operator in BINARY or operator in UNARY
            return own or any(computes(each, bound) for each in arguments)
        case _:
            return False


class Latitude:
    """A query's possible answers over contents."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics) -> None:
        self._open: list[str] = []
        self._doubt = False
        self._separators = separators(query.form)
        calls = Calls(self._functions(), self._aggregates())
        self._snapshots = {
            reading: Snapshot(_restated(query, reading), semantics.content, semantics.empty_aggregate, calls)
            for reading in (Reading.LOOSE, Reading.TIGHT)
        }

    def possible(self, contents: Contents) -> Possible:
        """Both readings; OpenError where intervals cannot tell, with the reason."""
        self._open.clear()
        self._doubt = False
        loose = self._snapshots[Reading.LOOSE].rows(contents)
        tight = self._snapshots[Reading.TIGHT].rows(contents) if self._doubt else loose
        if self._open:
            raise OpenError(self._open[0])
        return Possible(loose, tight)

    def _functions(self) -> dict[str, Callable[..., ox.Literal | None]]:
        found: dict[str, Callable[..., ox.Literal | None]] = {
            "binary": self._numeric(lambda op, x, y: intervals.arithmetic(op, x, y)),
            "unary": self._numeric(lambda op, x: intervals.unary(op, x)),
            "cast": self._numeric(lambda op, x: intervals.cast(int(op), x)),
            "same": self._numeric(lambda _, x: intervals.point(x.kind, 0)),
            "exact": self._exact,
            "plain": _plain,
        }
        for reading in Reading:
            for negated in (False, True):
                found[f"{reading}{'-not' * negated}"] = partial(self._compare, reading, negated)
        return {_NAMESPACE + name: call for name, call in found.items()}

    def _aggregates(self) -> dict[str, Callable[[], Any]]:
        finishes: dict[str, Callable[[Counter[Interval]], Interval]] = {
            "SUM": lambda numbers: Sum(numbers).total,
            "AVG": lambda numbers: Sum(numbers).average,
            "MIN": lambda numbers: intervals.extreme(numbers, least=True),
            "MAX": lambda numbers: intervals.extreme(numbers, least=False),
        }
        found: dict[str, Callable[[], Any]] = {
            f"{_NAMESPACE}{name}{'-distinct' * distinct}": partial(_Aggregation, finish, distinct, self._open)
            for name, finish in finishes.items()
            for distinct in (False, True)
        }
        found[f"{_NAMESPACE}SAMPLE"] = _Sampled
        for separator, name in self._separators.items():
            for distinct in (False, True):
                found[f"{_NAMESPACE}{name}{'-distinct' * distinct}"] = partial(_Joined, separator, distinct)
        return found

    def _numeric(self, operate: Callable[..., Interval | None]) -> Callable[..., ox.Literal | None]:
        def call(operator: ox.Literal, *terms: Any) -> ox.Literal | None:
            numbers = [_read(term) for term in terms]
            if any(choices.is_open(str(term)) for term in terms):
                self._open.append("what SAMPLE or GROUP_CONCAT gives is used as a number")
                return None
            if None in numbers:
                return self._other(operator.value, terms)
            try:
                for term in terms:
                    refuse(str(term))
                return _literal(operate(operator.value, *numbers))
            except OpenError as error:
                self._open.append(str(error))
                return None

        return call

    def _other(self, operator: str, terms: Iterable[Any]) -> ox.Literal | None:
        """An operation on what is no number (a cast of a string, say), as pyoxigraph has it."""
        if operator.isdigit():
            operator = list(CASTS)[int(operator)]
        return _native(operator, *map(str, terms))

    def _exact(self, term: Any) -> Any:
        """The term itself, for a function that reads more than a number's value."""
        number = _read(term)
        if number is not None and not number.exact and not number.stored:
            self._open.append("an inexact number is used as a term")
        elif choices.is_open(str(term)):
            self._open.append("what SAMPLE or GROUP_CONCAT gives is used as a term")
        return term

    def _compare(self, reading: Reading, negated: bool, operator: ox.Literal, x: Any, y: Any) -> ox.Literal | None:
        found = [
            self._outcomes(operator.value, left, right)
            for left in choices.options(str(x))
            for right in choices.options(str(y))
        ]
        possible, certain = any(each and each[0] for each in found), all(each and each[1] for each in found)
        if all(each is None for each in found):
            return None
        if negated:
            fails = [each and (not each[1], not each[0]) for each in found]
            possible, certain = any(each and each[0] for each in fails), all(each and each[1] for each in fails)
        if possible != certain:
            self._doubt = True
            if reading is Reading.STRICT:
                self._open.append("a comparison that may go either way is used as a value")
        return _boolean(possible if reading is Reading.LOOSE else certain)

    def _outcomes(self, operator: str, x: Term, y: Term) -> tuple[bool, bool] | None:
        """Whether a comparison may hold, and whether it must; ``None`` for an error."""
        left, right = read(x), read(y)
        if left is not None and right is not None:
            return intervals.compared(operator, left, right)
        found = _native(operator, x, y)
        return None if found is None else (found.value == "true", found.value == "true")


class _Aggregation:
    """One group's numbers, for pyoxigraph."""

    def __init__(self, finish: Callable[[Counter[Interval]], Interval], distinct: bool, unknown: list[str]) -> None:
        self._finish, self._distinct, self._open = finish, distinct, unknown
        self._terms: Counter[str] = Counter()

    def accumulate(self, term: Any) -> None:
        self._terms[str(term)] += 1

    def finish(self) -> ox.Literal | None:
        numbers: Counter[Interval] = Counter()
        try:
            for term, times in self._terms.items():
                refuse(term)
                number = read(term)
                if number is None:
                    return None
                numbers[number] += 1 if self._distinct else times
            return _literal(self._finish(numbers))
        except OpenError as error:
            self._open.append(str(error))
            return None


class _Sampled:
    """Any one value of a group (18.5.1.8)."""

    def __init__(self) -> None:
        self._terms: dict[str, Any] = {}

    def accumulate(self, term: Any) -> None:
        if term != _NOTHING:
            self._terms[str(term)] = term

    def finish(self) -> Any:
        if len(self._terms) < 2:
            return next(iter(self._terms.values()), None)
        return choices.choice(self._terms)


class _Joined:
    """The strings of a group in any order (18.5.1.7)."""

    def __init__(self, separator: str, distinct: bool) -> None:
        self._separator, self._distinct = separator, distinct
        self._terms: list[Any] = []

    def accumulate(self, term: Any) -> None:
        self._terms.append(term)

    def finish(self) -> Any:
        terms = list(dict.fromkeys(self._terms)) if self._distinct else self._terms
        if any(not isinstance(term, ox.Literal | ox.NamedNode) for term in terms):
            return None
        return choices.pieces([term.value for term in terms], self._separator)


def separators(form: a.QueryForm) -> dict[str, str]:
    """The separators of a query's GROUP_CONCATs, each with a name."""
    groups = (pattern for pattern in every_pattern(form.pattern) if isinstance(pattern, a.Group))
    used = {each.separator for group in groups for _, each in group.aggregates if each.function == "GROUP_CONCAT"}
    return {separator: f"GROUP_CONCAT-{'-'.join(str(ord(one)) for one in separator)}" for separator in sorted(used)}


def _read(term: Any) -> Interval | None:
    return read(str(term)) if isinstance(term, ox.Literal) else None


def _literal(number: Interval | None) -> ox.Literal | None:
    if number is None:
        return None
    lexical, datatype = intervals.text(number)
    if number.kind == INTEGER and number.special is None and number.size >= 10**intervals.DIGITS:
        raise OpenError(f"{lexical} is {REASON}")
    return ox.Literal(lexical, datatype=ox.NamedNode(datatype))


def _plain(term: Any) -> Any:
    """An interval's own value, where only its datatype matters."""
    number = _read(term)
    return (
        term
        if number is None or number.exact
        else ox.Literal("1", datatype=ox.NamedNode(list(CASTS)[number.kind][1:-1]))
    )


def _boolean(value: bool) -> ox.Literal:
    return ox.Literal("true" if value else "false", datatype=ox.NamedNode(XSD + "boolean"))


def _native(operator: str, *terms: Term) -> ox.Literal | None:
    names = [f"x{place}" for place in range(len(terms))]
    (found,) = evaluate(a.Call(operator, tuple(map(a.Var, names))), names, [terms])
    if found is None:
        return None
    value = next(iter(ox.parse(f"<urn:s> <urn:p> {found} .", format=ox.RdfFormat.N_TRIPLES))).object
    return value if isinstance(value, ox.Literal) else None


def _restated(query: ContinuousQuery, reading: Reading) -> ContinuousQuery:
    form = with_pattern(query.form, _pattern(query.form.pattern, reading))
    return replace(query, form=form, sparql=sparql(form))


def _call(name: str, operator: str, *arguments: a.Expression) -> a.Call:
    return a.Call(f"<{_NAMESPACE}{name}>", (f'"{operator}"', *arguments))


def _pattern(pattern: a.Pattern, reading: Reading) -> a.Pattern:
    below = partial(_pattern, reading=reading)
    match pattern:
        case a.Minus(left=left, right=right):
            return a.Minus(below(left), _pattern(right, reading.opposite))
        case a.Filter(condition=condition, pattern=inner):
            return a.Filter(_condition(condition, computed_variables(inner), reading), below(inner))
        case a.LeftJoin(left=left, right=right, condition=condition):
            bound = computed_variables(left) | computed_variables(right)
            wanted = None if condition is None else _condition(condition, bound, reading)
            return a.LeftJoin(below(left), below(right), wanted)
        case a.Group():
            return _grouped(pattern, below)
        case a.OrderBy(pattern=inner, keys=keys):
            bound = computed_variables(inner)
            return a.OrderBy(below(inner), tuple((_as_term(key, bound), down) for key, down in keys))
        case a.Extend(pattern=inner, variable=variable, expression=value):
            return a.Extend(below(inner), variable, _value(value, computed_variables(inner)))
        case _:
            return parts(pattern, below, lambda tree: tree)


def _grouped(group: a.Group, below: Callable[[a.Pattern], a.Pattern]) -> a.Group:
    bound = computed_variables(group.pattern)
    keys = tuple((var, _as_term(key, bound)) for var, key in group.keys)
    return a.Group(below(group.pattern), keys, tuple((var, _aggregate(each, bound)) for var, each in group.aggregates))


def _aggregate(each: a.Aggregate, bound: frozenset[a.Var]) -> a.Aggregate:
    if each.argument is None:
        return each
    computed = computes(each.argument, bound)
    if each.function in ("SUM", "AVG") or (computed and each.function in ("MIN", "MAX")):
        name = f"<{_NAMESPACE}{each.function}{'-distinct' * each.distinct}>"
        return a.Aggregate(name, _value(each.argument, bound))
    argument = _as_term(each.argument, bound)
    if each.function == "SAMPLE":
        return a.Aggregate(f"<{_NAMESPACE}SAMPLE>", a.Call("COALESCE", (argument, str(_NOTHING))))
    if each.function == "GROUP_CONCAT":
        name = "-".join(("GROUP_CONCAT", "-".join(str(ord(one)) for one in each.separator)))
        return a.Aggregate(f"<{_NAMESPACE}{name}{'-distinct' * each.distinct}>", argument)
    return replace(each, argument=argument)


def _as_term(tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
    """An expression of which the very term matters: a key, or an argument of STR."""
    value = _value(tree, bound)
    return a.Call(f"<{_NAMESPACE}exact>", (value,)) if computes(tree, bound) else value


def _value(tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
    """An expression whose value is used: computed numbers stay intervals where only their value matters."""
    match tree:
        case a.Exists(pattern=pattern):
            return a.Exists(_pattern(pattern, Reading.STRICT))
        case a.Call(operator="&&" | "||" | "!") | a.Call(operator="IN"):
            return _condition(tree, bound, Reading.STRICT)
        case a.Call(operator=operator, arguments=arguments):
            return _called(tree, operator, arguments, bound)
        case _:
            return tree


def _called(tree: a.Call, operator: str, arguments: tuple[a.Expression, ...], bound: frozenset[a.Var]) -> a.Expression:
    if operator in BINARY and len(arguments) == 2:
        if operator == "-" and arguments[0] == arguments[1]:
            return _call("same", operator, _value(arguments[0], bound))
        return _call("binary", operator, *(_value(each, bound) for each in arguments))
    if operator in UNARY:
        return _call("unary", operator, _value(arguments[0], bound))
    if not computes(tree, bound):
        return a.Call(operator, tuple(_value(each, bound) for each in arguments))
    if operator in CASTS:
        return _call("cast", str(CASTS[operator]), _value(arguments[0], bound))
    if operator in COMPARISONS:
        return _condition(tree, bound, Reading.STRICT)
    if operator == "IF":
        condition, *branches = arguments
        return a.Call("IF", (_condition(condition, bound, Reading.STRICT), *(_value(each, bound) for each in branches)))
    if operator == "COALESCE":
        return a.Call(operator, tuple(_value(each, bound) for each in arguments))
    if operator in _KIND_ONLY:
        return a.Call(operator, tuple(_kind_only(each, bound) for each in arguments))
    return a.Call(operator, tuple(_as_term(each, bound) for each in arguments))


def _kind_only(tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
    if isinstance(tree, a.Var):
        return tree if tree not in bound else a.Call(f"<{_NAMESPACE}plain>", (tree,))
    return a.Call(f"<{_NAMESPACE}plain>", (_value(tree, bound),))


def _condition(tree: a.Expression, bound: frozenset[a.Var], reading: Reading, negated: bool = False) -> a.Expression:
    """A condition in this reading; under a negation it is the negation, which De Morgan's laws bring to its parts."""
    inside = partial(_condition, bound=bound, reading=reading, negated=negated)
    match tree:
        case a.Call(operator="&&" | "||" as operator, arguments=arguments):
            turned = {"&&": "||", "||": "&&"}[operator] if negated else operator
            return a.Call(turned, tuple(inside(each) for each in arguments))
        case a.Call(operator="!", arguments=(inner,)):
            return _condition(inner, bound, reading, not negated)
        case a.Call(operator="IN", arguments=(left, *others)) if others and any(
            computes(each, bound) for each in (left, *others)
        ):
            equal: list[a.Expression] = [a.Call("=", (left, other)) for other in others]
            return inside(reduce(lambda one, other: a.Call("||", (one, other)), equal))
        case a.Call(operator=operator, arguments=(left, right)) if operator in COMPARISONS and computes(tree, bound):
            return _compared(operator, _value(left, bound), _value(right, bound), reading, negated)
        case a.Exists(pattern=pattern):
            found: a.Expression = a.Exists(_pattern(pattern, reading.opposite if negated else reading))
            return a.Call("!", (found,)) if negated else found
        case a.Call(operator=operator) if operator in BINARY or operator in UNARY:
            return _compared("!=", _value(tree, bound), _ZERO, reading, negated)
        case _:
            value = _value(tree, bound)
            return a.Call("!", (value,)) if negated else value


def _compared(operator: str, left: a.Expression, right: a.Expression, reading: Reading, negated: bool) -> a.Expression:
    return _call(f"{reading}{'-not' * negated}", operator, left, right)
