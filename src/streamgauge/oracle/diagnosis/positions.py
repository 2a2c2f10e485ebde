"""Positions of reports, told to people; and what slips share."""

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.oracle.diagnosis.models import ExplanationPlace, Rows

LISTED = 5


def ordinal(number: int) -> str:
    """A number as a place in a row: ``2nd``, ``11th``, ``23rd``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 // 10 != 1 else "th"
    return f"{number}{ending}"


def listed(places: Sequence[ExplanationPlace], offset: int = 0) -> str:
    """The reports at some places, by their instants."""
    instants = [place.told[place.i + offset].instant for place in places[:LISTED] if place.i + offset < len(place.told)]
    more = f" and {len(places) - LISTED:,} more" if len(places) > LISTED else ""
    return "the report" + ("s" if len(places) > 1 else "") + f" at {', '.join(f'{at:,}' for at in instants)} ms" + more


def same(place: ExplanationPlace, rows: Rows) -> int | None:
    """The position after the answers that say these rows for the report of a place, ``None`` if they do not."""
    return place.recorded.take(replace(place.said, rows=rows), place.j)
