"""The relation-to-stream operators on bags (CQL), and what an empty answer does."""

from collections import Counter
from collections.abc import Iterable, Iterator

from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Counting, Semantics
from streamgauge.model.terms import Row


def streamed(
    evaluated: Iterable[tuple[DueReport, tuple[Row, ...]]], r2s: R2S, semantics: Semantics
) -> Iterator[tuple[DueReport, tuple[Row, ...]]]:
    """What is sent at each evaluated instant; an empty answer only when the semantics notifies of it.

    Istream and Dstream are differences to the bag of the last evaluated instant, initially empty.
    """
    before: Counter[Row] = Counter()
    for due, solutions in evaluated:
        now = Counter(set(solutions) if semantics.answers is Counting.SET else solutions)
        rows = _rows(r2s, before, now)
        before = now
        if rows or semantics.notify_empty:
            yield due, rows


def _rows(r2s: R2S, before: Counter[Row], now: Counter[Row]) -> tuple[Row, ...]:
    match r2s:
        case R2S.RSTREAM:
            return tuple(now.elements())
        case R2S.ISTREAM:
            return tuple((now - before).elements())
        case R2S.DSTREAM:
            return tuple((before - now).elements())
