"""Numbers whose datatypes are seen only while the query runs, as Spark columns without Python.

A number is a struct: its ``kind`` (0 integer, 1 decimal, 2 float, 3 double), its ``exact`` value (decimal, null beyond
20 digits and for reals) and its ``real`` one. Operands are promoted as SPARQL 1.1, 17.3, has it; an error is null.
A job fails with a sentence (``raise_error``) where Spark cannot compute exactly, so no answer is silently another one.
"""

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Call, Exists, Expression, Var
from streamgauge.model.terms import XSD, Term, is_iri
from streamgauge.query.printer import expression as printed
from streamgauge.spark.scalars import kind_of

EXACT: Final = "decimal(38,18)"
_STRUCT: Final = f"struct<kind:int,exact:{EXACT},real:double>"
# The scales of a product add up, so two factors with nine places keep the 18 of EXACT; ``fitted`` refuses more.
_FACTOR: Final = "decimal(28,9)"
_DIVISOR: Final = "decimal(19,9)"
_WHOLE: Final = (
    "integer|long|int|short|byte|nonNegativeInteger|positiveInteger|nonPositiveInteger|negativeInteger|unsignedLong"
    "|unsignedInt|unsignedShort|unsignedByte"
)
_KINDS: Final = ("integer", "decimal", "float", "double")
_LITERAL: Final = rf'^"([^"\\]*)"\^\^<{XSD}({_WHOLE}|decimal|float|double)>$'
_FORMS: Final = (
    r"^[+-]?[0-9]+$",
    r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)$",
    r"^([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN)$",
)
_COMPARISONS: Final[Mapping[str, Callable[[Column, Column], Column]]] = {
    "=": Column.__eq__,
    "!=": Column.__ne__,
    "<": Column.__lt__,
    ">": Column.__gt__,
    "<=": Column.__le__,
    ">=": Column.__ge__,
}
_ARITHMETIC: Final[Mapping[str, Callable[[Column, Column], Column]]] = {
    "+": Column.__add__,
    "-": Column.__sub__,
    "*": Column.__mul__,
}
NOT_HERE: Final = "streamgauge: real-time mode cannot compute"
"""The start of the message of a job that fails because its data exceeds what Spark computes exactly."""

Terms = Mapping[str, Column]
"""The column of each variable's term, null where the variable is unbound."""

Numbers = Mapping[str, Column]
"""The number (a struct, null for other terms) of each variable that an expression computes with."""


def let(column: Column, use: Callable[[Column], Column]) -> Column:
    """``use`` of a column that is computed once: Spark would repeat the column's expression at each use."""
    # A lambda over an array of one element: within it the element is a variable, which Spark evaluates once.
    return fn.element_at(fn.transform(fn.array(column), use), 1)


def number(kind: Column, exact: Column, real: Column) -> Column:
    """A number of these parts, null without a kind or a value."""
    parts = (kind.cast("int").alias("kind"), exact.cast(EXACT).alias("exact"), real.cast("double").alias("real"))
    return let(fn.struct(*parts), _there)


def _there(value: Column) -> Column:
    known = fn.when(value["kind"] <= 1, value["exact"].isNotNull()).otherwise(value["real"].isNotNull())
    return fn.when(value["kind"].isNotNull() & known, value)


def number_of(term: Column) -> Column:
    """The number of a term; null for other terms and for ill-typed literals."""
    form, name = fn.regexp_extract(term, _LITERAL, 1), fn.regexp_extract(term, _LITERAL, 2)
    # The two cheap tests first: most terms never reach the regular expressions.
    return fn.when(
        term.endswith(">") & term.startswith('"'), let(fn.struct(form.alias("form"), name.alias("name")), _read)
    )


def _read(literal: Column) -> Column:
    form, name = literal["form"], literal["name"]
    # Spark's regexp_extract returns the empty string if nothing matches.
    kind = fn.when(name == "", None).when(name == "decimal", 1).when(name == "float", 2).when(name == "double", 3)
    whole, decimal, real = (form.rlike(pattern) for pattern in _FORMS)
    formed = fn.when(name == "decimal", decimal).when(name.isin("float", "double"), real).otherwise(whole)
    # ``try_cast`` and not ``cast``: for a literal that is no number the latter fails the job under ANSI mode.
    exact = fn.when(~name.isin("float", "double"), form.try_cast(EXACT))
    return fn.when(formed, number(kind.otherwise(0), exact, form.try_cast("double")))


def term_of(value: Column) -> Column:
    """A term with the value of a number; its lexical form need not be canonical."""
    return let(value, _written)


