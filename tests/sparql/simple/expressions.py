"""Expressions of SPARQL 1.1, section 17: operators with their errors, and the forms that look at errors.

``Expressions`` evaluates over one solution (variable name -> term); what EXISTS asks is a function that it is given.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from streamgauge.model import algebra as al
from tests.sparql.simple.choices import Choices, ExpressionError, OpenError
from tests.sparql.simple.functions import FUNCTIONS, arithmetic, cast, negated, numeric, truth
from tests.sparql.simple.values import (
    DIR_LANG_STRING,
    LANG_STRING,
    XSD,
    Moment,
    Number,
    Value,
    boolean,
    compared,
    is_literal,
    is_triple,
    promoted,
    same,
    split,
    term,
    triple,
    value,
)

Solution = Mapping[str, str]


class Expressions:
    """Evaluates expressions; ``exists(pattern, solution)`` says whether a pattern has solutions under a solution."""

    def __init__(self, choices: Choices, exists: Callable[[al.Pattern, Solution], bool]) -> None:
        self._choices, self._exists = choices, exists

    def evaluate(self, tree: al.Expression, solution: Solution) -> str:
        """The term that an expression gives, ExpressionError where it is an error."""
        match tree:
            case al.Var(name=name):
                if name not in solution:
                    raise ExpressionError("unbound")
                return solution[name]
            case al.Exists(pattern=pattern):
                return boolean(self._exists(pattern, solution))
            case al.Call(operator=operator, arguments=arguments):
                return self._call(operator, arguments, solution)
            case _:
                return tree

    def holds(self, tree: al.Expression, solution: Solution) -> bool:
        """Whether the effective boolean value is true; an error is not (17.2)."""
        try:
            return truth(self.evaluate(tree, solution), self._choices)
        except ExpressionError:
            return False

    def _call(self, name: str, arguments: Sequence[al.Expression], solution: Solution) -> str:
        match name:
            case "BOUND":
                (var,) = arguments
                return boolean(not isinstance(var, al.Var) or var.name in solution)
            case "IF":
                return self.evaluate(
                    arguments[1 if truth(self.evaluate(arguments[0], solution), self._choices) else 2], solution
                )
            case "COALESCE":
                return self._first(arguments, solution)
            case "||" | "&&":
                return self._logical(name == "||", arguments, solution)
            case "IN":
                return self._in(arguments, solution)
        return self._strict(name, [self.evaluate(argument, solution) for argument in arguments])

    def _first(self, arguments: Sequence[al.Expression], solution: Solution) -> str:
        for argument in arguments:
            try:
                return self.evaluate(argument, solution)
            except ExpressionError:
                continue
        raise ExpressionError("COALESCE without a value")

    def _logical(self, decides: bool, arguments: Sequence[al.Expression], solution: Solution) -> str:
        """``||`` (decided by true) and ``&&`` (decided by false) with errors: the table of 17.2."""
        failed = None
        for argument in arguments:
            try:
                if truth(self.evaluate(argument, solution), self._choices) is decides:
                    return boolean(decides)
            except ExpressionError as error:
                failed = error
        if failed is not None:
            raise failed
        return boolean(not decides)

    def _in(self, arguments: Sequence[al.Expression], solution: Solution) -> str:
        """IN is a chain of ``=`` joined by ``||`` (17.4.1.9)."""
        left = self.evaluate(arguments[0], solution)
        failed = None
        for argument in arguments[1:]:
            try:
                if self.equal(left, self.evaluate(argument, solution)):
                    return boolean(True)
            except ExpressionError as error:
                failed = error
        if failed is not None:
            raise failed
        return boolean(False)

    def _strict(self, name: str, terms: list[str]) -> str:
        """Operators and functions that are an error where an argument is."""
        match name, terms:
            case "=", [left, right]:
                return boolean(self.equal(left, right))
            case "!=", [left, right]:
                return boolean(not self.equal(left, right))
            case (("<" | ">" | "<=" | ">="), [left, right]):
                return boolean(self.ordered(name, left, right))
            case (("+" | "-" | "*" | "/"), [left, right]):
                return arithmetic(name, left, right)
            case "!", [only]:
                return boolean(not truth(only, self._choices))
            case "+", [only]:
                return term(numeric(only))
            case "-", [only]:
                return term(negated(numeric(only)))
        if name.startswith("<"):
            return cast(name[1:-1].removeprefix(XSD), *terms)
        if name.upper() in FUNCTIONS:
            return FUNCTIONS[name.upper()](*terms)
        raise OpenError(f"{name} is not done")

    def equal(self, left: str, right: str) -> bool:
        """The operator ``=`` (17.3), RDFterm-equal where no other matches (17.4.1.7)."""
        if str(left) == str(right) and not _is_nan(left):
            return True
        if is_triple(left) and is_triple(right):
            return self._parts_equal(triple(left), triple(right))
        try:
            one, other = value(left), value(right)
        except ExpressionError:
            return self._term_equal(left, right)
        if isinstance(one, Number) and isinstance(other, Number):
            _, first, second = promoted(one, other)
            return first == second
        if isinstance(one, Moment) and isinstance(other, Moment) and one.kind == other.kind:
            return self._dated(left, right) and compared(one, other) == 0
        if type(one) is type(other) and not isinstance(one, Moment):
            return one == other
        return self._known_apart()

    def _parts_equal(self, left: tuple[str, str, str], right: tuple[str, str, str]) -> bool:
        """``=`` of triple terms (SPARQL 1.2, 17.3): of all parts; a part that differs decides beside errors."""
        failed = None
        for one, other in zip(left, right, strict=True):
            try:
                if not self.equal(one, other):
                    return False
            except ExpressionError as error:
                failed = error
        if failed is not None:
            raise failed
        return True

    def _term_equal(self, left: str, right: str) -> bool:
        """RDFterm-equal: two literals that are not the same term are an error."""
        if same(left, right):
            return True
        if not (is_literal(left) and is_literal(right)):
            return False
        one, other = split(left), split(right)
        if {LANG_STRING, DIR_LANG_STRING} & {one[1], other[1]}:
            if one[1] == other[1] and one[0] == other[0] and one[2].lower() == other[2].lower():
                if self._choices.policy("language tags are compared in lower case"):
                    return True
                raise ExpressionError("RDFterm-equal")
            return self._known_apart()
        raise ExpressionError("RDFterm-equal")

    def _known_apart(self) -> bool:
        """Literals of different known kinds: an error by RDFterm-equal, false where more is supported (17.3.1)."""
        if self._choices.policy("literals of known kinds that differ are an error"):
            raise ExpressionError("RDFterm-equal")
        return False

    def _dated(self, left: str, right: str) -> bool:
        """xsd:date and xsd:time are no operand types of 17.3: an error, or as XPath compares them (17.3.1)."""
        kinds = {split(item)[1] for item in (left, right)}
        without = bool(kinds & {XSD + "date", XSD + "time"})
        if without and not self._choices.policy("xsd:date and xsd:time are compared"):
            raise ExpressionError("xsd:date and xsd:time have no operators")
        return True

    def ordered(self, sign: str, left: str, right: str) -> bool:
        """``<``, ``>``, ``<=``, ``>=`` (17.3)."""
        one, other = value(left), value(right)
        if isinstance(one, Number) and isinstance(other, Number):
            _, first, second = promoted(one, other)
            return _holds(sign, first, second)
        if isinstance(one, Moment) and isinstance(other, Moment) and one.kind == other.kind:
            self._dated(left, right)
            return _holds(sign, compared(one, other), 0)
        if type(one) is type(other) and isinstance(one, bool | str):
            return _holds(sign, one, other)
        raise ExpressionError(f"no {sign} for these")


def _holds(sign: str, left: Value | Fraction | float, right: Value | Fraction | float) -> bool:
    less, equal = left < right, left == right  # type: ignore[operator]
    greater = left > right  # type: ignore[operator]
    return {"<": less, ">": greater, "<=": less or equal, ">=": greater or equal}[sign]


def _is_nan(cell: str) -> bool:
    return is_literal(cell) and split(cell)[0] == "NaN" and split(cell)[1] in (XSD + "double", XSD + "float")


def _unknown(cell: str) -> bool:
    """Whether a literal has a datatype without known values, or is ill-typed."""
    if split(cell)[1] == LANG_STRING:
        return False
    try:
        value(cell)
    except ExpressionError:
        return True
    return False
