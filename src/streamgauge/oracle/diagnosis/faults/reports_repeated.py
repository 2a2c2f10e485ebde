"""A report is sent twice, or repeats the answer of the one before it."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Rows, Seen, Slip, description, listed, same


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Reports sent twice, and stale answers."""
    yield Slip(_twice, _describe_twice)
    sentence = "The answer of the report before is repeated instead of a new one: {listed}."
    yield Slip(_stale, description("{count} stale", sentence))


def _twice(place: ExplanationPlace) -> Iterator[Move]:
    """The report before is sent again."""
    if place.i > 0:
        after = place.recorded.take(place.reports[place.i - 1], place.j)
        if after is not None:
            yield 0, after - place.j


def _stale(place: ExplanationPlace) -> Iterator[Move]:
    if place.i > 0 and place.i < len(place.reports):
        before: Rows = place.reports[place.i - 1].rows
        after = same(place, before)
        if after is not None:
            yield 1, after - place.j


def _describe_twice(places: Sequence[ExplanationPlace]) -> Part:
    return Part(f"{counted(len(places), 'report')} sent twice", f"Sent twice: {listed(places, -1)}.")
