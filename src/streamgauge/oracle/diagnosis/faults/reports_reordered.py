"""Two neighbouring reports are swapped, or their answers come as one."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, listed, same


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Two slips."""
    yield Slip("swapped", _swapped, _tell_swapped)
    yield Slip("merged", _merged, _tell_merged)


def _swapped(place: ExplanationPlace) -> Iterator[Move]:
    if place.i + 1 < len(place.told):
        middle = place.recorded.take(place.told[place.i + 1], place.j)
        after = None if middle is None else place.recorded.take(place.said, middle)
        if after is not None:
            yield 2, after - place.j


def _merged(place: ExplanationPlace) -> Iterator[Move]:
    if place.i + 1 < len(place.told):
        after = same(place, place.said.rows + place.told[place.i + 1].rows)
        if after is not None:
            yield 2, after - place.j


def _tell_swapped(places: Sequence[ExplanationPlace]) -> Part:
    return Part(f"{counted(len(places), 'report')} swapped", f"Swapped with the next one: {listed(places)}.")


def _tell_merged(places: Sequence[ExplanationPlace]) -> Part:
    sentence = f"Two reports come as one answer, which holds the rows of both: {listed(places)} with the next one."
    return Part(f"{counted(len(places), 'report')} merged", sentence)