def _written(value: Column) -> Column:
    real = value["real"]
    text = fn.when(fn.isnan(real), "NaN").when(real == float("inf"), "INF").when(real == float("-inf"), "-INF")
    text = text.otherwise(real.cast("string"))
    whole, decimal = value["exact"].cast("decimal(38,0)").cast("string"), _plain(value["exact"])
    form = fn.when(value["kind"] == 0, whole).when(value["kind"] == 1, decimal).otherwise(text)
    names = fn.element_at(fn.array(*map(fn.lit, _KINDS)), value["kind"] + 1)
    term = fn.concat(fn.lit('"'), form, fn.lit(f'"^^<{XSD}'), names, fn.lit(">"))
    return fn.when(value.isNotNull(), term)


def _plain(decimal: Column) -> Column:
    """The digits of a decimal without the zeros that its scale adds."""
    # EXACT writes 18 places: 100.000000000000000000 becomes 100, and 1.500000000000000000 becomes 1.5. The point is in
    # every such text, so zeros before it cannot match up to the end.
    return fn.regexp_replace(decimal.cast("string"), r"\.?0+$", "")


def refuse(expression: Expression) -> str | None:
    """The part of an expression that real-time mode has no Spark column for, in words; ``None`` when it has one."""
    match expression:
        case Var() | str():
            return None
        case Exists():
            return "EXISTS"
        case Call("BOUND", (Var(),)):
            return None
        case Call("SAMETERM", arguments) if all(isinstance(argument, Var | str) for argument in arguments):
            return None
        case Call("SAMETERM", arguments):
            return next(
                f"sameTerm with {printed(argument)}" for argument in arguments if not isinstance(argument, Var | str)
            )
        case Call("!" | "&&" | "||", arguments):
            return next(
                (f"`{printed(argument)}` as a condition" for argument in arguments if not _is_condition(argument)), None
            ) or next(filter(None, map(refuse, arguments)), None)
        case Call("=" | "!=", (Var(), str(term))) | Call("=" | "!=", (str(term), Var())) if is_iri(term):
            return None
        case Call(operator, (left, right)) if operator in _COMPARISONS or operator in (*_ARITHMETIC, "/"):
            return _refuse_pair(operator, left, right)
        case Call("+" | "-", (argument,)):
            return _refuse_operand(expression.operator, argument)
        case Call(operator):
            return f"{operator.removeprefix('<').removesuffix('>')}()"


def _refuse_pair(operator: str, left: Expression, right: Expression) -> str | None:
    if operator in ("=", "!=") and isinstance(left, Var) and isinstance(right, Var):
        return f"`{operator}` between two variables, whose terms may be of any kind (use sameTerm)"
    return _refuse_operand(operator, left) or _refuse_operand(operator, right)


def _refuse_operand(operator: str, side: Expression) -> str | None:
    if isinstance(side, str):
        return None if kind_of(side) else f"`{operator}` with {side}, which is not a number"
    if isinstance(side, Call) and _is_condition(side):
        return f"`{operator}` with a condition"
    return refuse(side)


def is_condition(expression: Expression) -> bool:
    """Whether the value is a boolean that Spark has as a column."""
    return _is_condition(expression)


