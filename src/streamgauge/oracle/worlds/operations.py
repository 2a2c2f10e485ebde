"""SPARQL's operations over open terms: numbers as intervals, comparisons as decisions, terms decided when read.

In a restated query (``restatement``) arithmetic, comparisons, and functions of possibly open terms are replaced by
extension functions that use the current ``Openings``.

    FILTER(?x - ?y > 0.0)       FILTER(<...compare>(">", <...number>("-", ?x, ?y), 0.0))
    FILTER(STR(?sample) = "a")  FILTER(<...compare>("=", STR(<...term>(?sample)), "a"))
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor
from operator import add, mul, sub
from typing import Any, Final

from streamgauge.model import algebra as a
from streamgauge.model.terms import XSD, Term, is_literal, lexical
from streamgauge.oracle.worlds import intervals
from streamgauge.oracle.worlds.conditions import NumberSpan, OpenChoice, OpenNumber, chosen
from streamgauge.oracle.worlds.intervals import DIGITS, HOLDS, Interval, IntervalSum, OpenError, inexact, read, signs
from streamgauge.oracle.worlds.openings import (
    CURRENT,
    LIMITED,
    Alternatives,
    OpenTerm,
    is_supported,
)
from streamgauge.oracle.worlds.texts import Concatenation, TagCase, number_texts
from streamgauge.sparql import aggregates, expression
from streamgauge.sparql.comparison import ordered
from streamgauge.sparql.functions import COMPARISONS, boolean, effective
from streamgauge.sparql.values import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    FALSE,
    FLOAT,
    ILL,
    INTEGER,
    MOMENTS,
    MONTHS,
    OTHER,
    SECONDS,
    STRING,
    TAGGED,
    TRUE,
    Value,
    typed,
    written,
)
from streamgauge.sparql.values import read as value_of

BINARY: Final = frozenset("+-*/")
CASTS: Final = {f"<{XSD}{name}>": kind for kind, name in enumerate(("integer", "decimal", "float", "double"))}
_STEPS: Final = frozenset({"CEIL", "FLOOR", "ROUND", "<integer>"})
_NAMESPACE: Final = "urn:streamgauge:open-function:"
_RING: Final = {"+": add, "-": sub, "*": mul}
_SMALL: Final = 1 << 12
"""Integers below it have products of at most 24 bits, which xsd:float represents."""
_MAX_STEPS: Final = 16
"""Maximum number of integers that an inexact number may round to; beyond it the verdict is unknown."""


# Numbers
def _number(operator: Value, *operands: Value) -> Value | None:
    """An operation on numbers; operands that are not numbers are left to SPARQL's own functions."""
    name, openings = str(operator.value), CURRENT.get()
    terms = _decided(operands)
    if terms is None:
        return None
    if name in _RING and any(map(_is_limited, terms)) and openings.is_lenient(LIMITED):
        return _ring(name, terms)
    exact = _exactly(name, operands)
    if exact is not None:
        return exact
    numbers = [openings.interval(term) for term in terms]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        plain = expression.evaluate(a.Call(name, terms), {})
        return None if plain is None else value_of(plain)
    if _is_known(name, terms, known):
        return value_of(openings.number(intervals.point(known[0].kind, 0 if name == "-" else 1)))
    if _steps(name) in _STEPS and (number := openings.open_number(terms[0])) is not None:
        return _stepped(_steps(name), number, known[0])
    # A neutral operation returns its operand itself, which keeps its identity: x + 0 and x agree in every comparison.
    result = _operated(name, known)
    if result is None:
        return None
    neutral = next((term for term, number in zip(terms, known, strict=True) if result is number), None)
    if neutral is not None:
        return value_of(neutral)
    # Named by operation and operands: an operation gives the same result wherever it has the same operands.
    return value_of(openings.number(result, ("result", name, *zip(terms, known, strict=True))))


