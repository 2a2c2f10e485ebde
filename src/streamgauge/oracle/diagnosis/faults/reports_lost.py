"""Reports are lost: at the head, at the tail, or in between."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, description, scattered


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Reports lost at the head, at the tail, and in between."""
    yield Slip(_head, _describe_head, half=False, bits=_together)
    yield Slip(_tail, _describe_tail, half=False, bits=_together)
    yield Slip(_between, description("{count} lost", "Lost: {listed}."))


def _together(places: Sequence[ExplanationPlace]) -> float:
    """The bits for the number of lost reports, which says where they are at the head or the tail."""
    return scattered(places[:1])


def _head(place: ExplanationPlace) -> Iterator[Move]:
    # Not all of them: that nothing was reported is a lost tail.
    if place.j == 0 and place.i < len(place.reports) - 1:
        yield 1, 0


def _tail(place: ExplanationPlace) -> Iterator[Move]:
    if place.j == place.recorded.count and (place.i > 0 or place.j == 0):
        yield 1, 0


def _between(_place: ExplanationPlace) -> Iterator[Move]:
    yield 1, 0


def _describe_head(places: Sequence[ExplanationPlace]) -> Part:
    text = counted(len(places), "report")
    return Part(
        f"{text} lost at the head",
        f"The first {text} of the run are lost." if len(places) > 1 else "The first report of the run is lost.",
    )


def _describe_tail(places: Sequence[ExplanationPlace]) -> Part:
    if places[0].i == 0:
        return Part("nothing reported", "No report was sent at all.")
    text = counted(len(places), "report")
    return Part(
        f"{text} lost at the tail",
        f"The last {text} of the run are lost."
        if len(places) > 1
        else "The last report of the run is lost: its window is never closed.",
    )
