"""Some rows of some answers are lost, or sent too often."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb, log2

from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, description, scattered


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Rows lost, and rows repeated."""
    yield Slip(_lost, description("rows lost in {count}", "Some rows are lost: {listed}."), bits=_bits)
    again = description("rows repeated in {count}", "Some rows are sent too often: {listed}.")
    yield Slip(_repeated, again, bits=_bits)


def _bits(places: Sequence[ExplanationPlace]) -> float:
    """The bits to name the reports, and in each the number and choice of rows lost or repeated."""
    return scattered(places) + sum(map(_choice, places))


def _choice(place: ExplanationPlace) -> float:
    due = len(place.report.rows)
    got = sum(len(place.recorded.rows(at)) for at in range(place.j, place.j + place.move[1]))
    if got < due:
        return log2(due) + log2(comb(due, due - got))
    return log2(due + got) + (got - due) * log2(due)  # each surplus row is one of the due ones


def _lost(place: ExplanationPlace) -> Iterator[Move]:
    """The next answers, as far as they contain only rows of the report and not all of them."""
    left, after = Counter(place.report.rows), place.j
    if not left:
        return
    # Then a report of which all rows are lost has no answer at all.
    if place.recorded.by_row:
        yield 1, 0
    while place.recorded.named(place.report, after):
        rows = Counter(place.recorded.rows(after))
        if not rows <= left:
            return
        left, after = left - rows, after + 1
        if left:
            yield 1, after - place.j
        if not place.recorded.by_row:
            return


def _repeated(place: ExplanationPlace) -> Iterator[Move]:
    """The next answers, as far as they contain all rows of the report, no others, and some of them too often."""
    due, got, after = Counter(place.report.rows), Counter[object](), place.j
    while place.recorded.named(place.report, after):
        rows = place.recorded.rows(after)
        if not due.keys() >= set(rows) or not rows:
            return
        got, after = got + Counter(rows), after + 1
        if got != due and all(got[row] >= due[row] for row in due):
            yield 1, after - place.j
        if not place.recorded.by_row:
            return
