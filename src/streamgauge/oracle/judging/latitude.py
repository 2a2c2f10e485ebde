"""The answers over one content under interval arithmetic: which rows, with which numbers, implementations may give.

The query is restated: every operation and aggregate on computed numbers is one of ``intervals.py``, as a function
beside SPARQL's own. An inexact result goes on as a literal that holds an interval. A comparison of such
numbers that may go either way is taken as true in the loose reading and as false in the tight one; under MINUS and
``!`` the other way round. So a row of the tight reading is certain, a row of the loose one is possible:

    FILTER(?x - ?y > 0.0)       loose   FILTER(<...loose>(">", <...>("-", ?x, ?y), 0.0))      x - y > 0.0 may hold
                                tight   FILTER(<...tight>(">", <...>("-", ?x, ?y), 0.0))      x - y > 0.0 must hold
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial, reduce
from operator import add, mul, sub
from typing import Final

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import XSD, Row, Term, is_literal
from streamgauge.oracle.judging import choices, intervals
from streamgauge.oracle.judging.choices import REASON, beyond, integer, is_beyond, is_limited, refuse
from streamgauge.oracle.judging.compare import computed_variables
from streamgauge.oracle.judging.intervals import Interval, IntervalSum, OpenError, read
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import parts, with_pattern
from streamgauge.semantics.arrivals import Contents
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.sparql import aggregates, expression
from streamgauge.sparql.algebra import FALSE, TRUE
from streamgauge.sparql.expression import evaluate
from streamgauge.sparql.values import INTEGER, Value, written
from streamgauge.sparql.values import read as value_of

COMPARISONS: Final = frozenset({"=", "!=", "<", ">", "<=", ">="})
BINARY: Final = frozenset("+-*/")
UNARY: Final = frozenset({"+", "-", "ABS", "CEIL", "FLOOR", "ROUND"})
CASTS: Final = {f"<{XSD}{name}>": kind for kind, name in enumerate(("integer", "decimal", "float", "double"))}
_KIND_ONLY: Final = frozenset({"DATATYPE", "ISNUMERIC", "ISLITERAL", "ISIRI", "ISBLANK", "LANG", "BOUND"})
_NAMESPACE: Final = "urn:streamgauge:interval-function:"
STORED: Final = f"<{_NAMESPACE}stored>"
"""The identity: it makes a stored term one that is compared as computed ones are."""
_RING: Final = {"+": add, "-": sub, "*": mul}
_ZERO: Final = f'"0"^^<{XSD}integer>'


class PolarityReading(StrEnum):
    """How a comparison that may go either way is taken; ``STRICT`` where it may not occur."""

    LOOSE = "loose"
    TIGHT = "tight"
    STRICT = "strict"

    @property
    def opposite(self) -> "PolarityReading":
        """The reading under a negation."""
        return {PolarityReading.LOOSE: PolarityReading.TIGHT, PolarityReading.TIGHT: PolarityReading.LOOSE}.get(
            self, self
        )


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
            own = operator in BINARY or operator in UNARY or operator == STORED
            return own or any(computes(each, bound) for each in arguments)
        case _:
            return False


@dataclass(slots=True)
class _Trace:
    """The choices made while one content is evaluated; ``limited`` by implementations of limited integers."""

    limited: bool
    doubt: bool = False
    unknown: list[str] = field(default_factory=list)


_TRACE: Final[ContextVar[_Trace]] = ContextVar("interval evaluation")


class Latitude:
    """A query's possible answers over contents; ``limited``: those beside integers that need not be supported."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, *, limited: bool = False) -> None:
        self._limited = limited
        self._snapshots = {
            reading: Snapshot(restated(query, reading), semantics.content, semantics.empty_aggregate)
            for reading in (PolarityReading.LOOSE, PolarityReading.TIGHT)
        }

    def possible(self, contents: Contents) -> Possible:
        """Both readings; OpenError where intervals cannot tell, with the reason."""
        trace = _Trace(self._limited)
        before = _TRACE.set(trace)
        try:
            loose = self._snapshots[PolarityReading.LOOSE].rows(contents)
            tight = self._snapshots[PolarityReading.TIGHT].rows(contents) if trace.doubt else loose
        finally:
            _TRACE.reset(before)
        if trace.unknown:
            raise OpenError(trace.unknown[0])
        return Possible(loose, tight)


