"""Two neighbouring reports are swapped or sent as one answer, or two reports have each other's rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log2
from typing import Final

from streamgauge.oracle.diagnosis.models import ExplanationPlace, Move, Seen, Slip, description, same, scattered

MAX_APART: Final = 200
"""The greatest distance, in reports, of two that have each other's rows."""


def proposals(_seen: Seen) -> Iterator[Slip]:
    """Reports swapped, merged, and with exchanged rows."""
    yield Slip(_swapped, description("{count} swapped", "Swapped with the next one: {listed}."))
    sentence = "Two reports come as one answer, which holds the rows of both: {listed} with the next one."
    yield Slip(_merged, description("{count} merged", sentence))
    sentence = "Two reports have each other's rows: {listed} with a later one."
    yield Slip(_exchanged, description("rows of {count} exchanged", sentence), bits=_exchange_bits)


def _swapped(place: ExplanationPlace) -> Iterator[Move]:
    if place.i + 1 < len(place.reports):
        middle = place.recorded.take(place.reports[place.i + 1], place.j)
        after = None if middle is None else place.recorded.take(place.report, middle)
        if after is not None:
            yield 2, after - place.j


def _merged(place: ExplanationPlace) -> Iterator[Move]:
    if place.i + 1 < len(place.reports):
        after = same(place, place.report.rows + place.reports[place.i + 1].rows)
        if after is not None:
            yield 2, after - place.j


def _exchanged(place: ExplanationPlace) -> Iterator[Move]:
    """The report has the rows of a later one and vice versa; the reports in between are as simulated."""
    reports, i = place.reports, place.i
    if same(place, place.report.rows) is not None:
        return
    for other in range(i + 1, min(len(reports), i + MAX_APART)):
        at = same(place, reports[other].rows)
        if at is None:
            continue
        for between in reports[i + 1 : other]:
            at = None if at is None else place.recorded.take(between, at)
        after = None if at is None else place.recorded.take(replace(reports[other], rows=place.report.rows), at)
        if after is not None:
            yield other + 1 - i, after - place.j


def _exchange_bits(places: Sequence[ExplanationPlace]) -> float:
    """The bits for the report and for the later one."""
    return scattered(places) + sum(log2(max(2, min(MAX_APART, len(place.reports)))) for place in places)
