"""Rows so near a bound of FILTER or HAVING that either answer is right (SEMANTICS, terms and numbers).

A comparison of a computed number is loosened and tightened by the tolerance of its datatype. What the loose and the
tight query do not agree on is undecided. Queries without such a comparison are left alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamgauge.bench.expected.reports import Expect
from streamgauge.bench.judging.compare import TOLERANCE, computed_variables
from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import XSD, Row
from streamgauge.query.printer import sparql
from streamgauge.query.rebuild import parts, with_pattern

_COMPARISONS = frozenset({"=", "!=", "<", ">", "<=", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "ABS", "CEIL", "FLOOR", "ROUND"})
_LOOSE, _TIGHT = True, False


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is undecided about one expected report: ``rows`` is a bag; ``silent`` when it may not be due at all."""

    rows: tuple[Row, ...] = ()
    silent: bool = False


CERTAIN = Doubt()


def bounded(form: a.QueryForm) -> tuple[a.QueryForm, a.QueryForm] | None:
    """The query with its bounds on computed numbers loosened, and tightened; ``None`` when it has no such bound."""
    loose = with_pattern(form, _pattern(form.pattern, _LOOSE))
    return None if loose == form else (loose, with_pattern(form, _pattern(form.pattern, _TIGHT)))


def _pattern(pattern: a.Pattern, loose: bool) -> a.Pattern:
    match pattern:
        case a.Minus(left=left, right=right):
            return a.Minus(_pattern(left, loose), _pattern(right, not loose))
        case a.Filter(condition=condition, pattern=inner):
            return a.Filter(_condition(condition, computed_variables(inner), loose), _pattern(inner, loose))
        case a.LeftJoin(left=left, right=right, condition=a.Call() | a.Exists() as condition):
            bound = computed_variables(left) | computed_variables(right)
            return a.LeftJoin(_pattern(left, loose), _pattern(right, loose), _condition(condition, bound, loose))
        case _:
            return parts(pattern, lambda inner: _pattern(inner, loose), lambda expression: expression)


def _condition(condition: a.Expression, bound: frozenset[a.Var], loose: bool) -> a.Expression:
    match condition:
        case a.Call(operator="&&" | "||" as operator, arguments=arguments):
            return a.Call(operator, tuple(_condition(one, bound, loose) for one in arguments))
        case a.Call(operator="!", arguments=(inner,)):
            return a.Call("!", (_condition(inner, bound, not loose),))
        case a.Call(operator="IN", arguments=(left, *others)) if _is_computed(left, bound):
            either: a.Expression = _compared("=", left, others[0], loose) if others else condition
            for other in others[1:]:
                either = a.Call("||", (either, _compared("=", left, other, loose)))
            return either
        case a.Call(operator=operator, arguments=(left, right)) if operator in _COMPARISONS:
            near = _is_computed(left, bound) or _is_computed(right, bound)
            return _compared(operator, left, right, loose) if near else condition
        case a.Exists(pattern=pattern):
            return a.Exists(_pattern(pattern, loose))
        case _:
            return condition


def _is_computed(expression: a.Expression, bound: frozenset[a.Var]) -> bool:
    if isinstance(expression, a.Call):
        return expression.operator in _ARITHMETIC
    return isinstance(expression, a.Var) and expression in bound


def _compared(operator: str, left: a.Expression, right: a.Expression, loose: bool) -> a.Expression:
    comparison = a.Call(operator, (left, right))
    near = _near(left, right)
    if loose:
        return a.Call("||", (comparison, near))
    return a.Call("&&", (comparison, a.Call("!", (near,))))


def _near(left: a.Expression, right: a.Expression) -> a.Expression:
    """Whether two numbers are within the looser datatype's tolerance; false for what is no xsd:float or xsd:double."""
    size, other = a.Call("ABS", (left,)), a.Call("ABS", (right,))
    greater = a.Call("IF", (a.Call(">", (size, other)), size, other))
    within = a.Call(
        "<=", (a.Call("ABS", (a.Call("-", (left, right)),)), a.Call("*", (_tolerance(left, right), greater)))
    )
    inexact = a.Call("||", (_typed(left, right, "float"), _typed(left, right, "double")))
    return a.Call("COALESCE", (a.Call("&&", (inexact, within)), f'"false"^^<{XSD}boolean>'))


def _tolerance(left: a.Expression, right: a.Expression) -> a.Expression:
    loose, tight = (f'"{TOLERANCE[XSD + name]:f}"^^<{XSD}double>' for name in ("float", "double"))
    return a.Call("IF", (_typed(left, right, "float"), loose, tight))


def _typed(left: a.Expression, right: a.Expression, name: str) -> a.Expression:
    one, other = (a.Call("=", (a.Call("DATATYPE", (side,)), f"<{XSD}{name}>")) for side in (left, right))
    return a.Call("||", (one, other))


def doubts(
    expect: Expect, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> tuple[tuple[ExpectedReport, ...], list[Doubt]]:
    """The expected reports without undecided rows, and beside each what is undecided about it; times in ms."""
    plain = expect(query, semantics, advanced_to, t0)
    forms = bounded(query.form)
    if forms is None:
        return plain, [CERTAIN] * len(plain)
    others = [expect(replace(query, form=form, sparql=sparql(form)), semantics, advanced_to, t0) for form in forms]
    if all(other == plain for other in others):
        return plain, [CERTAIN] * len(plain)
    return _agreed([plain, *others])


def _agreed(versions: Sequence[Sequence[ExpectedReport]]) -> tuple[tuple[ExpectedReport, ...], list[Doubt]]:
    found: list[tuple[ExpectedReport, Doubt]] = []
    bags: list[dict[DueReport, ExpectedReport]] = [{report.due: report for report in one} for one in versions]
    every = {report.due: report for one in reversed(versions) for report in one}
    for due in sorted(every, key=lambda due: (due.instant, due.seen)):
        counted = [Counter(bag[due].rows) if due in bag else Counter[Row]() for bag in bags]
        certain, possible = counted[0].copy(), counted[0].copy()
        for other in counted[1:]:
            certain &= other
            possible |= other
        rest = possible - certain
        doubt = Doubt(tuple(rest.elements()), any(due not in bag for bag in bags))
        found.append((replace(every[due], rows=tuple(certain.elements())), doubt))
    return tuple(report for report, _ in found), [doubt for _, doubt in found]