def _exactly(name: str, operands: Sequence[Value]) -> Value | None:
    """A fast path: the exact sum, difference or product of small integers of one datatype; else ``None``."""
    if name not in _RING or len(operands) < 2 or operands[0].kind != operands[1].kind:
        return None
    kind, numbers = operands[0].kind, [operand.value for operand in operands]
    if kind not in (INTEGER, FLOAT, DOUBLE) or not all(
        abs(number) < _SMALL and number == int(number) for number in numbers
    ):
        return None
    value = _RING[name](*numbers)
    # Zero is left to the intervals, which have no -0.
    return Value(kind, value) if value else None


def _is_known(name: str, terms: Sequence[Term], numbers: Sequence[Interval]) -> bool:
    """Whether the operation is x - x, or x / x with x never 0, of one open number: exactly 0, or 1."""
    first, *others = terms
    if others != [first] or CURRENT.get().open_number(first) is None:
        return False
    # A worked example: x is somewhere from 1 to 2. As intervals x / x would be from 0.5 to 2, and it is 1 whatever x
    # is.
    return name == "-" or (name == "/" and not numbers[0].low <= 0 <= numbers[0].high)


def _decided(operands: Sequence[Value]) -> tuple[Term, ...] | None:
    """The operands as decided terms; ``None`` if one is an error."""
    openings = CURRENT.get()
    terms = [openings.decided(written(operand)) for operand in operands]
    return None if None in terms else tuple(term for term in terms if term is not None)


def _steps(name: str) -> str:
    return "<integer>" if CASTS.get(name) == INTEGER else name


def _operated(name: str, numbers: Sequence[Interval]) -> Interval | None:
    if name in CASTS:
        return intervals.cast(CASTS[name], numbers[0])
    if len(numbers) == 1:
        return intervals.unary(name, numbers[0])
    return intervals.arithmetic(name, *numbers)


def _stepped(name: str, number: OpenNumber, known: Interval) -> Value | None:
    """An open number rounded to an integer: which one is a decision, and narrows the number's span."""
    # A worked example: an open number from 2.4 to 3.2 is rounded. Either the result is 2 and the number is below 2.5,
    # or it is 3 and the number is at least 2.5.
    lowest, highest = (int(_step(name, end)) for end in (known.low, known.high))
    # Each integer would be a case of its own.
    if highest - lowest > _MAX_STEPS:
        raise inexact("an inexact number is rounded to one of many whole numbers")
    kind = INTEGER if name == "<integer>" else known.kind

    def alternatives() -> Alternatives:
        spans = [(whole, _rounded_to(name, whole).within(number.span)) for whole in range(lowest, highest + 1)]
        return [(whole, {number: span}) for whole, span in spans if not span.empty]

    openings = CURRENT.get()
    return value_of(openings.number(intervals.point(kind, openings.choose(alternatives))))


def _step(name: str, value: Fraction) -> int:
    match name:
        case "CEIL":
            return ceil(value)
        case "ROUND":
            return floor(value + Fraction(1, 2))
        case _:
            return int(value) if name == "<integer>" else floor(value)


def _rounded_to(name: str, whole: int) -> NumberSpan:
    """The numbers that are rounded to this integer."""
    # Worked examples: ROUND gives 3 from 2.5 up to, without, 3.5; CEIL gives 3 above 2 up to 3; FLOOR gives 3 from 3
    # up to, without, 4. The cast to an integer cuts towards 0: it gives 0 between -1 and 1, and -3 above -4 up to -3.
    at, half = Fraction(whole), Fraction(1, 2)
    if name == "ROUND":
        return NumberSpan(at - half, at + half, high_open=True)
    if name == "CEIL" or (name == "<integer>" and whole < 0):
        return NumberSpan(at - 1, at, low_open=True)
    return (
        NumberSpan(at - 1, at + 1, True, True)
        if name == "<integer>" and whole == 0
        else NumberSpan(at, at + 1, high_open=True)
    )


def _is_limited(term: Term) -> bool:
    """Whether a number has more digits than implementations need to support."""
    if term.rfind('"') <= DIGITS + 1:
        return False
    number = read(term)
    return number is not None and number.exact and not is_supported(number.kind, term)


