"""A report is sent twice, or repeats the answer of the one before it."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Rows, Seen, Slip, listed, same, telling


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Two slips."""
    yield Slip("sent twice", _twice, _tell_twice)
    sentence = "The answer of the report before is repeated instead of a new one: {listed}."
    yield Slip("stale", _stale, telling("{count} stale", sentence))


def _twice(place: ExplanationPlace) -> Iterator[Move]:
    """The report just said is said again."""
    if place.i > 0:
        after = place.recorded.take(place.told[place.i - 1], place.j)
        if after is not None:
            yield 0, after - place.j


def _stale(place: ExplanationPlace) -> Iterator[Move]:
    if place.i > 0 and place.i < len(place.told):
        before: Rows = place.told[place.i - 1].rows
        after = same(place, before)
        if after is not None:
            yield 1, after - place.j


def _tell_twice(places: Sequence[ExplanationPlace]) -> Part:
    return Part(f"{counted(len(places), 'report')} sent twice", f"Sent twice: {listed(places, -1)}.")