def _numeric(operator: Term, *terms: Term) -> Term | None:
    """An operation on numbers; what is no number is left to SPARQL's own functions."""
    name = operator[1:-1]
    if any(map(choices.is_open, terms)):
        _TRACE.get().unknown.append("what SAMPLE or GROUP_CONCAT gives is used as a number")
        return None
    if _TRACE.get().limited and name in _RING and any(map(is_limited, terms)):
        return _ring(name, terms)
    numbers = [read(term) for term in terms]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return evaluate(a.Call(name, terms), {})
    try:
        for term in terms:
            refuse(term)
        return _term(_operated(name, known))
    except OpenError as error:
        _TRACE.get().unknown.append(str(error))
        return None


def _ring(name: str, terms: Sequence[Term]) -> Term | None:
    """A sum, difference or product with an integer that need not be supported; of others nothing is known."""
    values = [integer(term) for term in terms]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        _TRACE.get().unknown.append(REASON)
        return None
    return beyond(_RING[name](*known) if len(known) == 2 else _RING[name](0, *known))


def _operated(name: str, numbers: Sequence[Interval]) -> Interval | None:
    if name in CASTS:
        return intervals.cast(CASTS[name], numbers[0])
    if len(numbers) == 1:
        return intervals.unary(name, numbers[0])
    return intervals.arithmetic(name, *numbers)


def _same(term: Term) -> Term | None:
    """The difference of an expression and itself."""
    number = read(term)
    return None if number is None else _term(intervals.point(number.kind, 0))


def _exact(term: Term) -> Term:
    """The term itself, for a function that reads more than a number's value."""
    number = read(term)
    if is_beyond(term):
        _TRACE.get().unknown.append(REASON)
    elif number is not None and not number.exact and not number.stored:
        _TRACE.get().unknown.append("an inexact number is used as a term")
    elif choices.is_open(term):
        _TRACE.get().unknown.append("what SAMPLE or GROUP_CONCAT gives is used as a term")
    return term


def _plain(term: Term) -> Term:
    """A number of an interval's datatype, where only that matters."""
    number = read(term)
    return term if number is None or number.exact else f'"1"^^{list(CASTS)[number.kind]}'


def _compare(reading: PolarityReading, negated: bool, operator: Term, x: Term, y: Term) -> Term | None:
    name = operator[1:-1]
    if _TRACE.get().limited and any(map(is_limited, (x, y))) and all(map(is_literal, (x, y))):
        return _either(reading)
    found = [_outcomes(name, left, right) for left in choices.options(x) for right in choices.options(y)]
    known = [each for each in found if each is not None]
    if not known:
        return None
    if negated:
        known = [(not certain, not possible) for possible, certain in known]
    possible = any(each[0] for each in known)
    certain = len(known) == len(found) and all(each[1] for each in known)
    if possible != certain:
        return _either(reading)
    return TRUE if certain else FALSE


def _either(reading: PolarityReading) -> Term:
    """The outcome of a comparison that may hold or not."""
    _TRACE.get().doubt = True
    if reading is PolarityReading.STRICT:
        _TRACE.get().unknown.append("a comparison that may go either way is used as a value")
    return TRUE if reading is PolarityReading.LOOSE else FALSE


def _outcomes(operator: str, x: Term, y: Term) -> tuple[bool, bool] | None:
    """Whether a comparison may hold, and whether it must; ``None`` for an error."""
    left, right = read(x), read(y)
    if left is not None and right is not None:
        return intervals.compared(operator, left, right)
    found = evaluate(a.Call(operator, (x, y)), {})
    return None if found is None else (found == TRUE, found == TRUE)


