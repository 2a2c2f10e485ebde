"""Two neighbouring reports are swapped, or their answers come as one."""

from collections.abc import Iterator

from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, same, telling


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Two slips."""
    yield Slip("swapped", _swapped, telling("{count} swapped", "Swapped with the next one: {listed}."))
    sentence = "Two reports come as one answer, which holds the rows of both: {listed} with the next one."
    yield Slip("merged", _merged, telling("{count} merged", sentence))


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
