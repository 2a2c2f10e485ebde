"""Computed numbers are rounded or truncated."""

from collections.abc import Iterator
from decimal import MAX_PREC, ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import partial

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.phrases import counted
from streamgauge.model.terms import Term, datatype
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Rows, Seen
from streamgauge.oracle.worlds.intervals import finite
from streamgauge.oracle.worlds.restatement import computed_columns

MAX_DIGITS = 6
"""Digits after the point up to which recorded numbers look rounded."""
# The default context raises InvalidOperation for results of more than 28 digits.
_EXACT = Context(prec=MAX_PREC)
_WAYS = (("rounded", ROUND_HALF_UP), ("rounded half to even", ROUND_HALF_EVEN), ("cut off", ROUND_DOWN))


def proposals(seen: Seen) -> Iterator[Fault]:
    """Numbers rounded or truncated to as many digits after the point as the recorded ones have."""
    computed = computed_columns(seen.case.query.form)
    numbers = [finite(row[at]) for row in seen.all_rows() for at in computed if at < len(row)]
    digits = max((_digits(value) for value in numbers if value is not None), default=None)
    if digits is None or digits > MAX_DIGITS:
        return
    for how, rounding in _WAYS:
        precision = f"{how} to {counted(digits, 'digit')}"
        part = Part(f"numbers {precision}", f"Computed numbers are {precision} after the point.")
        yield Fault(part, partial(_round, digits=digits, rounding=rounding, computed=computed))


def _digits(value: Decimal) -> int:
    exponent = value.normalize(_EXACT).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _round(case: Case, digits: int, rounding: str, computed: frozenset[int]) -> Case:
    canonical, step = Canonical(), Decimal(1).scaleb(-digits)

    def rounded(term: Term | None) -> Term | None:
        value = finite(term)
        if term is None or value is None:
            return term
        text = f'"{value.quantize(step, rounding=rounding, context=_EXACT)}"^^<{datatype(term)}>'
        return canonical.term(parse_term(text))

    def rule(rows: Rows) -> Rows:
        return tuple(tuple(rounded(term) if at in computed else term for at, term in enumerate(row)) for row in rows)

    return case.answering(rule)