def _added(terms: Sequence[Term | None], separator: str) -> Term | None:
    """SUM of numbers."""
    values = [None if term is None else integer(term) for term in terms]
    known = [value for value in values if value is not None]
    if _TRACE.get().limited and len(known) == len(values) and any(term and is_limited(term) for term in terms):
        return beyond(sum(known))
    return _aggregated(lambda numbers: IntervalSum(numbers).total, terms, separator)


def _aggregated(finish: Callable[[Counter[Interval]], Interval], terms: Sequence[Term | None], _: str) -> Term | None:
    """AVG, MIN or MAX of numbers; an error unless all are numbers."""
    numbers: Counter[Interval] = Counter()
    try:
        for term, times in Counter(terms).items():
            number = None if term is None else read(term)
            if term is None or number is None:
                if is_beyond(term):
                    raise OpenError(REASON)
                return None
            refuse(term)
            numbers[number] += times
        return _term(finish(numbers))
    except OpenError as error:
        _TRACE.get().unknown.append(str(error))
        return None


def _extreme(numbers: Counter[Interval], *, least: bool) -> Interval:
    if not numbers:
        raise OpenError("MIN or MAX of nothing")
    return intervals.extreme(numbers, least=least)


def _sampled(terms: Sequence[Term | None], _: str) -> Term | None:
    """Any one value of a group (18.5.1.8)."""
    found = {term for term in terms if term is not None}
    return choices.choice(found) if len(found) > 1 else next(iter(found), None)


def _joined(terms: Sequence[Term | None], separator: str) -> Term | None:
    """The strings of a group in any order (18.5.1.7)."""
    pieces = [evaluate(a.Call("STR", (term,)), {}) if term is not None else None for term in terms]
    strings = [parse_term(piece).value for piece in pieces if piece is not None]
    return choices.pieces(strings, separator) if len(strings) == len(pieces) else None


def _term(number: Interval | None) -> Term | None:
    if number is None:
        return None
    lexical, datatype = intervals.text(number)
    if number.kind == INTEGER and number.special is None and number.size >= 10**intervals.DIGITS:
        if _TRACE.get().limited:
            return beyond(int(number.value))
        raise OpenError(f"{lexical} is {REASON}")
    return intervals.own(f'"{lexical}"^^<{datatype}>') if number.exact else f'"{lexical}"^^<{datatype}>'


def _of_values(function: Callable[..., Term | None]) -> Callable[..., Value | None]:
    """A function of terms as one of values."""

    def call(*values: Value) -> Value | None:
        found = function(*map(written, values))
        return None if found is None else value_of(found)

    return call


def _register() -> None:
    """Make the functions known to the evaluator, each by its IRI."""
    plain: dict[str, Callable[..., Term | None]] = {"number": _numeric, "same": _same, "exact": _exact, "plain": _plain}
    expression.EXTENSIONS[STORED] = lambda value: value
    for name, function in plain.items():
        expression.EXTENSIONS[extension(name)] = _of_values(function)
    for reading in PolarityReading:
        for negated in (False, True):
            expression.EXTENSIONS[extension(f"{reading}{'-not' * negated}")] = _of_values(
                partial(_compare, reading, negated)
            )
    finishes: dict[str, Callable[[Counter[Interval]], Interval]] = {
        "AVG": lambda numbers: IntervalSum(numbers).average,
        "MIN": partial(_extreme, least=True),
        "MAX": partial(_extreme, least=False),
    }
    aggregates.EXTENSIONS[extension("SUM")] = _added
    for name, finish in finishes.items():
        aggregates.EXTENSIONS[extension(name)] = partial(_aggregated, finish)
    aggregates.EXTENSIONS[extension("SAMPLE")], aggregates.EXTENSIONS[extension("GROUP_CONCAT")] = _sampled, _joined


