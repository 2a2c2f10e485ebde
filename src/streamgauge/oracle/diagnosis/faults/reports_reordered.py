"""Two neighbouring reports are swapped, their answers come as one, or two reports have each other's rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log2
from typing import Final

from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, same, scattered, telling

MAX_APART: Final = 200
"""How many reports apart two may be that have each other's rows."""


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Three slips."""
    yield Slip("swapped", _swapped, telling("{count} swapped", "Swapped with the next one: {listed}."))
    sentence = "Two reports come as one answer, which holds the rows of both: {listed} with the next one."
    yield Slip("merged", _merged, telling("{count} merged", sentence))
    sentence = "Two reports have each other's rows: {listed} with a later one."
    yield Slip("exchanged", _exchanged, telling("rows of {count} exchanged", sentence), bits=_exchange_bits)


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


def _exchanged(place: ExplanationPlace) -> Iterator[Move]:
    """The report here has the rows of a later one, which has the rows of this; those between are as said."""
    sayings, i = place.told, place.i
    if same(place, place.said.rows) is not None:
        return
    for other in range(i + 1, min(len(sayings), i + MAX_APART)):
        at = same(place, sayings[other].rows)
        if at is None:
            continue
        for between in sayings[i + 1 : other]:
            at = None if at is None else place.recorded.take(between, at)
        after = None if at is None else place.recorded.take(replace(sayings[other], rows=place.said.rows), at)
        if after is not None:
            yield other + 1 - i, after - place.j


def _exchange_bits(places: Sequence[ExplanationPlace]) -> float:
    """Which report, and with which later one."""
    return scattered(places) + sum(log2(max(2, min(MAX_APART, len(place.told)))) for place in places)