def _ring(name: str, terms: Sequence[Term]) -> Value:
    """A sum, difference or product of integers beyond the supported digits; OpenError for other numbers."""
    values = [number.value for term in terms if (number := read(term)) is not None and number.kind == INTEGER]
    if len(values) < len(terms):
        raise OpenError(f"{terms[0]} is {LIMITED}")
    return value_of(CURRENT.get().beyond(int(_RING[name](*values) if len(values) == 2 else _RING[name](0, *values))))


# Comparisons
def _compare(operator: Value, x: Value, y: Value) -> Value | None:
    name, openings = str(operator.value), CURRENT.get()
    decided = _decided((x, y))
    if decided is None:
        return None
    left, right = decided
    x, y = value_of(left), value_of(right)
    limited = _is_limited(left) or _is_limited(right)
    if limited and is_literal(left) and is_literal(right) and openings.is_lenient(LIMITED):
        return boolean(
            _choose(openings.named(("limited", name, left, right), lambda: _named((True, False, None), LIMITED)))
        )
    if openings.is_open(left) or openings.is_open(right):
        numbers = openings.interval(left), openings.interval(right)
        if numbers[0] is not None and numbers[1] is not None:
            return _compared(name, left, right, numbers[0], numbers[1])
    if name in "=!=" and {x.kind, y.kind} in ({TAGGED, OTHER}, {TAGGED, ILL}):
        return _extended_equality(name, left, right)
    result = COMPARISONS[name](_plain(x), _plain(y))
    same = left == right and name in "=!="
    reason = (
        "" if result is None or same or not (is_literal(left) and is_literal(right)) else beyond_table(x.kind, y.kind)
    )
    return None if reason and _choose(openings.named(reason, lambda: _named((False, True), reason))) else result


def beyond_table(one: int, other: int) -> str:
    """Why a comparison of literals of two kinds may be an error, though their values are known; empty if 17.3 has it.

    RDFterm-equal of SPARQL 1.1 (17.4.1.7) is an error for different literals. SPARQL 1.2 and many engines compare.
    """
    if max(one, other) <= DOUBLE or {one, other} <= _DATE_TIMES or (one == other and one in (STRING, BOOLEAN)):
        return ""
    return DATES if one == other and one in _TIMES else _APART


_DATE_TIMES: Final = frozenset((MOMENTS["dateTime"], MOMENTS["dateTimeStamp"]))
_TIMES: Final = frozenset((DURATION, MONTHS, SECONDS, *MOMENTS.values())) - _DATE_TIMES
_APART: Final = "= of literals of different kinds: not equal, or an error (SPARQL 1.1, 17.4.1.7)"
DATES: Final = "a comparison of dates, times or durations: XPath's, or an error (SPARQL 1.1, 17.3)"


def _plain(value: Value) -> Value:
    """An arbitrary number of an open number's datatype, for functions that depend on the datatype only."""
    number = CURRENT.get().open_number(value.term)
    return value if number is None else value_of(f'"1"^^{list(CASTS)[number.interval.kind]}')


def _compared(name: str, left: Term, right: Term, one: Interval, other: Interval) -> Value:
    holds = HOLDS[name]
    outcomes = set(map(holds, signs(one, other)))
    return TRUE if (outcomes.pop() if len(outcomes) == 1 else CURRENT.get().compared(holds, left, right)) else FALSE


def _extended_equality(name: str, left: Term, right: Term) -> Value | None:
    """``=`` or ``!=`` of a language-tagged string and a literal without a known value: not equal, or an error."""
    pair = frozenset((left, right))
    reason = "= of a language-tagged string and a literal without a known value (SPARQL 17.3.1)"
    equal = _choose(CURRENT.get().named(("17.3.1", pair), lambda: _named((False, None), reason)))
    return None if equal is None else boolean(name == "!=")


def _named(options: Sequence[Any], reason: str) -> OpenChoice:
    return OpenChoice(options, reason, shared=True)


def _choose(choice: OpenChoice) -> Any:
    """A decision among the options of a choice."""
    return CURRENT.get().choose(lambda: [(option, chosen(choice, option)) for option in choice.options])