def _is_condition(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.operator in {*_COMPARISONS, "!", "&&", "||", "BOUND", "SAMETERM"}


def condition(expression: Expression, terms: Terms, numbers: Numbers) -> Column:
    """A boolean column: true if FILTER(expression) keeps the solution, null for an error."""
    assert isinstance(expression, Call)
    match expression:
        case Call("BOUND", (Var(name=name),)):
            return terms[name].isNotNull() if name in terms else fn.lit(False)
        case Call("SAMETERM", (Var() | str() as left, Var() | str() as right)):
            return _same(left, terms) == _same(right, terms)
        case Call("!", (argument,)):
            # Spark's NOT, AND and OR over null are SPARQL's over errors (17.2): false AND error is false, true OR
            # error is true.
            return ~condition(argument, terms, numbers)
        case Call("&&" | "||" as operator, (left, right)):
            sides = condition(left, terms, numbers), condition(right, terms, numbers)
            return sides[0] & sides[1] if operator == "&&" else sides[0] | sides[1]
        case Call("=" | "!=" as operator, (Var(name=name), str(term))) if is_iri(term):
            return _COMPARISONS[operator](_term(name, terms), fn.lit(term))
        case Call("=" | "!=", (str(term), Var() as variable)) if is_iri(term):
            return condition(Call(expression.operator, (variable, term)), terms, numbers)
        case _:
            return _compared(expression, terms, numbers)


def _same(side: Var | str, terms: Terms) -> Column:
    return fn.lit(side) if isinstance(side, str) else _term(side.name, terms)


def _term(name: str, terms: Terms) -> Column:
    return terms.get(name, fn.lit(None).cast("string"))


def _compared(expression: Call, terms: Terms, numbers: Numbers) -> Column:
    """A comparison of numbers, NaN having no order (F&O 4.3); for `=` a node is another term than a number."""
    operator, (left, right) = expression.operator, expression.arguments
    compare = _COMPARISONS[operator]

    def compared(pair: Column) -> Column:
        one, other = pair["one"], pair["other"]
        # To Spark, NaN equals itself and is greater than any other number.
        nan = fn.isnan(one["real"]) | fn.isnan(other["real"])
        real = fn.when(nan, fn.lit(operator == "!=")).otherwise(compare(one["real"], other["real"]))
        exact = (one["kind"] <= 1) & (other["kind"] <= 1)
        known = fn.when(exact, compare(one["exact"], other["exact"])).otherwise(real)
        return fn.when(one.isNotNull() & other.isNotNull(), known)

    comparison = let(_pair(value(left, numbers), value(right, numbers)), compared)
    sides = [_term(side.name, terms) for side in (left, right) if isinstance(side, Var)]
    # An IRI or a blank node is unequal to a number, which is not an error (17.4.1.7).
    if operator in ("=", "!="):
        return fn.when(sides[0].rlike("^[<_]"), fn.lit(operator == "!=")).otherwise(comparison) if sides else comparison
    if len(sides) < 2:
        return comparison
    words = [
        side.startswith('"') & value(Var(name), numbers).isNull()
        for side, name in zip(sides, _names(left, right), strict=True)
    ]
    refusal = fn.lit(f"{NOT_HERE} the order of two literals that are not numbers: use micro-batches")
    return fn.when(words[0] & words[1], fn.raise_error(refusal).cast("boolean")).otherwise(comparison)


def _names(*sides: Expression) -> list[str]:
    return [side.name for side in sides if isinstance(side, Var)]


def value(expression: Expression, numbers: Numbers) -> Column:
    """The number of an arithmetic expression."""
    match expression:
        case Var(name=name):
            return numbers.get(name, fn.lit(None).cast(_STRUCT))
        case str():
            return constant(expression)
        case Call("+" | "-" as sign, (argument,)):
            # As 0 + x and 0 - x, which have the datatype of x: an integer is promoted to any other kind.
            zero = constant(f'"0"^^<{XSD}integer>')
            return _computed(sign, zero, value(argument, numbers))
        case Call(operator, (left, right)):
            return _computed(operator, value(left, numbers), value(right, numbers))
    raise AssertionError(expression)


def constant(term: Term) -> Column:
    """The number of a literal of the query."""
    kind, form = str(kind_of(term)), term[1 : term.rindex('"')]
    rank = _KINDS.index(kind)
    exact = fn.lit(form).cast(EXACT) if rank <= 1 else fn.lit(None)
    return number(fn.lit(rank), exact, fn.lit(form).cast("double"))


def _pair(one: Column, other: Column) -> Column:
    return fn.struct(one.alias("one"), other.alias("other"))


def _computed(operator: str, one: Column, other: Column) -> Column:
    def computed(pair: Column) -> Column:
        left, right = pair["one"], pair["other"]
        # SPARQL 1.1, 17.3: the quotient of two integers is a decimal, so a division has at least the kind 1.
        kind = fn.greatest(left["kind"], right["kind"], fn.lit(1 if operator == "/" else 0))
        exact = fn.when(kind <= 1, _exactly(operator, left["exact"], right["exact"]))
        there = left.isNotNull() & right.isNotNull()
        return fn.when(there, number(kind, exact, _really(operator, left["real"], right["real"])))

    return let(_pair(one, other), computed)


def _exactly(operator: str, left: Column, right: Column) -> Column:
    if operator == "/":
        # A decimal divided by zero is an error (F&O, FOAR0001), which is null here.
        return fn.when(right != 0, left / fitted(right, _DIVISOR))
    if operator == "*":
        return fitted(left, _FACTOR) * fitted(right, _FACTOR)
    return _ARITHMETIC[operator](left, right)


def _really(operator: str, left: Column, right: Column) -> Column:
    if operator != "/":
        return _ARITHMETIC[operator](left, right)
    # Reals divide by zero to INF or NaN (F&O, op:numeric-divide); Spark's result would be null.
    zero = fn.when((left == 0) | fn.isnan(left), float("nan")).otherwise(fn.signum(left) * float("inf"))
    return fn.when(right == 0, zero).otherwise(left / right)


def fitted(exact: Column, kind: str) -> Column:
    """A decimal with fewer digits; the job fails if that changes the number."""
    fails = fn.raise_error(fn.lit(f"{NOT_HERE} with decimals of so many digits: use micro-batches")).cast(kind)
    return fn.when(exact.isNull() | (exact.cast(kind).cast(EXACT) == exact), exact.cast(kind)).otherwise(fails)
