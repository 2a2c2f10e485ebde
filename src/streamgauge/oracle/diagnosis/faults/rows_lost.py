"""Some rows of some answers are lost, or sent more often than they should be."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb, log2

from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, scattered, telling


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Two slips, claimed below half of the reports."""
    yield Slip("rows lost", _lost, telling("rows lost in {count}", "Some rows are lost: {listed}."), bits=_bits)
    again = telling("rows repeated in {count}", "Some rows are sent too often: {listed}.")
    yield Slip("rows repeated", _repeated, again, bits=_bits)


def _bits(places: Sequence[ExplanationPlace]) -> float:
    """The bits that say at which reports how many rows, and which, are lost or repeated."""
    return scattered(places) + sum(map(_choice, places))


def _choice(place: ExplanationPlace) -> float:
    due = len(place.said.rows)
    got = sum(len(place.recorded.rows(at)) for at in range(place.j, place.j + place.move[1]))
    if got < due:
        return log2(due) + log2(comb(due, due - got))
    return log2(due + got) + (got - due) * log2(due)  # each surplus row is one of the due ones


def _lost(place: ExplanationPlace) -> Iterator[Move]:
    """The run of next answers that hold nothing but rows of the report, where some row is lost."""
    left, after = Counter(place.said.rows), place.j
    if not left:
        return
    if place.recorded.by_row:
        yield 1, 0
    while after < place.recorded.count and place.recorded.named(place.said, after):
        rows = Counter(place.recorded.rows(after))
        if not rows <= left:
            return
        left, after = left - rows, after + 1
        if left:
            yield 1, after - place.j
        if not place.recorded.by_row:
            return


def _repeated(place: ExplanationPlace) -> Iterator[Move]:
    """The run of next answers that hold all rows of the report, no others, and some more than once."""
    due, got, after = Counter(place.said.rows), Counter[object](), place.j
    while after < place.recorded.count and place.recorded.named(place.said, after):
        rows = place.recorded.rows(after)
        if not due.keys() >= set(rows) or not rows:
            return
        got, after = got + Counter(rows), after + 1
        if got != due and all(got[row] >= due[row] for row in due):
            yield 1, after - place.j
        if not place.recorded.by_row:
            return