def _truth(value: Value) -> Value | None:
    """The effective boolean value of a possibly open term."""
    openings = CURRENT.get()
    term = written(value)
    number = openings.open_number(term)
    if number is not None:
        return _compared("!=", term, typed("0", "integer"), openings.interval(term) or number.interval, _ZERO)
    if value.kind == TAGGED:
        reason = "the truth of language-tagged strings: their length (SPARQL 1.1, 17.2.2), or an error (SPARQL 1.2)"
        known = _choose(openings.named("17.2.2", lambda: _named((True, False), reason)))
        return boolean(bool(lexical(term)) if known else None)
    return boolean(effective(value))


_ZERO: Final = intervals.point(INTEGER, 0)


# Terms
def _term(value: Value) -> Value | None:
    """The decided term of an open one; open numbers stay open."""
    decided = CURRENT.get().decided(written(value))
    return None if decided is None else value_of(decided)


def _text(value: Value) -> Value | None:
    """A computed number as a term, whose lexical form is a decision."""
    openings = CURRENT.get()
    decided = _term(value)
    if decided is None:
        return None
    term = written(decided)
    if openings.open_number(term) is not None:
        raise inexact("an inexact number is used as a term")
    if decided.kind > DOUBLE or term != written(Value(decided.kind, decided.value)):
        return decided
    texts = number_texts(decided.kind, decided.value)
    if len(texts) == 1:
        return decided
    close = term[term.rindex('"') :]
    reason = "the text of a computed number (XML Schema 2, 3.3)"
    text = _choose(openings.named(("text", term), lambda: _named(texts, reason)))
    return value_of(f'"{text}{close}')


def _kind(value: Value) -> Value | None:
    """The decided term, or any number of an open number's datatype, for functions of the kind only."""
    decided = _term(value)
    return None if decided is None else _plain(decided)


def _lang(value: Value) -> Value | None:
    """LANG: the tag, whose case is open."""
    term = written(value)
    if value.kind != TAGGED:
        return Value(STRING, "") if is_literal(term) else None
    tag, openings = term[term.rindex("@") + 1 :].partition("--")[0], CURRENT.get()
    return value_of(openings.named(("tag", tag), lambda: openings.term(TagCase(tag))))


def _present(value: Value) -> Value | None:
    """The value itself, or one option of an open term that may be an error."""
    choice = CURRENT.get().open_term(value.term)
    return _term(value) if choice is not None and choice.may_fail else value


# Set functions
def _summed(finish: Callable[[IntervalSum], Interval], terms: Sequence[Term | None], _: str) -> Term | None:
    """SUM or AVG as an interval; an error unless all terms are numbers."""
    openings = CURRENT.get()
    numbers: Counter[Interval] = Counter()
    for term, times in Counter(terms).items():
        number = None if term is None else openings.interval(term)
        if number is None:
            return None
        numbers[number] += times
    return openings.number(finish(IntervalSum(numbers)))


def _added(terms: Sequence[Term | None], separator: str) -> Term | None:
    openings = CURRENT.get()
    if any(term is not None and _is_limited(term) for term in terms) and openings.is_lenient(LIMITED):
        values = [read(term) for term in terms if term is not None]
        known = [number.value for number in values if number is not None and number.kind == INTEGER]
        if len(known) == len(terms):
            return openings.beyond(int(sum(known)))
    return _summed(lambda numbers: numbers.total, terms, separator)


def _extreme(least: bool, terms: Sequence[Term | None], separator: str) -> Term | None:
    """MIN or MAX: any term that may be first in ORDER BY, ascending or descending (18.5.1.5, 18.5.1.6).

    An error comes first in ascending order; in descending order it comes last, or the aggregate is an error.
    """
    openings = CURRENT.get()
    if None in terms:
        rest = [term for term in terms if term is not None]
        if not rest or (least and not openings.is_lenient(_LEFT_OUT)):
            return None
        reason = _LEFT_OUT if least else "MAX over errors or unbound values (SPARQL 15.1, 18.5.1.6)"
        return None if _choose(OpenChoice((False, True), reason)) else _extreme(least, rest, separator)
    if not terms:
        return None
    distinct = [term for term in dict.fromkeys(terms) if term is not None]
    if not any(map(openings.is_open, distinct)):
        return _first(distinct, least)
    if any(openings.interval(term) is None for term in distinct):
        raise inexact("MIN or MAX of inexact numbers among other terms")
    sign = -1 if least else 1
    best = distinct[0]
    for term in distinct[1:]:
        if _is_before(term, best, sign):
            best = term
    return best