def extension(name: str) -> str:
    """The IRI of a function or aggregate of interval arithmetic."""
    return f"<{_NAMESPACE}{name}>"


def restated(query: ContinuousQuery, reading: PolarityReading) -> ContinuousQuery:
    """The query with interval arithmetic for SPARQL's, and its comparisons in one reading."""
    form = with_pattern(query.form, _pattern(query.form.pattern, reading))
    return replace(query, form=form, sparql=sparql(form))


def _call(name: str, operator: str, *arguments: a.Expression) -> a.Call:
    return a.Call(f"<{_NAMESPACE}{name}>", (f'"{operator}"', *arguments))


def _pattern(pattern: a.Pattern, reading: PolarityReading) -> a.Pattern:
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
        return replace(each, function=extension(each.function), argument=_value(each.argument, bound))
    named = extension(each.function) if each.function in ("SAMPLE", "GROUP_CONCAT") else each.function
    return replace(each, function=named, argument=_as_term(each.argument, bound))


def _as_term(tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
    """An expression of which the very term matters: a key, or an argument of STR."""
    value = _value(tree, bound)
    return a.Call(extension("exact"), (value,)) if computes(tree, bound) else value


def _value(tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
    """An expression whose value is used: computed numbers stay intervals where only their value matters."""
    match tree:
        case a.Exists(pattern=pattern):
            return a.Exists(_pattern(pattern, PolarityReading.STRICT))
        case a.Call(operator="&&" | "||" | "!"):
            return _condition(tree, bound, PolarityReading.STRICT)
        case a.Call(operator="IN", arguments=(_, _, *_)) if computes(tree, bound):
            return _condition(tree, bound, PolarityReading.STRICT)
        case a.Call(operator="IN", arguments=arguments):
            return a.Call("IN", tuple(_value(each, bound) for each in arguments))
        case a.Call(operator=operator, arguments=arguments):
            return _called(tree, operator, arguments, bound)
        case _:
            return tree


def _called(tree: a.Call, operator: str, arguments: tuple[a.Expression, ...], bound: frozenset[a.Var]) -> a.Expression:
    if operator in BINARY and len(arguments) == 2:
        if operator == "-" and arguments[0] == arguments[1]:
            return a.Call(extension("same"), (_value(arguments[0], bound),))
        return _call("number", operator, *(_value(each, bound) for each in arguments))
    if operator in UNARY:
        return _call("number", operator, _value(arguments[0], bound))
    if not computes(tree, bound):
        return a.Call(operator, tuple(_value(each, bound) for each in arguments))
    if operator in CASTS:
        return _call("number", operator, _value(arguments[0], bound))
    if operator in COMPARISONS:
        return _condition(tree, bound, PolarityReading.STRICT)
    if operator == "IF":
        condition, *branches = arguments
        return a.Call(
            "IF", (_condition(condition, bound, PolarityReading.STRICT), *(_value(each, bound) for each in branches))
        )
    if operator in ("COALESCE", STORED):
        return a.Call(operator, tuple(_value(each, bound) for each in arguments))
    if operator in _KIND_ONLY:
        return a.Call(operator, tuple(_kind_only(each, bound) for each in arguments))
    return a.Call(operator, tuple(_as_term(each, bound) for each in arguments))


def _kind_only(tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
    if isinstance(tree, a.Var):
        return tree if tree not in bound else a.Call(extension("plain"), (tree,))
    return a.Call(extension("plain"), (_value(tree, bound),))


def _condition(
    tree: a.Expression, bound: frozenset[a.Var], reading: PolarityReading, negated: bool = False
) -> a.Expression:
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


def _compared(
    operator: str, left: a.Expression, right: a.Expression, reading: PolarityReading, negated: bool
) -> a.Expression:
    return _call(f"{reading}{'-not' * negated}", operator, left, right)


_register()
