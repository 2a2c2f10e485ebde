"""The relation-to-stream operators on bags (CQL), and what an empty answer does."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Counting, Semantics
from streamgauge.model.terms import Row

SIGN: Final = "±"
"""The last column of rows that come and go in one answer; no variable of SPARQL has this name."""
CAME: Final = '"+"'
WENT: Final = '"-"'


def streamed(
    evaluated: Iterable[tuple[DueReport, tuple[Row, ...]]], r2s: R2S, semantics: Semantics
) -> Iterator[tuple[DueReport, tuple[Row, ...]]]:
    """The answer sent at each evaluated instant; an empty answer only when the semantics notifies of it.

    Istream and Dstream are differences to the bag of the last evaluated instant, initially empty; where both are sent
    each row has one more column, its sign.
    """
    before: Counter[Row] = Counter()
    for due, solutions in evaluated:
        now = Counter(set(solutions) if semantics.answers is Counting.SET else solutions)
        rows = _rows(r2s, before, now)
        before = now
        if (rows or semantics.notify_empty) and told(due, semantics):
            yield due, rows


def told(due: DueReport, semantics: Semantics) -> bool:
    """Whether a report is at an instant of which somebody is told."""
    return semantics.since is None or due.instant >= semantics.since


def columns(variables: tuple[str, ...], r2s: R2S) -> tuple[str, ...]:
    """The columns of what is sent for a query of these variables."""
    return (*variables, SIGN) if r2s is R2S.CHANGES else variables


def _rows(r2s: R2S, before: Counter[Row], now: Counter[Row]) -> tuple[Row, ...]:
    match r2s:
        case R2S.RSTREAM:
            return tuple(now.elements())
        case R2S.ISTREAM:
            return tuple((now - before).elements())
        case R2S.DSTREAM:
            return tuple((before - now).elements())
        case R2S.CHANGES:
            return (*signed((now - before).elements(), CAME), *signed((before - now).elements(), WENT))


def signed(rows: Iterable[Row], sign: str) -> tuple[Row, ...]:
    """Rows with their sign."""
    return tuple((*row, sign) for row in rows)