def _is_before(term: Term, best: Term, sign: int) -> bool:
    openings = CURRENT.get()
    one, other = openings.interval(term), openings.interval(best)
    assert one is not None
    assert other is not None
    return _compared("<" if sign < 0 else ">", term, best, one, other) is TRUE


def _first(terms: Sequence[Term], least: bool) -> Term:
    """The least or greatest of stored terms, open if SPARQL does not order the candidates."""
    candidates = _candidates(terms, least)
    if len(candidates) == 1:
        return candidates[0]
    reason = f"{'MIN' if least else 'MAX'} of terms in no order (SPARQL 15.1, 18.5.1.5)"
    return CURRENT.get().term(OpenTerm(candidates, reason))


def _candidates(terms: Sequence[Term], least: bool) -> list[Term]:
    """The terms that no other one has to precede (or follow, for MAX)."""
    before = -1 if least else 1
    candidates = list(terms[:1])
    for term in terms[1:]:
        if not any(ordered(other, term) == before for other in candidates):
            candidates = [other for other in candidates if ordered(term, other) != before]
            candidates.append(term)
    # SPARQL's order is not transitive across unordered terms, so a candidate may have to follow one that was dropped.
    return [term for term in candidates if not any(ordered(other, term) == before for other in terms)]


_LEFT_OUT: Final = (
    "MIN over errors or unbound values is an error by SPARQL 15.1 and 18.5.1.5, and several engines leave them out"
)
_CONCATENATED: Final = (
    "GROUP_CONCAT over terms that are not strings is an error by SPARQL 18.5.1.7, and several engines take their STR"
)


def _sampled(terms: Sequence[Term | None], _: str) -> Term | None:
    """SAMPLE: any value of a group, or an error if the group has one (18.5.1.8)."""
    values = sorted(dict.fromkeys(terms), key=lambda term: term is None)
    if len(values) < 2:
        return next(iter(values), None)
    return CURRENT.get().term(OpenTerm(values, "the value of SAMPLE (SPARQL 18.5.1.8)"))


def _joined(terms: Sequence[Term | None], separator: str) -> Term | None:
    """GROUP_CONCAT in any order (18.5.1.7); under leniency also STR of other literals and IRIs."""
    openings = CURRENT.get()
    if any(term is None for term in terms):
        return None
    values = [value_of(term) for term in terms if term is not None]
    if all(value.kind in (STRING, TAGGED) for value in values):
        strings = [value.value if value.kind == STRING else value.value[0] for value in values]
    elif openings.is_lenient(_CONCATENATED):
        texts = [expression.evaluate(a.Call("STR", (term,)), {}) for term in terms if term is not None]
        strings = [value_of(text).value for text in texts if text is not None]
        if len(strings) < len(texts):
            return None
    else:
        return None
    concatenation = Concatenation(strings, separator)
    if len(set(strings)) < 2:
        return aggregates.concatenation([written(Value(STRING, text)) for text in strings], separator)
    return openings.term(concatenation)


def extension(name: str) -> str:
    """The IRI of an extension function or aggregate of this module."""
    return f"<{_NAMESPACE}{name}>"


def _register() -> None:
    functions: dict[str, Callable[..., Value | None]] = {
        "number": _number, "compare": _compare, "truth": _truth, "term": _term, "text": _text, "kind": _kind,
        "lang": _lang, "present": _present,
    }  # fmt: skip
    expression.EXTENSIONS.update({extension(name): function for name, function in functions.items()})
    aggregates.EXTENSIONS.update(
        {
            extension("SUM"): _added,
            extension("AVG"): partial(_summed, lambda numbers: numbers.average),
            extension("MIN"): partial(_extreme, True),
            extension("MAX"): partial(_extreme, False),
            extension("SAMPLE"): _sampled,
            extension("GROUP_CONCAT"): _joined,
        }
    )


_register()
