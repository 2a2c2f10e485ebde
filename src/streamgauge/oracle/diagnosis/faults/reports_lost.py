"""Reports are lost: at the head, at the tail, or in between."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, scattered, telling


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Three slips."""
    yield Slip("lost head", _head, _tell_head, half=False, bits=_together)
    yield Slip("lost tail", _tail, _tell_tail, half=False, bits=_together)
    yield Slip("lost", _between, telling("{count} lost", "Lost: {listed}."))


def _together(places: Sequence[ExplanationPlace]) -> float:
    """The bits that say how many reports are lost."""
    return scattered(places[:1])


def _head(place: ExplanationPlace) -> Iterator[Move]:
    if place.j == 0 and place.i < len(place.told) - 1:
        yield 1, 0


def _tail(place: ExplanationPlace) -> Iterator[Move]:
    if place.j == place.recorded.count and (place.i > 0 or place.j == 0):
        yield 1, 0


def _between(_place: ExplanationPlace) -> Iterator[Move]:
    yield 1, 0


def _tell_head(places: Sequence[ExplanationPlace]) -> Part:
    text = counted(len(places), "report")
    return Part(
        f"{text} lost at the head",
        f"The first {text} of the run are lost." if len(places) > 1 else "The first report of the run is lost.",
    )


def _tell_tail(places: Sequence[ExplanationPlace]) -> Part:
    if places[0].i == 0:
        return Part("nothing reported", "No report was sent at all.")
    text = counted(len(places), "report")
    return Part(
        f"{text} lost at the tail",
        f"The last {text} of the run are lost."
        if len(places) > 1
        else "The last report of the run is lost: its window is never closed.",
    )
