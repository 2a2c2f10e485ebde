"""SPARQL 1.1 expressions on solutions (sections 17.2 to 17.4): terms in, a term or an error out.

An expression is compiled once to a closure, which is cached. Intermediate results are values, so that 1 + 1 + 1 is
written as a term only once.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from streamgauge.model.algebra import Call, Exists, Expression, Var, expression_variables
from streamgauge.model.terms import Row, Term
from streamgauge.query.traversal import every_expression
from streamgauge.sparql.comparison import equal_values
from streamgauge.sparql.functions import ANY, ONE, PATTERN, TWO, boolean, effective
from streamgauge.sparql.values import FALSE, TRUE, Value, read, written

Solution: TypeAlias = Mapping[str, Term | None]
ExistsTest: TypeAlias = Callable[[Exists, Solution], bool]
_Step: TypeAlias = Callable[[Any, ExistsTest | None], Value | None]
_Access: TypeAlias = Callable[[str], _Step]

VOLATILE: Final = frozenset({"RAND", "NOW", "UUID", "STRUUID", "BNODE"})
"""Functions whose value differs at each call, which are not evaluated here."""

EXTENSIONS: Final[dict[str, Callable[..., Value | None]]] = {}
"""Custom functions on values by IRI in angle brackets; not called if an argument is an error."""


class UnsupportedFunctionError(ValueError):
    """A function that is not supported; the message names it and the remedy."""


def evaluate(expression: Expression, solution: Solution, exists: ExistsTest | None = None) -> Term | None:
    """The value of an expression; ``None`` for SPARQL's error and for an unbound variable.

    ``exists`` evaluates EXISTS with its pattern and the outer solution; ValueError if it is needed and missing.
    """
    value = _of_solution(expression)(solution, exists)
    return None if value is None else written(value)


def compiled(expression: Expression) -> Callable[[Solution, ExistsTest | None], Term | None]:
    """``evaluate`` compiled for one expression; UnsupportedFunctionError for an unsupported function."""
    step = _of_solution(expression)

    def run(solution: Solution, exists: ExistsTest | None = None) -> Term | None:
        value = step(solution, exists)
        return None if value is None else written(value)

    return run


def condition(expression: Expression) -> Callable[[Solution, ExistsTest | None], bool]:
    """Whether FILTER keeps a solution, by the effective boolean value (17.2.2), compiled; an error is False.

    Raises UnsupportedFunctionError for an unsupported function.
    """
    step = _of_solution(expression)

    def run(solution: Solution, exists: ExistsTest | None = None) -> bool:
        return effective(step(solution, exists)) is True

    return run


def row_expression(expression: Expression, variables: Sequence[str]) -> Callable[[Row], Term | None]:
    """``compiled`` for rows over ``variables`` instead of solutions, without EXISTS; other variables are unbound."""
    step = _of_row(expression, tuple(variables))

    def run(row: Row) -> Term | None:
        value = step(row, None)
        return None if value is None else written(value)

    return run


def row_condition(expression: Expression, variables: Sequence[str]) -> Callable[[Row], bool]:
    """``condition`` for rows over ``variables``, without EXISTS."""
    step = _of_row(expression, tuple(variables))
    return lambda row: effective(step(row, None)) is True


@lru_cache(maxsize=4096)
def _of_solution(expression: Expression) -> _Step:
    return _Compiler(expression, _named).step


@lru_cache(maxsize=4096)
def _of_row(expression: Expression, variables: tuple[str, ...]) -> _Step:
    places = {name: place for place, name in enumerate(variables)}
    return _Compiler(expression, lambda name: _placed(places.get(name))).step


def _named(name: str) -> _Step:
    def run(solution: Solution, _exists: ExistsTest | None) -> Value | None:
        term = solution.get(name)
        return None if term is None else read(term)

    return run


def _placed(place: int | None) -> _Step:
    if place is None:
        return lambda _row, _exists: None
    at = place

    def run(row: Row, _exists: ExistsTest | None) -> Value | None:
        term = row[at]
        return None if term is None else read(term)

    return run


class _Compiler:
    """Compiles an expression; constant calls are folded, and a repeated call is computed once per solution."""

    def __init__(self, expression: Expression, access: _Access) -> None:
        self._access = access
        # EXISTS and extensions are not counted: each of their calls has to be made.
        calls = Counter(part for part in every_expression(expression) if isinstance(part, Call) and is_pure(part))
        self._repeated = {call for call, count in calls.items() if count > 1}
        self._steps: dict[Expression, _Step] = {}
        self.step = self._compiled(expression)

    def _compiled(self, expression: Expression) -> _Step:
        match expression:
            case Var(name=name):
                return self._access(name)
            case Exists():
                return _exists(expression)
            case Call():
                step = self._steps.get(expression)
                if step is None:
                    step = self._steps[expression] = self._call(expression)
                return step
            case _:
                return _constant(read(expression))

    def _call(self, call: Call) -> _Step:
        name = call.operator if call.operator[0] == "<" and len(call.operator) > 2 else call.operator.upper()
        arguments = _patterned(name, *call.arguments) if name in ("REGEX", "REPLACE") else call.arguments
        steps = [self._compiled(argument) for argument in arguments]
        if name == "BOUND":
            return _bound(steps[0])
        # An extension is never folded nor cached, even without variables: it may read something else than its
        # arguments.
        if name in EXTENSIONS:
            return _many(EXTENSIONS[name], steps)
        step = _function(name, call, steps)
        # The empty solution will do, as no variable is read. 2 + 3 becomes the constant 5 here, once for a query.
        if not expression_variables(call) and is_pure(call):
            return _constant(step((), None))
        return _once(step) if call in self._repeated else step


def is_pure(tree: Expression) -> bool:
    """Whether the value depends on the terms only: EXISTS and extensions may give another value each time."""
    return not any(
        isinstance(part, Exists) or (isinstance(part, Call) and part.operator in EXTENSIONS)
        for part in every_expression(tree)
    )


def _constant(value: Value | None) -> _Step:
    return lambda _solution, _exists: value


def _once(step: _Step) -> _Step:
    """The step with its last result cached by the solution's identity.

    An expression is evaluated solution by solution.
    """
    last: Any = None
    value: Value | None = None

    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        nonlocal last, value
        # ``last`` keeps the solution alive, so no later one can have its identity.
        if solution is not last:
            value = step(solution, exists)
            last = solution
        return value

    return run


def _exists(node: Exists) -> _Step:
    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        if exists is None:
            raise ValueError("an expression with EXISTS needs the argument `exists`")
        return TRUE if exists(node, solution) else FALSE

    return run


def _function(name: str, call: Call, steps: Sequence[_Step]) -> _Step:
    """The step of a function or operator; UnsupportedFunctionError for an unknown name or number of arguments."""
    if name in _FORMS:
        return _FORMS[name](steps)
    if name in ONE and len(steps) == 1:
        return _one(ONE[name], steps[0])
    if name in TWO and len(steps) == 2:
        return _two(TWO[name], *steps)
    if name in ANY:
        return _many(ANY[name], steps)
    raise UnsupportedFunctionError(_why(call.operator, len(steps)))


def _patterned(name: str, text: Expression, source: Expression, *others: Expression) -> tuple[Expression, ...]:
    """The arguments of REGEX or REPLACE with its regular expression as a call, which is folded if it is constant.

    A constant one is thus compiled once per query rather than per row.
    """
    replacement, flags = (others[:1], others[1:]) if name == "REPLACE" else ((), others)
    return (text, Call(PATTERN, (source, *flags)), *replacement)


def _why(operator: str, count: int) -> str:
    if operator.upper() in VOLATILE:
        return f"{operator}() gives a different value at each call, so answers cannot be compared: bind a constant"
    return f"{operator} with {count} arguments is not a function of SPARQL 1.1 that is evaluated here: leave it out"


def _one(function: Callable[[Value], Value | None], step: _Step) -> _Step:
    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        value = step(solution, exists)
        return None if value is None else function(value)

    return run


def _two(function: Callable[[Value, Value], Value | None], first: _Step, second: _Step) -> _Step:
    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        # The second argument is not evaluated after an error: the result is an error already.
        one = first(solution, exists)
        if one is None:
            return None
        other = second(solution, exists)
        return None if other is None else function(one, other)

    return run


def _many(function: Callable[..., Value | None], steps: Sequence[_Step]) -> _Step:
    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        values = [step(solution, exists) for step in steps]
        return None if None in values else function(*values)

    return run


def _bound(step: _Step) -> _Step:
    return lambda solution, exists: FALSE if step(solution, exists) is None else TRUE


def _deciding(deciding: bool) -> Callable[[Sequence[_Step]], _Step]:
    """``||`` (decided by true) or ``&&`` (by false): a deciding operand outweighs an error of another one (17.2)."""

    def form(steps: Sequence[_Step]) -> _Step:
        def run(solution: Any, exists: ExistsTest | None) -> Value | None:
            # For ``||``: an error and true give true, an error and false give an error, since the operand that failed
            # might have been true. For ``&&`` likewise with true and false exchanged.
            error = False
            for step in steps:
                truth = effective(step(solution, exists))
                if truth is deciding:
                    return TRUE if deciding else FALSE
                error = error or truth is None
            return None if error else FALSE if deciding else TRUE

        return run

    return form


def _not(steps: Sequence[_Step]) -> _Step:
    (step,) = steps

    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        truth = effective(step(solution, exists))
        return None if truth is None else FALSE if truth else TRUE

    return run


def _if(steps: Sequence[_Step]) -> _Step:
    test, then, otherwise = steps

    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        truth = effective(test(solution, exists))
        # Only the chosen branch is evaluated: an error in the other one does not matter (17.4.1.2).
        return None if truth is None else (then if truth else otherwise)(solution, exists)

    return run


def _coalesce(steps: Sequence[_Step]) -> _Step:
    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        for step in steps:
            value = step(solution, exists)
            if value is not None:
                return value
        return None

    return run


def _in(steps: Sequence[_Step]) -> _Step:
    """``IN``: equal to a member of the list; errors count only if no member is equal (17.4.1.9)."""
    first, *others = steps

    def run(solution: Any, exists: ExistsTest | None) -> Value | None:
        member, error = first(solution, exists), False
        # An empty list compares nothing, so that IN is false even for an error.
        if member is None and others:
            return None
        for step in others:
            value = step(solution, exists)
            equal = None if value is None or member is None else equal_values(member, value)
            if equal:
                return TRUE
            error = error or equal is None
        return None if error else boolean(False)

    return run


_FORMS: Final[dict[str, Callable[[Sequence[_Step]], _Step]]] = {
    "&&": _deciding(False),
    "||": _deciding(True),
    "!": _not,
    "IF": _if,
    "COALESCE": _coalesce,
    "IN": _in,
}
